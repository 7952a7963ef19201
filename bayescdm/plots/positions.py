"""Families against the population, with what their own runs say without pooling."""

from __future__ import annotations

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from bayescdm.compare.positions import compare_positions
from bayescdm.errors import RequestError
from bayescdm.fit import Fit
from bayescdm.intervals import interval_columns
from bayescdm.plots.layout import ROW, label_rows, legend_above, new_axes, right_column
from bayescdm.plots.style import palette, stamp, study_title
from bayescdm.predict import LawDraws
from bayescdm.wording import interval_label

__all__ = ["plot_positions"]

TITLES = {
    "A": "transfer rate A",
    "B0": "base absorption B0, per unit of ln D",
    "Bm": "absorption decay Bm, per unit of ln D",
    "mean_B": "mean absorption rate B, per unit of ln D",
}


def plot_positions(
    fit: Fit,
    *,
    family: str | None = None,
    quantity: str = "A",
    volume: float | None = None,
    prob: float = 0.9,
    seed: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Plot one rate of every family with runs against the population, pooled and from its own runs alone.

    Parameters
    ----------
    fit : Fit
    family : str, optional
        Drawn in the second colour; added if it has no runs.
    quantity : {"A", "B0", "Bm", "mean_B"}
    volume, prob, seed
        As for `bayescdm.compare.compare_positions`.
    ax : Axes, optional

    Returns
    -------
    Axes
        Largest mean on top. A diamond with a whisker of one standard error is the estimate without pooling,
        where the runs give one; the dashed line is the population's median rate.

    Raises
    ------
    NotFoundError, RequestError
        As for `bayescdm.compare.compare_positions`; a quantity that is none of the four.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.plot_positions(fit, family="Qwen2").get_xlabel()  # doctest: +SKIP
    'transfer rate A'
    """
    if quantity not in TITLES:
        raise RequestError(f"quantity '{quantity}' is none of {', '.join(TITLES)}")
    families = list(LawDraws.of(fit, 1).families)
    if family is not None and family not in families:
        families.append(family)
    table = compare_positions(fit, families, volume=volume, prob=prob, seed=seed)
    table = table[table["quantity"] == quantity].sort_values("mean", ascending=False, kind="stable")
    ax = new_axes(ax, (6.8, ROW * len(table) + 1.3))
    colours = palette(ax)
    lower, upper = interval_columns("posterior", prob)
    for y, row in enumerate(table.to_dict("records")):
        colour = colours.series[1] if row["family"] == family else colours.series[0]
        ax.plot([row[lower], row[upper]], [y, y], linewidth=1.6, color=colour)
        face = colours.paper if row["mode"] == "new family" else colour
        ax.plot(row["mean"], y, "o", markersize=5, color=colour, markerfacecolor=face)
        if not row["why_none"]:
            ax.errorbar(
                row["separate"], y + 0.25, xerr=row["separate_sd"], fmt="D", markersize=3.5, linewidth=0.9,
                color=colours.muted, markerfacecolor=colours.paper, zorder=3,
            )  # fmt: skip
    # For B the population depends on each family's capabilities; the mean of these is drawn.
    ax.axvline(table["population"].mean(), color=colours.muted, linewidth=0.9, linestyle="--", zorder=0.5)
    label_rows(ax, list(table["family"]))
    right_column(ax, "runs", [str(n) for n in table["runs"]])
    ax.set_xlabel(TITLES[quantity])
    blue, grey = colours.series[0], colours.muted
    handles: list[Artist] = [
        Line2D([], [], color=blue, marker="o", label=f"mean and {interval_label('posterior', prob)}"),
        Line2D([], [], color=grey, marker="D", markersize=4, markerfacecolor=colours.paper,
               label="own runs alone ± standard error"),
        Line2D([], [], color=grey, linestyle="--", linewidth=0.9, label="population"),
    ]  # fmt: skip
    if family is not None:
        handles.append(Patch(color=colours.series[1], label=family))
    legend_above(ax, handles, columns=(1, 2), title=study_title(fit))
    stamp(ax, fit)
    return ax
