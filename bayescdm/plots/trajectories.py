"""Accuracy against data volume: each backbone in a panel of its own, with the others behind it."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bayescdm.errors import RequestError
from bayescdm.fit import Fit
from bayescdm.plots.layout import given, legend_above, panels, percent_ticks, share_limits
from bayescdm.plots.style import palette, stamp, study_title
from bayescdm.predict import Candidates, predict
from bayescdm.wording import interval_label, short_count, short_names

__all__ = ["plot_trajectories"]

#: Volumes at which a trajectory is drawn.
POINTS = 40


def plot_trajectories(
    fit: Fit,
    *,
    candidates: Candidates = None,
    recipe: str | None = None,
    volume: float | None = None,
    volumes: tuple[float, float] | None = None,
    prob: float = 0.9,
    seed: int = 0,
    columns: int = 3,
    width: float = 7.5,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Plot each backbone's accuracy against data volume, with law and run intervals and its observed runs.

    Parameters
    ----------
    fit : Fit
    candidates, recipe, seed
        As for `bayescdm.predict.predict`; one panel a backbone, in the order given.
    volume : float, optional
        Marked by a vertical line.
    volumes : (float, float), optional
        Range that is drawn; the observed volumes and `volume` by default.
    prob : float
        Probability of both intervals.
    columns, width : int, float
        Panels in a row of a new figure, and its width in inches.
    axes : array of Axes, optional
        At least one for each backbone.

    Returns
    -------
    ndarray of Axes, (backbone,)
        A trajectory is dashed where it leaves what runs have seen of volume and capability, and what the
        recipe's own runs have seen of volume and size.

    Raises
    ------
    RequestError, NotFoundError, ModelError
        As for `bayescdm.predict.predict`; `axes` too few.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.plot_trajectories(fit, candidates=["Qwen/Qwen2-7B"], volume=1.2e6)  # doctest: +SKIP
    """
    low, high = volumes or _observed_range(fit, volume)
    grid = np.geomspace(low, high, POINTS)
    asked: dict[str, Any] = {"volumes": list(grid), "recipe": recipe, "prob": prob, "seed": seed}
    law = predict(fit, candidates, kind="law", **asked)
    run = predict(fit, candidates, kind="run", **asked)
    n = law.sizes["backbone"]
    names = short_names(law["backbone"].to_numpy())
    everyone = _one_line(grid, law["mean"].to_numpy())
    if axes is None:
        labels = (f"data volume ({fit.study.volume_unit})", "accuracy")
        used = panels(names, columns=columns, width=width, height=2.0, labels=labels)
        _legend(used[0], prob, alone=n == 1, title=study_title(fit))
    else:
        used = given(axes, n)
        for ax, name in zip(used, names):
            ax.set_title(name)
    for row, ax in enumerate(used):
        colours = palette(ax)
        if n > 1:
            ax.plot(*everyone, color=colours.grid, linewidth=0.8, zorder=1)
        _trajectory(ax, law.isel(backbone=row), run.isel(backbone=row))
        _observed_runs(ax, fit, str(law["backbone"][row].item()), recipe)
        if volume is not None:
            ax.axvline(volume, color=colours.muted, linewidth=0.8, linestyle=":", zorder=1.5)
        _format(ax)
        stamp(ax, fit)
    share_limits(used)
    return used


def _observed_range(fit: Fit, volume: float | None) -> tuple[float, float]:
    """Range of the observed volumes and the one asked for, at least a factor of four."""
    known = [*fit.study.fitted_runs["volume"].dropna(), *([volume] if volume is not None else [])]
    if not known:
        raise RequestError(f"{fit.study.name}: no run has a known volume; say which range of volumes to draw")
    low, high = min(known), max(known)
    widen = max(1.0, np.sqrt(4 * low / high))
    return low / widen, high * widen


def _one_line(grid: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All trajectories as one line with gaps: a line for each in each panel would be thousands."""
    gap = np.full((len(means), 1), np.nan)
    return np.tile(np.append(grid, np.nan), len(means)), np.hstack([means, gap]).ravel()


def _trajectory(ax: Axes, law: xr.Dataset, run: xr.Dataset) -> None:
    """Mean and both intervals of one backbone; dashed where extrapolated."""
    colour = palette(ax).series[0]
    volume = law["volume"].to_numpy()
    ax.fill_between(volume, run["lower"], run["upper"], color=colour, alpha=0.16, linewidth=0)
    ax.fill_between(volume, law["lower"], law["upper"], color=colour, alpha=0.34, linewidth=0)
    outside = (law["extrapolation"].to_numpy() != "") | (law["beyond_recipe"].to_numpy() != "")
    mean = law["mean"].to_numpy()
    ax.plot(volume, np.where(outside, np.nan, mean), color=colour, linewidth=1.8)
    ax.plot(volume, mean, color=colour, linewidth=1.2, linestyle=(0, (3, 2)))


def _observed_runs(ax: Axes, fit: Fit, backbone: str, recipe: str | None) -> None:
    """Runs of this backbone under the recipe; other recipes average over other benchmarks."""
    runs = fit.study.fitted_runs
    shown = runs[(runs["backbone"] == backbone) & (runs["recipe"] == recipe) & runs["volume"].notna()]
    colours = palette(ax)
    ax.scatter(
        shown["volume"], shown["accuracy"], s=26, color=colours.series[1], edgecolor=colours.paper, zorder=4
    )


def _format(ax: Axes) -> None:
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 3), numticks=6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_formatter(percent_ticks())
    ax.grid(axis="y", linewidth=0.6, color=palette(ax).grid)
    ax.set_axisbelow(True)


def _legend(ax: Axes, prob: float, *, alone: bool, title: str) -> None:
    colours = palette(ax)
    blue, dot = colours.series[0], colours.series[1]
    handles = [
        Line2D([], [], color=blue, linewidth=1.8, label="mean"),
        Line2D([], [], color=blue, linewidth=1.2, linestyle=(0, (3, 2)), label="extrapolated"),
        Patch(color=blue, alpha=0.5, linewidth=0, label=interval_label("law", prob)),
        Patch(color=blue, alpha=0.16, linewidth=0, label=interval_label("run", prob)),
        Line2D([], [], color=dot, marker="o", markersize=5, linestyle="", label="observed run"),
    ]
    if not alone:
        handles.append(Line2D([], [], color=colours.grid, linewidth=1, label="the other candidates"))
    legend_above(ax, handles, columns=(2, 3), title=title)
