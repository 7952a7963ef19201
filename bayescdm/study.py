"""The Study: three labelled tables, validated, in fractions and absolute counts.

A study is what a researcher brings: text scores of language models, what those models are, and the
vision-language runs built on some of them. Nothing downstream looks anything up by an unchecked code:
tables are joined by label, here, once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from bayescdm.errors import InputError, Note
from bayescdm.wording import counted

__all__ = ["VARIANTS", "Study", "Unscored", "decode_table", "encode_table"]

#: What becomes of runs on backbones without any text score.
Unscored = Literal["leave_out", "by_size"]

#: The two variants that the law contrasts (SPEC: Base/Instruct).
VARIANTS = ("base", "instruct")

BACKBONE_COLUMNS = ("family", "variant", "params", "active_params", "text_tokens", "source")
RUN_COLUMNS = (
    "recipe",
    "encoder",
    "vlm",
    "backbone",
    "volume",
    "benchmark",
    "n_benchmarks",
    "accuracy",
    "standard_error",
    "source",
)


@dataclass(frozen=True)
class Study:
    """Text scores, backbones and runs of one study.

    Parameters
    ----------
    name : str
        Shown in every table and report.
    text_scores : DataFrame, (backbone, benchmark)
        Text-benchmark scores as fractions; NaN means not measured. Indexed by backbone.
    backbones : DataFrame, (backbone, ...)
        ``family``, ``variant`` (``base`` or ``instruct``), ``params`` and ``active_params`` (absolute
        counts), ``text_tokens`` (absolute count), ``source``. Same index as `text_scores`.
    runs : DataFrame, one row a run
        ``recipe`` (what stays fixed while the volume changes, vision encoder included), ``encoder``,
        ``vlm``, ``backbone``, ``volume`` (in `volume_unit`; NaN = one but unknown), ``benchmark`` (a
        name, or ``average of n``), ``n_benchmarks``, ``accuracy`` (fraction), ``standard_error``
        (fraction, NaN when unknown), ``source``. Index: unique run labels.
    scores : DataFrame, optional
        The long table `runs` was averaged from: ``run``, ``benchmark``, ``score`` (fraction), ``source``.
    volume_unit : str
        ``samples`` or ``tokens``, or what the user stated.
    volume_ref : float, optional
        D_ref of the law; the geometric mean of the observed volumes when not given.
    notes : tuple of Note
        Every repair made while reading, every row dropped, every known oddity.
    simulated : bool
        Whether the runs were drawn from known parameters.
    truth : dict
        The known parameters of a simulated study (JSON-able); empty for real ones.
    unscored : {"leave_out", "by_size"}
        What becomes of runs on backbones without any text score: left out of the law (the default), or
        kept, with components that size and variant predict, and the spread which that leaves.
    settings : dict
        How the files were read: column map, units, benchmark set, recipe columns (JSON-able).
    """

    name: str
    text_scores: pd.DataFrame
    backbones: pd.DataFrame
    runs: pd.DataFrame
    scores: pd.DataFrame | None = None
    volume_unit: str = "samples"
    volume_ref: float | None = None
    notes: tuple[Note, ...] = ()
    simulated: bool = False
    truth: dict[str, Any] = field(default_factory=dict)
    unscored: Unscored = "leave_out"
    settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check labels, ranges and joins; collect all problems before raising."""
        problems = _problems(self.text_scores, self.backbones, self.runs)
        if problems:
            raise InputError(problems)
        if self.volume_ref is None and len(self.runs):
            object.__setattr__(self, "volume_ref", geometric_mean(self.runs["volume"]))

    @property
    def families(self) -> list[str]:
        """Families of all backbones, sorted."""
        return sorted(self.backbones["family"].unique())

    @property
    def recipes(self) -> list[str]:
        """Recipes of all runs, sorted."""
        return sorted(self.runs["recipe"].unique())

    @property
    def scored(self) -> pd.Index:
        """Backbones with at least one text score: those that have a capability."""
        return self.text_scores.index[self.text_scores.notna().any(axis=1)]

    @property
    def placed_by_size(self) -> pd.Index:
        """Backbones without text scores that `unscored` lets stand in the law by their size."""
        if self.unscored == "leave_out":
            return self.text_scores.index[:0]
        unscored = self.text_scores.index.difference(self.scored)
        return unscored[self.backbones.loc[unscored, "params"].notna()]

    @property
    def placed(self) -> pd.Index:
        """Backbones that have a capability, by their text scores or by their size."""
        return self.scored.union(self.placed_by_size)

    @property
    def fitted_runs(self) -> pd.DataFrame:
        """Runs whose backbone has a capability: the rows that inform the law."""
        return self.runs[self.runs["backbone"].isin(self.placed)]

    @property
    def sources(self) -> list[str]:
        """Where scores, runs and backbones come from, each source once."""
        tables = (self.runs if self.scores is None else self.scores, self.runs, self.backbones)
        cited = [text for table in tables if "source" in table for text in table["source"].dropna()]
        parts = [part.strip() for text in dict.fromkeys(cited) for part in str(text).split("; ")]
        return [part for part in dict.fromkeys(parts) if part]

    @property
    def candidates(self) -> pd.Index:
        """Scored backbones that no run uses."""
        return self.scored[~self.scored.isin(self.runs["backbone"])]

    def select_runs(self, keep: pd.Series | np.ndarray | Iterable[Any]) -> Study:
        """Return the study with a subset of its runs.

        Parameters
        ----------
        keep : boolean mask over runs, or run labels

        Returns
        -------
        Study
        """
        runs = self.runs.loc[keep]
        scores = self.scores
        if scores is not None:
            scores = scores[scores["run"].isin(runs.index)]
        return replace(self, runs=runs, scores=scores)

    def with_notes(self, *notes: Note) -> Study:
        """Return the study with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def unscored_notes(self) -> tuple[Note, ...]:
        """Say which runs cannot inform the law because their backbone has no text score.

        Returns
        -------
        tuple of Note
            Code ``no-text-scores``; empty when every run has a scored backbone.
        """
        unscored = self.runs.drop(self.fitted_runs.index)
        if unscored.empty:
            return ()
        backbones = sorted(unscored["backbone"].unique())
        message = (
            f"{len(unscored)} of {counted(len(self.runs), 'run')} stand on "
            f"{counted(len(backbones), 'backbone')} without text scores and do not "
            f"inform the law: {', '.join(backbones)}"
        )
        return (Note("no-text-scores", message, "warning", "runs"),)

    def with_unscored(self, unscored: Unscored) -> Study:
        """Return the study with another treatment of backbones without text scores.

        Parameters
        ----------
        unscored : {"leave_out", "by_size"}

        Returns
        -------
        Study
        """
        return replace(self, unscored=unscored)

    def with_text_scores(self, text_scores: pd.DataFrame, *notes: Note) -> Study:
        """Return the study with other text scores (same labels) and notes that say why."""
        return replace(self, text_scores=text_scores, notes=(*self.notes, *notes))

    def to_dict(self) -> dict[str, Any]:
        """Return the study as JSON-able data; :meth:`from_dict` restores it to the bit."""
        tables = {
            name: None if table is None else encode_table(table)
            for name, table in ((name, getattr(self, name)) for name in _TABLES)
        }
        plain = ("name", "volume_unit", "volume_ref", "simulated", "truth", "unscored", "settings")
        return {
            **tables,
            **{name: getattr(self, name) for name in plain},
            "notes": [note.to_dict() for note in self.notes],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Study:
        """Restore a study from :meth:`to_dict`.

        Parameters
        ----------
        data : dict

        Raises
        ------
        InputError
            If the tables break the study's contract.
        """
        fields: dict[str, Any] = {name: value for name, value in data.items() if name != "notes"}
        for name in _TABLES:
            fields[name] = None if data[name] is None else decode_table(data[name])
        return cls(**fields, notes=tuple(Note(**note) for note in data["notes"]))


_TABLES = ("text_scores", "backbones", "runs", "scores")


def encode_table(table: pd.DataFrame) -> dict[str, Any]:
    """Turn a table into plain lists with a stated type a column.

    Parameters
    ----------
    table : DataFrame
        Its index labels become text.

    Returns
    -------
    dict
        JSON-able: floats survive to the bit, NaN becomes null. Whole numbers with gaps become floats; what
        is neither number nor truth value (categories, dates) becomes text.
    """
    columns = {str(name): _encode_column(table[name]) for name in table.columns}
    return {
        "index": [str(label) for label in table.index],
        "index_name": table.index.name,
        "columns": columns,
    }


def _encode_column(column: pd.Series) -> dict[str, Any]:
    """Plain values and the kind of a column, whatever pandas type they have."""
    kind = {"f": "f", "i": "i", "u": "i", "b": "b"}.get(column.dtype.kind, "O")
    known = column.notna()
    if kind == "i" and not known.all():
        kind = "f"
    if kind == "b" and not known.all():
        kind = "O"
    plain = {"f": float, "i": int, "b": bool, "O": str}[kind]
    return {"kind": kind, "values": [plain(value) if here else None for value, here in zip(column, known)]}


def decode_table(data: dict[str, Any]) -> pd.DataFrame:
    """Restore a table from :func:`encode_table`.

    Parameters
    ----------
    data : dict

    Returns
    -------
    DataFrame
    """
    kinds = {"f": "float64", "i": "int64", "b": "bool"}
    index = pd.Index(data["index"], name=data["index_name"], dtype="str")
    columns = {
        name: pd.Series(
            [np.nan if value is None and column["kind"] == "f" else value for value in column["values"]],
            index=index,
            dtype=kinds.get(column["kind"], "str"),
        )
        for name, column in data["columns"].items()
    }
    return pd.DataFrame(columns, index=index)


def geometric_mean(volumes: pd.Series) -> float:
    """Geometric mean of the known volumes; 1 when none is known.

    Parameters
    ----------
    volumes : Series
        In the study's unit; NaN where unknown.

    Returns
    -------
    float
    """
    known = volumes.dropna()
    return float(np.exp(np.log(known).mean())) if len(known) else 1.0


def _problems(text_scores: pd.DataFrame, backbones: pd.DataFrame, runs: pd.DataFrame) -> list[str]:
    """Every broken contract of the three tables, one line each."""
    found = []
    for name, table in (("text scores", text_scores), ("backbones", backbones), ("runs", runs)):
        for label in table.index[table.index.duplicated()].unique():
            found.append(f"{name}: '{label}' occurs more than once")
    missing = [c for c in ("family", "variant", "params") if c not in backbones]
    found += [f"backbones: column '{c}' is missing" for c in missing]
    missing = [c for c in ("recipe", "backbone", "volume", "accuracy") if c not in runs]
    found += [f"runs: column '{c}' is missing" for c in missing]
    if found:
        return found
    for label in text_scores.index.symmetric_difference(backbones.index):
        found.append(f"backbone '{label}' stands in only one of the tables text scores and backbones")
    for label, variant in backbones["variant"].items():
        if variant not in VARIANTS:
            found.append(f"backbones: variant '{variant}' of '{label}' is neither 'base' nor 'instruct'")
    outside = text_scores.stack()
    for (backbone, benchmark), value in outside[(outside < 0) | (outside > 1)].items():
        found.append(f"text scores: {backbone}, {benchmark}: {value:g} is not a fraction between 0 and 1")
    for label, run in runs.iterrows():
        if run["backbone"] not in backbones.index:
            found.append(f"run '{label}': backbone '{run['backbone']}' is not among the backbones")
        if not 0 <= run["accuracy"] <= 1:
            found.append(f"run '{label}': accuracy {run['accuracy']:g} is not a fraction between 0 and 1")
        if not (np.isnan(run["volume"]) or 0 < run["volume"] < np.inf):
            found.append(f"run '{label}': volume {run['volume']:g} is not a positive number")
    return found
