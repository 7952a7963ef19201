"""How the tables of predictions and comparisons are laid out for readers, on the page and in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from bayescdm.intervals import PredictionKind, interval_columns
from bayescdm.tables import Column
from bayescdm.wording import interval_label, points

__all__ = [
    "MODEL_COLUMNS",
    "benchmark_columns",
    "by_family",
    "choice_columns",
    "difference_columns",
    "family_backbone_columns",
    "family_columns",
    "nearest_columns",
    "next_run_columns",
    "option_columns",
    "pair_columns",
    "position_columns",
    "prediction_columns",
    "ranking_columns",
    "run_columns",
    "text_score_columns",
    "trajectory_columns",
    "variant_columns",
]

#: Quantities of a family and how they are titled.
RATES = {"A": "A", "B0": "B0", "Bm": "Bm", "mean_B": "mean B"}

#: Columns of `bayescdm.compare.compare_models`.
MODEL_COLUMNS = (
    Column("model", "model"),
    Column("elpd", "elpd", "number"),
    Column("its standard error", "elpd_se", "number"),
    Column("difference", "elpd_difference", "number"),
    Column("standard error of it", "elpd_difference_se", "number"),
    Column("effective parameters", "p_loo", "number"),
    Column("bad Pareto k", "pareto_k_bad", "integer"),
    Column("largest Pareto k", "pareto_k_max", "number"),
)


def ranking_columns(kind: PredictionKind, prob: float) -> list[Column]:
    """Columns of `bayescdm.compare.rank_backbones`, and of `bayescdm.report.Answer.ranking`.

    Parameters
    ----------
    kind, prob
        As the table was made with.

    Returns
    -------
    list of Column
    """
    label = interval_label(kind, prob)
    return [
        Column("backbone", "backbone"),
        Column("accuracy, %", "mean", "percent"),
        Column(label, interval_columns(kind, prob), "percent"),
        Column("P(best)", "p_best", "probability"),
        Column("P(top 3)", "p_top_3", "probability"),
        Column("P(first is better)", "p_first_better", "probability"),
        Column("regret, points", "expected_regret", "points"),
        Column("expected rank", "expected_rank", "number"),
        Column(f"rank, {label}", interval_columns(kind, prob, of="rank"), "integer"),
        Column("what is known of it", "mode"),
        Column("extrapolation", "extrapolation"),
        Column("beyond the recipe's runs", "beyond_recipe"),
    ]


#: Of a candidate, over all volumes that were weighed; an option itself is on the front or not.
FRONT = "an option on the front"


def choice_columns(kind: PredictionKind, prob: float, cost_unit: str) -> list[Column]:
    """Columns of `bayescdm.decide.Choice.shown_ranking`.

    Parameters
    ----------
    kind, prob
        As the table was made with.
    cost_unit : str

    Returns
    -------
    list of Column
    """
    ranked = ranking_columns(kind, prob)
    own = [
        Column("volume", "volume", "count"),
        _cost_column(cost_unit),
    ]
    certain = {"p_best": "alone", "p_top_3": "at_most_3"}
    ranked = [replace(c, exact=certain.get(str(c.source), "")) for c in ranked]
    last = [Column(FRONT, "front"), Column("text scores that are missing", "missing")]
    return [*ranked[:3], *own, *ranked[3:], *last]


def _cost_column(cost_unit: str) -> Column:
    return Column(cost_unit, "cost", "count" if cost_unit == "active parameters" else "number")


def option_columns(kind: PredictionKind, prob: float, cost_unit: str) -> list[Column]:
    """Columns of the options of a `bayescdm.decide.Choice`.

    Parameters
    ----------
    kind, prob, cost_unit
        As for `choice_columns`.

    Returns
    -------
    list of Column
    """
    by_title = {column.title: column for column in choice_columns(kind, prob, cost_unit)}
    shown = ("backbone", "volume", cost_unit, "accuracy, %", interval_label(kind, prob))
    return [*(by_title[title] for title in shown), Column("on the front", "front")]


def difference_columns(kind: PredictionKind, prob: float, equivalent: float) -> list[Column]:
    """Columns of `bayescdm.decide.Choice.shown_differences`.

    Parameters
    ----------
    kind, prob
        As the table was made with.
    equivalent : float
        What counts as practically equal, a fraction.

    Returns
    -------
    list of Column
    """
    within = points(equivalent)
    return [
        Column("backbone", "backbone"),
        Column("difference, points", "mean", "points"),
        Column(f"difference, {interval_label(kind, prob)}", interval_columns(kind, prob), "points"),
        Column("P(better)", "p_greater", "probability"),
        Column(f"P(equal, within {within})", "p_equivalent", "probability", "same"),
        Column(f"P(better by more than {within})", "p_better", "probability", "same"),
        Column(f"P(worse by more than {within})", "p_worse", "probability", "same"),
        Column("verdict", "verdict"),
    ]


def next_run_columns(cost_unit: str) -> list[Column]:
    """Columns of the next runs of a `bayescdm.decide.Choice`.

    Parameters
    ----------
    cost_unit : str

    Returns
    -------
    list of Column
    """
    return [
        Column("backbone of the run", "backbone"),
        Column("volume", "volume", "count"),
        Column("gain, points (EVSI)", "evsi", "fine_points"),
        Column("share of EVPI", "share_of_evpi", "probability"),
        Column("P(choice changes)", "p_change", "probability"),
        _cost_column(cost_unit),
    ]


def prediction_columns(kind: PredictionKind, prob: float) -> list[Column]:
    """Columns of `bayescdm.predict.prediction_table`.

    Parameters
    ----------
    kind, prob
        As the table was made with.

    Returns
    -------
    list of Column
    """
    return [
        Column("backbone", "backbone"),
        Column("volume", "volume", "count"),
        Column("accuracy, %", "mean", "percent"),
        Column(interval_label(kind, prob), interval_columns(kind, prob), "percent"),
        Column("what is known of it", "mode"),
        Column("extrapolation", "extrapolation"),
        Column("beyond the recipe's runs", "beyond_recipe"),
    ]


def by_family(rates: pd.DataFrame) -> pd.DataFrame:
    """Lay `bayescdm.compare.compare_families` out with one row a family, those with most runs first.

    Parameters
    ----------
    rates : DataFrame, one row a family and quantity

    Returns
    -------
    DataFrame
        ``family``, ``runs``, ``backbones`` and each other column once a quantity, such as ``mean_A``.
    """
    counts = rates.groupby("family")[["runs", "backbones"]].first()
    values = rates.drop(columns=["runs", "backbones"]).pivot(index="family", columns="quantity")
    values.columns = [f"{column}_{quantity}" for column, quantity in values.columns]
    wide = counts.join(values).reset_index()
    return wide.sort_values(["runs", "mean_A"], ascending=False, kind="stable", ignore_index=True)


def family_columns(
    rates: pd.DataFrame, prob: float, *, quantities: Sequence[str] = tuple(RATES), prior: bool = True
) -> list[Column]:
    """Columns of `by_family`.

    Parameters
    ----------
    rates : DataFrame
        From `bayescdm.compare.compare_families`.
    prob : float
        As the table was made with.
    quantities : sequence of str
        Which of ``A``, ``B0``, ``Bm`` and ``mean_B``.
    prior : bool
        Whether the ratio of posterior to prior sd is shown, where the table has it.

    Returns
    -------
    list of Column
    """
    lower, upper = interval_columns("posterior", prob)
    columns = [
        Column("family", "family"),
        Column("runs", "runs", "integer"),
        Column("backbones", "backbones", "integer"),
    ]
    for quantity in quantities:
        title = RATES[quantity]
        columns.append(Column(title, f"mean_{quantity}", "number"))
        ends = (f"{lower}_{quantity}", f"{upper}_{quantity}")
        columns.append(Column(f"{title}, {interval_label('posterior', prob)}", ends, "number"))
        if prior and "prior_sd_ratio" in rates:
            columns.append(Column(f"{title}, sd / prior sd", f"prior_sd_ratio_{quantity}", "number"))
    return columns


def variant_columns(variants: pd.DataFrame, prob: float) -> list[Column]:
    """Columns of `bayescdm.compare.compare_variants`.

    Parameters
    ----------
    variants : DataFrame
    prob : float
        As the table was made with.

    Returns
    -------
    list of Column
    """
    label = f"difference, {interval_label('posterior', prob)}"
    columns = [
        Column("family", "family"),
        Column("quantity", "quantity"),
        Column("base", "base", "number"),
        Column("instruct", "instruct", "number"),
        Column("instruct − base", "difference_mean", "number"),
        Column(label, interval_columns("posterior", prob, of="difference"), "number"),
        Column("P(instruct greater)", "p_instruct_greater", "probability"),
    ]
    if "prior_sd_ratio" in variants:
        columns.append(Column("sd / prior sd", "prior_sd_ratio", "number"))
    return columns


def benchmark_columns(coefficients: pd.DataFrame, prob: float) -> list[Column]:
    """Columns of `bayescdm.compare.transfer_coefficients`.

    Parameters
    ----------
    coefficients : DataFrame
    prob : float
        As the table was made with.

    Returns
    -------
    list of Column
    """
    columns = [
        Column("text benchmark", "benchmark"),
        Column("λ", "mean", "number"),
        Column(interval_label("posterior", prob), interval_columns("posterior", prob), "number"),
        Column("P(tax)", "p_tax", "probability"),
    ]
    if "prior_sd_ratio" in coefficients:
        columns.append(Column("sd / prior sd", "prior_sd_ratio", "number"))
    return columns


def position_columns(positions: pd.DataFrame, prob: float) -> list[Column]:
    """Columns of `bayescdm.compare.compare_positions`, of one family.

    Parameters
    ----------
    positions : DataFrame
    prob : float
        As the table was made with.

    Returns
    -------
    list of Column
    """
    label = interval_label("posterior", prob)
    columns = [
        Column("quantity", "quantity"),
        Column("mean", "mean", "number"),
        Column(label, interval_columns("posterior", prob), "number"),
        Column("population", "population", "number"),
        Column("difference", "difference_mean", "number"),
        Column(f"difference, {label}", interval_columns("posterior", prob, of="difference"), "number"),
        Column("P(above population)", "p_greater", "probability"),
        Column("own runs alone", "separate", "number"),
        Column("standard error", "separate_sd", "number"),
        Column("pooling, share of the way", "shrinkage", "number"),
        Column("why no estimate of its own", "why_none"),
    ]
    if "prior_sd_ratio" in positions:
        columns.insert(-1, Column("sd / prior sd", "prior_sd_ratio", "number"))
    return columns


def family_backbone_columns(kind: PredictionKind, prob: float) -> list[Column]:
    """Columns of the backbones of a `bayescdm.report.FamilyReport`.

    Parameters
    ----------
    kind, prob
        As the table was made with.

    Returns
    -------
    list of Column
    """
    label = interval_label(kind, prob)
    S = interval_columns("posterior", prob)
    return [
        Column("backbone", "backbone"),
        Column("variant", "variant"),
        Column("parameters", "params", "count"),
        Column("runs", "runs", "integer"),
        Column("S", "S_mean", "number"),
        Column(f"S, {interval_label('posterior', prob)}", (f"S_{S[0]}", f"S_{S[1]}"), "number"),
        Column("accuracy, %", "mean", "percent"),
        Column(label, interval_columns(kind, prob), "percent"),
        Column("P(best)", "p_best", "probability"),
        Column("what is known of it", "mode"),
        Column("extrapolation", "extrapolation"),
        Column("beyond the recipe's runs", "beyond_recipe"),
    ]


def run_columns(prob: float) -> list[Column]:
    """Columns of the runs of a `bayescdm.report.FamilyReport`.

    Parameters
    ----------
    prob : float
        As the table was made with.

    Returns
    -------
    list of Column
    """
    return [
        Column("run", "run"),
        Column("recipe", "recipe"),
        Column("backbone", "backbone"),
        Column("volume", "volume", "count"),
        Column("accuracy, %", "accuracy", "percent"),
        Column("mean of the law, %", "mean", "percent"),
        Column(interval_label("run", prob), interval_columns("run", prob), "percent"),
    ]


def trajectory_columns(prob: float) -> list[Column]:
    """Columns of the trajectories of a `bayescdm.report.FamilyReport`.

    Parameters
    ----------
    prob : float
        As the table was made with.

    Returns
    -------
    list of Column
    """
    return [
        Column("backbone", "backbone"),
        Column("volume", "volume", "count"),
        Column("accuracy, %", "mean", "percent"),
        Column(interval_label("law", prob), interval_columns("law", prob), "percent"),
        Column(interval_label("run", prob), interval_columns("run", prob), "percent"),
        Column("extrapolation", "extrapolation"),
        Column("beyond the recipe's runs", "beyond_recipe"),
    ]


def pair_columns(kind: PredictionKind, prob: float) -> list[Column]:
    """Columns of the pairs of a `bayescdm.report.FamilyReport`.

    Parameters
    ----------
    kind, prob
        As the table was made with.

    Returns
    -------
    list of Column
    """
    ends = interval_columns(kind, prob, of="difference")
    return [
        Column("base", "base"),
        Column("instruct", "instruct"),
        Column("volume", "volume", "count"),
        Column("instruct − base, points", "difference_mean", "points"),
        Column(f"difference, {interval_label(kind, prob)}", ends, "points"),
        Column("P(instruct better)", "p_instruct_greater", "probability"),
        Column("S, instruct − base", "S_difference", "number"),
    ]


def text_score_columns(prob: float) -> list[Column]:
    """Columns of the text scores of a `bayescdm.report.FamilyReport`.

    Parameters
    ----------
    prob : float
        As the table was made with.

    Returns
    -------
    list of Column
    """
    label = interval_label("posterior", prob)
    return [
        Column("backbone", "backbone"),
        Column("text benchmark", "benchmark"),
        Column("score, %", "score", "percent"),
        Column("mean of all, %", "population_mean", "percent"),
        Column("λ", "lambda_mean", "number"),
        Column("P(tax)", "p_tax", "probability"),
        Column("adds to S", "mean", "number"),
        Column(label, interval_columns("posterior", prob), "number"),
        Column("accuracy, points", "accuracy_mean", "points"),
        Column(f"accuracy, {label}", interval_columns("posterior", prob, of="accuracy"), "points"),
    ]


def nearest_columns(prob: float, equivalent: float) -> list[Column]:
    """Columns of `bayescdm.compare.nearest_families`.

    Parameters
    ----------
    prob : float
        As the table was made with.
    equivalent : float
        What counts as practically equal, in accuracy points.

    Returns
    -------
    list of Column
    """
    label = interval_label("posterior", prob)
    return [
        Column("other family", "family"),
        Column("runs", "runs", "integer"),
        Column("P(A greater)", "p_A_greater", "probability"),
        Column("P(mean B greater)", "p_mean_B_greater", "probability"),
        Column("transfer, points", "transfer_mean", "points"),
        Column(f"transfer, {label}", interval_columns("posterior", prob, of="transfer"), "points"),
        Column("absorption, points", "absorption_mean", "points"),
        Column(f"absorption, {label}", interval_columns("posterior", prob, of="absorption"), "points"),
        Column(f"P(equal, within {equivalent:g} points)", "p_equivalent", "probability"),
        Column("distance, points", "distance", "points"),
    ]
