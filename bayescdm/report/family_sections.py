"""The report of one family, or of all, as sections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure as Drawing

from bayescdm.columns import (
    family_backbone_columns,
    nearest_columns,
    pair_columns,
    position_columns,
    run_columns,
    text_score_columns,
    trajectory_columns,
    variant_columns,
)
from bayescdm.compare.contributions import FAMILY_MEAN
from bayescdm.plots import plot_positions, plot_text_scores, plot_trajectories
from bayescdm.plots.layout import ROW
from bayescdm.plots.style import study_title
from bayescdm.predict import LawDraws
from bayescdm.report.document import Document
from bayescdm.report.family import FamilyReport
from bayescdm.report.family_words import (
    backbones_in_words,
    extrapolation_in_words,
    nearest_in_words,
    observed_in_words,
    pairs_in_words,
    position_in_words,
    scores_in_words,
)
from bayescdm.report.figures import NARROW, figure
from bayescdm.report.parts import Definitions, Part, Section
from bayescdm.report.trust import (
    data_section,
    diagnostics_section,
    problem_of,
    settings_section,
    subtitle,
)
from bayescdm.tables import Column, table
from bayescdm.wording import counted, interval_label, short_count

if TYPE_CHECKING:
    pass

__all__ = ["families_document", "family_document"]

#: Backbones whose trajectories are drawn; the tables hold all.
TRAJECTORIES = 12


def family_document(report: FamilyReport) -> Document:
    """Lay the report of one family out as sections.

    Parameters
    ----------
    report : FamilyReport

    Returns
    -------
    Document
    """
    fit, prob = report.fit, report.question.prob
    sections = [
        _position_section(report),
        _trajectory_section(report),
        _pair_section(report),
        _score_section(report),
        _nearest_section(report),
        diagnostics_section(fit, prob),
        data_section(fit),
        settings_section(fit),
    ]
    return Document(
        f"{report.family} in {study_title(fit)}",
        subtitle(fit),
        sections,
        problem=problem_of(fit),
        facts={"family": report.family, **_facts(report)},
    )


def families_document(reports: Sequence[FamilyReport]) -> Document:
    """Lay the reports of several families of one fit out on one page, an overview first.

    Parameters
    ----------
    reports : sequence of FamilyReport
        At least one.

    Returns
    -------
    Document
    """
    fit, prob = reports[0].fit, reports[0].question.prob
    known = [report for report in reports if report.has_runs]
    sentences = [] if reports[0].converged else [*position_in_words(reports[0])[:1]]
    sentences.append(
        f"{counted(len(reports), 'family')} of {study_title(fit)} can be placed by their text scores; "
        f"{len(known)} of them have runs that inform the fit, of the others only the population speaks."
    )
    told = [report.family for report in known if _told(report)]
    sentences.append(
        f"Told from the population in A at {_stated(reports[0])} with probability {prob:g} or more: "
        f"{', '.join(told) or 'none'}."
    )
    sentences.append(
        f"All rates of this page are stated at {_stated(reports[0])}, whatever the volume of a family's own "
        "recipe; accuracies are under that recipe, at the volume said with them."
    )
    overview = pd.concat([report.position for report in reports], ignore_index=True)
    overview = overview[overview["quantity"].isin(["A", "mean_B"])].reset_index(drop=True)
    parts: list[Part] = [
        _positions_figure(reports[0], None, "positions"),
        table(
            "positions-all",
            f"Position of every family. A at {_stated(reports[0])}",
            overview,
            [Column("family", "family"), *position_columns(overview, prob)],
            converged=reports[0].converged,
        ),
        Definitions(POSITION_TERMS, folded="What the columns mean"),
    ]
    sections = [Section("overview", "All families", sentences, parts)]
    for place, report in enumerate(reports):
        sections.append(_short_section(report, f"family-{place}"))
    sections += [diagnostics_section(fit, prob), data_section(fit), settings_section(fit)]
    return Document(
        f"Families of {study_title(fit)}",
        subtitle(fit),
        sections,
        problem=problem_of(fit),
        facts={"families": [{"family": r.family, **_facts(r)["question"]} for r in reports], **fit.facts()},
    )


def _told(report: FamilyReport) -> bool:
    p = float(report.position.set_index("quantity").at["A", "p_greater"])
    return not 1 - report.question.prob < p < report.question.prob


def _facts(report: FamilyReport) -> dict[str, Any]:
    asked = report.question
    return {
        "question": {
            "recipe": asked.recipe,
            "volume": asked.volume,
            "rates_volume": report.rates_volume,
            "volume_unit": report.fit.study.volume_unit,
            "kind": asked.kind,
            "probability": asked.prob,
            "seed": asked.seed,
            "chosen": list(asked.chosen),
        },
        **report.fit.facts(),
    }


def _where(report: FamilyReport) -> str:
    return f"{short_count(report.question.volume)} {report.fit.study.volume_unit}"


def _stated(report: FamilyReport) -> str:
    """Volume at which transfer rates are stated."""
    return f"{short_count(report.rates_volume)} {report.fit.study.volume_unit}"


# --- sections ---------------------------------------------------------------------------------------


def _position_section(report: FamilyReport) -> Section:
    sentences = [*position_in_words(report), *nearest_in_words(report)[:1], *extrapolation_in_words(report)]
    if report.question.chosen:
        sentences.append("Not asked for, so chosen: " + "; ".join(report.question.chosen) + ".")
    parts: list[Part] = [
        _positions_figure(report, report.family, "positions"),
        _position_table(report, "position"),
        Definitions(POSITION_TERMS, folded="What the columns mean"),
    ]
    return Section("answer", f"Where {report.family} lies", sentences, parts)


POSITION_TERMS = (
    ("A", "transfer rate: accuracy gained per unit of capability S, at the stated volume"),
    ("B0, Bm", "base absorption and its decay with S, per unit of ln D"),
    ("mean B", "mean absorption rate B0 − Bm·S of the family's backbones, per unit of ln D"),
    (
        "population",
        "the median rate of families; for mean B with the capabilities of this family's backbones",
    ),
    ("own runs alone", "least squares with rates of its own and the recipes' baselines in common, ± one sd"),
    ("pooling", "share of the way from its own runs' estimate to the population that pooling has gone"),
    (
        "sd / prior sd",
        "posterior sd over prior sd; near 1 the runs say little beyond the prior. The sd of a positive rate "
        "falls with its level as well: a low ratio need not mean that it is known well",
    ),
)


def _positions_figure(report: FamilyReport, family: str | None, name: str) -> Part:
    fit, question = report.fit, report.question
    rows = len(LawDraws.of(fit, 1).families) + (0 if report.has_runs or family is None else 1)

    def draw(width: float) -> Drawing:
        drawing = plt.figure(figsize=(width, ROW * rows + 1.6), layout="constrained")
        plot_positions(
            fit,
            family=family,
            volume=report.rates_volume,
            prob=question.prob,
            seed=question.seed,
            ax=drawing.add_subplot(),
        )
        return drawing

    caption = (
        f"Transfer rate A of each family at {_stated(report)}: pooled, with "
        f"{interval_label('posterior', question.prob)}, and from its own runs alone."
    )
    return figure(name, caption, draw)


def _position_table(report: FamilyReport, name: str) -> Part:
    caption = f"Rates of {report.family} against the population. A at {_stated(report)}"
    columns = position_columns(report.position, report.question.prob)
    return table(name, caption, report.position, columns, converged=report.converged)


def _trajectory_section(report: FamilyReport) -> Section:
    fit, question = report.fit, report.question
    shown = list(question.candidates or [])[:TRAJECTORIES]

    def draw(width: float) -> Drawing:
        axes = plot_trajectories(
            fit,
            candidates=[str(name) for name in shown],
            recipe=question.recipe,
            volume=question.volume,
            prob=question.prob,
            seed=question.seed,
            columns=2 if width <= NARROW else 3,
            width=width,
        )
        return axes[0].get_figure(root=True)

    left_out = len(report.backbones) - len(shown)
    caption = (
        f"Accuracy against data volume under {question.recipe}, with law and run {100 * question.prob:g} % "
        "intervals; dashed beyond what runs, or this recipe's own, have seen of capability, size and volume; "
        f"the dotted line is {_where(report)}."
        + (f" {counted(left_out, 'backbone')} more in the table." if left_out else "")
    )
    parts: list[Part] = [
        figure("trajectories", caption, draw),
        table(
            "backbones",
            f"Backbones of {report.family} under {question.recipe} at {_where(report)}",
            report.backbones,
            family_backbone_columns(question.kind, question.prob),
            converged=report.converged,
        ),
        table(
            "trajectory-table",
            f"Trajectories under {question.recipe}",
            report.trajectories,
            trajectory_columns(question.prob),
            converged=report.converged,
            folded="The trajectories in figures",
        ),
        table(
            "runs",
            f"Runs of {report.family} that inform the fit",
            report.runs,
            run_columns(question.prob),
            converged=report.converged,
            folded="Its runs",
        ),
    ]
    sentences = [*backbones_in_words(report), *observed_in_words(report)]
    return Section("trajectories", "Backbones and their trajectories", sentences, parts)


def _pair_section(report: FamilyReport) -> Section:
    prob, parts = report.question.prob, []
    if len(report.pairs):
        parts.append(
            table(
                "pairs",
                f"Instruct minus base of one size, paired by draw, under {report.question.recipe}",
                report.pairs,
                pair_columns(report.question.kind, prob),
                converged=report.converged,
            )
        )
    if len(report.contrasts):
        columns = variant_columns(report.contrasts, prob)[1:]
        caption = f"Rates of base and instruct in {report.family}. A at {_stated(report)}"
        parts.append(table("contrasts", caption, report.contrasts, columns, converged=report.converged))
    return Section("pairs", "Base against instruct", pairs_in_words(report), parts)


def _score_section(report: FamilyReport) -> Section:
    fit, prob = report.fit, report.question.prob
    mean = report.text_scores[report.text_scores["backbone"] == FAMILY_MEAN]
    each = report.text_scores[report.text_scores["backbone"] != FAMILY_MEAN].reset_index(drop=True)

    def draw(width: float) -> Drawing:
        around = 1.7 if width <= NARROW else 1.3
        drawing = plt.figure(figsize=(width, ROW * len(mean) + around), layout="constrained")
        plot_text_scores(
            fit, family=report.family, prob=prob, seed=report.question.seed, ax=drawing.add_subplot()
        )
        return drawing

    columns = text_score_columns(prob)
    parts: list[Part] = [
        figure("text-scores", f"What each text score of {report.family} adds to capability.", draw),
        table(
            "text-scores-mean",
            f"What each text score of {report.family} adds. Accuracy by its A at {_stated(report)}",
            mean.sort_values("mean", ascending=False),
            columns[1:],
            converged=report.converged,
        ),
        Definitions(SCORE_TERMS, folded="What the columns mean"),
        table(
            "text-scores-each",
            "The same of each backbone",
            each,
            columns,
            converged=report.converged,
            folded="Text scores of each backbone",
        ),
    ]
    return Section("text-scores", "What its text scores say", scores_in_words(report), parts)


SCORE_TERMS = (
    ("λ", "weight of a text score in capability S; below zero it is a transfer tax"),
    ("P(tax)", "probability that λ < 0: a higher text score goes with a lower multimodal accuracy"),
    ("adds to S", "λ × (score − mean over the backbones that define the components)"),
    ("accuracy, points", "the same times the family's transfer rate A"),
)


def _nearest_section(report: FamilyReport) -> Section:
    rows = report.nearest
    equivalent = 100 * rows.attrs["equivalent"]
    columns = nearest_columns(report.question.prob, equivalent)
    parts: list[Part] = [
        table(
            "nearest",
            f"{report.family} against every other family with runs, nearest first. A at {_stated(report)}",
            rows,
            columns,
            converged=report.converged,
        ),
        Definitions(NEAREST_TERMS, folded="What the columns mean"),
    ]
    return Section("nearest", "Nearest families", nearest_in_words(report), parts)


NEAREST_TERMS = (
    ("P(A greater)", "probability that this family's transfer rate exceeds the other's, draw by draw"),
    (
        "transfer, points",
        "accuracy that this family gains more than the other from a weak backbone to a strong one: from the "
        "10 % to the 90 % quantile of S over backbones with runs",
    ),
    ("absorption, points", "accuracy that it gains more from ten times the data"),
    ("P(equal)", "probability that both differences are smaller than what counts as practically equal"),
)


def _short_section(report: FamilyReport, name: str) -> Section:
    """One family on the page of all: sentences, and its tables folded."""
    prob = report.question.prob
    sentences = [
        *[s for s in position_in_words(report) if not s.startswith("NOT CONVERGED")],
        *backbones_in_words(report)[:2],
        *observed_in_words(report),
        *scores_in_words(report)[:2],
        *nearest_in_words(report)[:1],
        *extrapolation_in_words(report),
    ]
    mean = report.text_scores[report.text_scores["backbone"] == FAMILY_MEAN]
    folded: dict[str, Any] = {"converged": report.converged}
    parts: list[Part] = [
        table(
            f"{name}-position", f"Rates against the population. A at {_stated(report)}", report.position,
            position_columns(report.position, prob), folded=f"{report.family}: rates", **folded,
        ),
        table(
            f"{name}-backbones", f"Under {report.question.recipe} at {_where(report)}", report.backbones,
            family_backbone_columns(report.question.kind, prob),
            folded=f"{report.family}: backbones", **folded,
        ),
        table(
            f"{name}-scores", f"What each text score adds. Accuracy by its A at {_stated(report)}",
            mean.sort_values("mean", ascending=False),
            text_score_columns(prob)[1:], folded=f"{report.family}: text scores", **folded,
        ),
        table(
            f"{name}-nearest", f"Nearest first. A at {_stated(report)}", report.nearest,
            nearest_columns(prob, 100 * report.nearest.attrs["equivalent"]),
            folded=f"{report.family}: other families", **folded,
        ),
    ]  # fmt: skip
    return Section(name, report.family, sentences, parts)
