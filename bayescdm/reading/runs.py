"""``runs``: scores of vision-language runs, with what was trained on what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from bayescdm.reading.averages import drop_computed_averages
from bayescdm.reading.cells import (
    UNMEASURED,
    CellError,
    is_missing,
    is_placeholder,
    read_count,
    read_score,
)
from bayescdm.reading.columns import is_average
from bayescdm.reading.counts import dots_of
from bayescdm.reading.duplicates import merge_duplicates
from bayescdm.reading.findings import shown
from bayescdm.reading.labels import Labels, spelled_differently
from bayescdm.reading.run_columns import LABELS, RunColumns, find_columns
from bayescdm.reading.scores import find_decimal_mark, flag_suspects, read_scores, to_fractions
from bayescdm.reading.settings import Settings
from bayescdm.reading.sheets import Sheet
from bayescdm.reading.text_scores import clean_labels, refuse_incomplete, refuse_two_spellings
from bayescdm.wording import counted

__all__ = ["RunTable", "run_table"]

#: What is the same in all scores of a run.
RUN_KEY = ["recipe", "encoder", "vlm", "backbone", "volume"]
#: A volume this many times below or above the median of the study is suspicious.
_SUSPICIOUS_RATIO = 1000
#: Runs are trained with more samples than this.
_LEAST_CREDIBLE = 10_000


@dataclass(frozen=True)
class RunTable:
    """Scores of runs as fractions, one row a score, and how the file was understood."""

    scores: pd.DataFrame
    unit: str
    volume_unit: str
    columns: RunColumns


def run_table(sheet: Sheet, settings: Settings, backbones: Iterable[str] | None) -> RunTable | None:
    """Read a sheet of runs.

    Parameters
    ----------
    sheet : Sheet
        Takes problems, notes and repairs.
    settings : Settings
    backbones : iterable of str, optional
        Names that the text scores know; not checked when None.

    Returns
    -------
    RunTable or None
        None when the columns are not those of such a table.
    """
    columns = find_columns(sheet, settings)
    if columns is None:
        return None
    long = columns.layout == "long"
    labels = [*LABELS, *columns.recipe, *(["benchmark"] if long else [])]
    clean_labels(sheet, tuple(dict.fromkeys(labels)))
    refuse_incomplete(sheet, [columns.recipe[0], "backbone", *(["benchmark"] if long else [])])
    _complete_encoders(sheet)
    if backbones is not None:
        _match_backbones(sheet, Labels(backbones))
    for column in columns.recipe:
        refuse_two_spellings(sheet, column, f"{column.replace('_', ' ')}s")
    find_decimal_mark(sheet, [*columns.scores, columns.volume])
    if columns.layout == "wide":
        columns = replace(columns, scores=drop_computed_averages(sheet, columns.scores))
    _refuse_swapped(sheet, columns)
    runs = _runs(sheet, columns, _volumes(sheet, columns.volume, settings))
    if long:
        _leave_out_averages(sheet)
        _match_benchmarks(sheet)
    scores, unit = _scores(sheet, columns, runs, settings)
    flag_suspects(sheet, scores, _implied(scores, runs, columns.averages))
    scores = merge_duplicates(sheet, scores)
    return RunTable(_labelled(scores), unit, settings.volume_unit or columns.volume, columns)


def _complete_encoders(sheet: Sheet) -> None:
    """Refuse rows without an encoder when other rows of their recipe name one."""
    if "vision_encoder" not in sheet.table:
        return
    encoders = dict(sheet.cells("vision_encoder"))
    named = {sheet.table.at[row, "recipe"] for row, text in encoders.items() if not is_missing(text)}
    for row, text in encoders.items():
        if is_missing(text):
            if sheet.table.at[row, "recipe"] in named:
                sheet.refuse(
                    row, "vision_encoder", "is empty, but other rows of its recipe name one: fill it in"
                )
            elif text:
                sheet.rewrite(row, "vision_encoder", "", "marked as missing")


def _match_backbones(sheet: Sheet, known: Labels) -> None:
    """Match backbones to the names in the text scores when exactly one of them can be meant."""
    cells = dict(sheet.cells("backbone"))
    matches = {label: known.match(label) for label in dict.fromkeys(cells.values())}
    if matches and not any(meant for meant, _ in matches.values()):
        listed = ", ".join(f"'{label}'" for label in list(matches)[:3])
        what = f"names no backbone of the text scores (here {listed}; {known.nearest(next(iter(matches)))})"
        sheet.findings.refuse(sheet.place(0, "backbone"), f"{what}: use the same names in both files")
        return
    for row, label in cells.items():
        meant, how = matches[label]
        if len(meant) == 1 and how:
            sheet.repair("name-matched", row, "backbone", meant[0], how)
        elif not meant:
            what = f"is not among the text scores ({known.nearest(label)}): add its row there, or correct it"
            sheet.refuse(row, "backbone", what)
        elif len(meant) > 1:
            listed = " or ".join(f"'{name}'" for name in meant[:4])
            sheet.refuse(row, "backbone", f"may be {listed}: write the full name")


def _match_benchmarks(sheet: Sheet) -> None:
    """Give benchmarks that differ in case or hyphens only the spelling that is most frequent."""
    cells = dict(sheet.cells("benchmark"))
    usual = spelled_differently(cells.values())
    for row, label in cells.items():
        if label in usual:
            sheet.repair(
                "name-matched", row, "benchmark", usual[label], "same but for case, spaces or hyphens"
            )


def _refuse_swapped(sheet: Sheet, columns: RunColumns) -> None:
    """Refuse a file whose volumes look like scores and whose scores look like volumes; swap nothing."""
    for title in columns.scores:
        scores = dict(sheet.cells(title))
        volumes = {row: text for row, text in sheet.cells(columns.volume) if row in scores}
        figures = {row: (_figure(volumes[row]), _figure(scores[row])) for row in volumes}
        if figures and all(volume <= 100 and score > 100 for volume, score in figures.values()):
            row = next(iter(figures))
            seen = f"in all {len(figures)} rows (here {columns.volume} is '{volumes[row]}')"
            what = f"and column '{columns.volume}' look swapped {seen}: exchange their titles in the header"
            sheet.findings.refuse(sheet.place(row, title), what, scores[row])
            sheet.table[title] = None
            sheet.table[columns.volume] = None


def _figure(text: str) -> float:
    """The figure in a cell, NaN when there is none: good enough to compare sizes."""
    try:
        return float(read_count(text).value)
    except CellError:
        return float("nan")


def _volumes(sheet: Sheet, column: str, settings: Settings) -> dict[int, float]:
    """Data volumes by row, as absolute counts; NaN where unknown."""
    whole = column != "volume" and settings.volume_scale == 1
    dots = dots_of(sheet, column) if settings.volume_scale == 1 else "decimal"
    if whole and dots == "unclear":
        _refuse_millions(sheet, column)
    volumes = {}
    for row, text in list(sheet.cells(column)):
        if is_missing(text) or is_placeholder(text):
            volumes[row] = float("nan")
            if is_placeholder(text):
                sheet.repair("placeholder-missing", row, column, "", "a placeholder, read as unknown")
            elif text:
                sheet.rewrite(row, column, "", "marked as missing")
            continue
        try:
            count = read_count(text, sheet.decimal, whole=whole, dots=dots)
        except CellError as error:
            sheet.refuse(row, column, str(error))
            continue
        value = count.value * settings.volume_scale if count.bare else count.value
        if whole and value != value.to_integral_value():
            what = f"is no whole number of {column}: "
            if value < _LEAST_CREDIBLE:
                what += f"write {text}M if millions are meant, or state the unit in study.toml: "
                what += f'[units] volume = "million {column}"'
            else:
                what += "write it without a fraction"
            sheet.refuse(row, column, what)
            continue
        volumes[row] = float(value)
        if count.why:
            written = value / settings.volume_scale
            sheet.repair("count-converted", row, column, f"{written.normalize():f}", count.why)
    _report_unknown_volumes(sheet, column, volumes)
    _flag_odd_volumes(sheet, column, volumes)
    if settings.volume_scale == 1:
        _flag_small_column(sheet, column, volumes)
    return volumes


def _refuse_millions(sheet: Sheet, column: str) -> None:
    """Refuse in one line a column of figures such as 1.2 and 1.223, of which a unit is missing."""
    figures = {}
    for row, text in sheet.cells(column):
        with suppress(CellError):
            count = read_count(text, sheet.decimal, whole=False)
            if count.bare and count.value < _LEAST_CREDIBLE:
                figures[row] = count.value
    torn = [row for row, value in figures.items() if value % 1]
    # 665.123 may be 665123; 1.223 and 1.2 are too few either way.
    clear = any(figures[row] < 10 or figures[row].as_tuple().exponent != -3 for row in torn)
    if not clear or len(figures) == 1:
        return
    first = sheet.as_written(torn[0], column)
    seen = f"{shown(first)} in row {torn[0]} is no whole number of {column}"
    if len(torn) > 1:
        seen = f"{shown(first)} in row {torn[0]} and {len(torn) - 1} more are no whole numbers of {column}"
    what = (
        f"{seen}: write {first}M if millions are meant, or state the unit in study.toml: "
        f'[units] volume = "million {column}"'
    )
    sheet.findings.refuse(sheet.place(0, column), what)
    for row in figures:
        sheet.table.at[row, column] = None


def _report_unknown_volumes(sheet: Sheet, column: str, volumes: Mapping[int, float]) -> None:
    """Say how many volumes are missing."""
    missing = sum(np.isnan(volume) for volume in volumes.values())
    if missing:
        message = f"{missing} of {counted(len(volumes), 'volume')} missing: taken as unknown"
        sheet.findings.note("volume-missing", sheet.place(0, column), message)


def _flag_odd_volumes(sheet: Sheet, column: str, volumes: Mapping[int, float]) -> None:
    """Warn of volumes so small or large beside the others that a letter such as M is missing or too much."""
    known = [volume for volume in volumes.values() if not np.isnan(volume)]
    median = float(np.median(known)) if known else 0.0
    for row, volume in volumes.items():
        how = ""
        if volume * _SUSPICIOUS_RATIO <= median:
            how = "tiny beside the median of {:g}; is a letter such as K or M missing?"
        elif volume >= median * _SUSPICIOUS_RATIO:
            how = "huge beside the median of {:g}; is a letter such as K or M too much?"
        if how:
            message = f"{volume:g} is {how.format(median)} Kept as it is, please check"
            sheet.findings.note("volume-suspect", sheet.place(row, column), message, "warning")


def _flag_small_column(sheet: Sheet, column: str, volumes: Mapping[int, float]) -> None:
    """Warn of a column of volumes that no run is trained with, unless they count thousands or millions."""
    known = [volume for volume in volumes.values() if not np.isnan(volume)]
    if known and max(known) < _LEAST_CREDIBLE:
        message = (
            f"all volumes lie below {_LEAST_CREDIBLE:,} ({min(known):g} to {max(known):g}); kept so. "
            f'If thousands or millions are meant, say so in study.toml: [units] volume = "thousand {column}"'
        )
        sheet.findings.note("volume-suspect", sheet.place(0, column), message, "warning")


def _runs(sheet: Sheet, columns: RunColumns, volumes: Mapping[int, float]) -> pd.DataFrame:
    """What each row says of its run, for the rows that name one; ``run`` numbers the runs."""
    table = sheet.table.loc[[row for row in sheet.table.index if row in volumes]]
    table = table[table[["backbone", *columns.recipe]].notna().all(axis=1)]
    empty = pd.Series("", index=table.index, dtype=object)
    runs = pd.DataFrame(
        {
            "recipe": [
                " | ".join(filter(None, cells)) for cells in table[columns.recipe].to_numpy().tolist()
            ],
            "encoder": table.get("vision_encoder", empty),
            "vlm": table.get("vlm", empty).fillna(""),
            "backbone": table["backbone"],
            "volume": pd.Series(volumes, dtype=float).reindex(table.index),
            "source": table.get("source", empty).fillna("").replace("", sheet.file),
        },
        index=table.index,
    )
    return runs.assign(run=runs.groupby(RUN_KEY, sort=False, dropna=False).ngroup())


def _leave_out_averages(sheet: Sheet) -> None:
    """Leave out rows whose benchmark is an average over benchmarks."""
    for row, benchmark in list(sheet.cells("benchmark")):
        if is_average(benchmark):
            sheet.drop_row("average-skipped", row, "an average is no benchmark: left out")


def _scores(
    sheet: Sheet, columns: RunColumns, runs: pd.DataFrame, settings: Settings
) -> tuple[pd.DataFrame, str]:
    """Scores as fractions, joined to their runs."""
    # A run without any score is refused: where there is one column of scores, its cells cannot be empty.
    alone = columns.layout != "long" and len(columns.scores) == 1
    unmeasured = "delete the row" if alone else UNMEASURED
    for title in columns.scores:
        for row, text in list(sheet.cells(title)):
            if text.casefold() == "nan":
                sheet.refuse(row, title, f"is no figure: write the score, or {unmeasured}")
    long = columns.layout == "long"
    benchmarks = dict(sheet.cells("benchmark")) if long else {}
    scores = read_scores(
        sheet,
        columns.scores,
        lambda row, title: benchmarks.get(row, "") if long else title,
        unmeasured=unmeasured,
    )
    _report_rows_without_score(sheet, columns, set(scores["row"]))
    scores = scores[scores["row"].isin(runs.index)]
    groups = scores["row"].map(runs["run"])
    scores, unit = to_fractions(sheet, scores, settings.run_unit, settings, rows=groups)
    scores = scores.assign(standard_error=_standard_errors(sheet, scores))
    return scores.join(runs, on="row"), unit


def _report_rows_without_score(sheet: Sheet, columns: RunColumns, scored: set[int]) -> None:
    """Leave out long rows without a score, with a note; refuse runs without any."""
    for row, cells in zip(sheet.table.index, sheet.table[columns.scores].to_numpy().tolist()):
        if int(row) in scored or None in cells:
            continue
        if columns.layout == "long":
            sheet.drop_row("missing-score-skipped", int(row), "no score: left out")
        else:
            what = "has no score: write one, or delete the row"
            sheet.findings.refuse(sheet.place(int(row)), what)


def _standard_errors(sheet: Sheet, scores: pd.DataFrame) -> pd.Series:
    """Standard errors in the unit of their scores, as fractions; NaN where none is given."""
    errors = pd.Series(np.nan, index=scores.index)
    if "standard_error" not in sheet.table:
        return errors
    cells = dict(sheet.cells("standard_error"))
    for score in scores.itertuples():
        text = cells.get(score.row, "")
        if is_missing(text) or is_placeholder(text):
            continue
        try:
            figure = read_score(text, sheet.decimal)
        except CellError as error:
            sheet.refuse(score.row, "standard_error", str(error))
            continue
        value = float(figure.value.scaleb(-2 if score.percent or figure.percent else 0))
        if not 0 < value < 0.5:
            sheet.refuse(score.row, "standard_error", "is no standard error of such a score: leave it empty")
            continue
        errors[score.Index] = value
    return errors


def _implied(scores: pd.DataFrame, runs: pd.DataFrame, averages: Mapping[int, str]) -> dict[object, float]:
    """What each score would have to be for the average that the file prints for its run."""
    printed = {}
    for row, text in averages.items():
        if row in runs.index and not np.isnan(figure := _figure(text)):
            printed[runs.at[row, "run"]] = figure / 100 if figure > 1 else figure
    implied: dict[object, float] = {}
    for run, rows in scores[scores["run"].isin(list(printed))].groupby("run"):
        missing = printed[run] * len(rows) - rows["value"].sum()
        implied |= {label: value + missing for label, value in rows["value"].items()}
    return implied


def _labelled(scores: pd.DataFrame) -> pd.DataFrame:
    """The long table of a study: run labels are the VLM's name, made unique where it is not."""
    runs = scores.drop_duplicates("run").set_index("run")
    labels = runs["vlm"].where(runs["vlm"] != "", runs["backbone"]).astype(object)
    for column in ("recipe", "volume", "backbone", "encoder"):
        repeated = labels.duplicated(keep=False)
        extra = runs[column].map(lambda x: f"{x:.10g}" if isinstance(x, float) else str(x))
        labels = labels.where(~repeated, labels + " | " + extra)
    table = scores.assign(run=scores["run"].map(labels), benchmark=scores["column"], score=scores["value"])
    order = ["run", *RUN_KEY, "benchmark", "score", "standard_error", "source"]
    return table[order].reset_index(drop=True)
