"""The answer: a ranking, and what it means in sentences made from its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayescdm.compare import difference, rank_backbones
from bayescdm.errors import ModelError, Note
from bayescdm.intervals import interval_columns
from bayescdm.predict import Candidates, candidate_table, missing_benchmarks, predict_draws
from bayescdm.report.question import SIZES, Question, ask, named_recipe
from bayescdm.wording import (
    and_more,
    counted,
    more_than,
    percent,
    points,
    probability,
    reaching,
    short_by_name,
    short_count,
    short_names,
    short_of,
)

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["LEFT_OUT", "Answer", "answer", "answer_question", "reservations", "size_in_words"]

#: Names listed in a sentence before the rest is counted.
LISTED = 4
#: Backbones named that the default sizes leave out.
NAMED = 3


@dataclass(frozen=True)
class Answer:
    """A ranking of candidates with the sentences that say what it means.

    Parameters
    ----------
    question : Question
    ranking : DataFrame, one row a backbone, best first
        The columns of `bayescdm.compare.rank_backbones` and ``p_first_better``, the probability that the
        first backbone is better than this one (NaN for itself).
    sentences : tuple of str
        The first names the choice.
    converged : bool
        Whether the draws can be trusted; if not, the first sentence says so.
    notes : tuple of Note
        Which backbones the default sizes leave out.
    """

    question: Question
    ranking: pd.DataFrame
    sentences: tuple[str, ...]
    converged: bool
    notes: tuple[Note, ...] = ()

    def __str__(self) -> str:
        """Return the sentences, a line each."""
        return "\n".join(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return question, sentences and ranking as plain values, for JSON."""
        asked = self.question
        return {
            "question": {
                "recipe": asked.recipe,
                "volume": asked.volume,
                "volume_unit": self.ranking.attrs["volume_unit"],
                "kind": asked.kind,
                "probability": asked.prob,
                "seed": asked.seed,
                "chosen": list(asked.chosen),
            },
            "converged": self.converged,
            "answer": list(self.sentences),
            "ranking": self.ranking.to_dict("records"),
            "notes": [note.to_dict() for note in self.notes],
        }


def answer(
    fit: Fit,
    *,
    candidates: Candidates = None,
    recipe: str | None = None,
    volume: float | None = None,
    sizes: tuple[float, float] | None = None,
    prob: float = 0.9,
    seed: int = 0,
) -> Answer:
    """Answer which backbone is best for a recipe and a data volume, and how sure that is.

    Parameters
    ----------
    fit : Fit
    candidates : list of str, or pair of DataFrames, optional
        Names of scored backbones of the study, or a candidate table; by default those within `sizes`.
    recipe : str, optional
        By default the one that most runs with a known volume use.
    volume : float, optional
        In the study's unit; by default the one that most runs of the recipe use.
    sizes : (float, float), optional
        Smallest and largest number of parameters of default candidates; 1B to 9B by default.
    prob : float
        Probability of intervals, and from which on one backbone counts as told from another.
    seed : int

    Returns
    -------
    Answer

    Raises
    ------
    NotFoundError, RequestError, ModelError
        As for `bayescdm.compare.rank_backbones`.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> print(cdm.answer(fit, volume=1.2e6))  # doctest: +SKIP
    """
    question = ask(
        fit, candidates=candidates, recipe=recipe, volume=volume, sizes=sizes, prob=prob, seed=seed
    )
    return answer_question(fit, question)


def answer_question(fit: Fit, question: Question) -> Answer:
    """Answer a question that is complete.

    Parameters
    ----------
    fit : Fit
    question : Question

    Returns
    -------
    Answer
    """
    asked: dict[str, Any] = {"recipe": question.recipe, "kind": question.kind, "seed": question.seed}
    ranking = rank_backbones(fit, question.candidates, volume=question.volume, prob=question.prob, **asked)
    draws = predict_draws(fit, question.candidates, volumes=question.volume, **asked).isel(volume=0)
    better = difference(draws, str(ranking["backbone"].iloc[0]), prob=question.prob)["p_greater"]
    attrs = ranking.attrs
    p_first_better = 1 - better.loc[ranking["backbone"]].to_numpy()
    # The first against itself is no comparison.
    p_first_better[0] = np.nan
    ranking = ranking.assign(p_first_better=p_first_better)
    ranking.attrs = attrs
    converged = bool(attrs["converged"])
    sentences = (
        *_sentences(ranking, question, converged),
        *_missing_scores(fit, question, ranking),
        *size_in_words(fit),
    )
    return Answer(question, ranking, sentences, converged, _left_out(fit, question, ranking))


def _sentences(ranking: pd.DataFrame, question: Question, converged: bool) -> list[str]:
    names = short_names(ranking["backbone"])
    first = ranking.iloc[0]
    where = (
        f"{named_recipe(question.recipe)} at {short_count(question.volume)} {ranking.attrs['volume_unit']}"
    )
    lower, upper = interval_columns(question.kind, question.prob)
    sentences = [] if converged else ["NOT CONVERGED: the draws cannot be trusted, nor what follows."]
    sentences.append(
        f"For {where}, {names[0]} has the highest expected accuracy of {counted(len(ranking), 'candidate')}: "
        f"{percent(first['mean'])} ({question.kind}, {100 * question.prob:g} % interval "
        f"{percent(first[lower])} to {percent(first[upper])}); it is the best with probability "
        f"{probability(first['p_best'])}."
    )
    if len(ranking) > 1:
        sentences += _told_apart(ranking, names, question.prob)
        sentences += _likelier(ranking, names)
        sentences.append(
            f"Whoever takes {names[0]} loses on average {points(first['expected_regret'])} against the "
            "candidate that turns out best."
        )
    return sentences + reservations(first, names[0])


def _left_out(fit: Fit, question: Question, ranking: pd.DataFrame) -> tuple[Note, ...]:
    """Say which backbones the default sizes leave out, and whether one of them would be first."""
    if not question.left_out:
        return ()
    mean = _expected(fit, question, int(ranking.attrs["draws"]))
    order = sorted(question.left_out, key=lambda name: -mean.get(name, -np.inf))
    names = short_by_name([*ranking["backbone"], *order])
    have_run = set(fit.study.fitted_runs["backbone"])
    with_runs = [names[name] for name in order if name in have_run]
    of_them = f", {len(with_runs)} of them with runs" if with_runs else ""
    listed = and_more(with_runs or [names[name] for name in order], NAMED)
    n = len(order)
    left = f"{counted(n, 'backbone')} with text scores {'is' if n == 1 else 'are'} left out by size{of_them}"
    above = bool(mean) and mean[order[0]] > ranking["mean"].iloc[0]
    first = (
        f"{names[order[0]]} would be first ({percent(mean[order[0]])})" if above else "none would be first"
    )
    parts = [f"{left}: {listed}", first if mean else "", _way_in(fit, question)]
    message = "; ".join(filter(None, parts))
    return (Note("left-out-by-size", message, "warning" if above else "note"),)


def _expected(fit: Fit, question: Question, draws: int) -> dict[str, float]:
    """Expected accuracy of what is left out, by the draws that the ranking is of; none if out of reach."""
    params = fit.study.backbones["params"].astype(float)
    needs_size = "size_slope" in fit.posterior
    asked = [name for name in question.left_out if not (needs_size and np.isnan(params[name]))]
    if not asked:
        return {}
    try:
        accuracy = predict_draws(
            fit,
            asked,
            volumes=question.volume,
            recipe=question.recipe,
            kind=question.kind,
            seed=question.seed,
            draws=draws,
        )
    except ModelError:  # a model without a population says nothing of a family without runs
        return {}
    return dict(zip(asked, accuracy.isel(volume=0).mean("sample").to_numpy()))


def _way_in(fit: Fit, question: Question) -> str:
    """Which options make candidates of what is left out."""
    params = fit.study.backbones.loc[list(question.left_out), "params"].astype(float)
    options = []
    if (params < SIZES[0]).any():
        options.append(f"--min-size {_rounded(params.min(), np.floor)}")
    if (params > SIZES[1]).any():
        options.append(f"--max-size {_rounded(params.max(), np.ceil)}")
    them = "it" if len(params) == 1 else "them"
    ways = [f"{' '.join(options)} {'lets' if len(options) == 1 else 'let'} {them} in"] if options else []
    if params.isna().any():
        ways.append(f"--candidates lets in {counted(int(params.isna().sum()), 'backbone')} of unknown size")
    return "; ".join(ways)


def _rounded(size: float, direction: Any) -> str:
    """Write a size with three digits, rounded so that what has it is within."""
    step = 10.0 ** (np.floor(np.log10(size)) - 2)
    return short_count(direction(size / step) * step)


def _told_apart(ranking: pd.DataFrame, names: list[str], prob: float) -> list[str]:
    """Which candidates the data tell from the first, and which not."""
    p = ranking["p_first_better"].to_numpy()
    told = [f"{name} ({reaching(q, prob)})" for name, q in zip(names[1:], p[1:]) if q >= prob]
    untold = [f"{name} ({short_of(q, prob)})" for name, q in zip(names[1:], p[1:]) if q < prob]
    sentences = []
    if untold:
        sentences.append(
            f"The data cannot tell {names[0]} from {and_more(untold, LISTED)} with probability {prob:g}; in "
            f"parentheses the probability that {names[0]} is the better one."
        )
    if told:
        others = "every other candidate" if not untold else f"{len(told)} of {len(names) - 1} others"
        sentences.append(
            f"{names[0]} is better than {others} with probability {prob:g} or more, the first of them "
            f"{told[0]}."
        )
    return sentences


def _likelier(ranking: pd.DataFrame, names: list[str]) -> list[str]:
    """A candidate of which less is known can be the best more often without being better on average."""
    top = int(np.argmax(ranking["p_best"].to_numpy()))
    if top == 0:
        return []
    p = more_than(ranking["p_best"].iloc[top], ranking["p_best"].iloc[0])
    return [f"{names[top]} is the best more often ({p}), because less is known of it, but expected lower."]


def reservations(first: pd.Series, name: str) -> list[str]:
    """Say what stands behind a backbone: runs of its own, its family's, or the population's.

    Parameters
    ----------
    first : Series
        Its row of `bayescdm.compare.rank_backbones`.
    name : str
        What it is called in the sentences.

    Returns
    -------
    list of str
    """
    sentences = []
    if first["mode"] == "new backbone of known family":
        sentences.append(f"{name} has no run in the study; what is said of it rests on its family's runs.")
    if first["mode"] == "new family":
        sentences.append(f"No run of the study uses the family of {name}; its rates are the population's.")
    if first["extrapolation"]:
        sentences.append(f"{name}: {first['extrapolation']} beyond what was observed.")
    if first["beyond_recipe"]:
        sentences.append(
            f"{name}: {first['beyond_recipe']}. That the recipe carries over to it is an extrapolation."
        )
    return sentences


def _missing_scores(fit: Fit, question: Question, ranking: pd.DataFrame) -> list[str]:
    """Name what the first candidates were not measured on; those without any score are placed by size."""
    names = short_by_name(ranking["backbone"])
    text_scores, _ = candidate_table(fit, question.candidates)
    missing = missing_benchmarks(fit, text_scores.loc[list(ranking["backbone"].head(MENTIONED))])
    return [
        f"{names[backbone]} has no score on {and_more(benchmarks, LISTED)}, so its "
        "capability is less sure and its interval wider."
        for backbone, benchmarks in missing.items()
        if 0 < len(benchmarks) < len(fit.capability.benchmarks)
    ]


#: First candidates whose missing text scores are named in the answer.
MENTIONED = 5
#: Mean absolute errors in accuracy points, leaving one family of open-vlm out: README, "By exact refits".
LEFT_OUT = {"transfer_hierarchical": 1.62, "transfer_size": 1.14}


def size_in_words(fit: Fit) -> list[str]:
    """Say where the sizes are known and the model does not use them that another model predicts better.

    Parameters
    ----------
    fit : Fit

    Returns
    -------
    list of str
        One sentence for the default model, none for others.
    """
    used = fit.study.fitted_runs["backbone"].unique()
    if fit.model != "transfer_hierarchical" or fit.study.backbones.loc[used, "params"].isna().any():
        return []
    better, worse = LEFT_OUT["transfer_size"], LEFT_OUT["transfer_hierarchical"]
    return [
        f"Model {fit.model} does not use the size of a backbone. On open-vlm, with one family left out at a "
        f"time, transfer_size, which does, is off by {better:.2f} points on average, {fit.model} by "
        f"{worse:.2f}; bayescdm validate STUDY --model transfer_size says what it does on a study, and "
        "--model transfer_size answers with it."
    ]
