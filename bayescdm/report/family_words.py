"""What the tables of a family say, in sentences made from their numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayescdm.compare.contributions import FAMILY_MEAN
from bayescdm.intervals import interval_columns
from bayescdm.predict import LawDraws
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
    short_of,
    signed_number,
    signed_points,
    undecided,
)

if TYPE_CHECKING:
    from bayescdm.report.family import FamilyReport

__all__ = [
    "backbones_in_words",
    "extrapolation_in_words",
    "nearest_in_words",
    "observed_in_words",
    "pairs_in_words",
    "position_in_words",
    "scores_in_words",
]

#: Names listed in a sentence before the rest is counted.
LISTED = 4
#: Accuracy below which what a text score adds is written as 0.0 points, a fraction.
FELT = 0.0005
#: Standard errors between what a family's own runs say and the pooled value from which on it is said.
FAR = 2.0


def position_in_words(report: FamilyReport) -> list[str]:
    """Where the family lies against the population, and what pooling has done to it."""
    rows = report.position.set_index("quantity")
    sentences = [] if report.converged else ["NOT CONVERGED: the draws cannot be trusted, nor what follows."]
    where = f"{short_count(report.rates_volume)} {report.fit.study.volume_unit}"
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
    return [*sentences, transfer, absorption, *_pooling(rows, report)]


def _against_population(row: pd.Series, report: FamilyReport, what: str, symbol: str) -> str:
    p, prob = float(row["p_greater"]), report.question.prob
    numbers = f"{symbol}{_with_interval(row, report)} against {_number(row['population'])}"
    side, q = ("above", p) if p >= 0.5 else ("below", 1 - p)
    if q >= prob:
        higher = "higher" if side == "above" else "lower"
        told = f"{side} the population's with probability {probability(q)}"
        return f"{report.family} has a {higher} {what} than the population: {numbers}; {told}."
    return (
        f"The data cannot tell the {what} of {report.family} from the population's: {numbers}; {side} it "
        f"with probability {short_of(q, prob)} only, less than {prob:g}."
    )


def _pooling(rows: pd.DataFrame, report: FamilyReport) -> list[str]:
    """What the family's own runs say of A and of mean B, and how far pooling has moved each."""
    sentences: list[str] = []
    none: dict[str, list[str]] = {}
    for quantity, symbol in (("A", "A"), ("mean_B", "mean B")):
        row = rows.loc[quantity]
        if row["why_none"]:
            none.setdefault(row["why_none"], []).append(symbol)
        else:
            sentences.append(_shrinkage(row, symbol))
    for why, symbols in none.items():
        sentences.append(
            f"Its own runs give no separate estimate of {' and '.join(symbols)} ({why}): pooling puts "
            f"{'it' if len(symbols) == 1 else 'them'} at the population's, as far as its runs do not move "
            f"{'it' if len(symbols) == 1 else 'them'}."
        )
    return sentences


def _shrinkage(row: pd.Series, symbol: str) -> str:
    runs, backbones = counted(row["runs"], "run"), counted(row["backbones"], "backbone")
    own = f"{_number(row['separate'])} ± {_number(row['separate_sd'])} (standard error)"
    sentence = f"Without pooling, least squares on its {runs} on {backbones} puts {symbol} at {own}"
    share = float(row["shrinkage"])
    if 0 <= share <= 1:
        sentence += f"; pooling has moved it {100 * share:.0f} % of the way to the population"
    else:
        sentence += (
            "; the pooled estimate does not lie between that and the population's, because recipes and "
            "variants are weighed anew as well"
        )
    off = abs(float(row["mean"] - row["separate"]) / float(row["separate_sd"]))
    if off >= FAR:
        sentence += f", to {_number(row['mean'])}, {off:.1f} standard errors from what its own runs say"
    return f"{sentence}."


def _with_interval(row: pd.Series, report: FamilyReport) -> str:
    low, high = interval_columns("posterior", report.question.prob)
    label = interval_label("posterior", report.question.prob)
    return f"{_number(row['mean'])} ({label} {_number(row[low])} to {_number(row[high])})"


def backbones_in_words(report: FamilyReport) -> list[str]:
    """How many of its backbones have runs, and which is expected highest."""
    table, question = report.backbones, report.question
    names = short_names(table["backbone"])
    first = table.iloc[0]
    low, high = interval_columns(question.kind, question.prob)
    where = f"{question.recipe} at {short_count(question.volume)} {report.fit.study.volume_unit}"
    sentences = [
        f"{counted(len(table), 'backbone')} of {report.family} can be placed by the law; {_used(report)}.",
    ]
    expected = (
        f"{percent(first['mean'])} ({interval_label(question.kind, question.prob)} {percent(first[low])} to "
        f"{percent(first[high])})"
    )
    if len(table) > 1:
        sentences.append(
            f"For {where}, {names[0]} has the highest expected accuracy: {expected}; it is the family's best "
            f"with probability {probability(first['p_best'])}."
        )
    else:
        sentences.append(f"For {where}, the expected accuracy of {names[0]} is {expected}.")
    here = report.runs[report.runs["recipe"] == question.recipe]
    if report.has_runs and here.empty:
        sentences.append(f"None of its runs is under {question.recipe}.")
    return sentences


def _used(report: FamilyReport) -> str:
    """How many of its backbones have runs, and how many."""
    n, used = len(report.backbones), int((report.backbones["runs"] > 0).sum())
    runs = counted(len(report.runs), "run")
    if not used:
        return "it has no run" if n == 1 else "none of them has a run"
    if used == n:
        return f"it has {runs}" if n == 1 else f"all of them have runs, {runs} in all"
    return f"{used} of them {'has' if used == 1 else 'have'} {runs}" + (" in all" if used > 1 else "")


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
                f"{short[row['instruct']]} ({signed_points(row['difference_mean'])}, "
                f"{undecided(p, question.prob)})"
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
        f"On average over its backbones, the text scores add {signed_number(known['mean'].sum())} to "
        "capability S: each score against the mean of all backbones that define the components, times λ."
    ]
    for rows, what in ((above, "Strengths"), (below, "Weaknesses")):
        felt = rows["accuracy_mean"].abs() >= FELT
        if felt.any():
            sentences.append(f"{what} (with probability {prob:g} or more): {_added(rows[felt])}.")
    small = pd.concat([above, below])
    small = small[small["accuracy_mean"].abs() < FELT]
    if len(small):
        sentences.append(
            f"Of sure sign, but worth less than {100 * FELT:g} points of accuracy: "
            f"{and_more(list(small['benchmark']), LISTED)}."
        )
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
    equal = f"both differences below {points(table.attrs['equivalent'])}"
    if first["p_equivalent"] >= prob:
        sure = (
            f"the two are practically equal ({equal}) with probability {probability(first['p_equivalent'])}"
        )
    else:
        sure = (
            f"by the mean difference; that the two are practically equal ({equal}) has a probability of only "
            f"{short_of(first['p_equivalent'], prob)}"
        )
    sentences = [
        f"Nearest is {first['family']} ({counted(first['runs'], 'run')}), {sure}.",
        f"A step of {step} in S, from a weak backbone to a strong one, adds "
        f"{signed_points(first['transfer_mean'])} to {report.family} relative to {first['family']} "
        f"({interval_label('posterior', prob)} {signed_points(first[low], unit=False)} to "
        f"{signed_points(first[high])}), ten times the data {signed_points(first['absorption_mean'])}; A of "
        f"{report.family} exceeds that of {first['family']} with probability "
        f"{probability(first['p_A_greater'])}, mean B with {probability(first['p_mean_B_greater'])}.",
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
    """What lies outside the observed ranges of all runs, and what the recipe's own runs do not cover."""
    table, recipe = report.backbones, report.question.recipe
    where = f"{short_count(report.question.volume)} {report.fit.study.volume_unit}"
    short = _short(report)
    sentences = []
    for what, rows in table[table["extrapolation"] != ""].groupby("extrapolation", sort=False):
        verb = "is" if len(rows) == 1 else "are"
        sentences.append(f"{_names(rows, short)} {verb} an {what} beyond what was observed in runs.")
    for what, rows in table[table["beyond_recipe"] != ""].groupby("beyond_recipe", sort=False):
        it = "it" if len(rows) == 1 else "them"
        sentences.append(
            f"{_names(rows, short)}: {what}; that {recipe} carries over to {it} is an extrapolation."
        )
    if not sentences:
        sentences.append(
            f"At {where} none of its backbones lies outside what runs have seen of capability and volume, "
            f"nor beyond the runs of {recipe}."
        )
    return sentences + _recipe_range(report)


def _names(rows: pd.DataFrame, short: dict[str, str]) -> str:
    return and_more([short[name] for name in rows["backbone"]], LISTED)


def _recipe_range(report: FamilyReport) -> list[str]:
    """Volumes at which the recipe was run: other recipes' runs do not stand for its own."""
    recipe, unit = report.question.recipe, report.fit.study.volume_unit
    seen = LawDraws.of(report.fit, 1).recipes.get(recipe)
    if seen is None or not np.isfinite(seen.volumes[0]):
        return []
    low, high = map(short_count, seen.volumes)
    if low == high:
        return [
            f"{recipe} was run at one volume ({low} {unit}); how accuracy changes with volume there is what "
            "other recipes say."
        ]
    return [f"{recipe} was run at {low} to {high} {unit}; trajectories beyond that are extrapolated."]


def observed_in_words(report: FamilyReport) -> list[str]:
    """How many of the family's runs lie outside their intervals, and how many would by chance."""
    prob, recipe = report.question.prob, report.question.recipe
    runs = report.runs[report.runs["outside"].notna()]
    here = runs[runs["recipe"] == recipe]
    sentences = []
    if len(here):
        outside = here[here["outside"].astype(bool)]
        listed = [
            f"{name} at {short_count(volume)} ({signed_points(off)})"
            for name, volume, off in zip(
                outside["backbone"].map(_short(report)),
                outside["volume"],
                outside["accuracy"] - outside["mean"],
            )
        ]
        of_which = f": {and_more(listed, LISTED)} from the mean" if listed else ""
        sentences.append(_counted_outside(here, f"under {recipe}", prob) + of_which + ".")
    if len(runs) > len(here):
        sentences.append(_counted_outside(runs, "under all recipes", prob) + ".")
    return sentences


def _counted_outside(runs: pd.DataFrame, where: str, prob: float) -> str:
    n, outside = len(runs), int(runs["outside"].sum())
    return (
        f"Of its {counted(n, 'run')} of known volume {where}, {outside} {'lies' if outside == 1 else 'lie'} "
        f"outside what the fit gives a run there ({interval_label('run', prob)}), where "
        f"{n * (1 - prob):.1f} would be expected"
    )


def _short(report: FamilyReport) -> dict[str, str]:
    return short_by_name(report.backbones["backbone"])


def _number(value: float) -> str:
    return written(value, "number")
