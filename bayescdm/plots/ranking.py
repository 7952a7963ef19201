"""Which backbone is best, and how sure: intervals with P(best), and the distribution of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from scipy.stats import rankdata

from bayescdm.compare import rank_backbones
from bayescdm.fit import Fit
from bayescdm.intervals import PredictionKind, interval_columns
from bayescdm.plots.layout import (
    ROW,
    is_narrow,
    label_rows,
    legend_above,
    new_axes,
    percent_ticks,
    right_column,
)
from bayescdm.plots.style import palette, stamp, study_title
from bayescdm.predict import Candidates, predict_draws
from bayescdm.wording import interval_label, probability, short_names

__all__ = ["draw_ranking", "draw_ranks", "plot_rank_distribution", "plot_ranking"]

#: Inches of height that stand around the rows.
FRAME = 1.3
#: Marker and whether it is filled, by what the runs say of a backbone.
MARKERS = {
    "known backbone": ("o", True),
    "new backbone of known family": ("o", False),
    "new family": ("D", False),
}
#: Lower ends of the classes of rank probability, and how dark each is.
SHADES = {0.01: 0.12, 0.05: 0.3, 0.1: 0.5, 0.25: 0.75, 0.5: 1.0}
#: Columns of ranks that can be told apart.
MOST_RANKS = 60


def plot_ranking(
    fit: Fit,
    *,
    candidates: Candidates = None,
    volume: float,
    recipe: str | None = None,
    kind: PredictionKind = "backbone",
    prob: float = 0.9,
    seed: int = 0,
    limit: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Plot backbones by expected accuracy, with intervals and the probability of being best.

    Parameters
    ----------
    fit, candidates, volume, recipe, kind, prob, seed
        As for `bayescdm.compare.rank_backbones`.
    limit : int
        Backbones shown, best first; the others count in P(best) and are said to be left out.
    ax : Axes, optional

    Returns
    -------
    Axes
        Filled markers have runs, open ones have none of their own; a dashed interval extrapolates.

    Raises
    ------
    NotFoundError, RequestError, ModelError
        As for `bayescdm.compare.rank_backbones`.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.plot_ranking(fit, volume=1.2e6).figure.savefig("ranking.svg")  # doctest: +SKIP
    """
    asked: dict[str, Any] = {"volume": volume, "recipe": recipe, "kind": kind, "prob": prob, "seed": seed}
    ranking = rank_backbones(fit, candidates, **asked)
    ax = draw_ranking(ranking, title=study_title(fit), kind=kind, prob=prob, limit=limit, ax=ax)
    stamp(ax, fit)
    return ax


def draw_ranking(
    ranking: pd.DataFrame,
    *,
    title: str,
    kind: PredictionKind = "backbone",
    prob: float = 0.9,
    limit: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Draw a ranking that was already worked out.

    Parameters
    ----------
    ranking : DataFrame
        From `bayescdm.compare.rank_draws`.
    title : str
        Name of the study.
    kind, prob, limit, ax
        As for `plot_ranking`.

    Returns
    -------
    Axes
    """
    shown = ranking.head(limit)
    ax = new_axes(ax, (6.8, ROW * len(shown) + FRAME))
    colours = palette(ax)
    lower, upper = interval_columns(kind, prob)
    for y, row in enumerate(shown.to_dict("records")):
        marker, filled = MARKERS[row["mode"]]
        style: dict[str, Any] = {"linewidth": 1.6, "color": colours.series[0]}
        ax.plot([row[lower], row[upper]], [y, y], linestyle=":" if _outside(row) else "-", **style)
        face = colours.series[0] if filled else colours.paper
        ax.plot(row["mean"], y, marker, markersize=5, color=colours.series[0], markerfacecolor=face)
    label_rows(ax, short_names(shown["backbone"]))
    right_column(ax, "P(best)", [probability(p) for p in shown["p_best"]])
    ax.xaxis.set_major_formatter(percent_ticks())
    ax.xaxis.set_major_locator(MaxNLocator(3 if is_narrow(ax) else 6))
    left_out = len(ranking) - len(shown)
    ax.set_xlabel("accuracy" + (f"\n{left_out} lower candidates are not shown" if left_out else ""))
    _ranking_legend(ax, shown, interval_label(kind, prob), title)
    return ax


def plot_rank_distribution(
    fit: Fit,
    *,
    candidates: Candidates = None,
    volume: float,
    recipe: str | None = None,
    kind: PredictionKind = "backbone",
    seed: int = 0,
    limit: int = 40,
    ax: Axes | None = None,
) -> Axes:
    """Plot how probable each rank is for each backbone.

    Parameters
    ----------
    fit, candidates, volume, recipe, kind, seed
        As for `bayescdm.compare.rank_backbones`.
    limit : int
        Backbones shown, best expected accuracy first; ranks are among all.
    ax : Axes, optional

    Returns
    -------
    Axes
        One row a backbone, one column a rank (or a few, where there are many candidates); the darker, the
        more probable.

    Raises
    ------
    NotFoundError, RequestError, ModelError
        As for `bayescdm.compare.rank_backbones`.
    """
    draws = predict_draws(fit, candidates, volumes=volume, recipe=recipe, kind=kind, seed=seed)
    ax = draw_ranks(draws.isel(volume=0), title=study_title(fit), limit=limit, ax=ax)
    stamp(ax, fit)
    return ax


def draw_ranks(accuracy: xr.DataArray, *, title: str, limit: int = 40, ax: Axes | None = None) -> Axes:
    """Draw the distribution of ranks of draws that are already there.

    Parameters
    ----------
    accuracy : DataArray, (sample, backbone)
        With ``kind`` among its attributes.
    title : str
        Name of the study.
    limit, ax
        As for `plot_rank_distribution`.

    Returns
    -------
    Axes
    """
    best_first = np.argsort(-accuracy.mean("sample").to_numpy(), kind="stable")[:limit]
    ranks = rankdata(-accuracy.to_numpy(), axis=1, method="ordinal").astype(int)[:, best_first]
    n = accuracy.sizes["backbone"]
    # Among many candidates no single rank is probable: neighbouring ranks share a cell.
    together = -(-n // MOST_RANKS)
    cells_of = (ranks - 1) // together
    columns = (n - 1) // together + 1
    probabilities = np.stack([np.bincount(c, minlength=columns) for c in cells_of.T]) / len(ranks)
    ax = new_axes(ax, (6.8, ROW * len(best_first) + FRAME))
    colours = palette(ax)
    edges = [*SHADES, 1.01]
    for (low, alpha), high in zip(SHADES.items(), edges[1:]):
        cells = np.argwhere((probabilities >= low) & (probabilities < high))
        corners = np.array([[0.0, -0.42], [1.0, -0.42], [1.0, 0.42], [0.0, 0.42]])
        boxes = (cells[:, None, ::-1] + corners) * [together, 1] + [0.5, 0]
        ax.add_collection(PolyCollection(boxes, facecolor=colours.series[0], alpha=alpha, linewidth=0))
    label_rows(ax, short_names(accuracy["backbone"].to_numpy()[best_first]))
    shown = int(np.argwhere(probabilities >= min(SHADES))[:, 1].max(initial=0)) + 1
    ax.set_xlim(0.5, min(n, shown * together) + 0.5)
    last = int(ax.get_xlim()[1])
    step = max(1, -(-last // (4 if is_narrow(ax) else 12)))
    ax.set_xticks([1, *range(step if step > 1 else 2, last + 1, step)])
    grouped = f"; {together} ranks a cell" if together > 1 else ""
    ax.set_xlabel(f"rank among {n} candidates\n(1 is best{grouped})")
    handles = [
        Patch(color=colours.series[0], alpha=alpha, linewidth=0, label=f"≥ {low:g}")
        for low, alpha in SHADES.items()
    ]
    legend_above(ax, handles, title=f"{accuracy.attrs['kind']}, P(rank); {title}", columns=(3, 5))
    return ax


def _outside(row: dict[Any, Any]) -> bool:
    """Whether a backbone lies outside what runs have seen, of all recipes or of the asked one."""
    return bool(row["extrapolation"] or row["beyond_recipe"])


def _ranking_legend(ax: Axes, shown: pd.DataFrame, interval: str, title: str) -> None:
    blue, paper = palette(ax).series[0], palette(ax).paper
    handles = [Line2D([], [], color=blue, linewidth=1.6, label=f"mean and {interval}")]
    for mode, (marker, filled) in MARKERS.items():
        if (shown["mode"] == mode).any():
            face = blue if filled else paper
            handles.append(Line2D([], [], color=blue, marker=marker, markerfacecolor=face, ls="", label=mode))
    if any(_outside(row) for row in shown.to_dict("records")):
        handles.append(Line2D([], [], color=blue, linewidth=1.6, linestyle=":", label="extrapolation"))
    legend_above(ax, handles, columns=(1, 3), title=title)
