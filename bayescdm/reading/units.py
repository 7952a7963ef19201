"""Percent or fraction, judged by rows and columns together; and figures ten or a hundred times off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

__all__ = ["Units", "judge_units", "off_by_power_of_ten"]

#: Below this, scores of a benchmark come so near to 1 % that 0.6 may well be a percentage.
_CLEARLY_PERCENT = 5.0
#: How far outside the range of the other scores a fraction times 100 may lie and still look like one.
_SLACK = 1.5
#: Smallest robust spread of log10 scores: ± 20 %.
_LEAST_SPREAD = 0.08


@dataclass(frozen=True)
class Units:
    """The unit of every score, and what stays unclear.

    Parameters
    ----------
    table : {"percent", "fraction"}
        Unit of most scores.
    percent : Series of bool
        Whether each score is in percent; indexed like the values judged.
    odd_rows : list
        Rows in the other unit as a whole.
    unclear_columns : list
        Columns within 0–1 in a table of percentages.
    unclear_cells : list
        Index labels of single scores that look like the other unit.
    """

    table: str
    percent: pd.Series
    odd_rows: list[Any] = field(default_factory=list)
    unclear_columns: list[Any] = field(default_factory=list)
    unclear_cells: list[Any] = field(default_factory=list)


def judge_units(values: pd.DataFrame, context: Mapping[str, np.ndarray] | None = None) -> Units:
    """Decide for every score whether it is in percent or a fraction.

    Parameters
    ----------
    values : DataFrame, one row a score
        ``row``, ``column`` (benchmark) and ``value``, as written, within 0–100.
    context : mapping of str to array, optional
        Known scores of each benchmark in percent, from another file.

    Returns
    -------
    Units

    Notes
    -----
    A table in which most scores exceed 1 is in percent. There, a row whose scores all lie within 0–1 is in
    fractions when, for more than half of them, 100 times the score lies nearer (in logarithms) to the
    median of its benchmark than the score itself; a single score of 0.6 is not judged alone. A benchmark
    whose scores all lie within 0–1 stays unclear: they may be small percentages. So does a single score
    within 0–1 whose hundredfold would be ordinary for a benchmark that otherwise stays above 5. In a table of
    fractions, a row of which more than half exceeds 1 is in percent, and other scores above 1 stay unclear.
    """
    above = values["value"] > 1
    if not above.any() and not context:
        return Units("fraction", pd.Series(False, index=values.index))
    share = above.groupby(values["row"]).mean()
    size = values.groupby("row")["value"].size()
    if above.mean() <= 0.5 and not context:
        odd = share.index[(share > 0.5) & (size > 1)]
        percent = values["row"].isin(odd)
        return Units("fraction", percent, list(odd), [], list(values.index[above & ~percent]))
    evidence = _ordinary(values[above], context or {})
    votes = _votes_for_fraction(values, evidence)
    candidates = votes.groupby(values["row"]).mean()
    odd = share.index[(share == 0) & (size > 1) & (candidates.reindex(share.index) > 0.5)]
    fraction = values["row"].isin(odd)
    if fraction.all():
        return Units("fraction", ~fraction)
    rest = values[~fraction]
    highest = rest.groupby("column")["value"].max()
    unclear_columns = [c for c in highest.index[(highest <= 1) & (highest > 0)] if c not in (context or {})]
    low = rest[(rest["value"] <= 1) & ~rest["column"].isin(unclear_columns)]
    single = [label for label, score in low.iterrows() if _looks_like_fraction(score, evidence)]
    return Units("percent", ~fraction, list(odd), unclear_columns, single)


def off_by_power_of_ten(scores: pd.DataFrame) -> pd.DataFrame:
    """Find scores that are about ten or a hundred times off the others of their benchmark.

    Parameters
    ----------
    scores : DataFrame, one row a score
        ``column`` (benchmark) and ``value`` (fraction).

    Returns
    -------
    DataFrame
        The suspicious rows, with ``factor`` (what the score would have to be multiplied by) and ``median``
        (of the other scores, a fraction).

    Notes
    -----
    With at least two other scores, all in log10: suspicious is a score at least four robust standard
    deviations (1.4826 MAD, at least 0.08) and 0.6 from the median of the others, further from the nearest of
    them than they are from each other (from 5 % to 95 %, when there are 20), which a factor of 10 or 100
    brings to within two deviations. A benchmark with a wide spread, such as MATH, thus raises no alarm.
    """
    found = []
    for _, rows in scores[scores["value"] > 0].groupby("column", sort=False):
        logs = np.log10(rows["value"].to_numpy(dtype=float))
        if len(logs) < 3:
            continue
        for label, value, others in zip(rows.index, logs, _others(logs)):
            shift = others.median - value
            power = int(np.clip(np.round(shift), -2, 2))
            gap = max(others.low - value, value - others.high)
            isolated = abs(shift) > max(4 * others.spread, 0.6) and gap > others.high - others.low
            if isolated and power and abs(shift - power) < 2 * others.spread:
                found.append((label, 10.0**power, 10**others.median))
    labels = [label for label, _, _ in found]
    return scores.loc[labels].assign(factor=[f for _, f, _ in found], median=[m for _, _, m in found])


class _Others(NamedTuple):
    """Where the other scores of a benchmark lie, in log10."""

    median: float
    spread: float
    low: float
    high: float


def _others(logs: np.ndarray) -> Iterator[_Others]:
    """Location of all other values, for each value; of all values where one of many does not count."""
    few = len(logs) < 50
    whole = None if few else _located(logs)
    for i in range(len(logs)):
        yield whole or _located(np.delete(logs, i))


def _located(logs: np.ndarray) -> _Others:
    """Median, robust sd and range of some values."""
    median = float(np.median(logs))
    spread = max(1.4826 * float(np.median(np.abs(logs - median))), _LEAST_SPREAD)
    tail = 0.05 if len(logs) >= 20 else 0.0
    low, high = np.quantile(logs, [tail, 1 - tail])
    return _Others(median, spread, float(low), float(high))


def _ordinary(above: pd.DataFrame, context: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Scores of each benchmark that are surely in percent."""
    known = {str(column): rows["value"].to_numpy(dtype=float) for column, rows in above.groupby("column")}
    return {
        column: np.concatenate([known.get(column, np.empty(0)), context.get(column, np.empty(0))])
        for column in {*known, *context}
    }


def _votes_for_fraction(values: pd.DataFrame, evidence: Mapping[str, np.ndarray]) -> pd.Series:
    """Whether 100 times a score lies nearer to the median of its benchmark than the score; 0 says nothing."""
    medians = values["column"].map(
        {column: np.median(known) for column, known in evidence.items() if len(known)}
    )
    with np.errstate(divide="ignore"):
        distance = np.log(medians.astype(float)) - np.log(values["value"].astype(float))
    return (distance > np.log(10)) & np.isfinite(distance)


def _looks_like_fraction(score: pd.Series, evidence: Mapping[str, np.ndarray]) -> bool:
    """Whether a score within 0–1 would be ordinary if multiplied by 100, and is not as it stands."""
    known = evidence.get(score["column"], np.empty(0))
    known = known[known > 1]
    if not len(known) or score["value"] == 0 or known.min() < _CLEARLY_PERCENT:
        return False
    return bool(known.min() / _SLACK <= 100 * score["value"] <= known.max() * _SLACK)
