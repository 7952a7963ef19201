"""What all commands share: how errors end, and options that mean the same everywhere."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from bayescdm.errors import BayesCDMError

__all__ = ["AsJson", "Commands", "app"]


class Commands(TyperGroup):
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
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Which LLM backbone for a vision-language model, and how sure: posteriors of the "
    "transfer–absorption law.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print valid JSON, and nothing else, on stdout.")]
