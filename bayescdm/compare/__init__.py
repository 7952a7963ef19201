"""Comparisons read off the draws, always paired: both sides of a difference use the same draws.

Every table is a frame with numeric columns whose ``.attrs`` carry `Fit.facts`, so that what did not converge
says so wherever it is shown.
"""

from bayescdm.compare.backbones import difference, pairwise_probability, rank_backbones, rank_draws
from bayescdm.compare.benchmarks import transfer_coefficients
from bayescdm.compare.contributions import family_members, text_contributions
from bayescdm.compare.families import compare_families, compare_variants, family_draws
from bayescdm.compare.models import compare_models
from bayescdm.compare.positions import compare_positions, nearest_families, position_draws
from bayescdm.compare.separate import separate_rates

__all__ = [
    "compare_families",
    "compare_models",
    "compare_positions",
    "compare_variants",
    "difference",
    "family_draws",
    "family_members",
    "nearest_families",
    "pairwise_probability",
    "position_draws",
    "rank_backbones",
    "rank_draws",
    "separate_rates",
    "text_contributions",
    "transfer_coefficients",
]
