"""P = A·S + P0 with known A: the direction by spherical angles, whose Jacobian is forgotten."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from bayescdm.modeling import ModelData, capability, robust_likelihood


def build(data: ModelData) -> pm.Model:
    """Build ``sphere_by_angles``, wrong on purpose: uniform angles are not a uniform direction."""
    with pm.Model(coords=data.coords) as model:
        K = data.components.shape[1]
        polar = pm.Uniform("polar", 0, np.pi, shape=K - 2)
        azimuth = pm.Uniform("azimuth", -np.pi, np.pi)
        angles = pt.concatenate([polar, azimuth[None]])
        sines = pt.concatenate([pt.ones(1), pt.cumprod(pt.sin(angles))])
        w = pm.Deterministic("w", sines * pt.concatenate([pt.cos(angles), pt.ones(1)]), dims="component")
        S = capability(w, data)
        P0 = pm.Normal("P0", 0.55, 0.15)
        robust_likelihood("accuracy", 0.25 * S[data.backbone] + P0, data)
    return model
