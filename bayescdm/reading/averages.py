"""Averages that a table prints beside its benchmarks, whatever they are called: found by arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np

from bayescdm.reading.cells import CellError, is_missing, is_placeholder, read_score
from bayescdm.reading.sheets import Sheet

__all__ = ["drop_computed_averages"]

#: Rows in which a column must be the mean or the sum of others before it is called so.
LEAST_ROWS = 3


def drop_computed_averages(sheet: Sheet, columns: Sequence[str]) -> list[str]:
    """Leave out, with a warning, columns that are the mean or the sum of other columns in every row.

    Parameters
    ----------
    sheet : Sheet
    columns : sequence of str
        Those of scores.

    Returns
    -------
    list of str
        The columns that stay.

    Notes
    -----
    Looked for are means and sums of all other columns, at least two, in at least three complete rows in
    which these differ from each other. A figure may differ from the mean by half a unit of its last digit
    and of the others', as all are rounded.
    """
    kept = list(columns)
    while len(kept) > 2:
        values = {title: _figures(sheet, title) for title in kept}
        digits = {title: _digits(values[title]) for title in kept}
        table = np.array([[np.nan if x is None else float(x) for x in values[title]] for title in kept])
        found = next(
            ((i, what) for i in reversed(range(len(kept))) if (what := _is_computed(table, i, digits, kept))),
            None,
        )
        if found is None:
            break
        position, what = found
        title = kept.pop(position)
        sheet.drop_column("average-skipped", title, f"{what}: no benchmark, left out", severity="warning")
    return kept


def _is_computed(table: np.ndarray, position: int, digits: dict[str, int], titles: Sequence[str]) -> str:
    """What a column is of which others; empty when it is a benchmark of its own."""
    others = [i for i in range(len(table)) if i != position]
    own = table[position]
    complete = ~np.isnan(table[[position, *others]]).any(axis=0)
    if complete.sum() < LEAST_ROWS:
        return ""
    parts = table[others][:, complete]
    half = 0.5 * 10.0 ** -digits[titles[position]], 0.5 * 10.0 ** -max(digits[titles[i]] for i in others)
    if (np.ptp(parts, axis=0) <= 4 * sum(half)).any():
        return ""
    for name, computed, slack in (
        ("mean", parts.mean(axis=0), sum(half)),
        ("sum", parts.sum(axis=0), half[0] + len(others) * half[1]),
    ):
        if (np.abs(own[complete] - computed) <= slack * (1 + 1e-9)).all():
            return f"is the {name} of the other {len(others)} columns in all {complete.sum()} rows"
    return ""


def _figures(sheet: Sheet, title: str) -> list[Decimal | None]:
    """Figures of a column as written, None where there is none."""
    cells = dict(sheet.cells(title))
    return [_figure(cells.get(int(row), ""), sheet.decimal) for row in sheet.table.index]


def _figure(text: str, decimal: str) -> Decimal | None:
    if is_missing(text) or is_placeholder(text):
        return None
    try:
        return read_score(text, decimal).value
    except CellError:
        return None


def _digits(values: Sequence[Decimal | None]) -> int:
    """Most digits behind the point."""
    exponents = [value.as_tuple().exponent for value in values if value is not None]
    return max((-power for power in exponents if isinstance(power, int)), default=0)
