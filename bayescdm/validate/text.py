"""Validations as text for a terminal, in points of accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

if TYPE_CHECKING:
    from bayescdm.validate.validation import Validation

__all__ = ["aligned", "describe_validation", "score_cells"]

WHAT = {
    "family": "one family left out",
    "recipe": "one recipe left out",
    "backbone": "one backbone left out",
    "size": "large models left out",
    "holdout": "named backbones left out",
}


def describe_validation(validation: Validation) -> str:
    """Scores of every fold and of all of them, with what they mean and what limits them.

    Parameters
    ----------
    validation : Validation

    Returns
    -------
    str
    """
    kind = "simulated study" if validation.simulated else "study"
    heading = f"{validation.model} on {kind} {validation.study}: {WHAT[validation.by]}, by exact refits"
    rows = [{"held out": str(fold.pop("fold")), **score_cells(fold)} for fold in _records(validation.folds)]
    if len(rows) > 1:
        rows.append({"held out": "all", **score_cells(validation.scores)})
    legend = (
        "points of accuracy: MAE of the median, CRPS, width of the 80 % run interval; coverage in %; elpd in "
        "nats, pointwise sum and joint; beyond S: sds beyond the capabilities fitted"
    )
    notes = [str(note) for note in validation.notes]
    return "\n".join([heading, "", *aligned(rows), "", legend, *notes])


def score_cells(scores: Mapping[str, Any]) -> dict[str, str]:
    """Scores as cells of a table for readers.

    Parameters
    ----------
    scores : mapping of str to float
        As `Validation.scores`.

    Returns
    -------
    dict of str to str
    """
    cells = {
        "runs": f"{scores['evaluable']:.0f} of {scores['runs']:.0f}",
        "MAE": _points(scores["mae"]),
        "CRPS": _points(scores["crps"]),
        "elpd": _number(scores["elpd"], 1),
        "joint": _number(scores["elpd_joint"], 1),
    }
    for prob in (50, 80, 95):
        cells[f"in {prob} %"] = _number(100 * scores[f"coverage_{prob}"], 0)
    cells["width"] = _points(scores["width_80"])
    cells["beyond S"] = _number(scores["capability_distance"], 1)
    if "max_r_hat" in scores:
        cells["R-hat"] = _number(scores["max_r_hat"], 3)
    return cells


def aligned(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Lines of a table with its first column flush left and the others flush right.

    Parameters
    ----------
    rows : sequence of mapping of str to str
        Columns are those of the first row; a cell that a row lacks is empty.

    Returns
    -------
    list of str
        Heading first.

    Examples
    --------
    >>> aligned([{"name": "a", "score": "1.5"}, {"name": "long", "score": "10.0"}])
    ['name  score', 'a       1.5', 'long   10.0']
    """
    columns = list(rows[0])
    table = [columns, *([row.get(name, "") for name in columns] for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(columns))]
    return [
        "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:]))])
        for line in table
    ]


def _records(folds: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in folds.to_dict("records")]


def _points(fraction: float) -> str:
    return _number(100 * fraction, 2)


def _number(value: float, decimals: int) -> str:
    """A number, or a dash where there is none."""
    return "–" if pd.isna(value) else f"{value:.{decimals}f}"
