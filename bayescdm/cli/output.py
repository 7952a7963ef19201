"""Output of commands: JSON alone on stdout, tables for readers, CSV files, and what stands on stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from bayescdm.jsontext import json_text

if TYPE_CHECKING:
    import pandas as pd

    from bayescdm.errors import Note
    from bayescdm.fit import Fit
    from bayescdm.tables import Column, Table

__all__ = ["NOT_CONVERGED", "end", "print_json", "print_table", "progress", "show_frame"]

#: Exit status when results are shown that did not converge.
NOT_CONVERGED = 3
#: Columns of text where stdout is no terminal and nobody knows how wide the reader's window is.
PIPED_WIDTH = 200
#: Letters of a name that stay on one line, however narrow the window.
NAME_WIDTH = 28
#: The same for words in other columns, which read well on several lines.
WORD_WIDTH = 12


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout; what is not finite becomes null, what stdout cannot say is escaped."""
    knows_all = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    typer.echo(json_text(value, ascii_only=not knows_all))


def print_table(frame: pd.DataFrame, columns: Sequence[Column], *, title: str, converged: bool) -> None:
    """Print a frame as a table for readers on stdout."""
    from rich.console import Console
    from rich.table import Table as Grid

    from bayescdm.tables import table

    laid_out = table("", title, frame, columns, converged=converged)
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, markup=False, highlight=False)
    widths = column_widths(laid_out, console.width)
    # A window that is too narrow breaks lines; rich would cut them off.
    console.width = max(console.width, sum(widths) + len(widths) - 1)
    caption = title if converged else f"{title} (NOT CONVERGED)"
    printed = Grid(title=caption, title_justify="left", box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column, width in zip(columns, widths):
        justify: Any = "left" if column.form == "text" else "right"
        printed.add_column(column.title, justify=justify, overflow="fold", width=width)
    for row in laid_out.rows:
        printed.add_row(*(cell.text for cell in row))
    console.print(printed)


def column_widths(table: Table, room: int) -> list[int]:
    """Letters that each column takes, a space apart.

    Parameters
    ----------
    table : Table
    room : int
        Letters in a line.

    Returns
    -------
    list of int
        As wide as the widest cell if there is room. If not, titles break between words, then names that are
        very long and other text; figures never do, and the table may end up wider than the room.
    """
    least, most = [], []
    for position, column in enumerate(table.columns):
        widest = max((len(row[position].text) for row in table.rows), default=0)
        kept = NAME_WIDTH if position == 0 else WORD_WIDTH
        needed = min(widest, kept) if column.form == "text" else widest
        least.append(max(needed, *map(len, column.title.split())))
        most.append(max(widest, len(column.title)))
    spare = room - sum(least) - (len(least) - 1)
    for position in range(len(least)):
        taken = max(0, min(spare, most[position] - least[position]))
        least[position] += taken
        spare -= taken
    return least


def show_frame(
    frame: pd.DataFrame,
    columns: Sequence[Column],
    *,
    title: str,
    as_json: bool,
    out: Path | None,
    overwrite: bool,
    shown: pd.DataFrame | None = None,
    notes: Sequence[Note] = (),
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
    notes : sequence of Note
        What reading the candidates had to say; part of the JSON.
    """
    if out is not None:
        from bayescdm.atomic import replacing

        with replacing(out, overwrite=overwrite) as unfinished:
            frame.to_csv(unfinished, index=False)
    if as_json:
        said = [note.to_dict() for note in notes]
        print_json({"facts": frame.attrs, "rows": frame.to_dict("records"), "notes": said})
    else:
        converged = bool(frame.attrs.get("converged", 1))
        print_table(frame if shown is None else shown, columns, title=title, converged=converged)
        if out is not None:
            typer.echo(f"written to {out}")


def progress(message: str) -> bool:
    """Say on stderr what is going to take a while, if somebody is watching; a pipe hears nothing.

    Parameters
    ----------
    message : str

    Returns
    -------
    bool
        Whether somebody is watching, and a bar shall be drawn.
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
