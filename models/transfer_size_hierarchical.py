"""Capability and size together: the hierarchical law plus one slope on ln N."""

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
    size_term,
    unit_direction,
)


def build(data: ModelData) -> pm.Model:
    """Build P = A·S + size_slope·ln(N/N_ref) + (B0 − Bm·S)·ln(D/D_ref) + P0, S = Z·w.

    Pooling and priors as in ``transfer_hierarchical``. On public figures a backbone's size says something
    that six text benchmarks do not; the slope is pooled over all families and may have either sign.

    Dims: component, family, variant, backbone, recipe, run.

    Source: eqs. 4, 7 and 8 of *What Transfers from Text to Vision?* (arXiv 2608.00013); the
    size term is ours.
    """
    with pm.Model(coords=data.coords) as model:
        w = unit_direction("w", data)
        S = capability(w, data)
        A = of_backbone(partial_pool("A", 0.25, 0.5, data), data)
        B0 = of_backbone(partial_pool("B0", 0.015, 0.7, data), data)
        Bm = of_backbone(partial_pool("Bm", 0.02, 0.7, data), data)
        nonnegative(pm.Deterministic("B", absorption_rate(S, B0, Bm), dims="backbone"))

        P0 = pm.Normal("P0", 0.55, 0.15)
        baseline = P0 + recipe_baseline(data) + backbone_intercept(data) + size_term(data)
        m = data.backbone
        accuracy = transfer_absorption(S[m], log_volume(data), A[m], B0[m], Bm[m], baseline)
        robust_likelihood("accuracy", accuracy, data)
    return model
