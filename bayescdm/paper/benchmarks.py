"""Transfer coefficients by category, with subsets merged, and which published claims survive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayescdm.compare.benchmarks import coefficient_draws
from bayescdm.compare.tables import interval, summarised
from bayescdm.datasets import paper_table
from bayescdm.paper.claims import verdicts

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = [
    "OTHER",
    "coefficient_claims",
    "coefficients_by_category",
    "merged_coefficients",
]

#: Category of text benchmarks that the paper's Table 5 does not have.
OTHER = "other"
#: Collections whose benchmarks are subsets of one.
MERGED = ("MMLU",)
#: A true λ that is no larger is 0: neither claim holds or fails.
NO_LAMBDA = 1e-9
#: One benchmark under two names.
SUBSETS = {"proofwriter_cwa": "proofwriter", "proofwriter_owa": "proofwriter"}


def coefficients_by_category(fit: Fit, *, prob: float = 0.9) -> pd.DataFrame:
    """Transfer coefficient λ of every text benchmark and of merged subsets, grouped by category.

    Parameters
    ----------
    fit : Fit
    prob : float
        Probability of the equal-tailed intervals.

    Returns
    -------
    DataFrame, one row a benchmark
        ``category`` (``other`` where the paper's Table 5 has none), ``benchmark`` (all subsets of MMLU are
        one, ``MMLU``), ``subsets`` (how many), ``mean``, ``sd``, interval, ``p_tax`` = P(λ < 0);
        ``published`` λ of Table 7 (mean over merged subsets; NaN where it has none) and
        ``published_at_our_length``, the same times the ratio of lengths. Categories by their mean λ, largest
        first, and so within.

    Notes
    -----
    Lengths differ: ours have Σ λ² = 1 over the benchmarks of the study, the paper's over its more than 200,
    of which Table 7 lists 40. Only ``published_at_our_length`` compares with ``mean``. The λ of merged
    subsets is the mean of theirs in each draw: what one point more in every subset adds, for each of them.
    Table 7 of arXiv 2608.00013; λ > 0 and A > 0 together make a transfer, λ < 0 a tax.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> cdm.coefficients_by_category(cdm.fit("simulated-paper"))  # doctest: +SKIP
    """
    values, labels = merged_coefficients(fit)
    table = pd.DataFrame(
        {
            **labels,
            **summarised(values, "posterior", prob),
            "p_tax": (values < 0).mean(0),
            "published": labels["published"],
        }
    )
    table = table[[c for c in table if c != "published"] + ["published"]]
    table["published_at_our_length"] = table["published"] / length_ratio(fit)
    of_category = table.groupby("category")["mean"].transform("mean")
    order = np.lexsort((-table["mean"], table["category"], -of_category))
    table = table.iloc[order].reset_index(drop=True)
    table.attrs = {**fit.facts(), "kind": "posterior", "prob": prob}
    return table


def coefficient_claims(fit: Fit, *, prob: float = 0.9) -> pd.DataFrame:
    """Say which claims of Table 7 survive their uncertainty: for each benchmark, transfer or tax.

    Parameters
    ----------
    fit : Fit
        Of a study with text benchmarks of the paper.
    prob : float
        A claim survives when its probability is at least this; it is refuted when that of its contrary is.

    Returns
    -------
    DataFrame, one row a benchmark of Table 7 that the study has, largest published |λ| first
        ``benchmark``, ``category``, ``claim`` (``positive`` or ``tax``), ``published`` and
        ``published_at_our_length`` (times the ratio of lengths), ``mean``, interval,
        ``p_claim``, ``p_tax``, ``verdict`` (``survives``, ``undecided`` or ``refuted``); ``true`` λ of a
        simulated study, and ``holds`` (1 where the claim is true of it), NaN of a real one.

    Notes
    -----
    Intervals are those of `bayescdm.transfer_coefficients`: few backbones determine the components, and what
    they leave open is in them. Signs, and so the verdicts, do not depend on the length of λ.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> cdm.coefficient_claims(cdm.fit("simulated-paper"))["verdict"].value_counts()  # doctest: +SKIP
    """
    published = paper_table("transfer_coefficients").set_index("benchmark")
    categories = paper_table("text_benchmarks").set_index("benchmark")["category"]
    names = [name for name in fit.capability.benchmarks if name in published.index]
    values = coefficient_draws(fit)[:, fit.capability.benchmarks.get_indexer(pd.Index(names, dtype=object))]
    claims = published.loc[names]
    p_tax = (values < 0).mean(0)
    p_claim = np.where(claims["regime"] == "tax", p_tax, 1 - p_tax)
    true = np.array([fit.study.truth.get("lambda", {}).get(name, np.nan) for name in names], float)
    holds = np.where(claims["regime"] == "tax", true < 0, true > 0).astype(float)
    table = pd.DataFrame(
        {
            "benchmark": names,
            "category": categories.reindex(names).to_numpy(),
            "claim": claims["regime"].to_numpy(),
            "published": claims["lambda"].to_numpy(float),
            "published_at_our_length": claims["lambda"].to_numpy(float) / length_ratio(fit),
            "mean": values.mean(0),
            **interval(values, "posterior", prob),
            "p_claim": p_claim,
            "p_tax": p_tax,
            "verdict": verdicts(p_claim, prob).astype(object),
            "true": true,
            "holds": np.where(np.abs(true) > NO_LAMBDA, holds, np.nan),
        }
    )
    order = np.argsort(-table["published"].abs().to_numpy(), kind="stable")
    table = table.iloc[order].reset_index(drop=True)
    table.attrs = {**fit.facts(), "kind": "posterior", "prob": prob}
    return table


def length_ratio(fit: Fit) -> float:
    """Length of the published λ over that of our means, on the benchmarks that both have; NaN if none."""
    published = paper_table("transfer_coefficients").set_index("benchmark")["lambda"]
    own = pd.Series(coefficient_draws(fit).mean(0), fit.capability.benchmarks.to_numpy(object))
    both = own.index.intersection(published.index)
    length = float(np.linalg.norm(own.loc[both]))
    return float(np.linalg.norm(published.loc[both])) / length if length else float("nan")


def merged_coefficients(fit: Fit) -> tuple[np.ndarray, pd.DataFrame]:
    """Draws of λ with subsets merged, (sample, benchmark), and what each column is."""
    values = coefficient_draws(fit)
    known = paper_table("text_benchmarks").set_index("benchmark")
    published = paper_table("transfer_coefficients").set_index("benchmark")["lambda"]
    rows = pd.DataFrame({"part": fit.capability.benchmarks.to_numpy(object)})
    rows["category"] = known["category"].reindex(rows["part"]).fillna(OTHER).to_numpy()
    collection = known["collection"].reindex(rows["part"]).to_numpy()
    merged = pd.Series(collection, dtype=object).where(np.isin(collection, MERGED))
    merged = merged.fillna(rows["part"].map(SUBSETS))
    rows["benchmark"] = merged.fillna(rows["part"])
    rows["published"] = published.reindex(rows["part"]).to_numpy()
    groups = rows.groupby("benchmark", sort=False)
    columns = [values[:, list(index)].mean(1) for index in groups.groups.values()]
    labels = groups.agg(
        category=("category", "first"), subsets=("part", "size"), published=("published", "mean")
    )
    labels = labels.reset_index()[["category", "benchmark", "subsets", "published"]]
    return np.stack(columns, axis=1), labels
