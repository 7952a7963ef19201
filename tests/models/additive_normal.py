"""The law with Normal residuals and additive coefficients: given w and two scales, linear and Normal."""

import pymc as pm

from bayescdm.laws import transfer_absorption
from bayescdm.modeling import ModelData, capability, log_volume, unit_direction

#: Prior mean and sd of the population, and sd of the families around it.
RATES = {"A": (0.25, 0.10, 0.08), "B0": (0.015, 0.010, 0.005), "Bm": (0.02, 0.015, 0.008)}


def build(data: ModelData) -> pm.Model:
    """Build P = A_f·S + (B0_f − Bm_f·S)·ln(D/D_ref) + P0 + recipe + backbone, every effect Normal.

    Families have their own rates, Base and Instruct the same ones. The scales of families and recipes are
    known; those of backbones and residuals are not.
    """
    with pm.Model(coords=data.coords) as model:
        S = capability(unit_direction("w", data), data)
        of_run = {}
        for name, (mean, sd, between) in RATES.items():
            population = pm.Normal(f"{name}_population", mean, sd)
            offset = pm.Normal(f"{name}_offset", 0, 1, dims="family")
            rate = pm.Deterministic(name, population + between * offset, dims="family")
            of_run[name] = rate[data.family[data.backbone]]
        tau = pm.HalfNormal("tau", 0.03)
        sigma = pm.HalfNormal("sigma", 0.02)
        P0 = pm.Normal("P0", 0.55, 0.15)
        recipe = pm.Normal("recipe_effect", 0, 0.05, dims="recipe")
        backbone = pm.Normal("backbone_offset", 0, 1, dims="backbone")
        baseline = P0 + recipe[data.recipe] + tau * backbone[data.backbone]
        accuracy = transfer_absorption(S[data.backbone], log_volume(data), **of_run, P0=baseline)
        observed = pm.Data("observed_accuracy", data.accuracy, dims="run")
        pm.Normal("accuracy", accuracy, sigma, observed=observed, dims="run")
    return model
