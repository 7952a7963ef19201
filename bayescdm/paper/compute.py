"""Capability against pre-training compute, a line for each family."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from bayescdm.compare.tables import summarised
from bayescdm.errors import RequestError
from bayescdm.intervals import check_probability
from bayescdm.predict import LawDraws
from bayescdm.seeds import generator

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["COMMON", "capability_on_compute", "log_compute"]

#: Row of the slope that families share.
COMMON = "one slope for all"
On = Literal["compute", "params"]


def capability_on_compute(fit: Fit, *, on: On = "compute", prob: float = 0.9, seed: int = 0) -> pd.DataFrame:
    """Regress capability on the logarithm of pre-training compute, family by family.

    Parameters
    ----------
    fit : Fit
    on : {"compute", "params"}
        C = 6·N·D_text with N the active parameters, or N alone, which needs no text tokens.
    prob : float
        Probability of the equal-tailed intervals.
    seed : int

    Returns
    -------
    DataFrame, one row a family with two or more sizes, and one for a slope that all share
        ``family``, ``backbones``; ``mean``, ``sd`` and interval of the slope θ (S per unit of ln C);
        ``p_positive``; ``intercept``, mean S at the geometric mean of C over all these backbones;
        ``scatter``, posterior mean of the standard deviation around the lines, in units of S;
        ``explained``, the share of the variance of S within families that the lines explain (posterior
        mean).

    Raises
    ------
    RequestError
        Compute is asked for and text tokens are unknown, or no family has two sizes.

    Notes
    -----
    S ≈ θ_f ln C + ν_f (eqs. 3 and 5 of arXiv 2608.00013), Normal around the lines with one scatter for all
    families, and the prior p(θ, ν, σ) ∝ 1/σ: its posterior is known in closed form, and one draw of it is
    taken for every draw of S, so the uncertainty of S is in the intervals. Base and instruct models of one
    size have the same compute; what sets them apart is scatter here.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> cdm.capability_on_compute(cdm.fit("simulated-paper"))  # doctest: +SKIP
    """
    check_probability(prob)
    law = LawDraws.of(fit)
    names = law.backbones
    x = log_compute(fit, on)
    family = fit.study.backbones.loc[names, "family"].to_numpy()
    S = law["S"][:, law.positions("backbone", names)]
    sizes = pd.Series(x).groupby(family).nunique()
    chosen = [str(name) for name in sizes.index[sizes > 1]]
    if not chosen:
        raise RequestError("no family has backbones of two sizes, so none has a slope")
    used = np.isin(family, chosen)
    centred, S = x[used] - x[used].mean(), S[:, used]
    members = family[used][:, None] == np.array(chosen)
    rng = generator(seed)
    own, scatter, explained = _lines(np.hstack([members * centred[:, None], members]), S, members, rng)
    common, common_scatter, common_explained = _lines(np.hstack([centred[:, None], members]), S, members, rng)
    F = len(chosen)
    slopes = np.column_stack([own[:, :F], common[:, 0]])
    table = pd.DataFrame(
        {
            "family": [*chosen, COMMON],
            "backbones": [*members.sum(0), len(centred)],
            **summarised(slopes, "posterior", prob),
            "p_positive": (slopes > 0).mean(0),
            "intercept": [*own[:, F:].mean(0), common[:, 1:].mean()],
            "scatter": [scatter.mean()] * F + [common_scatter.mean()],
            "explained": [explained.mean()] * F + [common_explained.mean()],
        }
    )
    table.attrs = {**fit.facts(), "kind": "posterior", "prob": prob, "on": on}
    table.attrs["reference"] = float(np.exp(x[used].mean()))
    return table


def log_compute(fit: Fit, on: On = "compute") -> np.ndarray:
    """Return ln C, or ln N, of the backbones that inform a fit, (backbone,).

    Raises
    ------
    RequestError
        A size or, for compute, the number of text tokens of a backbone is unknown; names it.
    """
    if on not in ("compute", "params"):
        raise RequestError(f"on='{on}' is neither 'compute' nor 'params'")
    labels = fit.study.backbones.loc[LawDraws.of(fit).backbones]
    params = (
        labels["active_params"].fillna(labels["params"]) if "active_params" in labels else labels["params"]
    )
    amount = params.astype(float)
    if on == "compute":
        tokens = labels["text_tokens"] if "text_tokens" in labels else pd.Series(np.nan, labels.index)
        amount = 6 * amount * tokens.astype(float)
    unknown = list(labels.index[amount.isna()])
    if unknown:
        what = "the text tokens or the size" if on == "compute" else "the size"
        more = f" and {len(unknown) - 3} more" if len(unknown) > 3 else ""
        hint = "; on='params' needs sizes alone" if on == "compute" else ""
        raise RequestError(f"{what} of {', '.join(unknown[:3])}{more} unknown{hint}")
    return np.log(amount.to_numpy())


def _lines(
    X: np.ndarray, S: np.ndarray, members: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """One posterior draw for each draw of S: coefficients (sample, column), scatter, share explained."""
    n, p = X.shape
    if n - p < 1:
        raise RequestError(f"{n} backbones do not determine {p} coefficients and a scatter")
    inverse = np.linalg.inv(X.T @ X)
    mean = S @ X @ inverse
    residual = S - mean @ X.T
    squares = (residual**2).sum(1)
    sigma = np.sqrt(squares / rng.chisquare(n - p, len(S)))
    spread = np.linalg.cholesky(inverse)
    draws = mean + sigma[:, None] * (rng.standard_normal(mean.shape) @ spread.T)
    within = S - (S @ members / members.sum(0)) @ members.T
    return draws, sigma, 1 - squares / (within**2).sum(1)
