"""The allocation explorer: one self-contained page, with the law and its draws inside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bayescdm.atomic import replacing
from bayescdm.errors import RequestError
from bayescdm.intervals import check_probability
from bayescdm.loss.allocate import CONSTANTS, SERVED, SERVING, ComputeLaw
from bayescdm.loss.scope import CHINCHILLA_SCOPE

__all__ = ["explorer_page", "write_explorer"]

TEMPLATE = Path(__file__).with_name("explorer.html")
#: Draws behind the band of the curve, where no digit is read off: a slider must stay fluid. Numbers use all.
DRAWS = 200


def explorer_page(
    laws: Sequence[ComputeLaw],
    *,
    flops: float = 1e21,
    tokens_served: float = 0.0,
    params: float | None = None,
    prob: float = 0.9,
) -> str:
    """Return the explorer as HTML.

    Parameters
    ----------
    laws : sequence of ComputeLaw
        Offered in this order; about one thing, each with the range that it was fitted to.
    flops, tokens_served : float
        Budget and tokens served that the page opens with.
    params : float, optional
        Model size that it opens with; the optimum by default.
    prob : float
        Probability of the intervals.

    Returns
    -------
    str
        A page that loads nothing: script, style, constants and draws are inside.

    Raises
    ------
    RequestError
        No law, or laws about different things, which one page must not mix.

    Examples
    --------
    >>> from bayescdm.loss.allocate import preset
    >>> "406.4" in explorer_page([preset()])
    True
    """
    if not laws or not all(law.scope.is_of_the_same_study(laws[0].scope) for law in laws):
        raise RequestError("an explorer needs one law or more, all of one scope (its ranges may differ)")
    data = {
        "prob": check_probability(prob),
        "scope": laws[0].scope.to_dict(),
        "start": {"flops": flops, "served": tokens_served, "params": params},
        "band": DRAWS,
        "text": laws[0].scope.metric == CHINCHILLA_SCOPE.metric,
        "serving": [SERVING.message, SERVED.message],
        "laws": [_encoded(law) for law in laws],
    }
    # "<" as an escape keeps any text in the data from ending the script element.
    encoded = json.dumps(data, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    return TEMPLATE.read_text(encoding="utf-8").replace("/*DATA*/", encoded)


def write_explorer(
    path: str | Path,
    laws: Sequence[ComputeLaw],
    *,
    flops: float = 1e21,
    tokens_served: float = 0.0,
    params: float | None = None,
    prob: float = 0.9,
    overwrite: bool = False,
) -> Path:
    """Write the explorer to a file, atomically.

    Parameters
    ----------
    path : str or Path
    laws, flops, tokens_served, params, prob
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
    page = explorer_page(laws, flops=flops, tokens_served=tokens_served, params=params, prob=prob)
    with replacing(path, overwrite=overwrite) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
    return Path(path)


def _encoded(law: ComputeLaw) -> dict[str, object]:
    """Constants of all draws, a list for each, and what the reader must know."""
    constants = {name: getattr(law, name).tolist() for name in CONSTANTS}
    problem = " ".join(note.message for note in law.notes if note.code == "not-converged")
    told = [note.message for note in law.notes if note.code != "not-converged"]
    ranges = law.scope.ranges
    return {"name": law.name, "constants": constants, "ranges": ranges, "notes": told, "problem": problem}
