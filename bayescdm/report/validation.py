"""Sections on what a model predicted without having seen it, and on how it fits what it has seen."""

from __future__ import annotations

import matplotlib.pyplot as plt
from matplotlib.figure import Figure as Drawing

from bayescdm.fit import Fit
from bayescdm.plots.validation import plot_held_out, plot_pit, plot_residuals, residual_heights
from bayescdm.report.document import Document
from bayescdm.report.figures import NARROW, figure
from bayescdm.report.parts import Notes, Part, Section
from bayescdm.tables import Column, table
from bayescdm.validate import (
    SCORE_COLUMNS,
    PosteriorCheck,
    Validation,
    check_posterior,
    check_prior,
    prior_sensitivity,
    readable_scores,
)
from bayescdm.validate.readers import LEGEND, WHAT
from bayescdm.wording import and_more, study_name

__all__ = ["check_section", "validation_document", "validation_section"]

#: Folds without trajectories that are named.
LISTED = 8


def validation_section(validation: Validation) -> Section:
    """Build the section on exact refits: scores, held-out trajectories, calibration.

    Parameters
    ----------
    validation : Validation

    Returns
    -------
    Section
    """
    scores = validation.scores
    where = study_name(validation.study, simulated=validation.simulated)
    sentences = [
        f"{validation.model} was fitted to {where} anew with {WHAT[validation.by]}, and asked for what it "
        f"had not seen: {scores['evaluable']:.0f} of {scores['runs']:.0f} held-out runs can be judged. The "
        f"mean absolute error is {100 * scores['mae']:.2f} points, and {scores['coverage_80']:.0%} of the "
        f"runs lie in their 80 % interval, which is {100 * scores['width_80']:.1f} points wide on average."
    ]
    name = f"validation-{validation.by}"

    def draw_trajectories(width: float) -> Drawing:
        axes = plot_held_out(validation, columns=2 if width <= NARROW else 4, width=width)
        return axes[0].figure

    def draw_pit(width: float) -> Drawing:
        drawing = plt.figure(figsize=(min(width, 4.5), 2.8), layout="constrained")
        judged = validation.rows[validation.rows["evaluable"] == 1]
        plot_pit(judged["pit"].to_numpy(), ax=drawing.add_subplot())
        return drawing

    parts: list[Part] = [
        Notes(validation.notes),
        table(name, f"{WHAT[validation.by].capitalize()}. {LEGEND}.", readable_scores(validation),
              SCORE_COLUMNS, converged=validation.converged),
    ]  # fmt: skip
    if len(validation.trajectories):
        parts.append(figure(f"{name}-trajectories", _caption(validation), draw_trajectories))
    caption = "Held-out runs in their predictions: inside the band they are as spread as the model says."
    parts.append(figure(f"{name}-pit", caption, draw_pit, folded="Calibration of held-out runs"))
    return Section(name, f"What it predicts unseen: {WHAT[validation.by]}", sentences, parts)


def _caption(validation: Validation) -> str:
    """Say what trajectories are drawn, and which folds have none."""
    drawn = set(validation.trajectories["fold"])
    left = [str(fold) for fold in validation.folds["fold"] if fold not in drawn]
    missing = f" Not drawn, for want of a known data volume: {and_more(left, LISTED)}." if left else ""
    return f"Trajectories as predicted by a model fitted without them, and as measured.{missing}"


def validation_document(validation: Validation) -> Document:
    """Lay a validation out as a report of its own.

    Parameters
    ----------
    validation : Validation

    Returns
    -------
    Document
    """
    problem = "" if validation.converged else "Scores of refits that did not converge cannot be trusted."
    return Document(
        f"Can it be trusted? {study_name(validation.study, simulated=validation.simulated)}",
        f"Model {validation.model}, fitted anew with {WHAT[validation.by]}.",
        [validation_section(validation)],
        problem=problem,
        facts=validation.to_dict(),
    )


def _fit_in_words(check: PosteriorCheck) -> str:
    """Say which residuals are least like those of replicated data."""
    worst = check.table.loc[check.table["p_value"].idxmin()]
    return (
        f"A small p value says that residuals of the data follow something which those of replicated data "
        f"do not; the smallest is {worst['p_value']:.2f} ({worst['check']})."
    )


def check_section(fit: Fit) -> Section:
    """Build the section on the fit's own data and priors: residuals, prior accuracies, sensitivity.

    Parameters
    ----------
    fit : Fit
        Of a packaged model.

    Returns
    -------
    Section
    """
    check = check_posterior(fit)
    prior, prior_notes = check_prior(fit)
    outside = prior["below"] + prior["above"]
    sentences = [
        f"Before any data, {outside:.1%} of accuracies lie outside 0 to 100 %, and 95 % lie between "
        f"{prior['lower']:.0%} and {prior['upper']:.0%}.",
        _fit_in_words(check),
    ]

    def draw_residuals(width: float) -> Drawing:
        numbers, labels = residual_heights(check)
        columns = 1 if width <= NARROW else 2
        heights = [numbers] * (2 // columns) + [labels] * (2 // columns)
        drawing = plt.figure(figsize=(width, sum(heights)), layout="constrained")
        axes = drawing.subplots(len(heights), columns, squeeze=False, height_ratios=heights)
        plot_residuals(check, axes=axes)
        return drawing

    checks = [
        Column("residuals against", "check"),
        Column("observed", "observed", "number"),
        Column("replicated", "replicated", "number"),
        Column("p", "p_value", "probability"),
    ]
    sensitivity = [
        Column("quantity", "quantity"),
        Column("prior", "prior", "number"),
        Column("likelihood", "likelihood", "number"),
        Column("verdict", "diagnosis"),
    ]
    converged = fit.diagnose().converged
    parts: list[Part] = [
        Notes((*check.notes, *prior_notes)),
        table("checks", "Posterior predictive checks.", check.table, checks, converged=converged),
        figure("residuals", "Residuals against S and ln D, by recipe and by family.", draw_residuals),
        table("sensitivity", "How far each quantity moves when the prior, or the likelihood, is scaled.",
              prior_sensitivity(fit), sensitivity, converged=converged, folded="Sensitivity to the prior"),
    ]  # fmt: skip
    return Section("checks", "Does the model fit?", sentences, parts)
