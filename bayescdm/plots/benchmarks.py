"""What each text benchmark says about vision."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bayescdm.compare import transfer_coefficients
from bayescdm.fit import Fit
from bayescdm.intervals import interval_columns
from bayescdm.plots.layout import ROW, label_rows, legend_above, new_axes, right_column
from bayescdm.plots.style import palette, stamp, study_title
from bayescdm.wording import interval_label, probability

__all__ = ["plot_transfer_coefficients"]


def plot_transfer_coefficients(fit: Fit, *, prob: float = 0.9, ax: Axes | None = None) -> Axes:
    """Plot the transfer coefficient λ of every text benchmark, with the probability that it is a tax.

    Parameters
    ----------
    fit : Fit
    prob : float
        Probability of the intervals.
    ax : Axes, optional

    Returns
    -------
    Axes
        Largest λ on top. Left of zero a higher text score goes with a lower accuracy: a transfer tax.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.plot_transfer_coefficients(fit).get_xlabel()  # doctest: +SKIP
    'transfer coefficient λ'
    """
    table = transfer_coefficients(fit, prob=prob)
    ax = new_axes(ax, (6.8, ROW * len(table) + 1.25))
    colours = palette(ax)
    lower, upper = interval_columns("posterior", prob)
    for y, row in enumerate(table.to_dict("records")):
        ax.plot([row[lower], row[upper]], [y, y], linewidth=1.6, color=colours.series[0])
        ax.plot(row["mean"], y, "o", markersize=5, color=colours.series[0])
    label_rows(ax, list(table["benchmark"]))
    right_column(ax, "P(tax)", [probability(p) for p in table["p_tax"]])
    ax.axvline(0, color=colours.muted, linewidth=0.9, linestyle="--", zorder=0.5)
    ax.set_xlabel("transfer coefficient λ")
    label = f"mean and {interval_label('posterior', prob)}"
    handle = Line2D([], [], color=colours.series[0], marker="o", label=label)
    legend_above(ax, [handle], columns=(1, 1), title=study_title(fit))
    stamp(ax, fit)
    return ax
