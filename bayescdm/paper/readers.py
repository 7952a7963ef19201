"""The table of published figures as readers see it."""

from __future__ import annotations

import pandas as pd

from bayescdm.paper.figures import figure_interval
from bayescdm.tables import Column, written
from bayescdm.wording import counted, short_count

__all__ = ["figure_columns", "readable_figures"]

#: Unit in the frame → unit for readers, and the factor that leads to it.
READERS = {
    "fraction": ("%", 100.0),
    "accuracy per ln D": ("points per ln D", 100.0),
    "accuracy per score and ln D": ("points per score and ln D", 100.0),
    "yes = 1": ("1 = yes", 1.0),
    "share of runs": ("% of runs", 100.0),
}


def figure_columns(prob: float) -> list[Column]:
    """Columns of `readable_figures`.

    Parameters
    ----------
    prob : float
        As the table was made with.

    Returns
    -------
    list of Column
    """
    return [
        Column("analysis", "analysis"),
        Column("figure", "figure"),
        Column("unit", "unit"),
        Column("published", "published"),
        Column("ours", "ours"),
        Column(f"{100 * prob:g} % interval", "ends"),
        Column("of", "interval"),
        Column("truth", "true"),
        Column("rests on", "rests_on"),
        Column("none, because", "none"),
    ]


def readable_figures(table: pd.DataFrame) -> pd.DataFrame:
    """Lay published figures and ours out for readers: their units, and one line for what cannot be had.

    Parameters
    ----------
    table : DataFrame
        From `published_against_ours`.

    Returns
    -------
    DataFrame, one row a figure, one for all figures of an analysis that are missing for one reason
        Columns of `figure_columns`, all text.
    """
    lower, upper = figure_interval(table.attrs["prob"])
    rows = []
    for (analysis, why), own in table.groupby(["analysis", "cannot"], sort=False):
        if why and len(own) > 1:
            many = counted(int(own["published"].notna().sum()), "published figure")
            rows.append({"analysis": analysis, "figure": many, "none": why})
            continue
        for row in own.to_dict("records"):
            unit, factor = READERS.get(row["unit"], (row["unit"], 1.0))
            low, high = factor * row[lower], factor * row[upper]
            rows.append(
                {
                    "analysis": analysis,
                    "figure": f"{row['quantity'].replace('_', ' ')}: {row['subject']}".strip(": "),
                    "unit": unit,
                    "published": _figure(factor * row["published"], unit),
                    "ours": _figure(factor * row["ours"], unit),
                    "ends": "" if pd.isna(low) else f"{_figure(low, unit)} to {_figure(high, unit)}",
                    "interval": row["interval"],
                    "true": _figure(factor * row["true"], unit),
                    "rests_on": row["rests_on"],
                    "none": f"truth: {row['no_truth']}" if row["no_truth"] else why,
                }
            )
    columns = [str(column.source) for column in figure_columns(table.attrs["prob"])]
    readable = pd.DataFrame(rows, columns=columns).fillna("")
    readable.attrs = dict(table.attrs)
    return readable


def _figure(value: float, unit: str) -> str:
    """A figure, empty where there is none."""
    if pd.isna(value):
        return ""
    if unit == "probability":
        return written(value, "probability")
    if unit == "volume":
        return short_count(value)
    if abs(value) >= 1000:
        return written(value, "count")
    if unit in ("count", "samples", "1 = yes"):
        return written(value, "integer")
    return written(value, "number") if abs(value) > 1e-9 else "0"
