"""Commands about studies: ``check`` and ``datasets``. Nothing here needs the sampler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bayescdm.cli.frame import AsJson, app
from bayescdm.cli.output import print_json

__all__: list[str] = []


@app.command()
def check(
    study: Annotated[str, typer.Argument(help="Folder of a study, or the name of a packaged one.")],
    benchmark: Annotated[
        str | None, typer.Option(help="What a run's accuracy is: average, one benchmark, or a group.")
    ] = None,
    fix: Annotated[
        Path | None, typer.Option("--fix", help="Write cleaned files and changes.csv into this folder.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Let --fix replace files that it wrote before.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was understood of a study, what was left out and why, and what limits the answers."""
    from bayescdm.describe import describe, summarise
    from bayescdm.reading import fix_study, load_study

    loaded = load_study(study, benchmarks=benchmark)
    changes = fix_study(study, fix, overwrite=overwrite) if fix else None
    if as_json:
        fixed = {} if changes is None else {"changes": changes.to_dict("records")}
        print_json(summarise(loaded) | fixed)
        return
    typer.echo(describe(loaded))
    if changes is not None:
        typer.echo(f"\n{len(changes)} changes: cleaned files and changes.csv are in {fix}")


@app.command()
def datasets(as_json: AsJson = False) -> None:
    """List the packaged studies with counts and sources."""
    from bayescdm.datasets import datasets as packaged

    table = packaged()
    if as_json:
        print_json(table.to_dict("records"))
        return
    for study in table.itertuples():
        typer.echo(
            f"{study.name} ({study.kind}): {study.description}\n"
            f"  {study.n_runs} runs ({study.n_fitted_runs} with text scores) of {study.n_recipes} recipes on "
            f"{study.n_with_runs} backbones; {study.n_scored} of {study.n_backbones} backbones of "
            f"{study.n_families} families have text scores\n"
            f"  {study.n_text_benchmarks} text benchmarks, {study.n_benchmarks} multimodal ones\n"
            f"  sources: {study.sources}"
        )
