"""The paper's own optimiser: differential evolution over all parameters at once, then L-BFGS-B."""

from __future__ import annotations

import numpy as np

from bayescdm.pointfit.objective import DELTA, LOWER, PENALTY, Solution, pose, solved
from bayescdm.seeds import generator

#: Search boxes of differential evolution for A, B0, Bm and a baseline, in fractions and per unit of ln D.
EVOLUTION_BOX = ((LOWER, 5.0), (LOWER, 1.0), (LOWER, 1.0), (-1.0, 2.0))


def algorithm1(
    Z: np.ndarray,
    backbone_of_run: np.ndarray,
    log_volume: np.ndarray,
    accuracy: np.ndarray,
    recipe_of_run: np.ndarray | None = None,
    *,
    delta: float = DELTA,
    penalty: float = PENALTY,
    weights: np.ndarray | None = None,
    seed: int = 0,
) -> Solution:
    """Minimise the objective as the paper does: differential evolution, then L-BFGS-B.

    Parameters
    ----------
    Z, backbone_of_run, log_volume, accuracy, recipe_of_run, delta, penalty, weights
        As in `variable_projection`.
    seed : int
        Seed of the evolution.

    Returns
    -------
    Solution

    Notes
    -----
    Algorithm 1, appendix E of arXiv 2608.00013. All of (w, A, B0, Bm, P0) are searched at once; w is divided
    by its norm inside the objective. The paper states neither boxes nor settings: here the boxes are far
    wider than any rate it reports and the evolution's settings are SciPy's defaults.

    Examples
    --------
    >>> Z = np.array([[0.3], [0.0], [-0.2]])
    >>> solution = algorithm1(Z, np.arange(3), np.zeros(3), 0.5 + 0.2 * Z[:, 0])
    >>> round(solution.A, 3)
    0.2
    """
    from scipy.optimize import differential_evolution, minimize

    problem, kept = pose(
        Z, backbone_of_run, log_volume, accuracy, recipe_of_run, delta=delta, penalty=penalty, weights=weights
    )
    K = problem.Z.shape[1]

    def value_and_gradient(vector: np.ndarray) -> tuple[float, np.ndarray]:
        norm = np.linalg.norm(vector[:K]) or 1.0
        w, theta = vector[:K] / norm, vector[K:]
        X, rates = problem.design(w)
        residuals, absorption = X @ theta - problem.accuracy, rates @ theta
        slope = problem.gradient_of_w(theta, residuals, absorption)
        others = problem.gradient_of_coefficients(X, rates, residuals, absorption)
        gradient = np.concatenate([(slope - (slope @ w) * w) / norm, others])
        return problem.objective(residuals, absorption), gradient

    def value(vector: np.ndarray) -> float:
        w, theta = vector[:K] / (np.linalg.norm(vector[:K]) or 1.0), vector[K:]
        S = problem.Z @ w
        rate = theta[1] - theta[2] * S
        predicted = (
            theta[0] * S[problem.backbone_of_run]
            + rate[problem.backbone_of_run] * problem.log_volume
            + theta[3:][problem.recipe_of_run]
        )
        return problem.objective(predicted - problem.accuracy, problem.Z_used @ w * -theta[2] + theta[1])

    boxes = [(-1.0, 1.0)] * K + list(EVOLUTION_BOX[:3]) + [EVOLUTION_BOX[3]] * problem.n_recipes
    evolved = differential_evolution(value, boxes, rng=generator(seed), polish=False)
    free = [(None, None)] * K + [(LOWER, None)] * 3 + [(None, None)] * problem.n_recipes
    scale = max(evolved.fun, 1e-12)
    refined = minimize(
        lambda vector: tuple(part / scale for part in value_and_gradient(vector)),
        evolved.x,
        jac=True,
        method="L-BFGS-B",
        bounds=free,
        options={"maxiter": 5_000, "maxfun": 50_000, "ftol": 1e-15, "gtol": 1e-9},
    )
    w, theta = refined.x[:K] / (np.linalg.norm(refined.x[:K]) or 1.0), refined.x[K:]
    evaluations = int(evolved.nfev + refined.nfev)
    return solved(problem, kept, accuracy, w, theta, bool(evolved.success and refined.success), evaluations)
