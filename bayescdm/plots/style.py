"""Look of all plots: colours that colour-blind readers tell apart, light and dark, and the stamp."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import matplotlib as mpl
import numpy as np
import pandas as pd
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from bayescdm.fit import Diagnosis
from bayescdm.intervals import Kind

__all__ = [
    "DARK",
    "LIGHT",
    "Palette",
    "interval_label",
    "palette",
    "probability_label",
    "short_names",
    "stamp",
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


class _Diagnosed(Protocol):
    """A fit of any law, whose draws can be checked."""

    def diagnose(self) -> Diagnosis: ...


def stamp(ax: Axes, fit: _Diagnosed) -> None:
    """Write "not converged" across `ax` when the draws of `fit` must not be trusted."""
    if fit.diagnose().converged:
        return
    colour = palette(ax).warning
    ax.text(
        0.5,
        0.5,
        "not converged",
        transform=ax.transAxes,
        ha="center",
        va="center",
        rotation=20,
        fontsize=18,
        fontweight="bold",
        color=colour,
        alpha=0.75,
        zorder=10,
        gid="not-converged",
    )


def short_names(labels: pd.Index | list[str]) -> list[str]:
    """Names without their organisation where that leaves them distinct.

    Parameters
    ----------
    labels : sequence of str
        Such as ``Qwen/Qwen2.5-7B``.

    Returns
    -------
    list of str

    Examples
    --------
    >>> short_names(["Qwen/Qwen2-7B", "a/base", "b/base"])
    ['Qwen2-7B', 'a/base', 'b/base']
    """
    short = [str(label).rsplit("/", 1)[-1] for label in labels]
    return [name if short.count(name) == 1 else str(label) for name, label in zip(short, labels)]


def interval_label(kind: Kind, prob: float) -> str:
    """What an interval is, for legends.

    Examples
    --------
    >>> interval_label("run", 0.9)
    'run, 90 % interval'
    """
    return f"{kind}, {100 * prob:g} % interval"


def probability_label(p: float) -> str:
    """Write a probability with two digits; draws cannot tell less than one in a hundred from never.

    Examples
    --------
    >>> [probability_label(p) for p in (0.417, 0.0, 0.999)]
    ['.42', '<.01', '>.99']
    """
    if p < 0.01:
        return "<.01"
    return ">.99" if p > 0.99 else f"{p:.2f}".removeprefix("0")
