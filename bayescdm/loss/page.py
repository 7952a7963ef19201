"""The allocation explorer: one self-contained page, with the law and its draws inside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bayescdm.atomic import replacing
from bayescdm.errors import RequestError
from bayescdm.intervals import check_probability
from bayescdm.loss.allocate import SERVING, ComputeLaw

__all__ = ["explorer_page", "write_explorer"]

TEMPLATE = Path(__file__).with_name("explorer.html")
#: Draws that a page carries; quantiles of 90 % intervals need no more, and a slider must stay fluid.
DRAWS = 200
CONSTANTS = ("A", "B", "E", "alpha", "beta")


def explorer_page(laws: Sequence[ComputeLaw], *, prob: float = 0.9) -> str:
    """Return the explorer as HTML.

    Parameters
    ----------
    laws : sequence of ComputeLaw
        Offered in this order; of one scope.
    prob : float
        Probability of the intervals.

    Returns
    -------
    str
        A page that loads nothing: script, style, constants and draws are inside.

    Raises
    ------
    RequestError
        No law, or laws of different scopes, which one page must not mix.

    Examples
    --------
    >>> from bayescdm.loss.allocate import preset
    >>> "406.4" in explorer_page([preset()])
    True
    """
    if not laws or any(law.scope != laws[0].scope for law in laws):
        raise RequestError("an explorer needs one law or more, all of one scope")
    data = {
        "prob": check_probability(prob),
        "scope": laws[0].scope.to_dict(),
        "serving": SERVING.message,
        "laws": [_encoded(law) for law in laws],
    }
    # "<" as an escape keeps any text in the data from ending the script element.
    encoded = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return TEMPLATE.read_text(encoding="utf-8").replace("/*DATA*/", encoded)


def write_explorer(
    path: str | Path, laws: Sequence[ComputeLaw], *, prob: float = 0.9, overwrite: bool = False
) -> Path:
    """Write the explorer to a file, atomically.

    Parameters
    ----------
    path : str or Path
    laws, prob
        As for `explorer_page`.
    overwrite : bool
        Replace an existing file.

    Returns
    -------
    Path

    Raises
    ------
    RequestError
        As for `explorer_page`, or the file exists and `overwrite` is false.
    """
    page = explorer_page(laws, prob=prob)
    with replacing(path, overwrite=overwrite) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    return Path(path)


def _encoded(law: ComputeLaw) -> dict[str, object]:
    """Constants of evenly spaced draws, and what the reader must know."""
    which = np.unique(np.linspace(0, len(law.A) - 1, min(DRAWS, len(law.A))).astype(int))
    draws = [{name: float(getattr(law, name)[i]) for name in CONSTANTS} for i in which]
    notes = [note.message for note in law.notes]
    return {"name": law.name, "draws": draws, "notes": notes}
