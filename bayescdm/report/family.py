"""Everything that the draws say of one family: position, trajectories, pairs, text scores, neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayescdm.compare import compare_families, compare_variants, rank_backbones
from bayescdm.compare.contributions import family_members, text_contributions
from bayescdm.compare.families import stated_volume
from bayescdm.compare.positions import EQUIVALENT, compare_positions, nearest_families
from bayescdm.compare.tables import summarised
from bayescdm.errors import ModelError
from bayescdm.intervals import check_probability, interval_columns
from bayescdm.predict import LawDraws, predict, predict_draws, prediction_table
from bayescdm.predict.question import Question as Asked
from bayescdm.report.document import Document, Documented
from bayescdm.report.question import Question, default_place
from bayescdm.study import VARIANTS
from bayescdm.wording import short_by_name

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["FamilyReport", "family_report"]

#: Volumes of the table of trajectories.
GRID = 7
#: Relative difference of parameter counts within which base and instruct are one size.
SAME_SIZE = 0.03


@dataclass(frozen=True)
class FamilyReport(Documented):
    """What the draws say of one family, as tables and as a report.

    Parameters
    ----------
    family : str
    question : Question
        Recipe, volume, probability and seed; its candidates are the family's backbones.
    rates_volume : float
        Volume at which transfer rates are stated, in the study's unit.
    position : DataFrame
        Columns of `bayescdm.compare.compare_positions`, and ``prior_sd_ratio`` where the fit has a prior.
    backbones : DataFrame, best first
        Columns of `bayescdm.compare.rank_backbones` among the family's own, ``params``, ``runs``, ``S_mean``
        and its interval.
    trajectories : DataFrame
        Columns of `bayescdm.predict.prediction_table`, kinds ``law`` and ``run`` side by side.
    pairs : DataFrame, one row a pair and volume
        ``base``, ``instruct``, ``params``, ``volume``, instruct − base as ``difference_mean`` with its
        interval, ``p_instruct_greater``, ``S_difference``; empty without a pair of one size.
    contrasts : DataFrame
        Rows of `bayescdm.compare.compare_variants`; empty where the model has no contrast.
    text_scores : DataFrame
        Columns of `bayescdm.compare.text_contributions`.
    nearest : DataFrame
        Columns of `bayescdm.compare.nearest_families`.
    runs : DataFrame, one row a run that informs the fit
        ``run``, ``recipe``, ``backbone``, ``volume``, ``accuracy``; of runs of known volume ``mean`` and the
        interval of kind ``run`` that the fit gives it under its own recipe, and ``outside`` (True, False)
        that interval; missing for the others.
    converged : bool
    fit : Fit
    """

    family: str
    question: Question
    rates_volume: float
    position: pd.DataFrame
    backbones: pd.DataFrame
    trajectories: pd.DataFrame
    pairs: pd.DataFrame
    contrasts: pd.DataFrame
    text_scores: pd.DataFrame
    nearest: pd.DataFrame
    runs: pd.DataFrame
    converged: bool
    fit: Fit

    @property
    def has_runs(self) -> bool:
        """Whether runs of the family inform the fit; otherwise only the population speaks of it."""
        return bool((self.position["mode"] == "known family").all())

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the first section says."""
        return tuple(self.document().sections[0].sentences)

    def document(self) -> Document:
        """Return the report as sections, from which page, text and JSON are made."""
        from bayescdm.report.family_sections import family_document

        return family_document(self)


def family_report(
    fit: Fit,
    family: str,
    *,
    recipe: str | None = None,
    volume: float | None = None,
    rates_at: float | None = None,
    prob: float = 0.9,
    equivalent: float = EQUIVALENT,
    seed: int = 0,
) -> FamilyReport:
    """Work out what the draws say of one family.

    Parameters
    ----------
    fit : Fit
    family : str
        A family of the study with text scores; it need not have runs.
    recipe : str, optional
        By default the one that most of the family's runs with a known volume use, or most of the study's.
    volume : float, optional
        In the study's unit; by default the one that most runs of the recipe use.
    rates_at : float, optional
        Volume at which transfer rates are stated, in the study's unit; `volume` by default.
    prob : float
        Probability of intervals, and from which on one thing counts as told from another.
    equivalent : float
        Accuracy within which two families count as practically equal, a fraction.
    seed : int

    Returns
    -------
    FamilyReport

    Raises
    ------
    NotFoundError
        The study has no such family, or no such recipe.
    RequestError
        None of the family's backbones has text scores, or a volume or probability is none.
    ModelError
        The fit's model is not a transfer model.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> family = cdm.family_report(fit, "Qwen2.5")  # doctest: +SKIP
    >>> print(family)  # doctest: +SKIP
    >>> family.write("qwen2.5.html")  # doctest: +SKIP
    """
    check_probability(prob)
    names = family_members(fit, family)
    question = _ask(fit, family, names, recipe, volume, prob, seed)
    rates_volume = stated_volume(fit, question.volume if rates_at is None else rates_at)
    where: dict[str, Any] = {"volume": rates_volume, "prob": prob}
    runs = _runs(fit, names, prob=prob, seed=seed)
    return FamilyReport(
        family=family,
        question=question,
        rates_volume=rates_volume,
        position=_position(fit, family, seed=seed, **where),
        backbones=_backbones(fit, question, runs),
        trajectories=_trajectories(fit, question),
        pairs=_pairs(fit, question),
        contrasts=_contrasts(fit, family, **where),
        text_scores=text_contributions(fit, family, seed=seed, **where),
        nearest=nearest_families(fit, family, equivalent=equivalent, seed=seed, **where),
        runs=runs,
        converged=fit.diagnose().converged,
        fit=fit,
    )


def _ask(
    fit: Fit,
    family: str,
    names: list[str],
    recipe: str | None,
    volume: float | None,
    prob: float,
    seed: int,
) -> Question:
    fitted = fit.study.fitted_runs
    own = fitted[fitted["backbone"].isin(names)]
    recipe, volume, chosen = default_place(
        fit, own if own["volume"].notna().any() else fitted, recipe=recipe, volume=volume
    )
    return Question(names, recipe, volume, prob, seed=seed, chosen=tuple(chosen))


def _runs(fit: Fit, names: Sequence[str], *, prob: float, seed: int) -> pd.DataFrame:
    fitted = fit.study.fitted_runs
    own = fitted.loc[fitted["backbone"].isin(names), ["recipe", "backbone", "volume", "accuracy"]]
    own = own.rename_axis("run").reset_index().sort_values(["recipe", "volume"], ignore_index=True)
    ends = list(interval_columns("run", prob))
    parts = []
    for recipe, rows in own[own["volume"].notna()].groupby("recipe", sort=False):
        told = predict(
            fit,
            list(rows["backbone"].unique()),
            volumes=sorted(rows["volume"].unique()),
            recipe=str(recipe),
            kind="run",
            prob=prob,
            seed=seed,
        )
        told = prediction_table(told)[["backbone", "volume", "mean", *ends]]
        parts.append(rows[["run", "backbone", "volume"]].merge(told, on=["backbone", "volume"]))
    blank = pd.DataFrame(columns=["run", "mean", *ends])
    told = pd.concat(parts)[["run", "mean", *ends]] if parts else blank
    own = own.merge(told, on="run", how="left")
    low, high = (pd.to_numeric(own[end]) for end in ends)
    outside = (own["accuracy"] < low) | (own["accuracy"] > high)
    return own.assign(outside=outside.astype(object).where(low.notna(), None))


def _position(fit: Fit, family: str, *, volume: float, prob: float, seed: int) -> pd.DataFrame:
    position = compare_positions(fit, [family], volume=volume, prob=prob, seed=seed)
    attrs = position.attrs
    if "prior" in fit.draws.children:
        rates = compare_families(fit, volume=volume, prob=prob)[["family", "quantity", "prior_sd_ratio"]]
        position = position.merge(rates, on=["family", "quantity"], how="left")
    position.attrs = attrs
    return position


def _backbones(fit: Fit, question: Question, runs: pd.DataFrame) -> pd.DataFrame:
    asked: dict[str, Any] = {"recipe": question.recipe, "kind": question.kind, "seed": question.seed}
    ranking = rank_backbones(fit, question.candidates, volume=question.volume, prob=question.prob, **asked)
    attrs, names = ranking.attrs, list(ranking["backbone"])
    S = _capability(fit, names, question.seed)
    ranking = ranking.assign(
        params=fit.study.backbones.loc[names, "params"].to_numpy(float),
        runs=runs["backbone"].value_counts().reindex(names, fill_value=0).to_numpy(),
        **{f"S_{name}": values for name, values in summarised(S, "posterior", question.prob).items()},
    )
    ranking.attrs = attrs
    return ranking


def _capability(fit: Fit, names: Sequence[str], seed: int) -> np.ndarray:
    """S, (sample, backbone)."""
    asked = Asked.of(fit, list(names), volumes=1.0, recipe=None, kind="law", seed=seed, draws=None)
    return asked.capability.T


def _volumes(fit: Fit, question: Question) -> tuple[float, float]:
    """Smallest and largest observed volume, the asked one included."""
    low, high = LawDraws.of(fit, 1).volumes
    return float(np.nanmin([low, question.volume])), float(np.nanmax([high, question.volume]))


def _trajectories(fit: Fit, question: Question) -> pd.DataFrame:
    low, high = _volumes(fit, question)
    grid = np.unique([*np.geomspace(low, high, GRID), question.volume])
    asked: dict[str, Any] = {
        "volumes": list(grid),
        "recipe": question.recipe,
        "prob": question.prob,
        "seed": question.seed,
    }
    law, run = (
        prediction_table(predict(fit, question.candidates, kind=kind, **asked)) for kind in ("law", "run")
    )
    ends = [name for name in run.columns if str(name).startswith("run_")]
    table = law.drop(columns="sd").join(run[ends])
    table.attrs = law.attrs
    return table


def _pairs(fit: Fit, question: Question) -> pd.DataFrame:
    """Instruct against base of one size, paired by draw, at the asked volume and the ends of the range."""
    pairs = same_size_pairs(fit, question.candidates)
    columns = ["base", "instruct", "params", "volume", "S_difference"]
    if not pairs:
        return pd.DataFrame(columns=columns)
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    low, high = _volumes(fit, question)
    volumes = sorted({low, question.volume, high})
    draws = predict_draws(
        fit, names, volumes=volumes, recipe=question.recipe, kind=question.kind, seed=question.seed
    )
    S = dict(zip(names, _capability(fit, names, question.seed).T))
    parts = []
    for base, instruct in pairs:
        margin = (draws.sel(backbone=instruct) - draws.sel(backbone=base)).transpose("sample", "volume")
        parts.append(
            pd.DataFrame(
                {
                    "base": base,
                    "instruct": instruct,
                    "params": float(fit.study.backbones.at[base, "params"]),
                    "volume": volumes,
                    "S_difference": float((S[instruct] - S[base]).mean()),
                    **summarised(margin.to_numpy(), question.kind, question.prob, of="difference"),
                    "p_instruct_greater": (margin > 0).mean("sample").to_numpy(),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def same_size_pairs(fit: Fit, names: Any) -> list[tuple[str, str]]:
    """Pair base and instruct backbones of one family and size; of several of a size the likest names.

    Parameters
    ----------
    fit : Fit
    names : list of str

    Returns
    -------
    list of (str, str)
        Base and instruct, by size.
    """
    from difflib import SequenceMatcher

    labels = fit.study.backbones.loc[list(names)]
    bases, instructs = (list(labels.index[labels["variant"] == variant]) for variant in VARIANTS)
    short = short_by_name(labels.index)
    likeness = {}
    for base in bases:
        for instruct in instructs:
            sizes = labels.loc[[base, instruct], "params"].to_numpy(float)
            if sizes.max() <= sizes.min() * (1 + SAME_SIZE):
                likeness[base, instruct] = SequenceMatcher(None, short[base], short[instruct]).ratio()
    pairs: list[tuple[str, str]] = []
    for base, instruct in sorted(likeness, key=lambda pair: -likeness[pair]):
        if all(base != b and instruct != i for b, i in pairs):
            pairs.append((base, instruct))
    return sorted(pairs, key=lambda pair: (float(labels.at[pair[0], "params"]), pair))


def _contrasts(fit: Fit, family: str, *, volume: float, prob: float) -> pd.DataFrame:
    try:
        variants = compare_variants(fit, volume=volume, prob=prob)
    except ModelError:
        return pd.DataFrame()
    attrs = variants.attrs
    own = variants[variants["family"] == family].reset_index(drop=True)
    own.attrs = attrs
    return own
