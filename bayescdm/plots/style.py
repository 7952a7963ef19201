"""Look of all plots: colours that colour-blind readers tell apart, light and dark, and the stamp."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from bayescdm.fit import Diagnosis, Fit
from bayescdm.wording import study_name

__all__ = [
    "DARK",
    "LIGHT",
    "Palette",
    "palette",
    "stamp",
    "stamp_not_converged",
    "study_title",
    "theme",
]


@dataclass(frozen=True)
class Palette:
    """Colours by role, as hexadecimal strings; every colour of a palette is used for one role only.

    Parameters
    ----------
    paper, ink, muted, grid : str
        Background, text, secondary text and lines.
    warning : str
        What must not be overlooked.
    series : tuple of str
        Data. Neighbours differ in lightness as well as hue (after Okabe and Ito, Color Universal Design).
    """

    paper: str
    ink: str
    muted: str
    grid: str
    warning: str
    series: tuple[str, ...]


LIGHT = Palette(
    paper="#fefefe",
    ink="#1c2126",
    muted="#5b646d",
    grid="#d5dade",
    warning="#b3261e",
    series=("#0072b2", "#d55e00", "#007a5a", "#aa4499", "#8c6a00"),
)
DARK = Palette(
    paper="#14181c",
    ink="#e8ebee",
    muted="#9aa4ad",
    grid="#394149",
    warning="#ff8a80",
    series=("#5ab4ec", "#ff9d5c", "#3fc99a", "#e79ad6", "#dcb93c"),
)
Theme = Literal["light", "dark"]


@contextmanager
def theme(name: Theme) -> Iterator[Palette]:
    """Draw new figures in the package's light or dark look.

    Parameters
    ----------
    name : {"light", "dark"}

    Yields
    ------
    Palette

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> with theme("dark") as colours:
    ...     axes = Figure().add_subplot()
    >>> palette(axes) is DARK and colours is DARK
    True
    """
    chosen = {"light": LIGHT, "dark": DARK}[name]
    settings: Any = {
        "figure.facecolor": chosen.paper,
        "axes.facecolor": chosen.paper,
        "savefig.facecolor": chosen.paper,
        "text.color": chosen.ink,
        "axes.labelcolor": chosen.ink,
        "axes.titlecolor": chosen.ink,
        "axes.edgecolor": chosen.muted,
        "xtick.color": chosen.muted,
        "ytick.color": chosen.muted,
        "xtick.labelcolor": chosen.ink,
        "ytick.labelcolor": chosen.ink,
        "grid.color": chosen.grid,
        "legend.edgecolor": chosen.grid,
        "legend.facecolor": chosen.paper,
        "axes.prop_cycle": cycler(color=chosen.series),
        "font.size": 9.0,
        "axes.titlesize": 10.0,
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
    }
    with mpl.rc_context(settings):
        yield chosen


def palette(ax: Axes) -> Palette:
    """Return the colours that suit the background of `ax`."""
    face: Any = ax.get_facecolor()
    if face[3] == 0:
        face = mpl.rcParams["figure.facecolor"]
    return DARK if np.dot(to_rgb(face), (0.2126, 0.7152, 0.0722)) < 0.4 else LIGHT


def study_title(fit: Fit) -> str:
    """Name the study of a fit for the title of a plot or page."""
    return study_name(fit.study.name, simulated=fit.study.simulated)


class _Diagnosed(Protocol):
    """A fit of any law, whose draws can be checked."""

    def diagnose(self) -> Diagnosis: ...


def stamp(ax: Axes, fit: _Diagnosed) -> None:
    """Write "not converged" across `ax` when the draws of `fit` must not be trusted."""
    if not fit.diagnose().converged:
        stamp_not_converged(ax)


def stamp_not_converged(ax: Axes) -> None:
    """Write "not converged" across `ax`."""
    # Letters are some 0.6 of the font size wide; the longer line takes two thirds of the panel.
    points = 72 * ax.get_window_extent().width / ax.figure.dpi
    stamped = ax.text(
        0.5,
        0.5,
        "not\nconverged",
        transform=ax.transAxes,
        ha="center",
        va="center",
        rotation=20,
        fontsize=min(18, 0.66 * points / (0.6 * len("converged"))),
        fontweight="bold",
        color=palette(ax).warning,
        alpha=0.75,
        zorder=10,
    )
    stamped.set_in_layout(False)
