"""The objective of the point fit, its data and its result; both optimisers minimise this one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bayescdm.errors import InputError, RequestError

#: Huber threshold, a fraction: residuals within one point count squared. The paper states none.
DELTA = 0.01
#: λ of the absorption penalty: a rate of −0.1 points per e-fold costs as much as 20 one-point residuals.
PENALTY = 1e3
#: Lower bound that stands for A, B0, Bm > 0.
LOWER = 1e-6
#: Where the ridge holds what the runs leave open: the middle of the paper's Tables 2 and 3.
TYPICAL_RATES = np.array([0.25, 0.015, 0.01])
RATES = ("A", "B0", "Bm")


@dataclass(frozen=True)
class Solution:
    """Best-fitting law of arrays.

    Attributes
    ----------
    w : ndarray, (component,)
        Unit direction.
    A, B0, Bm : float
        Rates at the reference volume.
    baselines : ndarray, (recipe,)
        Accuracy of each recipe at S = 0 and the reference volume.
    objective : float
        Huber sum plus absorption penalty.
    residuals : ndarray, (run,)
        Predicted minus observed accuracy.
    converged : bool
        Whether the search over w ended at a stationary point.
    unidentified : tuple of str
        Those of w, A, B0, Bm that the runs do not determine; their values are conventions.
    evaluations : int
        Objective evaluations, over all starts.
    """

    w: np.ndarray
    A: float
    B0: float
    Bm: float
    baselines: np.ndarray
    objective: float
    residuals: np.ndarray
    converged: bool
    unidentified: tuple[str, ...]
    evaluations: int

    @property
    def P0(self) -> float:
        """Mean baseline of the recipes."""
        return float(self.baselines.mean())

    @property
    def recipe_effect(self) -> np.ndarray:
        """Baseline of each recipe less their mean, (recipe,)."""
        return self.baselines - self.P0


@dataclass(frozen=True)
class Problem:
    """The data of one objective; runs of weight 0 are already gone."""

    Z: np.ndarray
    backbone_of_run: np.ndarray
    log_volume: np.ndarray
    accuracy: np.ndarray
    recipe_of_run: np.ndarray
    n_recipes: int
    delta: float
    penalty: float
    weights: np.ndarray
    Z_of_run: np.ndarray = field(init=False)
    Z_used: np.ndarray = field(init=False)
    X: np.ndarray = field(init=False)
    absorption: np.ndarray = field(init=False)
    typical: np.ndarray = field(init=False)
    lower: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Gather once what every evaluation needs."""
        level = np.average(self.accuracy, weights=self.weights) if len(self.accuracy) else 0.0
        typical = np.concatenate([TYPICAL_RATES, np.full(self.n_recipes, level)])
        lower = np.concatenate([np.full(3, LOWER), np.full(self.n_recipes, -np.inf)])
        object.__setattr__(self, "Z_of_run", self.Z[self.backbone_of_run])
        object.__setattr__(self, "Z_used", self.Z[np.unique(self.backbone_of_run)])
        X = np.zeros((len(self.accuracy), len(typical)))
        X[:, 1] = self.log_volume
        X[np.arange(len(X)), 3 + self.recipe_of_run] = 1
        absorption = np.zeros((len(self.Z_used), len(typical)))
        absorption[:, 1] = 1
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "absorption", absorption)
        object.__setattr__(self, "typical", typical)
        object.__setattr__(self, "lower", lower)

    def design(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Matrices of predictions (run, coefficient) and of absorption rates (backbone, coefficient) at w."""
        X, absorption = self.X.copy(), self.absorption.copy()
        X[:, 0] = self.Z_of_run @ w
        X[:, 2] = -X[:, 0] * self.log_volume
        absorption[:, 2] = -(self.Z_used @ w)
        return X, absorption

    def objective(self, residuals: np.ndarray, absorption: np.ndarray) -> float:
        """Huber sum plus absorption penalty."""
        size = np.abs(residuals)
        inner = np.minimum(size, self.delta)
        short = np.minimum(absorption, 0)
        return float(self.weights @ (inner * (size - inner / 2)) + self.penalty * (short @ short))

    def gradient_of_w(self, theta: np.ndarray, residuals: np.ndarray, absorption: np.ndarray) -> np.ndarray:
        """Derivative of the objective by the coordinates of w, other coefficients held."""
        pull = self.weights * residuals.clip(-self.delta, self.delta)
        short = np.minimum(absorption, 0)
        return (pull * (theta[0] - theta[2] * self.log_volume)) @ self.Z_of_run - (
            2 * self.penalty * theta[2]
        ) * (short @ self.Z_used)

    def gradient_of_coefficients(
        self, X: np.ndarray, rates: np.ndarray, residuals: np.ndarray, absorption: np.ndarray
    ) -> np.ndarray:
        """Derivative of the objective by (A, B0, Bm, baselines), w held."""
        pull = self.weights * residuals.clip(-self.delta, self.delta)
        return pull @ X + 2 * self.penalty * (np.minimum(absorption, 0) @ rates)


def pose(
    Z: np.ndarray,
    backbone_of_run: np.ndarray,
    log_volume: np.ndarray,
    accuracy: np.ndarray,
    recipe_of_run: np.ndarray | None,
    *,
    delta: float,
    penalty: float,
    weights: np.ndarray | None,
) -> tuple[Problem, np.ndarray]:
    """Check the arrays and drop runs without accuracy or weight; returns the mask of those kept, too."""
    Z = np.asarray(Z, dtype=float)
    accuracy = np.asarray(accuracy, dtype=float)
    n = len(accuracy)
    log_volume = np.asarray(log_volume, dtype=float)
    backbone_of_run = np.asarray(backbone_of_run, dtype=int)
    recipe_of_run = np.zeros(n, dtype=int) if recipe_of_run is None else np.asarray(recipe_of_run, dtype=int)
    weights = np.ones(n) if weights is None else np.asarray(weights, dtype=float)
    if Z.ndim != 2 or Z.shape[1] == 0 or not np.isfinite(Z).all():
        raise InputError("component scores must be a finite table of backbones and at least one component")
    if not np.isfinite(log_volume).all():
        raise InputError("log volumes must be finite; use 0 where the recipe's baseline absorbs the volume")
    if n and (backbone_of_run.min() < 0 or backbone_of_run.max() >= len(Z) or recipe_of_run.min() < 0):
        raise InputError(f"a run's backbone code is outside 0 … {len(Z) - 1}, or its recipe code negative")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise InputError("weights of runs must be finite and not negative")
    if not (delta > 0 and penalty >= 0):
        raise RequestError(f"delta {delta:g} must be positive and penalty {penalty:g} not negative")
    kept = np.isfinite(accuracy) & (weights > 0)
    problem = Problem(
        Z,
        backbone_of_run[kept],
        log_volume[kept],
        accuracy[kept],
        recipe_of_run[kept],
        int(recipe_of_run.max(initial=0)) + 1,
        delta,
        penalty,
        weights[kept],
    )
    return problem, kept


def solved(
    problem: Problem,
    kept: np.ndarray,
    accuracy: np.ndarray,
    w: np.ndarray,
    theta: np.ndarray,
    converged: bool,
    evaluations: int,
) -> Solution:
    """Package coefficients; residuals of runs that did not enter are NaN."""
    X, rates = problem.design(w)
    residuals = np.full(len(accuracy), np.nan)
    residuals[kept] = X @ theta - problem.accuracy
    return Solution(
        w=w,
        A=float(theta[0]),
        B0=float(theta[1]),
        Bm=float(theta[2]),
        baselines=theta[3:],
        objective=problem.objective(residuals[kept], rates @ theta),
        residuals=residuals,
        converged=converged,
        unidentified=_unidentified(problem, X),
        evaluations=evaluations,
    )


def _unidentified(problem: Problem, X: np.ndarray) -> tuple[str, ...]:
    """Quantities that some direction of the parameter space changes without changing a prediction."""
    within = problem.Z_of_run.copy()
    for recipe in np.unique(problem.recipe_of_run):
        rows = problem.recipe_of_run == recipe
        within[rows] -= within[rows].mean(axis=0)
    direction = ("w",) if within.shape[1] > 1 and _null_space(within).size else ()
    null = _null_space(X)[: len(RATES)]
    return direction + tuple(name for name, row in zip(RATES, null) if (np.abs(row) > 1e-3).any())


def _null_space(X: np.ndarray) -> np.ndarray:
    """Orthonormal directions of the coefficients of X that move no row, (coefficient, direction)."""
    scale = np.linalg.norm(X, axis=0)
    # A column that moves no prediction by a billionth is as good as absent.
    scaled = np.where(scale > 1e-9, X / np.where(scale > 0, scale, 1), 0)
    # The Gram matrix is small and quick; its eigenvalues are squares, so 1e-12 means one part in a million.
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    return vectors[:, values < 1e-12]
