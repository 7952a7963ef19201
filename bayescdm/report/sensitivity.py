"""How an answer changes when text scores that look broken are treated as missing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from bayescdm.report.answers import Answer, answer_question
from bayescdm.wording import points, probability, short_names

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["answer_again", "changes", "changes_in_words"]


def answer_again(before: Answer, refit: Fit) -> Answer:
    """Ask a refit the same question; scores that it treats as missing are missing in candidate tables, too.

    Parameters
    ----------
    before : Answer
    refit : Fit
        Of the same study with flagged text scores treated as missing.

    Returns
    -------
    Answer
    """
    question = before.question
    if isinstance(question.candidates, tuple):
        scores, labels = question.candidates
        known = refit.study.text_scores.reindex(index=scores.index, columns=scores.columns)
        gone = known.isna() & scores.index.isin(refit.study.text_scores.index)[:, None]
        question = replace(question, candidates=(scores.mask(gone), labels))
    return answer_question(refit, question)


def changes(before: Answer, after: Answer) -> pd.DataFrame:
    """Set two rankings of the same candidates side by side.

    Parameters
    ----------
    before, after : Answer

    Returns
    -------
    DataFrame, one row a backbone, largest change of accuracy first
        ``backbone``, ``rank_before``, ``rank_after`` (places by expected accuracy), ``mean_before``,
        ``mean_after``, ``change`` (fractions), ``p_best_before``, ``p_best_after``.
    """
    sides = []
    for name, answer in (("before", before), ("after", after)):
        side = answer.ranking.set_index("backbone")[["mean", "p_best"]]
        side.insert(0, "rank", range(1, len(side) + 1))
        sides.append(side.add_suffix(f"_{name}"))
    table = sides[0].join(sides[1])
    table["change"] = table["mean_after"] - table["mean_before"]
    return table.loc[table["change"].abs().sort_values(ascending=False, kind="stable").index].reset_index()


def changes_in_words(before: Answer, after: Answer, moved: pd.DataFrame, *, flagged: int) -> list[str]:
    """Say what treating flagged scores as missing does to the first choice, and who moves most.

    Parameters
    ----------
    before, after : Answer
    moved : DataFrame
        From `changes`.
    flagged : int
        Text scores treated as missing.

    Returns
    -------
    list of str
    """
    first, then = (short_names(answer.ranking["backbone"])[0] for answer in (before, after))
    p_before, p_after = (probability(answer.ranking["p_best"].iloc[0]) for answer in (before, after))
    scores = "1 flagged text score" if flagged == 1 else f"{flagged} flagged text scores"
    if first == then:
        choice = f"{first} stays first; its P(best) goes from {p_before} to {p_after}"
    else:
        choice = f"the first choice changes from {first} (P(best) {p_before}) to {then} (P(best) {p_after})"
    sentences = [f"With {scores} treated as missing, {choice}."]
    names = short_names(moved["backbone"])
    row = moved.iloc[0]
    direction = "rises" if row["change"] > 0 else "falls"
    sentences.append(
        f"{names[0]} moves most: it {direction} by {points(abs(row['change']))}, from place "
        f"{row['rank_before']} to {row['rank_after']}."
    )
    if not after.converged:
        sentences.append("NOT CONVERGED: the fit without the flagged scores cannot be trusted.")
    return sentences
