"""Command ``validate``: exact refits, scores of what was held out, and the comparison of rivals."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bayescdm.cli.fits import changed, count, load
from bayescdm.cli.frame import (
    AsJson,
    Benchmarks,
    Chains,
    Components,
    Draws,
    Model,
    Overwrite,
    Seed,
    StudyName,
    TreatOutliers,
    Tune,
    Unscored,
    app,
)
from bayescdm.cli.output import NOT_CONVERGED, print_json, print_table, progress, show_frame

if TYPE_CHECKING:
    from bayescdm.sampling import SamplerSettings
    from bayescdm.study import Study

__all__: list[str] = []


@app.command()
def validate(
    study: StudyName,
    by: Annotated[
        str | None, typer.Option(help="What is held out: family (default), recipe, backbone or size.")
    ] = None,
    holdout: Annotated[
        list[str] | None, typer.Option(help="Hold out this backbone; repeat for several at once.")
    ] = None,
    cut: Annotated[
        str, typer.Option(help="With --by size: hold out models with more parameters than this.")
    ] = "8B",
    rivals: Annotated[
        bool,
        typer.Option("--rivals", help="Compare rival predictors, by family and recipe unless --by says."),
    ] = False,
    model: Model = "transfer_hierarchical",
    components: Components = None,
    benchmark: Benchmarks = None,
    keep_text_scores: Annotated[
        bool, typer.Option("--keep-text-scores", help="Let held-out backbones shape the components.")
    ] = False,
    treat_outliers_as_missing: TreatOutliers = False,
    unscored: Unscored = "leave_out",
    draws: Draws = None,
    tune: Tune = None,
    chains: Chains = None,
    seed: Seed = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for a page, tables and finished refits; an interrupted run goes on there."),
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Refit a model without parts of a study, exactly, and score its predictions of them."""
    loaded = load(
        study, benchmark, treat_outliers_as_missing=treat_outliers_as_missing, unscored=unscored
    )  # fmt: skip
    # Imported when the study is known to be one: the sampler takes seconds.
    from bayescdm.report.validation import validation_document
    from bayescdm.validate import REFIT_SETTINGS, SCORE_COLUMNS, readable_scores, refuse_tables
    from bayescdm.validate import validate as run
    from bayescdm.validate.readers import LEGEND, WHAT
    from bayescdm.validate.validation import PAGE

    if out is not None and not overwrite:
        refuse_tables(out)
    settings = changed(REFIT_SETTINGS, draws, tune, chains)
    if rivals:
        _compare(loaded, by, components, seed, settings, out, overwrite=overwrite, as_json=as_json)
        return
    watched = progress(f"{loaded.name}: compiling {model} (about 20 s), then one refit a fold")
    with _resumable(out):
        validation = run(
            loaded,
            by=by or ("holdout" if holdout else "family"),  # type: ignore[arg-type]
            holdout=holdout or (),
            cut=count("--cut", cut),
            model=model,
            components=components,
            refit_components=not keep_text_scores,
            store=None if out is None else out / "refits",
            seed=seed,
            settings=settings,
            progress=watched,
        )
    if out is not None:
        validation.save(out, overwrite=overwrite)
        page = validation_document(validation).write(out / PAGE, overwrite=overwrite)
        typer.echo(f"tables and page: {page}", err=True)
    if as_json:
        print_json(validation.to_dict())
    else:
        title = f"{validation.model} on {validation.study}, {WHAT[validation.by]}"
        print_table(readable_scores(validation), SCORE_COLUMNS, title=title, converged=validation.converged)
        typer.echo(LEGEND)
    for note in validation.notes:
        typer.echo(str(note), err=True)
    if not validation.converged:
        raise typer.Exit(NOT_CONVERGED)


def _compare(
    study: Study,
    by: str | None,
    components: int | None,
    seed: int,
    settings: SamplerSettings,
    out: Path | None,
    *,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Show the table of rivals."""
    from bayescdm.validate import RIVAL_COLUMNS, compare_predictors, readable_rivals

    watched = progress(f"{study.name}: exact refits of every rival; this takes many minutes")
    with _resumable(out):
        table = compare_predictors(
            study,
            by=(by,) if by else ("family", "recipe"),  # type: ignore[arg-type]
            components=components,
            store=None if out is None else out / "refits",
            seed=seed,
            settings=settings,
            progress=watched,
        )
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    show_frame(
        table,
        RIVAL_COLUMNS,
        title=f"Rivals on {study.name}, exact refits",
        as_json=as_json,
        out=None if out is None else out / "rivals.csv",
        overwrite=overwrite,
        shown=readable_rivals(table),
    )
    if not table.attrs["converged"]:
        raise typer.Exit(NOT_CONVERGED)


@contextmanager
def _resumable(out: Path | None) -> Iterator[None]:
    """Say on Ctrl-C what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "give --out to keep finished refits"
        if out is not None:
            kept = f"finished refits are kept in {out / 'refits'}; the same command goes on from there"
        raise KeyboardInterrupt(kept) from None
