"""Columns of a runs file: its layout, its data volumes and where its scores stand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bayescdm.reading.columns import (
    drop_columns_of_words,
    drop_other_columns,
    is_average,
    name_columns,
    require_columns,
)
from bayescdm.reading.settings import Settings
from bayescdm.reading.sheets import Sheet

__all__ = ["LABELS", "RunColumns", "find_columns"]

VOLUMES = ("samples", "tokens", "volume")
LABELS = ("recipe", "vision_encoder", "vlm", "backbone")
SCORES = ("benchmark", "score", "accuracy", "standard_error")
KNOWN = (*LABELS, *VOLUMES, *SCORES, "source")


@dataclass(frozen=True)
class RunColumns:
    """What the columns of a runs file are.

    Parameters
    ----------
    layout : {"long", "wide", "accuracy"}
        One row a score; one row a run and one column a benchmark; one accuracy a run.
    scores : list of str
        Columns of scores.
    recipe : list of str
        Columns that together name a recipe.
    volume : str
        Column of data volumes.
    averages : dict of int to str
        Average over benchmarks that the file prints, by row.
    """

    layout: Literal["long", "wide", "accuracy"]
    scores: list[str]
    recipe: list[str]
    volume: str
    averages: dict[int, str]


def find_columns(sheet: Sheet, settings: Settings) -> RunColumns | None:
    """Find out which column is which; leave out those that are none of ours, with notes.

    Parameters
    ----------
    sheet : Sheet
    settings : Settings

    Returns
    -------
    RunColumns or None
        None when columns are missing or contradict ``study.toml``.
    """
    known = (*KNOWN, *settings.recipe_columns)
    name_columns(sheet, (*known, "encoder"), settings)
    if "encoder" in sheet.table and "vision_encoder" not in sheet.table:
        sheet.rename_column("column-matched", "encoder", "vision_encoder", "the same thing")
    if "benchmark" in sheet.table and "score" not in sheet.table and "accuracy" in sheet.table:
        sheet.rename_column("column-matched", "accuracy", "score", "the score of each benchmark")
    layout = _layout(sheet)
    required = ["backbone", "|".join(VOLUMES)]
    required += ["benchmark", "score"] if layout == "long" else []
    if settings.recipe_columns:
        required += settings.recipe_columns
    elif settings.recipe is None:
        required.insert(0, "recipe")
    optional = [
        name for name in ("vision_encoder", "vlm", "standard_error", "source") if name not in required
    ]
    if not require_columns(sheet, required, optional):
        return None
    if settings.recipe is not None and "recipe" not in sheet.table:
        sheet.table.insert(0, "recipe", settings.recipe)
    volume = _volume_column(sheet, settings)
    averages = _averages(sheet, layout)
    scores = _score_columns(sheet, layout, known)
    if volume is None or not scores:
        return None
    recipe = list(settings.recipe_columns) or [c for c in ("recipe", "vision_encoder") if c in sheet.table]
    return RunColumns(layout, scores, recipe, volume, averages)


def _layout(sheet: Sheet) -> Literal["long", "wide", "accuracy"]:
    """How the scores are laid out."""
    if "benchmark" in sheet.table or "score" in sheet.table:
        return "long"
    return "accuracy" if "accuracy" in sheet.table else "wide"


def _volume_column(sheet: Sheet, settings: Settings) -> str | None:
    """The column of data volumes; None when it contradicts study.toml or cannot be chosen."""
    found = [name for name in VOLUMES if name in sheet.table]
    unit = settings.volume_unit
    if len(found) > 1 and unit not in found:
        names = " and ".join(f"'{name}'" for name in found)
        what = f'there are columns {names}: choose in study.toml, [units] volume = "{found[0]}"'
        sheet.findings.refuse(sheet.place(sheet.header_row), what)
        return None
    chosen = unit if unit in found else found[0]
    for name in found:
        if name != chosen:
            sheet.drop_column(
                "column-ignored", name, f"volumes are taken from '{chosen}', as study.toml says"
            )
    if unit and chosen != "volume" and chosen not in unit:
        what = f"holds {chosen}, but study.toml gives the unit of volume as '{unit}': correct one of them"
        sheet.findings.refuse(sheet.place(sheet.header_row, chosen), what)
        return None
    if unit is None and chosen == "volume":
        message = 'what the volumes count is not stated (study.toml: [units] volume = "samples")'
        sheet.findings.note("volume-unit-unstated", sheet.place(0, chosen), message, "warning")
    return chosen


def _averages(sheet: Sheet, layout: str) -> dict[int, str]:
    """Averages over benchmarks that the file prints, by row: they check scores, and are no scores."""
    if layout == "long":
        benchmarks = dict(sheet.cells("benchmark"))
        return {row: text for row, text in sheet.cells("score") if is_average(benchmarks.get(row) or "")}
    titles = [title for title in sheet.table.columns if is_average(title)] if layout == "wide" else []
    return dict(sheet.cells(titles[0])) if titles else {}


def _score_columns(sheet: Sheet, layout: str, known: tuple[str, ...]) -> list[str]:
    """Titles of the columns that hold scores; everything else that is not ours is left out with a note."""
    drop_other_columns(sheet, known)
    if layout != "wide":
        for title in [title for title in sheet.table.columns if title not in known]:
            sheet.drop_column(
                "column-ignored", title, "no column of a runs file: left out", severity="warning"
            )
        return ["score" if layout == "long" else "accuracy"]
    drop_columns_of_words(sheet, known)
    titles = [title for title in sheet.table.columns if title not in known]
    if "standard_error" in sheet.table and len(titles) > 1:
        what = "which of the scores of a row it belongs to is not said: left out"
        sheet.drop_column("column-ignored", "standard_error", what, severity="warning")
    if not titles:
        what = "there are no scores: give columns benchmark and score, one column a benchmark, or accuracy"
        sheet.findings.refuse(sheet.place(sheet.header_row), what)
    return titles
