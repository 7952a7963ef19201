"""L(N, D) = A/N^α + B/D^β + E, families partially pooled."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayescdm.laws import compute_loss
from bayescdm.loss.modeling import (
    LossModelData,
    pooled_by_family,
    terms_at_reference,
    trajectory_likelihood,
)


def build(data: LossModelData) -> pm.Model:
    """Compute law of multimodal training loss whose constants vary by family around their mean.

    Law        L = A/N^α + B/D^β + E; ln L normal around it, with an offset a run: the points of one run
               are not independent. Runs of one point each have Student-t residuals instead.
    Pooling    partial: exponents and ratios of terms lie around the families' mean, jointly Student-t with
               4 degrees of freedom. The loss at the reference point is each family's own: its data tell it.
    Priors     on that loss (reference point N_ref, D_ref: the centre of the data), on ln of the two terms
               there relative to E, and on ln of the exponents; roughly orthogonal.
    Dims       family, run, point.
    Source     paper eqs. 2 and 10, arXiv 2608.00013; the pooling is ours.
    """
    with pm.Model(coords=data.coords) as model:
        reference_loss = pm.LogNormal("reference_loss", 0.0, 1.0, dims="family")
        ln_ratio_A = pooled_by_family("ln_ratio_A", -1.0, 1.0, 0.27)
        ln_ratio_B = pooled_by_family("ln_ratio_B", -1.0, 1.0, 0.27)
        alpha = pt.exp(pooled_by_family("ln_alpha", np.log(0.3), 0.5, 0.16))
        beta = pt.exp(pooled_by_family("ln_beta", np.log(0.3), 0.5, 0.16))

        a, b, E = terms_at_reference(reference_loss, ln_ratio_A, ln_ratio_B)
        pm.Deterministic("A", a * data.params_ref**alpha, dims="family")
        pm.Deterministic("B", b * data.volume_ref**beta, dims="family")
        for name, value in (("E", E), ("alpha", alpha), ("beta", beta)):
            pm.Deterministic(name, value, dims="family")

        N, D = np.exp(data.log_params[data.run]), np.exp(data.log_volume)  # in units of N_ref and D_ref
        f = data.family[data.run]
        L = compute_loss(N, D, a[f], b[f], E[f], alpha[f], beta[f])
        trajectory_likelihood(pt.log(L), data)
    return model
