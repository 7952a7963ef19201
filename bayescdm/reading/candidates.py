"""Candidates beside a study: the same names are the same models, and what differs from it is said."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

import numpy as np
import pandas as pd

from bayescdm.reading.labels import Labels
from bayescdm.reading.sheets import Sheet
from bayescdm.study import Study
from bayescdm.wording import and_more, counted

__all__ = [
    "SCORE_TOLERANCE",
    "UNKNOWN",
    "describe_candidates",
    "match_to_study",
    "refuse_without_scores",
]

#: Family or variant of a candidate whose table does not say it.
UNKNOWN = "unknown"
#: Scores given for a fitted backbone may differ from the study's by rounding to 0.1 percent, and no more.
SCORE_TOLERANCE = 0.0005 + 1e-9
#: Names listed in a note before the rest is counted.
NAMED = 5


def match_to_study(sheet: Sheet, like: Study) -> None:
    """Give backbones and families the spelling of the study where exactly one of its own can be meant.

    Parameters
    ----------
    sheet : Sheet
        Takes a note for each name matched, and for each that may be several of the study's.
    like : Study
    """
    for column, names in (("backbone", like.backbones.index), ("family", like.families)):
        known = Labels(map(str, names))
        for row, label in list(sheet.cells(column)):
            meant, how = known.match(label)
            if len(meant) == 1 and how:
                sheet.repair("name-matched", row, column, meant[0], how)
            elif len(meant) > 1:
                message = (
                    f"'{label}' may be {' or '.join(map(repr, meant[:4]))} of the study; taken as neither"
                )
                sheet.findings.note("name-ambiguous", sheet.place(row, column), message, "warning")


def describe_candidates(
    sheet: Sheet, rows: list[int], scores: pd.DataFrame, backbones: pd.DataFrame, like: Study
) -> None:
    """Say which candidates have unseen families, repeated names or no scores; refuse false namesakes.

    Parameters
    ----------
    sheet : Sheet
        Takes problems and notes.
    rows : list of int
        Row of the file in which each candidate stands.
    scores, backbones : DataFrame, (candidate, ...)
    like : Study
    """
    _name_unseen_families(sheet, backbones, like)
    repeated = backbones.index[backbones.index.duplicated()].unique()
    if len(repeated):
        message = f"names that stand more than once: {', '.join(repeated)}; all kept"
        sheet.findings.note("duplicate-name", sheet.file, message)
    _name_missing_scores(sheet, rows, scores, like)
    fitted = set(like.runs["backbone"]) & set(like.placed)
    for i, (row, name) in enumerate(zip(rows, scores.index)):
        if name in like.text_scores.index:
            given = scores.iloc[i].dropna()
            _compare(sheet, row, str(name), given, backbones.iloc[i], like, fitted=name in fitted)


def refuse_without_scores(sheet: Sheet, rows: list[int], scores: pd.DataFrame, like: Study) -> None:
    """Refuse candidates without any text score, of which nothing can be predicted.

    Parameters
    ----------
    sheet : Sheet
        Takes problems.
    rows : list of int
    scores : DataFrame, (candidate, benchmark)
    like : Study
    """
    for row, name in _without_scores(rows, scores, like):
        what = "has no text score, so no capability: give some, or delete the row"
        sheet.findings.refuse(sheet.place(row, "backbone"), what, name)


def _name_unseen_families(sheet: Sheet, backbones: pd.DataFrame, like: Study) -> None:
    seen = set(like.backbones.loc[like.runs["backbone"].unique(), "family"])
    unseen = sorted(set(backbones["family"]) - seen - {UNKNOWN})
    if unseen:
        rows = backbones["family"].isin(unseen).sum()
        listed = ", ".join(name + _near(name, seen) for name in unseen)
        message = (
            f"{counted(rows, 'candidate')} of families without a run: {listed}; only the "
            "population speaks of them, and their forecast is wider"
        )
        sheet.findings.note("unseen-family", sheet.file, message, "warning")


def _near(name: str, known: Iterable[str]) -> str:
    """The nearest of some names in brackets; empty when none is near."""
    folded = {label.casefold(): label for label in known}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.7)
    return f" (nearest with runs: {folded[near[0]]})" if near else ""


def _without_scores(rows: list[int], scores: pd.DataFrame, like: Study) -> list[tuple[int, str]]:
    """Row and name of candidates without any score; what the fit places by its size needs none."""
    bare = scores.isna().all(axis=1).to_numpy()
    named = zip(rows, map(str, scores.index), bare)
    return [(row, name) for row, name, empty in named if empty and name not in like.placed_by_size]


def _name_missing_scores(sheet: Sheet, rows: list[int], scores: pd.DataFrame, like: Study) -> None:
    """Say which candidates lack which scores: their capability, and so their forecast, is less sure."""
    for row, name in _without_scores(rows, scores, like):
        message = f"'{name}' has no text score, so no capability: nothing can be predicted of it"
        sheet.findings.note("scores-missing", sheet.place(row, "backbone"), message, "warning")
    lacking: dict[tuple[str, ...], list[str]] = {}
    measured = scores.loc[scores.notna().any(axis=1), scores.notna().any()]
    for name, missing in zip(measured.index, measured.isna().to_numpy()):
        if missing.any():
            lacking.setdefault(tuple(measured.columns[missing]), []).append(str(name))
    for benchmarks, names in lacking.items():
        message = (
            f"{and_more(names, NAMED)} {'has' if len(names) == 1 else 'have'} no score on "
            f"{', '.join(benchmarks)}: their capability is less sure and their forecast wider"
        )
        if len(names) == 1:
            message = message.replace("their", "its")
        sheet.findings.note("scores-missing", sheet.file, message, "warning")


def _compare(
    sheet: Sheet, row: int, name: str, given: pd.Series, labels: pd.Series, like: Study, *, fitted: bool
) -> None:
    """Refuse other figures of a backbone with runs, whose draws would mislead; say them of one without."""
    known = like.text_scores.loc[name].reindex(given.index)
    differing = given.index[~np.isclose(given, known, rtol=0, atol=SCORE_TOLERANCE)]
    if not fitted:
        if len(differing):
            message = f"'{name}' has other text scores in the study; the candidate's are used"
            sheet.findings.note("differs-from-study", sheet.place(row), message, "warning")
        return
    advice = f"of the study's '{name}', which has runs: correct it, or give the candidate a name of its own"
    for benchmark in map(str, differing):
        own = "the missing score" if np.isnan(known[benchmark]) else f"the {100 * known[benchmark]:.4g} %"
        written = sheet.as_written(row, benchmark)
        sheet.findings.refuse(sheet.place(row, benchmark), f"is not {own} {advice}", written)
    for column in ("family", "variant"):
        own = str(like.backbones.at[name, column])
        if labels[column] not in (own, UNKNOWN, ""):
            what = f"is not the {column} '{own}' {advice}"
            sheet.findings.refuse(sheet.place(row, column), what, str(labels[column]))
