"""Search for the least sum of Huber losses on ln L, for laws that are sums of exponentials.

Every term of a law is an exponential that is linear in its coefficients, so that ln L has an exact gradient
and Hessian. Coefficients sit at a reference point (the geometric mean of N and D): the size of a term there
hardly moves when its exponent does, and a change of units changes nothing at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from bayescdm.errors import Note

__all__ = [
    "DELTA",
    "LARGEST_EXPONENT",
    "Design",
    "HuberObjective",
    "is_same",
    "optimum_notes",
    "project",
    "search",
    "term_bounds",
]

#: Threshold of the Huber loss in the paper (appendix D) and in Hoffmann et al.
DELTA = 1e-3

#: Two optima are one when their objectives agree to this share, or when both are nought but for rounding.
SAME_OBJECTIVE = 1e-6
NOUGHT = 1e-15
LARGEST_EXPONENT = 3.0
#: Least loss of a point, as a share of its largest term.
LEAST_SHARE = 1e-9
#: Change of ln L (root mean square) a unit of coefficients below which a direction is free. Fits whose
#: constants are determined have 2e-3 or more, degenerate designs 1e-8 or less.
FLAT = 1e-6
#: ln of the share of the mean loss that a term may have at the reference point.
TERM_BOUNDS = (np.log(1e-6), np.log(2.0))


@dataclass(frozen=True)
class Design:
    """A law as ln L = ln Σ_t factor[t]·exp(terms[t]·x), with the names and bounds of its coefficients.

    Parameters
    ----------
    terms : ndarray, shape (point, term, coefficient)
    names : tuple of str, (coefficient,)
    bounds : ndarray, shape (coefficient, 2)
    shape : ndarray of bool, shape (coefficient,)
        Exponents, which the outer search of variable projection holds; the others are sizes of terms.
    factor : ndarray, shape (point, term), or float
        Fixed factors of the terms; one below 0 subtracts its term, 0 leaves it out.
    """

    terms: np.ndarray
    names: tuple[str, ...]
    bounds: np.ndarray
    shape: np.ndarray
    factor: np.ndarray | float = 1.0

    def draw_start(self, rng: np.random.Generator, mean_log_loss: float) -> np.ndarray:
        """Draw random shares of the mean loss for the terms, and random exponents.

        Parameters
        ----------
        rng : Generator
        mean_log_loss : float

        Returns
        -------
        ndarray, shape (coefficient,)
        """
        x = rng.uniform(0.05, 1.5, len(self.names)) * np.where(self.bounds[:, 0] < 0, rng.choice([-1, 1]), 1)
        x[~self.shape] = mean_log_loss + np.log(rng.dirichlet(np.ones(np.sum(~self.shape))))
        return np.clip(x, *self.bounds.T)


@dataclass(frozen=True)
class HuberObjective:
    """Sum of Huber(ln L̂ − ln L) over points, with its gradient and Hessian.

    Parameters
    ----------
    terms : ndarray, shape (point, term, coefficient)
        Each term of L̂ is ``factor * exp(terms @ x)``.
    log_loss : ndarray, shape (point,)
        ln L as observed.
    weights : ndarray, shape (point,)
        How often each point counts.
    delta : float
        Threshold between squares and absolute values.
    factor : ndarray, shape (point, term), or float
        Fixed factors of the terms, as in `Design`.

    Notes
    -----
    Eq. 11 of *What Transfers from Text to Vision?*. The sum, not the mean: with the mean the gradient is so
    small that optimisers stop early and report success.

    Examples
    --------
    >>> objective = HuberObjective(np.ones((2, 1, 1)), np.array([0.0, 1.0]), np.ones(2))
    >>> value, gradient = objective(np.zeros(1))
    >>> round(float(value), 7)
    0.0009995
    """

    terms: np.ndarray
    log_loss: np.ndarray
    weights: np.ndarray
    delta: float = DELTA
    factor: np.ndarray | float = 1.0

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the sum and its gradient, shape (coefficient,)."""
        residual, share = self._residual(x)
        size = np.abs(residual)
        huber = np.where(size <= self.delta, residual**2 / 2, self.delta * (size - self.delta / 2))
        psi = np.clip(residual, -self.delta, self.delta) * self.weights
        gradient = np.einsum("it,itc->c", psi[:, None] * share, self.terms)
        return float(huber @ self.weights), gradient

    def hessian(self, x: np.ndarray) -> np.ndarray:
        """Return the matrix of second derivatives, shape (coefficient, coefficient)."""
        residual, share = self._residual(x)
        psi = np.clip(residual, -self.delta, self.delta) * self.weights
        inside = (np.abs(residual) <= self.delta) * self.weights
        jacobian = np.einsum("it,itc->ic", share, self.terms)
        flat = self.terms.reshape(-1, self.terms.shape[-1])
        of_terms = (flat * (psi[:, None] * share).reshape(-1, 1)).T @ flat
        return of_terms + ((inside - psi)[:, None] * jacobian).T @ jacobian

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return the derivatives of ln L̂, shape (point, coefficient)."""
        return np.einsum("it,itc->ic", self._residual(x)[1], self.terms)

    def residual(self, x: np.ndarray) -> np.ndarray:
        """Return ln L̂ − ln L, shape (point,)."""
        return self._residual(x)[0]

    def _residual(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ln L̂ − ln L, shape (point,), and the share of each term in L̂, shape (point, term)."""
        log_terms = np.einsum("itc,c->it", self.terms, x)
        top = log_terms.max(axis=1, keepdims=True)
        share = self.factor * np.exp(log_terms - top)
        # What is subtracted may not make a loss negative while the search is under way.
        total = np.maximum(share.sum(axis=1, keepdims=True), LEAST_SHARE)
        return (top + np.log(total))[:, 0] - self.log_loss, share / total


def term_bounds(mean_log_loss: float, terms: int = 3) -> np.ndarray:
    """Return bounds of the logarithms of the terms at the reference point, around the mean log loss.

    Parameters
    ----------
    mean_log_loss : float
    terms : int

    Returns
    -------
    ndarray, shape (terms, 2)
    """
    return np.tile(mean_log_loss + np.asarray(TERM_BOUNDS), (terms, 1))


def search(objective: HuberObjective, x: np.ndarray, bounds: np.ndarray) -> OptimizeResult:
    """Search from one start: bounded quasi-Newton, then exact Newton on the coefficients off their bounds.

    Parameters
    ----------
    objective : HuberObjective
    x : ndarray, shape (coefficient,)
    bounds : ndarray, shape (coefficient, 2)

    Returns
    -------
    OptimizeResult
    """
    found = minimize(
        objective,
        x,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": 2000, "ftol": 0, "gtol": 1e-11},
    )
    x = found.x
    free = (x > bounds[:, 0]) & (x < bounds[:, 1])
    if not free.any():
        return found

    def whole(y: np.ndarray) -> np.ndarray:
        full = x.copy()
        full[free] = y
        return full

    polished = minimize(
        lambda y: objective(whole(y))[0],
        x[free],
        jac=lambda y: objective(whole(y))[1][free],
        hess=lambda y: objective.hessian(whole(y))[np.ix_(free, free)],
        method="trust-exact",
        options={"gtol": 1e-14, "maxiter": 200},
    )
    candidate = whole(polished.x)
    if polished.fun <= found.fun and np.all((candidate >= bounds[:, 0]) & (candidate <= bounds[:, 1])):
        found.x, found.fun = candidate, polished.fun
    return found


def project(objective: HuberObjective, x: np.ndarray, design: Design) -> OptimizeResult:
    """Search by variable projection: over the exponents outside, over the sizes of the terms inside.

    Parameters
    ----------
    objective : HuberObjective
    x : ndarray, shape (coefficient,)
    design : Design

    Returns
    -------
    OptimizeResult
    """
    sizes, current = ~design.shape, x.copy()

    def inner(exponents: np.ndarray) -> tuple[float, np.ndarray]:
        current[design.shape] = exponents

        def partial(y: np.ndarray) -> tuple[float, np.ndarray]:
            current[sizes] = y
            value, gradient = objective(current)
            return value, gradient[sizes]

        solved = minimize(
            partial,
            current[sizes],
            jac=True,
            method="L-BFGS-B",
            bounds=design.bounds[sizes],
            options={"ftol": 0, "gtol": 1e-10},
        )
        current[sizes] = solved.x
        value, gradient = objective(current)
        # At the inner optimum the sizes have no gradient left, so the exponents' own gradient is the total.
        return value, gradient[design.shape]

    outer = minimize(
        inner,
        x[design.shape],
        jac=True,
        method="L-BFGS-B",
        bounds=design.bounds[design.shape],
        options={"ftol": 0, "gtol": 1e-9},
    )
    inner(outer.x)
    return search(objective, current.copy(), design.bounds)


def _free_directions(x: np.ndarray, objective: HuberObjective, design: Design) -> list[str]:
    """Coefficients that take part in a direction along which no prediction changes."""
    jacobian = objective.jacobian(x)
    change, directions = np.linalg.eigh(np.einsum("ic,id->cd", jacobian, jacobian) / len(jacobian))
    flat = np.abs(directions[:, change < FLAT**2]).max(axis=1, initial=0)
    return [name for name, part in zip(design.names, flat) if part > 0.1]


def _too_few(design: Design) -> str:
    """What more of would determine the constants, or what may be nought."""
    if "ln floor" in design.names:
        return "too few models, or no floor in sight of them"
    return "too few model sizes, data volumes or backbones"


def is_same(objective: Any, best: float) -> Any:
    """Tell whether an objective is the best one, but for the accuracy of the search.

    Parameters
    ----------
    objective : array
    best : float

    Returns
    -------
    array of bool
    """
    return objective <= best * (1 + SAME_OBJECTIVE) + NOUGHT


def optimum_notes(
    best: OptimizeResult,
    objective: HuberObjective,
    design: Design,
    found: dict[str, list[OptimizeResult]],
    *,
    resampled: int | None = None,
) -> tuple[Note, ...]:
    """Return what the reader must know of an optimum: bounds, disagreeing starts, too few runs to resample.

    Parameters
    ----------
    best : OptimizeResult
    objective : HuberObjective
    design : Design
    found : dict of str to list of OptimizeResult
        Ends of the searches from all starts, by method.
    resampled : int, optional
        Runs that resamples were drawn from, where any were.

    Returns
    -------
    tuple of Note
    """
    notes = []
    lower, upper = design.bounds.T
    near = 1e-6 * (upper - lower)
    # The size of a vanishing term creeps along a flat floor and stops short of its lower bound.
    vanishing = np.where(design.shape, near, np.log(100.0))
    for name in np.asarray(design.names)[(best.x - lower <= vanishing) | (upper - best.x <= near)]:
        message = f"{name} ended at its bound: the points do not determine it, nor what depends on it"
        notes.append(Note("optimum-at-bound", message, "warning", str(name)))
    free = _free_directions(best.x, objective, design)
    if free:
        message = (
            f"{', '.join(free)} can change {'together ' if len(free) > 1 else ''}without any effect on the "
            f"points: {_too_few(design)}"
        )
        notes.append(Note("undetermined", message, "warning"))
    for method, results in found.items():
        ends = np.array([result.fun for result in results])
        away = ~is_same(ends, best.fun)
        if away.any():
            message = (
                f"{away.sum()} of {len(ends)} starts of the {method} ended above the best objective "
                f"{best.fun:.7g}, the worst at {ends.max():.7g}"
            )
            notes.append(Note("starts-disagree", message, "warning", method))
    if resampled is not None and resampled < 10:
        message = f"{resampled} runs were resampled: too few for the intervals to be more than a hint"
        notes.append(Note("few-runs", message, "warning", "bootstrap"))
    return tuple(notes)
