"""bayescdm: posteriors of the transfer–absorption law of vision-language models."""

import importlib as _importlib
import sys as _sys
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING
from typing import Any as _Any

if TYPE_CHECKING:
    from bayescdm.capability import Capability, fit_capability
    from bayescdm.compare import (
        compare_families,
        compare_models,
        compare_positions,
        compare_variants,
        difference,
        family_draws,
        nearest_families,
        pairwise_probability,
        position_draws,
        rank_backbones,
        separate_rates,
        text_contributions,
        transfer_coefficients,
    )
    from bayescdm.datasets import list_datasets, load_dataset, paper_table, paper_tables
    from bayescdm.decide import Choice, Constraints, CostTable, choose, evpi, evsi, read_cost_table
    from bayescdm.describe import describe
    from bayescdm.errors import BayesCDMError, Note
    from bayescdm.fit import Fit, fit, load_fit
    from bayescdm.identify import identifiability
    from bayescdm.loss.allocate import allocate
    from bayescdm.loss.compare import compare_loss_laws
    from bayescdm.loss.fit import fit_loss, load_loss_fit
    from bayescdm.loss.logs import prepare_logs, read_loss_logs
    from bayescdm.loss.pointfit import fit_loss_points
    from bayescdm.modelfiles import model_names
    from bayescdm.paper import (
        BatchFit,
        PaperFits,
        capability_on_compute,
        coefficient_claims,
        coefficients_by_category,
        compare_batch_predictors,
        compare_decay,
        composite_draws,
        family_estimates,
        fit_batch_size,
        fit_error,
        fit_paper,
        left_out_families,
        optimal_batches,
        overtaking_volume,
        published_against_ours,
        refit_without_large,
        simulate_batch_losses,
        text_against_multimodal,
        trajectory_errors,
        transfer_at_volume,
        variant_claims,
    )
    from bayescdm.paper.plots import (
        plot_batch_size,
        plot_capability_on_compute,
        plot_held_out_trajectories,
        plot_shrinkage,
        plot_text_against_multimodal,
        plot_transfer,
    )
    from bayescdm.plots import (
        plot_chain_ranks,
        plot_convergence,
        plot_differences,
        plot_families,
        plot_pareto,
        plot_positions,
        plot_prior_posterior,
        plot_probability_matrix,
        plot_rank_distribution,
        plot_ranking,
        plot_text_scores,
        plot_trajectories,
        plot_transfer_coefficients,
    )
    from bayescdm.pointfit import PointFit, point_fit
    from bayescdm.predict import predict, predict_draws, prediction_table
    from bayescdm.reading import (
        fix_study,
        load_study,
        parse_count,
        read_candidates,
        read_runs,
        read_text_scores,
    )
    from bayescdm.report import Answer, FamilyReport, answer, family_report, family_reports, report
    from bayescdm.sampling import SamplerSettings
    from bayescdm.simulate import simulate, simulate_from, write_study
    from bayescdm.study import Study
    from bayescdm.validate import (
        Validation,
        check_posterior,
        check_prior,
        compare_predictors,
        prior_sensitivity,
        validate,
    )

__version__ = "0.1.0"

#: Where each public name is defined. They are imported when first asked for: PyMC and its like take seconds,
#: which ``bayescdm --help`` and ``bayescdm check`` must not pay.
_HOME = {
    "Answer": "report",
    "BatchFit": "paper",
    "BayesCDMError": "errors",
    "Capability": "capability",
    "Choice": "decide",
    "Constraints": "decide",
    "CostTable": "decide",
    "FamilyReport": "report",
    "Fit": "fit",
    "Note": "errors",
    "PaperFits": "paper",
    "PointFit": "pointfit",
    "SamplerSettings": "sampling",
    "Study": "study",
    "Validation": "validate",
    "allocate": "loss.allocate",
    "answer": "report",
    "capability_on_compute": "paper",
    "check_posterior": "validate",
    "check_prior": "validate",
    "choose": "decide",
    "coefficient_claims": "paper",
    "coefficients_by_category": "paper",
    "compare_batch_predictors": "paper",
    "compare_decay": "paper",
    "compare_families": "compare",
    "compare_loss_laws": "loss.compare",
    "compare_models": "compare",
    "compare_positions": "compare",
    "compare_predictors": "validate",
    "compare_variants": "compare",
    "composite_draws": "paper",
    "describe": "describe",
    "difference": "compare",
    "evpi": "decide",
    "evsi": "decide",
    "family_draws": "compare",
    "family_estimates": "paper",
    "family_report": "report",
    "family_reports": "report",
    "fit": "fit",
    "fit_batch_size": "paper",
    "fit_capability": "capability",
    "fit_error": "paper",
    "fit_loss": "loss.fit",
    "fit_loss_points": "loss.pointfit",
    "fit_paper": "paper",
    "fix_study": "reading",
    "identifiability": "identify",
    "left_out_families": "paper",
    "list_datasets": "datasets",
    "load_dataset": "datasets",
    "load_fit": "fit",
    "load_loss_fit": "loss.fit",
    "load_study": "reading",
    "model_names": "modelfiles",
    "nearest_families": "compare",
    "optimal_batches": "paper",
    "overtaking_volume": "paper",
    "pairwise_probability": "compare",
    "paper_table": "datasets",
    "paper_tables": "datasets",
    "parse_count": "reading",
    "plot_batch_size": "paper.plots",
    "plot_capability_on_compute": "paper.plots",
    "plot_chain_ranks": "plots",
    "plot_convergence": "plots",
    "plot_differences": "plots",
    "plot_families": "plots",
    "plot_held_out_trajectories": "paper.plots",
    "plot_pareto": "plots",
    "plot_positions": "plots",
    "plot_prior_posterior": "plots",
    "plot_probability_matrix": "plots",
    "plot_rank_distribution": "plots",
    "plot_ranking": "plots",
    "plot_shrinkage": "paper.plots",
    "plot_text_against_multimodal": "paper.plots",
    "plot_text_scores": "plots",
    "plot_trajectories": "plots",
    "plot_transfer": "paper.plots",
    "plot_transfer_coefficients": "plots",
    "point_fit": "pointfit",
    "position_draws": "compare",
    "predict": "predict",
    "predict_draws": "predict",
    "prediction_table": "predict",
    "prepare_logs": "loss.logs",
    "prior_sensitivity": "validate",
    "published_against_ours": "paper",
    "rank_backbones": "compare",
    "read_candidates": "reading",
    "read_cost_table": "decide",
    "read_loss_logs": "loss.logs",
    "read_runs": "reading",
    "read_text_scores": "reading",
    "refit_without_large": "paper",
    "report": "report",
    "separate_rates": "compare",
    "simulate": "simulate",
    "simulate_batch_losses": "paper",
    "simulate_from": "simulate",
    "text_against_multimodal": "paper",
    "text_contributions": "compare",
    "trajectory_errors": "paper",
    "transfer_at_volume": "paper",
    "transfer_coefficients": "compare",
    "validate": "validate",
    "variant_claims": "paper",
    "write_study": "simulate",
}

__all__ = [
    "Answer",
    "BatchFit",
    "BayesCDMError",
    "Capability",
    "Choice",
    "Constraints",
    "CostTable",
    "FamilyReport",
    "Fit",
    "Note",
    "PaperFits",
    "PointFit",
    "SamplerSettings",
    "Study",
    "Validation",
    "__version__",
    "allocate",
    "answer",
    "capability_on_compute",
    "check_posterior",
    "check_prior",
    "choose",
    "coefficient_claims",
    "coefficients_by_category",
    "compare_batch_predictors",
    "compare_decay",
    "compare_families",
    "compare_loss_laws",
    "compare_models",
    "compare_positions",
    "compare_predictors",
    "compare_variants",
    "composite_draws",
    "describe",
    "difference",
    "evpi",
    "evsi",
    "family_draws",
    "family_estimates",
    "family_report",
    "family_reports",
    "fit",
    "fit_batch_size",
    "fit_capability",
    "fit_error",
    "fit_loss",
    "fit_loss_points",
    "fit_paper",
    "fix_study",
    "identifiability",
    "left_out_families",
    "list_datasets",
    "load_dataset",
    "load_fit",
    "load_loss_fit",
    "load_study",
    "model_names",
    "nearest_families",
    "optimal_batches",
    "overtaking_volume",
    "pairwise_probability",
    "paper_table",
    "paper_tables",
    "parse_count",
    "plot_batch_size",
    "plot_capability_on_compute",
    "plot_chain_ranks",
    "plot_convergence",
    "plot_differences",
    "plot_families",
    "plot_held_out_trajectories",
    "plot_pareto",
    "plot_positions",
    "plot_prior_posterior",
    "plot_probability_matrix",
    "plot_rank_distribution",
    "plot_ranking",
    "plot_shrinkage",
    "plot_text_against_multimodal",
    "plot_text_scores",
    "plot_trajectories",
    "plot_transfer",
    "plot_transfer_coefficients",
    "point_fit",
    "position_draws",
    "predict",
    "predict_draws",
    "prediction_table",
    "prepare_logs",
    "prior_sensitivity",
    "published_against_ours",
    "rank_backbones",
    "read_candidates",
    "read_cost_table",
    "read_loss_logs",
    "read_runs",
    "read_text_scores",
    "refit_without_large",
    "report",
    "separate_rates",
    "simulate",
    "simulate_batch_losses",
    "simulate_from",
    "text_against_multimodal",
    "text_contributions",
    "trajectory_errors",
    "transfer_at_volume",
    "transfer_coefficients",
    "validate",
    "variant_claims",
    "write_study",
]


def __getattr__(name: str) -> _Any:
    if name not in _HOME:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(_importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _Package(_ModuleType):
    """The package; where a function and its module share a name, the name means the function."""

    def __setattr__(self, name: str, value: _Any) -> None:
        # Importing bayescdm.fit would bind the module to this name, in whatever order things are imported.
        if not (name in _HOME and isinstance(value, _ModuleType)):
            super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Package
