"""Backbones without text scores, placed among the components by what else is known of them: size, variant."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayescdm.errors import Note

__all__ = ["place_by_size"]


def place_by_size(
    components: pd.DataFrame, backbones: pd.DataFrame, unscored: pd.Index
) -> tuple[pd.DataFrame, np.ndarray, Note]:
    """Predict components from ln N and variant, with the spread that they leave.

    Parameters
    ----------
    components : DataFrame, (backbone, component)
        Components of the scored backbones that determine the regression.
    backbones : DataFrame, (backbone, ...)
        ``params`` (absolute) and ``variant`` of these and of the unscored ones.
    unscored : Index, (backbone,)
        Backbones to place; their ``params`` are known.

    Returns
    -------
    mean : DataFrame, (backbone, component)
    covariance : ndarray, (backbone, component, component)
        Residual covariance of the regression, plus the uncertainty of its coefficients.
    note : Note
        Code ``placed-by-size``, with the share of variance that size and variant explain.

    Examples
    --------
    >>> backbones = pd.DataFrame(
    ...     {"params": [1e9, 2e9, 4e9, 8e9, 3e9], "variant": ["base"] * 5}, index=list("abcde"))
    >>> components = pd.DataFrame({"PC1": [0.1, 0.2, 0.3, 0.4]}, index=list("abcd"))
    >>> mean, covariance, note = place_by_size(components, backbones, pd.Index(["e"]))
    >>> round(float(mean.loc["e", "PC1"]), 3)
    0.258
    """
    sized = components.loc[backbones.loc[components.index, "params"].notna()]
    X, Y = _predictors(backbones.loc[sized.index]), sized.to_numpy(float)
    coefficients, *_ = np.linalg.lstsq(X, Y, rcond=None)
    residuals = Y - X @ coefficients
    freedom = max(len(X) - np.linalg.matrix_rank(X), 1)
    spread = residuals.T @ residuals / freedom
    new = _predictors(backbones.loc[unscored])
    leverage = np.einsum("mi,ij,mj->m", new, np.linalg.pinv(X.T @ X), new)
    explained = 1 - residuals.var(axis=0) / Y.var(axis=0)
    shares = ", ".join(f"{name} {share:.0%}" for name, share in zip(components.columns, explained))
    message = (
        f"{len(unscored)} backbones without text scores are placed by size and variant, as {len(sized)} "
        f"scored ones suggest (variance explained: {shares}), with the spread that this leaves: "
        f"{', '.join(unscored)}"
    )
    return (
        pd.DataFrame(new @ coefficients, index=unscored, columns=components.columns),
        spread * (1 + leverage)[:, None, None],
        Note("placed-by-size", message, "warning", "text scores"),
    )


def _predictors(backbones: pd.DataFrame) -> np.ndarray:
    """Intercept, ln(N/10⁹), instruct; a variant that does not vary drops out by the rank of the fit."""
    log_params = np.log(backbones["params"].to_numpy(float) / 1e9)
    instruct = (backbones["variant"] == "instruct").to_numpy(float)
    return np.column_stack([np.ones(len(backbones)), log_params, instruct])
