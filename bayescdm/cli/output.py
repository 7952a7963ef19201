"""Output of commands: JSON alone on stdout, tables for readers, CSV files."""

from __future__ import annotations

import json
import math
from typing import Any

import typer

__all__ = ["print_json"]


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout; what is not finite becomes null."""
    typer.echo(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    """Plain Python values without NaN or infinity, which JSON does not know."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
