"""The few words in which model files are written.

A model file (see ``models/``) holds one function ``build(data) -> pymc.Model``. `data` is a
:class:`ModelData`: labelled arrays made from a study and its capability, with the point fit at which
all chains start. The words below are the parts that would otherwise hide the equation: a direction on
the unit sphere, partial pooling of a positive rate, zero-sum recipe baselines, a weighted robust
likelihood.

Names that every transfer model gives its quantities, which prediction and comparison rely on:

==================  ==============================  =================================================
name                dims                            meaning
==================  ==============================  =================================================
w                   component                       direction, unit norm
S                   backbone                        capability
A, B0, Bm           family, variant                 rates
A_population, …     —                               population median of each rate
A_family_scale, …   — (optional, 0 when absent)     sd of the family deviations of the log rate
A_contrast, …       — (optional, 0 when absent)     instruct − base on the log scale
A_contrast_scale …  — (optional, 0 when absent)     sd of the families' deviations of that contrast
B                   backbone                        absorption rate B0 − Bm·S
P0                  —                               baseline at S = 0, D = D_ref, mean of the recipes
recipe_effect       recipe (optional)               sums to zero
recipe_scale        — (optional)                    sd of the recipes' baselines
size_slope          — (optional)                    accuracy per unit of ln N, N in parameters
tau                 — (optional)                    sd of backbone intercepts
backbone_effect     backbone (optional)             backbone intercept
sigma, nu           — (nu optional)                 scale and degrees of freedom of the residual
==================  ==============================  =================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt

from bayescdm.capability import Capability
from bayescdm.errors import ModelError
from bayescdm.pointfit import variable_projection
from bayescdm.study import VARIANTS, Study

__all__ = [
    "ModelData",
    "backbone_intercept",
    "capability",
    "log_volume",
    "model_data",
    "nonnegative",
    "of_backbone",
    "partial_pool",
    "pooled",
    "recipe_baseline",
    "robust_likelihood",
    "size_term",
    "unit_direction",
]

#: Softness of B ≥ 0, accuracy per unit of ln D: the paper's penalty on negative absorption.
ABSORPTION_SOFTNESS = 0.002
#: Prior sd of an unknown ln(D/D_ref): a factor of 4.5 either way.
UNKNOWN_VOLUME_SPREAD = 1.5


@dataclass(frozen=True)
class ModelData:
    """Labelled arrays of one study, ready for a model file.

    Parameters
    ----------
    coords : dict of str to list
        Labels of ``component``, ``family``, ``variant``, ``backbone``, ``recipe``, ``run``,
        ``recipe_unknown_volume`` and ``backbone_incomplete``.
    components : ndarray, (backbone, component)
        Component scores Z; posterior means where text scores are missing.
    component_factors : ndarray, (backbone_incomplete, component, component)
        Cholesky factors of the components' covariance for backbones with missing text scores.
    incomplete : ndarray of int, (backbone,)
        Position among ``backbone_incomplete``, −1 for complete ones.
    family, variant : ndarray of int, (backbone,)
        Positions in ``coords``.
    log_params : ndarray, (backbone,)
        ln(N / N_ref), centred over the study's backbones.
    log_params_ref : float
        ln N_ref.
    backbone, recipe : ndarray of int, (run,)
    unknown_volume : ndarray of int, (run,)
        Position among ``recipe_unknown_volume``, −1 where the volume is known.
    log_volume : ndarray, (run,)
        ln(D/D_ref); 0 where unknown.
    accuracy, standard_error, weight : ndarray, (run,)
        Fractions; a weight of 0 holds a run out of the fit, its labels stay.
    start : dict
        Where chains start, a value for each random variable that a point fit speaks about
        (``w_raw``, ``log_A``, ``log_B0``, ``log_Bm``, ``P0``, ``recipe_effect``).
    """

    coords: dict[str, list[Any]]
    components: np.ndarray
    component_factors: np.ndarray
    incomplete: np.ndarray
    family: np.ndarray
    variant: np.ndarray
    log_params: np.ndarray
    log_params_ref: float
    backbone: np.ndarray
    recipe: np.ndarray
    unknown_volume: np.ndarray
    log_volume: np.ndarray
    accuracy: np.ndarray
    standard_error: np.ndarray
    weight: np.ndarray
    start: dict[str, Any]

    #: The arrays that may be swapped in a compiled model without compiling again.
    SWAPPABLE: ClassVar = (
        "components",
        "component_factors",
        "log_volume",
        "accuracy",
        "standard_error",
        "weight",
    )

    def swap(self, **arrays: np.ndarray) -> ModelData:
        """Return the same labels with other arrays, and a start that fits them.

        Parameters
        ----------
        **arrays
            Any of `SWAPPABLE`, same shapes as before.

        Raises
        ------
        ModelError
            If an array is not swappable or its shape differs.
        """
        for name, value in arrays.items():
            if name not in self.SWAPPABLE:
                raise ModelError(f"'{name}' cannot be swapped; swappable are {', '.join(self.SWAPPABLE)}")
            if np.shape(value) != getattr(self, name).shape:
                raise ModelError(
                    f"'{name}' has shape {np.shape(value)}, expected {getattr(self, name).shape}"
                )
        swapped: dict[str, Any] = {name: np.asarray(value, float) for name, value in arrays.items()}
        data = replace(self, **swapped)
        return replace(data, start=_start(data))


def model_data(study: Study, capability: Capability) -> ModelData:
    """Turn a study and its capability into the labelled arrays of a model.

    Parameters
    ----------
    study : Study
    capability : Capability
        Components of (at least) every scored backbone with runs.

    Returns
    -------
    ModelData

    Raises
    ------
    ModelError
        If no run has a backbone with text scores.
    """
    runs = study.fitted_runs
    if runs.empty:
        raise ModelError(f"{study.name}: no run has a backbone with text scores; there is nothing to fit")
    backbones = pd.Index(sorted(runs["backbone"].unique()))
    labels = study.backbones.loc[backbones]
    families = pd.Index(sorted(labels["family"].unique()))
    recipes = pd.Index(sorted(runs["recipe"].unique()))
    unknown = pd.Index(sorted(runs.loc[runs["volume"].isna(), "recipe"].unique()))
    position = capability.scores.index.get_indexer(backbones)
    covariance = capability.covariance[position]
    incomplete = np.flatnonzero(np.abs(covariance).sum(axis=(1, 2)) > 0)
    log_params = np.log(labels["params"].to_numpy(float))
    log_params_ref = float(np.nanmean(log_params)) if np.isfinite(log_params).any() else 0.0
    errors = runs["standard_error"] if "standard_error" in runs else pd.Series(0.0, index=runs.index)
    data = ModelData(
        coords={
            "component": list(capability.scores.columns),
            "family": list(families),
            "variant": list(VARIANTS),
            "backbone": list(backbones),
            "recipe": list(recipes),
            "run": [str(label) for label in runs.index],
            "recipe_unknown_volume": list(unknown),
            "backbone_incomplete": list(backbones[incomplete]),
        },
        components=capability.scores.to_numpy(float)[position],
        component_factors=_factors(covariance[incomplete]),
        incomplete=_positions(len(backbones), incomplete),
        family=families.get_indexer(labels["family"]),
        variant=pd.Index(VARIANTS).get_indexer(labels["variant"]),
        log_params=log_params - log_params_ref,
        log_params_ref=log_params_ref,
        backbone=backbones.get_indexer(runs["backbone"]),
        recipe=recipes.get_indexer(runs["recipe"]),
        unknown_volume=np.where(runs["volume"].isna(), unknown.get_indexer(runs["recipe"]), -1),
        log_volume=np.log(runs["volume"] / study.volume_ref).fillna(0.0).to_numpy(float),
        accuracy=runs["accuracy"].to_numpy(float),
        standard_error=errors.fillna(0.0).to_numpy(float),
        weight=np.ones(len(runs)),
        start={},
    )
    return replace(data, start=_start(data))


def _factors(covariance: np.ndarray) -> np.ndarray:
    """Symmetric square roots; unlike Cholesky they accept covariances of reduced rank."""
    if not len(covariance):
        return covariance
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.clip(values, 0, None))[:, None, :]


def _positions(n: int, where: np.ndarray) -> np.ndarray:
    positions = np.full(n, -1)
    positions[where] = np.arange(len(where))
    return positions


def _start(data: ModelData) -> dict[str, Any]:
    """Point fit of the shared law, the place where every chain starts."""
    point = variable_projection(
        data.components,
        data.backbone,
        data.log_volume,
        data.accuracy,
        data.recipe,
        weights=data.weight,
    )
    # Clipped into the priors' bulk: a rate of 0 at a bound has no logarithm.
    return {
        "w_raw": point.w,
        "log_A": np.log(np.clip(point.A, 0.05, 1.5)),
        "log_B0": np.log(np.clip(point.B0, 0.003, 0.1)),
        "log_Bm": np.log(np.clip(point.Bm, 0.003, 0.1)),
        "P0": np.clip(point.P0, 0.05, 0.95),
        "recipe_effect": point.recipe_effect - np.mean(point.recipe_effect),
    }


# --- words ------------------------------------------------------------------------------------------


class _WithComponents(Protocol):
    """Data with component scores, of backbones or of training runs."""

    @property
    def components(self) -> np.ndarray: ...


def unit_direction(name: str, data: _WithComponents) -> Any:
    """Direction with a uniform prior on the unit sphere, dims (component,).

    The direction is z/‖z‖ of a vector whose radius has its own prior N(1, 0.1) away from zero, where the
    gradient of the direction would blow up: density(z) = p(r)·r^−(K−1). With one component the sphere
    is {−1, +1}; PC1 is oriented so that higher is better and A > 0, so the direction is +1.

    Parameters
    ----------
    name : str
    data : ModelData
        Or any other data with ``components``, (…, component).

    Returns
    -------
    TensorVariable, (component,)
    """
    K = data.components.shape[1]
    if K == 1:
        return pm.Deterministic(name, pt.ones(1), dims="component")
    z = pm.CustomDist(f"{name}_raw", logp=_radial_logp, dist=_radial(K), ndim_supp=1, shape=(K,))
    return pm.Deterministic(name, z / pt.sqrt(pt.sum(z**2)), dims="component")


def _radial_logp(z: Any) -> Any:
    """Log density of a vector with uniform direction and radius N(1, 0.1), up to a constant."""
    K = z.shape[-1]
    radius = pt.sqrt(pt.sum(z**2, axis=-1))
    return -0.5 * ((radius - 1) / 0.1) ** 2 - (K - 1) * pt.log(radius)


def _radial(K: int) -> Any:
    def dist(size: Any) -> Any:
        z = pm.Normal.dist(0, 1, shape=(K,))
        return z / pt.sqrt(pt.sum(z**2)) * pm.Normal.dist(1, 0.1)

    return dist


def capability(w: Any, data: ModelData) -> Any:
    """Capability S = Z·w of each backbone; Z is uncertain where text scores are missing.

    Parameters
    ----------
    w : TensorVariable, (component,)
    data : ModelData

    Returns
    -------
    TensorVariable, (backbone,)
    """
    Z = pm.Data("components", data.components, dims=("backbone", "component"))
    if len(data.component_factors):
        factors = pm.Data("component_factors", data.component_factors)
        shift = pm.Normal("component_shift", 0, 1, dims=("backbone_incomplete", "component"))
        known = pt.as_tensor(data.incomplete < 0)[:, None]
        moved = pt.sum(factors * shift[:, None, :], axis=-1)[np.maximum(data.incomplete, 0)]
        Z = Z + pt.where(known, 0.0, moved)
    return pm.Deterministic("S", Z @ w, dims="backbone")


def partial_pool(name: str, median: float, spread: float, data: ModelData) -> Any:
    """Positive rate that varies by family and by Base/Instruct, partially pooled on the log scale.

    log rate[f, v] = log population + family_scale·ε_f ± ½·(contrast + contrast_scale·δ_f),
    with + for instruct. Two variants and few families let the data say little about scales, so the
    contrast is a parameter rather than a two-level random effect, and the scales are half-normal.

    Parameters
    ----------
    name : str
        ``A``, ``B0`` or ``Bm``.
    median, spread : float
        Prior median of the population rate, and sd of its logarithm.
    data : ModelData

    Returns
    -------
    TensorVariable, (family, variant)
    """
    population = _population(name, median, spread)
    family_scale = pm.HalfNormal(f"{name}_family_scale", 0.3)
    family = pm.Normal(f"{name}_family_offset", 0, 1, dims="family")
    contrast = pm.Normal(f"{name}_contrast", 0, 0.5)
    contrast_scale = pm.HalfNormal(f"{name}_contrast_scale", 0.3)
    by_family = pm.Normal(f"{name}_contrast_offset", 0, 1, dims="family")
    half = (contrast + contrast_scale * by_family)[:, None] * np.array([-0.5, 0.5])
    return pm.Deterministic(
        name, pt.exp(population + (family_scale * family)[:, None] + half), dims=("family", "variant")
    )


def pooled(name: str, median: float, spread: float, data: ModelData) -> Any:
    """Positive rate shared by all families and variants, shown on the same dims as a pooled one.

    Parameters
    ----------
    name, median, spread, data
        As for :func:`partial_pool`.

    Returns
    -------
    TensorVariable, (family, variant)
    """
    population = _population(name, median, spread)
    shape = (len(data.coords["family"]), len(data.coords["variant"]))
    return pm.Deterministic(name, pt.exp(population) * np.ones(shape), dims=("family", "variant"))


def _population(name: str, median: float, spread: float) -> Any:
    log_rate = pm.Normal(f"log_{name}", np.log(median), spread)
    pm.Deterministic(f"{name}_population", pt.exp(log_rate))
    return log_rate


def of_backbone(rate: Any, data: ModelData) -> Any:
    """Rate of each backbone's (family, variant) cell.

    Parameters
    ----------
    rate : TensorVariable, (family, variant)
    data : ModelData

    Returns
    -------
    TensorVariable, (backbone,)
    """
    return rate[data.family, data.variant]


def nonnegative(B: Any) -> None:
    """Penalise negative absorption rates softly, as the paper's objective does.

    Parameters
    ----------
    B : TensorVariable, (backbone,)
    """
    pm.Potential("nonnegative_absorption", -0.5 * pt.sum((pt.minimum(0, B) / ABSORPTION_SOFTNESS) ** 2))


def log_volume(data: ModelData) -> Any:
    """Return ln(D/D_ref) of each run; a latent with a wide prior for a recipe whose volume is unknown.

    Parameters
    ----------
    data : ModelData

    Returns
    -------
    TensorVariable, (run,)
    """
    known = pm.Data("log_volume", data.log_volume, dims="run")
    if not data.coords["recipe_unknown_volume"]:
        return known
    latent = pm.Normal("log_volume_unknown", 0, UNKNOWN_VOLUME_SPREAD, dims="recipe_unknown_volume")
    return pt.where(data.unknown_volume < 0, known, latent[np.maximum(data.unknown_volume, 0)])


def recipe_baseline(data: ModelData) -> Any:
    """Deviation of each run's recipe from P0, zero-sum so that P0 is the mean baseline; 0 for one recipe.

    Parameters
    ----------
    data : ModelData

    Returns
    -------
    TensorVariable or float, (run,)
    """
    if len(data.coords["recipe"]) == 1:
        return 0.0
    scale = pm.HalfNormal("recipe_scale", 0.1)
    effect = pm.ZeroSumNormal("recipe_effect", sigma=scale, dims="recipe")
    return effect[data.recipe]


def backbone_intercept(data: ModelData) -> Any:
    """Intercept of each run's backbone: points of one trajectory are not independent.

    Parameters
    ----------
    data : ModelData

    Returns
    -------
    TensorVariable, (run,)
    """
    tau = pm.HalfNormal("tau", 0.03)
    offset = pm.Normal("backbone_offset", 0, 1, dims="backbone")
    effect = pm.Deterministic("backbone_effect", tau * offset, dims="backbone")
    return effect[data.backbone]


def size_term(data: ModelData) -> Any:
    """Accuracy that goes with size at equal capability: slope × ln(N/N_ref) of each run's backbone.

    Parameters
    ----------
    data : ModelData

    Returns
    -------
    TensorVariable, (run,)

    Raises
    ------
    ModelError
        If the parameter count of a backbone is unknown; names it.
    """
    unknown = np.flatnonzero(~np.isfinite(data.log_params))
    if len(unknown):
        names = ", ".join(data.coords["backbone"][i] for i in unknown)
        raise ModelError(f"this model needs the parameter count of every backbone; unknown for {names}")
    slope = pm.Normal("size_slope", 0, 0.05)
    return slope * data.log_params[data.backbone]


def robust_likelihood(name: str, mean: Any, data: ModelData) -> None:
    """Student-t likelihood of the runs' accuracies, weighted so that a run can be held out.

    Parameters
    ----------
    name : str
    mean : TensorVariable, (run,)
    data : ModelData

    Notes
    -----
    A weight of 0 removes a run's likelihood and leaves every label in place, so that a compiled model
    is refitted without a family, recipe or backbone by swapping one array.
    """
    sigma = pm.HalfNormal("sigma", 0.02)
    nu = pm.Gamma("nu", 2, 0.1)
    scale = pt.sqrt(sigma**2 + pm.Data("standard_error", data.standard_error, dims="run") ** 2)
    weight = pm.Data("weight", data.weight, dims="run")
    observed = pm.Data("observed_accuracy", data.accuracy, dims="run")
    pm.CustomDist(
        name, nu, mean, scale, weight, logp=_weighted_t_logp, random=_t_random, observed=observed, dims="run"
    )


def _weighted_t_logp(value: Any, nu: Any, mean: Any, scale: Any, weight: Any) -> Any:
    return weight * pm.logp(pm.StudentT.dist(nu=nu, mu=mean, sigma=scale), value)


def _t_random(nu: Any, mean: Any, scale: Any, weight: Any, rng: Any = None, size: Any = None) -> Any:
    return mean + scale * rng.standard_t(nu, size=size)
