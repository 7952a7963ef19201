"""The command ``report``: from a study or a fit to an answer and one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bayescdm.cli.fits import (
    announced,
    candidates_read,
    opened,
    refuse_fitting,
    sampler,
    seeds,
    size,
    volume_of,
)
from bayescdm.cli.frame import (
    AsJson,
    Benchmarks,
    CandidateFile,
    Chains,
    Draws,
    Model,
    Prob,
    Recipe,
    SeedOfTwo,
    TreatOutliers,
    Tune,
    Unscored,
    app,
)
from bayescdm.cli.output import end, print_json, print_table, progress
from bayescdm.errors import RequestError, unknown_name
from bayescdm.intervals import check_probability

if TYPE_CHECKING:
    from bayescdm.errors import Note
    from bayescdm.fit import Fit
    from bayescdm.report.answers import Answer
    from bayescdm.report.document import Format
    from bayescdm.report.families import FamilyReports
    from bayescdm.report.family import FamilyReport
    from bayescdm.sampling import SamplerSettings
    from bayescdm.study import Study
    from bayescdm.tables import Column

__all__: list[str] = []

#: What `--family` takes for every family on one page.
ALL = "all"
#: Candidates printed in the terminal; the report and the JSON hold all.
PRINTED = 15
#: Columns that fit into a terminal, besides the interval.
PRINTED_COLUMNS = ("backbone", "accuracy, %", "P(best)", "P(first is better)", "regret, points")
#: The same of a family's position.
PRINTED_POSITION = (
    "quantity",
    "mean",
    "population",
    "P(above population)",
    "own runs alone",
    "pooling, share of the way",
)


@app.command()
def report(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="STUDY|FIT", help="Folder or name of a study, or a fit (.nc).")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Report to write; bayescdm-STUDY.html here by default."),
    ] = None,
    candidates: CandidateFile = None,
    volume: Annotated[
        str | None, typer.Option(help="Data volume, such as 1.2M; by default that of the recipe's runs.")
    ] = None,
    recipe: Recipe = None,
    smallest: Annotated[
        str | None, typer.Option("--min-size", help="Smallest of the default candidates, such as 1B.")
    ] = None,
    largest: Annotated[
        str | None, typer.Option("--max-size", help="Largest of the default candidates, such as 9B.")
    ] = None,
    prob: Prob = 0.9,
    model: Model = "transfer_hierarchical",
    seed: SeedOfTwo = None,
    benchmark: Benchmarks = None,
    treat_outliers_as_missing: TreatOutliers = False,
    unscored: Unscored = "leave_out",
    draws: Draws = None,
    tune: Tune = None,
    chains: Chains = None,
    sensitivity: Annotated[
        bool,
        typer.Option(
            help="Of a study: fit again with flagged text scores treated as missing, and say what changes."
        ),
    ] = True,
    overwrite: Annotated[
        bool,
        typer.Option(
            help="Replace a file that stands there; without --out an earlier report is replaced anyway."
        ),
    ] = False,
    format: Annotated[
        Literal["html", "md", "json"],
        typer.Option("--format", help="What is written: a page, a text for a pull request, or JSON."),
    ] = "html",
    family: Annotated[
        str | None,
        typer.Option(help="Report on this family instead of ranking candidates; `all` for every family."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer which backbone is best and how sure, in the terminal and in one self-contained report."""
    from bayescdm.atomic import check_place

    if family is not None and (candidates or smallest or largest):
        raise RequestError(
            "--family reports on the study's own backbones; leave out --candidates, --min-size and --max-size"
        )
    refuse_fitting(context, source)
    refit = None
    study, fitted = opened(source, benchmark, unscored, treat_outliers_as_missing=treat_outliers_as_missing)
    # Imported when the study is known to be one: the sampler takes seconds.
    from bayescdm.report.page import is_report

    place = _place(out, study.name, family, format)
    replace = overwrite or (out is None and is_report(place))
    of_sampler, of_draws = seeds(seed)
    # Refused before minutes of sampling, not after.
    check_place(place, overwrite=replace)
    check_probability(prob)
    _check_family(study, family)
    if fitted is None:
        again = sensitivity and family is None and not treat_outliers_as_missing
        fitted, refit = _fits(study, model, of_sampler, sampler(draws, tune, chains), sensitivity=again)
    asked: dict[str, Any] = {
        "recipe": recipe,
        "volume": None if volume is None else volume_of(volume, study),
        "prob": prob,
        "seed": of_draws,
    }
    if family is not None:
        _report_family(fitted, family, asked, place, format, overwrite=replace, as_json=as_json)
    else:
        who, notes = candidates_read(fitted.study, candidates, once=True)
        asked |= {"candidates": who, "sizes": _sizes(smallest, largest)}
        _report_answer(fitted, asked, notes, refit, place, format, overwrite=replace, as_json=as_json)
    end(fitted)


def _report_answer(
    fitted: Fit,
    asked: dict[str, Any],
    notes: Sequence[Note],
    refit: Fit | None,
    place: Path,
    format: Format,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Answer which backbone, write the report and show the answer."""
    from bayescdm.report.answers import answer
    from bayescdm.report.make import answer_document

    answered = answer(fitted, **asked)
    progress(f"{fitted.study.name}: drawing the report")
    document = answer_document(fitted, answered, sensitivity_fit=refit)
    document.write(place, format=format, overwrite=overwrite)
    if as_json:
        said = [note.to_dict() for note in (*notes, *answered.notes)]
        print_json({"report": str(place), **document.to_dict(), "notes": said})
    else:
        changed = [
            s for section in document.sections if section.name == "sensitivity" for s in section.sentences
        ]
        _show(answered, place, changed)


def _report_family(
    fitted: Fit,
    family: str,
    asked: dict[str, Any],
    place: Path,
    format: Format,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Report on one family or on all."""
    from bayescdm.report import family_report, family_reports

    told: FamilyReport | FamilyReports
    told = family_reports(fitted, **asked) if family == ALL else family_report(fitted, family, **asked)
    progress(f"{fitted.study.name}: drawing the report")
    document = told.document()
    document.write(place, format=format, overwrite=overwrite)
    if as_json:
        print_json({"report": str(place), **document.to_dict()})
        return
    _show_positions(told, document.title)
    typer.echo()
    for sentence in document.sections[0].sentences:
        typer.echo(sentence)
    typer.echo(f"\nreport: {place}")


def _show_positions(told: FamilyReport | FamilyReports, title: str) -> None:
    """Print the rates of the families told of against the population."""
    import pandas as pd

    from bayescdm.columns import position_columns
    from bayescdm.report.families import FamilyReports
    from bayescdm.tables import Column
    from bayescdm.wording import short_count

    reports = list(told.reports) if isinstance(told, FamilyReports) else [told]
    first = reports[0]
    rows = pd.concat([report.position for report in reports], ignore_index=True)
    every = position_columns(rows, first.question.prob)
    columns = [column for column in every if column.title in PRINTED_POSITION or _is_interval(column)]
    if len(reports) > 1:
        rows = rows[rows["quantity"] == "A"]
        columns[0] = Column("family", "family")
    at = f"A at {short_count(first.rates_volume)} {first.fit.study.volume_unit}"
    print_table(rows, columns, title=f"{title}: {at}", converged=first.converged)


def _is_interval(column: Column) -> bool:
    return isinstance(column.source, tuple) and column.source[0].startswith("posterior")


def _check_family(study: Study, family: str | None) -> None:
    """Refuse a family that the study does not have, before minutes of sampling."""
    if family is not None and family != ALL and family not in study.families:
        raise unknown_name("family", family, study.families)


def _place(out: Path | None, study: str, family: str | None, format: str) -> Path:
    """Return where the report goes: as asked, or named after study and family in the current folder."""
    if out is not None:
        return out
    of_family = {None: "", ALL: "-families"}.get(family, f"-{family}")
    name = f"{study}{of_family}"
    safe = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    return Path(f"bayescdm-{safe}.{format}")


def _sizes(smallest: str | None, largest: str | None) -> tuple[float, float] | None:
    """Return the sizes asked for; the end that was not asked for keeps its default."""
    from bayescdm.report.question import SIZES

    if smallest is None and largest is None:
        return None
    return (
        SIZES[0] if smallest is None else size("--min-size", smallest),
        SIZES[1] if largest is None else size("--max-size", largest),
    )


def _fits(
    study: Study, model: str, seed: int, settings: SamplerSettings, *, sensitivity: bool
) -> tuple[Fit, Fit | None]:
    """Fit the study, and once more without its flagged text scores if there are any."""
    from bayescdm.fit import fit
    from bayescdm.outliers import flag_text_outliers, treat_as_missing

    watched = announced(study, model)
    fitted = fit(study, model=model, seed=seed, settings=settings, progress=watched)
    flags = flag_text_outliers(study)
    stopped = any(note.code == "interrupted" for note in fitted.notes)
    if flags.empty or not sensitivity or stopped:
        return fitted, None
    progress(f"{study.name}: once more, with {len(flags)} flagged text scores treated as missing")
    missing = treat_as_missing(study, flags)
    return fitted, fit(missing, model=model, seed=seed, settings=settings, progress=watched)


def _show(asked: Answer, place: Path, changed: Sequence[str]) -> None:
    """Print the answer: the first candidates, the sentences, and where the report is."""
    from bayescdm.columns import ranking_columns
    from bayescdm.wording import first_of, short_names

    shown = ranking_columns(asked.question.kind, asked.question.prob)
    columns = [column for column in shown if column.title in PRINTED_COLUMNS] + [shown[2]]
    first = asked.ranking.assign(backbone=short_names(asked.ranking["backbone"])).head(PRINTED)
    title = first_of(len(first), len(asked.ranking), "candidate")
    print_table(first, sorted(columns, key=shown.index), title=title, converged=asked.converged)
    typer.echo()
    for sentence in (*asked.sentences, *changed, *asked.question.chosen, *asked.notes):
        typer.echo(str(sentence))
    typer.echo(f"\nreport: {place}")
