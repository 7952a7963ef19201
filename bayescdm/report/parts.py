"""What a page is made of: sections of sentences, figures, tables, definitions and notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from bayescdm.errors import Note
from bayescdm.report.figures import Figure
from bayescdm.tables import Table

__all__ = ["Definitions", "Notes", "Part", "Section"]


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


Part = Figure | Table | Definitions | Notes


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
    parts : sequence of Figure, Table, Definitions or Notes
        In order; those that are `folded` open on a click.
    """

    name: str
    title: str
    sentences: list[str]
    parts: Sequence[Part] = ()
