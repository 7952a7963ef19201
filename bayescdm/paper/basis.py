"""What a rate rests on: its prior, or runs that can tell of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from bayescdm.identify import PRIOR_DOMINATED
from bayescdm.wording import counted, probability

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["informing_backbones", "rests_on"]

#: Rates that need a backbone at two volumes under one recipe.
ABSORPTION = ("B0", "Bm", "mean_B")


def informing_backbones(fit: Fit) -> pd.DataFrame:
    """List the backbones whose runs inform a fit, and which of them ran at two volumes under one recipe.

    Parameters
    ----------
    fit : Fit

    Returns
    -------
    DataFrame, (backbone, ...)
        ``family``, ``variant``, ``several`` (bool).
    """
    runs = fit.study.fitted_runs[fit.group("constant_data")["weight"].to_numpy() > 0]
    volumes = runs.groupby(["backbone", "recipe"])["volume"].nunique().groupby("backbone").max()
    labels = fit.study.backbones.loc[volumes.index, ["family", "variant"]]
    return labels.assign(several=volumes > 1)


def rests_on(quantity: str, backbones: pd.DataFrame, sd_ratio: float = float("nan")) -> str:
    """Say by a code where a rate is no finding of the runs.

    Parameters
    ----------
    quantity : str
        ``A``, ``B0``, ``Bm`` or ``mean_B``.
    backbones : DataFrame
        From `informing_backbones`: those that the rate is of.
    sd_ratio : float, optional
        Posterior over prior sd.

    Returns
    -------
    str
        ``prior-dominated`` (ratio of at least 0.8), ``few-volumes`` (absorption, with fewer than two
        backbones at two volumes under one recipe), ``one-backbone`` (or none), each with its figure; else
        empty.

    Examples
    --------
    >>> one = pd.DataFrame({"several": [True]})
    >>> rests_on("Bm", one, 0.93)
    'prior-dominated (.93), few-volumes (1 backbone), one-backbone'
    >>> rests_on("A", pd.DataFrame({"several": [False, False]}), 0.4)
    ''
    """
    codes = []
    if sd_ratio >= PRIOR_DOMINATED:
        codes.append(f"prior-dominated ({probability(sd_ratio) if sd_ratio < 1 else f'{sd_ratio:.2f}'})")
    several = int(backbones["several"].sum())
    if quantity in ABSORPTION and several < 2:
        codes.append(f"few-volumes ({counted(several, 'backbone')})")
    if len(backbones) < 2:
        codes.append("one-backbone" if len(backbones) else "no-backbone")
    return ", ".join(codes)
