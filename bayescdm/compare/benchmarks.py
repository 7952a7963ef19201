"""Transfer coefficients: what each text benchmark says about vision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from bayescdm.compare.tables import summarised, with_prior_ratio
from bayescdm.predict import LawDraws

if TYPE_CHECKING:
    import numpy as np

    from bayescdm.fit import Fit

__all__ = ["transfer_coefficients"]


def transfer_coefficients(fit: Fit, *, prob: float = 0.9) -> pd.DataFrame:
    """Compute the transfer coefficient λ of every text benchmark.

    Parameters
    ----------
    fit : Fit
    prob : float
        Probability of the equal-tailed interval.

    Returns
    -------
    DataFrame, one row a text benchmark, largest λ first
        ``benchmark``, ``mean``, ``sd``, ``posterior_90_lower``, ``posterior_90_upper``, ``p_tax``, the
        probability that a higher score goes with a lower accuracy, ``prior_sd_ratio``, posterior sd over
        prior sd (near 1 the runs say little).

    Notes
    -----
    λ_i = Σ_k w_k γ_ik, so that A·S = A·Σ_i λ_i (X_i − mean_i); Σ λ_i² = 1. A > 0, so A·λ_i < 0, a transfer
    tax, is λ_i < 0. The components are taken as given: how exactly few backbones determine them is not in the
    interval. Table 7 of *What Transfers from Text to Vision?* (arXiv 2608.00013).

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.transfer_coefficients(fit)[["benchmark", "mean", "p_tax"]]  # doctest: +SKIP
    """
    values = _coefficients(fit, "posterior")
    table = pd.DataFrame(
        {
            "benchmark": fit.capability.benchmarks.to_numpy(object),
            **summarised(values, "posterior", prob),
            "p_tax": (values < 0).mean(0),
        }
    )
    if "prior" in fit.draws.children:
        table = with_prior_ratio(table, _coefficients(fit, "prior"))
    table = table.sort_values("mean", ascending=False, kind="stable", ignore_index=True)
    table.attrs = {**fit.facts(), "kind": "posterior", "prob": prob}
    return table


def _coefficients(fit: Fit, group: str) -> np.ndarray:
    """λ, (sample, benchmark)."""
    capability = fit.capability
    w = LawDraws.of(fit, group=group).direction(capability.scores.columns)
    return w @ capability.loadings.T
