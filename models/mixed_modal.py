"""Token losses of single modalities and of pairs: competition against synergy."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayescdm.laws import mixed_modal_loss, mixed_modal_pair_loss
from bayescdm.loss.modeling import MixedModalData, loss_likelihood, terms_at_reference


def build(data: MixedModalData) -> pm.Model:
    """Laws of every modality alone, and of every pair relative to them.

    Law        L_j = E_j + A_j/N^α_j + B_j/D_j^β_j;
               L_ij = ½(L_i + L_j) − C_ij + A_ij/N^α_ij + B_ij/(D_i + D_j)^β_ij; residuals Student-t on ln L.
    Pooling    none: modalities and pairs share only the spread of the residuals.
    Priors     on losses and ratios of terms at the reference point (N_ref, D_ref: the centre of the data);
               for a pair on its whole interaction there, symmetric about 0, so that competition and synergy
               start out equally likely, and on the two competition terms that make it up with C.
    Dims       modality, pair, point.
    Source     Aghajanyan et al., arXiv 2301.03728.
    """
    with pm.Model(coords=data.coords) as model:
        reference_loss = pm.LogNormal("reference_loss", np.log(3.0), 0.7, dims="modality")
        ln_ratio_A = pm.Normal("ln_ratio_A", -1.0, 1.0, dims="modality")
        ln_ratio_B = pm.Normal("ln_ratio_B", -1.0, 1.0, dims="modality")
        alpha = pm.LogNormal("alpha", np.log(0.3), 0.5, dims="modality")
        beta = pm.LogNormal("beta", np.log(0.3), 0.5, dims="modality")
        a, b, E = terms_at_reference(reference_loss, ln_ratio_A, ln_ratio_B)

        interaction = pm.Normal("interaction", 0.0, 0.2, dims="pair")  # below 0: synergy
        pair_a = pm.HalfNormal("competition_params", 0.2, dims="pair")
        pair_b = pm.HalfNormal("competition_volume", 0.2, dims="pair")
        pair_alpha = pm.LogNormal("pair_alpha", np.log(0.3), 0.5, dims="pair")
        pair_beta = pm.LogNormal("pair_beta", np.log(0.3), 0.5, dims="pair")
        C = pm.Deterministic("C", pair_a + pair_b - interaction, dims="pair")

        N = np.exp(data.log_params)  # in units of N_ref; volumes in units of D_ref, their sum of 2·D_ref
        D_i, D_j = np.exp(data.log_volume_first), np.exp(data.log_volume_second)
        i, j, p = data.first, data.second, np.maximum(data.pair, 0)
        L_i = mixed_modal_loss(N, D_i, a[i], b[i], E[i], alpha[i], beta[i])
        L_j = mixed_modal_loss(N, D_j, a[j], b[j], E[j], alpha[j], beta[j])
        L_ij = mixed_modal_pair_loss(
            L_i, L_j, N, D_i / 2, D_j / 2, C[p], pair_a[p], pair_b[p], pair_alpha[p], pair_beta[p]
        )
        loss_likelihood(pt.log(pt.where(data.pair < 0, L_i, L_ij)), data)

        for name, value, dim in (
            ("A", a * data.params_ref**alpha, "modality"),
            ("B", b * data.volume_ref**beta, "modality"),
            ("E", E, "modality"),
            ("pair_A", pair_a * data.params_ref**pair_alpha, "pair"),
            ("pair_B", pair_b * (2 * data.volume_ref) ** pair_beta, "pair"),
        ):
            pm.Deterministic(name, value, dims=dim)
    return model
