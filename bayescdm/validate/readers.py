"""Scores as tables for readers: in points and percent, the same in the terminal and on the page."""

from __future__ import annotations

import pandas as pd

from bayescdm.tables import Column
from bayescdm.validate.validation import Validation

__all__ = ["LEGEND", "RIVAL_COLUMNS", "SCORE_COLUMNS", "WHAT", "readable_rivals", "readable_scores"]

#: What is left out, in words.
WHAT = {
    "family": "one family left out",
    "recipe": "one recipe left out",
    "backbone": "one backbone left out",
    "size": "large models left out",
    "holdout": "named backbones left out",
}
LEGEND = (
    "MAE of the median, CRPS and width of the 80 % run interval in points of accuracy; coverage in percent; "
    "elpd in nats, larger is better; beyond S: standard deviations beyond the capabilities fitted"
)
_SHARED = (
    Column("runs judged", "judged"),
    Column("MAE", "mae", "number"),
    Column("CRPS", "crps", "number"),
    Column("elpd", "elpd", "number"),
    Column("joint elpd", "elpd_joint", "number"),
    Column("in 50 %", "coverage_50", "integer"),
    Column("in 80 %", "coverage_80", "integer"),
    Column("in 95 %", "coverage_95", "integer"),
    Column("width", "width_80", "number"),
)
SCORE_COLUMNS = (
    Column("held out", "fold"),
    *_SHARED,
    Column("beyond S", "capability_distance", "number"),
    Column("R-hat", "max_r_hat", "rhat"),
)
RIVAL_COLUMNS = (
    Column("predictor", "predictor"),
    Column("left out", "by"),
    *_SHARED,
    Column("CRPS − first", "crps_difference", "number"),
    Column("± se", "crps_difference_se", "number"),
    Column("MAE within recipe", "mae_within", "number"),
)
#: Columns of fractions that readers see in points or percent.
_FRACTIONS = ("mae", "mae_within", "crps", "width_80", "crps_difference", "crps_difference_se",
              "coverage_50", "coverage_80", "coverage_95")  # fmt: skip


def readable_scores(validation: Validation) -> pd.DataFrame:
    """Scores of each fold, and of all when there are several, in points and percent.

    Parameters
    ----------
    validation : Validation

    Returns
    -------
    DataFrame
        For `SCORE_COLUMNS`.
    """
    folds = validation.folds
    if len(folds) > 1:
        folds = pd.concat([folds, pd.DataFrame([{"fold": "all", **validation.scores}])], ignore_index=True)
    return _in_points(folds)


def readable_rivals(rivals: pd.DataFrame) -> pd.DataFrame:
    """Scores of rival predictors in points and percent.

    Parameters
    ----------
    rivals : DataFrame
        From `compare_predictors`.

    Returns
    -------
    DataFrame
        For `RIVAL_COLUMNS`.
    """
    return _in_points(rivals)


def _in_points(scores: pd.DataFrame) -> pd.DataFrame:
    shown = scores.copy()
    present = [name for name in _FRACTIONS if name in shown]
    shown[present] = 100 * shown[present]
    shown["judged"] = [f"{e:.0f} of {n:.0f}" for e, n in zip(scores["evaluable"], scores["runs"])]
    return shown
