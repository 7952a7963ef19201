"""Whether to trust a model: exact refits, calibration of its draws, checks of its predictions.

Every part checks a model by something that does not share its code.
"""

from bayescdm.validate.folds import Fold, make_folds
from bayescdm.validate.predictive import RunPredictive, run_predictive
from bayescdm.validate.refit import REFIT_SETTINGS, Refitter, components_without, prepare_refits
from bayescdm.validate.validation import Validation, validate

__all__ = [
    "REFIT_SETTINGS",
    "Fold",
    "Refitter",
    "RunPredictive",
    "Validation",
    "components_without",
    "make_folds",
    "prepare_refits",
    "run_predictive",
    "validate",
]
