"""Which candidates could be trained at all: at which volumes, and why the others could not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayescdm.decide.constraints import Constraints, refusals
from bayescdm.decide.costs import CostTable, FlopCost, TrainingCost
from bayescdm.predict import CandidateTable, LawDraws
from bayescdm.wording import counted, short_count

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["active_params", "feasible", "nobody", "smallest_volume"]


def smallest_volume(fit: Fit, otherwise: float) -> float:
    """Return the smallest volume of any run that informs the fit, below which the law says nothing."""
    low = LawDraws.of(fit, 1).volumes[0]
    return low if np.isfinite(low) else otherwise


def feasible(
    fit: Fit,
    table: CandidateTable,
    constraints: Constraints,
    counting: TrainingCost,
    limit: float | None,
    volume: float | None,
    span: tuple[float, float],
) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return volumes that each feasible candidate could use, and why the others are infeasible.

    Parameters
    ----------
    fit : Fit
    table : pair of DataFrames
        Text scores and labels of the candidates.
    constraints : Constraints
    counting : TrainingCost
    limit : float or None
        Budget.
    volume : float or None
        The same for all; None where a budget decides.
    span : (float, float)
        Volumes that a budget may be spent on.

    Returns
    -------
    tried : dict of str to ndarray
    reasons : dict of str to str
    """
    text_scores, backbones = table
    placed = fit.study.placed_by_size
    reasons, tried = refusals(backbones, constraints), {}
    needs_size = "size_slope" in fit.posterior
    for name, row in backbones.iterrows():
        if text_scores.loc[name].isna().all() and name not in placed:
            reasons[str(name)] = "no usable text score, so no capability"
        if name in reasons:
            continue
        active = active_params(row)
        if np.isnan(active) and (needs_size or (counting.needs_params and limit is not None)):
            what = "its cost" if limit is not None else f"model {fit.model}"
            reasons[str(name)] = f"no number of parameters, which {what} needs"
            continue
        if isinstance(counting, CostTable) and name not in set(counting.rows["backbone"]):
            reasons[str(name)] = "not in the cost table"
            continue
        if volume is None:
            within = counting.volumes(str(name), active, np.inf if limit is None else limit, span)
            least, _ = _least(counting, str(name), active, span)
            why = f"budget: the smallest volume costs {counting.amount(least)}"
            if np.isnan(least):
                why = "the cost table has no volume of it within those that are allowed"
        else:
            cost = counting.cost(str(name), active, volume)
            within = np.array([volume] if limit is None or cost <= limit else [])
            why = (
                "the cost table does not say what this volume costs"
                if np.isnan(cost)
                else f"budget: costs {counting.amount(cost)}"
            )
        if len(within):
            tried[str(name)] = within
        else:
            reasons[str(name)] = why
    return tried, {name: reasons[name] for name in map(str, backbones.index) if name in reasons}


def active_params(row: pd.Series) -> float:
    """Return N_active of a row of labels; all parameters where it is not stated, NaN where neither is."""
    for column in ("active_params", "params"):
        if column in row and pd.notna(row[column]):
            return float(row[column])
    return np.nan


def _least(
    counting: TrainingCost, name: str, active: float, span: tuple[float, float]
) -> tuple[float, float]:
    """Least cost of a backbone and the volume that it buys; NaN where a table has no volume within the span.

    Where the table lists no volumes, or one volume is asked for, the span is that volume.
    """
    if isinstance(counting, CostTable) and counting.has_volumes:
        rows = counting.within(name, span)
        if rows.empty:
            return np.nan, np.nan
        cheapest = rows.loc[rows["cost"].idxmin()]
        return float(cheapest["cost"]), float(cheapest["volume"])
    smallest = max(span[0], counting.projector_volume) if isinstance(counting, FlopCost) else span[0]
    return counting.cost(name, active, smallest), smallest


def nobody(
    fit: Fit,
    backbones: pd.DataFrame,
    reasons: Mapping[str, str],
    counting: TrainingCost,
    limit: float | None,
    span: tuple[float, float],
) -> str:
    """Say in one line why no candidate is left; `span` holds the volumes that were to be afforded."""
    over = [name for name, reason in reasons.items() if reason.startswith("budget")]
    if over and limit is not None:
        least = {name: _least(counting, name, active_params(backbones.loc[name]), span) for name in over}
        cheapest = min(least, key=lambda name: least[name])
        cost, volume = least[cheapest]
        others = len(reasons) - len(over)
        rest = (
            f"; {counted(others, 'other')} {'is' if others == 1 else 'are'} out for other reasons"
            if others
            else ""
        )
        return (
            f"no candidate fits the budget of {counting.amount(limit)}: the cheapest, '{cheapest}', needs "
            f"{cost:.4g} for {short_count(volume)} {fit.study.volume_unit}{rest}; raise the budget"
        )
    name, reason = next(iter(reasons.items()))
    if len(reasons) == 1:
        return f"the only candidate, '{name}', is infeasible: {reason}"
    every = counted(len(reasons), "candidate")
    return f"none of {every} is feasible, e.g. '{name}': {reason}; relax a constraint"
