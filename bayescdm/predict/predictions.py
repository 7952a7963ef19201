"""Draws, summaries and tables of predicted accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import xarray as xr

from bayescdm.intervals import PredictionKind, check_probability, interval_columns
from bayescdm.predict.candidates import Candidates
from bayescdm.predict.question import Question

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["predict", "predict_draws", "prediction_table"]

#: Probabilities below one standard deviation under and over the mean of a Normal.
ONE_SD = (0.15865525393145707, 0.8413447460685429)


def predict_draws(
    fit: Fit,
    candidates: Candidates = None,
    *,
    volumes: float | Sequence[float],
    recipe: str | None = None,
    kind: PredictionKind,
    seed: int = 0,
    draws: int | None = None,
) -> xr.DataArray:
    """Draw the accuracy of backbones at data volumes from the posterior.

    Parameters
    ----------
    fit : Fit
    candidates : list of str, or pair of DataFrames, optional
        Names of scored backbones of the study, or a candidate table (`text_scores`, `backbones`); all
        scored backbones of the study by default.
    volumes : float or sequence of float
        In the study's volume unit.
    recipe : str, optional
        A recipe of the fit; ``"new"`` for one that no run used; the mean of the study's recipes by default.
    kind : {"law", "backbone", "run"}
        How much spread is in the draws; see `bayescdm.predict`.
    seed : int
    draws : int, optional
        Use at most this many posterior draws, evenly spaced. The array holds draws × backbones × volumes
        numbers of 8 bytes; thin it for thousands of backbones.

    Returns
    -------
    DataArray, (sample, backbone, volume)
        Accuracy, a fraction. Backbones and volumes in the order asked; a backbone asked for in several
        equal rows comes as often, with the same draws. ``sample`` is the position among
        all posterior draws, chain after chain. Other coordinates: ``family``, ``variant``, ``mode`` over
        backbone, ``extrapolation`` over (backbone, volume), empty inside the observed ranges, and
        ``beyond_recipe``, empty where the asked recipe was run on a backbone of that size at that volume.

    Raises
    ------
    NotFoundError
        A backbone, text benchmark or recipe is not known.
    RequestError
        Nothing asked for, rows of one name that differ, a volume that is not a positive number, no text
        scores, an unknown variant, or a row that contradicts what the fit has used for that name.
    ModelError
        The fit's model is not a transfer model, or has no population to draw a new family from.

    Notes
    -----
    P = A·S + (B0 − Bm·S)·ln(D/D_ref) + P0 (eqs. 7 and 8 of *What Transfers from Text to Vision?*,
    arXiv 2608.00013). S of a backbone without runs is, given the direction, Normal with mean Z·w and
    variance wᵀ·cov(Z)·w, where cov(Z) is what its missing text scores leave open.

    A recipe whose volume is unknown contributes its baseline; the prediction is at the volume asked.
    A new recipe deviates from the mean of R recipes by N(0, scale²·(1 + 1/R)), since theirs sum to zero.
    Nothing is clipped: neither B ≥ 0, which the fit asks of its own backbones, nor accuracy ≤ 1.

    Random numbers belong to labels: those of a backbone, a family, or a run at a volume depend on `seed`
    and its own name, not on what else is asked or in which order. So any two rows are paired draw by draw.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.predict_draws(fit, volumes=1.2e6, kind="law").dims  # doctest: +SKIP
    ('sample', 'backbone', 'volume')
    """
    question = Question.of(fit, candidates, volumes=volumes, recipe=recipe, kind=kind, seed=seed, draws=draws)
    array = xr.DataArray(
        question.accuracy(),
        dims=("backbone", "volume", "sample"),
        coords={**question.coords(), "sample": question.law.sample},
        name="accuracy",
        attrs=question.attrs(),
    )
    return question.as_asked(array).transpose("sample", "backbone", "volume")


def predict(
    fit: Fit,
    candidates: Candidates = None,
    *,
    volumes: float | Sequence[float],
    recipe: str | None = None,
    kind: PredictionKind = "run",
    prob: float = 0.9,
    seed: int = 0,
    draws: int | None = None,
) -> xr.Dataset:
    """Predict the accuracy of backbones at data volumes, with intervals of a stated kind.

    Parameters
    ----------
    fit, candidates, volumes, recipe, kind, seed, draws
        As for `predict_draws`.
    prob : float
        Probability of the equal-tailed interval.

    Returns
    -------
    Dataset, (backbone, volume)
        ``mean``, ``sd``, ``lower``, ``upper`` (fractions), with the coordinates of `predict_draws`. The
        Student-t residual is symmetric and may have neither mean nor variance: it is left out of ``mean``,
        and ``sd`` is half of the central 68.3 % interval, which for Normal draws is their standard deviation.
        Attributes: what was asked (``kind``, ``prob``, ``recipe``, ``volume_unit``, ``seed``, ``draws``)
        and `Fit.facts`, among them ``converged`` (0 or 1) and ``warnings``.

    Raises
    ------
    NotFoundError, RequestError, ModelError
        As for `predict_draws`.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.predict(fit, ["Qwen2-7B"], volumes=[6e5, 1.2e6])["mean"].dims  # doctest: +SKIP
    ('backbone', 'volume')
    """
    tail = (1 - check_probability(prob)) / 2
    question = Question.of(fit, candidates, volumes=volumes, recipe=recipe, kind=kind, seed=seed, draws=draws)
    parts = []
    for part in question.chunks():
        accuracy = part.expected_accuracy()
        mean = accuracy.mean(-1)
        if kind == "run":
            accuracy = accuracy + part.residuals()
        lower, upper, below, above = np.quantile(accuracy, [tail, 1 - tail, *ONE_SD], axis=-1)
        summary = {"mean": mean, "sd": (above - below) / 2, "lower": lower, "upper": upper}
        variables = {name: (("backbone", "volume"), values) for name, values in summary.items()}
        parts.append(xr.Dataset(variables, coords=part.coords()))
    predictions = question.as_asked(xr.concat(parts, "backbone", join="exact"))
    predictions.attrs = {**fit.facts(), **question.attrs(), "prob": prob}
    return predictions


def prediction_table(predictions: xr.Dataset) -> pd.DataFrame:
    """Lay predictions out as a table, one row a backbone and volume.

    Parameters
    ----------
    predictions : Dataset, (backbone, volume)
        From `predict`.

    Returns
    -------
    DataFrame
        ``backbone``, ``family``, ``variant``, ``mode``, ``volume``, ``mean``, ``sd``, an interval whose
        columns name its kind and probability (``run_90_lower``, ``run_90_upper``), ``extrapolation``,
        ``beyond_recipe``. The attributes of `predictions` are in ``.attrs``.
    """
    lower, upper = interval_columns(predictions.attrs["kind"], predictions.attrs["prob"])
    frame = predictions.to_dataframe(dim_order=["backbone", "volume"]).reset_index()
    frame = frame.rename(columns={"lower": lower, "upper": upper})
    labels = ["backbone", "family", "variant", "mode", "volume"]
    table = frame[[*labels, "mean", "sd", lower, upper, "extrapolation", "beyond_recipe"]]
    table.attrs = dict(predictions.attrs)
    return table
