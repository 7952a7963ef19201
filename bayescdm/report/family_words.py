"""What the tables of a family say, in sentences made from their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayescdm.compare.contributions import FAMILY_MEAN
from bayescdm.intervals import interval_columns
from bayescdm.report.family import SAME_SIZE
from bayescdm.tables import written
from bayescdm.wording import (
    and_more,
    counted,
    interval_label,
    percent,
    points,
    probability,
    short_by_name,
    short_count,
    short_names,
    signed_number,
    signed_points,
)

if TYPE_CHECKING:
    from bayescdm.report.family import FamilyReport

__all__ = [
    "backbones_in_words",
    "extrapolation_in_words",
    "nearest_in_words",
    "pairs_in_words",
    "position_in_words",
    "scores_in_words",
]

#: Names listed in a sentence before the rest is counted.
LISTED = 4


def position_in_words(report: FamilyReport) -> list[str]:
    """Where the family lies against the population, and what pooling has done to it."""
    rows = report.position.set_index("quantity")
    sentences = [] if report.converged else ["NOT CONVERGED: the draws cannot be trusted, nor what follows."]
    where = f"{short_count(report.question.volume)} {report.fit.study.volume_unit}"
    if not report.has_runs:
        sentences.append(
            f"No run of the study uses {report.family}: only the population of families speaks of it, and "
            "its rates are drawn from it."
        )
        sentences.append(
            f"At {where} its transfer rate is A = {_with_interval(rows.loc['A'], report)}, its mean "
            f"absorption rate B = {_with_interval(rows.loc['mean_B'], report)} per unit of ln D."
        )
        return sentences
    if not rows["difference_mean"].any():
        sentences.append(
            f"Model {report.fit.model} gives all families the same rates: at {where} A = "
            f"{_with_interval(rows.loc['A'], report)}, mean B = {_with_interval(rows.loc['mean_B'], report)} "
            "per unit of ln D."
        )
        return sentences
    transfer = _against_population(rows.loc["A"], report, "transfer rate", f"at {where} A = ")
    absorption = _against_population(rows.loc["mean_B"], report, "absorption rate", "mean B = ")
    return [*sentences, transfer, absorption, _shrinkage(rows.loc["A"], report)]


def _against_population(row: pd.Series, report: FamilyReport, what: str, symbol: str) -> str:
    p, prob = float(row["p_greater"]), report.question.prob
    numbers = f"{symbol}{_with_interval(row, report)} against {_number(row['population'])}"
    above = f"above the population's with probability {probability(p)}"
    if p >= prob:
        return f"{report.family} has a higher {what} than the population: {numbers}; {above}."
    if p <= 1 - prob:
        below = f"below the population's with probability {probability(1 - p)}"
        return f"{report.family} has a lower {what} than the population: {numbers}; {below}."
    return f"The data cannot tell the {what} of {report.family} from the population's: {numbers}; {above}."


def _shrinkage(row: pd.Series, report: FamilyReport) -> str:
    """What the family's own runs say, and how far pooling has moved it."""
    if row["why_none"]:
        return (
            f"Its own runs give no separate estimate of A ({row['why_none']}), so its place is the "
            "population's as far as its runs do not move it."
        )
    runs, backbones = counted(row["runs"], "run"), counted(row["backbones"], "backbone")
    own = f"{_number(row['separate'])} ± {_number(row['separate_sd'])} (standard error)"
    sentence = f"Without pooling, least squares on its {runs} on {backbones} puts A at {own}"
    share = float(row["shrinkage"])
    if 0 <= share <= 1:
        return f"{sentence}; pooling has moved it {share:.0%} of the way to the population.".replace(
            "%", " %"
        )
    return (
        f"{sentence}; the pooled estimate does not lie between that and the population's, because recipes "
        "and variants are weighed anew as well."
    )


def _with_interval(row: pd.Series, report: FamilyReport) -> str:
    low, high = interval_columns("posterior", report.question.prob)
    label = interval_label("posterior", report.question.prob)
    return f"{_number(row['mean'])} ({label} {_number(row[low])} to {_number(row[high])})"


def backbones_in_words(report: FamilyReport) -> list[str]:
    """How many of its backbones have runs, and which is expected highest."""
    table, question = report.backbones, report.question
    names = short_names(table["backbone"])
    used = int((table["runs"] > 0).sum())
    first = table.iloc[0]
    low, high = interval_columns(question.kind, question.prob)
    where = f"{question.recipe} at {short_count(question.volume)} {report.fit.study.volume_unit}"
    sentences = [
        f"{counted(len(table), 'backbone')} of {report.family} can be placed by the law, {used} of them with "
        f"{counted(len(report.runs), 'run')}.",
        f"For {where}, {names[0]} has the highest expected accuracy: {percent(first['mean'])} "
        f"({interval_label(question.kind, question.prob)} {percent(first[low])} to {percent(first[high])})",
    ]
    sentences[1] += (
        f"; it is the family's best with probability {probability(first['p_best'])}."
        if len(table) > 1
        else "."
    )
    here = report.runs[report.runs["recipe"] == question.recipe]
    if report.has_runs and here.empty:
        sentences.append(f"None of its runs is under {question.recipe}.")
    return sentences


def pairs_in_words(report: FamilyReport) -> list[str]:
    """Instruct against base at the asked volume: the pairs that the data tell apart, then the others."""
    pairs, question = report.pairs, report.question
    if pairs.empty:
        return [f"{report.family} has no base and instruct backbone of one size with text scores."]
    short, unit = _short(report), report.fit.study.volume_unit
    asked = pairs[pairs["volume"] == question.volume]
    told, untold = [], []
    for row in asked.to_dict("records"):
        p = row["p_instruct_greater"]
        if 1 - question.prob < p < question.prob:
            untold.append(
                f"{short[row['instruct']]} ({signed_points(row['difference_mean'])}, {probability(p)})"
            )
        else:
            told.append(_told_pair(row, report, short))
    where = f"{question.recipe} at {short_count(question.volume)} {unit}"
    sentences = [f"For {where}, each instruct backbone against the base one of its size:"] if told else []
    sentences += told
    if untold:
        sentences.append(
            f"For {where} the data cannot tell from its base {and_more(untold, LISTED)} with probability "
            f"{question.prob:g}; in parentheses instruct minus base, and the probability that it is better."
        )
    return sentences + _changing_sign(report, short)


def _told_pair(row: dict[Any, Any], report: FamilyReport, short: dict[str, str]) -> str:
    question = report.question
    low, high = interval_columns(question.kind, question.prob, of="difference")
    p = row["p_instruct_greater"]
    better = f"instruct is better with probability {probability(p)}"
    if p < 0.5:
        better = f"base is better with probability {probability(1 - p)}"
    return (
        f"{short[row['instruct']]} minus {short[row['base']]}: {signed_points(row['difference_mean'])} "
        f"({interval_label(question.kind, question.prob)} {signed_points(row[low], unit=False)} to "
        f"{signed_points(row[high])}); {better}."
    )


def _changing_sign(report: FamilyReport, short: dict[str, str]) -> list[str]:
    """Pairs whose mean difference is of one sign at the smallest volume and of the other at the largest."""
    ends = report.pairs.groupby("instruct", sort=False)["difference_mean"].agg(["first", "last"])
    names = [short[name] for name in ends.index[np.sign(ends["first"]) != np.sign(ends["last"])]]
    if not names:
        return []
    low, high = (short_count(float(report.pairs["volume"].agg(end))) for end in ("min", "max"))
    return [
        f"Between {low} and {high} {report.fit.study.volume_unit} the mean difference changes sign for "
        f"{and_more(names, LISTED)}."
    ]


def scores_in_words(report: FamilyReport) -> list[str]:
    """What adds to the family's capability and what takes from it, and which scores are a tax."""
    prob = report.question.prob
    mean = report.text_scores[report.text_scores["backbone"] == FAMILY_MEAN]
    known = mean[mean["score"].notna()]
    above = known[(known["mean"] > 0) & (known["p_positive"] >= prob)].sort_values("mean", ascending=False)
    below = known[(known["mean"] < 0) & (known["p_positive"] <= 1 - prob)].sort_values("mean")
    sentences = [
        f"Text scores of the mean of its backbones, each against the mean of all backbones that define the "
        f"components and weighed by λ, add {signed_number(known['mean'].sum())} to capability S."
    ]
    for rows, what in ((above, "Strengths"), (below, "Weaknesses")):
        if len(rows):
            sentences.append(f"{what} (with probability {prob:g} or more): {_added(rows)}.")
    if above.empty and below.empty:
        sentences.append(f"No single benchmark adds or takes with probability {prob:g} or more.")
    taxed = known[(known["p_tax"] >= prob) & (known["score"] > known["population_mean"])]
    if len(taxed):
        listed = [f"{row.benchmark} (P(tax) {probability(row.p_tax)})" for row in taxed.itertuples()]
        sentences.append(
            f"A transfer tax that it pays, its score lying above the mean: {and_more(listed, LISTED)}."
        )
    missing = list(mean.loc[mean["score"].isna(), "benchmark"])
    if missing:
        sentences.append(f"None of its backbones was measured on {and_more(missing, LISTED)}.")
    return sentences


def _added(rows: pd.DataFrame) -> str:
    return and_more(
        [
            f"{row.benchmark} ({signed_number(row.mean)}, {signed_points(row.accuracy_mean)} of accuracy)"
            for row in rows.itertuples()
        ],
        LISTED,
    )


def nearest_in_words(report: FamilyReport) -> list[str]:
    """The nearest family, what lies between, and how many others it can be told from."""
    table, prob = report.nearest, report.question.prob
    if table.empty:
        return [f"No other family has runs; there is nothing to compare {report.family} with."]
    if not report.has_runs:
        return [
            f"Without runs of its own nothing brings {report.family} near any family: the table sets each "
            "against what the population lets it be."
        ]
    if not table["distance"].any():
        return [f"Model {report.fit.model} gives all families the same rates; none is nearer than another."]
    first = table.iloc[0]
    low, high = interval_columns("posterior", prob, of="transfer")
    step = _number(table.attrs["capability_step"])
    sentences = [
        f"Nearest is {first['family']} ({counted(first['runs'], 'run')}). A step of {step} in S, from a weak "
        f"backbone to a strong one, adds {signed_points(first['transfer_mean'])} to {report.family} relative "
        f"to it ({interval_label('posterior', prob)} {signed_points(first[low], unit=False)} to "
        f"{signed_points(first[high])}), ten times the data {signed_points(first['absorption_mean'])}; its A "
        f"is the greater with probability {probability(first['p_A_greater'])}, its mean B with "
        f"{probability(first['p_mean_B_greater'])}.",
        f"That they are practically equal, both differences below {points(table.attrs['equivalent'])}, has "
        f"probability {probability(first['p_equivalent'])}.",
    ]
    more = [f for f, p in zip(table["family"], table["p_A_greater"]) if p >= prob]
    less = [f for f, p in zip(table["family"], table["p_A_greater"]) if p <= 1 - prob]
    told = [
        f"{word} than {and_more(names, LISTED)}" for word, names in (("more", more), ("less", less)) if names
    ]
    if told:
        return [*sentences, f"With probability {prob:g} or more it transfers {' and '.join(told)}."]
    others = counted(len(table), "other family")
    return [
        *sentences,
        f"The data tell its transfer rate from none of {others} with probability {prob:g} or more.",
    ]


def extrapolation_in_words(report: FamilyReport) -> list[str]:
    """What lies outside the observed ranges, of capability or of volume."""
    table = report.backbones
    outside = table[table["extrapolation"].astype(bool)]
    short = _short(report)
    sentences = []
    if outside.empty:
        sentences.append(
            "Nothing asked of its backbones lies outside the observed ranges of capability and volume."
        )
    for what, rows in outside.groupby("extrapolation", sort=False):
        names = [short[name] for name in rows["backbone"]]
        verb = "is" if len(names) == 1 else "are"
        sentences.append(f"{and_more(names, LISTED)} {verb} an {what} beyond what was observed in runs.")
    return sentences + _beyond_the_recipe(report)


def _beyond_the_recipe(report: FamilyReport) -> list[str]:
    """What the recipe's own runs do not cover, though other recipes' may: sizes and volumes."""
    question, study = report.question, report.fit.study
    runs = study.fitted_runs
    runs = runs[runs["recipe"] == question.recipe]
    if runs.empty:
        return []
    sentences = []
    largest = study.backbones.loc[runs["backbone"], "params"].max()
    larger = report.backbones["params"] > largest * (1 + SAME_SIZE)
    if larger.any():
        n = int(larger.sum())
        sentences.append(
            f"{counted(n, 'backbone')} of it {'is' if n == 1 else 'are'} larger than the largest with a run "
            f"under {question.recipe} ({short_count(float(largest))} parameters): read "
            f"{'its place' if n == 1 else 'their places'} as an extrapolation in size."
        )
    if runs["volume"].nunique() == 1:
        sentences.append(
            f"{question.recipe} was run at one volume ({short_count(float(runs['volume'].max()))} "
            f"{study.volume_unit}); how accuracy changes with volume there is what other recipes say."
        )
    return sentences


def _short(report: FamilyReport) -> dict[str, str]:
    return short_by_name(report.backbones["backbone"])


def _number(value: float) -> str:
    return written(value, "number")
