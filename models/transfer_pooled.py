"""The paper's law: one A, B0 and Bm for all families and variants."""

import pymc as pm

from bayescdm.laws import absorption_rate, transfer_absorption
from bayescdm.modeling import (
    ModelData,
    backbone_intercept,
    capability,
    log_volume,
    nonnegative,
    of_backbone,
    pooled,
    recipe_baseline,
    robust_likelihood,
    unit_direction,
)


def build(data: ModelData) -> pm.Model:
    """Build P = A·S + (B0 − Bm·S)·ln(D/D_ref) + P0, S = Z·w, with rates shared by all.

    Baselines, backbone intercepts and residuals as in ``transfer_hierarchical``: only the pooling differs.

    Dims: component, family, variant, backbone, recipe, run.

    Source: eqs. 4, 7 and 8 of *What Transfers from Text to Vision?* (arXiv 2608.00013).
    """
    with pm.Model(coords=data.coords) as model:
        w = unit_direction("w", data)
        S = capability(w, data)
        A = of_backbone(pooled("A", 0.25, 0.5, data), data)
        B0 = of_backbone(pooled("B0", 0.015, 0.7, data), data)
        Bm = of_backbone(pooled("Bm", 0.02, 0.7, data), data)
        nonnegative(pm.Deterministic("B", absorption_rate(S, B0, Bm), dims="backbone"))

        P0 = pm.Normal("P0", 0.55, 0.15)
        baseline = P0 + recipe_baseline(data) + backbone_intercept(data)
        m = data.backbone
        accuracy = transfer_absorption(S[m], log_volume(data), A[m], B0[m], Bm[m], baseline)
        robust_likelihood("accuracy", accuracy, data)
    return model
