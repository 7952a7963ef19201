"""Whether to trust a model: exact refits, calibration of its draws, checks of its predictions.

Every part checks a model by something that does not share its code.
"""

from bayescdm.validate.checks import PosteriorCheck, check_posterior, check_prior, prior_sensitivity
from bayescdm.validate.folds import Fold, make_folds
from bayescdm.validate.predictive import RunPredictive, run_predictive
from bayescdm.validate.readers import RIVAL_COLUMNS, SCORE_COLUMNS, readable_rivals, readable_scores
from bayescdm.validate.refit import REFIT_SETTINGS, Refitter, components_without, prepare_refits
from bayescdm.validate.rivals import compare_predictors
from bayescdm.validate.sbc import Calibration, calibrate
from bayescdm.validate.validation import Validation, refuse_tables, validate

__all__ = [
    "REFIT_SETTINGS",
    "RIVAL_COLUMNS",
    "SCORE_COLUMNS",
    "Calibration",
    "Fold",
    "PosteriorCheck",
    "Refitter",
    "RunPredictive",
    "Validation",
    "calibrate",
    "check_posterior",
    "check_prior",
    "compare_predictors",
    "components_without",
    "make_folds",
    "prepare_refits",
    "prior_sensitivity",
    "readable_rivals",
    "readable_scores",
    "refuse_tables",
    "run_predictive",
    "validate",
]
