"""Families and Base/Instruct in the (transfer, absorption) plane."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from bayescdm.compare.tables import summarised, with_prior_ratio
from bayescdm.errors import ModelError, RequestError
from bayescdm.predict import LawDraws
from bayescdm.predict.law import RATES
from bayescdm.study import VARIANTS

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["ALL_FAMILIES", "compare_families", "compare_variants", "family_draws"]

#: Label of the population's row in the table of variants.
ALL_FAMILIES = "all families"
QUANTITIES = (*RATES, "mean_B")


def family_draws(fit: Fit, *, volume: float | None = None, group: str = "posterior") -> xr.Dataset:
    """Draw each family's place in the (transfer, absorption) plane.

    Parameters
    ----------
    fit : Fit
    volume : float, optional
        Where the transfer rate is stated, in the study's unit; D_ref by default.
    group : {"posterior", "prior"}

    Returns
    -------
    Dataset, (sample, family)
        ``A``, ``B0`` and ``Bm``: geometric means of a family's base and instruct rates, which its pooled
        log rate is; ``mean_B``: mean absorption rate over the family's backbones in the fit.

    Notes
    -----
    At volume D the slope of accuracy on S is A − Bm·ln(D/D_ref); B0 and Bm do not depend on the volume.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.pairwise_probability(cdm.family_draws(fit)["A"])  # doctest: +SKIP
    """
    law = LawDraws.of(fit, group=group)
    families = law.labels["family"]
    rates = {rate: np.sqrt(law[rate][..., 0] * law[rate][..., 1]) for rate in RATES}
    rates["A"] = rates["A"] - rates["Bm"] * stated_log_volume(fit, volume)
    family, variant = _cells(fit, law)
    B = law["B0"][:, family, variant] - law["Bm"][:, family, variant] * law["S"]
    members = family[:, None] == np.arange(len(families))
    rates["mean_B"] = B @ members / members.sum(0)
    return xr.Dataset(
        {name: (("sample", "family"), values) for name, values in rates.items()},
        coords={"sample": law.sample, "family": families.to_numpy(object)},
        attrs={"kind": "posterior", "volume": stated_volume(fit, volume)},
    )


def compare_families(fit: Fit, *, volume: float | None = None, prob: float = 0.9) -> pd.DataFrame:
    """Tabulate the transfer and absorption rates of each family.

    Parameters
    ----------
    fit : Fit
    volume : float, optional
        Where the transfer rate is stated, in the study's unit; D_ref by default.
    prob : float
        Probability of the equal-tailed interval.

    Returns
    -------
    DataFrame, one row a family and quantity
        ``family``, ``quantity`` (``A``, ``B0``, ``Bm``, ``mean_B``; see `family_draws`), ``backbones`` and
        ``runs`` that inform the fit, ``mean``, ``sd``, ``posterior_90_lower``, ``posterior_90_upper``,
        ``prior_sd_ratio``: posterior sd over prior sd; near 1 the family's place is the prior's, and of a
        positive rate it falls with the level as well. For pairwise probabilities:
        ``pairwise_probability(family_draws(fit)["A"])``.

    Raises
    ------
    ModelError
        The fit's model is not a transfer model.
    RequestError
        The volume is not a positive number.

    Notes
    -----
    Bayesian counterpart of the paper's table of separate fits by family (SPEC, section 5).

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.compare_families(fit).query("quantity == 'A'")  # doctest: +SKIP
    """
    posterior = _long(family_draws(fit, volume=volume))
    counts = informing_counts(fit)
    families = [family for family, _ in posterior]
    table = pd.DataFrame(
        {
            "family": families,
            "quantity": [quantity for _, quantity in posterior],
            "backbones": counts["backbones"].reindex(families, fill_value=0).to_numpy(),
            "runs": counts["runs"].reindex(families, fill_value=0).to_numpy(),
            **summarised(np.stack(list(posterior.values()), axis=1), "posterior", prob),
        }
    )
    if "prior" in fit.draws.children:
        prior = _long(family_draws(fit, volume=volume, group="prior"))
        table = with_prior_ratio(table, np.stack(list(prior.values()), axis=1))
    table.attrs = {**fit.facts(), "kind": "posterior", "prob": prob, "volume": stated_volume(fit, volume)}
    return table


def compare_variants(fit: Fit, *, volume: float | None = None, prob: float = 0.9) -> pd.DataFrame:
    """Compare instruct with base: the contrast of every rate, of the population and of each family.

    Parameters
    ----------
    fit, volume, prob
        As for `compare_families`.

    Returns
    -------
    DataFrame, one row a family and quantity
        ``family`` (``all families`` for the population), ``quantity``, ``base_backbones`` and
        ``instruct_backbones`` that inform the fit, ``base`` and ``instruct`` (posterior means), instruct −
        base as ``difference_mean``, ``difference_sd``, ``difference_posterior_90_lower`` and ``…_upper``,
        ``p_instruct_greater``, ``prior_sd_ratio`` of the difference. ``mean_B`` is at one capability for
        both: the mean S of the family's backbones in the fit.

    Raises
    ------
    ModelError
        The fit's model has the same rates for both variants.
    RequestError
        The volume is not a positive number.

    Notes
    -----
    Bayesian counterpart of the paper's separate Base and Instruct fits (SPEC, section 5). In a family with
    one variant the contrast is the population's, widened.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.compare_variants(fit).query("family == 'all families'")  # doctest: +SKIP
    """
    posterior = _variant_draws(fit, volume, "posterior")
    values = np.stack(list(posterior.values()), axis=1)
    margin = values[..., 1] - values[..., 0]
    if not margin.any():
        raise ModelError(f"model '{fit.model}' has the same rates for base and instruct; nothing to compare")
    counts = informing_counts(fit)
    families = [family for family, _ in posterior]
    table = pd.DataFrame(
        {
            "family": families,
            "quantity": [quantity for _, quantity in posterior],
            "base_backbones": counts["base"].reindex(families, fill_value=0).to_numpy(),
            "instruct_backbones": counts["instruct"].reindex(families, fill_value=0).to_numpy(),
            "base": values[..., 0].mean(0),
            "instruct": values[..., 1].mean(0),
            **summarised(margin, "posterior", prob, of="difference"),
            "p_instruct_greater": (margin > 0).mean(0),
        }
    )
    if "prior" in fit.draws.children:
        prior = np.stack(list(_variant_draws(fit, volume, "prior").values()), axis=1)
        table = with_prior_ratio(table, prior[..., 1] - prior[..., 0], sd="difference_sd")
    table.attrs = {**fit.facts(), "kind": "posterior", "prob": prob, "volume": stated_volume(fit, volume)}
    return table


def _variant_draws(fit: Fit, volume: float | None, group: str) -> dict[tuple[str, str], np.ndarray]:
    """Draws (sample, variant) by family and quantity; the population first, if the model has one."""
    law = LawDraws.of(fit, group=group)
    family, _ = _cells(fit, law)
    of_family = {
        name: {rate: law[rate][:, position] for rate in RATES}
        for position, name in enumerate(law.labels["family"])
    }
    S = {name: law["S"][:, family == position].mean(1) for position, name in enumerate(law.labels["family"])}
    if all(f"{rate}_contrast" in law for rate in RATES):
        of_family = {ALL_FAMILIES: {rate: population_rate(law, rate) for rate in RATES}, **of_family}
        S[ALL_FAMILIES] = law["S"].mean(1)
    draws = {}
    for name, rates in of_family.items():
        rates["A"] = rates["A"] - rates["Bm"] * stated_log_volume(fit, volume)
        rates["mean_B"] = rates["B0"] - rates["Bm"] * S[name][:, None]
        draws.update({(name, quantity): rates[quantity] for quantity in QUANTITIES})
    return draws


def population_rate(law: LawDraws, rate: str) -> np.ndarray:
    """Population median of a rate by variant, (sample, variant).

    Raises
    ------
    ModelError
        The model has no population of families.
    """
    if f"{rate}_population" not in law:
        raise ModelError("this model has no population of families to compare one with")
    half = law.optional(f"{rate}_contrast")[:, None] * np.array([-0.5, 0.5])
    return law[f"{rate}_population"][:, None] * np.exp(half)


def _long(draws: xr.Dataset) -> dict[tuple[str, str], np.ndarray]:
    """Draws (sample,) by family and quantity."""
    return {
        (str(family), quantity): draws[quantity].to_numpy()[:, position]
        for position, family in enumerate(draws["family"].to_numpy())
        for quantity in QUANTITIES
    }


def _cells(fit: Fit, law: LawDraws) -> tuple[np.ndarray, np.ndarray]:
    """Family and variant position of each backbone of the fit."""
    backbones = fit.study.backbones.loc[law.labels["backbone"]]
    return law.positions("family", backbones["family"]), pd.Index(VARIANTS).get_indexer(backbones["variant"])


def informing_counts(fit: Fit) -> pd.DataFrame:
    """Backbones, runs, base and instruct backbones that inform the fit, by family and in all."""
    constant = fit.group("constant_data")
    used = constant["backbone_of_run"].to_numpy()[constant["weight"].to_numpy() > 0]
    names = constant["backbone"].to_numpy().astype(str)[used]
    labels = fit.study.backbones.loc[np.unique(names)]
    counts = pd.DataFrame(
        {
            "backbones": labels.groupby("family").size(),
            "runs": fit.study.backbones.loc[names].groupby("family").size(),
            **{v: labels[labels["variant"] == v].groupby("family").size() for v in VARIANTS},
        }
    )
    counts = counts.fillna(0).astype(int)
    counts.loc[ALL_FAMILIES] = counts.sum()
    return counts


def stated_volume(fit: Fit, volume: float | None) -> float:
    """Return the volume at which A is stated, D_ref by default."""
    stated = fit.study.volume_ref if volume is None else volume
    if stated is None or not 0 < stated < np.inf:
        raise RequestError(f"volume {stated} is not a positive number")
    return float(stated)


def stated_log_volume(fit: Fit, volume: float | None) -> float:
    """Return ln(D/D_ref) of the volume at which A is stated."""
    return float(np.log(stated_volume(fit, volume) / stated_volume(fit, None)))
