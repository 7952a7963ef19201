"""Scores that stand more than once for one run and benchmark."""

from __future__ import annotations

import pandas as pd

from bayescdm.reading.sheets import Sheet
from bayescdm.wording import and_more

__all__ = ["merge_duplicates"]

#: Rows listed by number before the rest is counted.
LISTED = 5


def merge_duplicates(sheet: Sheet, scores: pd.DataFrame) -> pd.DataFrame:
    """Keep one score for each run and benchmark.

    Equal ones are merged with a note; different ones of one source are a problem. Where sources disagree,
    a warning shows the figures, and their mean is used: no source is chosen.

    Parameters
    ----------
    sheet : Sheet
        Takes problems and notes; rows that say nothing new are left out of it.
    scores : DataFrame, one row a score
        ``run``, ``column`` (benchmark), ``source``, ``row``, ``title``, ``exact`` (as written) and ``value``
        (fraction).

    Returns
    -------
    DataFrame
        Each pair of run and benchmark once.
    """
    key = ["run", "column"]
    merged = scores.drop_duplicates(key).copy()
    repeated = scores[scores.duplicated(key, keep=False)]
    repeated = repeated[~_refuse_runs_without_mark(sheet, repeated)]
    same: dict[int, list[int]] = {}
    for _, rows in repeated.groupby(key, sort=False):
        first = rows.iloc[0]
        if _refuse_clashes(sheet, rows):
            continue
        for score in rows.iloc[1:].itertuples():
            if score.value == first["value"]:
                same.setdefault(score.row, []).append(first["row"])
        by_source = rows.drop_duplicates("source")
        if by_source["value"].nunique() > 1:
            merged.loc[first.name, "value"] = by_source["value"].mean()
            _report_disagreement(sheet, by_source)
        merged.loc[first.name, "source"] = "; ".join(by_source["source"])
    for row, first_rows in same.items():
        _report_same(
            sheet, row, sorted(set(first_rows)), whole=len(first_rows) == (scores["row"] == row).sum()
        )
    return merged


def _refuse_runs_without_mark(sheet: Sheet, repeated: pd.DataFrame) -> pd.Series:
    """Which scores are of runs that nothing tells apart, neither a volume nor a name; one problem for all."""
    unmarked = repeated[repeated["volume"].isna() & (repeated["vlm"] == "")]
    ways = unmarked.groupby(["run", "column", "source"])["value"].transform("nunique")
    runs = unmarked.loc[ways > 1, "run"].unique()
    of_runs = repeated["run"].isin(runs)
    if len(runs):
        of_one = repeated[repeated["run"] == runs[0]]
        rows = and_more([str(row) for row in sorted(set(of_one["row"]))], LISTED)
        more = f"; {len(runs) - 1} more like this" if len(runs) > 1 else ""
        what = (
            "runs of one backbone and recipe cannot be told apart without a volume "
            f"('{of_one['backbone'].iloc[0]}' in rows {rows}{more}): fill in their volumes, or name each run "
            "in a column 'vlm'"
        )
        sheet.findings.refuse(sheet.place(0), what)
    return of_runs


def _refuse_clashes(sheet: Sheet, rows: pd.DataFrame) -> bool:
    """Whether one source gives one score in two ways; each further way is a problem."""
    earlier = rows.drop_duplicates("source").set_index("source")
    clashes = rows[rows["value"] != rows["source"].map(earlier["value"])]
    for score in clashes.itertuples():
        there = earlier.loc[score.source]
        what = (
            f"and '{there['exact']}' (row {there['row']}) are two scores of one run in '{score.column}', "
            "from one source: keep one of them"
        )
        sheet.findings.refuse(sheet.place(score.row, score.title), what, str(score.exact))
    return not clashes.empty


def _report_disagreement(sheet: Sheet, by_source: pd.DataFrame) -> None:
    """Show the figures of all sources."""
    first = by_source.iloc[0]
    listed = ", ".join(f"{s.exact} in row {s.row} ({s.source})" for s in by_source.itertuples())
    message = f"sources disagree on '{first['column']}': {listed}; their mean is used, delete rows to choose"
    place = sheet.place(first["row"], first["title"])
    sheet.findings.note("sources-disagree", place, message, "warning")


def _report_same(sheet: Sheet, row: int, first_rows: list[int], *, whole: bool) -> None:
    """Say that scores of a row stand elsewhere as well; leave the row out when all of them do."""
    listed = ", ".join(map(str, first_rows))
    why = f"the same as in row{'s' if len(first_rows) > 1 else ''} {listed}: kept once"
    if whole:
        sheet.drop_row("duplicate-merged", row, why)
    else:
        sheet.findings.note("duplicate-merged", sheet.place(row), f"scores {why}")
