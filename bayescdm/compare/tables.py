"""Columns that all tables of parameters share."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayescdm.intervals import Kind, check_probability, interval_columns

__all__ = ["greater", "interval", "single_interval", "summarised", "with_prior_ratio"]


def greater(margin: np.ndarray) -> np.ndarray:
    """Probability that a difference is above zero, over the first axis; ties count half."""
    return (margin > 0).mean(0) + (margin == 0).mean(0) / 2


def interval(values: np.ndarray, kind: Kind, prob: float, *, of: str = "") -> dict[str, np.ndarray]:
    """Equal-tailed interval over the first axis, by column name.

    Parameters
    ----------
    values : ndarray, (sample, label)
    kind, prob, of
        As for `bayescdm.intervals.interval_columns`.

    Returns
    -------
    dict of str to ndarray, (label,)
    """
    tail = (1 - check_probability(prob)) / 2
    return dict(zip(interval_columns(kind, prob, of=of), np.quantile(values, [tail, 1 - tail], axis=0)))


def single_interval(values: np.ndarray, kind: Kind, prob: float, *, of: str = "") -> dict[str, float]:
    """Equal-tailed interval of one quantity, by column name.

    Parameters
    ----------
    values : ndarray, (sample,)
    kind, prob, of
        As for `interval`.

    Returns
    -------
    dict of str to float
    """
    return {name: float(bound) for name, bound in interval(values, kind, prob, of=of).items()}


def summarised(values: np.ndarray, kind: Kind, prob: float, *, of: str = "") -> dict[str, np.ndarray]:
    """Mean, sd and equal-tailed interval over the first axis, by column name.

    Parameters
    ----------
    values, kind, prob, of
        As for `interval`.

    Returns
    -------
    dict of str to ndarray, (label,)
    """
    before = f"{of}_" if of else ""
    moments = {f"{before}mean": values.mean(0), f"{before}sd": values.std(0)}
    return {**moments, **interval(values, kind, prob, of=of)}


def with_prior_ratio(table: pd.DataFrame, prior: np.ndarray, *, sd: str = "sd") -> pd.DataFrame:
    """Add ``prior_sd_ratio``, posterior over prior sd; NaN where the prior does not vary."""
    spread = prior.std(0)
    ratio = np.full(len(spread), np.nan)
    np.divide(table[sd].to_numpy(), spread, out=ratio, where=spread > 0)
    return table.assign(prior_sd_ratio=ratio)
