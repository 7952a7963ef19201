"""Quality of one law for all backbones: the error of its fit, with and without what backbones add."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayescdm.compare.tables import single_interval
from bayescdm.intervals import check_probability
from bayescdm.pointfit import point_fit
from bayescdm.predict import LawDraws
from bayescdm.validate.predictive import run_predictive

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["fit_error", "held_out", "law_error", "law_of_runs"]


def held_out(fit: Fit) -> np.ndarray:
    """Return which fitted runs of the study a fit was made without, (run,)."""
    return fit.group("constant_data")["weight"].to_numpy() <= 0


def law_of_runs(fit: Fit, runs: pd.DataFrame) -> np.ndarray:
    """Draw what the law alone says of runs: the parameters' uncertainty, no backbone intercept.

    Parameters
    ----------
    fit : Fit
    runs : DataFrame, (run, ...)
        Rows of the study's fitted runs.

    Returns
    -------
    ndarray, (run, sample)
        Accuracy, a fraction.
    """
    law = LawDraws.of(fit)
    expected = run_predictive(fit, runs).expected
    if "backbone_effect" not in law:
        return expected
    return expected - law["backbone_effect"][:, law.positions("backbone", runs["backbone"])].T


def law_error(law: np.ndarray, observed: np.ndarray, prob: float) -> dict[str, float]:
    """Mean absolute error of the law on some runs.

    Parameters
    ----------
    law : ndarray, (run, sample)
        From `law_of_runs`.
    observed : ndarray, (run,)
    prob : float
        Probability of the equal-tailed interval.

    Returns
    -------
    dict of str to float
        ``mae`` of the posterior mean; ``mae_median`` and interval of the error over draws. No draw errs less
        than their mean on average, so that the interval may lie above ``mae``; the median lies in it.
    """
    error = np.abs(law - observed[:, None]).mean(0)
    return {
        "mae": float(np.abs(law.mean(1) - observed).mean()),
        "mae_median": float(np.median(error)),
        **single_interval(error, "law", prob),
    }


def fit_error(fit: Fit, *, prob: float = 0.9) -> pd.DataFrame:
    """Mean absolute error of the law on the runs that it was fitted to.

    Parameters
    ----------
    fit : Fit
    prob : float
        Probability of the equal-tailed intervals.

    Returns
    -------
    DataFrame, one row a group of runs: ``all``, ``base``, ``instruct``, then each family
        ``group``, ``backbones``, ``runs``; ``mae``, of the law's posterior mean, a fraction; ``mae_median``
        and interval of the law's error over draws (``law_90_lower``, …); ``mae_with_intercepts``, with each
        backbone's own intercept; ``point_mae``, of the paper's point fit to the same runs.

    Notes
    -----
    The paper reports the error of one law without recalibration by family (section 3.4 of arXiv 2608.00013):
    column ``mae`` of the row ``all``. The error of a draw is not smaller than that of the mean, so the
    interval may lie above ``mae``.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> cdm.fit_error(cdm.fit("simulated-paper", model="transfer_pooled"))  # doctest: +SKIP
    """
    check_probability(prob)
    runs = fit.study.fitted_runs[~held_out(fit)]
    observed = runs["accuracy"].to_numpy(float)
    law, expected = law_of_runs(fit, runs), run_predictive(fit, runs).expected
    point = point_fit(fit.study.select_runs(runs.index), fit.capability).runs.reindex(runs.index)
    labels = fit.study.backbones.loc[runs["backbone"]]
    rows = []
    for group, own in _groups(labels["family"].to_numpy(), labels["variant"].to_numpy()).items():
        rows.append(
            {
                "group": group,
                "backbones": runs["backbone"][own].nunique(),
                "runs": int(own.sum()),
                **law_error(law[own], observed[own], prob),
                "mae_with_intercepts": float(np.abs(expected[own].mean(1) - observed[own]).mean()),
                "point_mae": float(point["residual"][own].abs().mean()),
            }
        )
    table = pd.DataFrame(rows)
    table.attrs = {**fit.facts(), "kind": "law", "prob": prob}
    return table


def _groups(family: np.ndarray, variant: np.ndarray) -> dict[str, np.ndarray]:
    """Rows of each group."""
    variants = {str(name): variant == name for name in sorted(set(variant))}
    families = {str(name): family == name for name in sorted(set(family))}
    return {"all": np.full(len(family), True), **variants, **families}
