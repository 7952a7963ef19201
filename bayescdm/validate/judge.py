"""One fold judged: what the refit said of the held-out runs, against what they measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayescdm.fit import Fit
from bayescdm.intervals import interval_columns
from bayescdm.predict import predict_draws
from bayescdm.study import Study
from bayescdm.validate.folds import By, Fold
from bayescdm.validate.predictive import run_predictive
from bayescdm.validate.scores import (
    covered,
    crps,
    distance_beyond,
    equal_tails,
    joint_log_density,
    log_density,
)

__all__ = [
    "PROBABILITIES",
    "Forecast",
    "convergence",
    "score_fold",
    "summarise_rows",
    "table_of_fold",
    "trajectories",
]

#: Probabilities of the intervals whose coverage is counted.
PROBABILITIES = (0.5, 0.8, 0.95)
TRAJECTORY_POINTS = 13


@dataclass(frozen=True)
class Forecast:
    """Predictions of held-out runs, judged one by one.

    Parameters
    ----------
    median : ndarray, (run,)
    intervals : dict of float to (ndarray, ndarray)
        Lower and upper bounds, (run,), by probability.
    crps, log_density, pit : ndarray, (run,)
    capability : ndarray, (run,)
        Mean of S.
    capability_seen : ndarray, (backbone,)
        Mean of S of the backbones that were fitted.
    """

    median: np.ndarray
    intervals: dict[float, tuple[np.ndarray, np.ndarray]]
    crps: np.ndarray
    log_density: np.ndarray
    pit: np.ndarray
    capability: np.ndarray
    capability_seen: np.ndarray


def score_fold(fit: Fit, fold: Fold, *, by: By, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Score the predictions of the runs that a fit was made without.

    Parameters
    ----------
    fit : Fit
        From `Refitter.refit`.
    fold : Fold
    by : str
        What is held out together; recipes that are held out are judged with their own uncertainty.
    seed : int

    Returns
    -------
    rows : DataFrame
        As `Validation.rows`.
    log_densities : ndarray, (run, sample)
        Of the observed accuracies in each draw.
    """
    runs = fit.study.fitted_runs
    held, kept = runs[fold.held_out], runs[~fold.held_out]
    observed = held["accuracy"].to_numpy(float)
    predictive = run_predictive(fit, held)
    draws = predictive.draws(seed)
    log_densities = predictive.log_density(observed)
    seen = fit.posterior["S"].mean(("chain", "draw")).sel(backbone=kept["backbone"].unique())
    forecast = Forecast(
        median=np.median(draws, axis=1),
        intervals={prob: equal_tails(draws, prob) for prob in PROBABILITIES},
        crps=crps(draws, observed),
        log_density=log_density(log_densities),
        pit=predictive.pit(observed),
        capability=predictive.capability.mean(axis=1),
        capability_seen=seen.to_numpy(),
    )
    return table_of_fold(fit.study, fold, forecast, by=by), log_densities


def table_of_fold(study: Study, fold: Fold, forecast: Forecast, *, by: By) -> pd.DataFrame:
    """Lay the judged predictions of a fold out, one row a held-out run.

    Parameters
    ----------
    study : Study
    fold : Fold
    forecast : Forecast
        Of the fold's held-out runs, in the study's order.
    by : str

    Returns
    -------
    DataFrame
        As `Validation.rows`.
    """
    runs = study.fitted_runs
    held, kept = runs[fold.held_out], runs[~fold.held_out]
    known = held["recipe"].isin(kept["recipe"]).to_numpy()
    labels = study.backbones.loc[held["backbone"]]
    volume = np.log(held["volume"].to_numpy(float))
    table: dict[str, Any] = {
        "fold": fold.label,
        "run": held.index.astype(str),
        "backbone": held["backbone"].to_numpy(),
        "family": labels["family"].to_numpy(),
        "variant": labels["variant"].to_numpy(),
        "recipe": held["recipe"].to_numpy(),
        "volume": held["volume"].to_numpy(float),
        "accuracy": held["accuracy"].to_numpy(float),
        "median": forecast.median,
    }
    for prob, bounds in forecast.intervals.items():
        table |= zip(interval_columns("run", prob), bounds)
    table |= {
        "error": forecast.median - table["accuracy"],
        "crps": forecast.crps,
        "log_density": forecast.log_density,
        "pit": forecast.pit,
        "capability": forecast.capability,
        "capability_distance": distance_beyond(forecast.capability, forecast.capability_seen),
        "volume_distance": distance_beyond(volume, np.log(kept["volume"].to_numpy(float))),
        "recipe_known": known.astype(int),
        "evaluable": (known | (by == "recipe")).astype(int),
    }
    return pd.DataFrame(table)


def summarise_rows(rows: pd.DataFrame, log_densities: np.ndarray | None = None) -> dict[str, float]:
    """Scores of the evaluable rows.

    Parameters
    ----------
    rows : DataFrame
        As `Validation.rows`.
    log_densities : ndarray, (run, sample), optional
        Of the rows of one fold, for its joint density.

    Returns
    -------
    dict of str to float
        ``mae_within`` is the mean absolute error of a run's deviation from the mean of its fold's runs of
        the same recipe, where those are two or more: how well runs of one recipe are told apart.
    """
    use = rows["evaluable"].to_numpy() == 1
    judged = rows[use]
    joint = joint_log_density(log_densities[use]) if log_densities is not None and use.any() else None
    groups = judged.groupby(["fold", "recipe"])["error"]
    within = (judged["error"] - groups.transform("mean"))[groups.transform("size") > 1]
    scores: dict[str, float] = {
        "runs": len(rows),
        "evaluable": len(judged),
        "mae": judged["error"].abs().mean(),
        "mae_within": within.abs().mean(),
        "crps": judged["crps"].mean(),
        "elpd": judged["log_density"].sum(),
    }
    if log_densities is not None:
        scores["elpd_joint"] = joint.value if joint else 0.0
        scores["joint_draws"] = joint.effective_draws if joint else np.nan
    for prob in PROBABILITIES:
        lower, upper = (judged[name].to_numpy() for name in interval_columns("run", prob))
        hits = covered(lower, upper, judged["accuracy"].to_numpy())
        scores[f"coverage_{100 * prob:g}"] = float(hits.mean()) if len(hits) else np.nan
    for prob in PROBABILITIES:
        lower_name, upper_name = interval_columns("run", prob)
        scores[f"width_{100 * prob:g}"] = (judged[upper_name] - judged[lower_name]).mean()
    for name in ("capability_distance", "volume_distance"):
        scores[name] = judged[name].max()
    return {name: float(value) for name, value in scores.items()}


def convergence(fit: Fit) -> dict[str, Any]:
    """Figures of convergence, by column name."""
    diagnosis = fit.diagnose()
    return {
        "divergences": diagnosis.divergences,
        "max_r_hat": diagnosis.max_r_hat,
        "min_ess": min(diagnosis.min_ess_bulk, diagnosis.min_ess_tail),
        "converged": int(diagnosis.converged),
    }


def trajectories(fit: Fit, fold: Fold) -> pd.DataFrame:
    """Predict held-out backbones over the study's volumes, under the recipes of their runs.

    Parameters
    ----------
    fit : Fit
    fold : Fold

    Returns
    -------
    DataFrame
        As `Validation.trajectories`; empty when no recipe of the fold has a known volume.
    """
    runs = fit.study.fitted_runs
    known = runs["volume"].dropna()
    held = runs[fold.held_out & runs["volume"].notna().to_numpy()]
    columns = [name for prob in PROBABILITIES for name in interval_columns("run", prob)]
    if held.empty:
        return pd.DataFrame(columns=["fold", "backbone", "recipe", "volume", "median", *columns])
    volumes = np.unique(np.geomspace(known.min(), known.max(), TRAJECTORY_POINTS))
    parts = []
    for recipe, rows in held.groupby("recipe"):
        names = list(rows["backbone"].unique())
        draws = predict_draws(fit, names, volumes=list(volumes), recipe=str(recipe), kind="run")
        values = draws.transpose("backbone", "volume", "sample").to_numpy().reshape(-1, draws.sizes["sample"])
        part = {
            "fold": fold.label,
            "backbone": np.repeat(names, len(volumes)),
            "recipe": recipe,
            "volume": np.tile(volumes, len(names)),
            "median": np.median(values, axis=1),
        }
        for prob in PROBABILITIES:
            part |= zip(interval_columns("run", prob), equal_tails(values, prob))
        parts.append(pd.DataFrame(part))
    return pd.concat(parts, ignore_index=True)
