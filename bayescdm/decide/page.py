"""A choice as one self-contained page, its recommendation first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing

from bayescdm.columns import choice_columns, difference_columns, next_run_columns, option_columns
from bayescdm.decide.words import next_run_in_words
from bayescdm.plots.choices import plot_differences, plot_pareto, plot_probability_matrix
from bayescdm.plots.layout import ROW
from bayescdm.plots.ranking import draw_ranking, draw_ranks
from bayescdm.plots.style import stamp, study_title
from bayescdm.report.answers import Answer, answer_question
from bayescdm.report.document import Document
from bayescdm.report.figures import NARROW, figure
from bayescdm.report.parts import Definitions, Notes, Part, Section, Slider
from bayescdm.report.question import Question, named_recipe
from bayescdm.report.sections import RANKING_TERMS
from bayescdm.report.trust import (
    data_section,
    diagnostics_section,
    problem_of,
    settings_section,
    subtitle,
)
from bayescdm.report.volumes import volume_slider
from bayescdm.tables import Column, table
from bayescdm.wording import counted, interval_label, points, short_by_name, short_count

if TYPE_CHECKING:
    from bayescdm.decide.choice import Choice
    from bayescdm.fit import Fit

__all__ = ["choice_document", "slider_of"]

#: Candidates in figures of rows, and in the matrix, whose cells must hold a number; the tables hold all.
SHOWN, IN_MATRIX = 40, 20


def choice_document(choice: Choice) -> Document:
    """Lay a choice and what it stands on out as sections.

    Parameters
    ----------
    choice : Choice

    Returns
    -------
    Document

    Examples
    --------
    >>> import bayescdm as cdm
    >>> choice_document(cdm.choose(cdm.load_fit("fit.nc"))).write("choice.html")  # doctest: +SKIP
    """
    fit = choice.fit
    sections = [_recommendation(fit, choice)]
    if len(choice.ranking) > 1:
        sections.append(_pairs(fit, choice))
    sections.append(_costs(choice))
    if choice.next_runs is not None:
        sections.append(_next(choice))
    if len(choice.infeasible):
        sections.append(_infeasible(choice))
    prob = choice.question["probability"]
    sections += [diagnostics_section(fit, prob), data_section(fit), settings_section(fit)]
    return Document(
        f"Which backbone to take: {study_title(fit)}",
        subtitle(fit),
        sections,
        problem=problem_of(fit),
        facts=choice.to_dict(),
    )


def _recommendation(fit: Fit, choice: Choice) -> Section:
    """The recommendation, the ranking and how it moves with the volume."""
    asked = choice.question
    kind, prob, rows = asked["kind"], asked["probability"], min(len(choice.ranking), SHOWN)

    def draw(width: float) -> Drawing:
        drawing, ax = _one_axes(width, rows)
        draw_ranking(choice.ranking, title=study_title(fit), kind=kind, prob=prob, limit=SHOWN, ax=ax)
        stamp(ax, fit)
        return drawing

    where = _where(choice)
    caption = f"Expected accuracy with {interval_label(kind, prob)}, and P(best). {where}."
    columns = choice_columns(kind, prob, asked["cost_unit"])
    sentences = [*choice.sentences, choice.by_volume]
    if asked["chosen"]:
        sentences.append("Not asked for, so chosen: " + "; ".join(asked["chosen"]) + ".")
    listed = f"All {len(choice.ranking)} feasible candidates. {where}"
    parts: list[Part] = [
        figure("choice", caption, draw),
        table("ranking", listed, choice.shown_ranking(), columns, converged=choice.converged),
        Definitions((*RANKING_TERMS, *CHOICE_TERMS), folded="What the columns mean"),
        choice.slider,
    ]
    notes = [note for note in choice.notes if note.code != "not-converged"]
    if notes:
        parts.append(Notes(notes))
    return Section("answer", "Recommendation", sentences, parts)


CHOICE_TERMS = (
    (
        "volume",
        "data that the candidate would be trained on: one for all, or the best that the budget affords",
    ),
    (
        "an option on the front",
        "at one of the volumes weighed, nothing that costs as little is expected to be more accurate",
    ),
    ("FLOPs", "6 × active parameters × tokens; 4 where a first stage trains the projector alone"),
    ("active parameters", "cost of a candidate where tokens are not known: at one volume, FLOPs follow them"),
    (
        "text scores that are missing",
        "what they leave open of the candidate's capability widens its interval",
    ),
)


def slider_of(choice: Choice) -> Slider:
    """Rank the candidates at every volume, the asked one or that of the first choice among them.

    Parameters
    ----------
    choice : Choice

    Returns
    -------
    Slider
    """
    asked = choice.question
    volume = asked["volume"] or float(choice.ranking["volume"].iloc[0])
    question = Question(
        choice.candidates,
        asked["recipe"],
        volume,
        asked["probability"],
        seed=asked["seed"],
        volume_asked=asked["volume_asked"],
    )
    if asked["volume"] is None:
        return volume_slider(
            choice.fit, answer_question(choice.fit, question), mark="that of the first choice"
        )
    answer = Answer(question, choice.ranking, choice.sentences, choice.converged)
    return volume_slider(choice.fit, answer)


def _pairs(fit: Fit, choice: Choice) -> Section:
    """Who is better than whom, differences from the reference, ranks."""
    asked = choice.question
    kind, prob = asked["kind"], asked["probability"]
    rows, cells = min(len(choice.ranking), SHOWN), min(len(choice.ranking), IN_MATRIX)

    def draw_matrix(width: float) -> Drawing:
        drawing = plt.figure(figsize=(width, 0.26 * cells + 1.6), layout="constrained")
        plot_probability_matrix(choice, limit=IN_MATRIX, ax=drawing.add_subplot())
        return drawing

    def draw_differences(width: float) -> Drawing:
        drawing, ax = _one_axes(width, rows)
        plot_differences(choice, limit=SHOWN, ax=ax)
        return drawing

    def draw_rank_distribution(width: float) -> Drawing:
        drawing, ax = _one_axes(width, rows)
        draw_ranks(choice.accuracy, title=study_title(fit), limit=SHOWN, ax=ax)
        stamp(ax, fit)
        return drawing

    first = f"; the first {cells} of {len(choice.ranking)}" if cells < len(choice.ranking) else ""
    p = choice.pairs.to_numpy()
    above = p[np.triu_indices(len(p), 1)]
    told = int(((above >= prob) | (above <= 1 - prob)).sum())
    sentences = [
        f"Of {counted(len(above), 'pair')} of candidates the data tell {told} apart with probability "
        f"{prob:g}."
    ]
    within = points(asked["equivalent"])
    caption = f"Differences from {asked['reference']}; within {within} two are practically equal"
    differences = choice.shown_differences()
    columns = difference_columns(kind, prob, asked["equivalent"])
    parts: list[Part] = [
        figure("matrix", f"Probability that the row is better than the column{first}.", draw_matrix),
        figure("difference", f"{caption}.", draw_differences),
        table("differences", caption, differences, columns, converged=choice.converged),
        figure("ranks", f"Probability of each rank ({kind}). {_where(choice)}.", draw_rank_distribution),
    ]
    return Section("pairs", "Candidates against each other", sentences, parts)


def _costs(choice: Choice) -> Section:
    """Cost against accuracy."""
    asked = choice.question
    options = choice.options.assign(front=np.where(choice.options["on_front"], "yes", ""))
    caption = "What was weighed: each candidate at each volume"
    columns = option_columns(asked["kind"], asked["probability"], asked["cost_unit"])
    weighed = table("options", caption, options, columns, converged=choice.converged, folded="All options")
    known = np.isfinite(options["cost"].astype(float))
    if not known.any():
        return Section("cost", "Cost", ["The cost of no candidate is known."], [weighed])

    def draw(width: float) -> Drawing:
        drawing = plt.figure(figsize=(width, 3.6 if width <= NARROW else 4.2), layout="constrained")
        plot_pareto(choice, ax=drawing.add_subplot())
        return drawing

    n = int(choice.ranking["on_front"].sum())
    sentences = [
        f"{n} of {counted(len(choice.ranking), 'candidate')} {'has' if n == 1 else 'have'} an option on the "
        "front: nothing that costs as little is expected to be more accurate."
    ]
    if asked["cost_unit"] == "active parameters":
        sentences.append(
            "Cost is stated in active parameters: at one volume training FLOPs follow them. Tokens a sample "
            "would give FLOPs."
        )
    picture = figure("pareto", f"Cost ({asked['cost_unit']}) against expected accuracy.", draw)
    return Section("cost", "Cost", sentences, [picture, weighed])


def _next(choice: Choice) -> Section:
    """What one more training run would tell."""
    runs, names = choice.next_runs, short_by_name(choice.ranking["backbone"])
    sentences = [
        f"Knowing everything before choosing would gain {100 * choice.evpi:.2f} points (EVPI); what one run "
        "would gain (EVSI) is a part of it.",
        next_run_in_words(runs, names, choice.question["volume_unit"], choice.question["cost_unit"]),
    ]
    columns = next_run_columns(choice.question["cost_unit"])
    listed = table("next-runs", "Training runs by what they tell", runs, columns, converged=choice.converged)
    return Section("next", "Which run would tell most", sentences, [listed, Definitions(NEXT_TERMS)])


NEXT_TERMS = (
    (
        "EVSI",
        "expected accuracy of the backbone that is chosen after the run, less that of choosing now: the "
        "run's result is drawn from the posterior, its residual included",
    ),
    ("P(choice changes)", "probability that another backbone is expected to be the best after the run"),
)


def _infeasible(choice: Choice) -> Section:
    columns = [Column("backbone", "backbone"), Column("reason", "reason")]
    caption = f"{counted(len(choice.infeasible), 'candidate')} out of the question, and why"
    return Section(
        "infeasible", "Infeasible candidates", [], [table("out", caption, choice.infeasible, columns)]
    )


def _where(choice: Choice) -> str:
    asked: dict[str, Any] = choice.question
    if asked["volume"] is None:
        return f"{named_recipe(asked['recipe'])}, each candidate at its best affordable volume"
    return f"{named_recipe(asked['recipe'])}, {short_count(asked['volume'])} {asked['volume_unit']}"


def _one_axes(width: float, rows: int) -> tuple[Drawing, Any]:
    around = 1.7 if width <= NARROW else 1.25
    drawing = plt.figure(figsize=(width, ROW * rows + around), layout="constrained")
    return drawing, drawing.add_subplot()
