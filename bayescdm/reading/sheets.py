"""Tables of text: a clean header, rows that hold data, and cells that are rewritten as they are repaired."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from bayescdm.reading.files import LEADING_ROWS, FileProblem, Rows, file_rows
from bayescdm.reading.findings import Change, Findings, Place, shown
from bayescdm.reading.labels import clean_title, fold
from bayescdm.wording import counted

__all__ = ["SUFFIXES", "Sheet", "read_sheet"]

#: File names that are tried for ``text_scores`` and ``runs``.
SUFFIXES = (".csv", ".tsv", ".txt", ".xlsx", ".parquet")
#: Longer cells are no label and no figure, but a lost quote or pasted text.
LONGEST_CELL = 2000
LONGEST_TITLE = 200
#: What stands before and behind the decimal comma of a score or a size.
_BEFORE_COMMA, _BEHIND_COMMA = re.compile(r"-?\d{1,2}", re.ASCII), re.compile(r"\d{1,4}%?", re.ASCII)
#: What stands in each cell of the line below the header of a Markdown table.
_RULE = re.compile(r":?-{3,}:?")


@dataclass
class Sheet:
    """A table of text on its way to numbers; repairs are made in it, so it ends as the cleaned file.

    Parameters
    ----------
    file : str
    table : DataFrame of str
        Indexed by line number; a refused cell is None.
    findings : Findings
    header_row : int
    read_titles : tuple of str
        All titles of the file, cleaned.
    titles : dict of str to str
        For columns that the user renamed in study.toml: what they are called in the file.
    decimal : str
        Decimal mark of the file.
    written : dict of (row, column) to str
        What stands in the file, for cells that were rewritten.
    """

    file: str
    table: pd.DataFrame
    findings: Findings
    header_row: int = 1
    read_titles: tuple[str, ...] = ()
    titles: dict[str, str] = field(default_factory=dict)
    decimal: str = "."
    written: dict[tuple[int, str], str] = field(default_factory=dict)

    def place(self, row: int = 0, column: str = "") -> Place:
        """Return the place of a cell, a row or the file."""
        return Place(self.file, row, self.titles.get(column, column), self.header_row)

    def cells(self, column: str) -> Iterator[tuple[int, str]]:
        """Yield row number and text of the cells of a column that were not refused."""
        return ((int(row), text) for row, text in self.table[column].items() if text is not None)

    def refuse(self, row: int, column: str, what: str) -> None:
        """Record a problem with a cell, and skip it from here on."""
        self.findings.refuse(self.place(row, column), what, self.as_written(row, column))
        self.table.at[row, column] = None

    def as_written(self, row: int, column: str) -> str:
        """Return what stands in a cell of the file, whatever was made of it."""
        return str(self.written.get((row, column), self.table.at[row, column]))

    def repair(self, code: str, row: int, column: str, after: str, why: str) -> None:
        """Rewrite a cell and say so."""
        before = self._replace(row, column, after)
        self.findings.repaired(code, self.place(row, column), before, after, why)

    def rewrite(self, row: int, column: str, after: str, why: str) -> None:
        """Rewrite a cell in another notation of the same value: a change to the file, not to what it says."""
        place = self.place(row, column)
        before = self._replace(row, column, after)
        self.findings.changed(Change(place.file, row, place.column, before, after, why))

    def _replace(self, row: int, column: str, after: str) -> str:
        """Put a text into a cell; return what stood there."""
        before = str(self.table.at[row, column])
        self.written.setdefault((row, column), before)
        self.table.at[row, column] = after
        return before

    def drop_row(self, code: str, row: int, why: str) -> None:
        """Leave out a row and say so."""
        cells = [text for text in self.table.loc[row] if text]
        self.table = self.table.drop(index=row)
        self.findings.repaired(code, self.place(row), ", ".join(cells), "", why)

    def drop_column(self, code: str, column: str, why: str, *, severity: Any = "note") -> None:
        """Leave out a column and say so."""
        self.table = self.table.drop(columns=column)
        place = self.place(self.header_row, column)
        self.findings.note(code, place, why, severity)
        self.findings.changed(Change(self.file, self.header_row, column, column, "", why))

    def rename_column(self, code: str, column: str, after: str, why: str) -> None:
        """Give a column another title and say so."""
        self.table = self.table.rename(columns={column: after})
        self.findings.repaired(code, self.place(self.header_row, column), column, after, why)


def read_sheet(path: Path, key_titles: Sequence[str], findings: Findings) -> Sheet | None:
    """Read one file into a sheet with a clean header and no rows that are not data.

    Parameters
    ----------
    path : Path
    key_titles : sequence of str
        Titles of which the header holds at least one, to find it below leading lines.
    findings : Findings
        Takes problems and notes.

    Returns
    -------
    Sheet or None
        None when the file cannot be read as a table; the reason is among the problems.
    """
    file = path.name
    try:
        rows = file_rows(path, key_titles, findings)
        header_row, titles, body = _split_header(rows, key_titles, file, findings)
        titles, body = _without_empty_columns(titles, body, file, findings)
        equal = _of_equal_width(titles, body, Place(file, header_row=header_row), findings)
    except FileProblem as problem:
        findings.refuse(Place(file, problem.row), problem.what)
        return None
    table = pd.DataFrame(
        [cells for _, cells in equal],
        index=pd.Index([number for number, _ in equal], dtype=int),
        columns=range(len(titles)),
        dtype=object,
    )
    sheet = Sheet(file, table, findings, header_row)
    if not _name_columns(sheet, titles):
        return None
    _refuse_hostile_cells(sheet)
    _drop_rows_without_data(sheet, titles)
    if sheet.table.empty:
        if not any(any(cells) for _, cells in body):
            findings.refuse(Place(file), "has a header and no rows: add the data")
        elif equal:
            what = "holds no row of data: what stands below the header are titles; add the data"
            findings.refuse(Place(file), what)
        return None  # of rows that were all refused, that is said already
    return sheet


def _split_header(
    rows: Rows, key_titles: Sequence[str], file: str, findings: Findings
) -> tuple[int, list[str], Rows]:
    """Row number and cells of the header, and the rows below it."""
    filled = [(i, number, cells) for i, (number, cells) in enumerate(rows) if any(cells)]
    if not filled:
        raise FileProblem("is empty: it needs a header and rows")
    wanted = {fold(title) for title in key_titles}
    for i, number, cells in filled[:LEADING_ROWS]:
        if wanted & {fold(clean_title(cell)) for cell in cells}:
            if number > filled[0][1]:
                what = f"the header is row {number}; what stands above it is skipped"
                findings.note("leading-rows-skipped", Place(file, filled[0][1]), what)
                for _, above, text in filled[:LEADING_ROWS]:
                    if above < number:
                        before = ", ".join(filter(None, text))
                        findings.changed(Change(file, above, "", before, "", "above the header, left out"))
            return number, cells, rows[i + 1 :]
    i, number, cells = filled[0]
    return number, cells, rows[i + 1 :]


def _without_empty_columns(
    titles: list[str], body: Rows, file: str, findings: Findings
) -> tuple[list[str], Rows]:
    """Leave out columns without a title and without content, and a numbered one without a title."""
    keep, empty = [], []
    for i, title in enumerate(titles):
        cells = [cells[i] for _, cells in body if i < len(cells) and any(cells)]
        numbered = cells in ([str(n) for n in range(start, start + len(cells))] for start in (0, 1))
        if title.startswith("Unnamed:") or not title:
            if not any(cells):
                empty.append(f"column {i + 1}")
                continue
            if numbered:
                why = f"column {i + 1} has no title and numbers the rows"
                findings.converted("column-ignored", file, f"column {i + 1}", "", why)
                continue
        keep.append(i)
    if empty:
        why = "without a title and without content, left out"
        findings.changed(Change(file, 0, "", ", ".join(empty), "", why))
    trailing = list(range(len(titles), max((len(cells) for _, cells in body), default=0)))
    keep += [i for i in trailing if any(cells[i] for _, cells in body if i < len(cells))]
    body = [(number, [cells[i] for i in keep if i < len(cells)]) for number, cells in body]
    return [titles[i] for i in keep if i < len(titles)], body


def _of_equal_width(titles: list[str], body: Rows, file: Place, findings: Findings) -> Rows:
    """Refuse rows with more or fewer cells than the header: their figures may stand one column off."""
    equal: Rows = []
    wrong: dict[int, Rows] = {}
    for number, cells in body:
        if len(cells) == len(titles):
            equal.append((number, cells))
        elif len(cells) == 1 or not any(cells):
            equal.append((number, (cells + [""] * len(titles))[: len(titles)]))
        else:
            wrong.setdefault(len(cells), []).append((number, cells))
    at_commas = all((note.code, note.where) != ("separator", file.file) for note in findings.notes)
    for width, rows in wrong.items():
        torn = _torn_figure(rows) if at_commas and width > len(titles) else ""
        what = f"has {width} cells, the header {len(titles)}: "
        what += torn or "add what is missing, and quote cells that hold the separator"
        for number, _ in rows:
            findings.refuse(replace(file, row=number), what)
    return equal


def _torn_figure(rows: Rows) -> str:
    """What to do about a figure whose decimal comma was taken for a separator; empty if there is none."""
    for number, cells in rows:
        for left, right in pairwise(cells):
            if _BEFORE_COMMA.fullmatch(left) and _BEHIND_COMMA.fullmatch(right):
                return (
                    f"{shown(f'{left},{right}')} in row {number} looks like one figure with a decimal comma: "
                    "put quotes around such figures, or save the table with semicolons between its cells"
                )
    return ""


def _name_columns(sheet: Sheet, titles: list[str]) -> bool:
    """Give the columns their cleaned titles; False when titles are missing or stand twice."""
    cleaned = [clean_title(title) for title in titles]
    header = sheet.place(sheet.header_row)
    failed = False
    for i, title in enumerate(cleaned):
        if titles[i].startswith("="):
            sheet.findings.refuse(header, "is a formula: write a title", titles[i])
            failed = True
        elif not title:
            sheet.findings.refuse(header, f"column {i + 1} has no title: give it one", titles[i])
            failed = True
        elif len(title) > LONGEST_TITLE:
            sheet.findings.refuse(header, f"is longer than {LONGEST_TITLE} characters: shorten it", title)
            failed = True
        elif title in cleaned[:i]:
            first = cleaned.index(title) + 1
            sheet.findings.refuse(
                header, f"columns {first} and {i + 1} are both called '{title}': rename one"
            )
            failed = True
        elif title != titles[i]:
            place = sheet.place(sheet.header_row, title)
            sheet.findings.repaired("header-cleaned", place, titles[i], title, "marks and pictures removed")
    sheet.table.columns = pd.Index(cleaned, dtype=object)
    sheet.read_titles = tuple(cleaned)
    return not failed


def _drop_rows_without_data(sheet: Sheet, titles: list[str]) -> None:
    """Leave out blank rows, repeated headers and group titles, each with a note."""
    rows = list(zip(map(int, sheet.table.index), sheet.table.to_numpy().tolist()))
    last = max((number for number, cells in rows if any(cells)), default=0)
    # The empty end of a file is no news, but the cleaned file lacks it.
    blank = [number for number, _ in rows if number > last]
    if blank and last:
        change = Change(
            sheet.file, blank[0], "", counted(len(blank), "blank row"), "", "at the end, left out"
        )
        sheet.findings.changed(change)
    sheet.table = sheet.table.loc[:last]
    for number, cells in rows:
        filled = [cell for cell in cells if cell]
        if number > last or None in cells:
            continue
        if not filled:
            sheet.drop_row("blank-row-skipped", number, "blank row left out")
        elif cells == titles or [clean_title(cell) for cell in cells] == list(sheet.table.columns):
            sheet.drop_row("repeated-header-skipped", number, "repeated header left out")
        elif all(_RULE.fullmatch(cell) for cell in cells):
            sheet.drop_row("separator-row-skipped", number, "the line of a Markdown table, left out")
        elif len(cells) > 2 and (len(filled) == 1 or len(set(cells)) == 1):
            sheet.drop_row("group-row-skipped", number, "title of a group of rows, left out")


def _refuse_hostile_cells(sheet: Sheet) -> None:
    """Refuse formulas, line breaks, control characters and cells too long to be a label or a figure."""
    for column in sheet.table.columns:
        for row, text in sheet.cells(column):
            if text.startswith("="):
                sheet.refuse(row, column, "is a formula: write its result")
            elif len(text) > LONGEST_CELL:
                sheet.refuse(row, column, f"is longer than {LONGEST_CELL} characters: shorten it")
            elif "\n" in text or "\r" in text:
                sheet.refuse(row, column, "holds a line break: check the quotes, and write it on one line")
            elif any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text):
                sheet.refuse(row, column, "holds a control character: remove it")
