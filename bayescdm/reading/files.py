"""Files to rows of text: CSV of any separator, in UTF-8 or UTF-16, Excel and Parquet; rows keep lines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from bayescdm.reading.findings import Change, Findings, shown
from bayescdm.reading.labels import clean_title, fold

__all__ = ["LEADING_ROWS", "FileProblem", "Rows", "file_rows"]

#: How many lines are searched for the header.
LEADING_ROWS = 10
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_WEB_PAGE = re.compile(
    r"\s*(<\?xml[^>]*>\s*|<!--.*?-->\s*)*<(!doctype\s+html|html|head|body|table)\b", re.I | re.S
)
_LINE_END = re.compile(r"\r\n|\r|\n")
_LINE_ENDS = {"\r\n": "CR LF (Windows)", "\r": "CR alone (old Mac)", "\n": "LF"}

Rows = list[tuple[int, list[str]]]


class FileProblem(Exception):
    """A file that cannot be read as a table at all."""

    def __init__(self, what: str, row: int = 0):
        self.what, self.row = what, row
        super().__init__(what)


def file_rows(path: Path, key_titles: Sequence[str], findings: Findings) -> Rows:
    """Line numbers and cells of a file, whatever its format; decided by content, not by name.

    Parameters
    ----------
    path : Path
    key_titles : sequence of str
        Titles of which the header holds at least one.
    findings : Findings
        Takes notes.

    Returns
    -------
    list of (int, list of str)

    Raises
    ------
    FileProblem
        When the file cannot be read as a table.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileProblem(f"cannot be opened: {error.strerror or error}") from None
    if content.startswith(b"PK\x03\x04"):
        return _excel_rows(content, path, findings)
    if content.startswith(b"PAR1"):
        findings.changed(Change(path.name, 0, "", "Parquet", "CSV", "written as plain text"))
        return _parquet_rows(content)
    if content.startswith(b"\xd0\xcf\x11\xe0"):
        raise FileProblem("is a workbook of an old Excel: save it as .xlsx or as CSV UTF-8")
    if content.startswith((b"\x1f\x8b", b"BZh", b"7z\xbc\xaf", b"Rar!")):
        raise FileProblem("is compressed: unpack it first")
    text = _decoded(content, path.name, findings)
    if _WEB_PAGE.match(text):
        raise FileProblem("looks like a web page (HTML), not a table: save its table as CSV UTF-8")
    return _text_rows(text, key_titles, path.name, findings)


def _decoded(content: bytes, file: str, findings: Findings) -> str:
    """Text of a file in UTF-8 or UTF-16; another encoding is refused, since it cannot be told apart."""
    for mark, encoding in (
        (b"\xff\xfe\x00\x00", "utf-32"),
        (b"\x00\x00\xfe\xff", "utf-32"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if content.startswith(mark):
            try:
                text = content.decode(encoding)
            except UnicodeDecodeError:
                raise FileProblem(f"is broken {encoding.upper()}: save it as UTF-8") from None
            why = f"the file is {encoding.upper()}, read as such"
            findings.converted("encoding-converted", file, encoding.upper(), "UTF-8", why)
            return text
    if b"\x00" in content:
        raise FileProblem(
            "holds zero bytes: it is no text file, or UTF-16 without its mark; save it as UTF-8"
        )
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # What is no line end in UTF-8 is none in Latin-1 either, which decodes any byte.
        row = len(_LINE_END.findall(content[: error.start].decode("latin-1"))) + 1
        byte = f"0x{content[error.start]:02X}"
        raise FileProblem(f"holds the byte {byte}, which is not UTF-8: save it as CSV UTF-8", row) from None
    if content.startswith(b"\xef\xbb\xbf"):
        why = "a byte order mark before the header is taken off"
        findings.converted("byte-order-mark", file, "UTF-8 with a byte order mark", "UTF-8", why)
    return text


def _text_rows(text: str, key_titles: Sequence[str], file: str, findings: Findings) -> Rows:
    """Lines of a text file, split at the separator of its header."""
    rows, start = [], 1
    try:
        separator = _separator(text, key_titles)
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
        )
        for cells in reader:
            rows.append((start, [cell.strip(" \t") for cell in cells]))
            start = reader.line_num + 1
    except csv.Error as error:
        raise FileProblem(f"cannot be split into cells ({error}): check the quotes", start) from None
    if separator != ",":
        why = f"columns are separated by {_SEPARATORS[separator]}"
        findings.converted("separator", file, _SEPARATORS[separator], _SEPARATORS[","], why)
    _tell_line_ends(text, file, findings)
    return rows


def _tell_line_ends(text: str, file: str, findings: Findings) -> None:
    """List line ends that are not plain ones; those of an old Mac, which others take for none, are told."""
    found = [end for end in _LINE_ENDS if end in set(_LINE_END.findall(text))]
    before = " and ".join(_LINE_ENDS[end] for end in found)
    if "\r" in found:
        why = "lines end in a carriage return alone, as on an old Mac; read as line ends"
        findings.converted("line-ends", file, before, _LINE_ENDS["\n"], why)
    elif "\r\n" in found:
        findings.changed(Change(file, 0, "", before, _LINE_ENDS["\n"], "line ends written plainly"))


def _separator(text: str, key_titles: Sequence[str]) -> str:
    """The separator that gives the header most columns; the header holds a key title, or comes first."""
    lines = [line for line in islice(io.StringIO(text, newline=None), LEADING_ROWS) if line.strip()]
    wanted = {fold(title) for title in key_titles}
    split = [{mark: next(csv.reader([line], delimiter=mark), []) for mark in _SEPARATORS} for line in lines]
    for cells in split:
        found = [mark for mark in cells if wanted & {fold(clean_title(cell)) for cell in cells[mark]}]
        if found:
            return max(found, key=lambda mark: len(cells[mark]))
    return max(_SEPARATORS, key=lambda mark: len(split[0][mark])) if split else ","


def _excel_rows(content: bytes, path: Path, findings: Findings) -> Rows:
    """Rows of the only sheet, or of the one that is named like the file."""
    try:
        import openpyxl
    except ImportError:
        raise FileProblem("is an Excel file: install openpyxl, or save it as CSV UTF-8") from None
    try:
        # Formulas are kept as text, and refused below: their last result may be out of date.
        workbook = openpyxl.load_workbook(io.BytesIO(content), data_only=False)
        sheets = {sheet.title: list(sheet.iter_rows()) for sheet in workbook.worksheets}
    except Exception as error:  # whatever a broken archive raises
        raise FileProblem(
            f"cannot be read as an Excel file: {shown(str(error))}; save it as CSV UTF-8"
        ) from None
    texts = {
        title: [(number, [_excel_text(cell) for cell in row]) for number, row in enumerate(rows, start=1)]
        for title, rows in sheets.items()
    }
    texts = {title: rows for title, rows in texts.items() if any(any(cells) for _, cells in rows)}
    named = [title for title in texts if fold(title) == fold(path.stem)]
    if len(texts) > 1 and not named:
        listed = ", ".join(f"'{title}'" for title in texts)
        raise FileProblem(f"has several sheets ({listed}): name the one that is meant '{path.stem}'")
    title = next(iter(named or texts), "")
    findings.changed(
        Change(path.name, 0, "", f"Excel workbook, sheet '{title}'", "CSV", "written as plain text")
    )
    return texts.get(title, [])


def _excel_text(cell: Any) -> str:
    """What a cell shows: a fraction formatted as a percentage is 56.9%, not 0.569."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, float | int) and not isinstance(value, bool):
        text = repr(value)
        if "%" in (cell.number_format or ""):
            return f"{(Decimal(text) * 100).normalize():f}%"
        return text.removesuffix(".0")
    return str(value).strip(" \t")


def _parquet_rows(content: bytes) -> Rows:
    """Rows of a Parquet file; the first is line 2, as if a header stood above it."""
    try:
        table = pd.read_parquet(io.BytesIO(content))
    except ImportError:
        raise FileProblem("is a Parquet file: install pyarrow, or save it as CSV UTF-8") from None
    except Exception as error:  # whatever a broken file raises
        raise FileProblem(f"cannot be read as a Parquet file: {shown(str(error))}") from None
    if table.index.name or table.index.nlevels > 1:
        table = table.reset_index()
    columns = [[_parquet_text(value) for value in table.iloc[:, i].to_numpy()] for i in range(table.shape[1])]
    rows: Rows = [(1, [str(title) for title in table.columns])]
    return rows + [(number, list(cells)) for number, cells in enumerate(zip(*columns), start=2)]


def _parquet_text(value: Any) -> str:
    """The shortest text that gives the value again; empty for a missing one."""
    if value is None or (not isinstance(value, str) and pd.api.types.is_scalar(value) and pd.isna(value)):
        return ""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value).strip(" \t")
