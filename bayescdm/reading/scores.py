"""Score cells to fractions: the part that text scores and runs have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from bayescdm.reading.cells import UNMEASURED, CellError, is_missing, is_placeholder, read_score
from bayescdm.reading.findings import shown
from bayescdm.reading.settings import Settings
from bayescdm.reading.sheets import Sheet
from bayescdm.reading.units import Units, judge_units, off_by_power_of_ten

__all__ = ["find_decimal_mark", "flag_suspects", "read_scores", "to_fractions"]

#: Below this a score is as good as nothing, and may stand for a run that failed.
_NEARLY_NOTHING = 0.01
#: Distance from 0 and 100 % that makes the other scores far from it.
_FAR = 0.1
_STATE_UNIT = "write it in the unit of the others, or state the unit in study.toml"


def find_decimal_mark(sheet: Sheet, columns: Sequence[str]) -> None:
    """Set the decimal mark of a sheet to the comma when its figures leave no other reading.

    Parameters
    ----------
    sheet : Sheet
    columns : sequence of str
        Columns of figures.
    """
    cells = pd.Series([text for column in columns for _, text in sheet.cells(column)], dtype=object)
    with_comma = cells.str.fullmatch(r"\d+,\d{1,2}|0,\d+|\d+,\d{4,}", na=False).sum()
    with_point = cells.str.fullmatch(r"\d+\.\d{1,2}|0\.\d+|\d+\.\d{4,}", na=False).sum()
    if with_comma and not with_point:
        sheet.decimal = ","
        why = f"{with_comma} figures have a decimal comma, read as such"
        sheet.findings.converted("decimal-comma", sheet.file, "decimal comma", "decimal point", why)


def read_scores(
    sheet: Sheet,
    columns: Sequence[str],
    benchmark: Callable[[int, str], str],
    *,
    unmeasured: str = UNMEASURED,
) -> pd.DataFrame:
    """Read score cells as written; missing ones are left out, faulty ones are problems.

    Parameters
    ----------
    sheet : Sheet
    columns : sequence of str
        Columns that hold scores.
    benchmark : callable
        Row and column → the benchmark that the score belongs to.
    unmeasured : str
        What to do where there is no score: advice in messages.

    Returns
    -------
    DataFrame, one row a score
        ``row``, ``title`` (column of the cell), ``column`` (benchmark), ``exact`` (Decimal), ``value``
        (float), ``signed`` (whether a percent sign stands behind it), ``code`` and ``why`` (what was taken
        off a cell with a percent sign, which is rewritten when the unit of the file is known).
    """
    found = []
    gaps: dict[str, int] = {}
    for title in columns:
        for row, text in sheet.cells(title):
            if is_missing(text):
                if text:
                    gaps[text] = gaps.get(text, 0) + 1
                    sheet.rewrite(row, title, "", "marked as missing")
                continue
            if is_placeholder(text):
                sheet.repair("placeholder-missing", row, title, "", "a placeholder, read as missing")
                continue
            try:
                score = read_score(text, sheet.decimal)
            except CellError as error:
                sheet.refuse(row, title, str(error).replace(UNMEASURED, unmeasured))
                continue
            if score.value < 0:
                sheet.refuse(row, title, f"is below 0: write the score, or {unmeasured}")
                continue
            if score.why and not score.percent:
                sheet.repair(score.code, row, title, str(score.value), score.why)
            elif str(score.value) != text and not score.percent:
                sheet.rewrite(row, title, str(score.value), "written plainly")
            figure = (score.value, float(score.value), score.percent)
            found.append((row, title, benchmark(row, title), *figure, score.code, score.why))
    if gaps:
        listed = ", ".join(f"{shown(text)} × {count}" for text, count in gaps.items())
        sheet.findings.note("missing-marker", sheet.file, f"read as missing: {listed}")
    columns_read = ["row", "title", "column", "exact", "value", "signed", "code", "why"]
    scores = pd.DataFrame(found, columns=columns_read)
    # A table without any score has no figures to tell its types by.
    return scores.astype({"row": int, "value": float, "signed": bool})


def to_fractions(
    sheet: Sheet,
    scores: pd.DataFrame,
    unit: str | None,
    settings: Settings,
    *,
    rows: pd.Series | None = None,
    context: Mapping[str, np.ndarray] | None = None,
) -> tuple[pd.DataFrame, str]:
    """Turn scores into fractions, exactly; what is out of range or in an unclear unit becomes a problem.

    Parameters
    ----------
    sheet : Sheet
    scores : DataFrame
        From `read_scores`.
    unit : str, optional
        Unit of the file where the user states it.
    settings : Settings
        `column_units` states units of single benchmarks.
    rows : Series, optional
        What is judged together as one row, for each score; the row of the file by default.
    context : mapping of str to array, optional
        Known scores of each benchmark in percent.

    Returns
    -------
    scores : DataFrame
        Without refused ones; with ``percent`` (whether it was read so) and ``value`` as a fraction.
    unit : str
        Unit of the file.
    """
    stated = scores["column"].map(dict(settings.column_units)).astype(object)
    if unit:
        stated = stated.where(stated.notna(), unit)
    stated = stated.mask(scores["signed"], "percent")
    scores = _within_range(sheet, scores, stated)
    stated = stated.loc[scores.index]
    judged = scores[stated.isna()]
    groups = judged["row"] if rows is None else rows.loc[judged.index]
    units = judge_units(judged[["column", "value"]].assign(row=groups), context)
    signed_only = judged.empty and not scores.empty
    table = unit or ("percent" if signed_only else units.table)
    percent = (stated == "percent").where(stated.notna(), units.percent.reindex(scores.index)).astype(bool)
    refused = _refuse_unclear(sheet, judged, units)
    scores = scores.assign(percent=percent)[~scores.index.isin(refused)]
    odd = judged.index[groups.isin(units.odd_rows)]
    _report_odd_rows(sheet, scores[scores.index.isin(odd)], table)
    shift = np.where(scores["percent"], -2, 0)
    fractions = [exact.scaleb(int(power)) for exact, power in zip(scores["exact"], shift)]
    _write_in_one_unit(sheet, scores.assign(exact=fractions), table)
    return scores.assign(value=[float(fraction) for fraction in fractions]), table


def flag_suspects(sheet: Sheet, scores: pd.DataFrame, implied: Mapping[object, float] | None = None) -> None:
    """Warn of scores about ten or a hundred times off the others of their benchmark; they stay as they are.

    Parameters
    ----------
    sheet : Sheet
    scores : DataFrame
        From `to_fractions`.
    implied : mapping, optional
        Index label of a score → what a printed average says it should be, a fraction.
    """
    _flag_ends(sheet, scores)
    for label, score in off_by_power_of_ten(scores).iterrows():
        times = f"{score['factor']:g}" if score["factor"] > 1 else f"1/{1 / score['factor']:g}"
        written = shown(str(sheet.table.at[score["row"], score["title"]]))
        message = (
            f"{written} is out of line: {times} times it would be like the other scores of {score['column']} "
            f"(median {score['median']:.1%}); kept as it is, please check"
        )
        expected = (implied or {}).get(label)
        if expected is not None and abs(expected / (score["value"] * score["factor"]) - 1) < 0.02:
            message += f"; the printed average implies {expected:.1%}"
        code = "tenfold-suspect" if score["factor"] in (10.0, 0.1) else "hundredfold-suspect"
        sheet.findings.note(code, sheet.place(score["row"], score["title"]), message, "warning")


def _flag_ends(sheet: Sheet, scores: pd.DataFrame) -> None:
    """Warn of scores below 1 % or of 100 % where all others of the benchmark are far away."""
    for benchmark, rows in scores.groupby("column", sort=False):
        ends = rows[(rows["value"] < _NEARLY_NOTHING) | (rows["value"] == 1)]
        for score in ends.itertuples():
            others = rows["value"].drop(score.Index).to_numpy()
            if len(others) < 2:
                continue
            far = others.min() > _FAR if score.value < 0.5 else others.max() < 1 - _FAR
            if far:
                message = (
                    f"{shown(sheet.as_written(score.row, score.title))} is far from all other scores of "
                    f"{benchmark} ({others.min():.1%} to {others.max():.1%}); kept as it is, please check"
                )
                sheet.findings.note("end-suspect", sheet.place(score.row, score.title), message, "warning")


def _within_range(sheet: Sheet, scores: pd.DataFrame, stated: pd.Series) -> pd.DataFrame:
    """Refuse scores above 100, or above 1 where fractions are stated; a whole benchmark in one line."""
    scores = scores.assign(limit=np.where(stated == "fraction", 1, 100))
    too_high = scores[scores["value"] > scores["limit"]]
    counts = scores["column"].value_counts()
    for benchmark, rows in too_high.groupby("column", sort=False):
        whole = len(rows) > 2 and len(rows) > counts[benchmark] / 2
        many = f", like {len(rows)} of {counts[benchmark]} scores of '{benchmark}'" if whole else ""
        for score in rows.iloc[:1].itertuples() if whole else rows.itertuples():
            what = f"is outside 0–{score.limit}"
            if score.limit == 1:
                what += f"{many}, and study.toml states fractions: correct the unit there, or the score"
            elif whole:
                what += f"{many}: point sums are no percentages; rescale them, or leave the benchmark out"
            else:
                what += ": write the score in percent or as a fraction"
            sheet.refuse(score.row, score.title, what)
    return scores.drop(index=too_high.index, columns="limit")


def _refuse_unclear(sheet: Sheet, judged: pd.DataFrame, units: Units) -> list[object]:
    """Refuse benchmarks and single scores whose unit is unclear; return their index labels."""
    refused: list[object] = []
    for benchmark in units.unclear_columns:
        rows = judged[(judged["column"] == benchmark) & units.percent]
        many = "the only score" if len(rows) == 1 else f"one of {len(rows)} scores, all within 0–1,"
        what = (
            f"is {many} of '{benchmark}' in a file of percentages: multiply by 100 if a fraction, or state "
            f'the unit in study.toml: [column_units] "{benchmark}" = "percent"'
        )
        sheet.refuse(rows.iloc[0]["row"], rows.iloc[0]["title"], what)
        refused += list(rows.index)
    what = "looks like a fraction in a file of percentages"
    if units.table == "fraction":
        what = "is above 1 in a file of fractions"
    whole = _columns_of_percentages(judged, units)
    for benchmark, labels in whole.items():
        first = judged.loc[labels[0]]
        many = (
            f"is one of {len(labels)} scores of '{benchmark}' above 1 in a file of fractions: divide by 100"
        )
        many += f' if percentages, or state the unit in study.toml: [column_units] "{benchmark}" = "percent"'
        sheet.refuse(first["row"], first["title"], many)
        refused += labels
    for label in [label for label in units.unclear_cells if label not in refused]:
        cell = judged.loc[label, ["row", "title"]]
        sheet.refuse(cell["row"], cell["title"], f"{what}: {_STATE_UNIT}")
        refused.append(label)
    return refused


def _columns_of_percentages(judged: pd.DataFrame, units: Units) -> dict[str, list[Any]]:
    """Unclear cells of benchmarks that are above 1 for the most part, in a file of fractions."""
    if units.table != "fraction" or not units.unclear_cells:
        return {}
    unclear = judged.loc[units.unclear_cells]
    counts = judged["column"].value_counts()
    columns = {str(name): list(rows.index) for name, rows in unclear.groupby("column", sort=False)}
    return {name: rows for name, rows in columns.items() if len(rows) > max(2, counts[name] / 2)}


def _report_odd_rows(sheet: Sheet, odd: pd.DataFrame, table: str) -> None:
    """Say which rows are read in the other unit than the file."""
    how = "read as fractions, in a file of percentages"
    if table == "fraction":
        how = "read as percentages, in a file of fractions"
    for row, scores in odd.groupby("row", sort=True):
        listed = ", ".join(map(str, scores["exact"]))
        sheet.findings.note("percent-converted", sheet.place(int(row)), f"{listed}: {how}", "warning")


def _write_in_one_unit(sheet: Sheet, scores: pd.DataFrame, table: str) -> None:
    """Rewrite scores in the sheet that are not in the unit of the file."""
    other = scores["percent"] != (table == "percent")
    for score in scores[other | scores["signed"]].itertuples():
        fraction: Decimal = score.exact
        after = f"{fraction.scaleb(2) if table == 'percent' else fraction:f}"
        why = f"written in the unit of the file: {table}"
        if score.signed:
            sign = score.why if table == "percent" else f"{score.why}; {why}"
            sheet.repair(score.code, score.row, score.title, after, sign)
        else:
            sheet.rewrite(score.row, score.title, after, why)
