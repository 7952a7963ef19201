"""Can the draws be trusted, and what did they learn beyond the prior."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy.stats import rankdata

from bayescdm.errors import RequestError, unknown_name
from bayescdm.fit import MAX_R_HAT, MIN_ESS, Fit
from bayescdm.plots.layout import legend_above, new_axes, wrapped
from bayescdm.plots.style import palette, stamp, study_title

__all__ = ["plot_chain_ranks", "plot_convergence", "plot_prior_posterior"]

#: Bins of a rank histogram.
RANK_BINS = 20
#: Central share of prior and posterior draws that a density plot shows.
SHOWN = 0.98


def plot_convergence(fit: Fit, *, ax: Axes | None = None) -> Axes:
    """Plot R-hat against effective sample size of every quantity, with the limits that both must keep.

    Parameters
    ----------
    fit : Fit
    ax : Axes, optional

    Returns
    -------
    Axes
        A quantity is in order in the lower right: R-hat below 1.01 and the smaller of bulk and tail ESS above
        400. Those outside are drawn in the warning colour and the worst of each is named.

    Notes
    -----
    Vehtari, Gelman, Simpson, Carpenter and Bürkner, Rank-normalization, folding, and localization: an
    improved R-hat, Bayesian Analysis 16 (2021).
    """
    ax = new_axes(ax, (6.4, 3.2))
    colours = palette(ax)
    table = fit.convergence.dropna()
    ess = table[["ess_bulk", "ess_tail"]].min(axis=1).to_numpy()
    r_hat = table["r_hat"].to_numpy()
    failed = (r_hat >= MAX_R_HAT) | (ess <= MIN_ESS)
    for mask, colour in ((~failed, colours.series[0]), (failed, colours.warning)):
        ax.scatter(ess[mask], r_hat[mask], s=14, color=colour, alpha=0.6, linewidth=0)
    ax.axhline(MAX_R_HAT, color=colours.muted, linewidth=0.9, linestyle="--")
    ax.axvline(MIN_ESS, color=colours.muted, linewidth=0.9, linestyle="--")
    ax.set_xscale("log")
    ax.set_xlim(min(MIN_ESS / 2, ess.min() * 0.8), ess.max() * 1.25)
    top = max(MAX_R_HAT + 0.002, r_hat.max())
    ax.set_ylim(min(0.9995, r_hat.min()), top + 0.12 * (top - 1))
    ax.yaxis.set_major_formatter("{x:.3f}")
    ax.set_xlabel("effective sample size\n(smaller of bulk and tail)")
    ax.set_ylabel("R-hat")
    study = wrapped(ax, study_title(fit), float(ax.title.get_fontsize()))
    ax.set_title(f"{study}\n{len(table)} quantities, {failed.sum()} outside the limits")
    _name_worst(ax, list(table.index), ess, r_hat)
    stamp(ax, fit)
    return ax


def _name_worst(ax: Axes, names: list[str], ess: np.ndarray, r_hat: np.ndarray) -> None:
    """Name the quantity with the largest R-hat and the one with the smallest sample size."""
    low, high = np.log(ax.get_xlim())
    for worst in {int(np.argmax(r_hat)), int(np.argmin(ess))}:
        left = np.log(ess[worst]) < (low + high) / 2
        ax.annotate(
            names[worst],
            (ess[worst], r_hat[worst]),
            xytext=(6 if left else -6, 4),
            textcoords="offset points",
            ha="left" if left else "right",
            fontsize=8,
            color=palette(ax).muted,
        )


def plot_chain_ranks(fit: Fit, *, variable: str, ax: Axes | None = None) -> Axes:
    """Plot how often each chain holds the low, middle and high draws of a quantity.

    Parameters
    ----------
    fit : Fit
    variable : str
        A quantity without dims, such as ``A_population``.
    ax : Axes, optional

    Returns
    -------
    Axes
        One step line a chain; chains that explore the same distribution stay near the dashed line.

    Raises
    ------
    NotFoundError
        The posterior has no such quantity.
    RequestError
        The quantity has dims besides chain and draw.

    Notes
    -----
    Rank plots of Vehtari et al. (2021), as in `plot_convergence`.
    """
    ax = new_axes(ax, (6.4, 2.8))
    draws = _scalar(fit.posterior, variable)
    ranks = rankdata(draws.to_numpy()).reshape(draws.shape)
    edges = np.linspace(0, draws.size, RANK_BINS + 1)
    styles = ("-", "--", "-.", ":")
    colours = palette(ax)
    for i, chain in enumerate(draws["chain"].to_numpy()):
        counts, _ = np.histogram(ranks[i], edges)
        style: dict[str, Any] = {"color": colours.series[i % len(colours.series)], "linestyle": styles[i % 4]}
        ax.stairs(counts, edges, label=f"chain {chain}", linewidth=1.3, **style)
    ax.axhline(draws.sizes["draw"] / RANK_BINS, color=colours.muted, linewidth=0.9, linestyle="--")
    ax.set_ylim(bottom=0)
    ax.set_xlim(0, draws.size)
    ax.set_xlabel(f"rank of {variable} among the draws of all chains")
    ax.set_ylabel("draws")
    handles, _ = ax.get_legend_handles_labels()
    legend_above(ax, handles, columns=(2, 4), title=study_title(fit))
    stamp(ax, fit)
    return ax


def plot_prior_posterior(
    fit: Fit, *, variable: str, label: str | None = None, ax: Axes | None = None
) -> Axes:
    """Plot the density of a quantity before and after the data.

    Parameters
    ----------
    fit : Fit
    variable : str
        A quantity without dims, such as ``A_population``.
    label : str, optional
        What the axis says; `variable` by default.
    ax : Axes, optional

    Returns
    -------
    Axes
        Two histograms of equal area: the posterior filled, the prior an outline. Where they agree, the data
        say little about the quantity.

    Raises
    ------
    NotFoundError
        The posterior has no such quantity.
    RequestError
        The quantity has dims besides chain and draw.
    """
    ax = new_axes(ax, (3.6, 2.6))
    posterior = _scalar(fit.posterior, variable).to_numpy().ravel()
    prior = _scalar(fit.group("prior"), variable).to_numpy().ravel()
    tails = [(1 - SHOWN) / 2, (1 + SHOWN) / 2]
    low = min(np.quantile(posterior, 0), np.quantile(prior, tails[0]))
    high = max(np.quantile(posterior, 1), np.quantile(prior, tails[1]))
    colours = palette(ax)
    # A posterior much narrower than the prior needs finer bins than the prior's 1000 draws can fill.
    width = max(np.subtract(*np.quantile(posterior, tails[::-1])) / 25, (high - low) / 400)
    fine = np.arange(low, high + width, width)
    coarse = np.linspace(low, high, 31)
    for draws, edges, colour, fill in (
        (prior, coarse, colours.muted, False),
        (posterior, fine, colours.series[0], True),
    ):
        density, _ = np.histogram(draws, edges)
        alpha = 0.55 if fill else 1.0
        ax.stairs(density / len(draws) / np.diff(edges), edges, color=colour, fill=fill, alpha=alpha)
    ax.set_xlim(low, high)
    ax.set_ylim(bottom=0)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(label or variable)
    if ax.figure.get_axes()[0] is ax:
        handles = [
            Line2D([], [], color=colours.series[0], alpha=0.55, linewidth=6, label="posterior"),
            Line2D([], [], color=colours.muted, label="prior"),
        ]
        legend_above(ax, handles, columns=(2, 2), title=study_title(fit))
    stamp(ax, fit)
    return ax


def _scalar(draws: xr.Dataset, variable: str) -> xr.DataArray:
    if variable not in draws:
        raise unknown_name("quantity", variable, map(str, draws))
    values = draws[variable]
    own = [str(dim) for dim in values.dims if dim not in ("chain", "draw")]
    if own:
        raise RequestError(f"'{variable}' has dims {', '.join(own)}; this plot shows one number")
    return values.transpose("chain", "draw")
