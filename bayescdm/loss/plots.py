"""Plots of loss laws: splits of a budget, lines of equal compute and loss, error against compute, logs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from bayescdm.intervals import interval_columns
from bayescdm.loss.allocate import Allocation, ComputeLaw, allocate
from bayescdm.loss.fit import Kind, LossFit
from bayescdm.loss.pointfit import LossPointFit
from bayescdm.loss.study import LossStudy
from bayescdm.plots.layout import given, legend_above, new_axes, panels, share_limits
from bayescdm.plots.style import palette, stamp, stamp_not_converged
from bayescdm.wording import interval_label, short_count

__all__ = [
    "plot_contrastive",
    "plot_iso_flop",
    "plot_iso_loss",
    "plot_loss_curve",
    "plot_loss_logs",
]

DASHED = (0, (3, 2))
#: What a dashed line means in every plot of this module.
OUTSIDE = "outside the fitted range"


def plot_loss_curve(allocation: Allocation, *, ax: Axes | None = None) -> Axes:
    """Plot the loss along all splits of one budget, with its optimum.

    Parameters
    ----------
    allocation : Allocation
    ax : Axes, optional

    Returns
    -------
    Axes
        Dashed outside the fitted range; a band where the law has draws.

    Examples
    --------
    >>> from bayescdm.loss.allocate import allocate
    >>> axes = plot_loss_curve(allocate(1e21))
    """
    new, ax = ax is None, new_axes(ax, (5.4, 3.4))
    colours, curve = palette(ax), allocation.curve
    colour = colours.series[0]
    # A long name would push the other half of the legend out of the picture.
    handles: list = [Line2D([], [], color=colour, label=fill(allocation.law.name, 36))]
    if allocation.law.has_draws:
        lower, upper = interval_columns("law", allocation.prob)
        ax.fill_between(curve["params"], curve[lower], curve[upper], color=colour, alpha=0.3, linewidth=0)
        handles.append(Patch(color=colour, alpha=0.3, label=interval_label("law", allocation.prob)))
    _solid_inside(ax, curve["params"], curve["loss"], curve["extrapolation"], colour)
    best = allocation.optimum["value"]
    ax.plot(best["params"], best["loss"], "o", color=colours.series[1], zorder=5)
    label = f"optimum: N {short_count(best['params'])}, D {short_count(best['tokens'])}"
    handles.append(Line2D([], [], marker="o", linestyle="", color=colours.series[1], label=label))
    handles.append(Line2D([], [], color=colour, linestyle=DASHED, label=OUTSIDE))
    asked = allocation.sizes
    if len(asked):
        ax.plot(asked["params"], asked["loss"], "s", color=colours.series[2], markersize=5, zorder=6)
        handles.append(
            Line2D([], [], marker="s", linestyle="", color=colours.series[2], label="size asked for")
        )
    near = curve.loc[curve["loss"] <= max([best["loss"] + 0.6, *asked["loss"]])]
    ax.set_ylim(_padded(near.filter(regex="loss|law_")))
    _counts_below(ax, "model size N (parameters)")
    ax.set_xlim(near["params"].min() / 1.1, near["params"].max() * 1.1)
    ax.set_ylabel(f"{allocation.scope.metric} ({allocation.scope.units['metric']})")
    served = allocation.tokens_served
    serving = f" and serving {short_count(served)} tokens" if served else ""
    ax.set_title(f"{_flops(allocation.flops)} FLOPs of training{serving}")
    if new:
        legend_above(ax, handles, columns=(1, 2))
    if not allocation.converged:
        stamp_not_converged(ax)
    return ax


def plot_iso_flop(law: ComputeLaw, budgets: Sequence[float], *, ax: Axes | None = None) -> Axes:
    """Plot the loss against model size at several budgets, and the path of the optima.

    Parameters
    ----------
    law : ComputeLaw
    budgets : sequence of float
        FLOPs; each is one curve.
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from bayescdm.loss.allocate import preset
    >>> axes = plot_iso_flop(preset(), [1e19, 1e20, 1e21])
    """
    new, ax = ax is None, new_axes(ax, (5.4, 3.8))
    colours = palette(ax)
    results = [allocate(flops, law) for flops in sorted(budgets)]
    shades = np.linspace(0.45, 1.0, len(results))
    for result, shade in zip(results, shades):
        near = result.curve[result.curve["loss"] < result.optimum.loc["loss", "value"] + 0.35]
        _solid_inside(ax, near["params"], near["loss"], near["extrapolation"], colours.series[0], shade)
        ax.annotate(
            _flops(result.flops),
            (near["params"].iloc[-1], near["loss"].iloc[-1]),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=colours.muted,
        )
    path = pd.DataFrame([result.optimum["value"] for result in results])
    ax.plot(path["params"], path["loss"], "o-", color=colours.series[1], linewidth=1.2, markersize=4)
    _counts_below(ax, "model size N (parameters)")
    ax.margins(x=0.12, y=0.08)
    ax.set_ylabel(f"{law.scope.metric} ({law.scope.units['metric']})")
    ax.set_title("Loss at fixed training compute")
    if new:
        exponent = np.median(law.beta / (law.alpha + law.beta))
        handles = [
            Line2D([], [], color=colours.series[0], label="one budget a curve, in FLOPs"),
            Line2D([], [], color=colours.series[1], marker="o", label=f"optimum, N* ∝ C^{exponent:.3f}"),
            Line2D([], [], color=colours.series[0], linestyle=DASHED, label=OUTSIDE),
        ]
        legend_above(ax, handles, columns=(1, 2))
    if not law.converged:
        stamp_not_converged(ax)
    return ax


def plot_iso_loss(law: ComputeLaw, *, ax: Axes | None = None) -> Axes:
    """Plot lines of equal loss over model size and tokens, with the fitted range and the path of the optima.

    Parameters
    ----------
    law : ComputeLaw
    ax : Axes, optional

    Returns
    -------
    Axes

    Examples
    --------
    >>> from bayescdm.loss.allocate import preset
    >>> axes = plot_iso_loss(preset())
    """
    new, ax = ax is None, new_axes(ax, (5.4, 4.4))
    colours = palette(ax)
    (low_N, high_N), (low_D, high_D) = law.scope.ranges["params"], law.scope.ranges["volume"]
    N, D = (np.geomspace(low / 10, high * 10, 80) for low, high in ((low_N, high_N), (low_D, high_D)))
    grid_N, grid_D = np.meshgrid(N, D)
    loss = np.median(law.loss(grid_N.ravel(), grid_D.ravel()), axis=0).reshape(grid_N.shape)
    levels = _round_levels(loss)
    lines = ax.contour(grid_N, grid_D, loss, levels=levels, colors=colours.series[0], linewidths=1.0)
    for exponent in range(17, 28):
        ax.plot(N, 10.0**exponent / (6 * N), color=colours.grid, linewidth=0.8, zorder=0)
    budgets = np.geomspace(6 * N[0] * D[0], 6 * N[-1] * D[-1], 60)
    best = np.array([[np.median(part) for part in law.optimum(flops)] for flops in budgets])
    ax.plot(*best.T, color=colours.series[1], linewidth=1.6)
    size = (high_N - low_N, high_D - low_D)
    ax.add_patch(Rectangle((low_N, low_D), *size, fill=False, edgecolor=colours.ink, linewidth=1.1))
    _counts_below(ax, "model size N (parameters)")
    ax.set_yscale("log")
    _count_ticks(ax.yaxis)
    ax.set_ylabel("tokens D")
    ax.set_xlim(N[0], N[-1])
    ax.set_ylim(D[0], D[-1])
    ax.clabel(lines, fmt="%.2f", fontsize=7, colors=colours.ink)
    ax.set_title("Lines of equal loss")
    if new:
        handles = [
            Line2D([], [], color=colours.series[0], label=f"{law.scope.metric}, {law.scope.units['metric']}"),
            Line2D([], [], color=colours.series[1], label="least loss at each budget"),
            Line2D([], [], color=colours.grid, label="equal compute, a factor of 10 apart"),
            Line2D([], [], color=colours.ink, label="fitted range; outside it: extrapolation"),
        ]
        legend_above(ax, handles, columns=(1, 2))
    if not law.converged:
        stamp_not_converged(ax)
    return ax


def plot_contrastive(
    fit: LossFit, *, prob: float = 0.9, reach: float = 10.0, axes: np.ndarray | None = None
) -> np.ndarray:
    """Plot error against compute, a panel for each training set.

    Parameters
    ----------
    fit : LossFit
        Of the contrastive law.
    prob : float
        Probability of both intervals.
    reach : float
        Factor of compute by which the law is drawn beyond the models, dashed.
    axes : array of Axes, optional
        One for each training set.

    Returns
    -------
    ndarray of Axes, (family,)
    """
    families = fit.study.families
    labels = (f"compute ({fit.scope.units['compute'].split(',')[0]})", fit.scope.metric)
    new = axes is None
    by_family = {family: fit.study.runs[fit.study.runs["family"] == family] for family in families}
    titles = [f"{family} ({len(runs)} models)" for family, runs in by_family.items()]
    if axes is None:
        width = 5.4 if len(families) > 1 else 3.6
        axes = panels(titles, columns=2, width=width, height=2.1, labels=labels)
    else:
        axes = np.ravel(axes)
        for ax, title in zip(axes, titles):
            ax.set_title(title)
    for ax, (family, runs) in zip(axes, by_family.items()):
        colours = palette(ax)
        C = np.geomspace(runs["compute"].min() / 2, runs["compute"].max() * reach, 60)
        asked = pd.DataFrame({"family": family, "compute": C})
        kinds: dict[Kind, float] = {"run": 0.16, "law": 0.34}
        for kind, alpha in kinds.items():
            table = fit.predict(asked, kind=kind, prob=prob).table
            lower, upper = interval_columns(kind, prob)
            ax.fill_between(C, table[lower], table[upper], color=colours.series[0], alpha=alpha, linewidth=0)
        # The range of this training set, which is narrower than that of all of them.
        outside = (runs["compute"].min() > C) | (runs["compute"].max() < C)
        _solid_inside(ax, C, table["loss"], outside, colours.series[0])
        error = fit.study.points.set_index("run")["loss"].reindex(runs.index)
        ax.plot(runs["compute"], error, "o", color=colours.series[1], markersize=4)
        ax.set_xscale("log")
        stamp(ax, fit)
    if new:
        colours = palette(axes[0])
        handles = [
            Line2D([], [], marker="o", linestyle="", color=colours.series[1], label="published model"),
            Patch(color=colours.series[0], alpha=0.45, label=interval_label("law", prob)),
            Patch(color=colours.series[0], alpha=0.16, label=interval_label("run", prob)),
            Line2D(
                [], [], color=colours.series[0], linestyle=DASHED, label="outside its models: extrapolation"
            ),
        ]
        legend_above(axes[0], handles, columns=(1, 2))
        share_limits(axes)
    return axes


def plot_loss_logs(
    study: LossStudy, fits: Mapping[str, Sequence[LossPointFit]], *, axes: np.ndarray | None = None
) -> np.ndarray:
    """Plot logged losses against data volume with what laws predict, a panel for each set of laws.

    Parameters
    ----------
    study : LossStudy
    fits : mapping of str to sequence of LossPointFit
        By the title of the panel: one capability law for all runs, or compute laws in the order of the
        study's families.
    axes : array of Axes, optional
        One for each panel.

    Returns
    -------
    ndarray of Axes, (panel,)
        Panels of the paper's Figure 1: solid lines are logged, dashed ones predicted.
    """
    new, titles = axes is None, list(fits)
    kind = " (simulated)" if study.simulated else ""
    volume, loss = f"data volume ({study.scope.units.get('volume', 'tokens')})", f"{study.scope.metric}{kind}"
    if axes is None:
        axes = panels(titles, columns=2, width=4.2 * min(2, len(titles)), height=3.2, labels=(volume, loss))
    else:
        axes = given(axes, len(titles))
        for ax, title in zip(axes, titles):
            ax.set(title=title, xlabel=volume, ylabel=loss)
    for ax, title in zip(axes, titles):
        _draw_logs(ax, study, list(fits[title]))
    if new:
        colours = palette(axes[0])
        handles = [
            Line2D([], [], color=colours.series[i % len(colours.series)], label=family)
            for i, family in enumerate(study.families)
        ]
        handles.append(Line2D([], [], color=colours.muted, alpha=0.55, label="logged, one line a run"))
        handles.append(Line2D([], [], color=colours.muted, linestyle=DASHED, label="predicted by the law"))
        legend_above(axes[0], handles, columns=(2, 4))
        share_limits(axes)
    return axes


def _draw_logs(ax: Axes, study: LossStudy, fits: list[LossPointFit]) -> None:
    """Draw the logs of all runs and what the laws predict of them."""
    predictors: dict[tuple[int, float], list[np.ndarray]] = {}
    for position, run in enumerate(study.runs.index):
        own = study.points[study.points["run"] == run]
        family = study.families.index(study.runs.at[run, "family"])
        ax.plot(own["volume"], own["loss"], color=_of_family(ax, family), linewidth=1.0, alpha=0.55)
        if fits[0].law == "capability":
            value = float(study.component_scores[position] @ fits[0].parameters["w"])
        else:
            value = float(study.runs.at[run, "params"])
        predictors.setdefault((family, value), []).append(own["volume"].to_numpy(float))
    # Runs of one family and size are one prediction: dashes over each other would close to a solid line.
    for (family, value), volumes in predictors.items():
        fit, D = fits[0] if len(fits) == 1 else fits[family], np.unique(np.concatenate(volumes))
        given_value = {"S" if fit.law == "capability" else "params": np.full(len(D), value)}
        predicted = fit.predict(D, **given_value).table["loss"]
        ax.plot(D, predicted, color=_of_family(ax, family), linestyle=DASHED, linewidth=1.5)
    ax.set_xscale("log")
    _count_ticks(ax.xaxis)


def _of_family(ax: Axes, family: int) -> str:
    """Colour of a family by its position."""
    series = palette(ax).series
    return series[family % len(series)]


def _solid_inside(
    ax: Axes, x: np.ndarray, y: np.ndarray, outside: np.ndarray, colour: str, alpha: float = 1.0
) -> None:
    """Draw a line that is dashed where it extrapolates."""
    ax.plot(x, np.where(outside, np.nan, y), color=colour, linewidth=1.8, alpha=alpha)
    ax.plot(x, y, color=colour, linewidth=1.1, linestyle=DASHED, alpha=alpha)


def _counts_below(ax: Axes, label: str) -> None:
    """Give the horizontal axis a logarithmic scale of counts written as users write them."""
    ax.set_xscale("log")
    _count_ticks(ax.xaxis)
    ax.set_xlabel(label)


def _count_ticks(axis) -> None:  # type: ignore[no-untyped-def]
    axis.set_major_locator(LogLocator(numticks=6))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))
    axis.set_minor_formatter(NullFormatter())


def _flops(value: float) -> str:
    """Write a budget as 1e21 or 5.76e23."""
    mantissa, exponent = f"{value:.3g}".split("e") if value >= 1e5 else (f"{value:g}", "0")
    return f"{float(mantissa):g}e{int(exponent)}"


def _padded(values: pd.DataFrame) -> tuple[float, float]:
    low, high = float(values.min().min()), float(values.max().max())
    return low - 0.05 * (high - low), high + 0.05 * (high - low)


def _round_levels(loss: np.ndarray) -> np.ndarray:
    """Eight to fifteen round values between the least and the greatest loss, closer where loss is low."""
    low, high = float(loss.min()), float(loss.max())
    levels = low + (high - low) * np.linspace(0.02, 0.95, 12) ** 1.8
    return np.unique(np.round(levels, 2))
