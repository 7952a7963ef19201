"""Capability and size together: the paper's law plus one slope on ln N."""

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
    size_term,
    unit_direction,
)


def build(data: ModelData) -> pm.Model:
    """Build P = A·S + size_slope·ln(N/N_ref) + (B0 − Bm·S)·ln(D/D_ref) + P0, S = Z·w.

    Rates are shared by all, as in ``transfer_pooled``; so is the slope, which may have either sign. On public
    figures a backbone's size says something that six text benchmarks do not; without it, rates that vary by
    family stand in for it, with it they mostly add variance.

    Dims: component, family, variant, backbone, recipe, run.

    Source: eqs. 4, 7 and 8 of *What Transfers from Text to Vision?* (arXiv 2608.00013); the
    size term is ours.
    """
    with pm.Model(coords=data.coords) as model:
        w = unit_direction("w", data)
        S = capability(w, data)
        A = of_backbone(pooled("A", 0.25, 0.5, data), data)
        B0 = of_backbone(pooled("B0", 0.015, 0.7, data), data)
        Bm = of_backbone(pooled("Bm", 0.02, 0.7, data), data)
        nonnegative(pm.Deterministic("B", absorption_rate(S, B0, Bm), dims="backbone"))

        P0 = pm.Normal("P0", 0.55, 0.15)
        baseline = P0 + recipe_baseline(data) + backbone_intercept(data) + size_term(data)
        m = data.backbone
        accuracy = transfer_absorption(S[m], log_volume(data), A[m], B0[m], Bm[m], baseline)
        robust_likelihood("accuracy", accuracy, data)
    return model
