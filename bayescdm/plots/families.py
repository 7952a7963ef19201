"""Families in the (transfer, absorption) plane: each in a panel of its own, with the others behind it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from scipy.stats import gaussian_kde

from bayescdm.compare import family_draws
from bayescdm.errors import unknown_name
from bayescdm.fit import Fit
from bayescdm.intervals import check_probability
from bayescdm.plots.layout import given, legend_above, panels
from bayescdm.plots.style import palette, stamp, study_title
from bayescdm.wording import counted

__all__ = ["plot_families"]

LABELS = ("transfer rate A", "mean absorption rate B\nper unit of ln D")
#: Draws that a density is estimated from, and points of its grid along each axis.
DENSITY_DRAWS, GRID = 1000, 48


def plot_families(
    fit: Fit,
    *,
    families: list[str] | None = None,
    volume: float | None = None,
    probs: tuple[float, float] = (0.5, 0.9),
    columns: int = 4,
    width: float = 7.0,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Plot where each family lies in the (transfer, absorption) plane, with its joint posterior regions.

    Parameters
    ----------
    fit : Fit
    families : list of str, optional
        All families of the fit by default, those with most runs first.
    volume : float, optional
        Where the transfer rate A is stated, in the study's unit; D_ref by default.
    probs : (float, float)
        Probabilities of the inner and the outer highest-density region.
    columns, width : int, float
        Panels in a row of a new figure, and its width in inches.
    axes : array of Axes, optional
        At least one for each family.

    Returns
    -------
    ndarray of Axes, (family,)
        Horizontal: transfer rate A (accuracy per unit of S). Vertical: mean absorption rate B of the family's
        backbones (accuracy per unit of ln D). Grey dots are the means of the other families.

    Raises
    ------
    NotFoundError
        A family has no run in the fit.
    RequestError
        `axes` too few, or a volume or probability that is none.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.plot_families(fit, families=["Qwen2.5", "Llama-3"])  # doctest: +SKIP
    """
    inner, outer = sorted(map(check_probability, probs))
    draws = family_draws(fit, volume=volume)
    counts = _run_counts(fit)
    chosen = list(counts.index) if families is None else list(families)
    for family in chosen:
        if family not in draws["family"]:
            raise unknown_name("family", family, draws["family"].to_numpy())
    if axes is None:
        titles = [f"{family}\n{counted(counts[family], 'run')}" for family in chosen]
        used = panels(titles, columns=columns, width=width, height=1.75, labels=LABELS)
        _legend(used[0], inner, outer, study_title(fit))
    else:
        used = given(axes, len(chosen))
        for ax, family in zip(used, chosen):
            ax.set_title(f"{family}\n{counted(counts[family], 'run')}")
    limits = _limits(draws.sel(family=chosen), outer)
    for ax, family in zip(used, chosen):
        _region(ax, draws.sel(family=family), inner, outer)
        others = draws[["A", "mean_B"]].drop_sel(family=family).mean("sample")
        ax.scatter(others["A"], others["mean_B"], s=8, color=palette(ax).muted, alpha=0.6, linewidth=0)
        _format(ax, limits)
        stamp(ax, fit)
    return used


def _run_counts(fit: Fit) -> pd.Series:
    """Fitted runs of each family of the fit, most first."""
    family = fit.study.fitted_runs["backbone"].map(fit.study.backbones["family"])
    return family.value_counts().sort_index(kind="stable").sort_values(ascending=False, kind="stable")


def _limits(draws: xr.Dataset, outer: float) -> dict[str, tuple[float, float]]:
    """One range for all panels, wide enough for every outer region."""
    tail = (1 - outer) / 4
    limits = {}
    for name in ("A", "mean_B"):
        low, high = draws[name].quantile([tail, 1 - tail], "sample").to_numpy()
        margin = 0.08 * (high.max() - low.min())
        limits[name] = (float(low.min() - margin), float(high.max() + margin))
    return limits


def _region(ax: Axes, draws: xr.Dataset, inner: float, outer: float) -> None:
    """Highest-density regions of one family, and its mean."""
    colour = palette(ax).series[0]
    points = np.stack([draws["A"].to_numpy(), draws["mean_B"].to_numpy()])
    x, y, density = _density(points)
    heights = np.sort(density.ravel())[::-1]
    held = np.cumsum(heights) / heights.sum()
    levels = [float(heights[np.searchsorted(held, prob)]) for prob in (outer, inner)]
    for level, alpha in zip(levels, (0.16, 0.34)):
        ax.contourf(x, y, density, levels=[level, heights[0]], colors=[colour], alpha=alpha)
    ax.plot(*points.mean(1), "o", color=colour, markersize=5, markeredgecolor=palette(ax).paper)


def _density(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Kernel density of draws on a grid that covers them."""
    thinned = points[:, :: max(1, points.shape[1] // DENSITY_DRAWS)]
    low, high = np.quantile(points, [0.002, 0.998], axis=1)
    margin = 0.15 * (high - low)
    x, y = np.meshgrid(*(np.linspace(a, b, GRID) for a, b in zip(low - margin, high + margin)))
    return x, y, gaussian_kde(thinned)(np.stack([x.ravel(), y.ravel()])).reshape(x.shape)


def _format(ax: Axes, limits: dict[str, tuple[float, float]]) -> None:
    ax.set_xlim(*limits["A"])
    ax.set_ylim(*limits["mean_B"])
    ax.xaxis.set_major_locator(MaxNLocator(3))
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.axhline(0, color=palette(ax).muted, linewidth=0.8, linestyle="--", zorder=0.5)
    ax.grid(linewidth=0.6, color=palette(ax).grid)
    ax.set_axisbelow(True)


def _legend(ax: Axes, inner: float, outer: float, title: str) -> None:
    blue, grey = palette(ax).series[0], palette(ax).muted
    handles = [
        Patch(color=blue, alpha=0.5, linewidth=0, label=f"posterior, {100 * inner:g} % region"),
        Patch(color=blue, alpha=0.16, linewidth=0, label=f"posterior, {100 * outer:g} % region"),
        Line2D([], [], color=blue, marker="o", linestyle="", label="mean"),
        Line2D([], [], color=grey, marker="o", markersize=3, linestyle="", label="the other families"),
    ]
    legend_above(ax, handles, columns=(2, 4), title=title)
