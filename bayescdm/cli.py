"""Command line: each command is a thin layer over one public function.

Exit status: 0, 1 (the user's input), 2 (usage), 3 (did not converge). Heavy imports stand inside commands.
"""

from __future__ import annotations

import json
import math
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


@app.callback()
def _root() -> None:
    """Keep the commands below one name, however few they are."""
