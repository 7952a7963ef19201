"""A report as one object: sections that become a page, a text for a pull request, or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from bayescdm import __version__
from bayescdm.atomic import check_place, replacing
from bayescdm.errors import RequestError
from bayescdm.jsontext import json_text, plain
from bayescdm.report.figures import Figure
from bayescdm.report.markdown import markdown
from bayescdm.report.page import GENERATOR, render
from bayescdm.report.parts import Definitions, Notes, Part, Section, Slider
from bayescdm.tables import Table

__all__ = ["FORMATS", "Document", "Documented", "Format", "check_format"]

Format = Literal["html", "md", "json"]
FORMATS: tuple[str, ...] = get_args(Format)


def check_format(format: str) -> None:
    """Refuse a format that is none.

    Raises
    ------
    RequestError
    """
    if format not in FORMATS:
        raise RequestError(f"format '{format}' is none of {', '.join(FORMATS)}")


class Documented:
    """What can be laid out as a document, and read as page, text or JSON."""

    sentences: Any
    """What it says, a string each: a field of a subclass, or a property."""

    def document(self) -> Document:
        """Return the report as sections."""
        raise NotImplementedError

    def to_html(self) -> str:
        """Return one self-contained page."""
        return self.document().to_html()

    def to_md(self) -> str:
        """Return a text for a pull request; figures are left out, and it is said that they are."""
        return self.document().to_md()

    def to_dict(self) -> dict[str, Any]:
        """Return sentences and tables as plain values."""
        return self.document().to_dict()

    def to_json(self) -> str:
        """Return sentences and tables as strict JSON."""
        return self.document().to_json()

    def write(self, path: str | Path, *, format: Format = "html", overwrite: bool = False) -> Path:
        """Write the report; see `Document.write`."""
        return self.document().write(path, format=format, overwrite=overwrite)

    def __str__(self) -> str:
        """Return the sentences, a line each."""
        return "\n".join(self.sentences)


@dataclass(frozen=True)
class Document:
    """A report before it is written.

    Parameters
    ----------
    title, subtitle : str
    sections : sequence of Section
        The first holds the answer.
    problem : str
        What is wrong with the draws; empty when they have converged.
    facts : mapping
        What was asked and of what; only JSON shows it, before the sections.
    """

    title: str
    subtitle: str
    sections: Sequence[Section]
    problem: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def to_html(self) -> str:
        """Return one self-contained page."""
        return render(self.title, self.subtitle, self.sections, problem=self.problem)

    def to_md(self, pictures: Mapping[str, str] | None = None) -> str:
        """Return a text for a pull request.

        Parameters
        ----------
        pictures : mapping of str to str, optional
            Where the picture of each figure lies, by its name; without it figures are left out, and it is
            said that they are.

        Returns
        -------
        str
            Markdown without HTML; what the page folds away is counted, not shown.
        """
        return markdown(self, pictures)

    def to_dict(self) -> dict[str, Any]:
        """Return facts, sentences and the rows of every table as plain values."""
        return plain(
            {
                "generator": f"{GENERATOR} {__version__}",
                "title": self.title,
                **self.facts,
                "problem": self.problem or None,
                "sections": [_section(section) for section in self.sections],
            }
        )

    def to_json(self) -> str:
        """Return `to_dict` as strict JSON."""
        return json_text(self.to_dict()) + "\n"

    def write(self, path: str | Path, *, format: Format = "html", overwrite: bool = False) -> Path:
        """Write the report to a file, atomically.

        Parameters
        ----------
        path : str or Path
        format : {"html", "md", "json"}
            With ``md`` the figures go into a folder beside it, named after it.
        overwrite : bool
            Replace existing files.

        Returns
        -------
        Path

        Raises
        ------
        RequestError
            The file exists and `overwrite` is false, its folder does not, or the format is none.
        """
        check_format(format)
        path = Path(path)
        check_place(path, overwrite=overwrite)
        match format:
            case "html":
                text = self.to_html()
            case "json":
                text = self.to_json()
            case _:
                text = self.to_md(self._draw_beside(path, overwrite=overwrite))
        with replacing(path, overwrite=overwrite) as unfinished:
            unfinished.write_text(text, encoding="utf-8")
        return path

    def _draw_beside(self, path: Path, *, overwrite: bool) -> dict[str, str]:
        """Write the picture of every figure that stands open into a folder beside `path`."""
        figures = [part for section in self.sections for part in section.parts if isinstance(part, Figure)]
        folder = path.with_name(f"{path.stem}-figures")
        drawn = {}
        for figure in figures:
            if figure.folded:
                continue
            folder.mkdir(exist_ok=True)
            with replacing(folder / f"{figure.name}.png", overwrite=overwrite) as unfinished:
                unfinished.write_bytes(figure.picture())
            drawn[figure.name] = f"{folder.name}/{figure.name}.png"
        return drawn


def _section(section: Section) -> dict[str, Any]:
    return {
        "name": section.name,
        "title": section.title,
        "sentences": list(section.sentences),
        "parts": [_part(part) for part in section.parts],
    }


def _part(part: Part) -> dict[str, Any]:
    """What a part says, as plain values; of a figure only what it shows."""
    match part:
        case Table():
            rows = part.frame.to_dict("records")
            shown: dict[str, Any] = {"name": part.name, "caption": part.caption, "rows": rows}
        case Slider():
            rows = part.frame.to_dict("records")
            shown = {"name": part.name, "caption": part.caption, "rows": rows}
        case Figure():
            shown = {"name": part.name, "caption": part.caption}
        case Definitions():
            shown = {"terms": dict(part.items)}
        case Notes():
            shown = {"notes": [note.to_dict() for note in part.notes]}
    return {"kind": part.kind, **shown}
