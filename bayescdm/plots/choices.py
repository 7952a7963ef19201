"""A choice at a glance: who beats whom, differences from a reference, cost against accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from bayescdm.intervals import interval_columns
from bayescdm.plots.layout import (
    ROW,
    is_narrow,
    label_rows,
    legend_above,
    new_axes,
    percent_ticks,
    right_column,
)
from bayescdm.plots.style import palette, stamp_not_converged, study_title
from bayescdm.wording import interval_label, points, probability, short_by_name, short_count, short_names

if TYPE_CHECKING:
    from bayescdm.decide import Choice

__all__ = ["plot_differences", "plot_pareto", "plot_probability_matrix"]

#: Names written beside points of the front; the table holds all.
LABELLED = 8
#: How dark a cell of the matrix is whose candidates the data tell apart.
TOLD = 0.55


def plot_probability_matrix(choice: Choice, *, limit: int = 20, ax: Axes | None = None) -> Axes:
    """Plot the probability that each candidate is better than each other one.

    Parameters
    ----------
    choice : Choice
    limit : int
        Candidates shown, best expected accuracy first.
    ax : Axes, optional

    Returns
    -------
    Axes
        Row against column, in hundredths; cells from the probability on that counts as told apart are filled.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> choice = cdm.choose(cdm.load_fit("fit.nc"))  # doctest: +SKIP
    >>> cdm.plot_probability_matrix(choice)  # doctest: +SKIP
    """
    p = choice.pairs.to_numpy()[:limit, :limit]
    n, prob = len(p), choice.question["probability"]
    ax = new_axes(ax, (6.8, 0.26 * n + 1.6))
    colours = palette(ax)
    small = 5.5 if is_narrow(ax) else 8
    # Cells of a narrow figure have room for two letters.
    below, above = ("<", ">") if is_narrow(ax) else ("<1", ">99")
    for row in range(n):
        for column in range(n):
            if row == column:
                continue
            value = p[row, column]
            told = value >= prob
            # Figures must be legible on every shade, in light and in dark.
            shade = TOLD if told else 0.3 * max(0.0, 2 * value - 1)
            ax.fill_between(
                [column - 0.47, column + 0.47],
                row - 0.44,
                row + 0.44,
                color=colours.series[0],
                alpha=shade,
                linewidth=0,
            )
            text = below if value < 0.01 else above if value > 0.99 else f"{100 * value:.0f}"
            weight = "bold" if told else "normal"
            ax.text(column, row, text, ha="center", va="center", fontsize=small, fontweight=weight)
    names = short_names(choice.pairs.index[:limit])
    # The number first: behind a name it reads as part of it, phi-2 8.
    label_rows(ax, [f"{place}. {name}" for place, name in enumerate(names, start=1)])
    ax.grid(False)
    ax.set_xlim(-0.6, n - 0.4)
    ax.set_xticks(range(n), [str(place + 1) for place in range(n)])
    ax.tick_params(axis="x", labelsize=small + 0.5)
    ax.set_xlabel("than the candidate\nof this number")
    handles = [
        Patch(color=colours.series[0], alpha=TOLD, label=f"told apart: {100 * prob:g} or more", linewidth=0),
        Patch(color=colours.series[0], alpha=0.15, label="not told apart", linewidth=0),
    ]
    unit = "in hundredths (< is below 1, > above 99)" if is_narrow(ax) else "in hundredths"
    title = f"P(row is better), {unit}; {study_title(choice.fit)}"
    legend_above(ax, handles, columns=(1, 2), title=title)
    if not choice.converged:
        stamp_not_converged(ax)
    return ax


def plot_differences(choice: Choice, *, limit: int = 20, ax: Axes | None = None) -> Axes:
    """Plot differences from the reference with their intervals, and what counts as practically equal.

    Parameters
    ----------
    choice : Choice
    limit : int
        Candidates shown, best expected accuracy first.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> import bayescdm as cdm
    >>> choice = cdm.choose(cdm.load_fit("fit.nc"), reference="lmsys/vicuna-7b-v1.5")  # doctest: +SKIP
    >>> cdm.plot_differences(choice)  # doctest: +SKIP
    """
    asked = choice.question
    table = choice.differences.head(limit)
    ax = new_axes(ax, (6.8, ROW * len(table) + 1.3))
    colours = palette(ax)
    lower, upper = interval_columns(asked["kind"], asked["probability"])
    equivalent = asked["equivalent"]
    ax.axvspan(-equivalent, equivalent, color=colours.series[2], alpha=0.18, linewidth=0)
    ax.axvline(0, color=colours.muted, linewidth=0.8)
    for y, row in enumerate(table.to_dict("records")):
        ax.plot([row[lower], row[upper]], [y, y], color=colours.series[0], linewidth=1.6)
        ax.plot(row["mean"], y, "o", markersize=5, color=colours.series[0])
    label_rows(ax, short_names(table.index))
    right_column(
        ax,
        "P(equal)",
        ["1" if sd == 0 else probability(p) for p, sd in zip(table["p_equivalent"], table["sd"])],
    )
    ax.xaxis.set_major_locator(MaxNLocator(3 if is_narrow(ax) else 6))
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{round(100 * value, 6):g}".replace("-", "−"))
    )
    reference = short_by_name(choice.differences.index)[asked["reference"]]
    ax.set_xlabel(f"accuracy points\nfrom {reference}")
    label = interval_label(asked["kind"], asked["probability"])
    handles = [
        Line2D(
            [],
            [],
            color=colours.series[0],
            marker="o",
            markersize=5,
            linewidth=1.6,
            label=f"mean and {label}",
        ),
        Patch(color=colours.series[2], alpha=0.3, linewidth=0, label=f"equal, within {points(equivalent)}"),
    ]
    legend_above(ax, handles, columns=(1, 2), title=study_title(choice.fit))
    if not choice.converged:
        stamp_not_converged(ax)
    return ax


def plot_pareto(choice: Choice, *, ax: Axes | None = None) -> Axes:
    """Plot expected accuracy against cost, with the front of what nothing beats in both.

    Parameters
    ----------
    choice : Choice
    ax : Axes, optional

    Returns
    -------
    Axes
        One point a candidate and volume that were weighed; those of unknown cost are left out.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> choice = cdm.choose(cdm.load_fit("fit.nc"))  # doctest: +SKIP
    >>> cdm.plot_pareto(choice)  # doctest: +SKIP
    """
    asked = choice.question
    known = choice.options[np.isfinite(choice.options["cost"].astype(float))]
    ax = new_axes(ax, (6.8, 4.2))
    colours = palette(ax)
    lower, upper = interval_columns(asked["kind"], asked["probability"])
    front = known[known["on_front"]].sort_values("cost")
    off = known[~known["on_front"]]
    ax.plot(off["cost"], off["mean"], "o", markersize=4, color=colours.muted, markerfacecolor=colours.paper)
    ax.vlines(front["cost"], front[lower], front[upper], color=colours.series[0], alpha=0.45, linewidth=1.4)
    ax.step(front["cost"], front["mean"], where="post", color=colours.series[0], linewidth=1.2)
    ax.plot(front["cost"], front["mean"], "o", markersize=5, color=colours.series[0])
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 3) if is_narrow(ax) else (1, 2, 5)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    large = len(known) > 0 and known["cost"].max() >= 1e15
    write = (
        (lambda value, _: f"{value:.2g}".replace("e+", "e"))
        if large
        else (lambda value, _: short_count(value))
    )
    ax.xaxis.set_major_formatter(FuncFormatter(write))
    ax.yaxis.set_major_formatter(percent_ticks())
    ax.set_xlabel(f"cost: {asked['cost_unit']}")
    ax.set_ylabel("expected accuracy")
    ax.grid(linewidth=0.6, color=colours.grid)
    ax.set_axisbelow(True)
    label = interval_label(asked["kind"], asked["probability"])
    handles = [
        Line2D([], [], color=colours.series[0], marker="o", markersize=5, label=f"front, with {label}"),
        Line2D(
            [],
            [],
            color=colours.muted,
            marker="o",
            markersize=4,
            markerfacecolor=colours.paper,
            ls="",
            label="beaten in cost and accuracy",
        ),
    ]
    legend_above(ax, handles, columns=(1, 2), title=study_title(choice.fit))
    # Each name once, at its most accurate point: neighbours of one backbone say the same.
    labelled = front.drop_duplicates("backbone", keep="last").nlargest(LABELLED, "mean")
    names = short_by_name(choice.ranking["backbone"])
    ends = labelled[["cost", "mean"]].to_numpy(float)
    _label_points(
        ax, ends, [names[name] for name in labelled["backbone"]], known[["cost", "mean"]].to_numpy(float)
    )
    if not choice.converged:
        stamp_not_converged(ax)
    return ax


def _label_points(ax: Axes, places: np.ndarray, names: list[str], every: np.ndarray) -> None:
    """Name points where the name covers neither another name nor a point; names without room are left out."""
    size = 6 if is_narrow(ax) else 7.5
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    scale = figure.dpi / 72
    room = ax.get_window_extent()
    dots = ax.transData.transform(every)
    taken: list[tuple[float, float, float, float]] = []
    for name, place, (x, y) in zip(names, places, ax.transData.transform(places)):
        width, height = 0.62 * size * len(name) * scale, 1.3 * size * scale
        for right, up in ((True, 5), (False, 5), (True, -11), (False, -11), (True, 14), (False, 14)):
            left = x + 5 * scale if right else x - 5 * scale - width
            bottom = y + up * scale
            box = (left, bottom, left + width, bottom + height)
            inside = room.x0 <= box[0] and box[2] <= room.x1 and room.y0 <= box[1] and box[3] <= room.y1
            covers = ((dots > box[:2]) & (dots < box[2:])).all(1).any()
            if inside and not covers and not any(_overlap(box, other) for other in taken):
                taken.append(box)
                offset, align = (5 if right else -5, up), "left" if right else "right"
                behind = {"facecolor": palette(ax).paper, "edgecolor": "none", "alpha": 0.85, "pad": 0.8}
                ax.annotate(
                    name, place, offset, textcoords="offset points", ha=align, fontsize=size, bbox=behind
                )
                break


def _overlap(box: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
