"""What a page is made of: sections of sentences, figures, tables, definitions and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from bayescdm.errors import Note
from bayescdm.report.figures import Figure
from bayescdm.tables import Table

__all__ = ["Definitions", "Notes", "Part", "Section", "Slider", "Step", "Strip"]


@dataclass(frozen=True)
class Definitions:
    """Terms and what they mean, or settings and their values."""

    items: Sequence[tuple[str, str]]
    folded: str = ""

    kind: ClassVar = "definitions"


@dataclass(frozen=True)
class Notes:
    """Notes with their codes."""

    notes: Sequence[Note]
    folded: str = ""

    kind: ClassVar = "notes"


@dataclass(frozen=True)
class Strip:
    """An interval as a line with a dot, in percent of the width that all intervals share."""

    left: float
    dot: float
    right: float

    @classmethod
    def of(cls, low: float, middle: float, high: float, *, span: tuple[float, float]) -> Strip:
        """Place an interval within a span of values."""
        first, last = span
        scale = 100 / (last - first) if last > first else 0.0
        return cls(*(round(float(value - first) * scale, 2) for value in (low, middle, high)))


@dataclass(frozen=True)
class Step:
    """What a slider shows at one of its positions.

    Parameters
    ----------
    label : str
        What the position means, such as ``1.2M samples``.
    table : Table
    strips : sequence of Strip
        One a row of the table.
    """

    label: str
    table: Table
    strips: Sequence[Strip]


@dataclass(frozen=True)
class Slider:
    """Tables of the same columns, one shown at a time.

    Parameters
    ----------
    name : str
        Identifier on the page.
    caption : str
    label : str
        What is slid.
    steps : sequence of Step
    start : int
        Position that is shown first, and to readers whose browser runs no script.
    frame : DataFrame
        What all steps were made from.
    summary : Table
        All positions in few rows, for readers of text.
    converged : bool
    folded : str
        Words to unfold it by; empty when it stands open.
    """

    name: str
    caption: str
    label: str
    steps: Sequence[Step]
    start: int
    frame: pd.DataFrame
    summary: Table
    converged: bool = True
    folded: str = ""

    kind: ClassVar = "slider"


Part = Figure | Table | Slider | Definitions | Notes


@dataclass(frozen=True)
class Section:
    """One section of the page.

    Parameters
    ----------
    name : str
        Identifier on the page.
    title : str
    sentences : list of str
        Stand first, a paragraph each.
    parts : sequence of Figure, Table, Slider, Definitions or Notes
        In order; those that are `folded` open on a click.
    """

    name: str
    title: str
    sentences: list[str]
    parts: Sequence[Part] = ()
