"""Error = β·C^α + floor of contrastive image–text models, a law for each training set."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayescdm.laws import contrastive_error
from bayescdm.loss.modeling import LossModelData, loss_likelihood


def build(data: LossModelData) -> pm.Model:
    """Power law of a downstream error in compute, one for each training set.

    Law        error = β·C^α + floor with α < 0; residuals Student-t on ln error.
    Pooling    none: training sets share only the spread of the residuals, as the study finds them on
               different lines.
    Priors     on the error at the reference compute C_ref (the centre of the data), on the share of it that
               is floor, and on the exponent; roughly orthogonal, while β and α are not.
    Dims       family (the training set), point.
    Source     Cherti et al., arXiv 2212.07143.
    """
    with pm.Model(coords=data.coords) as model:
        reference_loss = pm.LogNormal("reference_loss", np.log(0.35), 0.5, dims="family")
        floor_share = pm.Beta("floor_share", 1, 2, dims="family")
        decay = pm.LogNormal("decay", np.log(0.15), 0.6, dims="family")

        above, floor = reference_loss * (1 - floor_share), reference_loss * floor_share
        alpha = pm.Deterministic("alpha", -decay, dims="family")
        pm.Deterministic("beta", above * data.compute_ref**decay, dims="family")
        pm.Deterministic("floor", floor, dims="family")

        C, f = np.exp(data.log_compute[data.run]), data.family[data.run]  # C in units of C_ref
        error = contrastive_error(C, above[f], alpha[f], floor[f])
        loss_likelihood(pt.log(error), data)
    return model
