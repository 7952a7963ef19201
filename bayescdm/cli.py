"""Command line: each command is a thin layer over one public function.

Exit status: 0, 1 (the user's input), 2 (usage), 3 (did not converge). Heavy imports stand inside commands.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bayescdm.errors import BayesCDMError

__all__ = ["app"]


class _Commands(TyperGroup):
    """Commands whose errors, when a user can mend them, are lines on stderr and exit status 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; no traceback for a mistake in the input or a file that cannot be used."""
        try:
            return super().invoke(ctx)
        except BayesCDMError as error:
            typer.echo(str(error), err=True)
        except BrokenPipeError:
            raise
        except OSError as error:
            typer.echo(f"{error.filename or 'file'}: {error.strerror or error}", err=True)
        raise typer.Exit(1)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Which LLM backbone for a vision-language model, and how sure: posteriors of the "
    "transfer–absorption law.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print valid JSON, and nothing else, on stdout.")]


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout; what is not finite becomes null."""
    typer.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    """Plain Python values without NaN or infinity, which JSON does not know."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@app.command()
def check(
    study: Annotated[str, typer.Argument(help="Folder of a study, or the name of a packaged one.")],
    fix: Annotated[
        Path | None, typer.Option("--fix", help="Write cleaned files and changes.csv into this folder.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Let --fix replace files that it wrote before.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what was understood of a study, what was left out and why, and what limits the answers."""
    from bayescdm.describe import describe, summarise
    from bayescdm.reading import fix_study, load_study

    loaded = load_study(study)
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
