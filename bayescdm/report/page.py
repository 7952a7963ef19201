"""The page: sections rendered into one file that needs no network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from bayescdm import __version__
from bayescdm.atomic import replacing
from bayescdm.report.figures import PAGE_COLOURS
from bayescdm.report.parts import Section

__all__ = ["is_report", "render", "write"]

GENERATOR = "bayescdm"
#: Characters in which the mark of this program is looked for.
HEAD = 2000
#: How it marks a page, JSON and Markdown.
MARKS = (
    f'<meta name="generator" content="{GENERATOR} ',
    f'"generator": "{GENERATOR} ',
    f"*Written by {GENERATOR} ",
)


def render(title: str, subtitle: str, sections: Sequence[Section], *, problem: str = "") -> str:
    """Render the page.

    Parameters
    ----------
    title, subtitle : str
    sections : sequence of Section
        The first holds the answer.
    problem : str
        What is wrong with the draws; empty when they have converged.

    Returns
    -------
    str
        HTML with style sheet, script and figures inside.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("bayescdm", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["typeset"] = _typeset
    folder = files("bayescdm.report")
    return environment.get_template("page.html.j2").render(
        title=title,
        subtitle=subtitle,
        sections=sections,
        problem=problem,
        generator=f"{GENERATOR} {__version__}",
        colours=PAGE_COLOURS,
        style=folder.joinpath("page.css").read_text(encoding="utf-8"),
        script=folder.joinpath("page.js").read_text(encoding="utf-8"),
    )


def _typeset(text: str) -> str:
    """Keep figures and their unit, and a sign and its number, on one line."""
    return re.sub(r"(?<=\d) (?=%)|(?<=[=≥]) (?=[\d−])", "\N{NO-BREAK SPACE}", text)


def write(page: str, path: Path, *, overwrite: bool) -> Path:
    """Write the page atomically.

    Raises
    ------
    RequestError
        The file exists and `overwrite` is false, or its folder does not.
    """
    with replacing(path, overwrite=overwrite) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    return path


def is_report(path: Path) -> bool:
    """Whether a file was written by this program, so that a new report may take its place."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            head = file.read(HEAD)
    except OSError:
        return False
    return any(mark in head for mark in MARKS)
