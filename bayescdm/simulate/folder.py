"""A simulated study as a folder of files, labelled as simulated, with its truth beside them."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd

from bayescdm.atomic import replacing
from bayescdm.errors import RequestError
from bayescdm.reading.load import TRUTH
from bayescdm.study import Study

__all__ = ["write_study"]

#: In the order in which they are written: a folder without runs is refused, so a write that was broken off
#: can never pass for a study, nor mix two of them.
FILES = ("text_scores.csv", "study.toml", TRUTH, "runs.csv")
RUN_COLUMNS = ("recipe", "vlm", "backbone", "volume", "accuracy", "source")


def write_study(study: Study, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write a simulated study as files that `bayescdm.load_study` reads, its truth beside them.

    Parameters
    ----------
    study : Study
        Simulated; the files of a real study are the user's own.
    folder : str or Path
        Gets ``text_scores.csv``, ``runs.csv``, ``study.toml``, which says that the study is simulated, and
        ``truth.json``; made when it is missing.
    overwrite : bool
        Whether files of these names are replaced.

    Returns
    -------
    Path

    Raises
    ------
    RequestError
        The study is not simulated, so many of its scores are missing that it could not be read again, or
        `folder` is a file or holds such files.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import bayescdm as cdm
    >>> with TemporaryDirectory() as place:
    ...     read = cdm.load_study(write_study(cdm.simulate(seed=3), f"{place}/study"))
    >>> read.name, read.simulated, read.truth["seed"]
    ('simulated study of the paper, seed 3', True, 3)
    """
    if not study.simulated:
        raise RequestError(
            f"study '{study.name}' is not simulated; its files are those that it was read from"
        )
    constant = study.text_scores.columns[study.text_scores.nunique() < 2]
    if len(constant):
        more = f" and {len(constant) - 3} more" if len(constant) > 3 else ""
        raise RequestError(
            f"too many text scores are missing: {', '.join(constant[:3])}{more} would have fewer than two "
            "different ones, and such a study cannot be read; give a smaller share"
        )
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise RequestError(f"{folder}: is a file; choose another name for the folder")
    standing = [name for name in FILES if (folder / name).exists()]
    if standing and not overwrite:
        raise RequestError(
            f"{folder}: holds {', '.join(standing)} already; choose another folder or ask to overwrite"
        )
    contents = {
        "text_scores.csv": study.backbones.join(study.text_scores).to_csv(index_label="backbone"),
        "study.toml": _settings(study),
        TRUTH: json.dumps(study.truth, indent=1, allow_nan=False) + "\n",
        "runs.csv": _runs(study).to_csv(index=False),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "runs.csv").unlink(missing_ok=True)
    for name in FILES:
        with replacing(folder / name, overwrite=overwrite) as unfinished:
            unfinished.write_text(contents[name], encoding="utf-8", newline="")
    return folder


def _runs(study: Study) -> pd.DataFrame:
    """Runs with one accuracy each; the encoder is part of the recipe."""
    runs = study.runs[list(RUN_COLUMNS)]
    volume = runs["volume"].map(lambda v: "" if pd.isna(v) else f"{v:.0f}" if v == round(v) else repr(v))
    return runs.assign(volume=volume)


def _settings(study: Study) -> str:
    """``study.toml``; a JSON string is a TOML string too."""
    lines = [
        "# Simulated: runs and text scores were drawn from the parameters in truth.json.",
        f"name = {json.dumps(study.name, ensure_ascii=False)}",
        "simulated = true",
        f"volume_ref = {float(study.volume_ref or 1.0)!r}",
        "",
        "[units]",
        'text_scores = "fraction"',
        'runs = "fraction"',
        f"volume = {json.dumps(study.volume_unit)}",
    ]
    return "\n".join(lines) + "\n"
