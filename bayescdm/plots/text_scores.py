"""What each text score of a family adds to its capability."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from bayescdm.compare.contributions import FAMILY_MEAN, text_contributions
from bayescdm.errors import unknown_name
from bayescdm.fit import Fit
from bayescdm.intervals import interval_columns
from bayescdm.plots.layout import ROW, label_rows, legend_above, new_axes, right_column
from bayescdm.plots.style import palette, stamp, study_title
from bayescdm.tables import written
from bayescdm.wording import interval_label

__all__ = ["plot_text_scores"]


def plot_text_scores(
    fit: Fit,
    *,
    family: str,
    backbone: str = FAMILY_MEAN,
    prob: float = 0.9,
    seed: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """Plot what each text score adds to capability: λ × (score − population mean), with its interval.

    Parameters
    ----------
    fit : Fit
    family : str
        A family of the study with text scores.
    backbone : str
        One of its backbones; their mean by default.
    prob : float
        Probability of the intervals.
    seed : int
    ax : Axes, optional

    Returns
    -------
    Axes
        Largest addition on top; what was not measured stands last.

    Raises
    ------
    NotFoundError, RequestError
        As for `bayescdm.compare.text_contributions`; the backbone is none of the family's.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.plot_text_scores(fit, family="Phi")  # doctest: +SKIP
    """
    added = text_contributions(fit, family, prob=prob, seed=seed)
    rows = added[added["backbone"] == backbone]
    if rows.empty:
        raise unknown_name(f"backbone of {family}", backbone, added["backbone"].unique())
    rows = rows.sort_values("mean", ascending=False, kind="stable", na_position="last")
    ax = new_axes(ax, (6.8, ROW * len(rows) + 1.25))
    colours = palette(ax)
    lower, upper = interval_columns("posterior", prob)
    for y, row in enumerate(rows.to_dict("records")):
        colour = colours.series[0] if row["mean"] >= 0 else colours.series[1]
        ax.barh(y, row["mean"], height=0.5, color=colour, alpha=0.34, linewidth=0)
        ax.plot([row[lower], row[upper]], [y, y], linewidth=1.6, color=colour)
        ax.plot(row["mean"], y, "o", markersize=4, color=colour)
    label_rows(ax, list(rows["benchmark"]))
    cells = [written(score, "percent") for score in rows["score"]]
    right_column(ax, "score, %", cells)
    ax.axvline(0, color=colours.muted, linewidth=0.9, linestyle="--", zorder=0.5)
    whose = f"{family}, {backbone}" if backbone == FAMILY_MEAN else backbone
    ax.set_xlabel(f"λ × (score − mean of all), units of S\n{whose}")
    text = f"mean and {interval_label('posterior', prob)}"
    handle = Line2D([], [], color=colours.series[0], marker="o", label=text)
    legend_above(ax, [handle], columns=(1, 1), title=study_title(fit))
    stamp(ax, fit)
    return ax
