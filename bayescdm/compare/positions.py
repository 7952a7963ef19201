"""Where families lie against the population that they are drawn from, and against each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from bayescdm.compare.families import (
    QUANTITIES,
    family_draws,
    informing_counts,
    population_rate,
    stated_log_volume,
    stated_volume,
)
from bayescdm.compare.separate import separate_rates
from bayescdm.compare.tables import greater, interval, summarised
from bayescdm.errors import RequestError, unknown_name
from bayescdm.predict import LawDraws
from bayescdm.predict.law import RATES
from bayescdm.predict.question import Question
from bayescdm.study import VARIANTS

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["compare_positions", "nearest_families", "position_draws"]

#: Share of the backbones with runs that lie below and above the step from a weak to a strong backbone.
STEP = (0.1, 0.9)
#: Accuracy within which two families, or two backbones, are practically equal, a fraction.
EQUIVALENT = 0.01


def position_draws(
    fit: Fit, families: list[str] | None = None, *, volume: float | None = None, seed: int = 0
) -> xr.Dataset:
    """Draw families' rates beside those of the population, paired by draw.

    Parameters
    ----------
    fit : Fit
    families : list of str, optional
        Any families of the study with text scores; those with runs that inform the fit by default.
    volume : float, optional
        Where the transfer rate is stated, in the study's unit; D_ref by default.
    seed : int
        Seed of what is drawn from the population for families without runs.

    Returns
    -------
    Dataset, (sample, family)
        ``A``, ``B0``, ``Bm`` and ``mean_B`` as in `bayescdm.compare.family_draws`, and each with
        ``population_`` before it: the population's median rate, ``population_mean_B`` for backbones of the
        family's capabilities and variants. Coordinate ``mode``: ``known family``, or ``new family`` for one
        without runs, whose rates are drawn from the population.

    Raises
    ------
    NotFoundError
        A family is not one of the study.
    RequestError
        A family has no backbone with text scores, or the volume is not a positive number.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> draws = cdm.position_draws(fit, ["Qwen2.5"])  # doctest: +SKIP
    >>> float((draws["A"] > draws["population_A"]).mean())  # doctest: +SKIP
    """
    law = LawDraws.of(fit)
    chosen = list(law.families) if families is None else list(families)
    for family in chosen:
        if family not in fit.study.families:
            raise unknown_name("family", family, fit.study.families)
    known = family_draws(fit, volume=volume)
    parts = []
    for family in chosen:
        new = family not in law.families
        if new:
            rates, cells, S = _new_family(fit, family, seed)
            values = _at(fit, volume, rates, cells, S)
        else:
            values = {name: known[name].sel(family=family).to_numpy() for name in QUANTITIES}
            cells, S = _known_cells(fit, law, family)
        pooled = np.stack([population_rate(law, rate) for rate in RATES])
        population = _at(fit, volume, pooled, cells, S)
        columns = {**values, **{f"population_{name}": drawn for name, drawn in population.items()}}
        parts.append(
            xr.Dataset(
                {name: (("sample", "family"), drawn[:, None]) for name, drawn in columns.items()},
                coords={
                    "sample": law.sample,
                    "family": np.array([family], dtype=object),
                    "mode": ("family", np.array(["new family" if new else "known family"], dtype=object)),
                },
            )
        )
    draws = xr.concat(parts, "family")
    draws.attrs = {"kind": "posterior", "volume": stated_volume(fit, volume)}
    return draws


def _known_cells(fit: Fit, law: LawDraws, family: str) -> tuple[np.ndarray, np.ndarray]:
    """Variant (backbone,) and capability (sample, backbone) of a family's backbones in the fit."""
    names = law.labels["backbone"]
    backbones = fit.study.backbones.loc[names]
    members = (backbones["family"] == family).to_numpy()
    return pd.Index(VARIANTS).get_indexer(backbones.loc[members, "variant"]), law["S"][:, members]


def _new_family(fit: Fit, family: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rates (rate, sample, variant) drawn from the population; variants and capabilities of the backbones."""
    backbones = fit.study.backbones
    names = backbones.index[(backbones["family"] == family) & backbones.index.isin(fit.study.scored)]
    if names.empty:
        raise RequestError(
            f"family '{family}' has no backbone with text scores, so no capability; give it scores"
        )
    question = Question.of(
        fit, list(names), volumes=1.0, recipe=None, kind="law", seed=seed, draws=None
    )  # fmt: skip
    variants = pd.Index(VARIANTS).get_indexer(backbones.loc[names, "variant"])
    return question.family_rates(("family", family)), variants, question.capability.T


def _at(
    fit: Fit, volume: float | None, rates: np.ndarray, cells: np.ndarray, S: np.ndarray
) -> dict[str, np.ndarray]:
    """Quantities (sample,) of rates (rate, sample, variant), for backbones of given variants and S."""
    middle = dict(zip(RATES, np.sqrt(rates[..., 0] * rates[..., 1])))
    middle["A"] = middle["A"] - middle["Bm"] * stated_log_volume(fit, volume)
    _, B0, Bm = rates[:, :, cells]
    return {**middle, "mean_B": (B0 - Bm * S).mean(1)}


def compare_positions(
    fit: Fit,
    families: list[str] | None = None,
    *,
    volume: float | None = None,
    prob: float = 0.9,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare families with the population, and with what their own runs say without pooling.

    Parameters
    ----------
    fit, families, volume, seed
        As for `position_draws`.
    prob : float
        Probability of the equal-tailed intervals.

    Returns
    -------
    DataFrame, one row a family and quantity
        ``family``, ``mode``, ``quantity``, ``backbones`` and ``runs`` that inform the fit; ``mean``, ``sd``
        and interval (``posterior_90_lower``, …); ``population`` (mean of the population's median rate);
        ``difference_mean`` from it with ``difference_posterior_90_lower`` and ``…_upper``, ``p_greater``;
        ``separate``, ``separate_sd``, ``why_code`` and ``why_none`` from `bayescdm.compare.separate_rates`;
        ``shrinkage``: the share of the way from the separate estimate to the population that pooling has gone
        (1: all of it; outside 0 to 1 where other families moved the estimate as well).

    Raises
    ------
    NotFoundError, RequestError
        As for `position_draws`.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.compare_positions(fit, ["Phi"])[["quantity", "mean", "separate", "shrinkage"]]  # doctest: +SKIP
    """
    draws = position_draws(fit, families, volume=volume, seed=seed)
    names = draws["family"].to_numpy()
    counts = informing_counts(fit).reindex(names, fill_value=0)
    tables = []
    for quantity in QUANTITIES:
        values = draws[quantity].transpose("sample", "family").to_numpy()
        population = draws[f"population_{quantity}"].transpose("sample", "family").to_numpy()
        margin = values - population
        columns = {
            **summarised(values, "posterior", prob),
            "population": population.mean(0),
            "difference_mean": margin.mean(0),
            **interval(margin, "posterior", prob, of="difference"),
            "p_greater": greater(margin),
        }
        labels = {
            "family": names,
            "mode": draws["mode"].to_numpy(),
            "quantity": quantity,
            "backbones": counts["backbones"].to_numpy(),
            "runs": counts["runs"].to_numpy(),
        }
        tables.append(pd.DataFrame({**labels, **columns}))
    table = pd.concat(tables, ignore_index=True)
    table = table.merge(separate_rates(fit, volume=volume), on=["family", "quantity"], how="left")
    table["why_code"] = table["why_code"].fillna("no-run")
    table["why_none"] = table["why_none"].fillna("no run of the family informs the fit")
    way = table["population"] - table["separate"]
    table["shrinkage"] = ((table["mean"] - table["separate"]) / way).where(way.abs() > 1e-12)
    order = {name: position for position, name in enumerate(names)}
    table = table.sort_values("family", key=lambda f: f.map(order), kind="stable", ignore_index=True)
    table.attrs = {**fit.facts(), "kind": "posterior", "prob": prob, "volume": draws.attrs["volume"]}
    return table


def nearest_families(
    fit: Fit,
    family: str,
    *,
    volume: float | None = None,
    prob: float = 0.9,
    equivalent: float = EQUIVALENT,
    seed: int = 0,
) -> pd.DataFrame:
    """Compare one family with every other that has runs, the nearest first, in accuracy points.

    Parameters
    ----------
    fit : Fit
    family : str
        Any family of the study with text scores.
    volume, prob, seed
        As for `compare_positions`.
    equivalent : float
        Accuracy within which two families count as practically equal, a fraction.

    Returns
    -------
    DataFrame, one row another family
        ``family``, ``runs``; ``p_A_greater`` and ``p_mean_B_greater``, the probabilities that the family
        asked about exceeds it; ``transfer_mean`` with ``transfer_posterior_90_lower`` and ``…_upper``: by how
        much more accuracy the asked family gains than this one from a weak backbone to a strong one (from
        the 10 % to the 90 % quantile of S over backbones with runs); ``absorption_mean`` with its interval:
        by how much more it gains from ten times the data; ``p_equivalent``, the probability that both
        differences are smaller than `equivalent`; ``distance``, the length of the two mean differences.

    Raises
    ------
    NotFoundError, RequestError
        As for `position_draws`.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.nearest_families(fit, "Qwen2.5").iloc[0]["family"]  # doctest: +SKIP
    """
    if not 0 < equivalent < 1:
        raise RequestError(f"equivalence {equivalent:g} is no accuracy between 0 and 1; 0.01 is one point")
    law = LawDraws.of(fit)
    others = [name for name in law.families if name != family]
    draws = position_draws(fit, [family, *others], volume=volume, seed=seed)
    step = float(np.subtract(*np.quantile(_observed_capability(law), STEP[::-1])))
    margins = {}
    for name, scale in (("A", step), ("mean_B", np.log(10))):
        values = draws[name].transpose("sample", "family").to_numpy()
        margins[name] = (values[:, [0]] - values[:, 1:]) * scale
    transfer, absorption = margins["A"], margins["mean_B"]
    near = (np.abs(transfer) < equivalent) & (np.abs(absorption) < equivalent)
    table = pd.DataFrame(
        {
            "family": others,
            "runs": informing_counts(fit)["runs"].reindex(others, fill_value=0).to_numpy(),
            "p_A_greater": greater(transfer),
            "p_mean_B_greater": greater(absorption),
            "transfer_mean": transfer.mean(0),
            **interval(transfer, "posterior", prob, of="transfer"),
            "absorption_mean": absorption.mean(0),
            **interval(absorption, "posterior", prob, of="absorption"),
            "p_equivalent": near.mean(0),
            "distance": np.hypot(transfer.mean(0), absorption.mean(0)),
        }
    )
    table = table.sort_values("distance", kind="stable", ignore_index=True)
    table.attrs = {
        **fit.facts(),
        "kind": "posterior",
        "prob": prob,
        "volume": draws.attrs["volume"],
        "family": family,
        "equivalent": equivalent,
        "capability_step": step,
    }
    return table


def _observed_capability(law: LawDraws) -> np.ndarray:
    """Posterior mean S of the backbones with runs."""
    return law["S"][:, law.positions("backbone", law.backbones)].mean(0)
