"""Reports as Markdown for a pull request: sentences and tables, figures as files or left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from bayescdm import __version__
from bayescdm.report.figures import Figure
from bayescdm.report.page import GENERATOR
from bayescdm.report.parts import Definitions, Notes, Part, Slider
from bayescdm.tables import Column, Table

if TYPE_CHECKING:
    from bayescdm.report.document import Document

__all__ = ["markdown"]


def markdown(document: Document, pictures: Mapping[str, str] | None = None) -> str:
    """Write a document as Markdown without HTML.

    Parameters
    ----------
    document : Document
    pictures : mapping of str to str, optional
        Where the picture of each figure lies, by its name; figures without one are left out.

    Returns
    -------
    str
    """
    blocks = [f"# {_escaped(document.title)}", _signed(document.subtitle)]
    if document.problem:
        blocks.append(f"> **NOT CONVERGED.** {_escaped(document.problem)}")
    left_out: list[str] = []
    for section in document.sections:
        blocks.append(f"## {_escaped(section.title)}")
        blocks += [_escaped(sentence) for sentence in section.sentences]
        for part in section.parts:
            if part.folded:
                left_out.append(part.folded)
            elif isinstance(part, Figure) and part.name not in (pictures or {}):
                left_out.append(f"figure: {part.caption.rstrip('.')}")
            else:
                blocks += _blocks(part, pictures or {})
    if left_out:
        listed = "\n".join(f"- {_escaped(title)}" for title in dict.fromkeys(left_out))
        blocks += ["## Left out here", f"The page (`--format html`) also holds:\n\n{listed}"]
    return "\n\n".join(blocks) + "\n"


def _signed(subtitle: str) -> str:
    """The line by which `bayescdm.report.page.is_report` knows the text again."""
    return f"*Written by {GENERATOR} {__version__}. {_escaped(subtitle)}*"


def _blocks(part: Part, pictures: Mapping[str, str]) -> Iterator[str]:
    """One part as paragraphs, tables, pictures and lists."""
    match part:
        case Table():
            tag = "" if part.converged else " **not converged**"
            yield f"**{_escaped(part.caption.rstrip('.'))}**{tag}"
            yield _table(part.columns, [[cell.text for cell in row] for row in part.rows])
        case Slider():
            tag = "" if part.converged else " **not converged**"
            yield f"**{_escaped(part.caption.rstrip('.'))}**{tag}"
            yield _table(part.summary.columns, [[cell.text for cell in row] for row in part.summary.rows])
        case Figure():
            yield f"![{_escaped(part.caption)}]({pictures[part.name]})"
        case Definitions():
            yield "\n".join(f"- **{_escaped(term)}**: {_escaped(meaning)}" for term, meaning in part.items)
        case Notes():
            notes = [f"- `{note.code}` {_escaped(_where(note.where) + note.message)}" for note in part.notes]
            if notes:
                yield "\n".join(notes)


def _where(where: str) -> str:
    return f"{where}: " if where else ""


def _table(columns: Sequence[Column], rows: list[list[str]]) -> str:
    """A table in the dialect of pull requests, figures flush right."""
    lines = [[column.title for column in columns], *rows]
    cells = [[_escaped(cell) for cell in line] for line in lines]
    rule = ["---" if column.form == "text" else "--:" for column in columns]
    return "\n".join(f"| {' | '.join(line)} |" for line in (cells[0], rule, *cells[1:]))


def _escaped(text: str) -> str:
    """Letters that Markdown would take for its own marks, as themselves."""
    for mark in "\\`*_[]<>|":
        text = text.replace(mark, f"\\{mark}")
    return " ".join(text.split())
