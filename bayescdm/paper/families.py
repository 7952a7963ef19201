"""Families as in Table 3: separate, pooled and partially pooled estimates side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayescdm.compare.families import compare_families, stated_log_volume
from bayescdm.compare.separate import FEWEST_BACKBONES, separate_rates
from bayescdm.datasets import paper_table
from bayescdm.errors import ModelError
from bayescdm.pointfit import point_fit, variable_projection
from bayescdm.predict import LawDraws
from bayescdm.predict.law import RATES
from bayescdm.simulate.paper import TABLE_3_FAMILIES
from bayescdm.study import VARIANTS, Study

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["family_estimates"]


def family_estimates(
    fit: Fit, pooled: Fit | None = None, *, volume: float | None = None, prob: float = 0.9
) -> pd.DataFrame:
    """Set each family's rates side by side: separate, partially pooled, and pooled.

    Parameters
    ----------
    fit : Fit
        Partially pooled.
    pooled : Fit, optional
        Of the paper's law; its posterior means are the pooled column then, instead of the point fit's.
    volume : float, optional
        Where A is stated, in the study's unit; D_ref by default.
    prob : float
        Probability of the equal-tailed interval.

    Returns
    -------
    DataFrame, one row a family and quantity
        ``family``, ``quantity`` (``A``, ``B0``, ``Bm``, ``mean_B``), ``backbones``, ``runs``; ``separate``
        and ``separate_sd``, least squares on the family's own runs (``why_none``: why there is none, see
        `bayescdm.separate_rates`); ``point``, the paper's objective on them; ``pooled``, one law for all;
        ``mean``, ``sd`` and interval of the partially pooled posterior; ``prior_sd_ratio``, its sd over the
        prior's, near 1 where the runs say little (absent where the fit has no prior draws);
        ``shrinkage``, how far the posterior mean lies from the separate estimate (0) towards the pooled one
        (1), NaN where those agree within the separate estimate's error; ``published`` (Table 3; NaN where
        it has no such family); ``true`` of a simulated study.

    Raises
    ------
    ModelError
        The fit's model is not a transfer model, or has one set of rates for all families.

    Notes
    -----
    Table 3 of arXiv 2608.00013 has separate fits. Its unit of D is not printed: A can be compared only as far
    as D_ref is near it; B0, Bm and mean B do not depend on the unit.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> cdm.family_estimates(cdm.fit("simulated-paper")).query("quantity == 'A'")  # doctest: +SKIP
    """
    check_varied(fit)
    table = compare_families(fit, volume=volume, prob=prob)
    separate = separate_rates(fit, volume=volume).set_index(["family", "quantity"]).loc[_keys(table)]
    shift = stated_log_volume(fit, volume)
    together = _pooled(fit, pooled, shift)
    table = table.assign(
        separate=separate["separate"].to_numpy(),
        separate_sd=separate["separate_sd"].to_numpy(),
        why_none=separate["why_none"].to_numpy(),
        point=np.where(separate["why_none"] == "", _point_fits(fit, table, shift), np.nan),
        pooled=[together[quantity].get(family, np.nan) for family, quantity in _keys(table)],
    )
    distance = table["pooled"] - table["separate"]
    clear = distance.abs() > table["separate_sd"]
    table["shrinkage"] = ((table["mean"] - table["separate"]) / distance).where(clear)
    table["published"] = _published(table)
    table["true"] = _true(fit.study, table, shift)
    first = [
        "family",
        "quantity",
        "backbones",
        "runs",
        "separate",
        "separate_sd",
        "why_none",
        "point",
        "pooled",
    ]
    last = ["shrinkage", "published", "true"]
    middle = [column for column in table if column not in (*first, *last)]
    ordered = table[[*first, *middle, *last]]
    ordered.attrs = dict(table.attrs)
    return ordered


def check_varied(fit: Fit) -> None:
    """Raise a ModelError for a model in which all families and both variants have the same rates."""
    law = LawDraws.of(fit)
    if not any((law[rate] != law[rate][:, :1, :1]).any() for rate in RATES):
        raise ModelError(
            f"model '{fit.model}' has one set of rates for all families: give a partially pooled fit"
        )


def _keys(table: pd.DataFrame) -> list[tuple[str, str]]:
    return list(zip(table["family"], table["quantity"]))


def _pooled(fit: Fit, pooled: Fit | None, shift: float) -> dict[str, dict[str, float]]:
    """Rates of one law for all, by quantity and family."""
    law = LawDraws.of(fit)
    families, names = law.labels["family"], law.backbones
    of_family = fit.study.backbones.loc[names, "family"]
    if pooled is None:
        runs = fit.group("constant_data")["run"].to_numpy()[fit.group("constant_data")["weight"] > 0]
        point = point_fit(fit.study.select_runs([str(run) for run in runs]), fit.capability)
        A, B0, Bm, B = point.A, point.B0, point.Bm, point.B.loc[names]
    else:
        other = LawDraws.of(pooled)
        A, B0, Bm = (float(other[rate].mean()) for rate in ("A", "B0", "Bm"))
        S = pd.Series(other["S"].mean(0), other.labels["backbone"])
        B = B0 - Bm * S.loc[names]
    return {
        "A": dict.fromkeys(families, A - Bm * shift),
        "B0": dict.fromkeys(families, B0),
        "Bm": dict.fromkeys(families, Bm),
        "mean_B": B.groupby(of_family).mean().to_dict(),
    }


def _point_fits(fit: Fit, table: pd.DataFrame, shift: float) -> list[float]:
    """Rates by the paper's objective on each family's runs, with the posterior mean capability as given."""
    law, constant = LawDraws.of(fit), fit.group("constant_data")
    informing = constant["weight"].to_numpy() > 0
    S = law["S"].mean(0)
    names = fit.study.fitted_runs["backbone"].to_numpy()
    family = fit.study.backbones.loc[names, "family"].to_numpy()
    recipes = pd.factorize(fit.study.fitted_runs["recipe"])[0]
    rates: dict[tuple[str, str], float] = {}
    for name in table["family"].unique():
        own = informing & (family == name)
        if len(set(names[own])) < FEWEST_BACKBONES:
            continue
        found = variable_projection(
            S[:, None],
            constant["backbone_of_run"].to_numpy()[own],
            constant["log_volume"].to_numpy()[own],
            fit.study.fitted_runs["accuracy"].to_numpy(float)[own],
            pd.factorize(recipes[own])[0],
        )
        # With one column the direction is a sign: capability may count against a family in its own runs.
        sign = float(found.w[0])
        own_S = S[law.positions("backbone", pd.unique(names[own]))].mean()
        values = {
            "A": sign * (found.A - found.Bm * shift),
            "B0": found.B0,
            "Bm": sign * found.Bm,
            "mean_B": found.B0 - sign * found.Bm * own_S,
        }
        needs = {"A": {"A"}, "B0": {"B0"}, "Bm": {"Bm"}, "mean_B": {"B0", "Bm"}}
        for quantity, value in values.items():
            if not needs[quantity] & set(found.unidentified):
                rates[name, quantity] = float(value)
    return [rates.get(key, np.nan) for key in _keys(table)]


def _published(table: pd.DataFrame) -> list[float]:
    """Rates of Table 3, where it has the family."""
    rates = paper_table("rates_by_family").replace({"family": TABLE_3_FAMILIES}).set_index("family")
    return [float(rates.at[f, q]) if f in rates.index else np.nan for f, q in _keys(table)]


def _true(study: Study, table: pd.DataFrame, shift: float) -> list[float]:
    """True rates of a simulated study: geometric means over variants, as the table has them."""
    truth = study.truth
    if not truth:
        return [np.nan] * len(table)
    B = pd.Series(truth["B"]).loc[study.fitted_runs["backbone"].unique()]
    mean_B = B.groupby(study.backbones.loc[B.index, "family"]).mean()
    values = []
    for family, quantity in _keys(table):
        if quantity == "mean_B":
            values.append(float(mean_B[family]))
            continue
        middle = {rate: _middle(truth[rate][family]) for rate in ("A", "B0", "Bm")}
        values.append(middle["A"] - middle["Bm"] * shift if quantity == "A" else middle[quantity])
    return values


def _middle(cell: dict[str, float]) -> float:
    """Geometric mean of a family's base and instruct rates."""
    return float(np.sqrt(cell[VARIANTS[0]] * cell[VARIANTS[1]]))
