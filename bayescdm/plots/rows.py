"""Plots of many labelled rows: names on the left, figures on the right, the legend on top."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from bayescdm.plots.style import palette

__all__ = ["ROW", "is_narrow", "label_rows", "legend_above", "right_column"]

#: Inches of height that a row takes.
ROW = 0.2
#: Width in inches below which a figure counts as narrow.
NARROW = 5


def is_narrow(ax: Axes) -> bool:
    """Whether the figure is made for a phone or a single column."""
    figure = ax.get_figure(root=True)
    return figure is not None and figure.get_figwidth() < NARROW


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
    """
    narrow, wide = columns
    ax.figure.legend(
        handles=list(handles),
        loc="outside upper left",
        ncols=narrow if is_narrow(ax) else wide,
        frameon=False,
        title=title,
        alignment="left",
        fontsize=8,
        title_fontsize=8,
        handletextpad=0.5,
        columnspacing=1.2,
    )
