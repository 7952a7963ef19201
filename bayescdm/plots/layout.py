"""Room for every label: figures, panels, labelled rows, columns of figures, legends."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from bayescdm.errors import RequestError
from bayescdm.plots.style import palette

__all__ = [
    "ROW",
    "given",
    "is_narrow",
    "label_rows",
    "legend_above",
    "new_axes",
    "panels",
    "percent_ticks",
    "right_column",
    "share_limits",
    "wrapped",
]

#: Inches of height that a row takes.
ROW = 0.2
#: Width in inches below which a figure counts as narrow.
NARROW = 5
#: Size of the letters over the axes.
LEGEND_FONT = 8


def is_narrow(ax: Axes) -> bool:
    """Whether the figure is made for a phone or a single column."""
    figure = ax.get_figure(root=True)
    return figure is not None and figure.get_figwidth() < NARROW


def percent_ticks() -> FuncFormatter:
    """Make ticks of fractions read as the percentage that they stand at: 62.5 %, never rounded to 63 %."""
    return FuncFormatter(lambda value, _: f"{round(100 * value, 6):g} %")


def new_axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return `ax`, or the axes of a new figure of `size` inches whose layout leaves room for every label."""
    if ax is not None:
        return ax
    return plt.figure(figsize=size, layout="constrained").add_subplot()


def panels(
    titles: Sequence[str], *, columns: int, width: float, height: float, labels: tuple[str, str]
) -> np.ndarray:
    """Make a figure of panels for common axes, their titles small enough to end inside.

    Parameters
    ----------
    titles : sequence of str
        One a panel.
    columns : int
        At most.
    width : float
        Inches of the figure.
    height : float
        Inches of one panel.
    labels : (str, str)
        Of the horizontal and the vertical axis, written once for the figure.

    Returns
    -------
    ndarray of Axes, (panel,)
        Not shared by matplotlib, whose shared axes take time with the square of their number: 140 panels
        took minutes. `share_limits` gives them the same limits when all is drawn.
    """
    n = len(titles)
    columns = min(columns, n)
    rows = -(-n // columns)
    figure = plt.figure(figsize=(width, height * rows + 0.9), layout="constrained")
    axes = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for empty in axes[n:]:
        empty.set_axis_off()
    for i, ax in enumerate(axes[:n]):
        # Panels with nothing below them carry the tick labels, in the last row but one as well.
        ax.tick_params(which="both", labelleft=i % columns == 0, labelbottom=i >= n - columns)
    longest = max(len(line) for title in titles for line in title.split("\n"))
    # The left axis and its label take some 0.7 inches; a letter is some 0.6 of the font size wide.
    room = 72 * (width - 0.7) / columns
    for ax, title in zip(axes, titles):
        ax.set_title(title, fontsize=min(10, room / (0.62 * longest)))
    figure.supxlabel(labels[0], fontsize="medium")
    figure.supylabel(labels[1], fontsize="medium")
    return axes[:n]


def share_limits(axes: np.ndarray) -> None:
    """Give all panels the widest limits of any: what is not comparable by eye is not compared."""
    for get, put in (("get_xlim", "set_xlim"), ("get_ylim", "set_ylim")):
        lows, highs = zip(*(getattr(ax, get)() for ax in axes))
        for ax in axes:
            getattr(ax, put)(min(lows), max(highs))


def given(axes: np.ndarray, n: int) -> np.ndarray:
    """Return the first `n` of the axes that a user gave.

    Raises
    ------
    RequestError
        There are fewer.
    """
    flat = np.ravel(axes)
    if len(flat) < n:
        raise RequestError(f"{len(flat)} axes for {n} panels; give one for each")
    return flat[:n]


def label_rows(ax: Axes, labels: Sequence[str]) -> None:
    """Name the rows 0, 1, …, the first on top, with a faint line to lead the eye."""
    ax.set_yticks(range(len(labels)), labels)
    ax.set_ylim(len(labels) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.grid(linewidth=0.6, color=palette(ax).grid)
    ax.set_axisbelow(True)


def right_column(ax: Axes, title: str, cells: Sequence[str]) -> None:
    """Write a column of figures to the right of the rows."""
    for y, cell in enumerate(cells):
        colour = palette(ax).muted if cell.startswith("<") else None
        ax.text(1.02, y, cell, transform=ax.get_yaxis_transform(), va="center", ha="left", color=colour)
    ax.annotate(
        title, (1.02, 1), xycoords="axes fraction", xytext=(0, 2), textcoords="offset points", va="bottom"
    )


def wrapped(ax: Axes, text: str, size: float) -> str:
    """Break a text of letters of `size` points into lines that end inside the figure."""
    figure = ax.get_figure(root=True)
    assert figure is not None
    # A letter is some 0.6 of the font size wide; the left axis and its label take some 0.7 inches.
    return textwrap.fill(text, max(8, int(72 * (figure.get_figwidth() - 0.7) / (0.6 * size))))


def legend_above(
    ax: Axes, handles: Sequence[Artist], *, columns: Sequence[int], title: str | None = None
) -> None:
    """Put the legend over the axes, flush left with the figure.

    Parameters
    ----------
    ax : Axes
    handles : sequence of Artist
    columns : (int, int)
        Entries in a line on a narrow figure and on a wide one.
    title : str, optional
        Over the entries, in lines as long as the figure is wide.
    """
    narrow, wide = columns
    if title is not None:
        title = wrapped(ax, title, LEGEND_FONT)
    ax.figure.legend(
        handles=list(handles),
        loc="outside upper left",
        ncols=narrow if is_narrow(ax) else wide,
        frameon=False,
        title=title,
        alignment="left",
        fontsize=LEGEND_FONT,
        title_fontsize=LEGEND_FONT,
        handletextpad=0.5,
        columnspacing=1.2,
    )
