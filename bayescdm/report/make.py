"""Make a report of a fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bayescdm.atomic import check_place
from bayescdm.modelfiles import model_names
from bayescdm.plots.style import study_title
from bayescdm.predict import Candidates
from bayescdm.report.answers import Answer, answer
from bayescdm.report.document import Document, Format, check_format
from bayescdm.report.sections import (
    answer_section,
    benchmark_section,
    family_section,
    model_section,
    sensitivity_section,
    trajectory_section,
)
from bayescdm.report.sensitivity import answer_again
from bayescdm.report.trust import (
    data_section,
    diagnostics_section,
    problem_of,
    settings_section,
    subtitle,
)
from bayescdm.report.validation import check_section, validation_section

if TYPE_CHECKING:
    from bayescdm.fit import Fit
    from bayescdm.validate import Validation

__all__ = ["answer_document", "report", "report_answer"]

#: What checks of a model against its own data need of a fit.
CHECKED = {"prior_predictive", "posterior_predictive", "log_likelihood"}


def report(
    fit: Fit,
    out: str | Path,
    *,
    candidates: Candidates = None,
    recipe: str | None = None,
    volume: float | None = None,
    sizes: tuple[float, float] | None = None,
    prob: float = 0.9,
    seed: int = 0,
    sensitivity_fit: Fit | None = None,
    models: Mapping[str, Fit] | None = None,
    validations: Sequence[Validation] = (),
    format: Format = "html",
    overwrite: bool = False,
) -> Path:
    """Write one self-contained report: the answer first, then what it stands on.

    Parameters
    ----------
    fit : Fit
    out : str or Path
    candidates, recipe, volume, sizes, prob, seed
        The question, as for `bayescdm.report.answer`.
    sensitivity_fit : Fit, optional
        The same study with flagged text scores treated as missing; the page says how the answer changes.
    models : mapping of str to Fit, optional
        Further fits of the same runs, by name, to compare with this one by PSIS-LOO.
    validations : sequence of Validation, optional
        Exact refits (`bayescdm.validate`), each a section with its held-out trajectories.
    format : {"html", "md", "json"}
        A page, a text for a pull request with its figures in a folder beside it, or strict JSON.
    overwrite : bool
        Replace an existing file.

    Returns
    -------
    Path

    Raises
    ------
    RequestError, NotFoundError, ModelError
        As for `bayescdm.report.answer`; the file exists and `overwrite` is false, or its folder does not.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.report(fit, "report.html", volume=1.2e6)  # doctest: +SKIP
    """
    asked = answer(
        fit, candidates=candidates, recipe=recipe, volume=volume, sizes=sizes, prob=prob, seed=seed
    )
    return report_answer(
        fit,
        asked,
        out,
        sensitivity_fit=sensitivity_fit,
        models=models,
        validations=validations,
        format=format,
        overwrite=overwrite,
    )


def report_answer(
    fit: Fit,
    asked: Answer,
    out: str | Path,
    *,
    sensitivity_fit: Fit | None = None,
    models: Mapping[str, Fit] | None = None,
    validations: Sequence[Validation] = (),
    format: Format = "html",
    overwrite: bool = False,
) -> Path:
    """Write the report of an answer that was already worked out.

    Parameters
    ----------
    fit, out, sensitivity_fit, models, validations, format, overwrite
        As for `report`.
    asked : Answer

    Returns
    -------
    Path
    """
    check_format(format)
    check_place(out, overwrite=overwrite)
    document = answer_document(
        fit, asked, sensitivity_fit=sensitivity_fit, models=models, validations=validations
    )
    return document.write(out, format=format, overwrite=overwrite)


def answer_document(
    fit: Fit,
    asked: Answer,
    *,
    sensitivity_fit: Fit | None = None,
    models: Mapping[str, Fit] | None = None,
    validations: Sequence[Validation] = (),
) -> Document:
    """Lay an answer and what it stands on out as sections.

    Parameters
    ----------
    fit, sensitivity_fit, models, validations
        As for `report`.
    asked : Answer

    Returns
    -------
    Document
    """
    prob = asked.question.prob
    sections = [
        answer_section(fit, asked),
        trajectory_section(fit, asked),
        family_section(fit, prob),
        benchmark_section(fit, prob),
    ]
    if sensitivity_fit is not None:
        again = answer_again(asked, sensitivity_fit)
        sections.append(sensitivity_section(asked, again, sensitivity_fit))
    if models:
        sections.append(model_section({fit.model: fit, **models}))
    sections += [validation_section(validation) for validation in validations]
    # Of a model file of one's own, only the draws are at hand.
    if fit.model in model_names() and set(fit.draws.children) >= CHECKED:
        sections.append(check_section(fit))
    sections += [diagnostics_section(fit, prob), data_section(fit), settings_section(fit)]
    return Document(
        f"Which backbone? {study_title(fit)}",
        subtitle(fit),
        sections,
        problem=problem_of(fit),
        facts={**asked.to_dict(), "warnings": fit.facts()["warnings"]},
    )
