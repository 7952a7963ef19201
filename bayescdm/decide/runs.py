"""Which training run would tell most about the choice, before it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from bayescdm.decide.costs import CostTable, FlopCost, TrainingCost
from bayescdm.decide.value import evpi, gain, preposterior_means
from bayescdm.predict import CandidateTable, predict_draws

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["contenders", "least_volumes", "next_runs"]

#: Share of a backbone's largest gain from which on a smaller volume does as well.
NEARLY = 0.95
#: Candidates whose runs are weighed: those that are most often the best.
CONTENDERS = 30
#: Volumes of a run that are weighed for each candidate, from the smallest observed to the one it would use.
VOLUMES = 4


def next_runs(
    fit: Fit,
    accuracy: xr.DataArray,
    table: CandidateTable,
    ranking: pd.DataFrame,
    counting: TrainingCost,
    limit: float | None,
    recipe: str,
    span: tuple[float, float],
    seed: int,
) -> pd.DataFrame:
    """Work out what one more training run under the recipe is worth to the choice.

    Parameters
    ----------
    fit : Fit
    accuracy : DataArray, (sample, backbone)
        Draws of what is chosen by, best first.
    table : pair of DataFrames
        Text scores and labels of the same backbones.
    ranking : DataFrame
        ``backbone``, ``active_params``, ``volume``, in the same order.
    counting : TrainingCost
    limit : float, optional
        Budget, which a run must keep to as well.
    recipe : str
    span : (float, float)
        Smallest and largest volume of a run.
    seed : int

    Returns
    -------
    DataFrame, one row a backbone and volume, the most informative first
        ``backbone``, ``volume``, ``cost``, ``evsi`` (expected gain in accuracy of the backbone that is chosen
        after the run, against choosing now), ``p_change`` (probability that the run changes the choice),
        ``share_of_evpi``, ``evsi_per_cost`` (NaN where costs of volumes are not known).

    Notes
    -----
    Of more than 30 candidates the 30 that are most often the best are weighed, as runs and as what is chosen:
    a run on one that is hardly ever the best hardly changes the choice.

    The run measures its backbone's accuracy at the volume plus the residual of one run. What it says of the
    others (through the direction w, rates of families, the recipe) is in the joint draws. See
    `bayescdm.decide.evsi` for the estimator.
    """
    values = accuracy.to_numpy()
    perfect = evpi(values)
    weighed = contenders(ranking)
    values = values[:, weighed]
    rows = []
    asked = ranking.iloc[weighed][["backbone", "active_params", "volume"]]
    for name, active, own in asked.itertuples(index=False):
        within = _volumes(counting, name, float(own), limit, span)
        one = (table[0].loc[[name]], table[1].loc[[name]])
        for volume, y in zip(within, _measured(fit, one, within, recipe, seed, len(values))):
            after = preposterior_means(values, y)
            gained = gain(values, after, perfect)
            cost = counting.cost(name, active, float(volume))
            rows.append(
                {
                    "backbone": name,
                    "volume": float(volume),
                    "cost": cost,
                    "evsi": gained,
                    "p_change": float((after.argmax(1) != 0).mean()),
                    "share_of_evpi": gained / perfect if perfect > 0 else 0.0,
                    "evsi_per_cost": gained / cost if counting.counts_volume and cost > 0 else np.nan,
                }
            )
    runs = pd.DataFrame(rows).sort_values("evsi", ascending=False, kind="stable", ignore_index=True)
    runs.attrs = dict(ranking.attrs)
    return runs


def least_volumes(runs: pd.DataFrame) -> pd.DataFrame:
    """Return for each backbone the smallest volume whose run gains nearly as much as its best one.

    Parameters
    ----------
    runs : DataFrame
        From `next_runs`.

    Returns
    -------
    DataFrame, one row a backbone, the most informative first
        Rows of `runs`, with ``more``: what its best volume gains beyond, as a share.
    """
    best = runs.groupby("backbone")["evsi"].transform("max")
    nearly = runs.assign(more=best / runs["evsi"].where(runs["evsi"] > 0) - 1)[runs["evsi"] >= NEARLY * best]
    least = nearly.loc[nearly.groupby("backbone", sort=False)["volume"].idxmin()]
    return least.loc[best[least.index].sort_values(ascending=False, kind="stable").index]


def contenders(ranking: pd.DataFrame) -> np.ndarray:
    """Return positions of the candidates that are most often the best, the first of all among them.

    Parameters
    ----------
    ranking : DataFrame
        ``p_best``, best first.

    Returns
    -------
    ndarray of int
        In the order of the ranking, so that the first choice stays first.
    """
    by_chance = np.argsort(-ranking["p_best"].to_numpy()[1:], kind="stable") + 1
    return np.sort(np.append(0, by_chance[: CONTENDERS - 1]))


def _measured(
    fit: Fit, one: CandidateTable, volumes: np.ndarray, recipe: str, seed: int, draws: int
) -> np.ndarray:
    """Draws of what one run would measure, (volume, sample), the same residual at every volume.

    Residuals of their own would make neighbouring volumes differ by chance.
    """
    asked: dict[str, Any] = {"recipe": recipe, "seed": seed, "draws": draws}
    expected = predict_draws(fit, one, volumes=list(volumes), kind="backbone", **asked).to_numpy()[:, 0]
    run = predict_draws(fit, one, volumes=[volumes[0]], kind="run", **asked).to_numpy()[:, 0]
    return (expected + run - expected[:, :1]).T


def _volumes(
    counting: TrainingCost, name: str, own: float, limit: float | None, span: tuple[float, float]
) -> np.ndarray:
    """Volumes of a run on one backbone that are weighed."""
    if isinstance(counting, CostTable) and counting.has_volumes:
        return counting.volumes(name, np.nan, np.inf if limit is None else limit, (0.0, span[1]))
    first_stage = counting.projector_volume if isinstance(counting, FlopCost) else 0.0
    low = min(max(span[0], first_stage), own)
    # The ends are kept to the bit: the largest is the volume that the candidate would use.
    inner = np.geomspace(low, own, VOLUMES)[1:-1]
    return np.unique([low, *(float(f"{volume:.3g}") for volume in inner), own])
