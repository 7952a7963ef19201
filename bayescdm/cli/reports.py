"""The command ``report``: from a study or a fit to an answer and one page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayescdm.cli.fits import candidates_of, count, load, sampler
from bayescdm.cli.frame import (
    AsJson,
    Benchmarks,
    CandidateFile,
    Chains,
    Draws,
    Model,
    Prob,
    Recipe,
    Seed,
    Tune,
    Unscored,
    app,
)
from bayescdm.cli.output import end, print_json, print_table, progress

if TYPE_CHECKING:
    from bayescdm.fit import Fit
    from bayescdm.report.answers import Answer
    from bayescdm.sampling import SamplerSettings
    from bayescdm.study import Study

__all__: list[str] = []

#: Candidates printed in the terminal; the page and the JSON hold all.
PRINTED = 15
#: Columns that fit into a terminal, besides the interval.
PRINTED_COLUMNS = ("backbone", "accuracy, %", "P(best)", "P(first is better)", "regret, points")


@app.command()
def report(
    source: Annotated[
        str, typer.Argument(metavar="STUDY|FIT", help="Folder or name of a study, or a fit (.nc).")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Page to write; bayescdm-STUDY.html here by default."),
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
    seed: Seed = 1,
    benchmark: Benchmarks = None,
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
        bool, typer.Option(help="Replace whatever file stands there; an earlier report is replaced anyway.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Answer which backbone is best and how sure, in the terminal and on one self-contained page."""
    from bayescdm.atomic import check_place
    from bayescdm.fit import load_fit
    from bayescdm.report.answers import answer
    from bayescdm.report.make import report_answer
    from bayescdm.report.page import is_report

    refit = None
    if source.endswith(".nc"):
        fitted = load_fit(source)
        page = _place(out, fitted.study.name)
        check_place(page, overwrite=overwrite or is_report(page))
    else:
        study = load(source, benchmark, unscored=unscored)
        page = _place(out, study.name)
        check_place(page, overwrite=overwrite or is_report(page))
        fitted, refit = _fits(study, model, seed, sampler(draws, tune, chains), sensitivity=sensitivity)
    asked = answer(
        fitted,
        candidates=candidates_of(fitted, candidates),
        recipe=recipe,
        volume=None if volume is None else count("--volume", volume),
        sizes=_sizes(smallest, largest),
        prob=prob,
    )
    progress(f"{fitted.study.name}: drawing the page")
    report_answer(fitted, asked, page, sensitivity_fit=refit, overwrite=overwrite or is_report(page))
    _show(asked, fitted, page, as_json=as_json)
    end(fitted)


def _place(out: Path | None, study: str) -> Path:
    """Return where the page goes: as asked, or named after the study in the current folder."""
    if out is not None:
        return out
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in study)
    return Path(f"bayescdm-{plain}.html")


def _sizes(smallest: str | None, largest: str | None) -> tuple[float, float] | None:
    """Return the sizes asked for; the end that was not asked for keeps its default."""
    from bayescdm.report.question import SIZES

    if smallest is None and largest is None:
        return None
    return (
        SIZES[0] if smallest is None else count("--min-size", smallest),
        SIZES[1] if largest is None else count("--max-size", largest),
    )


def _fits(
    study: Study, model: str, seed: int, settings: SamplerSettings, *, sensitivity: bool
) -> tuple[Fit, Fit | None]:
    """Fit the study, and once more without its flagged text scores if there are any."""
    from bayescdm.fit import fit
    from bayescdm.outliers import flag_text_outliers, treat_as_missing

    watched = progress(f"{study.name}: compiling {model} (about 20 s), then sampling")
    fitted = fit(study, model=model, seed=seed, settings=settings, progress=watched)
    flags = flag_text_outliers(study)
    stopped = any(note.code == "interrupted" for note in fitted.notes)
    if flags.empty or not sensitivity or stopped:
        return fitted, None
    progress(f"{study.name}: once more, with {len(flags)} flagged text scores treated as missing")
    missing = treat_as_missing(study, flags)
    return fitted, fit(missing, model=model, seed=seed, settings=settings, progress=watched)


def _show(asked: Answer, fitted: Fit, page: Path, *, as_json: bool) -> None:
    """Print the answer: as JSON, or the sentences, the first candidates and where the page is."""
    if as_json:
        print_json({**asked.to_dict(), "report": str(page), "warnings": fitted.facts()["warnings"]})
        return
    from bayescdm.columns import ranking_columns
    from bayescdm.wording import short_names

    shown = ranking_columns(asked.question.kind, asked.question.prob)
    columns = [column for column in shown if column.title in PRINTED_COLUMNS] + [shown[2]]
    first = asked.ranking.assign(backbone=short_names(asked.ranking["backbone"])).head(PRINTED)
    title = f"first {len(first)} of {len(asked.ranking)} candidates"
    print_table(first, sorted(columns, key=shown.index), title=title, converged=asked.converged)
    typer.echo()
    for sentence in (*asked.sentences, *asked.question.chosen):
        typer.echo(sentence)
    typer.echo(f"\nreport: {page}")
