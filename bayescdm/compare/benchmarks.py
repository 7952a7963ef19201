"""Transfer coefficients: what each text benchmark says about vision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayescdm.compare.tables import summarised, with_prior_ratio
from bayescdm.predict import LawDraws
from bayescdm.seeds import generator

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["coefficient_draws", "transfer_coefficients"]


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
    λ_i = Σ_k w_k γ_ik, so that A·S = A·Σ_i λ_i (X_i − mean_i); Σ λ_i² = 1 of the posterior mean loadings. A >
    0, so A·λ_i < 0, a transfer tax, is λ_i < 0. The interval contains what few backbones leave open of the
    loadings γ; see `coefficient_draws`. Table 7 of *What Transfers from Text to Vision?* (arXiv 2608.00013).

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.transfer_coefficients(fit)[["benchmark", "mean", "p_tax"]]  # doctest: +SKIP
    """
    values = coefficient_draws(fit)
    table = pd.DataFrame(
        {
            "benchmark": fit.capability.benchmarks.to_numpy(object),
            **summarised(values, "posterior", prob),
            "p_tax": (values < 0).mean(0),
        }
    )
    if "prior" in fit.draws.children:
        table = with_prior_ratio(table, coefficient_draws(fit, group="prior"))
    table = table.sort_values("mean", ascending=False, kind="stable", ignore_index=True)
    table.attrs = {**fit.facts(), "kind": "posterior", "prob": prob}
    return table


def coefficient_draws(fit: Fit, *, seed: int = 0, group: str = "posterior") -> np.ndarray:
    """Draw λ of every text benchmark, with what few backbones leave open of the loadings.

    Parameters
    ----------
    fit : Fit
    seed : int
    group : {"posterior", "prior"}

    Returns
    -------
    ndarray, (sample, benchmark)

    Notes
    -----
    λ_i = γ_i·w. Given the component scores Z of the backbones that the components rest on, the loadings of a
    benchmark are a regression of its scores on Z, known up to N(γ_i, σ_i²(ZᵀZ)⁻¹) with σ_i² its residual
    variance; λ_i is known up to N(γ_i·w, σ_i²·wᵀ(ZᵀZ)⁻¹w) in each draw of w.
    """
    capability = fit.capability
    w = LawDraws.of(fit, group=group).direction(capability.scores.columns)
    Z = capability.scores.loc[capability.fitted_on].to_numpy(float)
    scores = fit.study.text_scores.loc[capability.fitted_on, capability.benchmarks].to_numpy(float)
    residual = scores - capability.mean - Z @ capability.loadings.T
    freedom = np.maximum((~np.isnan(residual)).sum(0) - Z.shape[1] - 1, 1)
    sd = np.sqrt(np.nansum(residual**2, axis=0) / freedom)
    along = np.sqrt(np.einsum("sk,kl,sl->s", w, np.linalg.pinv(Z.T @ Z), w))
    noise = generator(seed, 7).standard_normal((len(w), len(sd)))
    opened = along[:, None] * sd * noise
    # Means stay those of the loadings, so that what the scores add up to is capability.
    return w @ capability.loadings.T + opened - opened.mean(0)
