"""Packaged studies by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from bayescdm.averaging import average_runs
from bayescdm.datasets.tables import read_sources, read_table
from bayescdm.errors import Note, RequestError, unknown_name
from bayescdm.outliers import flag_text_outliers, outlier_notes
from bayescdm.study import Study

__all__ = ["list_datasets", "load_dataset"]


def load_dataset(name: str, *, benchmarks: str | Sequence[str] = "average") -> Study:
    """Load a packaged study.

    Parameters
    ----------
    name : str
        One of those that `list_datasets` lists.
    benchmarks : str or sequence of str
        What a run's accuracy is: ``"average"`` over the benchmarks that all runs of its recipe share, one
        benchmark, a group of benchmarks, or a list of benchmarks. See `bayescdm.averaging.average_runs`.

    Returns
    -------
    Study

    Raises
    ------
    NotFoundError
        When no packaged study, benchmark or group has that name.

    Examples
    --------
    >>> study = load_dataset("open-vlm")
    >>> len(study.runs), len(study.fitted_runs), len(study.recipes)
    (88, 71, 34)
    """
    if name not in _STUDIES:
        raise unknown_name("packaged study", name, _STUDIES)
    return _STUDIES[name][1](benchmarks)


def list_datasets() -> pd.DataFrame:
    """List the packaged studies with counts and sources.

    Returns
    -------
    DataFrame, one row a study
        ``name``, ``description``, ``kind`` (``real`` or ``simulated``), ``n_backbones``, ``n_with_runs``
        (backbones that a run uses), ``n_scored`` (backbones with text scores), ``n_families``,
        ``n_recipes``, ``n_runs``, ``n_fitted_runs`` (runs whose backbone has text scores),
        ``n_text_benchmarks``, ``n_benchmarks`` (multimodal), ``sources``.
    """
    rows = []
    for name, (description, load) in _STUDIES.items():
        study = load("average")
        scores = study.runs if study.scores is None else study.scores
        counted = study.runs["n_benchmarks"].max() if study.scores is None else scores["benchmark"].nunique()
        rows.append(
            {
                "name": name,
                "description": description,
                "kind": "simulated" if study.simulated else "real",
                "n_backbones": len(study.backbones),
                "n_with_runs": study.runs["backbone"].nunique(),
                "n_scored": len(study.scored),
                "n_families": len(study.families),
                "n_recipes": len(study.recipes),
                "n_runs": len(study.runs),
                "n_fitted_runs": len(study.fitted_runs),
                "n_text_benchmarks": study.text_scores.shape[1],
                "n_benchmarks": int(counted),
                "sources": "; ".join(study.sources),
            }
        )
    return pd.DataFrame(rows)


def _open_vlm(benchmarks: str | Sequence[str]) -> Study:
    """Published scores of open vision-language models and of the language models they are built on."""
    sources = read_sources("open_vlm")["source"]
    backbones = read_table("open_vlm", "backbones").set_index("backbone")
    texts = read_table("open_vlm", "text_scores").set_index("backbone")
    backbones.insert(backbones.columns.get_loc("source"), "text_tokens", float("nan"))
    text_source = texts["source"].reindex(backbones.index)
    backbones["source"] = backbones["source"].map(sources) + ("; " + text_source.map(sources)).fillna("")
    categories = read_table("open_vlm", "benchmarks").groupby("group", sort=False)["benchmark"]
    groups = categories.agg(list).to_dict()
    scores = _open_vlm_scores(sources)
    runs, left_out = average_runs(scores, benchmarks, groups=groups)
    study = Study(
        name="open-vlm",
        text_scores=texts.drop(columns="source").reindex(backbones.index),
        backbones=backbones,
        runs=runs,
        scores=scores[scores["run"].isin(runs.index)].reset_index(drop=True),
        volume_unit="samples",
        settings={
            "benchmarks": benchmarks if isinstance(benchmarks, str) else list(benchmarks),
            "benchmark_groups": groups,
        },
    )
    table = read_table("open_vlm", "notes")
    known = [Note("data-note", note.message, note.severity, note.where) for note in table.itertuples()]
    flagged = outlier_notes(flag_text_outliers(study))
    return study.with_notes(*left_out, *study.unscored_notes(), *flagged, *known)


def _simulated_paper(benchmarks: str | Sequence[str]) -> Study:
    """Simulated study of the paper's roster, seed 0."""
    # Imported here: the simulation reads the packaged tables of the paper, which are in this package.
    from bayescdm.simulate import simulate

    if benchmarks != "average":
        raise RequestError("the simulated study has averages only: leave the benchmarks out")
    return simulate(seed=0)


def _open_vlm_scores(sources: pd.Series) -> pd.DataFrame:
    """All benchmark scores, long, with what is known of their runs; encoder and recipe make the label."""
    vlms = read_table("open_vlm", "vlms").rename(columns={"samples": "volume"})
    vlms["recipe"] = vlms["recipe"] + " | " + vlms["encoder"]
    scores = vlms.merge(read_table("open_vlm", "scores"), on="run", validate="one_to_many")
    scores["source"] = scores["source"].map(sources)
    return scores


#: Name → what it is, and how it is made for a choice of benchmarks.
_STUDIES: dict[str, tuple[str, Callable[[str | Sequence[str]], Study]]] = {
    "open-vlm": (
        "Published scores of open vision-language models, and of the language models they are built on.",
        _open_vlm,
    ),
    "simulated-paper": (
        "Simulated: the roster and rates of arXiv 2608.00013, whose own runs are not public; seed 0.",
        _simulated_paper,
    ),
}
