"""Reading a table of losses at several batch sizes, matched to the backbones of a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from bayescdm.errors import Note, NotFoundError
from bayescdm.reading.cells import IF_UNKNOWN, CellError, is_missing, is_placeholder, read_count, read_score
from bayescdm.reading.columns import name_columns, require_columns
from bayescdm.reading.counts import dots_of
from bayescdm.reading.findings import Findings, Place, shown
from bayescdm.reading.labels import Labels
from bayescdm.reading.scores import find_decimal_mark
from bayescdm.reading.settings import Settings
from bayescdm.reading.sheets import Sheet, read_sheet
from bayescdm.study import Study
from bayescdm.wording import counted

__all__ = ["read_batch_losses"]

#: Names of the column of volumes; `samples` and `tokens` state the unit.
VOLUMES = ("volume", "samples", "tokens")
OURS = ("backbone", *VOLUMES, "batch_size", "loss")


def read_batch_losses(path: str | Path, like: Study) -> tuple[pd.DataFrame, tuple[Note, ...]]:
    """Read losses of training runs at several batch sizes.

    Parameters
    ----------
    path : str or Path
        Table (CSV, TSV, Excel or Parquet) with the columns ``backbone``, ``volume`` (or ``samples`` or
        ``tokens``, in the unit of the study), ``batch_size`` (samples) and ``loss``, one row a run and
        volume along its trajectory. Other columns are left out with a note.
    like : Study
        Whose backbones are meant.

    Returns
    -------
    losses : DataFrame, one row a run and volume
        ``backbone`` in the study's spelling, ``volume``, ``batch_size`` and ``loss``: what
        `optimal_batches` and `fit_batch_size` take.
    notes : tuple of Note
        Every repair, and rows without a loss, which are left out.

    Raises
    ------
    InputError
        All problems of the file, a line each: a backbone that the study does not know, volumes in another
        unit, a figure that is none, one batch size twice at one volume.
    NotFoundError
        When there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> import bayescdm as cdm
    >>> path = Path(tempfile.mkdtemp()) / "losses.csv"
    >>> _ = path.write_text("backbone,tokens,batch_size,loss\\nQwen2.5-72B,16B,1K,2.31\\n")
    >>> losses, _ = cdm.read_batch_losses(path, cdm.load_study("simulated-paper"))
    >>> losses["batch_size"].tolist()
    [1000.0]
    """
    path = Path(path)
    if not path.exists():
        raise NotFoundError(f"{path}: there is no such file")
    findings = Findings()
    sheet = read_sheet(path, ["backbone"], findings)
    losses = _losses(sheet, like) if sheet else None
    findings.raise_problems()
    assert losses is not None
    return losses, findings.told()


def _losses(sheet: Sheet, like: Study) -> pd.DataFrame | None:
    """The rows of a sheet as numbers; None where a column is missing."""
    name_columns(sheet, OURS, Settings())
    if not require_columns(sheet, ("backbone", "|".join(VOLUMES), "batch_size", "loss"), ()):
        return None
    for title in [title for title in sheet.table.columns if title not in OURS]:
        sheet.drop_column("column-ignored", title, "not needed: left out")
    volume = _volume_column(sheet, like)
    find_decimal_mark(sheet, ["loss"])
    without = _without_loss(sheet)
    _match_backbones(sheet, like)
    # A run that has not begun may lack its figures; what is written there is checked all the same.
    figures = {
        "volume": _counts(sheet, volume, without, whole=volume != "volume"),
        "batch_size": _counts(sheet, "batch_size", without, whole=True),
        "loss": _losses_of(sheet, without),
    }
    losses = pd.DataFrame({"backbone": sheet.table["backbone"], **figures}).drop(index=without)
    _refuse_repetitions(sheet, losses)
    if not len(losses):
        sheet.findings.refuse(Place(sheet.file), "has no row with a loss: add the data")
    return losses.reset_index(drop=True)


def _volume_column(sheet: Sheet, like: Study) -> str:
    """The one column of volumes, in the unit of the study."""
    there = [title for title in VOLUMES if title in sheet.table]
    if len(there) > 1:
        what = f"columns {' and '.join(map(repr, there))} are both volumes: keep one"
        sheet.findings.refuse(sheet.place(sheet.header_row), what)
    elif there[0] not in ("volume", like.volume_unit):
        what = f"counts {there[0]}, the volumes of {like.name} are {like.volume_unit}: convert the column"
        sheet.findings.refuse(sheet.place(sheet.header_row, there[0]), what)
    return there[0]


def _without_loss(sheet: Sheet) -> list[int]:
    """Rows of runs that diverged or are not finished, and have no loss: they are left out."""
    without = [row for row, text in sheet.cells("loss") if is_missing(text) or is_placeholder(text)]
    if without:
        cells = dict(sheet.cells("loss"))
        written = f" ({shown(cells[without[0]])})" if cells[without[0]] else ""
        message = f"{counted(len(without), 'row')} without a loss, the first in row {without[0]}{written}"
        sheet.findings.note("loss-missing", sheet.place(0, "loss"), f"{message}: left out")
    return without


def _match_backbones(sheet: Sheet, like: Study) -> None:
    """Give backbones the spelling of the study; refuse those that it does not know."""
    known = Labels(map(str, like.scored))
    for row, label in list(sheet.cells("backbone")):
        meant, how = known.match(label)
        if len(meant) == 1 and how:
            sheet.repair("name-matched", row, "backbone", meant[0], how)
        elif len(meant) > 1:
            sheet.refuse(row, "backbone", f"may be {' or '.join(map(repr, meant[:4]))}: write which")
        elif not meant:
            what = f"is no backbone with text scores of {like.name}; {known.nearest(label)}"
            sheet.refuse(row, "backbone", what)


def _counts(sheet: Sheet, column: str, optional: Sequence[int], *, whole: bool) -> pd.Series:
    """A column as counts, NaN where a cell is refused, or empty in a row that may lack it."""
    dots = dots_of(sheet, column)
    values = pd.Series(np.nan, index=sheet.table.index)
    for row, text in list(sheet.cells(column)):
        if row in optional and (is_missing(text) or is_placeholder(text)):
            continue
        try:
            count = read_count(text, sheet.decimal, whole=whole, dots=dots)
        except CellError as error:
            sheet.refuse(row, column, str(error).removesuffix(IF_UNKNOWN))
            continue
        values[row] = float(count.value)
        if count.why:
            sheet.repair("count-converted", row, column, f"{count.value.normalize():f}", count.why)
    return values


def _losses_of(sheet: Sheet, without: Sequence[int]) -> pd.Series:
    """The losses, NaN where there is none or a cell is refused."""
    values = pd.Series(np.nan, index=sheet.table.index)
    for row, text in list(sheet.cells("loss")):
        if row in without:
            continue
        try:
            score = read_score(text, sheet.decimal)
        except CellError as error:
            sheet.refuse(row, "loss", str(error))
            continue
        if score.percent or score.value <= 0:
            sheet.refuse(row, "loss", "is no loss, a number above 0 without a percent sign: write the loss")
            continue
        values[row] = float(score.value)
        if score.code:
            sheet.repair(score.code, row, "loss", f"{score.value:f}", score.why)
    return values


def _refuse_repetitions(sheet: Sheet, losses: pd.DataFrame) -> None:
    """One batch size has one loss at one volume."""
    first: dict[tuple[object, ...], int] = {}
    for row, *key in losses.dropna()[["backbone", "volume", "batch_size"]].itertuples():
        there = first.setdefault(tuple(key), int(row))
        if there != row:
            what = f"has backbone, volume and batch size of row {there}: keep one of them"
            sheet.findings.refuse(sheet.place(int(row)), what)
