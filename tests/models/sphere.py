"""P = A·S + P0 with known A: a direction, a baseline and residuals, nothing else."""

import pymc as pm

from bayescdm.modeling import ModelData, capability, robust_likelihood, unit_direction


def build(data: ModelData) -> pm.Model:
    """Build the law with the packaged direction, uniform on the sphere."""
    with pm.Model(coords=data.coords) as model:
        S = capability(unit_direction("w", data), data)
        P0 = pm.Normal("P0", 0.55, 0.15)
        robust_likelihood("accuracy", 0.25 * S[data.backbone] + P0, data)
    return model
