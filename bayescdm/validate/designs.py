"""Small designs on which model files are calibrated: simulated, cheap to sample, with every kind of gap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from bayescdm.capability import fit_capability
from bayescdm.loss.mixed_modal import mixed_modal_data, simulate_mixed_modal
from bayescdm.loss.modeling import LossModelData, loss_model_data
from bayescdm.loss.scope import Scope
from bayescdm.loss.study import LossStudy
from bayescdm.modeling import ModelData, model_data
from bayescdm.simulate import simulate_from

__all__ = ["design", "loss_design", "transfer_design"]

#: Loss models whose points are one a run, and those that follow runs.
SINGLE_POINTS = ("chinchilla", "contrastive_power")
TRAJECTORIES = ("loss_capability", "loss_compute", "loss_compute_pooled")


def design(model: str) -> Any:
    """Data on which a model file is calibrated.

    Parameters
    ----------
    model : str
        Name of the model file; one that is not packaged is taken for a transfer model.

    Returns
    -------
    ModelData, LossModelData or MixedModalData

    Examples
    --------
    >>> design("transfer_pooled").coords["recipe_unknown_volume"]
    ['simulated recipe 2']
    """
    if model == "mixed_modal":
        return mixed_modal_data(simulate_mixed_modal())
    if model in SINGLE_POINTS:
        return loss_design(points=1)
    if model in TRAJECTORIES:
        return loss_design(points=4)
    return transfer_design()


def transfer_design(*, components: int = 2) -> ModelData:
    """12 backbones of 3 families; one recipe at two volumes, one of unknown volume; a score missing.

    Parameters
    ----------
    components : int

    Returns
    -------
    ModelData
    """
    study = simulate_from(
        3, n_families=3, backbones_per_cell=2, n_recipes=2, volumes=(1e9, 1e10), n_text_benchmarks=8,
        missing_text=0.02,
    )  # fmt: skip
    runs = study.runs.copy()
    runs.loc[runs["recipe"] == study.recipes[1], "volume"] = np.nan
    runs = runs[~runs.duplicated(["recipe", "backbone", "volume"])]
    study = replace(study, runs=runs, name="simulated design for calibration")
    return model_data(study, fit_capability(study, components=components))


def loss_design(*, points: int) -> LossModelData:
    """16 runs of 2 families with size, volume, compute and components, at one or more points each.

    Parameters
    ----------
    points : int
        Logged losses of a run.

    Returns
    -------
    LossModelData
    """
    rng = np.random.default_rng(4)
    labels = [f"run {i}" for i in range(16)]
    params = np.tile(np.geomspace(1e9, 3e10, 8), 2)
    runs = pd.DataFrame({"family": np.repeat(["F1", "F2"], 8), "params": params}, index=labels)
    runs["backbone"] = labels
    last = np.geomspace(2e9, 4e10, 16)[rng.permutation(16)]
    runs["compute"] = 6 * params * last
    volume = (last[:, None] * np.linspace(0.25, 1, points) if points > 1 else last[:, None]).ravel()
    table = pd.DataFrame({"run": np.repeat(labels, points), "volume": volume, "loss": 1.0})
    components = pd.DataFrame(rng.normal(0, 0.2, (16, 2)), index=labels, columns=["PC1", "PC2"])
    scope = Scope(
        metric="loss", objective="simulated", data_distribution="simulated", architecture="simulated",
        ranges={}, units={}, source="simulated design for calibration",
    )  # fmt: skip
    study = LossStudy("simulated design for calibration", runs, table, scope, components, simulated=True)
    return loss_model_data(study)
