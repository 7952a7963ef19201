"""Command ``batch``: the optimal batch size of a backbone at a volume, from losses at several sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bayescdm.cli.fits import candidates_read, far_volumes, volume_of
from bayescdm.cli.frame import AsJson, CandidateFile, FitFile, Kind, Overwrite, Prob, TableOut, app
from bayescdm.cli.output import end, show_frame
from bayescdm.errors import RequestError

__all__: list[str] = []


@app.command()
def batch(
    fit: FitFile,
    losses: Annotated[
        Path, typer.Argument(help="Table of backbone, volume, batch_size and loss, one row a run and volume.")
    ],
    volume: Annotated[
        list[str] | None, typer.Option("--volume", help="Data volume, such as 50B; may be repeated.")
    ] = None,
    backbone: Annotated[
        list[str] | None,
        typer.Option(
            "--backbone", help="Backbone of the study; may be repeated. By default those with text scores."
        ),
    ] = None,
    candidates: CandidateFile = None,
    predictor: Annotated[
        Literal["composite", "params"],
        typer.Option(help="What the batch size follows: A·S + (B0 − Bm·S)·ln D, or ln N."),
    ] = "composite",
    compare: Annotated[
        bool,
        typer.Option("--compare", help="Compare both predictors instead, each tuned backbone left out once."),
    ] = False,
    kind: Kind = "run",
    prob: Prob = 0.9,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is drawn.")] = 0,
    out: TableOut = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Predict the optimal batch size from losses at several sizes, with the posterior of the law."""
    from bayescdm.fit import load_fit
    from bayescdm.paper import compare_batch_predictors, fit_batch_size, read_batch_losses
    from bayescdm.paper.readers import PREDICTOR_COLUMNS, batch_columns, readable_batches, slope_in_words

    _refuse(volume, backbone, candidates, compare=compare)
    fitted = load_fit(fit)
    read, notes = read_batch_losses(losses, fitted.study)
    for note in notes:
        typer.echo(str(note), err=True)
    if compare:
        table = compare_batch_predictors(fitted, read, seed=seed)
        title = f"{fitted.study.name}: predictors of the optimal batch size, tuned backbones left out"
        show_frame(
            table, PREDICTOR_COLUMNS, title=title, as_json=as_json, out=out, overwrite=overwrite, notes=notes
        )
        end(fitted)
        return
    asked, said = (backbone, ()) if candidates is None else candidates_read(fitted.study, candidates)
    volumes = [volume_of(text, fitted.study) for text in volume or ()]
    far = far_volumes(volumes, fitted.study)
    for note in far:
        typer.echo(str(note), err=True)
    law = fit_batch_size(fitted, read, predictor=predictor, seed=seed)
    table = law.predict(asked, volumes=volumes, kind=kind, prob=prob, seed=seed)
    table.attrs["slope"] = law.summary(prob=prob).query("quantity == 'beta'").iloc[0].to_dict()
    title = f"{fitted.study.name}: optimal batch size, volume in {fitted.study.volume_unit}"
    show_frame(
        table,
        batch_columns(kind, prob),
        title=title,
        as_json=as_json,
        out=out,
        overwrite=overwrite,
        shown=readable_batches(table),
        notes=[*notes, *said, *far],
    )
    if not as_json:
        typer.echo(slope_in_words(law, prob))
    end(fitted)


def _refuse(
    volume: list[str] | None, backbone: list[str] | None, candidates: Path | None, *, compare: bool
) -> None:
    """Refuse what would be ignored, and a prediction at no volume."""
    if compare:
        given = {"--volume": volume, "--backbone": backbone, "--candidates": candidates}
        if ignored := [name for name, value in given.items() if value]:
            raise RequestError("\n".join(f"{name} means nothing beside --compare" for name in ignored))
    elif not volume:
        raise RequestError("--volume is missing: at which data volume is the batch size asked for?")
    if backbone and candidates:
        raise RequestError("give --backbone or --candidates, not both")
