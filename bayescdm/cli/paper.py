"""Command ``paper``: every published figure of the paper beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayescdm.cli.frame import AsJson, Overwrite, Prob, Seed, TableOut, app
from bayescdm.cli.output import NOT_CONVERGED, progress, show_frame

__all__: list[str] = []


@app.command()
def paper(
    study: Annotated[
        str, typer.Argument(help="Folder of a study, or the name of a packaged one.")
    ] = "simulated-paper",
    fitted: Annotated[
        Path | None, typer.Option("--fit", help="Partially pooled fit of this study that is there already.")
    ] = None,
    families: Annotated[
        bool, typer.Option("--families/--no-families", help="Leave each family out in turn (minutes).")
    ] = True,
    cut: Annotated[str, typer.Option(help="Hold out models with more parameters than this.")] = "40B",
    seed: Seed = 1,
    prob: Prob = 0.9,
    out: TableOut = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Set every published figure of the paper beside ours, or say why a study cannot carry it."""
    from bayescdm.atomic import check_place
    from bayescdm.cli.fits import count
    from bayescdm.intervals import check_probability
    from bayescdm.reading import load_study

    check_probability(prob)
    if out is not None:
        check_place(out, overwrite=overwrite)
    largest = count("--cut", cut)
    loaded = load_study(study)
    # Imported when the study is known to be one: the sampler takes seconds.
    from bayescdm.fit import load_fit
    from bayescdm.paper import fit_paper, published_against_ours
    from bayescdm.paper.readers import figure_columns, readable_figures

    known = None if fitted is None else load_fit(fitted)
    progress(f"{loaded.name}: up to four models are compiled and refitted; this takes some minutes")
    fits = fit_paper(
        loaded,
        fit=known,
        families=families,
        cut=largest,
        seed=seed,
        report=lambda step: progress(f"  {step}"),
    )
    table = published_against_ours(fits, prob=prob)
    show_frame(
        table,
        figure_columns(prob),
        title=f"Published figures beside those of {loaded.name}",
        as_json=as_json,
        out=out,
        overwrite=overwrite,
        shown=readable_figures(table),
        notes=fits.notes,
    )
    for note in fits.notes:
        typer.echo(str(note), err=True)
    if not fits.converged:
        raise typer.Exit(NOT_CONVERGED)
