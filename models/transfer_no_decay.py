"""The paper's ablation: absorption that does not decay with capability, Bm = 0."""

import pymc as pm
import pytensor.tensor as pt

from bayescdm.laws import transfer_absorption
from bayescdm.modeling import (
    ModelData,
    backbone_intercept,
    capability,
    log_volume,
    of_backbone,
    pooled,
    recipe_baseline,
    robust_likelihood,
    unit_direction,
)


def build(data: ModelData) -> pm.Model:
    """Build P = A·S + B0·ln(D/D_ref) + P0, S = Z·w, with rates shared by all.

    Baselines, backbone intercepts and residuals as in ``transfer_pooled``, which differs by Bm·S alone; Bm
    stands here as 0, so that predictions read this model like the others.

    Dims: component, family, variant, backbone, recipe, run.

    Source: the ablation of *What Transfers from Text to Vision?* (arXiv 2608.00013), Table 1.
    """
    with pm.Model(coords=data.coords) as model:
        w = unit_direction("w", data)
        S = capability(w, data)
        A = of_backbone(pooled("A", 0.25, 0.5, data), data)
        B0 = of_backbone(pooled("B0", 0.015, 0.7, data), data)
        cells = (len(data.coords["family"]), len(data.coords["variant"]))
        pm.Deterministic("Bm", pt.zeros(cells), dims=("family", "variant"))
        pm.Deterministic("Bm_population", pt.zeros(()))
        pm.Deterministic("B", B0, dims="backbone")

        P0 = pm.Normal("P0", 0.55, 0.15)
        baseline = P0 + recipe_baseline(data) + backbone_intercept(data)
        m = data.backbone
        accuracy = transfer_absorption(S[m], log_volume(data), A[m], B0[m], 0.0, baseline)
        robust_likelihood("accuracy", accuracy, data)
    return model
