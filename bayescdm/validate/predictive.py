"""What single runs would measure, given the draws of a fit: the user's prediction, run by run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.stats import norm
from scipy.stats import t as student_t

from bayescdm.predict import LawDraws
from bayescdm.predict.question import Question
from bayescdm.seeds import generator

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["RunPredictive", "run_predictive"]


@dataclass(frozen=True)
class RunPredictive:
    """Predictive distributions of runs: location, scale and tail of the residual in every draw.

    Parameters
    ----------
    expected : ndarray, (run, sample)
        Accuracy without residual, a fraction.
    capability : ndarray, (run, sample)
        S of each run's backbone.
    scale : ndarray, (run, sample)
        Scale of the residual, a known standard error of the measurement included.
    nu : ndarray, (sample,), or None
        Degrees of freedom of Student-t residuals; None for Normal ones.
    """

    expected: np.ndarray
    capability: np.ndarray
    scale: np.ndarray
    nu: np.ndarray | None

    def draws(self, seed: int) -> np.ndarray:
        """Draw what each run would measure, (run, sample)."""
        rng = generator(seed)
        shape = self.expected.shape
        noise = rng.standard_normal(shape) if self.nu is None else rng.standard_t(self.nu, shape)
        return self.expected + self.scale * noise

    def log_density(self, observed: np.ndarray) -> np.ndarray:
        """Log density of each observed accuracy in each draw, (run, sample)."""
        z = (observed[:, None] - self.expected) / self.scale
        density = norm.logpdf(z) if self.nu is None else student_t.logpdf(z, self.nu)
        return density - np.log(self.scale)

    def pit(self, observed: np.ndarray) -> np.ndarray:
        """Probability of measuring less than was observed, (run,); uniform when predictions are right."""
        z = (observed[:, None] - self.expected) / self.scale
        below = norm.cdf(z) if self.nu is None else student_t.cdf(z, self.nu)
        return below.mean(axis=1)


def run_predictive(fit: Fit, runs: pd.DataFrame) -> RunPredictive:
    """Predict each of a study's runs from the draws of a fit, as `bayescdm.predict` does.

    Parameters
    ----------
    fit : Fit
        With or without these runs held out.
    runs : DataFrame, (run, ...)
        Rows of the study's fitted runs.

    Returns
    -------
    RunPredictive

    Notes
    -----
    Each recipe is one question to `bayescdm.predict`, at the volumes of its runs. Where a recipe's volume
    is unknown, the prediction is at its latent volume in each draw: the law is a line in ln D, laid through
    the predictions at D_ref and e·D_ref. A recipe all of whose runs are held out keeps its level in the
    model, whose draws are those of a new recipe.
    """
    law = LawDraws.of(fit)
    expected = np.empty((len(runs), len(law.sample)))
    capability = np.empty_like(expected)
    for recipe in runs["recipe"].unique():
        rows = np.flatnonzero(runs["recipe"].to_numpy() == recipe)
        expected[rows], capability[rows] = _of_recipe(fit, runs.iloc[rows], str(recipe))
    errors = np.zeros(len(runs))
    if "standard_error" in runs:
        errors = runs["standard_error"].fillna(0.0).to_numpy(float)
    scale = np.sqrt(law["sigma"] ** 2 + errors[:, None] ** 2)
    return RunPredictive(expected, capability, scale, law.values.get("nu"))


def _of_recipe(fit: Fit, runs: pd.DataFrame, recipe: str) -> tuple[np.ndarray, np.ndarray]:
    """Expected accuracy and capability of the runs of one recipe, both (run, sample)."""
    reference = float(fit.study.volume_ref or 1.0)
    volume = runs["volume"].to_numpy(float)
    unknown = np.isnan(volume)
    anchors = np.array([reference, np.e * reference]) if unknown.any() else np.empty(0)
    volumes = np.unique(np.concatenate([volume[~unknown], anchors]))
    names = pd.Index(runs["backbone"].unique())
    question = Question.of(
        fit, list(names), volumes=list(volumes), recipe=recipe, kind="backbone", seed=0, draws=None
    )
    accuracy, row = question.expected_accuracy(), names.get_indexer(runs["backbone"])
    expected = accuracy[row, np.searchsorted(volumes, np.where(unknown, volumes[0], volume))]
    if unknown.any():
        at_reference, one_up = (accuracy[row, np.searchsorted(volumes, anchor)] for anchor in anchors)
        at_latent = at_reference + _latent_log_volume(fit, recipe) * (one_up - at_reference)
        expected = np.where(unknown[:, None], at_latent, expected)
    return expected, question.capability[row]


def _latent_log_volume(fit: Fit, recipe: str) -> np.ndarray:
    """Draws of ln(D/D_ref) of a recipe whose volume is unknown, chain after chain."""
    latent = fit.posterior["log_volume_unknown"].sel(recipe_unknown_volume=recipe)
    return latent.transpose("chain", "draw").to_numpy().ravel()
