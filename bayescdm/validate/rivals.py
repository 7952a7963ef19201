"""The comparison that decides whether the hierarchy earns its place: rivals on the same held-out runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from bayescdm.capability import Capability, fit_capability
from bayescdm.errors import InputError, unknown_name
from bayescdm.laws import transfer_absorption
from bayescdm.modelfiles import load_model
from bayescdm.pointfit import point_fit
from bayescdm.reading import load_study
from bayescdm.sampling import SamplerSettings
from bayescdm.study import Study
from bayescdm.tracking import tracked
from bayescdm.validate.folds import By, Fold, make_folds
from bayescdm.validate.judge import (
    PROBABILITIES,
    Forecast,
    convergence,
    score_fold,
    summarise_rows,
    table_of_fold,
)
from bayescdm.validate.refit import REFIT_SETTINGS, ComponentsWithout, components_without, prepare_refits
from bayescdm.validate.scores import crps_normal, paired_difference

__all__ = ["MEAN_SCORE", "POINT_FIT", "SIZE", "compare_predictors", "predictor_names"]

POINT_FIT = "point fit ± 1.96 σ"
SIZE = "ln N in place of S"
MEAN_SCORE = "mean text score in place of S"
#: The model whose S is replaced, and with which all others are compared.
REFERENCE = "transfer_hierarchical"
MODELS = (REFERENCE, "transfer_pooled", "transfer_size", "transfer_size_hierarchical")


def predictor_names() -> list[str]:
    """Names of the predictors that are compared.

    Examples
    --------
    >>> predictor_names()[0]
    'transfer_hierarchical'
    """
    return [*MODELS, POINT_FIT, SIZE, MEAN_SCORE]


def compare_predictors(
    study: Study | str | Path,
    *,
    by: Sequence[By] = ("family", "recipe"),
    predictors: Sequence[str] | None = None,
    components: int | None = None,
    store: str | Path | None = None,
    seed: int = 1,
    settings: SamplerSettings = REFIT_SETTINGS,
    progress: bool = False,
) -> pd.DataFrame:
    """Score rival predictors on the same held-out runs, each refitted exactly.

    Parameters
    ----------
    study : Study, str or Path
        A study, the name of a packaged one, or a folder.
    by : sequence of {"family", "recipe", "backbone", "size"}
        What is left out.
    predictors : sequence of str, optional
        Some of `predictor_names`; all by default. The first is what the others are compared with.
    components, store, seed, settings, progress
        As for `bayescdm.validate`.

    Returns
    -------
    DataFrame, one row a predictor and `by`
        ``by``, ``predictor``, ``runs``, ``evaluable``, ``mae``, ``mae_within``, ``crps``, ``elpd``,
        ``elpd_joint``, ``coverage_50``, ``coverage_80``, ``coverage_95``, ``width_80``,
        ``crps_difference`` from the first predictor (paired by run; positive is worse) and its
        ``crps_difference_se`` (folds as clusters), ``converged`` (0 or 1).
        ``.attrs`` holds ``study``, ``simulated`` and ``converged``.

    Raises
    ------
    NotFoundError
        A predictor is not known.
    InputError
        A parameter count is unknown, so that ln N cannot stand in for S.

    Notes
    -----
    Models are packaged files. *ln N* and *mean text score in place of S* are ``transfer_hierarchical``
    with its components exchanged for one column: centred ln N, scaled to the standard deviation of the
    mean text score so that the priors mean the same, or the mean text score itself, in the unit of a
    component (√T times the mean of T benchmarks). The *point fit* is the paper's objective by variable
    projection, with its ±1.96σ band read as a Normal distribution; it knows no uncertainty of a recipe.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> cdm.compare_predictors("open-vlm", by=["family"])  # doctest: +SKIP
    """
    if not isinstance(study, Study):
        study = load_study(study)
    names = predictor_names() if predictors is None else list(predictors)
    for name in names:
        if name not in predictor_names():
            raise unknown_name("predictor", name, predictor_names())
    folds = [(way, fold) for way in by for fold in make_folds(study, way)]
    plan = _Plan(study, folds, components, None if store is None else Path(store), seed, settings)
    scored = {}
    for name in names:
        steps = plan.point_fits() if name == POINT_FIT else plan.refits(name)
        scored[name] = list(tracked(steps, name, progress=progress, total=len(folds)))
    table = pd.DataFrame(
        [_summary(way, name, scored[name], scored[names[0]]) for way in by for name in names]
    )
    table.attrs = {
        "study": study.name,
        "simulated": int(study.simulated),
        "converged": int(table["converged"].all()),
    }
    return table


@dataclass(frozen=True)
class _Scored:
    """One predictor on one fold."""

    by: By
    rows: pd.DataFrame
    elpd_joint: float
    converged: int


@dataclass(frozen=True)
class _Plan:
    """What all predictors share."""

    study: Study
    folds: list[tuple[By, Fold]]
    components: int | None
    store: Path | None
    seed: int
    settings: SamplerSettings

    def refits(self, name: str) -> Iterator[_Scored]:
        """Exact refits of a model file, with its own components or one column in their place."""
        components = self.components_of(name)
        model = load_model(name if name in MODELS else REFERENCE)
        refitter = prepare_refits(
            self.study, model, components, settings=self.settings, seed=self.seed, store=self.store
        )
        for by, fold in self.folds:
            fit = refitter.refit(fold)
            rows, log_densities = score_fold(fit, fold, by=by, seed=self.seed)
            joint = summarise_rows(rows, log_densities)["elpd_joint"]
            yield _Scored(by, rows, joint, convergence(fit)["converged"])

    def point_fits(self) -> Iterator[_Scored]:
        """Point fits to the runs that are kept."""
        components = components_without(self.study, components=self.components)
        for by, fold in self.folds:
            rows = table_of_fold(self.study, fold, _point_forecast(self.study, fold, components), by=by)
            joint = rows.loc[rows["evaluable"] == 1, "log_density"].sum()
            yield _Scored(by, rows, float(joint), 1)

    def components_of(self, name: str) -> ComponentsWithout:
        """Components of a predictor without the text scores of some backbones."""
        if name == MEAN_SCORE:
            return lambda backbones: mean_score_capability(self.study, backbones)
        if name == SIZE:
            return lambda backbones: size_capability(self.study, backbones)
        return components_without(self.study, components=self.components)


def mean_score_capability(study: Study, exclude: Sequence[str] = ()) -> Capability:
    """Mean text score as the one component, in the unit of a component.

    Parameters
    ----------
    study : Study
    exclude : sequence of str
        Backbones whose text scores do not centre it.

    Returns
    -------
    Capability
        Scores (X − mean)·1/√T; where text scores are missing, expected from the others.
    """
    fitted = fit_capability(study, components=1, exclude=exclude)
    T = len(fitted.benchmarks)
    flat = replace(fitted, loadings=np.full((T, 1), 1 / np.sqrt(T)))
    # The covariance of the seen direction, so that missing scores are expected from all others.
    scores, covariance = flat.project(study.text_scores.loc[study.scored])
    return replace(flat, scores=scores, covariance=covariance)


def size_capability(study: Study, exclude: Sequence[str] = ()) -> Capability:
    """Centred ln N as the one component, with the standard deviation of the mean text score.

    Parameters
    ----------
    study : Study
    exclude : sequence of str
        Backbones that do not centre or scale it.

    Returns
    -------
    Capability

    Raises
    ------
    InputError
        A parameter count is unknown.
    """
    mean_score = mean_score_capability(study, exclude)
    log_params = np.log(study.backbones.loc[mean_score.scores.index, "params"].astype(float))
    unknown = log_params.index[~np.isfinite(log_params)]
    if len(unknown):
        raise InputError(f"ln N in place of S needs the parameter count of {', '.join(unknown)}")
    seen = mean_score.fitted_on
    scale = float(mean_score.scores["PC1"][seen].std() / log_params[seen].std())
    scores = ((log_params - log_params[seen].mean()) * scale).to_frame("PC1")
    return replace(mean_score, scores=scores, covariance=np.zeros_like(mean_score.covariance))


def _point_forecast(study: Study, fold: Fold, components: ComponentsWithout) -> Forecast:
    """Predict held-out runs from the point fit to the others, Normal with its residual scale."""
    runs = study.fitted_runs
    held, kept = runs[fold.held_out], runs[~fold.held_out]
    fit = point_fit(study.select_runs(kept.index), components(fold.unseen))
    # Rates that the runs leave open, and volumes that nobody knows, add nothing.
    A, B0, Bm = np.nan_to_num([fit.A, fit.B0, fit.Bm])
    log_volume = np.nan_to_num(np.log(held["volume"].to_numpy(float) / fit.volume_ref))
    baseline = fit.baselines.reindex(held["recipe"]).fillna(fit.P0).to_numpy()
    S = fit.S[held["backbone"]].to_numpy()
    mean = transfer_absorption(S, log_volume, A, B0, Bm, baseline)
    observed, sd = held["accuracy"].to_numpy(float), np.full(len(held), fit.residual_scale)
    half = {prob: norm.ppf((1 + prob) / 2) * sd for prob in PROBABILITIES}
    return Forecast(
        median=mean,
        intervals={prob: (mean - width, mean + width) for prob, width in half.items()},
        crps=crps_normal(mean, sd, observed),
        log_density=norm(mean, sd).logpdf(observed),
        pit=norm(mean, sd).cdf(observed),
        capability=S,
        capability_seen=fit.S[kept["backbone"].unique()].to_numpy(),
    )


def _summary(by: By, name: str, scored: list[_Scored], reference: list[_Scored]) -> dict[str, Any]:
    """One row of the table."""
    mine = [part for part in scored if part.by == by]
    rows = pd.concat([part.rows for part in mine], ignore_index=True)
    theirs = pd.concat([part.rows for part in reference if part.by == by], ignore_index=True)
    scores = summarise_rows(rows)
    use = rows["evaluable"] == 1
    difference, error = paired_difference(rows["crps"][use], theirs["crps"][use], rows["fold"][use])
    shown = ("runs", "evaluable", "mae", "mae_within", "crps", "elpd")
    coverage = ("coverage_50", "coverage_80", "coverage_95", "width_80")
    return {
        "by": by,
        "predictor": name,
        **{key: scores[key] for key in shown},
        "elpd_joint": sum(part.elpd_joint for part in mine),
        **{key: scores[key] for key in coverage},
        "crps_difference": difference,
        "crps_difference_se": error,
        "converged": int(all(part.converged for part in mine)),
    }
