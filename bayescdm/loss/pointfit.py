"""Point fits of the loss laws: the sum of Huber losses on ln L, from many starts and by variable projection.

The search itself is `bayescdm.loss.huber`; here each law is written as a sum of exponentials.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from threadpoolctl import threadpool_limits

from bayescdm.errors import InputError, Note, RequestError, unknown_name
from bayescdm.laws import capability_loss, compute_loss, contrastive_error
from bayescdm.loss.huber import (
    DELTA,
    LARGEST_EXPONENT,
    Design,
    HuberObjective,
    is_same,
    optimum_notes,
    project,
    search,
    term_bounds,
)
from bayescdm.loss.prediction import LossPrediction
from bayescdm.loss.scope import Scope
from bayescdm.loss.study import LossStudy
from bayescdm.seeds import generator
from bayescdm.tracking import tracked

__all__ = ["LAWS", "LossPointFit", "capability_direction", "fit_loss_points"]

LAWS = ("compute", "capability", "contrastive")


@dataclass(frozen=True)
class LossPointFit:
    """A loss law fitted to points by one optimisation.

    Attributes
    ----------
    law : str
        One of `LAWS`.
    parameters : dict
        ``A``, ``B``, ``E``, ``alpha``, ``beta`` for absolute counts; the capability law adds ``w``. The
        contrastive law has ``beta``, ``alpha`` and ``floor``.
    objective : float
        Sum of Huber losses at the optimum.
    mae : float
        Mean absolute error of the loss itself.
    n_points, n_parameters : int
        What was fitted to how much.
    starts, reached : int
        Random starts, and how many of them ended at the best objective.
    bootstrap : DataFrame or None
        Parameters of each resample, columns as in `parameters` (without w).
    scope : Scope
        What the runs were; printed with every prediction.
    notes : tuple of Note
        What limits the fit.
    """

    law: str
    parameters: dict[str, Any]
    objective: float
    mae: float
    n_points: int
    n_parameters: int
    starts: int
    reached: int
    bootstrap: pd.DataFrame | None
    scope: Scope
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        """Return the law with its numbers, the quality of the fit and the scope."""
        return "\n".join([self.constants(), str(self.scope), *map(str, self.notes)])

    def constants(self) -> str:
        """Return the law's numbers and the quality of the fit as two lines."""
        values = {k: v for k, v in self.parameters.items() if np.ndim(v) == 0}
        return "  ".join(f"{name} {value:.5g}" for name, value in values.items()) + (
            f"\nobjective {self.objective:.7f}, MAE {self.mae:.4f}, {self.n_points} points, "
            f"{self.n_parameters} parameters, {self.reached} of {self.starts} starts reached it"
        )

    def to_dict(self, *, prob: float = 0.9) -> dict[str, Any]:
        """Return constants, quality of the fit, scope and notes as plain values, for JSON.

        Parameters
        ----------
        prob : float
            Probability of the bootstrap intervals, where there are resamples.

        Returns
        -------
        dict
        """
        return {
            "law": self.law,
            "parameters": self.parameters,
            "intervals": None if self.bootstrap is None else self.intervals(prob).to_dict("index"),
            "objective": self.objective,
            "mae": self.mae,
            "n_points": self.n_points,
            "starts": self.starts,
            "reached": self.reached,
            "scope": self.scope.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }

    def predict(
        self, volume: Any = None, *, params: Any = None, S: Any = None, compute: Any = None
    ) -> LossPrediction:
        """Loss at given predictors, with extrapolation flags and scope.

        Parameters
        ----------
        volume : array, shape (point,)
            D, an absolute count; not for the contrastive law.
        params : array, shape (point,)
            N, an absolute count; for the compute law.
        S : array, shape (point,)
            Capability, for the capability law.
        compute : array, shape (point,)
            C in the unit of the scope, for the contrastive law.

        Returns
        -------
        LossPrediction
            The law's own predictors, ``loss``, ``extrapolation``.

        Raises
        ------
        RequestError
            When one of the law's own predictors is not given.
        """
        laws: dict[str, tuple[Callable[..., np.ndarray], tuple[str, ...]]] = {
            "compute": (compute_loss, ("params", "volume")),
            "capability": (capability_loss, ("S", "volume")),
            "contrastive": (contrastive_error, ("compute",)),
        }
        law, names = laws[self.law]
        given = {"params": params, "S": S, "compute": compute, "volume": volume}
        missing = [name for name in names if given[name] is None]
        if missing:
            raise RequestError(f"the {self.law} law needs {' and '.join(missing)}")
        arrays = np.broadcast_arrays(*(np.atleast_1d(given[name]).astype(float) for name in names))
        constants = {k: v for k, v in self.parameters.items() if k != "w"}
        table = pd.DataFrame(dict(zip(names, arrays)))
        flags = self.scope.extrapolates(**dict(zip(names, arrays)))
        table = table.assign(loss=law(*arrays, **constants), extrapolation=flags)
        return LossPrediction(table, self.scope, self.scope.extrapolation_note(flags))

    def intervals(self, prob: float = 0.9) -> pd.DataFrame:
        """Bootstrap intervals of the parameters.

        Parameters
        ----------
        prob : float
            Probability of the equal-tailed interval.

        Returns
        -------
        DataFrame, (parameter,)
            ``estimate``, ``bootstrap_lower_90``, ``bootstrap_upper_90`` (the figure is 100·prob).

        Raises
        ------
        RequestError
            When the fit was made without resamples.
        """
        if self.bootstrap is None:
            raise RequestError("this fit has no bootstrap: give resamples=500 to fit_loss_points")
        tails = self.bootstrap.quantile([(1 - prob) / 2, (1 + prob) / 2]).to_numpy()
        names = list(self.bootstrap.columns)
        return pd.DataFrame(
            {
                "estimate": [self.parameters[name] for name in names],
                f"bootstrap_lower_{100 * prob:g}": tails[0],
                f"bootstrap_upper_{100 * prob:g}": tails[1],
            },
            index=pd.Index(names, name="parameter"),
        )


def fit_loss_points(
    study: LossStudy,
    law: str = "compute",
    *,
    starts: int = 20,
    resamples: int = 0,
    seed: int = 0,
    delta: float = DELTA,
    progress: bool = False,
) -> LossPointFit:
    """Fit a loss law to all runs of a study by the sum of Huber losses on ln L.

    Parameters
    ----------
    study : LossStudy
        One family for the compute law as the paper uses it (`LossStudy.select_runs`).
    law : {"compute", "capability", "contrastive"}
        The capability law takes S from the components of the study, w on the unit sphere; the contrastive
        law takes the compute of each run, of one training set.
    starts : int
        Random starts of the direct search; variable projection runs beside it from a quarter as many.
    resamples : int
        Bootstrap resamples; whole runs are resampled where runs have several points.
    seed : int
        Of the starts and the resamples; the optimum does not depend on it.
    delta : float
        Huber threshold.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    LossPointFit

    Raises
    ------
    NotFoundError
        When there is no such law.
    InputError
        When the study lacks what the law needs: components, or the compute of each run.

    Notes
    -----
    Appendix D of *What Transfers from Text to Vision?*; approach 3 of Hoffmann et al. (arXiv 2203.15556).
    The contrastive law: Cherti et al. (arXiv 2212.07143).
    """
    if law not in LAWS:
        raise unknown_name("loss law", law, LAWS)
    log_loss, log_volume = np.log(study.loss), np.log(study.volume / study.volume_ref)
    if law == "compute":
        design = _compute_design(np.log(study.params / study.params_ref), log_volume, float(log_loss.mean()))
    elif law == "contrastive":
        design = _contrastive_design(np.log(_compute(study) / _compute_ref(study)), float(log_loss.mean()))
    else:
        Z = study.component_scores[study.run_of_point]
        design = _capability_design(Z, log_volume, float(log_loss.mean()))
    rng = generator(seed)
    bar = partial(tracked, progress=progress, transient=True)

    objective = HuberObjective(design.terms, log_loss, np.ones(len(log_loss)), delta)
    points = [design.draw_start(rng, float(log_loss.mean())) for _ in range(starts)]
    resampled = [replace(objective, weights=_resampled_weights(study, rng)) for _ in range(resamples)]
    # The optimiser's own matrices are 5 × 5: threads of the linear-algebra library only wait for each other.
    with threadpool_limits(1, user_api="blas"):
        direct = [search(objective, x, design.bounds) for x in bar(points, "starts")]
        some = points[: max(1, starts // 4)]
        projected = [project(objective, x, design) for x in bar(some, "variable projection")]
        best = min(direct + projected, key=lambda found: found.fun)
        fits = [search(other, best.x, design.bounds).x for other in bar(resampled, "resamples")]
    tables = None
    if resamples:
        tables = pd.DataFrame([_natural(law, x, study) for x in fits]).drop(columns="w", errors="ignore")
    found = {"direct search": direct, "variable projection": projected}
    notes = optimum_notes(best, objective, design, found, resampled=len(study.runs) if resamples else None)
    reached = sum(is_same(result.fun, best.fun) for result in direct)
    predicted = np.exp(logsumexp(design.terms @ best.x, axis=1))
    parameters, scope = _natural(law, best.x, study), study.scope
    if law == "capability":
        scope = scope.with_ranges(pd.DataFrame({"S": study.component_scores @ parameters["w"]}))
    return LossPointFit(
        law=law,
        parameters=parameters,
        objective=float(best.fun),
        mae=float(np.mean(np.abs(predicted - study.loss))),
        n_points=len(log_loss),
        n_parameters=len(design.names),
        starts=starts,
        reached=reached,
        bootstrap=tables,
        scope=scope,
        notes=(*study.notes, *notes),
    )


def _compute_design(log_params: np.ndarray, log_volume: np.ndarray, mean_log_loss: float) -> Design:
    """L = a·(N/N_ref)^−α + b·(D/D_ref)^−β + E."""
    terms = np.zeros((len(log_params), 3, 5))
    terms[:, [0, 1, 2], [0, 1, 2]] = 1
    terms[:, 0, 3] = -log_params
    terms[:, 1, 4] = -log_volume
    exponents = np.array([[0.0, LARGEST_EXPONENT]] * 2)
    names = ("ln A", "ln B", "ln E", "alpha", "beta")
    return Design(terms, names, np.vstack([term_bounds(mean_log_loss), exponents]), np.arange(5) >= 3)


def _capability_design(components: np.ndarray, log_volume: np.ndarray, mean_log_loss: float) -> Design:
    """L = A·exp(−v·Z) + b·(D/D_ref)^−β + E, with v = α·w: the length of v is α, its direction w."""
    K = components.shape[1]
    terms = np.zeros((len(components), 3, 4 + K))
    terms[:, [0, 1, 2], [0, 1, 2]] = 1
    terms[:, 1, 3] = -log_volume
    terms[:, 0, 4:] = -components
    largest = 20 / max(float(np.abs(components).max()), 1e-12)
    free = np.vstack([[0.0, LARGEST_EXPONENT], np.tile([-largest, largest], (K, 1))])
    names = ("ln A", "ln B", "ln E", "beta", *(f"alpha·w{k + 1}" for k in range(K)))
    return Design(terms, names, np.vstack([term_bounds(mean_log_loss), free]), np.arange(4 + K) >= 3)


def _contrastive_design(log_compute: np.ndarray, mean_log_error: float) -> Design:
    """Error = b·(C/C_ref)^α + floor, with −α as the exponent that is searched."""
    terms = np.zeros((len(log_compute), 2, 3))
    terms[:, [0, 1], [0, 1]] = 1
    terms[:, 0, 2] = -log_compute
    bounds = np.vstack([term_bounds(mean_log_error, 2), [0.0, LARGEST_EXPONENT]])
    return Design(terms, ("ln beta", "ln floor", "-alpha"), bounds, np.arange(3) >= 2)


def _compute(study: LossStudy) -> np.ndarray:
    """Compute of each point's run, shape (point,)."""
    if "compute" not in study.runs:
        raise InputError(f"{study.name}: the contrastive law needs the compute of each run")
    return study.runs["compute"].to_numpy(float)[study.run_of_point]


def _compute_ref(study: LossStudy) -> float:
    """Geometric mean of C over the points."""
    return float(np.exp(np.log(_compute(study)).mean()))


def capability_direction(
    components: np.ndarray, log_volume: np.ndarray, log_loss: np.ndarray, weights: np.ndarray, starts: int = 4
) -> np.ndarray:
    """Direction w of the capability law's point fit: where the sampler starts.

    Parameters
    ----------
    components : ndarray, shape (point, component)
    log_volume, log_loss, weights : ndarray, shape (point,)
        ln(D/D_ref), ln L and how often each point counts.
    starts : int
        Random starts, always the same ones.

    Returns
    -------
    ndarray, shape (component,)
        Unit norm.
    """
    design = _capability_design(components, log_volume, float(log_loss.mean()))
    objective = HuberObjective(design.terms, log_loss, weights)
    rng = np.random.default_rng(0)
    points = [design.draw_start(rng, float(log_loss.mean())) for _ in range(starts)]
    with threadpool_limits(1, user_api="blas"):
        v = min((search(objective, x, design.bounds) for x in points), key=lambda found: found.fun).x[4:]
    length = np.linalg.norm(v)
    return v / length if length > 0 else np.eye(len(v))[0]


def _natural(law: str, x: np.ndarray, study: LossStudy) -> dict[str, Any]:
    """Coefficients at the reference point → constants for absolute counts."""
    if law == "contrastive":
        above, floor = np.exp(x[:2])
        return _floats(beta=above * _compute_ref(study) ** x[2], alpha=-x[2], floor=floor)
    a, b, E = np.exp(x[:3])
    if law == "compute":
        alpha, beta = x[3:]
        A = a * study.params_ref**alpha
        return _floats(A=A, B=b * study.volume_ref**beta, E=E, alpha=alpha, beta=beta)
    beta, v = x[3], x[4:]
    alpha = np.linalg.norm(v)
    constants = _floats(A=a, B=b * study.volume_ref**beta, E=E, alpha=alpha, beta=beta)
    return {**constants, "w": v / alpha if alpha > 0 else v}


def _floats(**values: float) -> dict[str, float]:
    """Plain floats, so that a table or JSON takes them."""
    return {name: float(value) for name, value in values.items()}


def _resampled_weights(study: LossStudy, rng: np.random.Generator) -> np.ndarray:
    """How often each point counts when whole runs are drawn with replacement."""
    n = len(study.runs)
    return np.bincount(rng.integers(n, size=n), minlength=n)[study.run_of_point].astype(float)
