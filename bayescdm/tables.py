"""Frames as tables for readers, on the page and in the terminal: cells in users' units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pandas as pd

from bayescdm.wording import probability, short_count

__all__ = ["Cell", "Column", "Table", "table"]

Form = Literal[
    "text", "percent", "points", "fine_points", "probability", "number", "integer", "count", "rhat"
]


@dataclass(frozen=True)
class Column:
    """How one column for readers is made.

    Parameters
    ----------
    title : str
    source : str or (str, str)
        Column of the frame, or the two ends of an interval.
    form : str
        ``percent``, ``points`` and ``fine_points`` (one digit more) take fractions; ``number`` shows three
        significant digits.
    exact : str
        Column of the frame that says where a probability of 0 or 1 is no matter of draws, as that of one
        candidate among one.
    """

    title: str
    source: str | tuple[str, str]
    form: Form = "text"
    exact: str = ""


@dataclass(frozen=True)
class Cell:
    """Text of a cell and what it is sorted by."""

    text: str
    sort: str | float


@dataclass(frozen=True)
class Table:
    """A table for readers.

    Parameters
    ----------
    name : str
        Identifier on a page.
    caption : str
    columns : sequence of Column
    rows : list of list of Cell
    frame : DataFrame
        What the cells were made from.
    converged : bool
        When false it is said beside the caption.
    folded : str
        Words to unfold it by; empty when it stands open.
    """

    name: str
    caption: str
    columns: Sequence[Column]
    rows: list[list[Cell]]
    frame: pd.DataFrame
    converged: bool = True
    folded: str = ""

    kind: ClassVar = "table"


def table(
    name: str,
    caption: str,
    frame: pd.DataFrame,
    columns: Sequence[Column],
    *,
    converged: bool = True,
    folded: str = "",
) -> Table:
    """Lay a frame out as a table for readers, its rows in order.

    Parameters
    ----------
    name, caption, columns, converged, folded
        As for `Table`.
    frame : DataFrame

    Returns
    -------
    Table
    """
    rows = [[_cell(row, column) for column in columns] for row in frame.to_dict("records")]
    return Table(name, caption, columns, rows, frame, converged, folded)


def _cell(row: dict[Any, Any], column: Column) -> Cell:
    if isinstance(column.source, tuple):
        low, high = (row[end] for end in column.source)
        return Cell(f"{written(low, column.form)} to {written(high, column.form)}", _sortable(low))
    value = row[column.source]
    if column.exact and row[column.exact] and value in (0, 1):
        return Cell(f"{value:.0f}", _sortable(value))
    return Cell(written(value, column.form), _sortable(value))


def _sortable(value: Any) -> str | float:
    """Return a number, or words; what is missing sorts below every number."""
    if isinstance(value, str):
        return value
    return -math.inf if pd.isna(value) else float(value)


def written(value: Any, form: Form) -> str:
    """Write a value in the form of its column; what is missing is a dash.

    Examples
    --------
    >>> written(0.6974, "percent"), written(-0.0123, "points"), written(float("nan"), "number")
    ('69.7', '−1.2', '–')
    >>> written(-0.0004, "points")
    '0.0'
    """
    if form == "text":
        return str(value)
    if pd.isna(value):
        return "–"
    match form:
        case "percent" | "points":
            text = f"{100 * value:.1f}"
        case "fine_points":
            text = f"{100 * value:.2f}"
        case "probability":
            text = probability(value)
        case "rhat":
            text = f"{value:.3f}"
        case "integer":
            text = f"{value:.0f}"
        case "count":
            text = short_count(value)
        case _:
            text = f"{value:#.3g}".rstrip(".")
    # What is rounded to zero has no sign.
    if text.startswith("-") and not text.strip("-0."):
        text = text[1:]
    return text.replace("-", "−")
