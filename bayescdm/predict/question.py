"""One question to the draws: the law evaluated for backbones, volumes, recipe and kind."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import xarray as xr

from bayescdm.errors import ModelError, RequestError, unknown_name
from bayescdm.intervals import PredictionKind
from bayescdm.laws import transfer_absorption
from bayescdm.predict.candidates import Candidates, Described, describe
from bayescdm.predict.law import RATES, LawDraws
from bayescdm.reading import UNKNOWN
from bayescdm.seeds import checked_seed, generator
from bayescdm.study import VARIANTS
from bayescdm.wording import counted, short_count

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["LARGER", "MODES", "NEW_RECIPE", "Question", "outside", "volumes_beyond_recipe"]

#: Recipe that no run used: its baseline is drawn from the recipes' population.
NEW_RECIPE = "new"
MEAN_RECIPE = "mean of the study's recipes"
#: Factor within which sizes, or volumes, of a recipe's runs count as one: a "7B" has 6.7 to 7.7 billion.
ABOUT_THE_SAME = 1.15
#: What is said of a backbone with more parameters than any that the asked recipe was run on.
LARGER = "larger than any run of this recipe"
MODES = ("known backbone", "new backbone of known family", "new family")
#: Largest number of draws × volumes × backbones held at once while predictions are summarised.
CELLS_AT_ONCE = 20_000_000
#: Relative slack of the observed ranges, for rounding in D = D_ref·exp(ln(D/D_ref)).
RANGE_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Question:
    """A validated request: which backbones, at which volumes, under which recipe, how wide.

    Attributes
    ----------
    fit : Fit
    law : LawDraws
    asked : Described
    volumes : ndarray, (volume,)
        In the study's unit.
    recipe : str or None
    kind : {"law", "backbone", "run"}
    seed : int
    """

    fit: Fit
    law: LawDraws
    asked: Described
    volumes: np.ndarray
    recipe: str | None
    kind: PredictionKind
    seed: int

    @classmethod
    def of(
        cls,
        fit: Fit,
        candidates: Candidates,
        *,
        volumes: float | Sequence[float],
        recipe: str | None,
        kind: PredictionKind,
        seed: int,
        draws: int | None,
    ) -> Question:
        """Check a request; see `bayescdm.predict.predict_draws` for what is refused."""
        if kind not in get_args(PredictionKind):
            raise RequestError(f"kind '{kind}' is none of {', '.join(get_args(PredictionKind))}")
        checked = _check_volumes(volumes)
        checked_seed(seed)
        law = LawDraws.of(fit, draws)
        _check_recipe(recipe, law, fit)
        return cls(fit, law, describe(fit, law, candidates), checked, recipe, kind, seed)

    def chunks(self) -> Iterator[Question]:
        """Cut the backbones into parts whose draws fit into memory."""
        size = max(1, CELLS_AT_ONCE // (len(self.law.sample) * len(self.volumes)))
        for first in range(0, len(self.names), size):
            yield replace(self, asked=self.asked.rows(slice(first, first + size)))

    @cached_property
    def names(self) -> list[str]:
        """Names of the backbones, each once, in the order asked."""
        return [str(name) for name in self.asked.labels.index]

    def random(self, *label: str) -> np.random.Generator:
        """Return the random numbers that belong to a label, whatever else is asked."""
        digest = hashlib.blake2b("\x1f".join(label).encode(), digest_size=16).digest()
        return generator(self.seed, *np.frombuffer(digest, "<u4").tolist())

    @cached_property
    def fitted(self) -> np.ndarray:
        """Position of each backbone among the fit's, −1 for those that it has no draws of."""
        return self.law.positions("backbone", self.names)

    # --- terms of the law ---------------------------------------------------------------------------

    def accuracy(self) -> np.ndarray:
        """Return the accuracy, (backbone, volume, sample)."""
        expected = self.expected_accuracy()
        return expected + self.residuals() if self.kind == "run" else expected

    def expected_accuracy(self) -> np.ndarray:
        """Return the accuracy without the residual of a run, (backbone, volume, sample)."""
        S = self.capability
        A, B0, Bm = self.rates()
        baseline = self.law["P0"] + self.recipe_effect() + self.intercepts() + self.size_effect()
        S, A, B0, Bm, baseline = (term[:, None, :] for term in (S, A, B0, Bm, baseline))
        log_volume = np.log(self.volumes / self.fit.study.volume_ref)[:, None]
        return transfer_absorption(S, log_volume, A, B0, Bm, baseline)

    @cached_property
    def capability(self) -> np.ndarray:
        """S, (backbone, sample): the fit's own for its backbones, otherwise Normal around Z·w."""
        n = len(self.law.sample)
        w = self.law.direction(self.asked.components.columns)
        S = self.asked.components.to_numpy() @ w.T
        variance = np.einsum("sk,mkl,sl->ms", w, self.asked.covariance, w).clip(min=0)
        for row, name in enumerate(self.names):
            if self.fitted[row] >= 0:
                S[row] = self.law["S"][:, self.fitted[row]]
            elif variance[row].any():
                S[row] += np.sqrt(variance[row]) * self.random("S", name).standard_normal(n)
        return S

    def rates(self) -> np.ndarray:
        """A, B0 and Bm, (rate, backbone, sample)."""
        n = len(self.law.sample)
        rates = np.empty((len(RATES), len(self.names), n))
        of_family: dict[tuple[str, str], np.ndarray] = {}
        for row, (name, family, variant) in enumerate(
            zip(self.names, self.asked.labels["family"], self.asked.labels["variant"])
        ):
            key = ("family", family) if isinstance(family, str) else ("family of backbone", name)
            if key not in of_family:
                of_family[key] = self.family_rates(key)
            if variant in VARIANTS:
                rates[:, row] = of_family[key][..., VARIANTS.index(variant)]
            else:
                either = self.random("variant", name).integers(len(VARIANTS), size=n)
                rates[:, row] = of_family[key][:, np.arange(n), either]
        return rates

    def family_rates(self, key: tuple[str, str]) -> np.ndarray:
        """Rates of one family, (rate, sample, variant), from the fit or from the population."""
        scope, family = key
        if scope == "family":
            position = self.law.positions("family", [family])[0]
            if position >= 0:
                return np.stack([self.law[rate][:, position] for rate in RATES])
        return np.stack([self.new_family_rate(rate, key) for rate in RATES])

    def new_family_rate(self, rate: str, key: tuple[str, str]) -> np.ndarray:
        """Rate of a family without runs, (sample, variant)."""
        law = self.law
        if f"{rate}_population" not in law:
            raise ModelError(
                f"model '{self.fit.model}' has no population of families from which to draw '{key[1]}'; "
                "use a partially pooled model, such as transfer_hierarchical"
            )
        deviation, contrast_deviation = self.random(rate, *key).standard_normal((2, len(law.sample)))
        log_rate = np.log(law[f"{rate}_population"]) + law.optional(f"{rate}_family_scale") * deviation
        contrast = law.optional(f"{rate}_contrast")
        contrast = contrast + law.optional(f"{rate}_contrast_scale") * contrast_deviation
        return np.exp(log_rate[:, None] + contrast[:, None] * np.array([-0.5, 0.5]))

    def recipe_effect(self) -> np.ndarray | float:
        """Deviation of the recipe's baseline from P0, (sample,)."""
        law = self.law
        recipes = law.labels["recipe"]
        if self.recipe is None:
            return 0.0
        if self.recipe in recipes:
            if "recipe_effect" not in law:
                return 0.0
            return law["recipe_effect"][:, law.positions("recipe", [self.recipe])[0]]
        # The effects are deviations from the mean of R recipes, which itself has variance scale²/R.
        spread = law["recipe_scale"] * np.sqrt(1 + 1 / len(recipes))
        return spread * self.random("recipe", self.recipe).standard_normal(len(law.sample))

    def intercepts(self) -> np.ndarray:
        """Backbone intercepts, (backbone, sample)."""
        law = self.law
        intercepts = np.zeros((len(self.names), len(law.sample)))
        for row, name in enumerate(self.names):
            if self.fitted[row] >= 0:
                if "backbone_effect" in law:
                    intercepts[row] = law["backbone_effect"][:, self.fitted[row]]
            elif self.kind != "law":
                normal = self.random("intercept", name).standard_normal(len(law.sample))
                intercepts[row] = law.optional("tau") * normal
        return intercepts

    def size_effect(self) -> np.ndarray | float:
        """Accuracy that size itself adds, (backbone, sample), in a model with a size slope."""
        if "size_slope" not in self.law:
            return 0.0
        log_params = self.log_params()
        if np.isnan(log_params).any():
            missing = ", ".join(f"'{n}'" for n, x in zip(self.names, log_params) if np.isnan(x))
            raise RequestError(f"model '{self.fit.model}' needs the number of parameters of {missing}")
        return np.outer(log_params - self.law.log_params_ref, self.law["size_slope"])

    def log_params(self) -> np.ndarray:
        """Return ln N of each backbone."""
        return np.log(self.asked.labels["params"].to_numpy(float))

    def residuals(self) -> np.ndarray:
        """A run's own deviation, (backbone, volume, sample), independent between any two runs."""
        n = len(self.law.sample)
        residuals = np.empty((len(self.names), len(self.volumes), n))
        for row, name in enumerate(self.names):
            for column, volume in enumerate(self.volumes):
                random = self.random("residual", name, repr(float(volume)))
                if "nu" in self.law:
                    residuals[row, column] = random.standard_t(self.law["nu"])
                else:
                    residuals[row, column] = random.standard_normal(n)
        return residuals * self.law["sigma"]

    # --- labels -------------------------------------------------------------------------------------

    def as_asked[Answer: (xr.DataArray, xr.Dataset)](self, answer: Answer) -> Answer:
        """Return an answer with a row for each row asked; it has each backbone once."""
        if len(self.asked.order) == len(self.names):
            return answer
        return answer.isel(backbone=self.asked.order)

    def coords(self) -> dict[str, Any]:
        """Labels of the answer."""
        labels = self.asked.labels
        return {
            "backbone": np.array(self.names, dtype=object),
            "volume": self.volumes,
            "family": ("backbone", labels["family"].fillna(UNKNOWN).to_numpy(object)),
            "variant": ("backbone", labels["variant"].fillna(UNKNOWN).to_numpy(object)),
            "mode": ("backbone", self.modes()),
            "extrapolation": (("backbone", "volume"), self.extrapolation()),
            "beyond_recipe": (("backbone", "volume"), self.beyond_recipe()),
        }

    def modes(self) -> np.ndarray:
        """Mode of each backbone, after the runs that inform the fit."""
        known = self.asked.labels.index.isin(self.law.backbones)
        of_known_family = self.asked.labels["family"].isin(self.law.families).to_numpy()
        return np.select([known, of_known_family], MODES[:2], MODES[2]).astype(object)

    def extrapolation(self) -> np.ndarray:
        """Observed ranges that each cell lies outside of, in words, (backbone, volume); empty if none."""
        observed = self.law["S"][:, self.law.positions("backbone", self.law.backbones)]
        beyond = (self.capability < observed.min(1)) | (self.capability > observed.max(1))
        # S has a posterior: outside means in most draws.
        ranges = {
            "capability": (beyond.mean(1) > 0.5)[:, None],
            "volume": outside(self.volumes, *self.law.volumes)[None, :],
        }
        if "size_slope" in self.law:
            ranges["size"] = outside(self.log_params(), *self.law.log_params)[:, None]
        cells = np.full((len(self.names), len(self.volumes)), "", dtype=object)
        for what, where in ranges.items():
            cells = np.where(
                where, np.where(cells == "", "extrapolation in " + what, cells + ", " + what), cells
            )
        return cells

    def beyond_recipe(self) -> np.ndarray:
        """How each cell lies beyond every run of the asked recipe, in words, (backbone, volume).

        Empty where it does not, and without a recipe. What lies outside the range of volumes of all runs is
        an extrapolation, and not said again.
        """
        cells = np.full((len(self.names), len(self.volumes)), "", dtype=object)
        seen = self.law.recipes.get(self.recipe or "")
        if seen is None:
            return cells
        if np.isfinite(seen.params):
            larger = np.exp(self.log_params()) > seen.params * ABOUT_THE_SAME
            cells[larger] = f"{LARGER} ({short_count(seen.params)})"
        words = volumes_beyond_recipe(self.law, self.recipe, self.volumes)
        both = np.where(cells == "", words, cells + "; " + words)
        return np.where(words == "", cells, both)

    def attrs(self) -> dict[str, Any]:
        """What was asked; plain values, which NetCDF accepts."""
        return {
            "kind": self.kind,
            "recipe": MEAN_RECIPE if self.recipe is None else self.recipe,
            "volume_unit": self.fit.study.volume_unit,
            "seed": self.seed,
            "draws": len(self.law.sample),
        }


def volumes_beyond_recipe(law: LawDraws, recipe: str | None, volumes: np.ndarray) -> np.ndarray:
    """How each volume lies beyond every run of a recipe, in words; empty where it does not.

    Parameters
    ----------
    law : LawDraws
    recipe : str or None
    volumes : ndarray, (volume,)

    Returns
    -------
    ndarray of str, (volume,)
        What lies outside the range of volumes of all runs is an extrapolation, and not said again.
    """
    words = np.full(len(volumes), "", dtype=object)
    seen = law.recipes.get(recipe or "")
    if seen is None or not np.isfinite(seen.volumes[0]):
        return words
    around = seen.volumes[0] / ABOUT_THE_SAME, seen.volumes[1] * ABOUT_THE_SAME
    low, high = (short_count(end) for end in seen.volumes)
    beyond = outside(volumes, *around) & ~outside(volumes, *law.volumes)
    words[beyond] = f"no run of this recipe at this volume ({low if low == high else f'{low} to {high}'})"
    return words


def outside(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Whether each value lies outside a range, but for rounding; of an unknown range, every value does.

    Parameters
    ----------
    values : ndarray
    low, high : float

    Returns
    -------
    ndarray of bool

    Examples
    --------
    >>> outside(np.array([1.0, 2.0, 5.0]), 1.0, 4.0).tolist()
    [False, False, True]
    """
    slack = RANGE_TOLERANCE * max(abs(low), abs(high))
    return ~((values >= low - slack) & (values <= high + slack))


def _check_volumes(volumes: float | Sequence[float]) -> np.ndarray:
    try:
        checked = np.atleast_1d(np.asarray(volumes, dtype=float))
    except (TypeError, ValueError) as error:
        raise RequestError(f"volumes {volumes!r} are not numbers; give counts such as 1.2e6") from error
    if checked.ndim != 1 or not checked.size:
        raise RequestError("no volume, or no plain list of volumes, asked for; give at least one")
    for volume in checked:
        if not 0 < volume < np.inf:
            raise RequestError(f"volume {volume:g} is not a positive number")
    if len(np.unique(checked)) < len(checked):
        raise RequestError("a volume is asked for twice; give each once")
    return checked


def _check_recipe(recipe: str | None, law: LawDraws, fit: Fit) -> None:
    known = law.labels["recipe"]
    if recipe is None or recipe in known:
        return
    if recipe in fit.study.recipes:
        raise RequestError(
            f"recipe '{recipe}' has no run on a backbone with text scores, so the fit knows nothing of it; "
            f"use '{NEW_RECIPE}' or leave it out"
        )
    if recipe != NEW_RECIPE:
        # With one recipe the fit cannot say how recipes differ, so that a new one is no choice.
        raise unknown_name("recipe", recipe, [*known, *([NEW_RECIPE] if "recipe_scale" in law else [])])
    if "recipe_scale" not in law:
        raise RequestError(
            f"this fit has {counted(len(known), 'recipe')} and cannot say how recipes differ; "
            "name it or leave it out"
        )
