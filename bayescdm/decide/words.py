"""A choice in sentences made from its numbers, and what the reader must know of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayescdm.decide.costs import CostTable
from bayescdm.decide.runs import least_volumes
from bayescdm.decide.value import evsi_bias
from bayescdm.errors import Note
from bayescdm.intervals import interval_columns
from bayescdm.report.answers import reservations
from bayescdm.report.question import named_recipe
from bayescdm.wording import (
    and_more,
    counted,
    more_than,
    percent,
    points,
    probability,
    reaching,
    short_by_name,
    short_count,
    short_names,
    short_of,
    signed_points,
)

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["choice_notes", "next_run_in_words", "sentences_of"]

#: Names listed in a sentence before the rest is counted.
LISTED = 4
#: Candidates named in a note.
NAMED = 20
#: Accuracy that two digits behind the point of a percentage do not show.
INVISIBLE = 0.00005


def choice_notes(fit: Fit, ranking: pd.DataFrame, question: Mapping[str, Any]) -> tuple[Note, ...]:
    """Say what limits the choice, by code: convergence, extrapolation, text scores that are missing.

    Parameters
    ----------
    fit : Fit
    ranking : DataFrame
        Of a `bayescdm.decide.Choice`.
    question : mapping
        Its question.

    Returns
    -------
    tuple of Note
    """
    names = short_by_name(ranking["backbone"])
    notes = list(fit.diagnose().notes)
    for column in ("extrapolation", "beyond_recipe"):
        for words, rows in ranking[ranking[column] != ""].groupby(column, sort=False):
            listed = and_more([names[name] for name in rows["backbone"]], NAMED)
            what = f"{words} beyond what was observed" if column == "extrapolation" else str(words)
            message = f"{len(rows)} of {counted(len(ranking), 'candidate')}: {what}: {listed}"
            notes.append(Note("extrapolation", message, "warning", str(question["recipe"])))
    every = len(fit.capability.benchmarks)
    for row in ranking[ranking["missing"] != ""].itertuples():
        n = len(row.missing.split(", "))
        message = (
            f"has no score on {n} of {every} text benchmarks ({row.missing}); what they leave open of its "
            "capability widens its interval"
        )
        notes.append(Note("incomplete-text-scores", message, "warning", str(row.backbone)))
    return tuple(notes)


def sentences_of(
    fit: Fit,
    ranking: pd.DataFrame,
    differences: pd.DataFrame,
    question: Mapping[str, Any],
    perfect: float,
    infeasible: pd.DataFrame,
    steps: pd.DataFrame | None,
) -> list[str]:
    """Say what to take, over which others, how sure that is, and what it rests on.

    Parameters
    ----------
    fit : Fit
    ranking, differences, question, infeasible
        As in `bayescdm.decide.Choice`.
    perfect : float
        EVPI.
    steps : DataFrame, optional
        From `bayescdm.decide.runs.next_runs`.

    Returns
    -------
    list of str
    """
    names = short_names(ranking["backbone"])
    first, unit = ranking.iloc[0], str(question["volume_unit"])
    sentences = []
    if not ranking.attrs["converged"]:
        sentences.append("NOT CONVERGED: the draws cannot be trusted, nor what follows.")
    lower, upper = interval_columns(question["kind"], question["probability"])
    prob, recipe = question["probability"], named_recipe(str(question["recipe"]))
    sure = f"the best of {len(ranking)} candidates with probability {probability(first['p_best'])}"
    sentences.append(
        f"Take {names[0]} with {short_count(first['volume'])} {unit} under {recipe}: expected "
        f"accuracy {percent(first['mean'])} ({question['kind']}, {100 * prob:g} % interval "
        f"{percent(first[lower])} to {percent(first[upper])}), "
        f"{sure if len(ranking) > 1 else 'the only candidate'}."
    )
    if len(ranking) > 1:
        sentences.append(_reason(ranking, names, question["probability"]))
        sentences += _exact_ties(ranking, differences, names, question["reference"])
        sentences += _likelier(ranking, names)
        sentences += _equality(differences, question, dict(zip(ranking["backbone"], names)))
        sentences += _cheaper(ranking, names, str(question["cost_unit"]))
        sentences.append(
            f"On average this choice loses {points(perfect)} against the candidate that turns out best, "
            "which is what knowing everything before choosing would be worth (EVPI)."
        )
    sentences += reservations(first, names[0])
    sentences += _doubts(ranking, names)
    if steps is not None:
        sentences.append(
            next_run_in_words(steps, dict(zip(ranking["backbone"], names)), unit, str(question["cost_unit"]))
        )
    if len(infeasible):
        n = len(infeasible)
        sentences.append(
            f"{counted(n, 'candidate')} {'is' if n == 1 else 'are'} infeasible and listed with the reason."
        )
    return sentences


def _reason(ranking: pd.DataFrame, names: list[str], prob: float) -> str:
    """Which candidates the first is told from, and which not."""
    p = ranking["p_first_better"].to_numpy()
    tied = ranking["tied"].to_numpy()
    told = [i for i in range(1, len(names)) if not tied[i]]
    untold = [f"{names[i]} ({short_of(p[i], prob)})" for i in range(1, len(names)) if tied[i]]
    over = ""
    if told:
        rest = f", and over {len(told) - 1} more with {prob:g} or more" if len(told) > 1 else ""
        over = f"{names[0]} over {names[told[0]]} with probability {reaching(p[told[0]], prob)}{rest}"
    if not untold:
        return f"{over}: the data tell it from every other candidate with probability {prob:g} or more."
    cannot = (
        f"the data cannot tell {names[0]} from {and_more(untold, LISTED)}: in parentheses the probability "
        f"that it is the better one, below {prob:g}"
    )
    return f"{over}; {cannot}." if over else f"{cannot[0].upper()}{cannot[1:]}."


def _exact_ties(
    ranking: pd.DataFrame, differences: pd.DataFrame, names: list[str], reference: str
) -> list[str]:
    """Candidates that are equal in every draw: the order in which they stand means nothing."""
    first = str(ranking["backbone"].iloc[0])
    off = differences["mean"] - differences.at[first, "mean"]
    equal = [
        name
        for name, label in zip(names[1:], ranking["backbone"][1:])
        if off[label] == 0 and differences.at[label, "sd"] == differences.at[first, "sd"]
    ]
    return (
        [f"{names[0]} ties with {and_more(equal, LISTED)} exactly; the order says nothing."] if equal else []
    )


def _likelier(ranking: pd.DataFrame, names: list[str]) -> list[str]:
    """A candidate of which less is known can be the best more often without being better on average."""
    top = int(np.argmax(ranking["p_best"].to_numpy()))
    if ranking["p_best"].iloc[top] <= ranking["p_best"].iloc[0]:
        return []
    p = more_than(ranking["p_best"].iloc[top], ranking["p_best"].iloc[0])
    return [f"{names[top]} is the best more often ({p}), because less is known of it, but expected lower."]


def _equality(differences: pd.DataFrame, question: Mapping[str, Any], names: dict[str, str]) -> list[str]:
    """What is practically equal to the reference; nothing where nothing counts as equal."""
    if not question["equivalent"]:
        return []
    reference, prob = question["reference"], question["probability"]
    within = f"within {points(question['equivalent'])} with probability {prob:g} or more"
    # Where the reference is not the one that is recommended, the sentence must say of whom it speaks.
    asked = reference != next(iter(names))
    start = f"The reference is {names[reference]}. " if asked else ""
    whom = "it" if asked else names[reference]
    others = differences.drop(index=reference)
    equal = others[others["verdict"] == "practically equal"]
    if len(equal):
        listed = [f"{names[name]} ({reaching(p, prob)})" for name, p in equal["p_equivalent"].items()]
        return [f"{start}Practically equal to {whom}, {within}: {and_more(listed, LISTED)}."]
    nearest = others["p_equivalent"].idxmax()
    return [
        f"{start}No other candidate is practically equal to {whom}, {within}; nearest to it is "
        f"{names[nearest]} ({short_of(others.at[nearest, 'p_equivalent'], prob)})."
    ]


def _cheaper(ranking: pd.DataFrame, names: list[str], unit: str) -> list[str]:
    """The cheapest candidate that the data cannot tell from the first, if it costs less."""
    cost = ranking["cost"].to_numpy(float)
    rivals = np.flatnonzero(ranking["tied"].to_numpy() & (cost < cost[0]))
    if not len(rivals):
        return []
    cheapest = rivals[int(np.argmin(cost[rivals]))]
    if cost[cheapest] > 0.95 * cost[0]:
        return []
    lost = signed_points(ranking["mean"].iloc[cheapest] - ranking["mean"].iloc[0])
    return [
        f"The cheapest that the data cannot tell from {names[0]} is {names[cheapest]}: "
        f"{cost[cheapest] / cost[0]:.2g} of the {_what_is_spent(unit)}, {lost} expected."
    ]


def _what_is_spent(unit: str) -> str:
    """Name what a share is of; a cost table states its costs in no unit that could be named."""
    return "cost" if unit == CostTable.unit else unit


def _doubts(ranking: pd.DataFrame, names: list[str]) -> list[str]:
    """Candidates beyond the recipe's runs, and those that lack text scores."""
    sentences = []
    beyond = ranking["beyond_recipe"].ne("") | ranking["extrapolation"].ne("")
    if beyond.any():
        n = int(beyond.sum())
        sentences.append(
            f"{n} of {counted(len(ranking), 'candidate')} {'lies' if n == 1 else 'lie'} outside what runs "
            "have seen (extrapolation); the notes say which, and how."
        )
    for place in np.flatnonzero(ranking["missing"].ne("").to_numpy())[:LISTED]:
        sentences.append(
            f"{names[place]} lacks text scores ({ranking['missing'].iloc[place]}), which widens its interval."
        )
    return sentences


def next_run_in_words(steps: pd.DataFrame, names: dict[str, str], unit: str, cost_unit: str) -> str:
    """Say which run tells most, at the least volume that tells as much, and which most for its cost.

    Parameters
    ----------
    steps : DataFrame
        From `bayescdm.decide.runs.next_runs`.
    names : dict of str to str
        What each backbone is called.
    unit, cost_unit : str
        Of volumes and of costs.

    Returns
    -------
    str
        Where no run's value can be told from its Monte Carlo error it says that, and names none.
    """
    least = least_volumes(steps)
    top, bias = steps.iloc[0], evsi_bias(int(steps.attrs["draws"]))
    worth = steps[(steps["evsi"] >= INVISIBLE) & (steps["share_of_evpi"] > bias)]
    if worth.empty:
        return (
            "No single run is expected to be worth anything to the choice: the most that one is estimated to "
            f"gain, {100 * top['evsi']:.2f} points (EVSI), cannot be told from 0 (up to {100 * bias:.1g} % "
            "of EVPI it may be chance)."
        )
    run = least.iloc[0]
    said = (
        f"Most informative next run: {names[run['backbone']]} with {short_count(run['volume'])} {unit}, "
        f"expected to gain {100 * run['evsi']:.2f} points (EVSI, {100 * run['share_of_evpi']:.0f} % of "
        f"EVPI); it changes the choice with probability {probability(run['p_change'])}"
    )
    larger = (steps["backbone"] == run["backbone"]) & (steps["volume"] > run["volume"])
    if larger.any():
        more = int(np.ceil(100 * run["more"]))
        said += f"; more {unit} would gain " + (f"at most {more} % more" if more else "nothing more")
    if not worth["evsi_per_cost"].notna().any():
        return f"{said}."
    best = worth.loc[worth["evsi_per_cost"].idxmax()]
    # Of a table without volumes every run of a backbone costs the same.
    if best["backbone"] == run["backbone"] and best["cost"] == run["cost"]:
        return f"{said}; it gains most for its cost as well."
    return (
        f"{said}. Most for its cost: {names[best['backbone']]} with {short_count(best['volume'])} {unit}, "
        f"{100 * best['evsi']:.2f} points at {best['cost'] / run['cost']:.2g} of the "
        f"{_what_is_spent(cost_unit)}."
    )
