"""Command ``validate``: exact refits, scores of what was held out, and the comparison of rivals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from bayescdm.cli.fits import load
from bayescdm.cli.frame import AsJson, TreatOutliers, Unscored, app
from bayescdm.cli.output import NOT_CONVERGED, print_json

__all__: list[str] = []


@app.command()
def validate(
    study: Annotated[str, typer.Argument(help="Folder of a study, or the name of a packaged one.")],
    by: Annotated[
        str | None,
        typer.Option(help="What is held out: family (default), recipe, backbone or size."),
    ] = None,
    holdout: Annotated[
        list[str] | None, typer.Option(help="Hold out this backbone; repeat for several at once.")
    ] = None,
    cut: Annotated[
        str, typer.Option(help="With --by size: hold out models with more parameters than this.")
    ] = "8B",
    model: Annotated[str, typer.Option(help="Model file: a packaged name, or a path.")] = (
        "transfer_hierarchical"
    ),
    components: Annotated[int | None, typer.Option(help="Number of text components.")] = None,
    keep_text_scores: Annotated[
        bool, typer.Option("--keep-text-scores", help="Let held-out backbones shape the components.")
    ] = False,
    treat_outliers_as_missing: TreatOutliers = False,
    unscored: Unscored = "leave_out",
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables and finished refits; a run that was interrupted goes on there."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace tables in --out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Refit a model without parts of a study, exactly, and score its predictions of them."""
    from bayescdm.reading import parse_count
    from bayescdm.validate import validate as run
    from bayescdm.validate.validation import refuse_tables

    if out is not None and not overwrite:
        refuse_tables(out)
    try:
        validation = run(
            load(study, treat_outliers_as_missing=treat_outliers_as_missing, unscored=unscored),
            by=by or ("holdout" if holdout else "family"),  # type: ignore[arg-type]
            holdout=holdout or (),
            cut=parse_count(cut),
            model=model,
            components=components,
            refit_components=not keep_text_scores,
            store=None if out is None else out / "refits",
            seed=seed,
            progress=sys.stderr.isatty(),
        )
    except KeyboardInterrupt:
        kept = "give --out to keep finished refits"
        if out is not None:
            kept = f"finished refits are kept in {out / 'refits'}; the same command goes on from there"
        raise KeyboardInterrupt(kept) from None
    if out is not None:
        validation.save(out, overwrite=overwrite)
    if as_json:
        print_json(validation.to_dict())
    else:
        typer.echo(validation.describe())
    if not validation.converged:
        raise typer.Exit(NOT_CONVERGED)
