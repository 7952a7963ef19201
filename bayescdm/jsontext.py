"""JSON as its standard has it: no NaN, no infinity, truth values as truth values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["facts_in_json", "json_text", "plain"]

#: Facts that NetCDF attributes carry as 0 or 1, since they know no truth values.
TRUTH_VALUES = ("converged", "simulated")


def plain(value: Any) -> Any:
    """Turn a value into what JSON knows; what is not finite becomes None.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.array([1.0, np.nan]), 2: (True, None)})
    {'a': [1.0, None], '2': [True, None]}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def json_text(value: Any, *, ascii_only: bool = False) -> str:
    """Write a value as strict JSON, indented.

    Parameters
    ----------
    value : Any
        Plain values, arrays, and mappings and lists of them.
    ascii_only : bool
        Escape all other letters.

    Returns
    -------
    str
    """
    return json.dumps(plain(value), indent=2, ensure_ascii=ascii_only, allow_nan=False)


def facts_in_json(facts: Mapping[Any, Any]) -> dict[str, Any]:
    """Return facts about a table with its truth values as truth values.

    Examples
    --------
    >>> facts_in_json({"converged": 0, "prob": 0.9})
    {'converged': False, 'prob': 0.9}
    """
    return {str(key): bool(value) if key in TRUTH_VALUES else value for key, value in facts.items()}
