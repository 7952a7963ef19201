"""L(N, D) = A/N^α + B/D^β + E for text-only language models."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayescdm.laws import compute_loss
from bayescdm.loss.modeling import LossModelData, loss_likelihood, terms_at_reference


def build(data: LossModelData) -> pm.Model:
    """Parametric loss law of Hoffmann et al., one set of constants.

    Law        L = A/N^α + B/D^β + E, residuals Student-t on ln L.
    Pooling    none needed: every point is a training run of one study.
    Priors     on the loss at the reference point (N_ref, D_ref: the centre of the data), on the two terms
               there relative to E, and on the exponents; roughly orthogonal, while A and α are not.
    Dims       point.
    Source     arXiv 2203.15556, approach 3, eq. 10; paper eq. 1.
    """
    with pm.Model(coords=data.coords) as model:
        reference_loss = pm.LogNormal("reference_loss", np.log(2.5), 0.5)
        ln_ratio_A = pm.Normal("ln_ratio_A", -1.5, 1.0)
        ln_ratio_B = pm.Normal("ln_ratio_B", -1.5, 1.0)
        alpha = pm.LogNormal("alpha", np.log(0.3), 0.5)
        beta = pm.LogNormal("beta", np.log(0.3), 0.5)

        a, b, E = terms_at_reference(reference_loss, ln_ratio_A, ln_ratio_B)
        pm.Deterministic("A", a * data.params_ref**alpha)
        pm.Deterministic("B", b * data.volume_ref**beta)
        pm.Deterministic("E", E)

        N, D = np.exp(data.log_params[data.run]), np.exp(data.log_volume)  # in units of N_ref and D_ref
        loss_likelihood(pt.log(compute_loss(N, D, a, b, E, alpha, beta)), data)
    return model
