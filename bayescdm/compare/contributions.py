"""What each text score of a family's backbones adds to capability and to accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayescdm.compare.benchmarks import coefficient_draws
from bayescdm.compare.positions import position_draws
from bayescdm.compare.tables import interval, summarised
from bayescdm.errors import RequestError, unknown_name
from bayescdm.predict import LawDraws

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["FAMILY_MEAN", "family_members", "text_contributions"]

#: Row of the table of text scores that holds the mean over the family's backbones.
FAMILY_MEAN = "mean of its backbones"


def family_members(fit: Fit, family: str) -> list[str]:
    """Backbones of a family that the law can place, those with runs first, then by size.

    Parameters
    ----------
    fit : Fit
    family : str

    Returns
    -------
    list of str

    Raises
    ------
    NotFoundError
        The study has no such family.
    RequestError
        None of its backbones has text scores.
    """
    study = fit.study
    if family not in study.families:
        raise unknown_name("family", family, study.families)
    placed = study.scored.union(study.placed_by_size)
    own = study.backbones[(study.backbones["family"] == family) & study.backbones.index.isin(placed)]
    if own.empty:
        raise RequestError(
            f"family '{family}': none of its backbones has text scores, so nothing can be said of it; add "
            "scores, or fit with unscored backbones placed by size"
        )
    unused = ~own.index.isin(LawDraws.of(fit, 1).backbones)
    order = np.lexsort((own.index.to_numpy(), own["params"].to_numpy(float), unused))
    return [str(name) for name in own.index[order]]


def text_contributions(
    fit: Fit, family: str, *, volume: float | None = None, prob: float = 0.9, seed: int = 0
) -> pd.DataFrame:
    """Weigh each text score of a family by λ: its strengths, its weaknesses and the taxes that it pays.

    Parameters
    ----------
    fit : Fit
    family : str
        A family of the study with text scores; it need not have runs.
    volume : float, optional
        Where the transfer rate is stated, in the study's unit; D_ref by default.
    prob : float
        Probability of the equal-tailed intervals.
    seed : int
        Seed of what is drawn from the population for a family without runs.

    Returns
    -------
    DataFrame, one row a backbone and benchmark, and one a benchmark for the mean of the backbones
        ``backbone`` (or ``mean of its backbones``), ``benchmark``, ``score`` (fraction; NaN where not
        measured), ``population_mean`` (over the backbones that define the components), ``lambda_mean``,
        ``p_tax``; ``mean``, ``sd`` and interval of λ × (score − population mean), in units of S; their sum
        over benchmarks is S of a backbone with every score. ``p_positive``; ``accuracy_mean`` and its
        interval: the same times the family's A.

    Raises
    ------
    NotFoundError
        The study has no such family.
    RequestError
        None of its backbones has text scores, or the volume is not a positive number.

    Notes
    -----
    A·S = A·Σ λ_i (X_i − mean_i), as in `bayescdm.compare.transfer_coefficients`.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.text_contributions(fit, "Phi")[["backbone", "benchmark", "mean"]]  # doctest: +SKIP
    """
    names = family_members(fit, family)
    capability = fit.capability
    weights = coefficient_draws(fit)
    A = position_draws(fit, [family], volume=volume, seed=seed)["A"].to_numpy().reshape(-1, 1)
    scores = fit.study.text_scores.loc[names, list(capability.benchmarks)].dropna(how="all")
    rows = {FAMILY_MEAN: scores.mean(), **{str(name): scores.loc[name] for name in scores.index}}
    parts = []
    for name, row in rows.items():
        score = row.to_numpy(float)
        added = weights * (score - capability.mean)
        parts.append(
            pd.DataFrame(
                {
                    "backbone": name,
                    "benchmark": capability.benchmarks.to_numpy(object),
                    "score": score,
                    "population_mean": capability.mean,
                    "lambda_mean": weights.mean(0),
                    "p_tax": (weights < 0).mean(0),
                    **summarised(added, "posterior", prob),
                    "p_positive": np.where(np.isfinite(score), (added > 0).mean(0), np.nan),
                    "accuracy_mean": (A * added).mean(0),
                    **interval(A * added, "posterior", prob, of="accuracy"),
                }
            )
        )
    table = pd.concat(parts, ignore_index=True)
    table.attrs = {**fit.facts(), "kind": "posterior", "prob": prob, "family": family}
    return table
