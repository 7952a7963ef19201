"""A prediction of a loss law, which never goes anywhere without the scope of its fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from bayescdm.errors import Note
from bayescdm.loss.scope import Scope

__all__ = ["LossPrediction"]


@dataclass(frozen=True)
class LossPrediction:
    """Predicted values, what they are predictions of, and what limits them.

    Parameters
    ----------
    table : DataFrame, one row a point
        The predictors, ``loss`` (the scope's metric), intervals named by kind and probability where there are
        draws, and ``extrapolation``.
    scope : Scope
    notes : tuple of Note
    """

    table: pd.DataFrame
    scope: Scope
    notes: tuple[Note, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the draws that the prediction was read off can be trusted; a point fit has none."""
        return all(note.code != "not-converged" for note in self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Return predictions, convergence, scope and notes as plain values, for JSON."""
        return {
            "predictions": self.table.to_dict("records"),
            "converged": self.converged,
            "scope": self.scope.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }

    def __str__(self) -> str:
        """Return table, scope and notes as text."""
        # Draws cannot tell never from less than one in a thousand.
        probabilities = {
            name: lambda p: "<0.001" if p < 0.001 else ">0.999" if p > 0.999 else f"{p:.3f}"
            for name in self.table
            if str(name).startswith("p_")
        }
        table = self.table.to_string(
            index=False, float_format=lambda value: f"{value:.4g}", formatters=probabilities
        )
        return "\n".join([table, "", str(self.scope), *map(str, self.notes)])
