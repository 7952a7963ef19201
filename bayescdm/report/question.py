"""Which backbone, under which recipe, at which data volume: the question that a report answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from bayescdm.errors import RequestError
from bayescdm.intervals import PredictionKind, check_probability
from bayescdm.predict import Candidates
from bayescdm.predict.question import NEW_RECIPE
from bayescdm.wording import short_count

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["SIZES", "Question", "ask", "default_place", "named_recipe"]

#: Sizes of the candidates that a question is about when none are named, in parameters.
SIZES = (1e9, 9e9)


@dataclass(frozen=True)
class Question:
    """Which of these backbones, for this recipe and volume, and how sure.

    Parameters
    ----------
    candidates : list of str, or pair of DataFrames
        As for `bayescdm.predict.predict`.
    recipe : str
    volume : float
        In the study's unit.
    prob : float
        Probability of intervals, and from which on one backbone counts as told from another.
    kind : {"backbone", "law", "run"}
        What is ranked; see `bayescdm.compare.rank_backbones`.
    seed : int
    chosen : tuple of str
        What the user did not say and was chosen, one sentence each.
    volume_asked : bool
        Whether the user asked for this volume, or it was chosen.
    left_out : tuple of str
        Backbones of the study with text scores that the default sizes leave out.
    """

    candidates: Candidates
    recipe: str
    volume: float
    prob: float = 0.9
    kind: PredictionKind = "backbone"
    seed: int = 0
    chosen: tuple[str, ...] = ()
    volume_asked: bool = True
    left_out: tuple[str, ...] = ()


def ask(
    fit: Fit,
    *,
    candidates: Candidates = None,
    recipe: str | None = None,
    volume: float | None = None,
    sizes: tuple[float, float] | None = None,
    prob: float = 0.9,
    seed: int = 0,
) -> Question:
    """Fill in what was not asked, and say so.

    Parameters
    ----------
    fit : Fit
    candidates : list of str, or pair of DataFrames, optional
        By default all backbones of the study that have text scores and lie within `sizes`.
    recipe : str, optional
        By default the one that most runs with a known volume use.
    volume : float, optional
        In the study's unit; by default the one that most runs of the recipe use.
    sizes : (float, float), optional
        Smallest and largest number of parameters of default candidates; 1B to 9B by default.
    prob, seed
        As for `Question`.

    Returns
    -------
    Question

    Raises
    ------
    RequestError
        No backbone of the study has that size, or `sizes` stand beside named candidates.
    """
    check_probability(prob)
    chosen, left_out = [], []
    if candidates is None:
        candidates, said = _default_candidates(fit, sizes)
        left_out = _left_out(fit, candidates, sizes)
        chosen.append(said)
    elif sizes is not None:
        raise RequestError("sizes choose among the study's backbones; leave them out or name no candidates")
    recipe, place, said_of_place = default_place(fit, fit.study.fitted_runs, recipe=recipe, volume=volume)
    return Question(
        candidates,
        recipe,
        place,
        prob,
        seed=seed,
        chosen=(*chosen, *said_of_place),
        volume_asked=volume is not None,
        left_out=tuple(left_out),
    )


def named_recipe(recipe: str) -> str:
    """Name a recipe in a sentence.

    Examples
    --------
    >>> named_recipe("LLaVA-1.5"), named_recipe("new")
    ('LLaVA-1.5', 'a new recipe')
    """
    return "a new recipe" if recipe == NEW_RECIPE else recipe


def default_place(
    fit: Fit, runs: pd.DataFrame, *, recipe: str | None, volume: float | None
) -> tuple[str, float, list[str]]:
    """Choose the recipe and the volume that were not asked for.

    Parameters
    ----------
    fit : Fit
    runs : DataFrame
        Runs that the choice is about: all that inform the fit, or a family's.
    recipe : str, optional
    volume : float, optional

    Returns
    -------
    recipe : str
    volume : float
        In the study's unit.
    chosen : list of str
        One sentence for each that was chosen.
    """
    chosen = []
    if recipe is None:
        recipe = str(_most_common(runs.loc[runs["volume"].notna(), "recipe"], runs["recipe"]))
        n = int((runs["recipe"] == recipe).sum())
        chosen.append(f"recipe {recipe}: the one with most runs of known volume ({n})")
    if volume is None:
        every = fit.study.fitted_runs
        volume, said = _default_volume(fit, every.loc[every["recipe"] == recipe, "volume"].dropna())
        chosen.append(said)
    return recipe, volume, chosen


def _default_candidates(fit: Fit, sizes: tuple[float, float] | None) -> tuple[list[str], str]:
    scored = fit.study.scored
    low, high = sizes or SIZES
    params = fit.study.backbones.loc[scored, "params"].astype(float)
    within = scored[params.between(low, high)]
    span = f"{short_count(low)} to {short_count(high)} parameters"
    if len(within):
        return list(within), f"candidates: {_all(len(within))} with text scores and {span}"
    if sizes is not None:
        raise RequestError(f"{fit.study.name}: no backbone with text scores has {span}")
    return list(scored), f"candidates: {_all(len(scored))} with text scores; none has {span}"


def _left_out(fit: Fit, candidates: list[str], sizes: tuple[float, float] | None) -> list[str]:
    """Scored backbones that a default size leaves out; what the asked sizes leave out is no news."""
    low, high = sizes or SIZES
    others = [name for name in fit.study.scored if name not in candidates]
    params = fit.study.backbones.loc[others, "params"].astype(float)
    by_default = (low == SIZES[0]) & (params < low) | (high == SIZES[1]) & (params > high)
    return list(params.index[by_default | (params.isna() & (sizes is None))])


def _all(n: int) -> str:
    return "the only backbone" if n == 1 else f"all {n} backbones"


def _default_volume(fit: Fit, volumes: pd.Series) -> tuple[float, str]:
    unit = fit.study.volume_unit
    if volumes.empty:
        volume = float(fit.study.volume_ref or 1.0)
        return volume, f"volume {short_count(volume)} {unit}: the study's D_ref, as the recipe's is unknown"
    volume = float(_most_common(volumes, volumes))
    used = "the volume of its runs" if volumes.nunique() == 1 else "the volume that most of its runs use"
    return volume, f"volume {short_count(volume)} {unit}: {used}"


def _most_common(values: pd.Series, otherwise: pd.Series) -> Any:
    """Most common value, the largest (or last by name) among equals; of `otherwise` when there is none."""
    counts = (values if len(values) else otherwise).value_counts()
    return max(counts.index[counts == counts.max()])
