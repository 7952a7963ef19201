"""From files to a Study: every problem of every file in one pass, every repair kept as a note."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from bayescdm.averaging import average_runs
from bayescdm.errors import InputError, Note, NotFoundError, unknown_name
from bayescdm.outliers import flag_text_outliers, outlier_notes
from bayescdm.reading.candidates import describe_candidates, refuse_without_scores
from bayescdm.reading.findings import Findings, Place
from bayescdm.reading.labels import nearest
from bayescdm.reading.runs import RunTable, run_table
from bayescdm.reading.settings import Settings, check_names, read_settings
from bayescdm.reading.sheets import SUFFIXES, Sheet, read_sheet
from bayescdm.reading.text_scores import TextTable, text_table
from bayescdm.study import Study
from bayescdm.wording import counted

__all__ = [
    "TRUTH",
    "StudyFiles",
    "load_study",
    "read_candidates",
    "read_files",
    "read_runs",
    "read_text_scores",
]

#: File of the known parameters of a simulated study.
TRUTH = "truth.json"
#: What a study says whose ``study.toml`` labels it so.
SIMULATED = Note("simulated", "runs and text scores were drawn from known parameters", "note", "study.toml")


@dataclass(frozen=True)
class StudyFiles:
    """The files of a folder as read and repaired; tables are None where they could not be read."""

    findings: Findings
    settings: Settings
    sheets: tuple[Sheet | None, Sheet | None]
    text: TextTable | None
    runs: RunTable | None


def load_study(path_or_name: str | Path, *, benchmarks: str | Sequence[str] | None = None) -> Study:
    """Load a study from a folder, or a packaged one by its name.

    Parameters
    ----------
    path_or_name : str or Path
        A folder with ``text_scores`` and ``runs`` (csv, tsv, txt, xlsx or parquet) and, where wanted,
        ``study.toml``; or a name that `bayescdm.list_datasets` lists. A folder of that name wins.
    benchmarks : str or sequence of str, optional
        What a run's accuracy is: ``"average"`` over the benchmarks that all runs of its recipe share, one
        benchmark, a group, or a list of benchmarks. By default what ``study.toml`` says, or the average.

    Returns
    -------
    Study
        Its notes tell every repair, everything left out, and what limits the answers.

    Raises
    ------
    InputError
        All problems of all files, a line each, with file, row, column and value.
    NotFoundError
        When there is neither such a folder nor such a packaged study, benchmark or group.

    Examples
    --------
    >>> len(load_study("open-vlm").recipes)
    34
    """
    folder = Path(path_or_name)
    if not folder.exists():
        return _load_packaged(str(path_or_name), benchmarks or "average")
    files = read_files(folder)
    files.findings.raise_problems()
    assert files.text is not None and files.runs is not None  # otherwise a problem said why
    study = _study(files.text, files.runs, files.settings, folder.resolve().name, benchmarks)
    if study.simulated:
        study = replace(study, truth=_truth(folder / TRUTH)).with_notes(SIMULATED)
    return study.with_notes(*files.findings.told(), *study.unscored_notes(), *_outliers(study))


def read_text_scores(
    path: str | Path, *, settings: Settings | None = None
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[Note, ...]]:
    """Read a table of text scores: one row a backbone.

    Parameters
    ----------
    path : str or Path
        Columns ``backbone``, ``family``, ``variant``, where known ``params_b`` (billions) or ``params``,
        ``active_params_b``, ``text_tokens`` and ``source``; every other column of figures is a benchmark.
    settings : Settings, optional

    Returns
    -------
    text_scores : DataFrame, (backbone, benchmark)
        Fractions; NaN where not measured.
    backbones : DataFrame, (backbone, ...)
        As `Study.backbones`; sizes and tokens are absolute counts.
    notes : tuple of Note

    Raises
    ------
    InputError
        All problems of the file.
    NotFoundError
        When there is no such file.
    """
    findings = Findings()
    sheet = _sheet(Path(path), "text_scores", settings or Settings(), findings)
    table = text_table(sheet, settings or Settings()) if sheet else None
    findings.raise_problems()
    assert table is not None
    return table.text_scores, table.backbones, findings.told()


def read_runs(path: str | Path, *, settings: Settings | None = None) -> tuple[pd.DataFrame, tuple[Note, ...]]:
    """Read a table of runs, in one of three layouts.

    Parameters
    ----------
    path : str or Path
        Columns ``recipe``, where known ``vision_encoder`` and ``vlm``, ``backbone``, ``samples`` (or
        ``tokens``, or ``volume``), and either ``benchmark`` and ``score``, or one column a benchmark, or
        ``accuracy``; where known ``standard_error`` and ``source``.
    settings : Settings, optional

    Returns
    -------
    scores : DataFrame, one row a score
        ``run``, ``recipe``, ``encoder``, ``vlm``, ``backbone``, ``volume`` (absolute count), ``benchmark``,
        ``score`` (fraction), ``standard_error``, ``source``: what `average_runs` takes.
    notes : tuple of Note

    Raises
    ------
    InputError
        All problems of the file.
    NotFoundError
        When there is no such file.
    """
    findings = Findings()
    sheet = _sheet(Path(path), "runs", settings or Settings(), findings)
    table = run_table(sheet, settings or Settings(), None) if sheet else None
    findings.raise_problems()
    assert table is not None
    return table.scores, findings.told()


def read_candidates(
    path: str | Path, like: Study, *, settings: Settings | None = None, need_scores: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[Note, ...]]:
    """Read a table of candidate backbones for a study: the columns of text scores, in any order.

    Parameters
    ----------
    path : str or Path
        As for `read_text_scores`; ``family`` and ``variant`` may be empty or absent (then ``unknown``), and
        families that the study does not know are welcome.
    like : Study
        Its text benchmarks are looked for; other columns are left out with a note, missing ones are NaN.
    settings : Settings, optional
    need_scores : bool
        Refuse candidates without any text score, of which nothing can be predicted; named otherwise.

    Returns
    -------
    text_scores : DataFrame, (candidate, benchmark)
        Fractions, in the study's columns; every row of the file in its order, repeated names included.
    backbones : DataFrame, (candidate, ...)
        As `Study.backbones`.
    notes : tuple of Note
        ``unseen-family``, ``benchmark-missing``, ``scores-missing``, ``duplicate-name`` and every repair.

    Raises
    ------
    InputError
        All problems of the file, such as the name of a backbone with runs beside figures that are not its.
    NotFoundError
        When there is no such file.
    """
    findings = Findings()
    sheet = _sheet(Path(path), "candidates", settings or Settings(), findings)
    table = None
    if sheet:
        table = text_table(sheet, settings or Settings(), like)
    if sheet and table:
        if need_scores:
            refuse_without_scores(sheet, table.rows, table.text_scores, like)
        describe_candidates(sheet, table.rows, table.text_scores, table.backbones, like)
    findings.raise_problems()
    assert table is not None
    text_scores = table.text_scores.reindex(columns=like.text_scores.columns)
    # A table whose cells are all empty has no figures to tell its type by.
    return text_scores.astype(float), table.backbones, findings.told()


def read_files(folder: Path) -> StudyFiles:
    """Read the files of a folder, collecting all problems.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    StudyFiles
    """
    findings = Findings()
    if not folder.is_dir():
        raise InputError(f"{folder}: is a file; give the folder that holds text_scores and runs")
    settings = read_settings(folder / "study.toml", findings)
    paths = [_find(folder, stem, findings) for stem in ("text_scores", "runs")]
    text_sheet, run_sheet = (
        _sheet(path, stem, settings, findings) if path else None
        for path, stem in zip(paths, ("text_scores", "runs"))
    )
    text = text_table(text_sheet, settings) if text_sheet else None
    runs = run_table(run_sheet, settings, text.text_scores.index if text else None) if run_sheet else None
    if text and runs:
        titles = dict.fromkeys(t for sheet in (text_sheet, run_sheet) if sheet for t in sheet.read_titles)
        benchmarks = [*text.text_scores.columns, *runs.scores["benchmark"].unique()]
        check_names(settings, titles, benchmarks, Place("study.toml"), findings)
    if text and runs and not findings.problems:
        _refuse_uninformative(text, runs, text_sheet, run_sheet, findings)
    return StudyFiles(findings, settings, (text_sheet, run_sheet), text, runs)


def _load_packaged(name: str, benchmarks: str | Sequence[str]) -> Study:
    """A packaged study; the error says that there is no such folder either."""
    from bayescdm.datasets import list_datasets, load_dataset

    try:
        return load_dataset(name, benchmarks=benchmarks)
    except NotFoundError as error:
        if "packaged study" not in str(error):
            raise
        raise unknown_name("folder or packaged study", name, list_datasets()["name"]) from None


def _find(folder: Path, stem: str, findings: Findings) -> Path | None:
    """The one file of a folder with this stem."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    found = [name for name in names if Path(name).stem == stem and Path(name).suffix.lower() in SUFFIXES]
    if len(found) == 1:
        return folder / found[0]
    place = Place(folder.name or str(folder))
    if found:
        findings.refuse(place, f"has {' and '.join(found)}: keep one of them")
    else:
        hint = nearest(f"{stem}.csv", names) if names else "it is empty"
        findings.refuse(place, f"has no {stem}.csv (or {', '.join(SUFFIXES[1:])}); {hint}")
    return None


def _sheet(path: Path, kind: str, settings: Settings, findings: Findings) -> Sheet | None:
    """A file as a sheet of text."""
    if not path.exists():
        raise NotFoundError(f"{path}: there is no such file")
    keys = ["backbone", *(title for name, title in settings.columns.items() if name == "backbone")]
    return read_sheet(path, keys, findings)


def _refuse_uninformative(
    text: TextTable, runs: RunTable, text_sheet: Sheet | None, run_sheet: Sheet | None, findings: Findings
) -> None:
    """Refuse studies from which nothing can be learnt: one backbone, or nothing that varies."""
    assert text_sheet is not None and run_sheet is not None
    scored = text.text_scores.index[text.text_scores.notna().any(axis=1)]
    used = pd.unique(runs.scores["backbone"])
    informative = [name for name in used if name in scored]
    if runs.scores.empty:
        findings.refuse(run_sheet.place(), "holds no score: add some")
    elif len(scored) < 2:
        findings.refuse(
            text_sheet.place(),
            f"has text scores of {counted(len(scored), 'backbone')}: at least two are needed",
        )
    elif len(informative) < 2:
        which = f"only '{informative[0]}'" if informative else "none"
        what = f"of its backbones, {which} has text scores: at least two are needed"
        findings.refuse(run_sheet.place(0, "backbone"), what)
    if findings.problems:
        return
    for benchmark, figures in text.text_scores.items():
        measured = figures.dropna()
        if measured.nunique() < 2:
            what = f"has one value for all {len(measured)} backbones measured"
            hint = f"{what}: a benchmark must vary; add scores, or list it in study.toml under ignore"
            findings.refuse(text_sheet.place(0, str(benchmark)), hint)
    spread = runs.scores.groupby("benchmark")["score"].nunique()
    if len(runs.scores["run"].unique()) > 1 and not (spread > 1).any():
        findings.refuse(run_sheet.place(), "no score varies between runs: nothing can be learnt")


def _study(
    text: TextTable, runs: RunTable, settings: Settings, name: str, benchmarks: str | Sequence[str] | None
) -> Study:
    """The study of two tables, with its runs averaged."""
    given = "accuracy" if runs.columns.layout == "accuracy" else "average"
    wanted = benchmarks or settings.benchmark or given
    if wanted == "average":
        wanted = given  # one accuracy a run is its own average
    averaged, left_out = average_runs(runs.scores, wanted, groups=settings.groups)
    if averaged.empty:
        raise InputError([f"{note.where}: {note.message}" for note in left_out])
    return Study(
        name=settings.name or name,
        text_scores=text.text_scores,
        backbones=text.backbones,
        runs=averaged,
        scores=runs.scores[runs.scores["run"].isin(averaged.index)].reset_index(drop=True),
        volume_unit=runs.volume_unit,
        volume_ref=settings.volume_ref,
        notes=left_out,
        simulated=settings.simulated,
        settings={
            "benchmarks": wanted if isinstance(wanted, str) else list(wanted),
            "benchmark_groups": {group: list(names) for group, names in settings.groups.items()},
            "layout": runs.columns.layout,
            "units": {"text_scores": text.unit, "runs": runs.unit},
            "columns": dict(settings.columns),
            "recipe_columns": runs.columns.recipe,
        },
    )


def _truth(path: Path) -> dict[str, Any]:
    """Known parameters of a simulated study; none where their file is missing."""
    if not path.exists():
        return {}
    try:
        truth = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path.name}: is not valid JSON: {error}") from error
    if not isinstance(truth, dict):
        raise InputError(f"{path.name}: holds no parameters by name; simulate the study again")
    return truth


def _outliers(study: Study) -> tuple[Note, ...]:
    """Text scores of instruct models that are far too low for the model."""
    if study.backbones["params"].isna().all() and not (study.backbones["variant"] == "instruct").any():
        return ()
    return outlier_notes(flag_text_outliers(study))
