"""What is held out together: families, recipes, backbones, large models, or named backbones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd

from bayescdm.errors import RequestError, unknown_name
from bayescdm.study import Study

__all__ = ["By", "Fold", "make_folds"]

By = Literal["family", "recipe", "backbone", "size", "holdout"]

#: The paper fits up to 8B parameters and predicts 72B.
SIZE_CUT = 8e9


@dataclass(frozen=True)
class Fold:
    """Runs that are held out together.

    Parameters
    ----------
    label : str
        What is held out.
    held_out : ndarray of bool, (run,)
        Over the study's fitted runs.
    unseen : tuple of str
        Backbones whose text scores do not shape the components either, unless that is asked for.
    """

    label: str
    held_out: np.ndarray
    unseen: tuple[str, ...]


def make_folds(
    study: Study, by: By, *, cut: float = SIZE_CUT, holdout: Sequence[str] = ()
) -> tuple[Fold, ...]:
    """Cut the runs of a study into folds.

    Parameters
    ----------
    study : Study
    by : {"family", "recipe", "backbone", "size", "holdout"}
        A fold for each family, recipe or backbone with runs; one fold of the models with more than `cut`
        parameters; or one fold of the backbones named in `holdout`.
    cut : float
        Parameters, an absolute count.
    holdout : sequence of str
        Backbones with runs.

    Returns
    -------
    tuple of Fold
        In order of their labels.

    Raises
    ------
    NotFoundError
        A backbone of `holdout` has no runs.
    RequestError
        `by` is none of these, or nothing would be left to fit or to predict.

    Examples
    --------
    >>> from bayescdm.datasets import load_dataset
    >>> [fold.label for fold in make_folds(load_dataset("open-vlm"), "size", cut=20e9)]
    ['more than 20B parameters']
    """
    if by not in get_args(By):
        raise RequestError(f"'{by}' is none of {', '.join(get_args(By))}")
    if bool(holdout) != (by == "holdout"):
        raise RequestError("name backbones to hold out together with by='holdout', and only then")
    runs = study.fitted_runs
    labels = study.backbones.loc[runs["backbone"]]
    backbones = study.backbones.loc[study.placed]
    if by == "size":
        large = backbones.index[backbones["params"] > cut]
        folds = [_of_backbones(f"more than {cut / 1e9:g}B parameters", runs, large)]
    elif by == "holdout":
        for name in holdout:
            if name not in set(runs["backbone"]):
                raise unknown_name("backbone with runs", name, runs["backbone"].unique())
        folds = [_of_backbones(", ".join(holdout), runs, holdout)]
    elif by == "backbone":
        folds = [_of_backbones(name, runs, [name]) for name in sorted(runs["backbone"].unique())]
    elif by == "family":
        families = sorted(labels["family"].unique())
        folds = [_of_backbones(f, runs, backbones.index[backbones["family"] == f]) for f in families]
    else:
        folds = [Fold(r, (runs["recipe"] == r).to_numpy(), ()) for r in sorted(runs["recipe"].unique())]
    for fold in folds:
        if fold.held_out.all():
            raise RequestError(f"without {fold.label} no run is left to fit; hold out by something else")
        if not fold.held_out.any():
            raise RequestError(f"no run is held out by '{fold.label}'; choose another cut")
    return tuple(folds)


def _of_backbones(label: str, runs: pd.DataFrame, backbones: Iterable[str]) -> Fold:
    names = tuple(map(str, backbones))
    return Fold(label, runs["backbone"].isin(names).to_numpy(), names)
