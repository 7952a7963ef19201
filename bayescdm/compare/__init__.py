"""Comparisons read off the draws, always paired: both sides of a difference use the same draws.

Every table is a frame with numeric columns whose ``.attrs`` carry `Fit.facts`, so that what did not converge
says so wherever it is shown.
"""

from bayescdm.compare.backbones import difference, pairwise_probability, rank_backbones
from bayescdm.compare.benchmarks import transfer_coefficients
from bayescdm.compare.families import compare_families, compare_variants, family_draws
from bayescdm.compare.models import compare_models

__all__ = [
    "compare_families",
    "compare_models",
    "compare_variants",
    "difference",
    "family_draws",
    "pairwise_probability",
    "rank_backbones",
    "transfer_coefficients",
]
