"""From single benchmark scores to one accuracy a run, over a benchmark set that compared runs share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from bayescdm.errors import InputError, Note, unknown_name
from bayescdm.study import RUN_COLUMNS

__all__ = ["average_runs"]

#: What must be the same in all scores of one run.
RUN_FIELDS = ("recipe", "encoder", "vlm", "backbone", "volume")


def average_runs(
    scores: pd.DataFrame,
    benchmarks: str | Sequence[str] = "average",
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> tuple[pd.DataFrame, tuple[Note, ...]]:
    """Average benchmark scores to one accuracy a run, over benchmarks that all runs of its recipe share.

    Parameters
    ----------
    scores : DataFrame, one row a score
        ``run`` (label), ``recipe``, ``encoder``, ``vlm``, ``backbone``, ``volume``, ``benchmark``,
        ``score`` (fraction), ``source``; optionally ``standard_error`` (fraction).
    benchmarks : str or sequence of str
        ``"average"`` for all benchmarks, the name of one benchmark, the name of a group, or a list of
        benchmarks.
    groups : mapping of str to sequence of str, optional
        Named benchmark groups.

    Returns
    -------
    runs : DataFrame, one row a run
        Laid out as `Study.runs`, in the order of first appearance; runs left out are absent.
    notes : tuple of Note
        Code ``incomplete-benchmarks``: benchmarks left out of a recipe's average (a note), runs left out
        (a warning), and a recipe of which nothing is left (a warning).

    Raises
    ------
    InputError
        When columns or labels are missing, a score stands twice, or one run is described in two ways.
    NotFoundError
        When `benchmarks` names neither a benchmark nor a group.

    Notes
    -----
    Runs are compared within a recipe only, so each recipe has its own set. Where its runs were measured on
    different benchmarks, the set is their intersection. When a few runs with few benchmarks would shrink
    that for all the others, they are left out: starting from all runs, the group of runs (with equal
    benchmark sets) whose absence enlarges the intersection most is removed again and again, and the step
    with the most scores kept (runs × benchmarks) is chosen; ties go to the step with more runs.

    Examples
    --------
    >>> scores = pd.DataFrame(
    ...     {
    ...         "run": ["a", "a", "b"],
    ...         "recipe": "R",
    ...         "encoder": "E",
    ...         "vlm": ["A", "A", "B"],
    ...         "backbone": ["m1", "m1", "m2"],
    ...         "volume": 1e6,
    ...         "benchmark": ["GQA", "POPE", "GQA"],
    ...         "score": [0.60, 0.80, 0.50],
    ...         "source": "example",
    ...     }
    ... )
    >>> runs, notes = average_runs(scores)
    >>> runs["accuracy"].to_dict()
    {'a': 0.6, 'b': 0.5}
    >>> print(notes[0])
    note [incomplete-benchmarks] recipe R: 2 runs averaged over the 1 benchmark they share; \
left out: POPE (1 of 2 runs)
    """
    _check(scores)
    scores = scores.reset_index(drop=True)
    label, wanted = _selection(scores, benchmarks, groups or {})
    chosen = scores[scores["benchmark"].isin(wanted)]
    asked = [] if benchmarks == "average" else wanted
    notes: list[Note] = []
    kept = pd.Series(False, index=chosen.index)
    for recipe, runs_of_recipe in scores.groupby("recipe", sort=False)["run"].unique().items():
        rows = chosen[chosen["recipe"] == recipe]
        table = rows.pivot(index="run", columns="benchmark", values="score").reindex(runs_of_recipe)
        runs, shared = shared_set(table.notna())
        notes += _left_out(str(recipe), table, runs, shared, asked)
        kept[rows.index] = rows["run"].isin(runs) & rows["benchmark"].isin(shared)
    return _average(chosen[kept], label), tuple(notes)


def shared_set(measured: pd.DataFrame) -> tuple[pd.Index, pd.Index]:
    """Choose runs and the benchmarks they all share, so that many scores are kept.

    Parameters
    ----------
    measured : DataFrame of bool, (run, benchmark)

    Returns
    -------
    runs, benchmarks : Index
        Both empty when no run has a score. The rule is that of `average_runs`.
    """
    patterns, group_of_run = np.unique(measured.to_numpy(dtype=bool), axis=0, return_inverse=True)
    sizes = np.bincount(group_of_run.ravel(), minlength=len(patterns))
    kept = patterns.any(axis=1) if patterns.size else np.zeros(len(patterns), dtype=bool)
    best, best_rank = (kept & False, np.zeros(measured.shape[1], dtype=bool)), (0, 0)
    while kept.any():
        shared = patterns[kept].all(axis=0)
        n_runs = int(sizes[kept].sum())
        rank = (n_runs * int(shared.sum()), n_runs)
        if rank[0] and rank > best_rank:
            best, best_rank = (kept.copy(), shared), rank
        kept[_most_costly(patterns, kept)] = False
    return measured.index[best[0][group_of_run.ravel()]], measured.columns[best[1]]


def _most_costly(patterns: np.ndarray, kept: np.ndarray) -> int:
    """Index of the kept pattern whose absence enlarges the shared set most; else the sparsest one."""
    candidates = np.flatnonzero(kept)
    missing = ~patterns[candidates]
    alone = missing & (missing.sum(axis=0) == 1)
    cost = np.lexsort((-missing.sum(axis=1), -alone.sum(axis=1)))
    return int(candidates[cost[0]])


def _selection(
    scores: pd.DataFrame, benchmarks: str | Sequence[str], groups: Mapping[str, Sequence[str]]
) -> tuple[Callable[[int], str], list[str]]:
    """How an average over n benchmarks is called, and the benchmarks asked for."""
    known = list(scores["benchmark"].unique())
    if isinstance(benchmarks, str):
        if benchmarks == "average":
            return "average of {}".format, known
        if benchmarks in groups:
            return lambda n: f"{benchmarks}: average of {n}", list(dict.fromkeys(groups[benchmarks]))
        if benchmarks in known:
            return lambda n: benchmarks, [benchmarks]
        raise unknown_name("benchmark", benchmarks, [*known, *groups, "average"])
    for name in benchmarks:
        if name not in known:
            raise unknown_name("benchmark", name, known)
    return "average of {}".format, list(dict.fromkeys(benchmarks))


def _average(rows: pd.DataFrame, label: Callable[[int], str]) -> pd.DataFrame:
    """Mean score of each run over its rows, laid out as `Study.runs`."""
    by_run = rows.groupby("run", sort=False)
    averaged = by_run[list(RUN_FIELDS)].first()
    averaged["n_benchmarks"] = by_run.size()
    averaged["benchmark"] = averaged["n_benchmarks"].map(label).astype(str)
    averaged["accuracy"] = by_run["score"].mean()
    averaged["standard_error"] = np.nan
    if "standard_error" in rows:
        squares = rows["standard_error"].pow(2).groupby(rows["run"]).agg(lambda x: x.sum(skipna=False))
        averaged["standard_error"] = np.sqrt(squares) / averaged["n_benchmarks"]
    sources = rows[["run", "source"]].astype(str).drop_duplicates()
    averaged["source"] = sources.groupby("run", sort=False)["source"].agg("; ".join)
    return averaged[list(RUN_COLUMNS)]


def _left_out(
    recipe: str, table: pd.DataFrame, runs: pd.Index, shared: pd.Index, asked: list[str]
) -> list[Note]:
    """Notes on the runs and benchmarks that a recipe's average does without.

    `asked` holds the benchmarks named by the user, which are reported even when no run has them; it is
    empty when every benchmark is wanted.
    """
    code, where = "incomplete-benchmarks", f"recipe {recipe}"
    if not len(runs):
        nothing = f"none of its {_count(table.index, 'run')} has {' or '.join(asked) or 'any score'}"
        return [Note(code, f"{nothing}; the recipe is left out", "warning", where)]
    notes = []
    measured = table.notna().reindex(columns=asked or table.columns, fill_value=False)
    for run in table.index[~table.index.isin(runs)]:
        lacking = ", ".join(map(str, shared[~measured.loc[run, shared].to_numpy(dtype=bool)]))
        message = (
            f"run '{run}' is left out: it has {measured.loc[run, shared].sum()} of the {_count(shared)} "
            f"that the {_count(runs, 'run')} kept share; missing: {lacking}"
        )
        notes.append(Note(code, message, "warning", where))
    counts = measured.loc[runs].sum()
    partial = counts[~counts.index.isin(shared) & ((counts > 0) | counts.index.isin(asked))]
    if len(partial):
        listed = ", ".join(f"{name} ({count} of {_count(runs, 'run')})" for name, count in partial.items())
        message = f"{_count(runs, 'run')} averaged over the {_count(shared)} they share; left out: {listed}"
        notes.append(Note(code, message, "note", where))
    return notes


def _count(labels: pd.Index, noun: str = "benchmark") -> str:
    """Number and noun, such as ``2 runs``."""
    return f"{len(labels)} {noun}" + ("" if len(labels) == 1 else "s")


def _check(scores: pd.DataFrame) -> None:
    """Raise one InputError with every reason why these scores cannot be averaged."""
    columns = ("run", *RUN_FIELDS, "benchmark", "score", "source")
    problems = [f"scores: column '{name}' is missing" for name in columns if name not in scores]
    if problems:
        raise InputError(problems)
    for name in ("run", "recipe", "benchmark"):
        for row in scores.index[scores[name].isna()]:
            problems.append(f"scores, row {row}: column '{name}' is empty")
    keys = scores[["run", "benchmark"]]
    for run, benchmark in keys[keys.duplicated()].drop_duplicates().to_numpy():
        problems.append(f"run '{run}': benchmark '{benchmark}' stands more than once; keep one of them")
    described = scores[["run", *RUN_FIELDS]].drop_duplicates()
    for run, rows in described[described["run"].duplicated(keep=False)].groupby("run", sort=False):
        for name in RUN_FIELDS:
            values = rows[name].unique()
            if len(values) > 1:
                listed = " and ".join(f"'{value}'" for value in values[:3])
                problems.append(f"run '{run}': column '{name}' says {listed}; one run has one {name}")
    if problems:
        raise InputError(problems)
