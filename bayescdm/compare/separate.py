"""What each family's runs say without any pooling: least squares on the capability that the fit found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.linalg import cholesky, solve_triangular

from bayescdm.compare.families import QUANTITIES, stated_log_volume
from bayescdm.predict import LawDraws
from bayescdm.predict.law import RATES
from bayescdm.wording import counted

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["separate_rates"]

#: Runs and backbones below which a family's own runs are not asked for a rate.
FEWEST_RUNS, FEWEST_BACKBONES = 3, 2
#: Range of S, and of ln D within recipes, that a slope needs: over a shorter one, errors of S and the
#: backbones' intercepts pass for rates a hundredfold too large, with standard errors that exclude the truth.
NARROW_CAPABILITY, NARROW_VOLUME = 0.05, float(np.log(1.5))
#: Largest entry of I − X⁺X in the row of a coefficient that the data determine.
ESTIMABLE = 1e-6


def separate_rates(fit: Fit, *, volume: float | None = None) -> pd.DataFrame:
    """Estimate each family's rates from its own runs, nothing pooled.

    Parameters
    ----------
    fit : Fit
    volume : float, optional
        Where the transfer rate is stated, in the study's unit; D_ref by default.

    Returns
    -------
    DataFrame, one row a family and quantity
        ``family``, ``quantity`` (``A``, ``B0``, ``Bm``, ``mean_B``), ``separate``, ``separate_sd`` (its
        standard error); ``why_code`` and ``why_none``: why there is no estimate, empty where there is one.
        Codes: ``too-few`` (under three runs or two backbones), ``one-volume`` (no recipe with two),
        ``narrow-volume`` (volumes within a recipe span less than a factor of 1.5), ``narrow-capability``
        (S spans less than 0.05; mean B stays), ``not-told-apart`` (recipes and rates).

    Notes
    -----
    The law of the fit, with its posterior mean capability S as given, is linear. All families enter one
    generalised least squares with rates of their own and the recipes' baselines in common, as separate fits
    by family would have it (table of families of arXiv 2608.00013) if recipes were not mixed. The
    covariance is the fit's: residuals of scale σ, and τ shared by the runs of a backbone. A family without
    two volumes under one recipe takes its absorption from the population's posterior mean, so that only A
    is its own. A family of fewer than three runs or two backbones has no estimate: its rate and the
    intercept of its backbone are the same thing.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.separate_rates(fit).query("quantity == 'A'")  # doctest: +SKIP
    """
    law = LawDraws.of(fit)
    runs = _informing_runs(fit, law)
    families = list(law.labels["family"])
    by_family = runs.groupby("family")
    counts = pd.DataFrame(
        {
            "runs": by_family.size(),
            "backbones": by_family["backbone"].nunique(),
            "S_range": by_family["S"].agg(np.ptp),
        }
    )
    volumes = runs[runs["volume_known"]].groupby(["family", "recipe"])["log_volume"]
    several = set(volumes.nunique().loc[lambda n: n > 1].index.get_level_values("family"))
    counts["volume_range"] = volumes.agg(np.ptp).groupby("family").max()
    counts = counts.reindex(families).fillna(0)
    estimates = _least_squares(law, runs, families, several)
    shift = stated_log_volume(fit, volume)
    rows = []
    for family in families:
        mean, covariance, determined = estimates[family]
        S = runs.loc[runs["family"] == family].drop_duplicates("backbone")["S"].mean()
        combinations = {
            "A": np.array([1.0, 0.0, -shift]),
            "B0": np.array([0.0, 1.0, 0.0]),
            "Bm": np.array([0.0, 0.0, 1.0]),
            "mean_B": np.array([0.0, 1.0, -S]),
        }
        for quantity in QUANTITIES:
            weights = combinations[quantity]
            code, why = _why_none(counts.loc[family], quantity, determined, weights)
            value, sd = (np.nan, np.nan) if why else (weights @ mean, np.sqrt(weights @ covariance @ weights))
            rows.append((family, quantity, float(value), float(sd), code, why))
    columns = ["family", "quantity", "separate", "separate_sd", "why_code", "why_none"]
    return pd.DataFrame(rows, columns=columns)


def _informing_runs(fit: Fit, law: LawDraws) -> pd.DataFrame:
    """Runs that inform the fit, with what the law needs of each."""
    constant = fit.group("constant_data")
    informing = constant["weight"].to_numpy() > 0
    backbone = constant["backbone_of_run"].to_numpy()[informing]
    observed = fit.study.runs.loc[constant["run"].to_numpy().astype(str)[informing]]
    names = constant["backbone"].to_numpy().astype(str)[backbone]
    size = law.optional("size_slope").mean() * constant["log_params"].to_numpy()[backbone]
    return pd.DataFrame(
        {
            "family": fit.study.backbones.loc[names, "family"].to_numpy(),
            "recipe": observed["recipe"].to_numpy(),
            "backbone": names,
            "S": law["S"].mean(0)[law.positions("backbone", names)],
            "log_volume": constant["log_volume"].to_numpy()[informing],
            "volume_known": constant["volume_known"].to_numpy()[informing] > 0,
            "accuracy": observed["accuracy"].to_numpy(float) - np.nan_to_num(size),
        }
    )


def _least_squares(
    law: LawDraws, runs: pd.DataFrame, families: list[str], several: set[str]
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rates (A, B0, Bm), their covariance and which are determined, by family."""
    S, log_volume = runs["S"].to_numpy(), runs["log_volume"].to_numpy()
    of_rates = np.stack([S, log_volume, -S * log_volume], axis=1)
    shared = np.array([law.optional(f"{rate}_population").mean() for rate in RATES])
    accuracy = runs["accuracy"].to_numpy()
    recipes = pd.get_dummies(runs["recipe"]).to_numpy(float)
    columns, places = [recipes], {}
    position = recipes.shape[1]
    for family in families:
        members = (runs["family"] == family).to_numpy()
        own = 3 if family in several else 1
        columns.append(of_rates[:, :own] * members[:, None])
        accuracy = accuracy - of_rates[:, own:] @ shared[own:] * members
        places[family] = slice(position, position + own)
        position += own
    X = np.concatenate(columns, axis=1)
    same = runs["backbone"].to_numpy()[:, None] == runs["backbone"].to_numpy()
    noise = np.median(law["sigma"]) ** 2 * np.eye(len(runs)) + np.median(law.optional("tau")) ** 2 * same
    lower = cholesky(noise, lower=True)
    whitened, response = (solve_triangular(lower, part, lower=True) for part in (X, accuracy))
    inverse = np.linalg.pinv(whitened, rcond=1e-10)
    coefficients, covariance = inverse @ response, inverse @ inverse.T
    determined = np.abs(np.eye(X.shape[1]) - inverse @ whitened).max(axis=1) < ESTIMABLE
    estimates = {}
    for family, place in places.items():
        own = place.stop - place.start
        mean, spread, known = shared.copy(), np.zeros((3, 3)), np.ones(3, bool)
        mean[:own], spread[:own, :own], known[:own] = (
            coefficients[place],
            covariance[place, place],
            determined[place],
        )
        estimates[family] = mean, spread, known
    return estimates


def _why_none(
    counts: pd.Series, quantity: str, determined: np.ndarray, weights: np.ndarray
) -> tuple[str, str]:
    """Code and reason why a family's own runs give no estimate of a quantity; empty if they do."""
    if counts["runs"] < FEWEST_RUNS or counts["backbones"] < FEWEST_BACKBONES:
        runs, backbones = counted(int(counts["runs"]), "run"), counted(int(counts["backbones"]), "backbone")
        return "too-few", f"{runs} on {backbones}: too few"
    if quantity != "A" and not counts["volume_range"]:
        return "one-volume", "no recipe has runs of it at two volumes"
    if quantity != "A" and counts["volume_range"] < NARROW_VOLUME:
        factor = np.exp(counts["volume_range"])
        return "narrow-volume", f"its volumes span a factor of {factor:.2f} within a recipe: too little"
    if quantity != "mean_B" and counts["S_range"] < NARROW_CAPABILITY:
        return (
            "narrow-capability",
            f"S of its backbones spans {counts['S_range']:.3f}: too little for a slope",
        )
    if not determined[weights != 0].all():
        return "not-told-apart", "recipes and rates cannot be told apart"
    return "", ""
