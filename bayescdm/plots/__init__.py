"""Plots that say what they show: kind and probability in the legend, a stamp on what did not converge.

Each function takes the fit and, by keyword, what to show and where; it returns the axes that it drew on.
Without axes it makes a figure whose layout leaves room for every label.
"""

from bayescdm.plots.benchmarks import plot_transfer_coefficients
from bayescdm.plots.choices import plot_differences, plot_pareto, plot_probability_matrix
from bayescdm.plots.diagnostics import plot_chain_ranks, plot_convergence, plot_prior_posterior
from bayescdm.plots.families import plot_families
from bayescdm.plots.positions import plot_positions
from bayescdm.plots.ranking import plot_rank_distribution, plot_ranking
from bayescdm.plots.style import theme
from bayescdm.plots.text_scores import plot_text_scores
from bayescdm.plots.trajectories import plot_trajectories

__all__ = [
    "plot_chain_ranks",
    "plot_convergence",
    "plot_differences",
    "plot_families",
    "plot_pareto",
    "plot_positions",
    "plot_prior_posterior",
    "plot_probability_matrix",
    "plot_rank_distribution",
    "plot_ranking",
    "plot_text_scores",
    "plot_trajectories",
    "plot_transfer_coefficients",
    "theme",
]
