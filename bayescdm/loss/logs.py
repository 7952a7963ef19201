"""Loss logs: prepared as the paper does."""
from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from bayescdm.errors import Note, RequestError
from bayescdm.loss.study import LossStudy

__all__ = ["prepare_logs", "thin_logs"]


def prepare_logs(study: LossStudy, *, first_step: int | None = 1000, window: int | None = 5) -> LossStudy:
    """Drop the early steps and smooth each run, as the paper does; every step of it is told.

    Parameters
    ----------
    study : LossStudy
        With a ``step`` at every point when `first_step` is given.
    first_step : int or None
        Losses logged before this step are dropped.
    window : int or None
        Logged losses in the centred rolling mean; shorter at the ends of a run.

    Returns
    -------
    LossStudy

    Raises
    ------
    RequestError
        When a first step is asked for and the logs have no steps.

    Notes
    -----
    Appendix D, eq. 12, of *What Transfers from Text to Vision?*: early steps go first, then the smoothing.
    """
    if first_step is not None:
        if "step" not in study.points or study.points["step"].isna().any():
            raise RequestError(f"{study.name}: the logs have no steps; keep all points with first_step=None")
        keep = (study.points["step"] >= first_step).to_numpy()
        message = f"{np.sum(~keep)} of {len(keep)} losses logged before step {first_step} were dropped"
        study = study.select_points(keep, Note("early-steps-dropped", message))
    if window is not None:
        order = ["run", "step"] if "step" in study.points else ["run", "volume"]
        points = study.points.sort_values(order, kind="stable")
        rolling = points.groupby("run", sort=False)["loss"].rolling(window, center=True, min_periods=1).mean()
        points = points.assign(loss=rolling.to_numpy())
        message = f"losses are centred rolling means of {window} logged values, fewer at the ends of a run"
        study = replace(study, points=points, notes=(*study.notes, Note("smoothed", message)))
    return study


def thin_logs(study: LossStudy, points_per_run: int = 30) -> LossStudy:
    """Keep a number of points a run, evenly spaced in ln D: neighbouring losses say the same thing.

    Parameters
    ----------
    study : LossStudy
    points_per_run : int
        Points kept of each run; shorter runs stay whole.

    Returns
    -------
    LossStudy
    """
    keep = np.zeros(len(study.points), dtype=bool)
    for rows in study.points.reset_index(drop=True).groupby("run").indices.values():
        log_volume = np.log(study.volume[rows])
        wanted = np.linspace(log_volume.min(), log_volume.max(), points_per_run)
        keep[rows[np.unique(np.abs(log_volume[:, None] - wanted).argmin(axis=0))]] = True
    if keep.all():
        return study
    message = f"{keep.sum()} of {len(keep)} losses are used, up to {points_per_run} a run, even in ln D"
    return study.select_points(keep, Note("thinned", message))
