"""JSON as its standard has it: no NaN, no infinity, truth values as truth values."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["json_text", "plain"]

#: Names of what attributes of NetCDF files and numeric columns carry as 0 or 1; JSON knows true and false.
TRUTH_VALUES = ("converged", "simulated")


def plain(value: Any) -> Any:
    """Turn a value into what JSON knows; what is not finite becomes None.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"a": np.array([1.0, np.nan]), 2: (True, None)})
    {'a': [1.0, None], '2': [True, None]}
    >>> plain({"converged": 0, "draws": 1})
    {'converged': False, 'draws': 1}
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _truth(str(key), plain(entry)) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _truth(name: str, value: Any) -> Any:
    return bool(value) if name in TRUTH_VALUES and value in (0, 1) else value


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
