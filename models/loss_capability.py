"""L(S, D) = A·exp(−α·S) + B/D^β + E, one law for all families."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayescdm.laws import capability_loss
from bayescdm.loss.modeling import LossModelData, terms_at_reference, trajectory_likelihood
from bayescdm.modeling import unit_direction


def build(data: LossModelData) -> pm.Model:
    """Capability law of multimodal training loss: text scores stand in for size and pre-training.

    Law        L = A·exp(−α·S) + B/D^β + E, S = Z·w, ‖w‖ = 1; ln L normal around it, with an offset a run:
               the points of one run are not independent.
    Pooling    complete: one set of constants for every family, as the paper claims.
    Priors     w uniform on the sphere and α > 0, so that the direction has one sign; on the loss at the
               reference point (S = 0, D_ref), on the two terms there relative to E, and on the exponents.
    Dims       component, run, point.
    Source     paper eqs. 4 and 6, arXiv 2608.00013.
    """
    with pm.Model(coords=data.coords) as model:
        w = unit_direction("w", data)
        S = pm.Deterministic("S", pm.math.dot(data.components, w), dims="run")
        reference_loss = pm.LogNormal("reference_loss", 0.0, 1.0)
        ln_ratio_A = pm.Normal("ln_ratio_A", -1.0, 1.0)
        ln_ratio_B = pm.Normal("ln_ratio_B", -1.0, 1.0)
        alpha = pm.LogNormal("alpha", 0.0, 0.7)
        beta = pm.LogNormal("beta", np.log(0.3), 0.5)

        a, b, E = terms_at_reference(reference_loss, ln_ratio_A, ln_ratio_B)
        pm.Deterministic("A", a)  # S = 0 is the reference point
        pm.Deterministic("B", b * data.volume_ref**beta)
        pm.Deterministic("E", E)

        D = np.exp(data.log_volume)  # in units of D_ref
        L = capability_loss(S[data.run], D, a, b, E, alpha, beta)
        trajectory_likelihood(pt.log(L), data)
    return model
