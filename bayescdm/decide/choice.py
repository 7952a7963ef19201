"""The choice: candidates, what each costs and would reach, which is best, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from bayescdm.compare import difference, pairwise_probability, rank_draws
from bayescdm.compare.backbones import most_draws
from bayescdm.compare.positions import EQUIVALENT
from bayescdm.compare.tables import interval
from bayescdm.decide.constraints import Constraints, check_constraints
from bayescdm.decide.costs import CostTable, TrainingCost, on_front, price
from bayescdm.decide.feasible import active_params, feasible, nobody, smallest_volume
from bayescdm.decide.runs import next_runs
from bayescdm.decide.value import evpi
from bayescdm.decide.words import LISTED, choice_notes, sentences_of
from bayescdm.errors import Note, RequestError, unknown_name
from bayescdm.intervals import PredictionKind, check_probability
from bayescdm.jsontext import plain
from bayescdm.predict import (
    Candidates,
    CandidateTable,
    candidate_table,
    check_once,
    missing_benchmarks,
    predict_draws,
)
from bayescdm.report.document import Document, Documented
from bayescdm.report.parts import Slider
from bayescdm.report.question import default_place
from bayescdm.report.volumes import moves_in_words
from bayescdm.wording import and_more, short_count

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["KIND", "Choice", "check_volumes", "choose"]

#: What is chosen by: what runs of a backbone average to. The residual of one run strikes whichever is chosen.
KIND: PredictionKind = "backbone"


@dataclass(frozen=True)
class Choice(Documented):
    """A choice among candidates: tables, sentences that say what they mean, the draws, and a page of it all.

    Parameters
    ----------
    question : dict
        What was asked and what was chosen where nothing was: ``recipe``, ``volume`` (None where each
        candidate has its own), ``volume_asked`` (false where it was chosen), ``volume_unit``, ``budget``,
        ``cost_unit``, ``equivalent``, ``reference``, ``kind``, ``probability``, ``seed``, ``chosen``.
    ranking : DataFrame, one row a feasible candidate, best first
        The columns of `bayescdm.compare.rank_backbones`, and ``params``, ``active_params``, ``volume`` (the D
        it would use), ``cost``, ``p_first_better`` (none for the first), ``tied`` (the data cannot tell it
        from the first), ``on_front`` (one of its options, at whichever volume, is on the front),
        ``missing`` (text benchmarks without a score, in words).
    options : DataFrame, one row a candidate and volume that were weighed
        ``backbone``, ``volume``, ``cost``, ``mean`` with its interval, ``chosen``, ``on_front`` (no other
        option costs as little and is expected to be as accurate).
    differences : DataFrame, one row a candidate
        From the reference: ``mean``, ``sd``, interval, ``p_greater``, ``p_equivalent``, ``p_better`` and
        ``p_worse`` by more than what counts as equal, ``verdict``.
    pairs : DataFrame, (candidate, candidate)
        Probability that the row's accuracy exceeds the column's.
    infeasible : DataFrame, one row a candidate
        ``backbone``, ``reason``.
    evpi : float
        Expected value of perfect information, accuracy.
    next_runs : DataFrame or None
        See `bayescdm.decide.runs.next_runs`; None if not asked for.
    notes : tuple of Note
    sentences : tuple of str
        The first holds the recommendation, or says that the draws cannot be trusted.
    converged : bool
    fit : Fit
        What the choice was made from.
    accuracy : DataArray, (sample, backbone)
        Draws of each candidate's accuracy at its volume, best first.
    candidates : pair of DataFrames
        Text scores and labels of the feasible candidates, best first.
    """

    question: dict[str, Any]
    ranking: pd.DataFrame
    options: pd.DataFrame
    differences: pd.DataFrame
    pairs: pd.DataFrame
    infeasible: pd.DataFrame
    evpi: float
    next_runs: pd.DataFrame | None
    notes: tuple[Note, ...]
    sentences: tuple[str, ...]
    converged: bool
    fit: Fit = field(repr=False)
    accuracy: xr.DataArray = field(repr=False)
    candidates: CandidateTable = field(repr=False)

    @property
    def recommended(self) -> str:
        """The candidate with the highest expected accuracy."""
        return str(self.ranking["backbone"].iloc[0])

    @cached_property
    def slider(self) -> Slider:
        """The ranking at every data volume."""
        from bayescdm.decide.page import slider_of

        return slider_of(self)

    @cached_property
    def by_volume(self) -> str:
        """Whether another candidate is first at other volumes, in a sentence."""
        return moves_in_words(self.fit, self.question["recipe"], self.ranking["backbone"], self.slider.frame)

    def shown_ranking(self) -> pd.DataFrame:
        """Return the ranking with what its columns for readers need: where probabilities are certain."""
        n = len(self.ranking)
        front = ["yes" if on else "" for on in self.ranking["on_front"]]
        return self.ranking.assign(front=front, alone=n == 1, at_most_3=n <= 3)

    def shown_differences(self) -> pd.DataFrame:
        """Return the differences in the same way; what never differs is certainly equal."""
        return self.differences.reset_index().assign(same=(self.differences["sd"] == 0).to_numpy())

    def document(self) -> Document:
        """Return the choice as sections, from which page, text and JSON are made."""
        from bayescdm.decide.page import choice_document

        return choice_document(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the draws as plain values, for JSON."""
        steps = None if self.next_runs is None else self.next_runs.to_dict("records")
        return {
            "question": self.question,
            "facts": plain({k: v for k, v in self.ranking.attrs.items() if k != "volume"}),
            "converged": self.converged,
            "recommended": self.recommended,
            "recommendation": [*self.sentences, self.by_volume],
            "ranking": self.ranking.to_dict("records"),
            "infeasible": self.infeasible.to_dict("records"),
            "differences": self.differences.reset_index().to_dict("records"),
            "probability_row_better": {str(row): self.pairs.loc[row].to_dict() for row in self.pairs.index},
            "options": self.options.to_dict("records"),
            "evpi": self.evpi,
            "next_runs": steps,
            "notes": [note.to_dict() for note in self.notes],
        }


def choose(
    fit: Fit,
    candidates: Candidates = None,
    *,
    recipe: str | None = None,
    volume: float | None = None,
    flops: float | None = None,
    tokens_per_sample: float | None = None,
    projector_volume: float = 0.0,
    costs: CostTable | None = None,
    budget: float | None = None,
    min_volume: float | None = None,
    max_volume: float | None = None,
    constraints: Constraints | None = None,
    equivalent: float = EQUIVALENT,
    reference: str | None = None,
    next_run: bool = False,
    prob: float = 0.9,
    seed: int = 0,
) -> Choice:
    """Choose a backbone, and with a budget its data volume, by expected accuracy under one recipe.

    Parameters
    ----------
    fit : Fit
    candidates : list of str, or pair of DataFrames, optional
        As for `bayescdm.predict.predict_draws`; all backbones of the study with text scores by default.
        Those without any text score are listed as infeasible.
    recipe : str, optional
        By default the one that most runs with a known volume use.
    volume : float, optional
        The same D for all, in the study's unit. Without it and without a budget, the one that most runs of
        the recipe use; with a budget, each candidate gets the affordable D of highest expected accuracy.
    flops : float, optional
        Budget of training; see `bayescdm.decide.training_flops`.
    tokens_per_sample : float, optional
        Tokens that the backbone meets in a sample, image tokens included; needed for FLOPs where volumes are
        in samples.
    projector_volume : float
        Part of the volume that trains the projector alone, in a first stage.
    costs : CostTable, optional
        Costs in a unit of your own instead of FLOPs; candidates that are not in it are infeasible.
    budget : float, optional
        In the unit of `costs`.
    min_volume, max_volume : float, optional
        Volumes that a budget may be spent on. By default from the smallest volume of any run, below which the
        law says nothing, to as much as the budget affords; of a cost table with volumes, all that it lists.
        One volume for all must lie between them too.
    constraints : Constraints, optional
    equivalent : float
        Accuracy within which two backbones are practically equal, a fraction.
    reference : str, optional
        What differences are from; the recommended candidate by default. Its name without the organisation
        will do where that names one candidate.
    next_run : bool
        Whether to work out what one more training run would be worth.
    prob : float
        Probability of intervals, and from which on one backbone counts as told from another.
    seed : int
        Of what is drawn for backbones without runs, and for the next run.

    Returns
    -------
    Choice

    Raises
    ------
    NotFoundError
        A backbone, recipe, family or reference is not known.
    RequestError
        No candidate meets constraints and budget, the reference is infeasible, or the request contradicts
        itself.

    Notes
    -----
    All probabilities and differences are of the same draws on both sides. Expected accuracy is linear in
    ln D with slope E[B0 − Bm·S], so that within a budget the best affordable D is the largest one unless the
    slope is negative; seven volumes are weighed all the same, and listed.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> print(cdm.choose(fit, volume=1.2e6))  # doctest: +SKIP
    """
    check_probability(prob)
    if not equivalent >= 0:
        raise RequestError(f"equivalent {equivalent:g} is negative")
    constraints = constraints or Constraints()
    table = candidate_table(fit, candidates)
    check_once(table[1].index)
    check_constraints(constraints, table[1])
    limit, counting = price(
        fit.study,
        flops=flops,
        tokens_per_sample=tokens_per_sample,
        projector_volume=projector_volume,
        costs=costs,
        budget=budget,
    )
    chosen: list[str] = []
    free = volume is None and (limit is not None if costs is None else costs.has_volumes)
    recipe, place, said = default_place(fit, fit.study.fitted_runs, recipe=recipe, volume=volume)
    chosen += said[:-1] if free else said
    span = _span(fit, min_volume, max_volume, place, costs)
    check_volumes(
        None if free else place, least=min_volume, most=max_volume, projector_volume=projector_volume
    )
    tried, reasons = feasible(fit, table, constraints, counting, limit, None if free else place, span)
    if not tried:
        asked_for = span if free else (place, place)
        raise RequestError(nobody(fit, table[1], reasons, counting, limit, asked_for))
    names = list(tried)
    if reference is not None:
        reference = _reference(reference, names, reasons)
    table = (table[0].loc[names], table[1].loc[names])
    accuracy, options = _weighed(fit, table, tried, counting, recipe, prob, seed)
    ranking = _ranking(fit, accuracy, table, options, prob)
    order = list(ranking["backbone"])
    accuracy = accuracy.sel(backbone=order)
    table = (table[0].loc[order], table[1].loc[order])
    question: dict[str, Any] = {
        "recipe": recipe,
        "volume": None if free else place,
        "volume_asked": volume is not None,
        "volume_unit": fit.study.volume_unit,
        "budget": limit,
        "cost_unit": counting.unit,
        "equivalent": equivalent,
        "reference": reference or order[0],
        "kind": KIND,
        "probability": prob,
        "seed": seed,
        "chosen": chosen,
    }
    steps = None
    if next_run:
        low = min(smallest_volume(fit, place), place)
        steps = next_runs(fit, accuracy, table, ranking, counting, limit, recipe, (low, span[1]), seed)
    infeasible = pd.DataFrame({"backbone": list(reasons), "reason": list(reasons.values())}, dtype=object)
    differences = _differences(accuracy, question["reference"], equivalent, prob)
    notes = choice_notes(fit, ranking, question)
    if costs is not None:
        notes += costs.notes + _costs_of_nobody(costs, [*names, *reasons])
    perfect = evpi(accuracy.to_numpy())
    sentences = sentences_of(fit, ranking, differences, question, perfect, infeasible, steps)
    return Choice(
        question,
        ranking,
        options,
        differences,
        pairwise_probability(accuracy),
        infeasible,
        perfect,
        steps,
        notes,
        tuple(sentences),
        bool(ranking.attrs["converged"]),
        fit,
        accuracy,
        table,
    )


def _span(
    fit: Fit, least: float | None, most: float | None, place: float, costs: CostTable | None
) -> tuple[float, float]:
    """Volumes that a budget may be spent on; those of a table are the user's own."""
    low = (smallest_volume(fit, place) if costs is None else 0.0) if least is None else least
    high = np.inf if most is None else most
    for name, limit in (("min_volume", least), ("max_volume", most)):
        if limit is not None and not 0 < limit < np.inf:
            raise RequestError(f"{name} {limit:g} is not a positive number")
    if low > high:
        unit = fit.study.volume_unit
        smallest = "the smallest of any run" if least is None else "the smallest allowed"
        raise RequestError(
            f"no volume lies between {short_count(low)}, {smallest}, and {short_count(high)} {unit}, the "
            "largest allowed"
        )
    return low, high


def check_volumes(
    volume: float | None, *, least: float | None, most: float | None, projector_volume: float = 0.0
) -> None:
    """Refuse volumes that contradict each other.

    Parameters
    ----------
    volume : float, optional
        The same for all candidates.
    least, most : float, optional
        Smallest and largest volume allowed.
    projector_volume : float
        What a first stage takes, which trains the projector alone; every volume holds it.

    Raises
    ------
    RequestError
    """
    stage = f"the {short_count(projector_volume)} for the projector alone; it holds both stages"
    if volume is not None:
        asked = f"volume {short_count(volume)} is"
        if volume < projector_volume:
            raise RequestError(f"{asked} less than {stage}")
        if least is not None and volume < least:
            raise RequestError(f"{asked} less than the smallest volume allowed, {short_count(least)}")
        if most is not None and volume > most:
            raise RequestError(f"{asked} more than the largest volume allowed, {short_count(most)}")
    if most is not None and most < projector_volume:
        raise RequestError(f"the largest volume allowed is {short_count(most)}, less than {stage}")


def _reference(asked: str, names: Sequence[str], reasons: Mapping[str, str]) -> str:
    """Return the candidate that is meant by a name, in full or without its organisation."""
    if asked in names:
        return asked
    meant = [name for name in names if name.rsplit("/", 1)[-1] == asked]
    if len(meant) > 1:
        raise RequestError(f"reference '{asked}' may be {' or '.join(meant)}; write one of them in full")
    if meant:
        return meant[0]
    for name, reason in reasons.items():
        if asked in (name, name.rsplit("/", 1)[-1]):
            raise RequestError(f"reference '{asked}' is infeasible: {reason}; take another, or let it in")
    raise unknown_name("candidate", asked, names)


def _costs_of_nobody(costs: CostTable, candidates: Sequence[str]) -> tuple[Note, ...]:
    """Name rows of a cost table that are of no candidate: a slip of the pen would go unseen."""
    others = [name for name in costs.rows["backbone"].unique() if name not in set(candidates)]
    if not others:
        return ()
    message = f"costs of {and_more(others, LISTED)}, which {'is' if len(others) == 1 else 'are'} no candidate"
    return (Note("cost-without-candidate", f"{message}: not used", where="cost table"),)


def _weighed(
    fit: Fit,
    table: CandidateTable,
    tried: Mapping[str, Sequence[float] | np.ndarray],
    counting: TrainingCost,
    recipe: str,
    prob: float,
    seed: int,
) -> tuple[xr.DataArray, pd.DataFrame]:
    """Draws of each candidate at its best volume, and all volumes that were weighed."""
    asked: dict[str, Any] = {"recipe": recipe, "kind": KIND, "seed": seed, "draws": most_draws(len(tried))}
    every = [volume for within in tried.values() for volume in within]
    if len(set(every)) == 1:
        drawn = [predict_draws(fit, table, volumes=every[0], **asked)]
    else:
        # Random numbers belong to labels, so candidates asked one by one are paired all the same.
        drawn = [
            predict_draws(fit, (table[0].loc[[name]], table[1].loc[[name]]), volumes=list(within), **asked)
            for name, within in tried.items()
        ]
    best, rows = [], []
    for array in drawn:
        for place in range(array.sizes["backbone"]):
            of_one = array.isel(backbone=slice(place, place + 1))
            name = str(of_one["backbone"].to_numpy()[0])
            means = of_one.mean("sample").to_numpy()[0]
            top = int(means.argmax())
            best.append(of_one.isel(volume=top))
            ends = interval(of_one.to_numpy()[:, 0], KIND, prob)
            active = active_params(table[1].loc[name])
            for number, volume in enumerate(of_one["volume"].to_numpy()):
                rows.append(
                    {
                        "backbone": name,
                        "volume": float(volume),
                        "cost": counting.cost(name, active, float(volume)),
                        "mean": means[number],
                        **{end: values[number] for end, values in ends.items()},
                        "extrapolation": str(of_one["extrapolation"].to_numpy()[0, number]),
                        "beyond_recipe": str(of_one["beyond_recipe"].to_numpy()[0, number]),
                        "chosen": number == top,
                    }
                )
    options = pd.DataFrame(rows)
    options["on_front"] = on_front(options["cost"].to_numpy(float), options["mean"].to_numpy(float))
    return xr.concat(best, "backbone", coords="different", compat="equals"), options


def _ranking(
    fit: Fit, accuracy: xr.DataArray, table: CandidateTable, options: pd.DataFrame, prob: float
) -> pd.DataFrame:
    ranking = rank_draws(accuracy, prob=prob)
    names = list(ranking["backbone"])
    own = options[options["chosen"]].set_index("backbone").loc[names]
    better = difference(accuracy, names[0], prob=prob)["p_greater"].loc[names].to_numpy()
    params = (
        table[1].loc[names, "params"].to_numpy(float) if "params" in table[1] else np.full(len(names), np.nan)
    )
    missing = missing_benchmarks(fit, table[0])
    # The first cannot be compared with itself.
    p_first_better = np.where(np.arange(len(names)) == 0, np.nan, 1 - better)
    ranking = ranking.assign(
        params=params,
        active_params=[active_params(table[1].loc[name]) for name in names],
        volume=own["volume"].to_numpy(),
        cost=own["cost"].to_numpy(),
        p_first_better=p_first_better,
        tied=(np.arange(len(names)) == 0) | (p_first_better < prob),
        on_front=options.groupby("backbone")["on_front"].any().loc[names].to_numpy(),
        missing=[", ".join(missing[name]) for name in names],
    )
    ranking.attrs = {**fit.facts(), **accuracy.attrs, "prob": prob}
    return ranking


def _differences(accuracy: xr.DataArray, reference: str, equivalent: float, prob: float) -> pd.DataFrame:
    """Differences from a reference with what lies within, above and below practical equality."""
    table = difference(accuracy, reference, prob=prob)
    values = accuracy.to_numpy()
    margin = values - values[:, [list(table.index).index(reference)]]
    table["p_equivalent"] = (np.abs(margin) <= equivalent).mean(0)
    table["p_better"] = (margin > equivalent).mean(0)
    table["p_worse"] = (margin < -equivalent).mean(0)
    verdicts = {"p_equivalent": "practically equal", "p_better": "better", "p_worse": "worse"}
    sure = np.select([table[name] >= prob for name in verdicts], list(verdicts.values()), "open")
    table["verdict"] = np.where(table.index == reference, "the reference", sure)
    return table
