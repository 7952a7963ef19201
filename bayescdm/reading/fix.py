"""Cleaned files of a study, and a list of every change."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple, fields
from pathlib import Path

import pandas as pd

from bayescdm.atomic import replacing
from bayescdm.errors import NotFoundError, RequestError
from bayescdm.reading.findings import Change
from bayescdm.reading.load import read_files
from bayescdm.reading.sheets import Sheet

__all__ = ["fix_study"]

_SETTINGS = "study.toml"
_CHANGES = "changes.csv"


def fix_study(folder: str | Path, out: str | Path, *, overwrite: bool = False) -> pd.DataFrame:
    """Write the files of a study as they were understood: plain CSV that reads without a repair.

    Parameters
    ----------
    folder : str or Path
        A folder as for `load_study`.
    out : str or Path
        Folder for ``text_scores.csv``, ``runs.csv``, ``changes.csv`` and, where there is one, ``study.toml``;
        made if need be.
    overwrite : bool
        Whether files of these names in `out` are replaced. The files of `folder` never are.

    Returns
    -------
    DataFrame, one row a change
        ``file``, ``row`` (the header is row 1), ``column``, ``before``, ``after``, ``why``; the content of
        ``changes.csv``. What was changed about a whole file (encoding, separator, line ends, decimal mark)
        stands in row 0.

    Raises
    ------
    InputError
        When something needs a decision; nothing is written then.
    RequestError
        When `out` is `folder`, or holds such files already.
    NotFoundError
        When there is no such folder.
    """
    folder, out = Path(folder), Path(out)
    if not folder.exists():
        raise NotFoundError(f"{folder}: there is no such folder")
    files = read_files(folder)
    files.findings.raise_problems()
    if out.exists() and (not out.is_dir() or out.resolve() == folder.resolve()):
        raise RequestError(f"{out}: give another folder; the files of {folder} are never replaced")
    text, runs = files.sheets
    assert text is not None and runs is not None
    changes = files.findings.changes
    tables = {"text_scores.csv": _csv(text), "runs.csv": _csv(runs), _CHANGES: _changes_csv(changes)}
    contents = {name: content.encode() for name, content in tables.items()}
    if (folder / _SETTINGS).exists():
        contents[_SETTINGS] = (folder / _SETTINGS).read_bytes()
    present = [name for name in contents if (out / name).exists()]
    if present and not overwrite:
        raise RequestError(
            f"{out}: holds {', '.join(present)} already; choose another folder or ask to overwrite"
        )
    out.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        with replacing(out / name, overwrite=overwrite) as unfinished:
            unfinished.write_bytes(content)
    return pd.DataFrame([astuple(change) for change in changes], columns=_change_columns())


def _csv(sheet: Sheet) -> str:
    """The cleaned sheet as CSV text, under the titles that study.toml knows."""
    titles = [sheet.titles.get(column, column) for column in sheet.table.columns]
    return _text([titles, *sheet.table.to_numpy().tolist()])


def _changes_csv(changes: Sequence[Change]) -> str:
    """The list of changes as CSV text."""
    return _text([_change_columns(), *(astuple(change) for change in changes)])


def _change_columns() -> list[str]:
    """Columns of ``changes.csv``."""
    return [field.name for field in fields(Change)]


def _text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV text."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    return buffer.getvalue()
