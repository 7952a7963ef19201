"""Sections that answer: ranking, trajectories, families, text benchmarks, broken scores, models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure as Drawing

from bayescdm.columns import (
    MODEL_COLUMNS,
    benchmark_columns,
    by_family,
    family_columns,
    ranking_columns,
)
from bayescdm.compare import (
    compare_families,
    compare_models,
    compare_variants,
    family_draws,
    pairwise_probability,
    transfer_coefficients,
)
from bayescdm.errors import ModelError
from bayescdm.fit import Fit
from bayescdm.intervals import interval_columns
from bayescdm.plots import (
    plot_families,
    plot_rank_distribution,
    plot_ranking,
    plot_trajectories,
    plot_transfer_coefficients,
)
from bayescdm.plots.layout import ROW
from bayescdm.report.answers import Answer
from bayescdm.report.figures import NARROW, figure
from bayescdm.report.parts import Definitions, Notes, Part, Section
from bayescdm.report.question import Question
from bayescdm.report.sensitivity import changes, changes_in_words
from bayescdm.report.volumes import moves_in_words, volume_slider
from bayescdm.tables import Column, Table, table
from bayescdm.wording import counted, interval_label, probability, short_count, signed_number, undecided

__all__ = [
    "RANKING_TERMS",
    "answer_section",
    "benchmark_section",
    "family_section",
    "model_section",
    "sensitivity_section",
    "trajectory_section",
]

#: Backbones in figures; the tables hold all.
SHOWN = 40
#: Backbones whose trajectories are drawn.
TRAJECTORIES = 6


def answer_section(fit: Fit, answer: Answer) -> Section:
    """Build the section that answers: sentences, ranking, ranks."""
    question, ranking = answer.question, answer.ranking
    asked = _asked(question)
    rows = min(len(ranking), SHOWN)
    interval = interval_label(question.kind, question.prob)

    def draw_ranking(width: float) -> Drawing:
        drawing, ax = _one_axes(width, rows)
        plot_ranking(fit, prob=question.prob, limit=SHOWN, ax=ax, **asked)
        return drawing

    def draw_ranks(width: float) -> Drawing:
        drawing, ax = _one_axes(width, rows)
        plot_rank_distribution(fit, limit=SHOWN, ax=ax, **asked)
        return drawing

    where = f"{question.recipe}, {short_count(question.volume)} {fit.study.volume_unit}"
    slider = volume_slider(fit, answer)
    sentences = [*answer.sentences, moves_in_words(fit, question.recipe, ranking["backbone"], slider.frame)]
    if question.chosen:
        sentences.append("Not asked for, so chosen: " + "; ".join(question.chosen) + ".")
    sentences += [f"{note.message}." for note in answer.notes]
    parts: list[Part] = [
        figure("ranking", f"Expected accuracy with {interval}, and P(best). {where}.", draw_ranking),
        _ranking_table(answer, where),
        Definitions(RANKING_TERMS, folded="What the columns mean"),
        slider,
        figure("ranks", f"Probability of each rank ({question.kind}). {where}.", draw_ranks),
    ]
    return Section("answer", "Answer", sentences, parts)


RANKING_TERMS = (
    ("backbone", "accuracy that many training runs of the backbone would average to, under this recipe"),
    ("law", "uncertainty of the law's parameters only"),
    ("run", "what one training run would measure: the residual spread of runs added"),
    (
        "P(best), P(top 3)",
        "share of posterior draws in which the backbone is the best, or among the best three",
    ),
    ("regret", "accuracy lost on average, against the best candidate of each draw, by choosing this one"),
    ("P(first is better)", "probability that the first candidate is better than this one, draw by draw"),
    ("known backbone", "has runs in the study"),
    ("new backbone of known family", "none of its own, but its family has"),
    ("new family", "no run of its family: its rates are drawn from the population of families"),
    ("extrapolation", "capability or volume outside what was observed in runs"),
    (
        "beyond the recipe's runs",
        "other recipes were run on backbones of this size and at this volume, the asked one was not",
    ),
)


def _ranking_table(answer: Answer, where: str) -> Table:
    columns = ranking_columns(answer.question.kind, answer.question.prob)
    caption = f"Ranking of {counted(len(answer.ranking), 'candidate')}. {where}"
    return table("ranking", caption, answer.ranking, columns, converged=answer.converged)


def trajectory_section(fit: Fit, answer: Answer) -> Section:
    """Build the section on accuracy against data volume, for the first candidates."""
    question = answer.question
    first = list(answer.ranking["backbone"].head(TRAJECTORIES))
    if isinstance(question.candidates, tuple):
        chosen: Any = tuple(part.loc[first] for part in question.candidates)
    else:
        chosen = first

    def draw(width: float) -> Drawing:
        columns = 2 if width <= NARROW else 3
        axes = plot_trajectories(
            fit,
            candidates=chosen,
            recipe=question.recipe,
            volume=question.volume,
            prob=question.prob,
            seed=question.seed,
            columns=columns,
            width=width,
        )
        return axes[0].get_figure(root=True)

    caption = (
        f"Accuracy against data volume under {question.recipe}, with law and run {100 * question.prob:g} % "
        "intervals; dashed beyond what runs, or this recipe's own, have seen of capability, size and volume; "
        f"the dotted line is {short_count(question.volume)} {fit.study.volume_unit}."
    )
    sentences = [f"{counted(len(first), 'candidate')} with the highest expected accuracy."]
    return Section("trajectories", "Trajectories", sentences, [figure("trajectories", caption, draw)])


def family_section(fit: Fit, prob: float) -> Section:
    """Build the section on families in the (transfer, absorption) plane, and on base against instruct."""

    def draw(width: float) -> Drawing:
        axes = plot_families(fit, columns=2 if width <= NARROW else 4, width=width)
        return axes[0].get_figure(root=True)

    converged = fit.diagnose().converged
    rates = compare_families(fit, prob=prob)
    columns = family_columns(rates, prob)
    sentences = _families_in_words(fit, rates, prob)
    parts: list[Part] = [
        figure(
            "families",
            "Transfer rate A and mean absorption rate B of each family: joint posterior regions of 50 % and "
            f"90 %. A is stated at {short_count(rates.attrs['volume'])} {fit.study.volume_unit}.",
            draw,
        ),
        table("family-rates", "Rates of each family", by_family(rates), columns, converged=converged),
        Definitions(FAMILY_TERMS, folded="What the columns mean"),
    ]
    return Section("families", "Families", sentences, parts)


FAMILY_TERMS = (
    ("A", "transfer rate: accuracy gained per unit of capability S, at the stated volume"),
    ("B0, Bm", "base absorption and its decay with S, per unit of ln D"),
    ("mean B", "mean absorption rate B0 − Bm·S of the family's backbones with runs, per unit of ln D"),
    (
        "sd / prior sd",
        "posterior sd over prior sd; near 1 the runs say little beyond the prior. The sd of a positive rate "
        "falls with its level as well: a low ratio need not mean that it is known well",
    ),
)


def _families_in_words(fit: Fit, rates: pd.DataFrame, prob: float) -> list[str]:
    """Who transfers most and least, how many pairs the data tell apart, and base against instruct."""
    transfer = rates[rates["quantity"] == "A"].sort_values("mean", ascending=False)
    p = pairwise_probability(family_draws(fit)["A"])
    pairs = np.triu(np.ones(p.shape, bool), 1)
    told = int(((p.to_numpy() >= prob) | (p.to_numpy() <= 1 - prob))[pairs].sum())
    low, high = interval_columns("posterior", prob)
    top, bottom = transfer.iloc[0], transfer.iloc[-1]
    sentences = []
    if len(transfer) > 1 and transfer["sd"].iloc[0] > 0 and not np.allclose(p, 0.5):
        first, last = (
            f"{row['mean']:.2f} ({interval_label('posterior', prob)} {row[low]:.2f} to {row[high]:.2f})"
            for row in (top, bottom)
        )
        sentences.append(
            f"{top['family']} has the highest transfer rate, A = {first}, {bottom['family']} the lowest, "
            f"{last}; the first exceeds the second with probability "
            f"{probability(p.loc[top['family'], bottom['family']])}."
        )
        sentences.append(
            f"Of {int(pairs.sum())} pairs of families the data tell {told} apart in A with probability "
            f"{prob:g}."
        )
    else:
        sentences.append(f"Model {fit.model} gives all families the same rates.")
    return sentences + _variants_in_words(fit, prob)


def _variants_in_words(fit: Fit, prob: float) -> list[str]:
    try:
        variants = compare_variants(fit, prob=prob)
    except ModelError:
        return []
    row = variants[(variants["family"] == "all families") & (variants["quantity"] == "A")]
    if row.empty:
        return []
    contrast = row.iloc[0]
    above = probability(contrast["p_instruct_greater"])
    low, high = interval_columns("posterior", prob, of="difference")
    return [
        f"Over all families A is {contrast['base']:.2f} for base and {contrast['instruct']:.2f} for instruct "
        f"backbones; the difference is {signed_number(contrast['difference_mean'], 2)} "
        f"({interval_label('posterior', prob)} {signed_number(contrast[low], 2)} to "
        f"{signed_number(contrast[high], 2)}), above zero with probability {above}."
    ]


def benchmark_section(fit: Fit, prob: float) -> Section:
    """Build the section on transfer coefficients of text benchmarks."""
    coefficients = transfer_coefficients(fit, prob=prob)

    def draw(width: float) -> Drawing:
        drawing, ax = _one_axes(width, len(coefficients))
        plot_transfer_coefficients(fit, prob=prob, ax=ax)
        return drawing

    columns = benchmark_columns(coefficients, prob)
    largest = coefficients.iloc[0]
    taxed = coefficients[coefficients["p_tax"] >= prob]
    unclear = coefficients[coefficients["p_tax"].between(1 - prob, prob, inclusive="neither")]
    sentences = [f"{largest['benchmark']} counts most towards capability: λ = {largest['mean']:.2f}."]
    if len(taxed):
        sentences.append(f"A tax with probability {prob:g} or more: {', '.join(taxed['benchmark'])}.")
    else:
        sentences.append(f"No benchmark is a transfer tax with probability {prob:g} or more.")
    if len(unclear):
        listed = ", ".join(f"{row.benchmark} ({undecided(row.p_tax, prob)})" for row in unclear.itertuples())
        sentences.append(f"The data leave the sign of λ open for {listed}; in parentheses P(tax).")
    interval = interval_label("posterior", prob)
    caption = f"Transfer coefficient λ of each text benchmark with {interval}, and P(tax)."
    parts: list[Part] = [
        figure("coefficients", caption, draw),
        table("lambda", "Transfer coefficients", coefficients, columns, converged=fit.diagnose().converged),
        Definitions(BENCHMARK_TERMS, folded="What the columns mean"),
    ]
    return Section("benchmarks", "Text benchmarks", sentences, parts)


BENCHMARK_TERMS = (
    ("λ", "weight of a text score in capability: S is the sum over benchmarks of λ times the centred score"),
    ("P(tax)", "probability that λ < 0: a higher text score goes with a lower multimodal accuracy"),
)


def sensitivity_section(before: Answer, after: Answer, refit: Fit) -> Section:
    """Build the section on how the answer changes when flagged text scores are treated as missing."""
    moved = changes(before, after)
    columns = (
        Column("backbone", "backbone"),
        Column("rank", "rank_before", "integer"),
        Column("rank without", "rank_after", "integer"),
        Column("accuracy, %", "mean_before", "percent"),
        Column("accuracy without, %", "mean_after", "percent"),
        Column("change, points", "change", "points"),
        Column("P(best)", "p_best_before", "probability"),
        Column("P(best) without", "p_best_after", "probability"),
    )
    treated = [note for note in refit.study.notes if note.code == "treated-as-missing"]
    caption = "Ranking with all text scores, and without those that are flagged as broken"
    return Section(
        "sensitivity",
        "What flagged text scores change",
        changes_in_words(before, after, moved, flagged=len(treated)),
        [
            table("changes", caption, moved, columns, converged=before.converged and after.converged),
            Notes(treated, folded=f"The {len(treated)} flagged scores"),
        ],
    )


def model_section(fits: Mapping[str, Fit]) -> Section:
    """Build the section that compares models of the same runs."""
    comparison = compare_models(fits)
    best, second = comparison.iloc[0], comparison.iloc[1]
    sentences = [
        f"{comparison.attrs['method']}: {best['model']} predicts a run that is left out alone better than "
        f"{second['model']}, by {-second['elpd_difference']:.1f} ± {second['elpd_difference_se']:.1f} in "
        "log density (one standard error).",
        *comparison.attrs["warnings"],
    ]
    converged = bool(comparison["converged"].all())
    part = table("models", comparison.attrs["method"], comparison, MODEL_COLUMNS, converged=converged)
    return Section("models", "Model comparison", sentences, [part])


def _asked(question: Question) -> dict[str, Any]:
    return {
        "candidates": question.candidates,
        "volume": question.volume,
        "recipe": question.recipe,
        "kind": question.kind,
        "seed": question.seed,
    }


def _one_axes(width: float, rows: int) -> tuple[Drawing, Any]:
    around = 1.6 if width <= NARROW else 1.2
    drawing = plt.figure(figsize=(width, ROW * rows + around), layout="constrained")
    return drawing, drawing.add_subplot()
