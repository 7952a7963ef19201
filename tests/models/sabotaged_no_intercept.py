"""Wrong on purpose: the points of one backbone are taken for independent."""

import pymc as pm

from bayescdm.laws import absorption_rate, transfer_absorption
from bayescdm.modeling import (
    ModelData,
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
    """Build ``transfer_pooled`` without its backbone intercept."""
    with pm.Model(coords=data.coords) as model:
        w = unit_direction("w", data)
        S = capability(w, data)
        A = of_backbone(pooled("A", 0.25, 0.5, data), data)
        B0 = of_backbone(pooled("B0", 0.015, 0.7, data), data)
        Bm = of_backbone(pooled("Bm", 0.02, 0.7, data), data)
        nonnegative(pm.Deterministic("B", absorption_rate(S, B0, Bm), dims="backbone"))

        P0 = pm.Normal("P0", 0.55, 0.15)
        baseline = P0 + recipe_baseline(data)
        m = data.backbone
        accuracy = transfer_absorption(S[m], log_volume(data), A[m], B0[m], Bm[m], baseline)
        robust_likelihood("accuracy", accuracy, data)
    return model
