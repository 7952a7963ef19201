"""Output of commands: JSON alone on stdout, tables for readers, CSV files, and what stands on stderr."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

    from bayescdm.errors import Note
    from bayescdm.fit import Fit
    from bayescdm.tables import Column

__all__ = ["end", "print_json", "print_table", "progress", "show_frame"]

#: Exit status when results are shown that did not converge.
NOT_CONVERGED = 3
#: Columns of text where stdout is no terminal and nobody knows how wide the reader's window is.
PIPED_WIDTH = 200


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


def print_table(frame: pd.DataFrame, columns: Sequence[Column], *, title: str, converged: bool) -> None:
    """Print a frame as a table for readers on stdout."""
    from rich.console import Console
    from rich.table import Table

    from bayescdm.tables import table

    laid_out = table("", title, frame, columns, converged=converged)
    caption = title if converged else f"{title} (NOT CONVERGED)"
    printed = Table(title=caption, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        printed.add_column(
            column.title, justify="left" if column.form == "text" else "right", overflow="fold"
        )
    for row in laid_out.rows:
        printed.add_row(*(cell.text for cell in row))
    Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, markup=False, highlight=False).print(printed)


def show_frame(
    frame: pd.DataFrame,
    columns: Sequence[Column],
    *,
    title: str,
    as_json: bool,
    out: Path | None,
    overwrite: bool,
    shown: pd.DataFrame | None = None,
) -> None:
    """Show a table: as CSV in a file, as JSON, or for readers.

    Parameters
    ----------
    frame : DataFrame
        Its ``attrs`` say what it is; they go into the JSON.
    columns, title
        For readers.
    as_json : bool
    out : Path, optional
        CSV file to write.
    overwrite : bool
    shown : DataFrame, optional
        What readers see, when it is laid out differently.
    """
    if out is not None:
        from bayescdm.atomic import replacing

        with replacing(out, overwrite=overwrite) as unfinished:
            frame.to_csv(unfinished, index=False)
    if as_json:
        print_json({"facts": frame.attrs, "rows": frame.to_dict("records")})
    else:
        converged = bool(frame.attrs.get("converged", 1))
        print_table(frame if shown is None else shown, columns, title=title, converged=converged)
        if out is not None:
            typer.echo(f"written to {out}")


def progress(message: str) -> bool:
    """Say on stderr what takes long, if somebody is watching; silent when piped.

    Parameters
    ----------
    message : str

    Returns
    -------
    bool
        Whether progress shall be shown.
    """
    watched = sys.stderr.isatty()
    if watched:
        typer.echo(message, err=True)
    return watched


def end(fit: Fit) -> None:
    """Close a command about a fit: its warnings on stderr, and exit status 3 when it has not converged."""
    notes = [note for note in fit.warnings if note.code != "not-converged"]
    if notes:
        typer.echo(_counted(notes), err=True)
    for note in fit.diagnose().notes:
        typer.echo(note.message, err=True)
        raise typer.Exit(NOT_CONVERGED)


def _counted(notes: Sequence[Note]) -> str:
    """One line for all warnings: how many, and their codes."""
    codes = dict.fromkeys(note.code for note in notes)
    subject = "1 warning limits" if len(notes) == 1 else f"{len(notes)} warnings limit"
    return f"{subject} the answers ({', '.join(codes)}); `bayescdm check` lists them"
