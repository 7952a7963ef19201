"""Validations as pictures: held-out trajectories, probability integral transforms, residuals."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bayescdm.errors import RequestError
from bayescdm.intervals import interval_columns
from bayescdm.plots.layout import given, legend_above, new_axes, panels, percent_ticks, share_limits
from bayescdm.plots.style import palette, stamp_not_converged
from bayescdm.validate.checks import PosteriorCheck
from bayescdm.validate.uniformity import ecdf_band
from bayescdm.validate.validation import Validation
from bayescdm.wording import interval_label, short_count, study_name

__all__ = ["plot_held_out", "plot_pit", "plot_residuals", "residual_heights"]

#: Ranks of which PIT values are taken for one: a band needs finitely many.
RANKS = 99
#: Probabilities of the two bands of a held-out trajectory.
BANDS = (0.5, 0.95)
#: Characters of a recipe's or family's name beside its residuals.
LONGEST_LABEL = 36


def plot_held_out(
    validation: Validation,
    *,
    folds: list[str] | None = None,
    columns: int = 3,
    width: float = 8.2,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Plot what a model predicted of trajectories that it was refitted without, and what they measured.

    Parameters
    ----------
    validation : Validation
    folds : list of str, optional
        Labels of folds; by default all whose recipes have a known volume. One panel a fold.
    columns : int
        Panels in a row of a new figure.
    width : float
        Inches of a new figure.
    axes : array of Axes, optional
        At least one for each fold.

    Returns
    -------
    ndarray of Axes, (fold,)
        As Figure 4 of *What Transfers from Text to Vision?*, with 50 and 95 % run intervals for bands. In
        one panel each backbone and recipe has its colour; measured runs are points.

    Raises
    ------
    RequestError
        A fold is not among those with trajectories.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> plot_held_out(cdm.validate("open-vlm"))  # doctest: +SKIP
    """
    lines = validation.trajectories
    known = list(dict.fromkeys(lines["fold"]))
    chosen = known if folds is None else folds
    unknown = [label for label in chosen if label not in known]
    if unknown or not chosen:
        named = f"'{unknown[0]}'" if unknown else "any fold"
        others = ", ".join(known) or "none"
        raise RequestError(f"no trajectory of {named}; there are trajectories of {others}")
    if axes is None:
        labels = (f"data volume ({validation.volume_unit})", "accuracy")
        used = panels(chosen, columns=columns, width=width, height=2.2, labels=labels)
        _legend(used[0], study_name(validation.study, simulated=validation.simulated))
    else:
        used = given(axes, len(chosen))
    for ax, label in zip(used, chosen):
        rows = validation.rows[validation.rows["fold"] == label]
        _fold(ax, lines[lines["fold"] == label], rows)
        fold = validation.folds[validation.folds["fold"] == label]
        if len(fold) and not fold["converged"].iloc[0]:
            stamp_not_converged(ax)
    share_limits(used)
    return used


def _fold(ax: Axes, lines: pd.DataFrame, rows: pd.DataFrame) -> None:
    """Every held-out trajectory of a fold."""
    colours = palette(ax).series
    for position, ((backbone, recipe), line) in enumerate(lines.groupby(["backbone", "recipe"], sort=False)):
        colour = colours[position % len(colours)]
        for prob, alpha in zip(BANDS, (0.30, 0.12)):
            lower, upper = (line[name] for name in interval_columns("run", prob))
            ax.fill_between(line["volume"], lower, upper, color=colour, alpha=alpha, linewidth=0)
        ax.plot(line["volume"], line["median"], color=colour, linewidth=1.4)
        seen = rows[(rows["backbone"] == backbone) & (rows["recipe"] == recipe)]
        ax.scatter(
            seen["volume"], seen["accuracy"], s=16, color=colour, edgecolor=palette(ax).paper, zorder=4
        )
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 3), numticks=6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.yaxis.set_major_formatter(percent_ticks())
    ax.grid(axis="y", linewidth=0.6, color=palette(ax).grid)
    ax.set_axisbelow(True)


def _legend(ax: Axes, title: str) -> None:
    colour = palette(ax).series[0]
    handles = [
        Line2D([], [], color=colour, label="predicted without it (median)"),
        *(
            Patch(color=colour, alpha=alpha, label=interval_label("run", prob))
            for prob, alpha in zip(BANDS, (0.42, 0.12))
        ),
        Line2D([], [], color=colour, marker="o", linestyle="", label="measured"),
    ]
    legend_above(ax, handles, columns=(2, 4), title=title)


def plot_pit(pit: np.ndarray, *, prob: float = 0.95, ax: Axes | None = None) -> Axes:
    """Plot how far probability integral transforms stray from uniform ones, with a simultaneous band.

    Parameters
    ----------
    pit : array, (run,)
        Probabilities of measuring less than was measured: ``validation.rows["pit"]`` or that of a check.
    prob : float
        Probability that the whole curve of independent runs stays in the band.
    ax : Axes, optional

    Returns
    -------
    Axes
        Empirical minus uniform distribution function: above 0 predictions are too high, an S through the
        middle means intervals too narrow (rising) or too wide (falling).
    """
    values = np.asarray(pit, float)
    ax = new_axes(ax, (3.6, 2.6))
    z, lower, upper = ecdf_band(len(values), RANKS, prob)
    empirical = (values[:, None] <= z).mean(axis=0)
    colours = palette(ax)
    ax.fill_between(
        z, lower - z, upper - z, color=colours.grid, linewidth=0, label=f"{100 * prob:g} % band if uniform"
    )
    ax.axhline(0, color=colours.muted, linewidth=0.8)
    ax.step(z, empirical - z, where="mid", color=colours.series[0], linewidth=1.4)
    ax.set_xlabel("probability integral transform")
    ax.set_ylabel("share below − expected")
    ax.set_xlim(0, 1)
    ax.legend(frameon=False, fontsize=8, loc="best")
    return ax


def plot_residuals(check: PosteriorCheck, *, axes: np.ndarray | None = None) -> np.ndarray:
    """Plot residuals against S and ln D, and by recipe and family.

    Parameters
    ----------
    check : PosteriorCheck
    axes : array of Axes, optional
        At least four.

    Returns
    -------
    ndarray of Axes, (4,)
        Residuals in points of accuracy; each title carries its posterior predictive p value.
    """
    if axes is None:
        heights = residual_heights(check)
        drawing = plt.figure(figsize=(7.0, sum(heights)), layout="constrained")
        axes = drawing.subplots(2, 2, height_ratios=heights)
    used = given(axes, 4)
    p = check.table.set_index("check")["p_value"]
    points = 100 * check.rows["residual"]
    for ax, (column, name) in zip(used[:2], (("capability", "S"), ("log_volume", "ln D"))):
        ax.scatter(check.rows[column], points, s=12, color=palette(ax).series[0], linewidth=0)
        ax.axhline(0, color=palette(ax).muted, linewidth=0.8)
        ax.set_title(f"{name} (p = {p[name]:.2f})")
        ax.set_ylabel("residual (points)")
    for ax, name in zip(used[2:], ("recipe", "family")):
        labels = sorted(check.rows[name].unique())
        position = pd.Index(labels).get_indexer(check.rows[name])
        ax.scatter(points, position, s=12, color=palette(ax).series[0], linewidth=0)
        ax.axvline(0, color=palette(ax).muted, linewidth=0.8)
        ax.set_yticks(range(len(labels)), [_cut(label) for label in labels], fontsize=6)
        ax.set_ylim(len(labels) - 0.5, -0.5)
        ax.set_title(f"{name} (p = {p[name]:.2f})")
        ax.set_xlabel("residual (points)")
    return used


def residual_heights(check: PosteriorCheck) -> tuple[float, float]:
    """Inches that the panels of `plot_residuals` need: those against numbers, and those with a line a label.

    Parameters
    ----------
    check : PosteriorCheck

    Returns
    -------
    tuple of float
    """
    labels = max(check.rows[name].nunique() for name in ("recipe", "family"))
    return 2.6, 0.9 + 0.12 * labels


def _cut(label: object) -> str:
    """A label that leaves room for what it labels."""
    text = str(label)
    return text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL - 1]}…"
