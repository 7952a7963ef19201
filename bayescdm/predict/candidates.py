"""Which backbones are asked about: names of the study, or a table of candidates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayescdm.errors import NotFoundError, RequestError, unknown_name
from bayescdm.predict.law import LawDraws
from bayescdm.reading.candidates import SCORE_TOLERANCE, UNKNOWN
from bayescdm.study import VARIANTS

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = [
    "CandidateTable",
    "Candidates",
    "Described",
    "candidate_table",
    "check_once",
    "describe",
    "missing_benchmarks",
]

#: Text scores (backbone × benchmark) and backbones (family, variant, params), as two frames of one index.
CandidateTable = tuple[pd.DataFrame, pd.DataFrame]
Candidates = CandidateTable | Sequence[str] | None


@dataclass(frozen=True)
class Described:
    """Labels and text components of the backbones asked about, each once.

    Attributes
    ----------
    labels : DataFrame, (backbone, ...)
        ``family``, ``variant`` (both NaN where unknown), ``params``.
    components : DataFrame, (backbone, component)
    covariance : ndarray, (backbone, component, component)
        What missing text scores leave open of the components.
    order : ndarray of int, (row,)
        Position of the backbone that each row asks about; a name may be asked about more than once.
    """

    labels: pd.DataFrame
    components: pd.DataFrame
    covariance: np.ndarray
    order: np.ndarray

    def rows(self, rows: slice) -> Described:
        """Return some of the backbones, each in one row."""
        labels = self.labels.iloc[rows]
        return Described(labels, self.components.iloc[rows], self.covariance[rows], np.arange(len(labels)))


def describe(fit: Fit, law: LawDraws, candidates: Candidates) -> Described:
    """Look up or check the backbones asked about, in the order asked.

    Parameters
    ----------
    fit : Fit
    law : LawDraws
    candidates : list of str, or pair of DataFrames, optional
        Names of scored backbones of the study, or a candidate table; all scored backbones by default.

    Raises
    ------
    NotFoundError
        A name or a text benchmark is not known.
    RequestError
        Nothing is asked for, two rows of one name differ, a backbone has no text scores, a variant is
        neither base nor instruct, or a row contradicts what the fit has used for that name.
    """
    text_scores, backbones, order = _each_once(*candidate_table(fit, candidates))
    # A backbone that the fit has placed by its size has a capability without scores.
    placed = text_scores.index.intersection(fit.study.placed_by_size)
    unscored = text_scores.index[text_scores.isna().all(axis=1)].difference(placed)
    if len(unscored):
        names = ", ".join(f"'{name}'" for name in unscored)
        raise RequestError(f"no text scores, so no capability: {names}; give scores or leave them out")
    labels = pd.DataFrame(
        {
            "family": _column(backbones, "family", object),
            "variant": _column(backbones, "variant", object),
            "params": _column(backbones, "params", float),
        },
        index=backbones.index,
    )
    for name, variant in labels["variant"].dropna().items():
        if variant not in VARIANTS:
            raise RequestError(
                f"variant '{variant}' of '{name}' is neither 'base' nor 'instruct'; leave it empty if unknown"
            )
    fitted = labels.index[law.positions("backbone", labels.index) >= 0]
    _check_agreement(fit, text_scores.loc[fitted], labels.loc[fitted])
    labels.loc[fitted] = fit.study.backbones.loc[fitted, list(labels.columns)].astype(labels.dtypes)
    return Described(labels, *_components(fit, text_scores, placed), order)


def _components(fit: Fit, text_scores: pd.DataFrame, placed: pd.Index) -> tuple[pd.DataFrame, np.ndarray]:
    """Components from text scores, and the fit's own of backbones that it has placed by size."""
    if placed.empty:
        return fit.capability.project(text_scores)
    known = fit.capability.scores.loc[placed]
    given = text_scores.drop(placed)
    covariance = fit.capability.covariance[fit.capability.scores.index.get_indexer(placed)]
    if len(given):
        projected, spread = fit.capability.project(given)
        known, covariance = pd.concat([known, projected]), np.concatenate([covariance, spread])
    order = known.index.get_indexer(text_scores.index)
    return known.iloc[order], covariance[order]


def candidate_table(fit: Fit, candidates: Candidates) -> CandidateTable:
    """Look up text scores and labels of what is asked, in the study or as given.

    Parameters
    ----------
    fit : Fit
    candidates : list of str, or pair of DataFrames, optional
        As for `describe`.

    Returns
    -------
    text_scores : DataFrame, (row, benchmark)
    backbones : DataFrame, (row, ...)

    Raises
    ------
    NotFoundError
        A name is not known.
    RequestError
        Nothing is asked for, or the two tables do not list the same backbones.
    """
    study = fit.study
    if isinstance(candidates, tuple) and all(isinstance(part, pd.DataFrame) for part in candidates):
        text_scores, backbones = candidates
        if not text_scores.index.equals(backbones.index):
            raise RequestError("the two candidate tables do not list the same backbones in the same order")
        _check_any(backbones.index)
        return text_scores, backbones
    names = study.scored if candidates is None else _names(candidates)
    _check_any(names)
    unknown = names[~names.isin(study.backbones.index)]
    if len(unknown):
        lines = (str(unknown_name("backbone", name, study.backbones.index)) for name in unknown.unique())
        raise NotFoundError("\n".join(lines))
    return study.text_scores.loc[names], study.backbones.loc[names]


def missing_benchmarks(fit: Fit, text_scores: pd.DataFrame) -> dict[str, list[str]]:
    """Text benchmarks without a score, by candidate; of fitted backbones what the fit has not seen either.

    Parameters
    ----------
    fit : Fit
    text_scores : DataFrame, (backbone, benchmark)

    Returns
    -------
    dict of str to list of str
    """
    fitted = set(LawDraws.of(fit, 1).labels["backbone"])
    every = fit.capability.benchmarks
    known = fit.study.text_scores.reindex(columns=every)
    given = text_scores.reindex(columns=every)
    rows = {name: (known if name in fitted else given).loc[name] for name in text_scores.index}
    return {str(name): [str(b) for b in every[row.isna().to_numpy()]] for name, row in rows.items()}


def _names(candidates: Any) -> pd.Index:
    names = [candidates] if isinstance(candidates, str) else [str(name) for name in candidates]
    return pd.Index(names, dtype="str")


def _check_any(names: pd.Index) -> None:
    if names.empty:
        raise RequestError("no backbone asked for; give at least one candidate")


def _each_once(
    text_scores: pd.DataFrame, backbones: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    """Return each backbone once, and which one every row asks about; rows of one name must not differ."""
    names = text_scores.index
    once = names.unique()
    order = once.get_indexer(names)
    if len(once) == len(names):
        return text_scores, backbones, order
    labels = {name: _column(backbones, name, object).to_numpy() for name in ("family", "variant", "params")}
    rows = text_scores.assign(**labels, backbone=names)
    distinct = names[~rows.duplicated().to_numpy()]
    if distinct.has_duplicates:
        twice = ", ".join(f"'{name}'" for name in distinct[distinct.duplicated()].unique())
        raise RequestError(f"rows of one name differ: {twice}; give each backbone a name of its own")
    first = ~names.duplicated()
    return text_scores[first], backbones[first], order


def check_once(names: pd.Index) -> None:
    """Refuse a name that stands twice where backbones are compared with each other.

    Parameters
    ----------
    names : Index

    Raises
    ------
    RequestError
        Lists every such name.
    """
    if names.has_duplicates:
        twice = ", ".join(f"'{name}'" for name in names[names.duplicated()].unique())
        raise RequestError(f"asked for more than once: {twice}; compare each backbone once")


def _column(backbones: pd.DataFrame, name: str, dtype: Any) -> pd.Series:
    """Return a column; an absent column, empty cells and the reader's word for them are missing."""
    if name not in backbones:
        return pd.Series(np.nan, index=backbones.index, dtype=dtype)
    column = backbones[name].astype(object)
    return column.where(column.notna() & ~column.isin(["", UNKNOWN]), np.nan).astype(dtype)


def _check_agreement(fit: Fit, text_scores: pd.DataFrame, labels: pd.DataFrame) -> None:
    """Refuse a row that bears the name of a fitted backbone but is another: its draws would mislead."""
    problems = []
    for name in labels.index:
        for column in ("family", "variant"):
            given, used = labels.at[name, column], fit.study.backbones.at[name, column]
            if pd.notna(given) and given != used:
                problems.append(f"'{name}': {column} '{given}', in the fit '{used}'")
        given = text_scores.loc[name].dropna()
        used = fit.study.text_scores.loc[name].reindex(given.index)
        for benchmark in given.index[~np.isclose(given, used, rtol=0, atol=SCORE_TOLERANCE)]:
            problems.append(f"'{name}': {benchmark} {given[benchmark]:g}, in the fit {used[benchmark]:g}")
    if problems:
        hint = "; rename the candidate, or refit with these figures"
        raise RequestError("\n".join(problem + hint for problem in problems))
