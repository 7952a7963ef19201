"""The paper's figures, with posterior intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from bayescdm.compare.tables import interval
from bayescdm.intervals import PredictionKind, interval_columns
from bayescdm.paper.batch import BatchFit, composite_draws
from bayescdm.paper.compute import COMMON, On, capability_on_compute, log_compute
from bayescdm.paper.correlation import score_pairs, text_against_multimodal
from bayescdm.paper.extrapolation import transfer_at_volume
from bayescdm.paper.families import family_estimates
from bayescdm.paper.fitting import held_out, law_of_runs
from bayescdm.plots.layout import given, label_rows, legend_above, new_axes, panels, percent_ticks
from bayescdm.plots.style import palette, stamp, study_title
from bayescdm.predict import LawDraws, predict_draws
from bayescdm.study import Study
from bayescdm.validate.predictive import run_predictive
from bayescdm.wording import interval_label, short_count

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = [
    "plot_batch_size",
    "plot_capability_on_compute",
    "plot_held_out_trajectories",
    "plot_shrinkage",
    "plot_text_against_multimodal",
    "plot_transfer",
]

CAPABILITY = "capability S"
ACCURACY = "accuracy"


def plot_transfer(
    fit: Fit, *, volume: float | None = None, prob: float = 0.95, ax: Axes | None = None
) -> Axes:
    """Plot the line of transfer at one volume, and the held-out backbones beside it.

    Parameters
    ----------
    fit : Fit
        From `refit_without_large`.
    volume : float, optional
        In the study's unit; that of the nearest runs is shown. By default the paper's 12.5B tokens, for
        studies that count tokens.
    prob : float
        Probability of the bands.
    ax : Axes, optional

    Returns
    -------
    Axes

    Raises
    ------
    RequestError
        As for `transfer_at_volume`.

    Notes
    -----
    Figure 3(a) of arXiv 2608.00013. The narrow band is the law's; the bars are what a run would measure.
    """
    ax = new_axes(ax, (7.0, 4.2))
    held = transfer_at_volume(fit, volume=volume, prob=prob)
    fitted = pd.DataFrame(held.attrs["fitted"])
    law = LawDraws.of(fit)
    at = np.log(held.attrs["volume"] / float(fit.study.volume_ref or 1.0))
    every = pd.concat([fitted, held])
    S = np.linspace(every["capability"].min() - 0.03, every["capability"].max() + 0.03, 60)
    mean = {rate: law[rate].mean(axis=(1, 2)) for rate in ("A", "B0", "Bm")}
    line = (mean["A"] - mean["Bm"] * at)[:, None] * S + (law["P0"] + mean["B0"] * at)[:, None]
    low, high = interval(line, "law", prob).values()
    blue, orange = palette(ax).series[:2]
    ax.fill_between(S, low, high, color=blue, alpha=0.18, linewidth=0)
    ax.plot(S, line.mean(0), color=blue, linestyle="--", linewidth=1.2)
    ax.scatter(fitted["capability"], fitted["accuracy"], s=18, color=blue, linewidth=0)
    lower, upper = (held[name].to_numpy() for name in interval_columns("run", prob))
    ax.vlines(held["capability"], lower, upper, color=orange, linewidth=2, alpha=0.6)
    ax.scatter(held["capability"], held["accuracy"], s=34, color=orange, marker="D", zorder=3)
    _name_points(ax, held["capability"].to_numpy(), held["accuracy"].to_numpy(), list(held["backbone"]))
    _finish(ax, CAPABILITY, f"{ACCURACY} at {short_count(held.attrs['volume'])} {fit.study.volume_unit}")
    ax.yaxis.set_major_formatter(percent_ticks())
    handles = [
        Line2D([], [], color=blue, marker="o", linestyle="", label="fitted"),
        Line2D([], [], color=orange, marker="D", linestyle="", label="held out"),
        Patch(color=blue, alpha=0.18, label=interval_label("law", prob)),
        Line2D([], [], color=orange, linewidth=2, alpha=0.6, label=interval_label("run", prob)),
    ]
    legend_above(ax, handles, columns=(2, 4), title=study_title(fit))
    stamp(ax, fit)
    return ax


def plot_held_out_trajectories(
    fit: Fit, *, prob: float = 0.95, width: float = 7.0, axes: np.ndarray | None = None
) -> np.ndarray:
    """Plot whole trajectories of the held-out backbones with the runs that the fit did not see.

    Parameters
    ----------
    fit : Fit
        From `refit_without_large`.
    prob : float
        Probability of the bands.
    width : float
        Inches of a new figure.
    axes : array of Axes, optional
        One for each held-out backbone.

    Returns
    -------
    ndarray of Axes, (backbone,)

    Notes
    -----
    Figure 3(b) of arXiv 2608.00013.
    """
    runs = fit.study.fitted_runs[held_out(fit)]
    runs = runs[runs["volume"].notna()]
    names = list(runs["backbone"].unique())
    known = fit.study.fitted_runs["volume"].dropna()
    volumes = np.geomspace(known.min(), known.max(), 13)
    unit = fit.study.volume_unit
    used = (
        panels(
            [str(n).rsplit("/", 1)[-1] for n in names],
            columns=3,
            width=width,
            height=2.3,
            labels=(unit, ACCURACY),
        )
        if axes is None
        else given(axes, len(names))
    )
    blue, orange = palette(used[0]).series[:2]
    for ax, name in zip(used, names):
        own = runs[runs["backbone"] == name]
        recipe = str(own["recipe"].iloc[0])
        shades: tuple[tuple[PredictionKind, float], ...] = (("run", 0.14), ("law", 0.25))
        for kind, alpha in shades:
            draws = predict_draws(fit, [name], volumes=list(volumes), recipe=recipe, kind=kind)
            values = draws.to_numpy()[:, 0]
            if kind == "law":
                values = values - _intercept(fit, name)[:, None]
                ax.plot(volumes, values.mean(0), color=blue, linestyle="--", linewidth=1.2)
            low, high = interval(values, kind, prob).values()
            ax.fill_between(volumes, low, high, color=blue, alpha=alpha, linewidth=0)
        ax.scatter(own["volume"], own["accuracy"], s=26, color=orange, marker="D", zorder=3)
        ax.set_xscale("log")
        ticks = np.unique(own["volume"])
        ax.set_xticks(ticks[:: 1 + len(ticks) // 4])
        ax.xaxis.set_major_formatter(lambda value, _: short_count(value))
        ax.minorticks_off()
        ax.yaxis.set_major_formatter(percent_ticks())
        ax.grid(linewidth=0.6, color=palette(ax).grid)
        stamp(ax, fit)
    if axes is None:
        limits = [ax.get_ylim() for ax in used]
        for ax in used:
            ax.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
        handles = [
            Line2D([], [], color=orange, marker="D", linestyle="", label="held-out run"),
            Patch(color=blue, alpha=0.4, label=interval_label("law", prob)),
            Patch(color=blue, alpha=0.14, label=interval_label("run", prob)),
        ]
        legend_above(used[0], handles, columns=(2, 3), title=study_title(fit))
    return used


def plot_shrinkage(
    fit: Fit,
    *,
    pooled: Fit | None = None,
    volume: float | None = None,
    prob: float = 0.9,
    width: float = 7.0,
    axes: np.ndarray | None = None,
) -> np.ndarray:
    """Plot each family's separate estimate, its partially pooled posterior, and the pooled law.

    Parameters
    ----------
    fit, pooled, volume, prob
        As for `family_estimates`.
    width : float
        Inches of a new figure.
    axes : array of Axes, optional
        Three: A, B0 and Bm.

    Returns
    -------
    ndarray of Axes, (rate,)
    """
    table = family_estimates(fit, pooled, volume=volume, prob=prob)
    families = table["family"].drop_duplicates()
    counts = table.drop_duplicates("family").set_index("family")["runs"]
    families = list(counts.sort_values(ascending=False, kind="stable").index)
    rates = ("A", "B0", "Bm")
    if axes is None:
        used = panels(
            ["transfer A", "base absorption B0", "decay Bm"],
            columns=3,
            width=width,
            height=0.24 * len(families) + 0.7,
            labels=("rate", ""),
        )
    else:
        used = given(axes, 3)
    blue, orange, green = palette(used[0]).series[:3]
    grey = palette(used[0]).muted
    lower, upper = interval_columns("posterior", prob)
    for position, (ax, rate) in enumerate(zip(used, rates)):
        own = table[table["quantity"] == rate].set_index("family").loc[families]
        rows = np.arange(len(families))
        ax.axvline(own["pooled"].iloc[0], color=green, linewidth=1, linestyle="--")
        ax.hlines(rows, own[lower], own[upper], color=blue, linewidth=3, alpha=0.5)
        ax.scatter(own["mean"], rows, s=22, color=blue, zorder=3)
        ax.scatter(own["separate"], rows, s=22, color=orange, marker="x", zorder=3)
        if own["true"].notna().any():
            ax.scatter(own["true"], rows, s=40, color=grey, marker="|", linewidth=2, zorder=4)
        label_rows(
            ax, [f"{name} ({counts[name]})" for name in families] if position == 0 else [""] * len(rows)
        )
        ax.tick_params(axis="y", labelleft=position == 0)
        span = np.array([own[lower].min(), own[upper].max(), own["pooled"].iloc[0]])
        margin = 0.35 * (span.max() - span.min())
        ax.set_xlim(span.min() - margin, span.max() + margin)
        _beyond(ax, own["separate"].to_numpy(), rows, orange)
        stamp(ax, fit)
    if axes is None:
        handles = [
            Line2D([], [], color=orange, marker="x", linestyle="", label="separate (arrow: beyond the axis)"),
            Line2D(
                [], [], color=blue, marker="o", label=f"partially pooled, {interval_label('posterior', prob)}"
            ),
            Line2D([], [], color=green, linestyle="--", label="one law for all"),
        ]
        if table["true"].notna().any():
            handles.append(
                Line2D([], [], color=grey, marker="|", markeredgewidth=2, linestyle="", label="truth")
            )
        legend_above(used[0], handles, columns=(1, 2), title=f"families (runs); {study_title(fit)}")
    return used


def plot_capability_on_compute(
    fit: Fit, *, on: On = "compute", prob: float = 0.9, ax: Axes | None = None
) -> Axes:
    """Plot capability against pre-training compute, with a line for each family of two or more sizes.

    Parameters
    ----------
    fit, on, prob
        As for `capability_on_compute`.
    ax : Axes, optional

    Returns
    -------
    Axes
        Bars are intervals of S.
    """
    ax = new_axes(ax, (7.0, 4.2))
    table = capability_on_compute(fit, on=on, prob=prob).set_index("family")
    law = LawDraws.of(fit)
    names, x = law.backbones, log_compute(fit, on)
    S = law["S"][:, law.positions("backbone", names)]
    family = fit.study.backbones.loc[names, "family"].to_numpy()
    low, high = interval(S, "posterior", prob).values()
    reference = float(np.log(capability_on_compute(fit, on=on, prob=prob).attrs["reference"]))
    shown = [name for name in table.index if name != COMMON]
    colours = dict(zip(shown, palette(ax).series * 2))
    markers = dict(zip(shown, "osD^vPX*" * 2))
    for name in sorted(set(family)):
        own = family == name
        colour = colours.get(name, palette(ax).muted)
        ax.vlines(np.exp(x[own]), low[own], high[own], color=colour, linewidth=1, alpha=0.6)
        ax.scatter(np.exp(x[own]), S[:, own].mean(0), s=24, color=colour, marker=markers.get(name, "."))
        if name in shown:
            ends = np.array([x[own].min(), x[own].max()])
            line = table.at[name, "intercept"] + table.at[name, "mean"] * (ends - reference)
            ax.plot(np.exp(ends), line, color=colour, linewidth=1.2)
    ax.set_xscale("log")
    words = "pre-training compute 6·N·D, FLOPs" if on == "compute" else "active parameters"
    _finish(ax, words, CAPABILITY)
    lower, upper = interval_columns("posterior", prob)
    handles = [
        Line2D(
            [],
            [],
            color=colours[name],
            marker=markers[name],
            label=name + ": θ {:.2f} [{:.2f}, {:.2f}]".format(*table.loc[name, ["mean", lower, upper]]),
        )
        for name in shown
    ]
    handles.append(Line2D([], [], color=palette(ax).muted, marker=".", linestyle="", label="one size only"))
    title = f"slope θ per unit of ln C, {100 * prob:g} % interval; {study_title(fit)}"
    legend_above(ax, handles, columns=(1, 2), title=title)
    stamp(ax, fit)
    return ax


def plot_text_against_multimodal(
    study: Study, *, recipe: str | None = None, prob: float = 0.9, ax: Axes | None = None
) -> Axes:
    """Plot multimodal accuracy against mean text score.

    Parameters
    ----------
    study, recipe, prob
        As for `text_against_multimodal`.
    ax : Axes, optional

    Returns
    -------
    Axes

    Notes
    -----
    Figure 6 of arXiv 2608.00013.
    """
    ax = new_axes(ax, (7.0, 3.8))
    pairs = score_pairs(study, recipe=recipe)
    table = text_against_multimodal(study, recipe=recipe, prob=prob).set_index("quantity")
    lower, upper = interval_columns("posterior", prob)
    blue = palette(ax).series[0]
    ax.scatter(pairs["text_score"], pairs["accuracy"], s=22, color=blue, linewidth=0, alpha=0.8)
    x = np.array([pairs["text_score"].min(), pairs["text_score"].max()])
    line = table.at["intercept", "value"] + table.at["slope", "value"] * x
    ax.plot(x, line, color=palette(ax).muted, linestyle="--", linewidth=1.2)
    rho = table.loc["spearman"]
    slope = table.loc["slope"]
    ax.set_title(
        f"Spearman ρ {rho['value']:.2f} [{rho[lower]:.2f}, {rho[upper]:.2f}], "
        f"slope {slope['value']:.2f} [{slope[lower]:.2f}, {slope[upper]:.2f}], {100 * prob:g} % intervals\n"
        f"each of {rho['backbones']} backbones has the same weight; "
        f"ρ of the {rho['vlms']} points as they stand {rho['unweighted']:.2f}",
        fontsize=9,
    )
    _finish(ax, f"mean text score; {study.name}", ACCURACY)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(percent_ticks())
    return ax


def plot_batch_size(
    batch: BatchFit,
    *,
    candidates: list[str] | None = None,
    volume: float = 50e9,
    prob: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Plot the optimal batch size against the composite, with predictions for other backbones.

    Parameters
    ----------
    batch : BatchFit
        On the composite.
    candidates : list of str, optional
        Backbones of the study to predict.
    volume : float
        At which they are predicted, in the study's unit.
    prob : float
        Probability of band and bars.
    ax : Axes, optional

    Returns
    -------
    Axes

    Notes
    -----
    Figure 5 of arXiv 2608.00013. The band is the law's, at the posterior mean composite.
    """
    ax = new_axes(ax, (7.0, 4.2))
    names, volumes = list(batch.points["backbone"].unique()), list(batch.points["volume"].unique())
    composite = composite_draws(batch.fit, names, volumes=volumes).mean("sample")
    colours = dict(zip(names, palette(ax).series))
    markers = dict(zip(names, "osD^vPX*"))
    xs = []
    for name in names:
        own = batch.points[batch.points["backbone"] == name]
        x = composite.sel(backbone=name, volume=own["volume"].to_numpy()).to_numpy()
        xs.append(x)
        ax.scatter(x, 2 ** own["log2_batch"], s=24, color=colours[name], marker=markers[name], zorder=3)
    handles = [
        Line2D([], [], color=colours[n], marker=markers[n], linestyle="", label=n.rsplit("/", 1)[-1])
        for n in names
    ]
    places = np.concatenate(xs)
    if candidates:
        table = batch.predict(candidates, volumes=volume, kind="backbone", prob=prob)
        where = composite_draws(batch.fit, candidates, volumes=volume).mean("sample").to_numpy()[:, 0]
        lower, upper = (table[f"batch_size_{name}"] for name in interval_columns("backbone", prob))
        ink = palette(ax).ink
        ax.vlines(where, lower, upper, color=ink, linewidth=1.5)
        ax.scatter(where, table["batch_size"], s=40, facecolor="none", edgecolor=ink, zorder=4)
        _name_points(ax, where, table["batch_size"].to_numpy(), candidates)
        places = np.concatenate([places, where])
        at = f"{short_count(volume)} {batch.fit.study.volume_unit}"
        label = f"predicted at {at}, {interval_label('backbone', prob)}"
        handles.append(Line2D([], [], color=ink, marker="o", markerfacecolor="none", label=label))
    grid = np.linspace(places.min() - 0.01, places.max() + 0.01, 50)
    line = batch.alpha[:, None] + batch.beta[:, None] * (grid - batch.centre.mean())
    low, high = interval(line, "law", prob).values()
    ax.fill_between(grid, 2**low, 2**high, color=palette(ax).muted, alpha=0.2, linewidth=0)
    ax.plot(grid, 2 ** line.mean(0), color=palette(ax).muted, linestyle="--", linewidth=1.2)
    ax.set_yscale("log", base=2)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    _finish(ax, "composite A·S + (B0 − Bm·S)·ln(D/D_ref), accuracy", "optimal batch size, samples")
    simulated = "; simulated losses" if batch.simulated else ""
    legend_above(ax, handles, columns=(1, 3), title=study_title(batch.fit) + simulated)
    stamp(ax, batch.fit)
    return ax


def _intercept(fit: Fit, name: str) -> np.ndarray:
    """Draws of the intercept of a backbone that the fit knows, (sample,)."""
    runs = fit.study.fitted_runs
    own = runs[runs["backbone"] == name].iloc[:1]
    return (run_predictive(fit, own).expected - law_of_runs(fit, own))[0]


def _name_points(ax: Axes, x: np.ndarray, y: np.ndarray, names: list[str]) -> None:
    """Write names beside points, to the left and to the right in turn, so that neighbours stay readable."""
    for place, i in enumerate(np.argsort(x, kind="stable")):
        left = place % 2 == 0
        ax.annotate(
            names[i].rsplit("/", 1)[-1],
            (float(x[i]), float(y[i])),
            xytext=(-7 if left else 7, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=8,
        )
    low, high = ax.get_xlim()
    ax.set_xlim(low, max(high, x.max() + 0.22 * (high - low)) if len(x) > 1 else high)


def _beyond(ax: Axes, values: np.ndarray, rows: np.ndarray, colour: str) -> None:
    """Arrows at the edge for estimates that lie beyond the axis."""
    low, high = ax.get_xlim()
    for marker, edge, out in (("<", low, values < low), (">", high, values > high)):
        ax.scatter(
            np.full(out.sum(), edge), rows[out], s=26, color=colour, marker=marker, clip_on=False, zorder=5
        )


def _finish(ax: Axes, x: str, y: str) -> None:
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    ax.grid(linewidth=0.6, color=palette(ax).grid)
    ax.set_axisbelow(True)
