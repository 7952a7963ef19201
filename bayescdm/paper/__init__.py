"""Analyses of *What Transfers from Text to Vision?* (arXiv 2608.00013), with the intervals that it lacks.

Each analysis is a function that returns a table with stable columns; `plots` holds what the paper draws.
"""

from bayescdm.paper.batch import (
    BatchFit,
    compare_batch_predictors,
    composite_draws,
    fit_batch_size,
    optimal_batches,
    simulate_batch_losses,
)
from bayescdm.paper.batch_table import read_batch_losses
from bayescdm.paper.benchmarks import coefficient_claims, coefficients_by_category
from bayescdm.paper.compute import capability_on_compute
from bayescdm.paper.correlation import text_against_multimodal
from bayescdm.paper.extrapolation import (
    compare_decay,
    refit_without_large,
    trajectory_errors,
    transfer_at_volume,
)
from bayescdm.paper.families import family_estimates
from bayescdm.paper.figures import PaperFits, fit_paper, published_against_ours
from bayescdm.paper.fitting import fit_error
from bayescdm.paper.leave_out import left_out_families
from bayescdm.paper.variants import overtaking_volume, variant_claims

__all__ = [
    "BatchFit",
    "PaperFits",
    "capability_on_compute",
    "coefficient_claims",
    "coefficients_by_category",
    "compare_batch_predictors",
    "compare_decay",
    "composite_draws",
    "family_estimates",
    "fit_batch_size",
    "fit_error",
    "fit_paper",
    "left_out_families",
    "optimal_batches",
    "overtaking_volume",
    "published_against_ours",
    "read_batch_losses",
    "refit_without_large",
    "simulate_batch_losses",
    "text_against_multimodal",
    "trajectory_errors",
    "transfer_at_volume",
    "variant_claims",
]
