"""Columns of counts: what dots between their digits mean."""

from __future__ import annotations

import re

from bayescdm.reading.cells import Dots, shows_dotted_thousands
from bayescdm.reading.findings import shown
from bayescdm.reading.sheets import Sheet
from bayescdm.wording import and_more

__all__ = ["dots_of"]

#: Three digits behind one dot, as in ``600.000``.
_ONE_DOT = re.compile(r"(?<![\d.])[1-9]\d{0,2}\.\d{3}(?![\d.])(?!\s*[A-Za-z])", re.ASCII)
#: Cells listed in a note before the rest is counted.
_LISTED = 5


def dots_of(sheet: Sheet, column: str) -> Dots:
    """How ``600.000`` is read in a column of plain counts.

    Parameters
    ----------
    sheet : Sheet
        Takes a note that lists the cells concerned.
    column : str

    Returns
    -------
    {"thousands", "unclear"}
        Thousands where another cell leaves no other reading, such as ``1.200.000``.
    """
    texts = dict(sheet.cells(column))
    proof = next((text for text in texts.values() if shows_dotted_thousands(text)), None)
    if proof is None:
        return "unclear"
    alike = [f"{shown(text)} in row {row}" for row, text in texts.items() if _ONE_DOT.search(text)]
    if alike and sheet.decimal == ".":
        message = f"dots separate thousands in {shown(proof)}, so in {and_more(alike, _LISTED)} too"
        sheet.findings.note("dots-are-thousands", sheet.place(0, column), message)
    return "thousands"
