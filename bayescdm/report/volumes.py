"""The ranking at every data volume, for a slider."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayescdm.columns import ranking_columns
from bayescdm.compare.tables import interval
from bayescdm.intervals import interval_columns
from bayescdm.predict import LawDraws, predict_draws
from bayescdm.predict.question import volumes_beyond_recipe
from bayescdm.report.parts import Slider, Step, Strip
from bayescdm.report.question import named_recipe
from bayescdm.tables import Column, table
from bayescdm.wording import first_of, short_by_name, short_count, short_names

if TYPE_CHECKING:
    from bayescdm.fit import Fit
    from bayescdm.report.answers import Answer

__all__ = ["moves_in_words", "ranking_by_volume", "volume_slider"]

#: Volumes besides the asked one.
POINTS = 12
#: Backbones that the slider shows at each volume; P(best) is among all candidates.
SHOWN = 12


def ranking_by_volume(fit: Fit, answer: Answer) -> pd.DataFrame:
    """Rank the candidates of an answer at volumes over the observed range, the asked one among them.

    Parameters
    ----------
    fit : Fit
    answer : Answer

    Returns
    -------
    DataFrame, one row a volume and backbone, the first dozen of each volume
        ``volume``, ``place`` (1 is best), ``backbone``, ``mean`` and its interval, ``p_best`` among all
        candidates, ``extrapolation``. At the asked volume they are the answer's own numbers.
    """
    question = answer.question
    draws = _draws_of(answer)
    parts = []
    for volume in _volumes(fit, question.volume):
        if volume == question.volume:
            ranked = answer.ranking
        else:
            array = predict_draws(
                fit,
                question.candidates,
                volumes=volume,
                recipe=question.recipe,
                kind=question.kind,
                seed=question.seed,
                draws=draws,
            ).isel(volume=0)
            values = array.to_numpy()
            best = np.bincount(values.argmax(1), minlength=values.shape[1]) / len(values)
            ranked = pd.DataFrame(
                {
                    "backbone": array["backbone"].to_numpy(),
                    "mean": values.mean(0),
                    **interval(values, question.kind, question.prob),
                    "p_best": best,
                    "extrapolation": array["extrapolation"].to_numpy(),
                }
            ).sort_values("mean", ascending=False, kind="stable", ignore_index=True)
        columns = [
            "backbone",
            "mean",
            *interval_columns(question.kind, question.prob),
            "p_best",
            "extrapolation",
        ]
        first = ranked.head(SHOWN)[columns]
        first.insert(0, "place", range(1, len(first) + 1))
        first.insert(0, "volume", volume)
        parts.append(first)
    by_volume = pd.concat(parts, ignore_index=True)
    by_volume.attrs = {**fit.facts(), "kind": question.kind, "prob": question.prob}
    return by_volume


def _draws_of(answer: Answer) -> int:
    return int(answer.ranking.attrs["draws"])


def _volumes(fit: Fit, asked: float) -> list[float]:
    """Observed volumes from the smallest to the largest, in equal steps of their logarithm, and the asked."""
    low, high = LawDraws.of(fit, 1).volumes
    if not np.isfinite(low):
        low, high = asked / 10, asked * 10
    grid = [float(f"{volume:.3g}") for volume in np.geomspace(min(low, asked), max(high, asked), POINTS)]
    return sorted({*(volume for volume in grid if abs(np.log(volume / asked)) > 0.05), asked})


def volume_slider(fit: Fit, answer: Answer, *, mark: str = "") -> Slider:
    """Build the part of the page that moves the ranking with the volume.

    Parameters
    ----------
    fit : Fit
    answer : Answer
    mark : str
        What is said of the answer's own volume; by default whether it was asked for or chosen.

    Returns
    -------
    Slider
    """
    question = answer.question
    mark = mark or ("as asked" if question.volume_asked else "as chosen")
    by_volume = ranking_by_volume(fit, answer)
    shown = [c for c in ranking_columns(question.kind, question.prob) if c.title in KEPT or _is_interval(c)]
    lower, upper = interval_columns(question.kind, question.prob)
    span = float(by_volume[lower].min()), float(by_volume[upper].max())
    unit = fit.study.volume_unit
    beyond = _beyond(fit, question.recipe, by_volume)
    steps: list[Step] = []
    start = 0
    for volume, rows in by_volume.groupby("volume", sort=True):
        label = f"{short_count(float(volume))} {unit}"
        if volume == question.volume:
            start, label = len(steps), f"{label}, {mark}"
        if beyond[float(volume)]:
            label = f"{label}; {beyond[float(volume)]}"
        rows = rows.assign(backbone=short_names(rows["backbone"]))
        strips = [Strip.of(*ends, span=span) for ends in rows[[lower, "mean", upper]].to_numpy()]
        shown_of = first_of(len(rows), len(answer.ranking), "candidate")
        caption = f"{shown_of[0].upper()}{shown_of[1:]} at {label}"
        laid_out = table(f"volumes-{len(steps)}", caption, rows, shown, converged=answer.converged)
        steps.append(Step(label, laid_out, strips))
    first = by_volume[by_volume["place"] == 1].reset_index(drop=True)
    columns = [Column("volume", "volume", "count"), Column("first choice", "backbone"), *shown[1:]]
    caption = f"How the ranking moves with the data volume under {named_recipe(question.recipe)}"
    summary = table("volumes-summary", caption, first, columns, converged=answer.converged)
    return Slider("volumes", caption, "data volume", steps, start, by_volume, summary, answer.converged)


#: Columns of a ranking that the slider shows, besides the interval of the accuracy.
KEPT = ("backbone", "accuracy, %", "P(best)")


def _is_interval(column: Column) -> bool:
    return isinstance(column.source, tuple) and column.form == "percent"


def moves_in_words(fit: Fit, recipe: str, candidates: Iterable[str], by_volume: pd.DataFrame) -> str:
    """Say whether another candidate is first at other volumes.

    Parameters
    ----------
    fit : Fit
    recipe : str
    candidates : iterable of str
    by_volume : DataFrame
        From `ranking_by_volume`.

    Returns
    -------
    str
    """
    first = by_volume[by_volume["place"] == 1]
    unit = fit.study.volume_unit
    low, high = (short_count(float(first["volume"].iloc[i])) for i in (0, -1))
    names = short_by_name(candidates)
    changes: Any = first[first["backbone"] != first["backbone"].shift()]
    unseen = [volume for volume, words in _beyond(fit, recipe, first).items() if words]
    where = (
        f" At {len(unseen)} of these {len(first)} volumes the recipe has no run ({_ranges(unseen, first)})."
        if unseen
        else ""
    )
    if len(changes) == 1:
        return (
            f"From {low} to {high} {unit}, {names[first['backbone'].iloc[0]]} keeps the highest expected "
            f"accuracy.{where}"
        )
    told = "; ".join(
        f"from {short_count(float(row.volume))} on {names[row.backbone]} (P(best) {row.p_best:.2f})"
        for row in changes.itertuples()
    )
    return f"Between {low} and {high} {unit} the highest expected accuracy changes hands: {told}.{where}"


def _beyond(fit: Fit, recipe: str, by_volume: pd.DataFrame) -> dict[float, str]:
    """How each volume lies beyond the runs of the recipe; empty where it does not."""
    volumes = by_volume["volume"].unique()
    return dict(zip(map(float, volumes), volumes_beyond_recipe(LawDraws.of(fit, 1), recipe, volumes)))


def _ranges(some: list[float], first: pd.DataFrame) -> str:
    """Name neighbouring volumes by their ends."""
    told = set(some)
    runs: list[list[float]] = []
    for volume in map(float, first["volume"]):
        if volume not in told:
            runs.append([])
        elif runs and runs[-1]:
            runs[-1].append(volume)
        else:
            runs.append([volume])
    ends = [(short_count(run[0]), short_count(run[-1])) for run in runs if run]
    return " and ".join(low if low == high else f"{low} to {high}" for low, high in ends)
