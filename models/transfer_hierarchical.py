"""The transfer–absorption law with rates partially pooled over families and Base/Instruct (the default)."""

import pymc as pm

from bayescdm.laws import absorption_rate, transfer_absorption
from bayescdm.modeling import (
    ModelData,
    backbone_intercept,
    capability,
    log_volume,
    nonnegative,
    of_backbone,
    partial_pool,
    recipe_baseline,
    robust_likelihood,
    unit_direction,
)


def build(data: ModelData) -> pm.Model:
    """Build P = A·S + (B0 − Bm·S)·ln(D/D_ref) + P0, S = Z·w.

    A, B0 and Bm are positive; each varies by family and by Base/Instruct around a population median.
    P0 is the mean baseline of the recipes; recipes and backbones deviate from it. Residuals are Student-t.

    Dims: component, family, variant, backbone, recipe, run.

    Source: eqs. 4, 7 and 8 of *What Transfers from Text to Vision?* (arXiv 2608.00013), made hierarchical;
    prior medians near the rates of its Tables 2 and 3, with a factor of e^(±1) or more at two sd.
    """
    with pm.Model(coords=data.coords) as model:
        w = unit_direction("w", data)
        S = capability(w, data)
        A = of_backbone(partial_pool("A", 0.25, 0.5, data), data)
        B0 = of_backbone(partial_pool("B0", 0.015, 0.7, data), data)
        Bm = of_backbone(partial_pool("Bm", 0.02, 0.7, data), data)
        nonnegative(pm.Deterministic("B", absorption_rate(S, B0, Bm), dims="backbone"))

        P0 = pm.Normal("P0", 0.55, 0.15)
        baseline = P0 + recipe_baseline(data) + backbone_intercept(data)
        m = data.backbone
        accuracy = transfer_absorption(S[m], log_volume(data), A[m], B0[m], Bm[m], baseline)
        robust_likelihood("accuracy", accuracy, data)
    return model
