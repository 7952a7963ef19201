"""Point fit of the mixed-modal laws: all runs, alone and together, by one sum of Huber losses on ln L."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import OptimizeResult, least_squares
from threadpoolctl import threadpool_limits

from bayescdm.errors import Note
from bayescdm.intervals import check_probability
from bayescdm.loss.huber import (
    DELTA,
    LARGEST_EXPONENT,
    Design,
    HuberObjective,
    is_same,
    optimum_notes,
    term_bounds,
)
from bayescdm.loss.mixed_modal import (
    CAUTIONS,
    CONSTANTS,
    MEANING,
    MixedModalStudy,
    extrapolations,
    largest_of_pairs,
    mixed_modal_data,
    pair_interactions,
    titled,
)
from bayescdm.loss.modeling import MixedModalData
from bayescdm.loss.pointfit import fit_loss_points
from bayescdm.loss.prediction import LossPrediction
from bayescdm.loss.study import LossStudy
from bayescdm.seeds import generator
from bayescdm.tracking import tracked

__all__ = ["MixedModalPointFit", "fit_mixed_modal_points"]

#: Coefficients of a modality or a pair, in the order of the search. The third of a pair is the logarithm of
#: its interaction at the reference point plus the mean loss: the interaction may have either sign.
COEFFICIENTS = 5
NAMES = ("ln A", "ln B", "ln E", "alpha", "beta")
PAIR_NAMES = ("ln A", "ln B", "interaction", "alpha", "beta")
#: Terms of a point: three for either modality; the pair's two here and at the reference point, its
#: interaction there plus the mean loss, and the mean loss.
TERMS = 12
#: Factors of the last six.
FACTORS = (1.0, 1.0, -1.0, -1.0, 1.0, -1.0)


@dataclass(frozen=True)
class MixedModalPointFit:
    """Mixed-modal laws fitted to runs by one optimisation.

    Attributes
    ----------
    study : MixedModalStudy
    constants : dict of str to ndarray
        Constants for absolute counts, shape (1, modality) or (1, pair).
    objective : float
        Sum of Huber losses at the optimum.
    mae : float
        Mean absolute error of the loss itself.
    n_parameters : int
    starts, reached : int
        Random starts of the pairs, and how many of them ended at the best objective.
    bootstrap : dict of str to ndarray, or None
        As `constants`, a row a resample.
    notes : tuple of Note
        What limits the fit.
    """

    study: MixedModalStudy
    constants: dict[str, np.ndarray]
    objective: float
    mae: float
    n_parameters: int
    starts: int
    reached: int
    bootstrap: dict[str, np.ndarray] | None
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        """Return the laws with their numbers, the quality of the fit, and each pair at its largest."""
        return self.describe()

    def describe(self, *, prob: float = 0.9) -> str:
        """Return constants, quality of the fit, and each pair's interaction at its largest runs as text.

        Parameters
        ----------
        prob : float
            Probability of the bootstrap intervals, where there are resamples.

        Returns
        -------
        str
        """
        quality = (
            f"objective {self.objective:.7f}, MAE {self.mae:.4f}, {len(self.study.table)} runs, "
            f"{self.n_parameters} parameters, {self.reached} of {self.starts} starts reached it"
        )
        table = self.parameters(prob=prob).to_string(float_format=lambda value: f"{value:.5g}")
        pairs = self.pairs_at_largest(prob=prob)
        return f"point fit, {titled(self.study)}\n{table}\n{quality}\n\n{MEANING}\n{pairs}"

    def to_dict(self, *, prob: float = 0.9) -> dict[str, Any]:
        """Return constants, quality of the fit, interactions, scope and notes as plain values, for JSON.

        Parameters
        ----------
        prob : float
            Probability of the bootstrap intervals, where there are resamples.

        Returns
        -------
        dict
        """
        pairs = self.pairs_at_largest(prob=prob)
        return {
            "study": self.study.name,
            "simulated": self.study.simulated,
            "parameters": self.parameters(prob=prob).to_dict("index"),
            "objective": self.objective,
            "mae": self.mae,
            "n_points": len(self.study.table),
            "starts": self.starts,
            "reached": self.reached,
            "pairs": pairs.table.to_dict("records"),
            "scope": self.study.scope.to_dict(),
            "notes": [note.to_dict() for note in pairs.notes],
        }

    def parameters(self, *, prob: float = 0.9) -> pd.DataFrame:
        """Constants for absolute counts, with bootstrap intervals where there are resamples.

        Parameters
        ----------
        prob : float
            Probability of the equal-tailed interval.

        Returns
        -------
        DataFrame, (parameter,)
            ``estimate``, ``bootstrap_lower_90``, ``bootstrap_upper_90`` (the figure is 100·prob); rows such
            as ``alpha[text]`` and ``C[text + speech]``.
        """
        labels = {"modality": self.study.modalities, "pair": self.study.pairs}
        index = [f"{name}[{label}]" for name, dim in CONSTANTS.items() for label in labels[dim]]
        table = pd.DataFrame(
            {"estimate": np.concatenate([self.constants[name][0] for name in CONSTANTS])},
            index=pd.Index(index, name="parameter"),
        )
        if self.bootstrap is None:
            return table
        return table.assign(**_interval(np.hstack([self.bootstrap[name] for name in CONSTANTS]), prob))

    def pairs_at_largest(self, *, prob: float = 0.9) -> LossPrediction:
        """Return the interaction of each pair at its own largest model size and volumes.

        Parameters
        ----------
        prob : float

        Returns
        -------
        LossPrediction
            As of :meth:`interaction`, a row a pair.
        """
        return self.interaction(largest_of_pairs(self.study), prob=prob)

    def interaction(self, table: pd.DataFrame, *, prob: float = 0.9) -> LossPrediction:
        """How much a pair loses or gains against its modalities alone.

        Parameters
        ----------
        table : DataFrame, one row a question
            ``first``, ``second``, ``params``, ``volume_first``, ``volume_second``, absolute counts.
        prob : float
            Probability of the bootstrap interval, where there are resamples.

        Returns
        -------
        LossPrediction
            The table with ``loss`` of the pair, ``interaction`` (nats per token; below 0 the modalities help
            each other), ``bootstrap_lower_90`` and ``bootstrap_upper_90`` of the interaction where there are
            resamples, ``extrapolation``; the cautions. A point fit has no probability of synergy.

        Raises
        ------
        NotFoundError
            A pair without runs: no pair predicts another.
        RequestError
            A count that is not positive.
        """
        together, interaction = pair_interactions(self.study, self.constants, table)
        answer = table.assign(loss=together[0], interaction=interaction[0])
        if self.bootstrap is not None:
            resampled = pair_interactions(self.study, self.bootstrap, table)[1]
            answer = answer.assign(**_interval(resampled, prob))
        flags = extrapolations(self.study, table)
        notes = (*self.notes, *self.study.scope.extrapolation_note(flags), *CAUTIONS)
        return LossPrediction(answer.assign(extrapolation=flags), self.study.scope, notes)


def _interval(draws: np.ndarray, prob: float) -> dict[str, np.ndarray]:
    """Bounds over resamples, named by kind and probability; draws of shape (resample, quantity)."""
    low, high = np.quantile(draws, [(1 - check_probability(prob)) / 2, (1 + prob) / 2], axis=0)
    return {f"bootstrap_lower_{100 * prob:g}": low, f"bootstrap_upper_{100 * prob:g}": high}


def fit_mixed_modal_points(
    study: MixedModalStudy,
    *,
    starts: int = 20,
    resamples: int = 0,
    seed: int = 0,
    delta: float = DELTA,
    progress: bool = False,
) -> MixedModalPointFit:
    """Fit the laws of modalities and pairs to all runs of a study by the sum of Huber losses on ln L.

    Parameters
    ----------
    study : MixedModalStudy
    starts : int
        Random starts of the pairs; the modalities start where their runs alone put them.
    resamples : int
        Bootstrap resamples of whole runs; each modality alone and each pair keeps its number of runs.
    seed : int
        Of the starts and the resamples.
    delta : float
        Huber threshold.
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    MixedModalPointFit

    Notes
    -----
    Aghajanyan et al. (arXiv 2301.03728), whose laws are fitted here by the same objective as the compute law
    (`bayescdm.loss.pointfit`). A run together speaks about the laws of its modalities too: the modalities
    alone are where the search starts, and not held there.
    """
    data = mixed_modal_data(study)
    design = _design(data)
    objective = HuberObjective(design.terms, data.log_loss, data.weight, delta, design.factor)
    rng = generator(seed)
    alone = np.concatenate([_alone(study, modality, data, starts, seed) for modality in study.modalities])
    points = [_start(alone, data, design, rng) for _ in range(starts)]
    group = np.where(data.pair < 0, data.first, len(study.modalities) + data.pair)
    bar = partial(tracked, progress=progress, transient=True)
    resampled = [_of_runs(objective, _resampled(group, rng)) for _ in range(resamples)]
    with threadpool_limits(1, user_api="blas"):
        found = [_search(objective, x, design.bounds) for x in bar(points, "starts")]
        best = min(found, key=lambda result: result.fun)
        fits = [_search(other, best.x, design.bounds).x for other in bar(resampled, "resamples")]
    smallest = int(np.bincount(group).min()) if resamples else None
    predicted = np.exp(data.log_loss + objective.residual(best.x))
    return MixedModalPointFit(
        study=study,
        constants=_natural(best.x[None], data),
        objective=float(best.fun),
        mae=float(np.mean(np.abs(predicted - np.exp(data.log_loss)))),
        n_parameters=len(design.names),
        starts=starts,
        reached=sum(is_same(result.fun, best.fun) for result in found),
        bootstrap=_natural(np.array(fits), data) if resamples else None,
        notes=optimum_notes(best, objective, design, {"direct search": found}, resampled=smallest),
    )


def _design(data: MixedModalData) -> Design:
    """½(L_i + L_j) + a·((N/N_ref)^−α − 1) + b·((D_i + D_j)/2D_ref)^−β − 1) + (I + K) − K.

    I is the interaction at the reference point, a + b − C, which the runs tell, while C they hardly do; K is
    the mean loss. Runs on one modality are L_i alone.
    """
    modalities, pairs = data.coords["modality"], data.coords["pair"]
    n, both = len(data.log_loss), data.pair >= 0
    terms = np.zeros((n, TERMS, COEFFICIENTS * (len(modalities) + len(pairs))))
    factor = np.zeros((n, TERMS))
    row = np.arange(n)
    for first_term, which, log_volume, share in (
        (0, data.first, data.log_volume_first, np.where(both, 0.5, 1.0)),
        (3, data.second, data.log_volume_second, np.where(both, 0.5, 0.0)),
    ):
        own = COEFFICIENTS * which
        for k in range(3):
            terms[row, first_term + k, own + k] = 1
        terms[row, first_term, own + 3] = -data.log_params
        terms[row, first_term + 1, own + 4] = -log_volume
        factor[:, first_term : first_term + 3] = share[:, None]
    row, own = row[both], COEFFICIENTS * (len(modalities) + data.pair[both])
    log_sum = np.logaddexp(data.log_volume_first, data.log_volume_second)[both] - np.log(2.0)
    for term, k in ((6, 0), (7, 1), (8, 0), (9, 1), (10, 2)):
        terms[row, term, own + k] = 1
    terms[row, 6, own + 3] = -data.log_params[both]
    terms[row, 7, own + 4] = -log_sum
    factor[row, 6:] = FACTORS
    factor[row, -1] *= np.exp(data.log_loss.mean())
    names = [f"{label}: {name}" for label in modalities for name in NAMES]
    names += [f"{label}: {name}" for label in pairs for name in PAIR_NAMES]
    own_bounds = np.vstack([term_bounds(float(data.log_loss.mean())), [[0.0, LARGEST_EXPONENT]] * 2])
    bounds = np.tile(own_bounds, (len(modalities) + len(pairs), 1))
    shape = np.arange(len(names)) % COEFFICIENTS >= 3
    return Design(terms, tuple(names), bounds, shape, factor)


def _alone(study: MixedModalStudy, modality: str, data: MixedModalData, starts: int, seed: int) -> np.ndarray:
    """Coefficients of a modality's own law, from its runs alone."""
    own = study.table[(study.table["second"] == "") & (study.table["first"] == modality)]
    runs = pd.DataFrame({"family": modality, "params": own["params"]}).set_index(own.index.astype(str))
    points = pd.DataFrame({"run": runs.index, "volume": own["volume_first"].to_numpy(), "loss": own["loss"]})
    fit = fit_loss_points(LossStudy(modality, runs, points, study.scope), starts=starts, seed=seed)
    A, B, E, alpha, beta = (fit.parameters[name] for name in ("A", "B", "E", "alpha", "beta"))
    log_a, log_b = np.log(A) - alpha * np.log(data.params_ref), np.log(B) - beta * np.log(data.volume_ref)
    return np.array([log_a, log_b, np.log(E), alpha, beta])


def _start(alone: np.ndarray, data: MixedModalData, design: Design, rng: np.random.Generator) -> np.ndarray:
    """Start the modalities at their own laws, and the pairs at random competition terms and interactions."""
    scale, pairs = np.exp(data.log_loss.mean()), len(data.coords["pair"])
    terms = scale * np.exp(rng.uniform(np.log(1e-3), np.log(0.2), (pairs, 2)))
    interaction = scale * rng.uniform(-0.2, 0.2, pairs)
    x = np.column_stack([np.log(terms), np.log(interaction + scale), rng.uniform(0.05, 1.5, (pairs, 2))])
    return np.clip(np.concatenate([alone, x.ravel()]), *design.bounds.T)


def _natural(x: np.ndarray, data: MixedModalData) -> dict[str, np.ndarray]:
    """Coefficients at the reference point, shape (draw, coefficient) → `CONSTANTS` for absolute counts."""
    M = len(data.coords["modality"])
    modality, pair = np.split(x.reshape(len(x), -1, COEFFICIENTS), [M], axis=1)
    return {
        "A": np.exp(modality[..., 0] + modality[..., 3] * np.log(data.params_ref)),
        "B": np.exp(modality[..., 1] + modality[..., 4] * np.log(data.volume_ref)),
        "E": np.exp(modality[..., 2]),
        "alpha": modality[..., 3],
        "beta": modality[..., 4],
        "C": np.exp(pair[..., :2]).sum(axis=-1) + np.exp(data.log_loss.mean()) - np.exp(pair[..., 2]),
        "pair_A": np.exp(pair[..., 0] + pair[..., 3] * np.log(data.params_ref)),
        "pair_B": np.exp(pair[..., 1] + pair[..., 4] * np.log(2 * data.volume_ref)),
        "pair_alpha": pair[..., 3],
        "pair_beta": pair[..., 4],
    }


def _resampled(group: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Positions of runs, those of each group drawn with replacement."""
    members = (np.flatnonzero(group == label) for label in np.unique(group))
    return np.concatenate([rng.choice(own, len(own)) for own in members])


def _of_runs(objective: HuberObjective, run: np.ndarray) -> HuberObjective:
    """Objective of the runs at these positions."""
    of_runs = {name: getattr(objective, name)[run] for name in ("terms", "log_loss", "weights", "factor")}
    return replace(objective, **of_runs)


def _search(objective: HuberObjective, x: np.ndarray, bounds: np.ndarray) -> OptimizeResult:
    """Gauss–Newton steps from one start: the valley of a pair is too flat for quasi-Newton ones."""
    found = least_squares(
        objective.residual,
        x,
        jac=objective.jacobian,
        bounds=bounds.T,
        loss="huber",
        f_scale=objective.delta,
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-15,
        max_nfev=2000,
    )
    return OptimizeResult(x=found.x, fun=float(found.cost))
