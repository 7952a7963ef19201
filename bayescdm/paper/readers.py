"""Published figures and optimal batch sizes as readers see them."""

from __future__ import annotations

import pandas as pd

from bayescdm.intervals import PredictionKind, interval_columns
from bayescdm.paper.batch import BatchFit
from bayescdm.paper.figures import figure_interval
from bayescdm.tables import Column, written
from bayescdm.wording import counted, interval_label, probability, short_count

__all__ = [
    "PREDICTOR_COLUMNS",
    "batch_columns",
    "figure_columns",
    "readable_batches",
    "readable_figures",
    "slope_in_words",
]

#: Columns of `compare_batch_predictors`.
PREDICTOR_COLUMNS = (
    Column("predictor", "predictor"),
    Column("backbones", "backbones", "integer"),
    Column("optima", "points", "integer"),
    Column("error, log2", "mae_log2", "number"),
    Column("elpd", "elpd", "number"),
    Column("difference", "elpd_difference", "number"),
    Column("in 90 %, %", "covered_run_90", "percent"),
    Column("P(larger is larger)", "p_larger_is_larger", "probability"),
)

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


def batch_columns(kind: PredictionKind, prob: float) -> list[Column]:
    """Columns of `BatchFit.predict`.

    Parameters
    ----------
    kind, prob
        As the table was made with.

    Returns
    -------
    list of Column
    """
    return [
        Column("backbone", "backbone"),
        Column("volume", "volume", "count"),
        Column("optimal batch, samples", "batch_size", "integer"),
        Column(interval_label(kind, prob), interval_columns(kind, prob, of="batch_size"), "integer"),
        Column("tuned", "tuned_in_words"),
        Column("extrapolation", "extrapolation"),
    ]


def readable_batches(table: pd.DataFrame) -> pd.DataFrame:
    """Lay predicted batch sizes out for readers: what was tuned in words.

    Parameters
    ----------
    table : DataFrame
        From `BatchFit.predict`.

    Returns
    -------
    DataFrame, one row a backbone and volume
        Columns of `batch_columns`.
    """
    return table.assign(tuned_in_words=table["tuned"].map({1: "yes", 0: "no"}))


def slope_in_words(batch: BatchFit, prob: float) -> str:
    """Say how the optimal batch moves with its predictor, and on what that rests.

    Parameters
    ----------
    batch : BatchFit
    prob : float
        Probability of the interval.

    Returns
    -------
    str
    """
    slope = batch.summary(prob=prob).set_index("quantity").loc["beta"]
    lower, upper = interval_columns("posterior", prob)
    factor, unit = (
        (0.01, "point of the composite") if batch.predictor == "composite" else (1.0, "unit of ln N")
    )
    mean, low, high = (factor * slope[name] for name in ("mean", lower, upper))
    simulated = " (simulated)" if batch.simulated else ""
    return (
        f"log2 of the optimal batch moves by {mean:+.2f} a {unit}, {100 * prob:g} % interval {low:+.2f} to "
        f"{high:+.2f}; P(larger with it) = {probability(slope['p_positive'])}. It rests on "
        f"{len(batch.points)} optima inside the tested sizes, of "
        f"{counted(batch.points['backbone'].nunique(), 'backbone')}{simulated}."
    )


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
