"""Base against Instruct: the probability of each published claim, and the volume at which Base overtakes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayescdm.compare.families import ALL_FAMILIES, population_rate, stated_volume
from bayescdm.compare.tables import single_interval
from bayescdm.datasets import paper_table
from bayescdm.errors import ModelError, RequestError
from bayescdm.intervals import check_probability
from bayescdm.paper.claims import verdicts
from bayescdm.predict import LawDraws
from bayescdm.predict.law import RATES
from bayescdm.study import VARIANTS, Study

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["overtaking_volume", "population_draws", "true_rates", "variant_claims", "variant_rates"]

#: Quantity → what section 4.2 claims of instruct against base.
CLAIMS = {
    "A": ("A of instruct > A of base", "instruct"),
    "Bm": ("Bm of instruct > Bm of base", "instruct"),
    "mean_B": ("mean B of base > mean B of instruct", "base"),
}
#: Share of draws that must cross within the observed volumes before a volume is stated.
FEWEST_CROSSINGS = 0.1


def variant_claims(fit: Fit, *, prob: float = 0.9) -> pd.DataFrame:
    """Probability of each claim of section 4.2 about Base and Instruct.

    Parameters
    ----------
    fit : Fit
        Of a model whose rates differ by variant.
    prob : float
        Probability of the equal-tailed intervals, and at least which a claim survives.

    Returns
    -------
    DataFrame, one row a claim
        ``claim``, ``quantity``, ``base`` and ``instruct`` (posterior means of the population; mean B: mean
        over the backbones of the fit), ``published_base`` and ``published_instruct`` (Table 2),
        ``difference_mean`` (instruct − base) with its interval, ``p_claim``, ``verdict`` (``survives``,
        ``undecided``, ``refuted``); of a simulated study ``true_base``, ``true_instruct`` and ``holds`` (1
        where the claim is true of it), NaN of a real one.

    Raises
    ------
    ModelError
        The model has no population of families, or the same rates for base and instruct.

    Notes
    -----
    A and Bm are those of a typical family; A is stated at D_ref. The paper's mean B is over the backbones
    of a separate fit, so it contains that instruct models have other capabilities than base ones; so does
    this. Section 4.2 and Table 2 of arXiv 2608.00013.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> cdm.variant_claims(cdm.fit("simulated-paper"))[["claim", "p_claim"]]  # doctest: +SKIP
    """
    check_probability(prob)
    draws = population_draws(fit)
    published = paper_table("rates_by_variant").set_index("variant")
    truth = true_rates(fit.study, list(LawDraws.of(fit).backbones))
    rows = []
    for quantity, (claim, greater) in CLAIMS.items():
        base, instruct = draws[quantity].T
        sign = 1 if greater == "instruct" else -1
        p = float((sign * (instruct - base) > 0).mean())
        true_base, true_instruct = truth[quantity]
        known = np.isfinite([true_base, true_instruct]).all()
        rows.append(
            {
                "claim": claim,
                "quantity": quantity,
                "base": float(base.mean()),
                "instruct": float(instruct.mean()),
                "published_base": float(published.at["base", quantity]),
                "published_instruct": float(published.at["instruct", quantity]),
                "difference_mean": float((instruct - base).mean()),
                **single_interval(instruct - base, "posterior", prob, of="difference"),
                "p_claim": p,
                "verdict": str(verdicts(p, prob)),
                "true_base": true_base,
                "true_instruct": true_instruct,
                "holds": float(sign * (true_instruct - true_base) > 0) if known else np.nan,
            }
        )
    table = pd.DataFrame(rows)
    table.attrs = {**fit.facts(), "kind": "posterior", "prob": prob, "volume": stated_volume(fit, None)}
    return table


def overtaking_volume(
    fit: Fit, *, capabilities: Sequence[float] | None = None, prob: float = 0.9
) -> pd.DataFrame:
    """Say where Base is ahead of Instruct at equal capability, and at which observed volume it overtakes.

    Parameters
    ----------
    fit : Fit
        Of a model whose rates differ by variant.
    capabilities : sequence of float, optional
        Values of S; by default the 10, 50 and 90 % points of the fit's backbones.
    prob : float
        Probability of the equal-tailed interval.

    Returns
    -------
    DataFrame, one row a value of S
        ``S``; ``p_ahead_at_smallest`` and ``p_ahead_at_largest``, the probability that base is ahead at the
        smallest and the largest observed volume; ``p_overtakes``, that it is behind at the smallest and ahead
        at the largest; ``p_falls_behind``, the contrary; ``p_gains``, that base gains on instruct with
        volume. ``median`` and interval of the volume at which base overtakes, in the study's unit, given that
        it does between those two; NaN where fewer than a tenth of the draws do. Of a simulated study
        ``true_ahead_at_smallest``, ``true_ahead_at_largest`` (1 where base is ahead in truth) and
        ``true_volume`` (NaN outside the observed volumes); NaN of a real one.

    Raises
    ------
    ModelError
        The model has no population of families, or the same rates for base and instruct.
    RequestError
        A value of S is not finite, there is none, or no run has a known volume.

    Notes
    -----
    With Δ = instruct − base of a typical family, instruct is ahead by ΔA·S + (ΔB0 − ΔBm·S)·ln(D/D_ref): base
    overtakes at ln(D/D_ref) = −ΔA·S / (ΔB0 − ΔBm·S) where that slope is negative. Both variants share the
    baseline, so that they are equal at S = 0 and D_ref whatever the data say: near S = 0 the crossing lies
    near D_ref by construction. No volume outside the observed ones is stated, since a ratio of two small
    differences goes anywhere. Section 4.2 of arXiv 2608.00013 says that base wins at large volumes and high
    capability, without a volume.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> cdm.overtaking_volume(cdm.fit("simulated-paper"))  # doctest: +SKIP
    """
    check_probability(prob)
    law = LawDraws.of(fit)
    delta = {rate: values[:, 1] - values[:, 0] for rate, values in variant_rates(fit).items()}
    if capabilities is None:
        known = law["S"].mean(0)[law.positions("backbone", law.backbones)]
        capabilities = [float(value) for value in np.quantile(known, [0.1, 0.5, 0.9])]
    if not len(capabilities) or not np.isfinite(capabilities).all():
        raise RequestError(f"capabilities {list(capabilities)}: give one finite value of S at least")
    if not np.isfinite(law.volumes).all():
        raise RequestError("no run has a known volume: nothing is observed of what volume does")
    reference = stated_volume(fit, None)
    truth = true_rates(fit.study, list(law.backbones))
    true_delta = {rate: np.array([truth[rate][1] - truth[rate][0]]) for rate in RATES}
    rows = []
    for S in map(float, capabilities):
        first, last, gain, volume = _lead(delta, S, law.volumes, reference)
        overtakes = (first > 0) & (last < 0)
        crossings = volume[overtakes] if overtakes.mean() >= FEWEST_CROSSINGS else np.array([np.nan])
        true_first, true_last, _, true_volume = (
            float(value[0]) for value in _lead(true_delta, S, law.volumes, reference)
        )
        inside = true_first > 0 > true_last
        rows.append(
            {
                "S": S,
                "p_ahead_at_smallest": float((first < 0).mean()),
                "p_ahead_at_largest": float((last < 0).mean()),
                "p_overtakes": float(overtakes.mean()),
                "p_falls_behind": float(((first < 0) & (last > 0)).mean()),
                "p_gains": float((gain < 0).mean()),
                "median": float(np.median(crossings)),
                **single_interval(crossings, "posterior", prob),
                "true_ahead_at_smallest": float(true_first < 0) if np.isfinite(true_first) else np.nan,
                "true_ahead_at_largest": float(true_last < 0) if np.isfinite(true_last) else np.nan,
                "true_volume": true_volume if inside else np.nan,
            }
        )
    table = pd.DataFrame(rows)
    table.attrs = {**fit.facts(), "kind": "posterior", "prob": prob, "volumes": list(law.volumes)}
    table.attrs["family"] = ALL_FAMILIES
    return table


def variant_rates(fit: Fit, *, group: str = "posterior") -> dict[str, np.ndarray]:
    """A, B0 and Bm of a typical family by variant, each (sample, variant).

    Raises
    ------
    ModelError
        The model has no population of families, or the same rates for base and instruct.
    """
    law = LawDraws.of(fit, group=group)
    rates = {rate: population_rate(law, rate) for rate in RATES}
    if not any(np.diff(values).any() for values in rates.values()):
        raise ModelError(
            f"model '{fit.model}' has the same rates for base and instruct: nothing to say of a claim on them"
        )
    return rates


def _lead(
    delta: dict[str, np.ndarray], S: float, volumes: tuple[float, float], reference: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lead of instruct at two volumes, its slope in ln D, and the volume where it is 0, (sample,) each."""
    gap, gain = delta["A"] * S, delta["B0"] - delta["Bm"] * S
    first, last = (gap + gain * np.log(at / reference) for at in volumes)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return first, last, gain, reference * np.exp(-gap / gain)


def population_draws(fit: Fit, *, group: str = "posterior") -> dict[str, np.ndarray]:
    """Rates of a typical family and mean B of the backbones, each (sample, variant)."""
    law = LawDraws.of(fit, group=group)
    draws = variant_rates(fit, group=group)
    names = law.backbones
    labels = fit.study.backbones.loc[names]
    family, at = law.positions("family", labels["family"]), law.positions("backbone", names)
    variant = pd.Index(VARIANTS).get_indexer(labels["variant"])
    B = law["B0"][:, family, variant] - law["Bm"][:, family, variant] * law["S"][:, at]
    means = [B[:, variant == v].mean(1) if (variant == v).any() else np.nan * B[:, 0] for v in (0, 1)]
    return {**draws, "mean_B": np.stack(means, axis=1)}


def true_rates(study: Study, backbones: list[str]) -> dict[str, tuple[float, float]]:
    """What is true of a simulated study by quantity, (base, instruct); NaN of a real one."""
    truth = study.truth
    if not truth:
        return dict.fromkeys((*RATES, "mean_B"), (np.nan, np.nan))
    cells = study.backbones.loc[backbones]
    values: dict[str, tuple[float, float]] = {}
    for rate in RATES:
        if f"{rate}_population" in truth:
            half = 0.5 * truth[f"{rate}_contrast"]
            middle = truth[f"{rate}_population"]
            values[rate] = (middle * np.exp(-half), middle * np.exp(half))
        else:
            used = [truth[rate][family] for family in sorted(cells["family"].unique())]
            logs = np.log([[cell[v] for v in VARIANTS] for cell in used])
            values[rate] = tuple(float(x) for x in np.exp(logs.mean(0)))  # type: ignore[assignment]
    B = pd.Series(truth["B"]).loc[backbones]
    by_variant = B.groupby(cells["variant"]).mean().reindex(VARIANTS)
    values["mean_B"] = (float(by_variant["base"]), float(by_variant["instruct"]))
    return values
