"""Text scores of instruct models that are far too low for the model: found by a rule, never by a list."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from bayescdm.errors import Note, NotFoundError
from bayescdm.study import Study

__all__ = ["flag_text_outliers", "outlier_notes", "treat_as_missing"]

#: Columns of the table of flags.
FLAG_COLUMNS = ("backbone", "benchmark", "score", "expected", "sibling", "reason")
#: Scores below this (0.2 points) are equal on the logit scale, where a zero would be minus infinity.
FLOOR = 0.002
#: Fewer models than this give no line worth trusting.
MIN_MODELS = 10
#: Siblings have the same size to within this factor.
SIZE_TOLERANCE = 1.1


def flag_text_outliers(study: Study, *, fraction: float = 1 / 3, margin: float = 0.01) -> pd.DataFrame:
    """Find text scores of instruct models that lie far below what the model can do.

    Parameters
    ----------
    study : Study
    fraction : float
        A score is suspect below this fraction of the expected one.
    margin : float
        And only when it is at least this far below (a fraction: 0.01 is one point), so that models which
        are weak anyway are left alone.

    Returns
    -------
    DataFrame, one row a flagged score, worst first
        ``backbone``, ``benchmark``, ``score`` and ``expected`` (fractions), ``sibling`` (the base model
        compared with, or None), ``reason`` (a sentence).

    Notes
    -----
    Two predictions are made of each score of an instruct model: the score of its base sibling (same family,
    same size to within 10 %), and what its other scores suggest. For the second, all instruct models are
    placed by the mean of their other scores (logits, standardised by median and MAD), and a
    repeated-median line, which up to half of the models cannot spoil, gives the logit of the score. The
    lower of the two is what is *expected*. So a model is flagged only when its base sibling is better and
    its own other scores are, too: a model that lost ability all round in tuning is not flagged, and neither
    is one whose ability shows in another score only. Without a base sibling the second prediction stands
    alone; with fewer than 10 instruct models the first does.

    Examples
    --------
    >>> from bayescdm.datasets import load_dataset
    >>> flags = flag_text_outliers(load_dataset("open-vlm"))
    >>> print(flags["reason"].iloc[0])
    1.2 % in MATH-Lvl-5, where its other scores suggest 34.2 % and its base sibling \
Qwen/Qwen2.5-72B has 38.7 %
    """
    instruct = study.backbones.index[study.backbones["variant"] == "instruct"]
    scores = study.text_scores.loc[instruct]
    siblings = base_siblings(study.backbones)
    predicted = _predicted_from_other_scores(scores)
    known = siblings.dropna()
    of_sibling = pd.DataFrame(np.nan, index=scores.index, columns=scores.columns)
    of_sibling.loc[known.index] = study.text_scores.loc[known].to_numpy()
    expected = predicted.where(~(of_sibling < predicted), of_sibling).fillna(of_sibling)
    suspect = (scores < fraction * expected) & (expected - scores >= margin)
    rows = []
    for backbone, benchmark in suspect.stack().loc[lambda flagged: flagged].index:
        cell = (backbone, benchmark)
        evidence = []
        if not np.isnan(predicted.loc[cell]):
            evidence.append(f"its other scores suggest {predicted.loc[cell]:.1%}")
        if not np.isnan(of_sibling.loc[cell]):
            evidence.append(f"its base sibling {siblings[backbone]} has {of_sibling.loc[cell]:.1%}")
        reason = f"{scores.loc[cell]:.1%} in {benchmark}, where {' and '.join(evidence)}".replace("%", " %")
        rows.append((*cell, scores.loc[cell], expected.loc[cell], siblings[backbone], reason))
    flags = pd.DataFrame(rows, columns=list(FLAG_COLUMNS))
    worst_first = (flags["score"] - flags["expected"]).sort_values(kind="stable").index
    return flags.loc[worst_first].reset_index(drop=True)


def outlier_notes(flags: pd.DataFrame) -> tuple[Note, ...]:
    """Say which text scores were flagged, one note a benchmark.

    Parameters
    ----------
    flags : DataFrame
        From `flag_text_outliers`.

    Returns
    -------
    tuple of Note
        Code ``text-outlier``.
    """
    notes = []
    for benchmark, rows in flags.groupby("benchmark"):
        listed = ", ".join(rows["backbone"])
        many = f"{len(rows)} instruct models score" if len(rows) > 1 else "one instruct model scores"
        message = (
            f"{many} far below what base siblings and other scores suggest, as when answers are not parsed, "
            f"which lowers S: {listed}; they can be treated as missing"
        )
        notes.append(Note("text-outlier", message, "warning", f"text benchmark {benchmark}"))
    return tuple(notes)


def treat_as_missing(study: Study, flags: pd.DataFrame) -> Study:
    """Return the study with flagged text scores taken as not measured, and a note for each.

    Parameters
    ----------
    study : Study
    flags : DataFrame
        ``backbone``, ``benchmark`` and ``reason``, from `flag_text_outliers` or a part of it.

    Returns
    -------
    Study
        Notes of code ``text-outlier`` give way to one note ``treated-as-missing`` a score.

    Raises
    ------
    NotFoundError
        When a flagged backbone or benchmark is not in the study.
    """
    text_scores = study.text_scores.copy()
    notes = []
    for flag in flags.itertuples():
        if flag.backbone not in text_scores.index or flag.benchmark not in text_scores.columns:
            raise NotFoundError(f"study '{study.name}' has no text score {flag.backbone}, {flag.benchmark}")
        text_scores.loc[flag.backbone, flag.benchmark] = np.nan
        where = f"text score {flag.backbone}, {flag.benchmark}"
        notes.append(Note("treated-as-missing", f"taken as not measured: {flag.reason}", "note", where))
    kept = tuple(note for note in study.notes if note.code != "text-outlier")
    return replace(study, text_scores=text_scores, notes=(*kept, *notes))


def base_siblings(backbones: pd.DataFrame) -> pd.Series:
    """Base model of the same family and size (to within 10 %) of each instruct model.

    Parameters
    ----------
    backbones : DataFrame
        As in `Study.backbones`.

    Returns
    -------
    Series of str or None, (instruct backbone)
        The nearest in size; the first in the table among equals.
    """
    log_size = np.log(backbones["params"].to_numpy(dtype=float))
    is_base = (backbones["variant"] == "base").to_numpy()
    family = backbones["family"].to_numpy()
    distance = np.abs(log_size[:, None] - log_size[None, :])
    comparable = is_base[None, :] & (family[:, None] == family[None, :])
    comparable &= distance <= np.log(SIZE_TOLERANCE)
    nearest = np.where(comparable, distance, np.inf).argmin(axis=1)
    siblings = pd.Series(backbones.index.to_numpy()[nearest], index=backbones.index, dtype=object)
    return siblings.where(comparable.any(axis=1), None)[~is_base]


def _predicted_from_other_scores(scores: pd.DataFrame) -> pd.DataFrame:
    """What the other scores of each model suggest for each of its scores; NaN where nothing can be said."""
    clipped = scores.clip(lower=FLOOR, upper=1 - FLOOR)
    logits = np.log(clipped / (1 - clipped))
    spread = (logits - logits.median()).abs().median()
    standardised = ((logits - logits.median()) / spread).loc[:, spread > 0]
    predicted = pd.DataFrame(np.nan, index=scores.index, columns=scores.columns)
    for benchmark in scores.columns:
        position = standardised.drop(columns=benchmark, errors="ignore").mean(axis=1)
        known = logits[benchmark].notna() & position.notna()
        if known.sum() >= MIN_MODELS:
            line = repeated_median_line(position[known].to_numpy(), logits.loc[known, benchmark].to_numpy())
            predicted[benchmark] = 1 / (1 + np.exp(-(line[0] + line[1] * position)))
    return predicted


def repeated_median_line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Fit a line that half of the points cannot spoil.

    Parameters
    ----------
    x, y : array, shape (point,)

    Returns
    -------
    intercept, slope : float
        The slope is the median over points of the median slope towards the others; 0 when all x are equal.

    Notes
    -----
    A. F. Siegel, Robust regression using repeated medians, Biometrika 69 (1982), 242–244.

    Examples
    --------
    >>> repeated_median_line(np.arange(5.0), np.array([1.0, 3.0, 5.0, 7.0, -50.0]))
    (1.0, 2.0)
    """
    run = x[None, :] - x[:, None]
    rise = y[None, :] - y[:, None]
    apart = run != 0
    slopes = np.divide(rise, run, out=np.full_like(run, np.nan), where=apart)
    some = apart.any(axis=1)
    slope = float(np.median(np.nanmedian(slopes[some], axis=1))) if some.any() else 0.0
    return float(np.median(y - slope * x)), slope
