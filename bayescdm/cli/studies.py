"""Commands about studies: ``check``, ``datasets`` and ``simulate``. Nothing here needs the sampler."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bayescdm.cli.fits import asked_benchmarks
from bayescdm.cli.frame import AsJson, Benchmarks, Overwrite, Seed, app
from bayescdm.cli.output import print_json

__all__: list[str] = []


@app.command()
def check(
    study: Annotated[str, typer.Argument(help="Folder of a study, or the name of a packaged one.")],
    benchmark: Benchmarks = None,
    fix: Annotated[
        Path | None, typer.Option("--fix", help="Write cleaned files and changes.csv into this folder.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Let --fix replace files that it wrote before.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was understood of a study, what was left out and why, and what limits the answers."""
    from bayescdm.describe import describe, summarise
    from bayescdm.reading import fix_study, load_study

    loaded = load_study(study, benchmarks=asked_benchmarks(benchmark))
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
    from bayescdm.datasets import list_datasets as packaged
    from bayescdm.wording import counted

    table = packaged()
    if as_json:
        print_json(table.to_dict("records"))
        return
    for study in table.itertuples():
        typer.echo(
            f"{study.name} ({study.kind}): {study.description}\n"
            f"  {counted(study.n_runs, 'run')} ({study.n_fitted_runs} with text scores) of "
            f"{counted(study.n_recipes, 'recipe')} on {counted(study.n_with_runs, 'backbone')}; "
            f"{study.n_scored} of {counted(study.n_backbones, 'backbone')} of "
            f"{counted(study.n_families, 'family')} have text scores\n"
            f"  {counted(study.n_text_benchmarks, 'text benchmark')}, {study.n_benchmarks} multimodal\n"
            f"  sources: {study.sources}"
        )


@app.command()
def simulate(
    out: Annotated[Path, typer.Option(help="Folder for the study's files; made when it is missing.")],
    seed: Seed = 0,
    families: Annotated[
        int | None,
        typer.Option(min=1, help="This many families, 0.5B to 10B, instead of the paper's roster."),
    ] = None,
    backbones_per_cell: Annotated[
        int | None,
        typer.Option(min=1, help="Base models, and instruct models, of each of those families (3)."),
    ] = None,
    text_benchmarks: Annotated[
        int | None, typer.Option(min=1, help="Text benchmarks of such a study (40).")
    ] = None,
    recipes: Annotated[int, typer.Option(min=1, help="Recipes, each run by every backbone.")] = 1,
    missing_runs: Annotated[float | None, typer.Option(help="Share of runs that are not measured.")] = None,
    missing_text: Annotated[
        float | None, typer.Option(help="Share of text scores that are not measured.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write a simulated study: the paper's roster near its tables, or families of your number."""
    from bayescdm.describe import describe, summarise
    from bayescdm.simulate import simulate as of_paper
    from bayescdm.simulate import simulate_from, write_study

    sizes: dict[str, Any] = {
        "n_families": families,
        "backbones_per_cell": backbones_per_cell,
        "n_text_benchmarks": text_benchmarks,
    }
    sizes = {name: size for name, size in sizes.items() if size is not None}
    shares = {"missing_runs": missing_runs, "missing_text": missing_text}
    given: Any = {"n_recipes": recipes} | {name: s for name, s in shares.items() if s is not None}
    study = simulate_from(seed, **sizes, **given) if sizes else of_paper(seed, **given)
    write_study(study, out, overwrite=overwrite)
    if as_json:
        print_json({"folder": str(out), **summarise(study)})
        return
    typer.echo(describe(study))
    typer.echo(f"\nwritten to {out}, with the truth in {out / 'truth.json'}")
