"""The LossStudy: training runs and the losses logged on their way, in absolute counts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from bayescdm.errors import InputError, Note
from bayescdm.loss.scope import Scope
from bayescdm.study import decode_table, encode_table

__all__ = ["LossStudy"]

#: Below this no language model and no training set is meant: the user left out a "B" or an "M".
SMALLEST_PARAMS = 1e5
SMALLEST_VOLUME = 1e3


@dataclass(frozen=True)
class LossStudy:
    """Training runs, their logged losses and what both describe.

    Parameters
    ----------
    name : str
        Shown in tables and plots.
    runs : DataFrame, (run, ...)
        ``family`` and ``params`` (an absolute count), ``backbone`` where it is known. Indexed by run.
    points : DataFrame, one row a logged loss
        ``run``, ``volume`` (tokens or samples seen so far, an absolute count), ``loss``; ``step`` if logged.
    scope : Scope
        Metric, objective, data, architecture, ranges and units.
    components : DataFrame, (run, component), optional
        Capability components Z of each run's backbone; needed by the capability law.
    notes : tuple of Note
        Every repair and every step of preparation.
    simulated : bool
        Whether the losses were drawn from known parameters.
    truth : dict
        The known parameters of a simulated study.

    Raises
    ------
    InputError
        Listing every unknown run, every count that is not absolute and every loss that is not positive.
    """

    name: str
    runs: pd.DataFrame
    points: pd.DataFrame
    scope: Scope
    components: pd.DataFrame | None = None
    notes: tuple[Note, ...] = ()
    simulated: bool = False
    truth: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check labels and counts; collect all problems before raising."""
        problems = _problems(self.runs, self.points, self.components)
        if problems:
            raise InputError(problems)

    @property
    def families(self) -> list[str]:
        """Families in order of appearance."""
        return list(dict.fromkeys(self.runs["family"]))

    @property
    def run_of_point(self) -> np.ndarray:
        """Position of each point's run in `runs`, shape (point,)."""
        return self.runs.index.get_indexer(self.points["run"])

    @property
    def family_of_point(self) -> np.ndarray:
        """Position of each point's family in `families`, shape (point,)."""
        return pd.Index(self.families).get_indexer(self.runs["family"])[self.run_of_point]

    @property
    def params(self) -> np.ndarray:
        """N of each point, shape (point,)."""
        return self.runs["params"].to_numpy(dtype=float)[self.run_of_point]

    @property
    def volume(self) -> np.ndarray:
        """D of each point, shape (point,)."""
        return self.points["volume"].to_numpy(dtype=float)

    @property
    def loss(self) -> np.ndarray:
        """Loss of each point, shape (point,)."""
        return self.points["loss"].to_numpy(dtype=float)

    @property
    def params_ref(self) -> float:
        """Geometric mean of N over the points: where the models place their reference loss."""
        return float(np.exp(np.log(self.params).mean()))

    @property
    def volume_ref(self) -> float:
        """Geometric mean of D over the points."""
        return float(np.exp(np.log(self.volume).mean()))

    @property
    def repeated(self) -> bool:
        """Whether any run has several points, which are then not independent."""
        return bool(self.points["run"].duplicated().any())

    @property
    def component_scores(self) -> np.ndarray:
        """Capability components of each run's backbone, shape (run, component).

        Raises
        ------
        InputError
            When the study has none.
        """
        if self.components is None:
            raise InputError(
                f"{self.name}: the capability law needs the components of each run's backbone; "
                "give text scores, or fit the compute law"
            )
        return self.components.loc[self.runs.index].to_numpy(dtype=float)

    def select_points(self, keep: np.ndarray, *notes: Note) -> LossStudy:
        """Return the study with a subset of its points and the runs that still have any.

        Parameters
        ----------
        keep : ndarray of bool, shape (point,)
        *notes : Note
            Why points were dropped.

        Returns
        -------
        LossStudy
        """
        points = self.points[keep]
        runs = self.runs[self.runs.index.isin(points["run"])]
        components = None if self.components is None else self.components.loc[runs.index]
        return replace(self, points=points, runs=runs, components=components, notes=(*self.notes, *notes))

    def select_runs(self, runs: pd.Index | list[str]) -> LossStudy:
        """Return the study with only these runs.

        Parameters
        ----------
        runs : list of str
            Labels.

        Returns
        -------
        LossStudy
        """
        return self.select_points(self.points["run"].isin(runs).to_numpy())

    def to_dict(self) -> dict[str, Any]:
        """Return the study as JSON-able values; see :meth:`from_dict`."""
        return {
            "name": self.name,
            "runs": encode_table(self.runs),
            "points": encode_table(self.points),
            "scope": self.scope.to_dict(),
            "components": None if self.components is None else encode_table(self.components),
            "notes": [note.to_dict() for note in self.notes],
            "simulated": self.simulated,
            "truth": self.truth,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LossStudy:
        """Restore a study from :meth:`to_dict`.

        Parameters
        ----------
        data : dict

        Raises
        ------
        InputError
            If the tables break the study's contract.
        """
        components = data["components"]
        return cls(
            name=data["name"],
            runs=decode_table(data["runs"]),
            points=decode_table(data["points"]).reset_index(drop=True),
            scope=Scope.from_dict(data["scope"]),
            components=None if components is None else decode_table(components),
            notes=tuple(Note(**note) for note in data["notes"]),
            simulated=data["simulated"],
            truth=data["truth"],
        )


def _problems(runs: pd.DataFrame, points: pd.DataFrame, components: pd.DataFrame | None) -> list[str]:
    """Every broken contract of the tables, one line each."""
    found = [f"run '{label}' occurs more than once" for label in runs.index[runs.index.duplicated()].unique()]
    found += [f"runs: column '{c}' is missing" for c in ("family", "params") if c not in runs]
    found += [f"points: column '{c}' is missing" for c in ("run", "volume", "loss") if c not in points]
    if found:
        return found
    if points.empty:
        return ["no logged loss is left: check the columns and the first step that is kept"]
    for label in points["run"][~points["run"].isin(runs.index)].unique():
        found.append(f"run '{label}' has losses but is not among the runs")
    if components is not None:
        for label in runs.index.difference(components.index):
            found.append(f"run '{label}' has no capability components: its backbone has no text scores")
    for label, params in runs["params"].items():
        if not SMALLEST_PARAMS <= params < np.inf:
            hint = f"; write {params:g}B or {params:g}e9 for {params:g} billion" if 0 < params < 1000 else ""
            found.append(f"run '{label}': params {params:g} is not an absolute count{hint}")
    for name, least in (("volume", SMALLEST_VOLUME), ("loss", 0.0)):
        values = points[name]
        for row, value in values[~((values > least) & (values < np.inf))].items():
            found.append(f"row {row} (run '{points['run'][row]}'): {name} {value:g} is not above {least:g}")
    return found
