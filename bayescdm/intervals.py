"""Intervals that carry their kind and probability."""

from __future__ import annotations

from typing import Literal

import numpy as np
import xarray as xr

from bayescdm.errors import RequestError

__all__ = [
    "Kind",
    "PredictionKind",
    "check_probability",
    "equal_tailed",
    "interval_columns",
    "probability",
]

#: ``law``: the law's mean, parameter uncertainty only; ``backbone``: the spread of backbones added, what
#: runs of one backbone average to; ``run``: residual spread added, what one training run would measure.
PredictionKind = Literal["law", "backbone", "run"]
#: ``posterior``: a parameter.
Kind = Literal["posterior", "law", "backbone", "run"]


#: From here on a probability above 1 is taken for a percentage.
MOST_LIKELY_PERCENT = 5


def check_probability(prob: float) -> float:
    """Return `prob` if it lies strictly between 0 and 1.

    Raises
    ------
    RequestError
        Otherwise; 90 is answered with a hint at 0.9, anything else with how such a number is written.
    """
    if not 0 < prob < 1:
        hint = "; give a fraction such as 0.9 or 0.95"
        if MOST_LIKELY_PERCENT <= prob < 100:
            hint = f"; did you mean {prob / 100:g}?"
        raise RequestError(f"probability {prob:g} is not between 0 and 1{hint}")
    return float(prob)


def interval_columns(kind: Kind, prob: float, *, of: str = "") -> tuple[str, str]:
    """Return column names of an interval, such as ``run_90_lower`` and ``run_90_upper``.

    Parameters
    ----------
    kind : {"posterior", "law", "backbone", "run"}
    prob : float
    of : str
        What the interval is of, put first, unless that is what the table is about.

    Examples
    --------
    >>> interval_columns("law", 0.9)
    ('law_90_lower', 'law_90_upper')
    >>> interval_columns("run", 0.8, of="rank")
    ('rank_run_80_lower', 'rank_run_80_upper')
    """
    name = f"{of}_{kind}_{100 * prob:g}" if of else f"{kind}_{100 * prob:g}"
    return f"{name}_lower", f"{name}_upper"


def equal_tailed(draws: xr.DataArray, prob: float) -> tuple[xr.DataArray, xr.DataArray]:
    """Equal-tailed interval over ``chain`` and ``draw``.

    Parameters
    ----------
    draws : DataArray, (chain, draw, ...)
    prob : float

    Returns
    -------
    lower, upper : DataArray, (...)
    """
    tail = (1 - check_probability(prob)) / 2
    bounds = draws.quantile([tail, 1 - tail], dim=("chain", "draw"))
    return bounds.isel(quantile=0, drop=True), bounds.isel(quantile=1, drop=True)


def probability(event: xr.DataArray) -> np.ndarray:
    """Share of draws in which `event` is true, over ``chain`` and ``draw``."""
    return event.mean(("chain", "draw")).to_numpy()
