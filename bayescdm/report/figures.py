"""Figures as inline SVG whose colours follow the page, in a wide and a narrow version."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Drawing

from bayescdm.plots.style import DARK, LIGHT, Palette, theme

__all__ = ["Figure", "colour_variables", "figure"]

#: Inches of width for a desktop or paper, and for a phone.
WIDE, NARROW = 8.2, 3.6


@dataclass(frozen=True)
class Figure:
    """One figure of the page.

    Parameters
    ----------
    caption : str
        What it shows; also its name for readers who do not see it.
    name : str
        Distinct on the page; starts every identifier inside.
    draw : callable
        Makes the figure for a width in inches.
    folded : str
        Words to unfold it by; empty when it stands open.
    """

    caption: str
    name: str
    draw: Callable[[float], Drawing]
    folded: str = ""

    kind: ClassVar = "figure"

    @property
    def wide(self) -> str:
        """SVG element for a desktop or paper; style sheets show this one or the narrow one."""
        return _svg(f"{self.name}-w", self.draw, WIDE)

    @property
    def narrow(self) -> str:
        """SVG element for a phone."""
        return _svg(f"{self.name}-n", self.draw, NARROW)

    def picture(self) -> bytes:
        """Draw the figure as a PNG on white, for a file beside a text."""
        settings: Any = {"backend": "agg"}
        with theme("light"), mpl.rc_context(settings):
            drawing = self.draw(WIDE)
            written = io.BytesIO()
            FigureCanvasAgg(drawing)
            drawing.savefig(written, format="png", dpi=110, metadata={"Software": None})
            plt.close(drawing)
        return written.getvalue()


def figure(name: str, caption: str, draw: Callable[[float], Drawing], *, folded: str = "") -> Figure:
    """Prepare a figure; it is drawn when a page or a file needs it.

    Parameters
    ----------
    name : str
        Distinct on the page; starts every identifier inside.
    caption : str
    draw : callable
        Makes the figure for a width in inches.
    folded : str
        As for `Figure`.

    Returns
    -------
    Figure
    """
    return Figure(caption, name, draw, folded)


def _svg(name: str, draw: Callable[[float], Drawing], width: float) -> str:
    # Text stays text, so that it can be read, found and copied; the salt makes identifiers reproducible.
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": name, "backend": "agg"}
    with theme("light"), mpl.rc_context(settings):
        drawing = draw(width)
        written = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        FigureCanvasSVG(drawing)
        drawing.savefig(written, format="svg", transparent=True, metadata=nothing)
        plt.close(drawing)
    return _embedded(written.getvalue(), name)


def _embedded(svg: str, name: str) -> str:
    """An SVG document as an element: no prologue, colours by role, identifiers unique on the page."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r'\s(?:xmlns(?::xlink)?|version)="[^"]*"', "", element)
    element = re.sub(r'\bid="', f'id="{name}-', element)
    element = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", element)
    for role, colour in _roles(LIGHT).items():
        element = re.sub(re.escape(colour), f"var(--{role})", element, flags=re.IGNORECASE)
    return element.strip()


def colour_variables(palette: Palette) -> str:
    """Return the style-sheet variables of a palette, which the figures refer to."""
    return " ".join(f"--{role}: {colour};" for role, colour in _roles(palette).items())


def _roles(palette: Palette) -> dict[str, str]:
    plain = {role: getattr(palette, role) for role in ("paper", "ink", "muted", "grid", "warning")}
    return plain | {f"series-{i}": colour for i, colour in enumerate(palette.series)}


#: Light and dark variables, for the page's style sheet.
PAGE_COLOURS = {"light": colour_variables(LIGHT), "dark": colour_variables(DARK)}
