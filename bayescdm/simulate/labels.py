"""Labelled values as plain dictionaries, which JSON can hold."""

from __future__ import annotations

import numpy as np
import pandas as pd

from bayescdm.errors import unknown_name

__all__ = ["labelled", "look_up"]


def labelled(labels: pd.Index, values: np.ndarray) -> dict[str, float]:
    """Label → value, JSON-able."""
    return dict(zip(map(str, labels), np.asarray(values, float).tolist(), strict=True))


def look_up(values: dict[str, float], labels: pd.Index, kind: str) -> np.ndarray:
    """Values of labels, which must all be known."""
    for label in labels.unique():
        if label not in values:
            raise unknown_name(kind, str(label), values)
    return labels.map(values).to_numpy(float)
