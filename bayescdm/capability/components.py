"""Components of text scores: what they are, who is placed where, and how sure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd

from bayescdm.capability.filling import Estimate, conditionals, estimate_moments
from bayescdm.capability.placement import place_by_size
from bayescdm.errors import InputError, Note, NotFoundError, RequestError
from bayescdm.study import Study

Population = Literal["all", "with_runs"]


@dataclass(frozen=True)
class Capability:
    """Principal components of mean-centred text scores, with the scores of every scored backbone.

    Attributes
    ----------
    benchmarks : Index, (benchmark,)
        Text benchmarks, in the study's order.
    mean : ndarray, (benchmark,)
        Mean score over the reference population, a fraction.
    loadings : ndarray, (benchmark, component)
        Orthonormal γ. PC1 points towards higher scores; the others have their largest loading positive.
    explained : ndarray, (component,)
        Share of the variance of each retained component.
    variances : ndarray, (component,)
        Variance along each retained component (denominator n − 1), fraction².
    noise_variance : float
        σ² of probabilistic PCA, fraction²: the variance of a benchmark outside its signal.
    score_covariance : ndarray, (benchmark, benchmark)
        Covariance of the scores under probabilistic PCA, fraction²: what a missing score could be. Its rank
        is the number of components that stand above the noise, whatever K is.
    scores : DataFrame, (backbone, component)
        Z of every backbone with a text score, in units of the text scores; the conditional mean where
        scores are missing.
    covariance : ndarray, (backbone, component, component)
        Covariance of Z given the measured scores; 0 for backbones with every score.
    population : {"all", "with_runs"}
        Whose scores determine the components.
    fitted_on : Index, (backbone,)
        The reference population itself, after exclusions.
    notes : tuple of Note
        What the reader must know about population and missing scores.
    """

    benchmarks: pd.Index
    mean: np.ndarray
    loadings: np.ndarray
    explained: np.ndarray
    variances: np.ndarray
    noise_variance: float
    score_covariance: np.ndarray
    scores: pd.DataFrame
    covariance: np.ndarray
    population: Population
    fitted_on: pd.Index
    notes: tuple[Note, ...] = ()

    @property
    def components(self) -> list[str]:
        """Component labels PC1, PC2, …."""
        return component_labels(self.loadings.shape[1])

    @property
    def cumulative(self) -> np.ndarray:
        """Cumulative share of variance, (component,)."""
        return np.cumsum(self.explained)

    @property
    def incomplete(self) -> pd.Index:
        """Backbones whose component scores are uncertain because text scores are missing."""
        return self.scores.index[np.trace(self.covariance, axis1=1, axis2=2) > 0]

    def project(self, text_scores: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
        """Component scores of backbones, from whatever text scores they have.

        Parameters
        ----------
        text_scores : DataFrame, (backbone, benchmark)
            Fractions; NaN, or no column, where a benchmark was not measured. Row labels may repeat.

        Returns
        -------
        mean : DataFrame, (backbone, component)
            ``(X − mean) @ loadings`` for a complete row; otherwise its conditional mean under
            probabilistic PCA. Same rows in the same order.
        covariance : ndarray, (backbone, component, component)
            0 for a complete row, otherwise what the unseen benchmarks leave open.

        Raises
        ------
        NotFoundError
            A column is none of the benchmarks.
        InputError
            A score is not a fraction.
        RequestError
            A backbone has no score at all.

        Notes
        -----
        With C the covariance of the scores, the unseen scores given the seen ones are Normal with covariance
        C_uu − C_us C_ss⁻¹ C_su (Tipping and Bishop 1999, section 3.1).

        Examples
        --------
        >>> scores = pd.DataFrame({"x": [0.1, 0.2, 0.6], "y": [0.2, 0.3, 0.9]}, index=["a", "b", "c"])
        >>> capability = fit_components(scores, components=1)
        >>> mean, covariance = capability.project(pd.DataFrame({"x": [0.6]}, index=["new"]))
        >>> bool(mean.loc["new", "PC1"] > 0), bool(covariance[0, 0, 0] > 0)
        (True, True)
        """
        unknown = [str(c) for c in text_scores.columns if c not in self.benchmarks]
        if unknown:
            raise _not_found("text benchmark", unknown[0], self.benchmarks)
        table = text_scores.reindex(columns=self.benchmarks)
        values = table.to_numpy(dtype=float)
        _check_fractions(table, values)
        empty = np.isnan(values).all(axis=1)
        if empty.any():
            raise RequestError(
                f"backbone '{table.index[empty][0]}' has none of the {len(self.benchmarks)} text scores: "
                "without one it has no capability; give at least one score or leave it out"
            )
        filled = values.copy()
        K = self.loadings.shape[1]
        covariance = np.zeros((len(values), K, K))
        for rows, unseen, expected, conditional in conditionals(values, self.mean, self.score_covariance):
            filled[np.ix_(rows, unseen)] = expected
            part = self.loadings[unseen]
            covariance[rows] = part.T @ conditional @ part
        mean = pd.DataFrame(
            (filled - self.mean) @ self.loadings, index=table.index, columns=self.components, dtype=float
        )
        return mean, covariance

    def to_dict(self) -> dict[str, Any]:
        """Return every field as JSON-able lists and numbers; floats survive ``repr`` to the bit."""
        return {
            "benchmarks": [str(b) for b in self.benchmarks],
            "mean": self.mean.tolist(),
            "loadings": self.loadings.tolist(),
            "explained": self.explained.tolist(),
            "variances": self.variances.tolist(),
            "noise_variance": self.noise_variance,
            "score_covariance": self.score_covariance.tolist(),
            "backbones": [str(b) for b in self.scores.index],
            "scores": self.scores.to_numpy().tolist(),
            "covariance": self.covariance.tolist(),
            "population": self.population,
            "fitted_on": [str(b) for b in self.fitted_on],
            "notes": [note.to_dict() for note in self.notes],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Capability:
        """Rebuild what `to_dict` returned, bit for bit.

        Parameters
        ----------
        data : dict
            From `to_dict`, possibly by way of JSON.

        Returns
        -------
        Capability
        """
        loadings = np.array(data["loadings"], dtype=float)
        K = loadings.shape[1]
        backbones = pd.Index(data["backbones"], name="backbone")
        scores = np.array(data["scores"], dtype=float).reshape(len(backbones), K)
        return cls(
            benchmarks=pd.Index(data["benchmarks"], name="benchmark"),
            mean=np.array(data["mean"], dtype=float),
            loadings=loadings,
            explained=np.array(data["explained"], dtype=float),
            variances=np.array(data["variances"], dtype=float),
            noise_variance=float(data["noise_variance"]),
            score_covariance=np.array(data["score_covariance"], dtype=float),
            scores=pd.DataFrame(scores, index=backbones, columns=component_labels(K)),
            covariance=np.array(data["covariance"], dtype=float).reshape(len(backbones), K, K),
            population=data["population"],
            fitted_on=pd.Index(data["fitted_on"], name="backbone"),
            notes=tuple(Note(**note) for note in data["notes"]),
        )


def fit_capability(
    study: Study,
    *,
    components: int | None = None,
    variance: float = 0.95,
    population: Population = "all",
    exclude: Iterable[str] = (),
) -> Capability:
    """Fit the components of a study's text scores and score every backbone on them.

    Parameters
    ----------
    study : Study
    components : int, optional
        Number of components K; by default the fewest with at least `variance` of the variance.
    variance : float
        Share of the variance that K components must reach, in (0, 1].
    population : {"all", "with_runs"}
        Whether every scored backbone determines the components, or only those with runs. Backbones
        without scores never do; where the study says so they are placed by size (`place_by_size`).
    exclude : iterable of str
        Backbones that do not enter the population, though they are still scored: the refit of
        leave-one-family-out.

    Returns
    -------
    Capability

    Raises
    ------
    NotFoundError
        A backbone of `exclude` is not in the study.
    RequestError
        `components`, `variance` or `population` is out of range for these data.
    InputError
        Too few scores to tell a component: fewer than two backbones, an unmeasured or constant benchmark.

    Notes
    -----
    Section 2 of SPEC (*What Transfers from Text to Vision?*, arXiv 2608.00013, section 2.1.1):
    the benchmarks are centred, not scaled. Missing scores by probabilistic PCA (Tipping and Bishop 1999).

    Examples
    --------
    >>> scores = pd.DataFrame({"x": [0.1, 0.2, 0.6], "y": [0.2, 0.3, 0.9]}, index=["a", "b", "c"])
    >>> backbones = pd.DataFrame({"family": "f", "variant": "base", "params": 1e9}, index=scores.index)
    >>> runs = pd.DataFrame(columns=["recipe", "backbone", "volume", "accuracy"])
    >>> capability = fit_capability(Study("three", scores, backbones, runs))
    >>> capability.components
    ['PC1']
    """
    excluded = list(exclude)
    for label in excluded:
        if label not in study.text_scores.index:
            raise _not_found("backbone", label, study.text_scores.index)
    if population not in ("all", "with_runs"):
        raise RequestError(f"population '{population}' is neither 'all' nor 'with_runs'")
    scored = study.text_scores.loc[study.scored]
    members = scored.index
    if population == "with_runs":
        members = members[members.isin(study.runs["backbone"])]
    members = members[~members.isin(excluded)]
    fitted = fit_components(
        scored, components=components, variance=variance, members=members, population=population
    )
    if study.placed_by_size.empty:
        return fitted
    known = fitted.scores.loc[fitted.fitted_on]
    mean, covariance, note = place_by_size(known, study.backbones, study.placed_by_size)
    return replace(
        fitted,
        scores=pd.concat([fitted.scores, mean]).rename_axis("backbone"),
        covariance=np.concatenate([fitted.covariance, covariance]),
        notes=(*fitted.notes, note),
    )


def fit_components(
    text_scores: pd.DataFrame,
    *,
    components: int | None = None,
    variance: float = 0.95,
    members: pd.Index | None = None,
    population: Population = "all",
) -> Capability:
    """Fit components to the rows `members` of a table of text scores, and score all its rows.

    Parameters
    ----------
    text_scores : DataFrame, (backbone, benchmark)
        Fractions; NaN where not measured. Every row has at least one score.
    components, variance, population
        As in `fit_capability`.
    members : Index, optional
        Rows that determine the components; all by default.

    Returns
    -------
    Capability

    Raises
    ------
    InputError, RequestError
        As in `fit_capability`.
    """
    members = text_scores.index if members is None else members
    # A fixed order of rows and columns inside makes the result the same, to the bit, for any order outside.
    table = text_scores.loc[members].sort_index().sort_index(axis=1)
    values = table.to_numpy(dtype=float)
    _check_fractions(table, values)
    _check_information(table, values)
    most = min(len(table) - 1, table.shape[1])
    if components is not None and not 1 <= components <= most:
        raise RequestError(
            f"{components} components asked for: {len(table)} backbones and {table.shape[1]} text benchmarks "
            f"allow 1 to {most}"
        )
    if not 0 < variance <= 1:
        raise RequestError(f"share of variance {variance:g} is not in (0, 1]; the usual value is 0.95")
    found = estimate_moments(values, most)
    K = components or _fewest(found.eigenvalues, variance, most)
    loadings = _oriented(found.directions[:, :K])
    order = table.columns.get_indexer(text_scores.columns)
    unscored = Capability(
        benchmarks=pd.Index(text_scores.columns, name="benchmark"),
        mean=found.mean[order],
        loadings=loadings[order],
        explained=found.eigenvalues[:K] / found.eigenvalues.sum(),
        variances=found.eigenvalues[:K],
        noise_variance=found.noise_variance,
        score_covariance=found.covariance[np.ix_(order, order)],
        scores=pd.DataFrame(),
        covariance=np.empty(0),
        population=population,
        fitted_on=pd.Index(members, name="backbone"),
    )
    scores, covariance = unscored.project(text_scores)
    scores.index.name = "backbone"
    notes = _notes(unscored, values, found)
    return replace(unscored, scores=scores, covariance=covariance, notes=notes)


def component_labels(K: int) -> list[str]:
    """Labels PC1, PC2, … of K components."""
    return [f"PC{k + 1}" for k in range(K)]


def _fewest(eigenvalues: np.ndarray, variance: float, most: int) -> int:
    """Fewest components with at least `variance` of the total."""
    share = np.cumsum(eigenvalues) / eigenvalues.sum()
    # The last cumulative share can round to just below 1.
    return min(int(np.searchsorted(share, variance - 1e-12)) + 1, most)


def _oriented(directions: np.ndarray) -> np.ndarray:
    """Make signs deterministic: PC1 positive on the mean score, the others on their largest benchmark."""
    signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(directions.shape[1])])
    towards_mean = directions[:, 0].sum()
    if abs(towards_mean) > 1e-12:
        signs[0] = np.sign(towards_mean)
    return directions * signs


def _check_fractions(table: pd.DataFrame, values: np.ndarray) -> None:
    """Raise for every score outside [0, 1]."""
    outside = np.argwhere((values < 0) | (values > 1))
    if len(outside):
        raise InputError(
            [
                f"text scores: {table.index[m]}, {table.columns[i]}: {values[m, i]:g} is not a fraction "
                "between 0 and 1"
                for m, i in outside
            ]
        )


def _check_information(table: pd.DataFrame, values: np.ndarray) -> None:
    """Raise when the reference population cannot tell a component."""
    if table.shape[1] == 0:
        raise InputError("text scores: no benchmark column, so there is nothing to take components of")
    if len(table) < 2:
        raise InputError(
            f"text scores: the reference population has {len(table)} backbone(s) with scores; components "
            "need at least 2: add text scores, or use population 'all'"
        )
    problems = []
    for i, benchmark in enumerate(table.columns):
        known = values[~np.isnan(values[:, i]), i]
        if len(known) < 2:
            problems.append(
                f"text scores: '{benchmark}' is measured for {len(known)} backbone(s) of the reference "
                "population; drop the column or add scores"
            )
        elif known.min() == known.max():
            problems.append(
                f"text scores: '{benchmark}' is {known[0]:g} for every backbone of the reference population: "
                "a constant column tells nothing; drop it"
            )
    if problems:
        raise InputError(problems)


def _notes(capability: Capability, values: np.ndarray, found: Estimate) -> tuple[Note, ...]:
    """Population and missing scores, in words."""
    whose = "all scored backbones" if capability.population == "all" else "backbones with runs"
    K = capability.loadings.shape[1]
    notes = [
        Note(
            "reference-population",
            f"components of {len(values)} backbones ({whose}); K = {K} with "
            f"{capability.cumulative[-1]:.1%} of the variance",
        )
    ]
    unseen = np.isnan(values)
    if unseen.any():
        notes.append(
            Note(
                "missing-text-scores",
                f"{int(unseen.sum())} of {unseen.size} text scores are missing "
                f"({unseen.any(axis=1).sum()} backbones); probabilistic PCA fills them, with a covariance",
            )
        )
        n, T = values.shape
        exhausted = found.rank < T and unseen.sum() >= (n - 1 - found.rank) * (T - found.rank)
        if exhausted or not found.converged:
            notes.append(
                Note(
                    "too-few-text-scores",
                    f"{int(unseen.sum())} text scores are missing, too many for the {found.rank} "
                    f"components above the noise of {n} backbones: the components are unsure; add scores",
                    "warning",
                )
            )
    return tuple(notes)


def _not_found(kind: str, name: str, known: pd.Index) -> NotFoundError:
    """Error for an unknown name, with the nearest known ones."""
    near = difflib.get_close_matches(name, [str(k) for k in known], n=3, cutoff=0.4)
    hint = f"; nearest: {', '.join(near)}" if near else ""
    return NotFoundError(f"{kind} '{name}' is not known{hint}")
