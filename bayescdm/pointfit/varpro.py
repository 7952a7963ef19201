"""Variable projection: search the direction on the sphere, solve exactly for everything else."""

from __future__ import annotations

import numpy as np

from bayescdm.pointfit.objective import DELTA, LOWER, PENALTY, Problem, Solution, pose, solved

#: Relative curvature added so that steps exist along what the runs leave open; it does not move the minimum.
DAMPING = 1e-9
#: Steps of the inner solution; ten are common, and only what the runs hardly determine takes many.
MOST_STEPS = 1000
#: Steps of it that tell which of several starts is the best; descents solve it in full.
RANKING_STEPS = 3
#: Steps at most that take the best direction from stationary to as near the minimum as numbers can say.
LAST_STEPS = 5
#: Relative gradient on the sphere that counts as stationary.
STATIONARY = 1e-6


def variable_projection(
    Z: np.ndarray,
    backbone_of_run: np.ndarray,
    log_volume: np.ndarray,
    accuracy: np.ndarray,
    recipe_of_run: np.ndarray | None = None,
    *,
    delta: float = DELTA,
    penalty: float = PENALTY,
    weights: np.ndarray | None = None,
    starts: np.ndarray | None = None,
) -> Solution:
    """Minimise the objective by searching w on the sphere and solving for the rest exactly.

    Parameters
    ----------
    Z : ndarray, (backbone, component)
        Component scores.
    backbone_of_run : ndarray of int, (run,)
        Row of `Z` of each run.
    log_volume : ndarray, (run,)
        ln(D / D_ref); 0 where the volume is unknown and the recipe's baseline absorbs it.
    accuracy : ndarray, (run,)
        Fractions; NaN runs are left out.
    recipe_of_run : ndarray of int, (run,), optional
        Recipe codes 0 … R − 1, one baseline each; one shared baseline when not given.
    delta : float
        Huber threshold, a fraction.
    penalty : float
        λ of the absorption penalty.
    weights : ndarray, (run,), optional
        Weight of each run, ≥ 0; a run of weight 0 is as if absent (leave-one-out by mask).
    starts : ndarray, (start, component), optional
        Directions to descend from, each from itself or its antipode, whichever is better; by default
        the least-squares direction and the best axis.

    Returns
    -------
    Solution
        Finite for every finite input: what the runs do not determine is held by a negligible ridge and
        named in ``unidentified``.

    Notes
    -----
    Golub and Pereyra (1973). The inner problem is solved by projected Newton steps, which end exactly on a
    piecewise quadratic; the derivative of the projected objective by w is the partial one (envelope theorem).
    Where A is on its bound the objective is flat in w, which is why a start and its antipode go together.

    Examples
    --------
    >>> Z = np.array([[0.3], [0.0], [-0.2]])
    >>> solution = variable_projection(Z, np.arange(3), np.zeros(3), 0.5 + 0.2 * Z[:, 0])
    >>> round(solution.A, 4), solution.unidentified
    (0.2, ('B0', 'Bm'))
    """
    problem, kept = pose(
        Z, backbone_of_run, log_volume, accuracy, recipe_of_run, delta=delta, penalty=penalty, weights=weights
    )
    search = SphereSearch(problem)
    K = problem.Z.shape[1]
    if K == 1:
        candidates = [(search(np.array([sign]))[0], np.array([sign]), True) for sign in (1.0, -1.0)]
    else:
        chosen = search.screen() if starts is None else search.better_of_antipodes(np.atleast_2d(starts))[0]
        candidates = [search.minimum(start) for start in chosen]
    _, w, converged = min(candidates, key=lambda candidate: candidate[0])
    if converged and K > 1:
        w = search.polished(w)
    theta = search.coefficients(w)
    return solved(problem, kept, accuracy, w, theta, converged, search.evaluations)


class SphereSearch:
    """Projected objective over w, with the last inner solution as the next one's start."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.theta = np.maximum(problem.typical, problem.lower)
        self.evaluations = 0

    def __call__(self, vector: np.ndarray, most_steps: int = MOST_STEPS) -> tuple[float, np.ndarray]:
        """Objective and gradient at w = vector/‖vector‖."""
        self.evaluations += 1
        norm = np.linalg.norm(vector)
        w = vector / norm
        X, rates = self.problem.design(w)
        self.theta = _solve_convex(self.problem, X, rates, self.theta, most_steps)
        residuals, absorption = X @ self.theta - self.problem.accuracy, rates @ self.theta
        slope = self.problem.gradient_of_w(self.theta, residuals, absorption)
        return self.problem.objective(residuals, absorption), (slope - (slope @ w) * w) / norm

    def coefficients(self, w: np.ndarray) -> np.ndarray:
        """(A, B0, Bm, baselines) at w, from a fixed start, so that they depend on w alone."""
        X, rates = self.problem.design(w)
        return _solve_convex(self.problem, X, rates, np.maximum(self.problem.typical, self.problem.lower))

    def better_of_antipodes(self, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Each direction or its antipode, whichever has the lower objective, and that objective."""
        units = directions / np.linalg.norm(directions, axis=1, keepdims=True)
        pairs = np.stack([units, -units], axis=1)
        values = np.array([[self(w, RANKING_STEPS)[0] for w in pair] for pair in pairs])
        better = values.argmin(axis=1)
        rows = np.arange(len(units))
        return pairs[rows, better], values[rows, better]

    def screen(self) -> np.ndarray:
        """Least-squares direction, and the best of the axes."""
        directions, values = self.better_of_antipodes(np.eye(self.problem.Z.shape[1]))
        return np.vstack([*_least_squares_direction(self.problem), directions[values.argmin()]])

    def minimum(self, start: np.ndarray) -> tuple[float, np.ndarray, bool]:
        """Descend from one start, and once more from the antipode of where A ends on its bound."""
        found = self.descend(start)
        value, w, _ = found
        if self.coefficients(w)[0] <= 2 * LOWER and self(-w)[0] < value:
            return min(found, self.descend(-w), key=lambda candidate: candidate[0])
        return found

    def descend(self, start: np.ndarray) -> tuple[float, np.ndarray, bool]:
        """Local minimum from one start by Newton steps on the sphere: objective, w, whether stationary.

        A step turns w by at most half a radian: a longer one could land where A is on its bound and the
        objective flat.
        """
        w = start / np.linalg.norm(start)
        current, gradient = self(w)
        # Added to the objective, so that a perfect fit, whose objective is 0, can be stationary too.
        nothing = 1e-6 * self.problem.delta**2 * self.problem.weights.sum()
        for _ in range(100):
            size = np.linalg.norm(gradient)
            if size <= STATIONARY * (current + nothing):
                return current, w, True
            theta = self.theta
            step, response = self.newton_step(w, gradient)
            step *= min(1, 0.5 / np.linalg.norm(step))
            for length in 0.5 ** np.arange(12):
                trial = (w + length * step) / np.linalg.norm(w + length * step)
                # To first order the coefficients at `trial` are known: the inner solution starts there.
                self.theta = np.maximum(theta + response @ (trial - w), self.problem.lower)
                reached, slope = self(trial)
                if reached <= current + 1e-4 * length * float(gradient @ step):
                    break
            if reached >= current:
                # Rounding hides any further fall: as stationary as these numbers can say.
                return current, w, bool(size <= 1e3 * STATIONARY * (current + nothing))
            w, current, gradient = trial, reached, slope
        return current, w, False

    def polished(self, w: np.ndarray) -> np.ndarray:
        """Direction after further Newton steps from a stationary one, as long as each halves the gradient.

        The objective no longer tells such directions apart; without these steps rounding would, and the same
        study under other names or in another order would get other ninth digits.
        """
        _, gradient = self(w)
        for _ in range(LAST_STEPS if gradient.any() else 0):
            step, _ = self.newton_step(w, gradient)
            trial = (w + step) / np.linalg.norm(w + step)
            _, slope = self(trial)
            if np.linalg.norm(slope) > np.linalg.norm(gradient) / 2:
                break
            w, gradient = trial, slope
        return w

    def newton_step(self, w: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Tangent step at w, where `self.theta` solves the inner problem; downhill whatever the curvature.

        Beside it the derivative of the coefficients by w, (coefficient, component).

        The curvature of the projected objective is the Schur complement of the joint one in (w, free
        coefficients), less the curvature of the sphere (Absil, Mahony and Sepulchre 2008, section 5.3).
        """
        problem, theta = self.problem, self.theta
        Z, used, penalty = problem.Z_of_run, problem.Z_used, 2 * problem.penalty
        X, rates = problem.design(w)
        residuals, absorption = X @ theta - problem.accuracy, rates @ theta
        inside = problem.weights * (np.abs(residuals) <= problem.delta)
        pull = problem.weights * residuals.clip(-problem.delta, problem.delta)
        short, negative = np.minimum(absorption, 0), absorption < 0
        by_w = (theta[0] - theta[2] * problem.log_volume)[:, None] * Z
        by_w_rates = -theta[2] * used[negative]
        of_w = (by_w.T * inside) @ by_w + penalty * (by_w_rates.T @ by_w_rates)
        mixed = (by_w.T * inside) @ X + penalty * (by_w_rates.T @ rates[negative])
        mixed[:, 0] += pull @ Z
        mixed[:, 2] -= (pull * problem.log_volume) @ Z + penalty * (short @ used)
        of_theta = (X.T * inside) @ X + penalty * (rates[negative].T @ rates[negative])
        free = (theta > problem.lower) & (np.diag(of_theta) > 0)
        held = of_theta[np.ix_(free, free)]
        held[np.diag_indices_from(held)] *= 1 + DAMPING
        response = np.zeros((len(theta), len(w)))
        response[free] = -np.linalg.solve(held, mixed[:, free].T)
        hessian = of_w + mixed @ response
        full = problem.gradient_of_w(theta, residuals, absorption)
        tangent = np.linalg.svd(w[None, :])[2][1:].T
        values, vectors = np.linalg.eigh(tangent.T @ hessian @ tangent - (full @ w) * np.eye(len(w) - 1))
        sizes = np.maximum(np.abs(values), 1e-8 * np.abs(values).max() + np.linalg.norm(gradient) * 1e-3)
        basis = tangent @ vectors
        return -basis @ ((basis.T @ gradient) / sizes), response


def _solve_convex(
    problem: Problem, X: np.ndarray, rates: np.ndarray, start: np.ndarray, most_steps: int = MOST_STEPS
) -> np.ndarray:
    """Minimise the objective over (A, B0, Bm, baselines) at fixed w.

    Newton steps within an active set of bounds, each followed to the exact minimum of the piecewise
    quadratic along it. Where too few residuals lie within δ such a step is short-lived; then the next one
    takes the curvature of iteratively reweighted least squares, which bounds the Huber function above.
    """
    weights, delta = problem.weights, problem.delta
    norms = np.sqrt(weights @ X**2)
    # Columns are compared at equal length; one that moves no prediction by a billionth is left where it is.
    shrink = np.divide(1, norms, out=np.zeros_like(norms), where=norms > 1e-9)
    damping = DAMPING * np.eye(len(start))
    tolerance = 1e-12 * delta * np.sqrt(weights.sum())
    theta, newton = start, True
    residuals, absorption = X @ theta - problem.accuracy, rates @ theta
    for _ in range(most_steps):
        gradient = shrink * problem.gradient_of_coefficients(X, rates, residuals, absorption)
        at_bound = theta <= problem.lower
        free = ~(at_bound & (gradient > 0))
        if np.abs(gradient[free]).max(initial=0) <= tolerance:
            break
        size = np.abs(residuals)
        curvature = weights * (size <= delta) if newton else weights * (delta / np.maximum(size, delta))
        negative = rates[absorption < 0]
        hessian = (X.T * curvature) @ X + 2 * problem.penalty * (negative.T @ negative)
        step = shrink * _inward_step(hessian * np.outer(shrink, shrink) + damping, gradient, free, at_bound)
        along, along_rates = X @ step, rates @ step
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step < 0, (problem.lower - theta) / step, np.inf)
        if newton and _same_pieces(residuals, along, delta) and _same_pieces(absorption, along_rates, 0.0):
            exact = 1.0
        else:
            exact = _exact_length(problem, residuals, along, absorption, along_rates)
        length = min(exact, room.min())
        if not newton and exact * np.abs(along).max() <= 1e-13 * delta:
            break
        newton = not (newton and exact < 0.1)
        # What reaches its bound is put there, not a rounding error above it, where it would block each step.
        theta = np.where(room <= length, problem.lower, theta + length * step)
        residuals, absorption = X @ theta - problem.accuracy, rates @ theta
    return theta


def _inward_step(
    hessian: np.ndarray, gradient: np.ndarray, free: np.ndarray, at_bound: np.ndarray
) -> np.ndarray:
    """Newton step of the free coefficients, leaving out those on a bound that it would push outwards."""
    free = free.copy()
    while True:
        step = np.zeros_like(gradient)
        part = hessian if free.all() else hessian[np.ix_(free, free)]
        step[free] = -np.linalg.solve(part, gradient[free])
        outward = free & at_bound & (step < 0)
        if not outward.any():
            return step
        free &= ~outward


def _same_pieces(values: np.ndarray, change: np.ndarray, corner: float) -> bool:
    """Whether no value passes ±`corner`, so that one quadratic holds along the whole of a step."""
    after = values + change
    return bool(
        ((values > corner) == (after > corner)).all() and ((values < -corner) == (after < -corner)).all()
    )


def _exact_length(
    problem: Problem,
    residuals: np.ndarray,
    along: np.ndarray,
    absorption: np.ndarray,
    along_rates: np.ndarray,
) -> float:
    """Length of a descent step at which the objective along it is least.

    Its derivative is piecewise linear and rises: a residual adds curvature while it is within δ, an
    absorption rate while it is negative. The zero is found by passing the sorted ends of those spans.
    """
    moving, turning = np.abs(along) > 0, np.abs(along_rates) > 0
    r, v, weight = residuals[moving], along[moving], problem.weights[moving]
    a, u = absorption[turning], along_rates[turning]
    middle, half = -r / v, problem.delta / np.abs(v)
    crossing = -a / u
    begins = np.concatenate([middle - half, np.where(u > 0, -np.inf, crossing)])
    ends = np.concatenate([middle + half, np.where(u > 0, crossing, np.inf)])
    curvatures = np.concatenate([weight * v**2, 2 * problem.penalty * u**2])
    pull = (weight * r.clip(-problem.delta, problem.delta)) @ v
    slope = float(pull + 2 * problem.penalty * (np.minimum(a, 0) @ u))
    current = float(curvatures[(begins <= 0) & (ends > 0)].sum())
    times = np.concatenate([begins, ends])
    changes = np.concatenate([curvatures, -curvatures])
    ahead = (times > 0) & (times < np.inf)
    order = np.argsort(times[ahead])
    times = np.concatenate([[0.0], times[ahead][order]])
    levels = np.maximum(current + np.concatenate([[0.0], np.cumsum(changes[ahead][order])]), 0)
    slopes = slope + np.concatenate([[0.0], np.cumsum(levels[:-1] * np.diff(times))])
    last = max(int(np.searchsorted(slopes, 0.0)) - 1, 0)
    return float(times[last] - slopes[last] / levels[last]) if levels[last] > 0 else float(times[last])


def _least_squares_direction(problem: Problem) -> list[np.ndarray]:
    """Direction of the slopes of accuracy on the components, within recipes and net of ln D, if any."""
    others = np.zeros((len(problem.accuracy), 1 + problem.n_recipes))
    others[:, 0] = problem.log_volume
    others[np.arange(len(others)), 1 + problem.recipe_of_run] = 1
    design = np.hstack([problem.Z_of_run, others])
    slopes = np.linalg.lstsq(design, problem.accuracy, rcond=None)[0][: problem.Z.shape[1]]
    norm = np.linalg.norm(slopes)
    return [slopes / norm] if norm > 1e-12 else []
