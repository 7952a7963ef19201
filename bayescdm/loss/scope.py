"""What a loss law was fitted to: it travels with the fit and is printed with every prediction."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from bayescdm.errors import Note, RequestError

__all__ = ["CHINCHILLA_SCOPE", "Scope", "architecture_not_stated"]

NOT_STATED = "not stated"


def architecture_not_stated(families: list[str]) -> str:
    """Say that the architecture is not stated, and what is known in its place.

    Parameters
    ----------
    families : list of str
        Names that users gave the families of their runs, which say nothing of what was trained.

    Returns
    -------
    str

    Examples
    --------
    >>> architecture_not_stated(["Falcon3", "Llama-3.2"])
    'not stated (families: Falcon3, Llama-3.2)'
    """
    return f"{NOT_STATED} ({'family' if len(families) == 1 else 'families'}: {', '.join(families)})"


@dataclass(frozen=True)
class Scope:
    """Metric, objective, data, architecture and range of the runs behind a loss law.

    Parameters
    ----------
    metric : str
        The quantity that is predicted, such as ``text loss``.
    objective : str
        What the training runs minimised.
    data_distribution : str
        What they were trained on.
    architecture : str
        What was trained.
    ranges : dict of str to (float, float)
        Smallest and largest value of each predictor (``params``, ``volume``, ``compute``), absolute counts.
    units : dict of str to str
        Unit of each predictor and of the metric.
    source : str
        Where the figures come from.

    Examples
    --------
    >>> bool(CHINCHILLA_SCOPE.extrapolates(params=7e9, volume=1.4e11))
    False
    >>> bool(CHINCHILLA_SCOPE.extrapolates(params=70e9, volume=1.4e12))
    True
    """

    metric: str
    objective: str = NOT_STATED
    data_distribution: str = NOT_STATED
    architecture: str = NOT_STATED
    ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    source: str = NOT_STATED

    def __str__(self) -> str:
        """Return the record as one line a field."""
        lines = [
            f"metric             {self.metric} ({self.units.get('metric', 'unit not stated')})",
            f"objective          {self.objective}",
            f"data distribution  {self.data_distribution}",
            f"architecture       {self.architecture}",
        ]
        for name, (low, high) in self.ranges.items():
            lines.append(f"range of {name:<10}{low:.4g} to {high:.4g} {self.units.get(name, '')}".rstrip())
        return "\n".join([*lines, f"source             {self.source}"])

    def states(self, name: str) -> bool:
        """Tell whether a field of words is known; of runs whose families alone are known it is not.

        Parameters
        ----------
        name : str
            Such as ``metric`` or ``architecture``.

        Returns
        -------
        bool
        """
        return not str(getattr(self, name)).startswith(NOT_STATED)

    def is_of_the_same_study(self, other: Scope) -> bool:
        """Tell whether another law is about the same thing, whatever range of it either was fitted to.

        Parameters
        ----------
        other : Scope

        Returns
        -------
        bool
        """
        return replace(self, ranges={}) == replace(other, ranges={})

    def extrapolates(self, **values: Any) -> np.ndarray:
        """Tell which points lie outside the range of the runs in any predictor.

        Parameters
        ----------
        **values : array
            Predictors by name, broadcast against each other; one without a range raises no flag. Inside the
            rectangle a point still needs validation: not every corner of it was tested.

        Returns
        -------
        ndarray of bool
        """
        outside = np.zeros(np.broadcast_shapes(*(np.shape(v) for v in values.values())), dtype=bool)
        for name, value in values.items():
            low, high = self.ranges.get(name, (-np.inf, np.inf))
            outside = outside | (np.asarray(value) < low) | (np.asarray(value) > high)
        return outside

    def with_ranges(self, predictors: pd.DataFrame) -> Scope:
        """Return the scope with the ranges of further predictors, which then raise flags as N and D do.

        Parameters
        ----------
        predictors : DataFrame, one column a predictor
            Their values at the runs.

        Returns
        -------
        Scope
        """
        seen = {str(name): (float(v.min()), float(v.max())) for name, v in predictors.items()}
        return replace(self, ranges={**self.ranges, **seen})

    def extrapolation_note(
        self, flags: np.ndarray, where: str | None = None, what: str = "points"
    ) -> tuple[Note, ...]:
        """Return a warning that counts the flagged points; empty when there are none.

        Parameters
        ----------
        flags : ndarray of bool
        where : str, optional
            What they lie outside of; the scope's ranges by default.
        what : str
            What was asked about, in the plural.

        Returns
        -------
        tuple of Note
        """
        if not np.any(flags):
            return ()
        ranges = ", ".join(f"{name} {low:.3g} to {high:.3g}" for name, (low, high) in self.ranges.items())
        outside = where or f"the fitted range ({ranges})"
        return (
            Note(
                "extrapolation",
                f"{np.sum(flags)} of {np.size(flags)} {what} lie outside {outside}",
                "warning",
            ),
        )

    def require(self, metric: str) -> None:
        """Refuse to answer for another metric than the fitted one.

        Parameters
        ----------
        metric : str
            What the user asks about.

        Raises
        ------
        RequestError
            When it is not this scope's metric; text loss does not predict the score of a VLM.
        """
        if metric.strip().casefold() != self.metric.casefold():
            known = [part for part in (self.objective, self.data_distribution) if part != NOT_STATED]
            about = f": this fit is of {' on '.join(known)}" if known else ""
            raise RequestError(
                f"'{metric}' cannot be read off a law of {self.metric}{about}. Fit that metric itself: "
                "`bayescdm fit` for the accuracy of a VLM, `bayescdm loss` for its own training loss."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Scope:
        """Restore a scope from :meth:`to_dict`, by way of JSON or not.

        Parameters
        ----------
        data : dict
        """
        ranges = {name: (float(low), float(high)) for name, (low, high) in data["ranges"].items()}
        return cls(**{**data, "ranges": ranges})


#: Hoffmann et al.: text only; the range their study states, not that of the points read off its figure.
CHINCHILLA_SCOPE = Scope(
    metric="text loss",
    objective="next-token cross-entropy of a text-only language model",
    data_distribution="MassiveText",
    architecture="dense decoder-only transformers of the Chinchilla study",
    ranges={"params": (70e6, 16e9), "volume": (5e9, 500e9)},
    units={"metric": "nats per token", "params": "parameters", "volume": "tokens"},
    source="Hoffmann et al. 2022 (arXiv 2203.15556)",
)
