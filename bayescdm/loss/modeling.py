"""The few words in which the model files of the loss laws are written, and the data they take.

Names that the loss models give their quantities:

=====================  ===============  ==================================================================
name                   dims             meaning
=====================  ===============  ==================================================================
A, B, E, alpha, beta   — or (family)    constants of the law, for absolute counts
reference_loss         — or (family)    loss at N_ref, D_ref (and S = 0): what the data know best
ln_ratio_A, ln_ratio_B — or (family)    ln of a term at the reference point, relative to E
w, S                   component, run   direction and capability (capability law)
tau                    —                spread between runs of their own offset of ln L
sigma, nu              —                scale and degrees of freedom of the residual of ln L
=====================  ===============  ==================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from scipy.linalg import helmert

from bayescdm.errors import ModelError
from bayescdm.loss.pointfit import capability_direction
from bayescdm.loss.study import LossStudy

__all__ = [
    "LossModelData",
    "MixedModalData",
    "loss_likelihood",
    "loss_model_data",
    "pair_label",
    "pooled_by_family",
    "terms_at_reference",
    "trajectory_likelihood",
]


#: The arrays that may be swapped in a compiled model without compiling again.
SWAPPABLE = ("log_loss", "weight")


@dataclass(frozen=True)
class LossModelData:
    """Labelled arrays of one loss study, ready for a model file.

    Parameters
    ----------
    coords : dict of str to list
        Labels of ``family``, ``run``, ``component`` and ``point``.
    family : ndarray of int, (run,)
        Position of each run's family.
    run : ndarray of int, (point,)
        Position of each point's run.
    log_params : ndarray, (run,)
        ln(N / N_ref).
    log_compute : ndarray, (run,)
        ln(C / C_ref); zeros when the study states no compute.
    log_volume : ndarray, (point,)
        ln(D / D_ref).
    components : ndarray, (run, component)
        Capability components of each run's backbone; no columns when the study has none.
    log_loss, weight : ndarray, (point,)
        ln L, and 0 for points held out of the fit.
    params_ref, volume_ref, compute_ref : float
        N_ref and D_ref, absolute counts, and C_ref in the study's unit.
    repeated : bool
        Whether runs have several points each.
    start : dict
        Where chains start.
    """

    coords: dict[str, list[Any]]
    family: np.ndarray
    run: np.ndarray
    log_params: np.ndarray
    log_compute: np.ndarray
    log_volume: np.ndarray
    components: np.ndarray
    log_loss: np.ndarray
    weight: np.ndarray
    params_ref: float
    volume_ref: float
    compute_ref: float
    repeated: bool
    start: dict[str, Any]

    SWAPPABLE: ClassVar = SWAPPABLE

    def swap(self, **arrays: np.ndarray) -> LossModelData:
        """Return the same runs with other losses or weights.

        Parameters
        ----------
        **arrays
            Any of `SWAPPABLE`, same shapes as before.

        Raises
        ------
        ModelError
            If an array is not swappable or its shape differs.
        """
        data = replace(self, **_checked(self, arrays))
        return replace(data, start=_start(data))


def _checked(data: LossModelData | MixedModalData, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """Arrays that may take the place of those of the same name in `data`."""
    for name, value in arrays.items():
        if name not in SWAPPABLE:
            raise ModelError(f"'{name}' cannot be swapped; swappable are {', '.join(SWAPPABLE)}")
        if np.shape(value) != getattr(data, name).shape:
            raise ModelError(f"'{name}' has shape {np.shape(value)}, expected {getattr(data, name).shape}")
    return {name: np.asarray(value, float) for name, value in arrays.items()}


def loss_model_data(study: LossStudy) -> LossModelData:
    """Turn a loss study into the labelled arrays of a model.

    Parameters
    ----------
    study : LossStudy

    Returns
    -------
    LossModelData
    """
    K = 0 if study.components is None else study.components.shape[1]
    compute = study.runs.get("compute", pd.Series(1.0, index=study.runs.index)).to_numpy(float)
    compute_ref = float(np.exp(np.log(compute).mean()))
    data = LossModelData(
        coords={
            "family": study.families,
            "run": list(study.runs.index),
            "component": [] if study.components is None else list(study.components.columns),
            "point": list(range(len(study.points))),
        },
        family=np.asarray([study.families.index(f) for f in study.runs["family"]]),
        run=study.run_of_point,
        log_params=np.log(study.runs["params"].to_numpy(float) / study.params_ref),
        log_compute=np.log(compute / compute_ref),
        log_volume=np.log(study.volume / study.volume_ref),
        components=study.component_scores if K else np.empty((len(study.runs), 0)),
        log_loss=np.log(study.loss),
        weight=np.ones(len(study.points)),
        params_ref=study.params_ref,
        volume_ref=study.volume_ref,
        compute_ref=compute_ref,
        repeated=study.repeated,
        start={},
    )
    return replace(data, start=_start(data))


def _start(data: LossModelData) -> dict[str, Any]:
    """Direction of the point fit, where all chains start: on the wrong side of the sphere one can stick."""
    if not data.components.shape[1]:
        return {}
    Z = data.components[data.run]
    return {"w_raw": capability_direction(Z, data.log_volume, data.log_loss, data.weight)}


def terms_at_reference(reference_loss: Any, ln_ratio_A: Any, ln_ratio_B: Any) -> tuple[Any, Any, Any]:
    """Split the loss at the reference point into backbone term a, data term b and irreducible E.

    Parameters
    ----------
    reference_loss : TensorVariable
        a + b + E.
    ln_ratio_A, ln_ratio_B : TensorVariable
        ln(a/E) and ln(b/E).

    Returns
    -------
    a, b, E : TensorVariable
    """
    a, b = pt.exp(ln_ratio_A), pt.exp(ln_ratio_B)
    E = reference_loss / (1 + a + b)
    return a * E, b * E, E


def pooled_by_family(name: str, mean: float, spread: float, scale: float) -> Any:
    """Quantity that varies by family around the families' mean, partially pooled.

    The offsets sum to zero, so that the mean is a mean that the data see, however few the families are.
    They are jointly Student-t: normal offsets whose common variance has an inverse-gamma prior and is
    integrated out. With it left in, two families hardly tell it, and its funnel is all that a sampler meets;
    heavy tails let families that differ keep their distance.

    Parameters
    ----------
    name : str
    mean, spread : float
        Prior mean and sd of the families' mean.
    scale : float
        Scale of an offset; half of them lie within 0.74 of it where there are many families.

    Returns
    -------
    TensorVariable, (family,)
    """
    model = pm.modelcontext(None)
    contrasts = helmert(len(model.coords["family"])).T  # orthonormal, each sums to zero
    if "contrast" not in model.coords:
        model.add_coord("contrast", [f"contrast {k + 1}" for k in range(contrasts.shape[1])])
    middle = pm.Normal(f"{name}_mean", mean, spread)
    free = contrasts.shape[1]
    offset = pm.MvStudentT(f"{name}_offset", nu=4, mu=np.zeros(free), scale=np.eye(free), dims="contrast")
    return middle + scale * pt.dot(contrasts, offset)


def loss_likelihood(log_loss: Any, data: LossModelData | MixedModalData) -> None:
    """Student-t likelihood of ln L, weighted so that a run can be held out.

    Parameters
    ----------
    log_loss : TensorVariable, (point,)
    data : LossModelData
    """
    sigma = pm.HalfNormal("sigma", 0.03)
    nu = pm.Gamma("nu", 2, 0.1)
    weight = pm.Data("weight", data.weight, dims="point")
    observed = pm.Data("log_loss", data.log_loss, dims="point")
    pm.CustomDist(
        "ln_loss", nu, log_loss, sigma, weight, logp=_logp, random=_random, observed=observed, dims="point"
    )


def _logp(value: Any, nu: Any, mean: Any, sigma: Any, weight: Any) -> Any:
    return weight * pm.logp(pm.StudentT.dist(nu=nu, mu=mean, sigma=sigma), value)


def _random(nu: Any, mean: Any, sigma: Any, weight: Any, rng: Any = None, size: Any = None) -> Any:
    return mean + sigma * rng.standard_t(nu, size=size)


def trajectory_likelihood(log_loss: Any, data: LossModelData) -> None:
    """Normal likelihood of whole runs: an offset of ln L a run, integrated out, and residuals around it.

    Points of one run are not independent: without the offset every interval is too narrow. Integrated out,
    it leaves no funnel, and a run is one unit to hold out: its weight is the mean of its points'. Where
    each run has one point this is `loss_likelihood`.

    Parameters
    ----------
    log_loss : TensorVariable, (point,)
    data : LossModelData

    Notes
    -----
    The n residuals e of a run have covariance σ²I + τ²11ᵀ: their mean m has variance τ² + σ²/n, the
    deviations from it have variance σ².
    """
    if not data.repeated:
        loss_likelihood(log_loss, data)
        return
    tau = pm.HalfNormal("tau", 0.05)
    sigma = pm.HalfNormal("sigma", 0.03)
    membership = np.equal.outer(np.arange(len(data.family)), data.run).astype(float)
    weight = pm.Data("weight", data.weight, dims="point")
    observed = pm.Data("log_loss", data.log_loss, dims="point")

    def logp(value: Any, mean: Any, tau: Any, sigma: Any, weight: Any) -> Any:
        residual, n = value - mean, membership.sum(axis=1)
        means = pt.dot(membership, residual) / n
        within = pt.dot(membership, residual**2) - n * means**2
        of_mean = sigma**2 + n * tau**2
        log_density = (
            (n - 1) * pt.log(sigma**2) + pt.log(of_mean) + within / sigma**2 + n * means**2 / of_mean
        )
        kept = pt.dot(membership, weight) / n
        return -kept / 2 * (log_density + n * np.log(2 * np.pi))

    def random(mean: Any, tau: Any, sigma: Any, weight: Any, rng: Any = None, size: Any = None) -> Any:
        offsets = tau * rng.standard_normal(len(membership))
        return mean + offsets[data.run] + sigma * rng.standard_normal(len(data.run))

    pm.CustomDist(
        "ln_loss",
        log_loss,
        tau,
        sigma,
        weight,
        logp=logp,
        random=random,
        signature="(p),(),(),(p)->(p)",
        observed=observed,
        dims="point",
    )


# --- pairs of modalities ----------------------------------------------------------------------------


@dataclass(frozen=True)
class MixedModalData:
    """Labelled arrays of runs on one modality or two, ready for a model file.

    Parameters
    ----------
    coords : dict of str to list
        Labels of ``modality``, ``pair`` and ``point``.
    first, second : ndarray of int, (point,)
        Positions of a run's modalities; the same one twice where there is one only.
    pair : ndarray of int, (point,)
        Position of its pair, −1 for one modality.
    log_params, log_volume_first, log_volume_second : ndarray, (point,)
        ln(N / N_ref), ln(D / D_ref).
    log_loss, weight : ndarray, (point,)
        ln L, and 0 for points held out of the fit.
    params_ref, volume_ref : float
        N_ref and D_ref, absolute counts.
    """

    coords: dict[str, list[Any]]
    first: np.ndarray
    second: np.ndarray
    pair: np.ndarray
    log_params: np.ndarray
    log_volume_first: np.ndarray
    log_volume_second: np.ndarray
    log_loss: np.ndarray
    weight: np.ndarray
    params_ref: float
    volume_ref: float

    SWAPPABLE: ClassVar = SWAPPABLE
    #: No point fit is needed to start: every prior has its centre at ordinary losses.
    start: ClassVar[dict[str, Any]] = {}

    def swap(self, **arrays: np.ndarray) -> MixedModalData:
        """Return the same runs with other losses or weights.

        Parameters
        ----------
        **arrays
            Any of `SWAPPABLE`, same shapes as before.

        Raises
        ------
        ModelError
            If an array is not swappable or its shape differs.
        """
        return replace(self, **_checked(self, arrays))


def pair_label(first: str, second: str, modalities: list[str]) -> str:
    """Name of a pair, whichever way round it is asked for.

    Parameters
    ----------
    first, second : str
    modalities : list of str
        Their order decides.

    Returns
    -------
    str

    Examples
    --------
    >>> pair_label("image", "text", ["text", "image"])
    'text + image'
    """
    order = {name: i for i, name in enumerate(modalities)}
    return " + ".join(sorted((first, second), key=lambda name: (order.get(name, len(order)), name)))
