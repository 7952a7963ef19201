"""L(N, D) = A/N^α + B/D^β + E, every family its own constants."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayescdm.laws import compute_loss
from bayescdm.loss.modeling import LossModelData, terms_at_reference, trajectory_likelihood


def build(data: LossModelData) -> pm.Model:
    """Compute law of multimodal training loss, one fit a family.

    Law        L = A/N^α + B/D^β + E; ln L normal around it, with an offset a run: the points of one run
               are not independent. Runs of one point each have Student-t residuals instead.
    Pooling    none: families share only the spread of offsets and residuals, as in the paper's baseline.
    Priors     on the loss at the reference point (N_ref, D_ref: the centre of the data), on the two terms
               there relative to E, and on the exponents; roughly orthogonal, while A and α are not.
    Dims       family, run, point.
    Source     paper eqs. 2 and 10, arXiv 2608.00013.
    """
    with pm.Model(coords=data.coords) as model:
        reference_loss = pm.LogNormal("reference_loss", 0.0, 1.0, dims="family")
        ln_ratio_A = pm.Normal("ln_ratio_A", -1.0, 1.0, dims="family")
        ln_ratio_B = pm.Normal("ln_ratio_B", -1.0, 1.0, dims="family")
        alpha = pm.LogNormal("alpha", np.log(0.3), 0.5, dims="family")
        beta = pm.LogNormal("beta", np.log(0.3), 0.5, dims="family")

        a, b, E = terms_at_reference(reference_loss, ln_ratio_A, ln_ratio_B)
        pm.Deterministic("A", a * data.params_ref**alpha, dims="family")
        pm.Deterministic("B", b * data.volume_ref**beta, dims="family")
        pm.Deterministic("E", E, dims="family")

        N, D = np.exp(data.log_params[data.run]), np.exp(data.log_volume)  # in units of N_ref and D_ref
        f = data.family[data.run]
        L = compute_loss(N, D, a[f], b[f], E[f], alpha[f], beta[f])
        trajectory_likelihood(pt.log(L), data)
    return model
