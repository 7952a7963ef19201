"""The posterior draws of a transfer model as plain labelled arrays, and what informed them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from bayescdm.errors import ModelError, RequestError
from bayescdm.study import VARIANTS

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["RATES", "LawDraws", "RecipeRange"]

RATES = ("A", "B0", "Bm")
#: The models' contract (see `bayescdm.modeling`): dimensions of each quantity, chain and draw apart.
REQUIRED: dict[str, tuple[str, ...]] = {
    "w": ("component",),
    "S": ("backbone",),
    **{rate: ("family", "variant") for rate in RATES},
    "P0": (),
    "sigma": (),
}
POPULATION = ("population", "family_scale", "contrast", "contrast_scale")
OPTIONAL: dict[str, tuple[str, ...]] = {
    **{f"{rate}_{part}": () for rate in RATES for part in POPULATION},
    "recipe_effect": ("recipe",),
    "recipe_scale": (),
    "size_slope": (),
    "tau": (),
    "backbone_effect": ("backbone",),
    "nu": (),
}


@dataclass(frozen=True)
class RecipeRange:
    """What the runs of one recipe that inform the fit have seen.

    Attributes
    ----------
    params : float
        Largest number of parameters of a backbone; NaN if none is known.
    volumes : tuple of float
        Smallest and largest volume, in the study's unit; NaN if none is known.
    """

    params: float
    volumes: tuple[float, float]


@dataclass(frozen=True)
class LawDraws:
    """Posterior draws of the law, one axis for all draws, and what informed them.

    Attributes
    ----------
    values : dict of str to ndarray, (sample, ...)
        Draws of each quantity of the models' contract that the model has.
    labels : dict of str to Index
        Labels of ``component``, ``family``, ``backbone`` and ``recipe``.
    sample : ndarray of int, (sample,)
        Position of each draw among all, chain after chain.
    backbones, families : Index
        Those with a run that informs the fit; runs of weight 0 are held out and do not.
    volumes : tuple of float
        Smallest and largest volume of those runs, in the study's unit; NaN if none is known.
    log_params : tuple of float
        Smallest and largest ln N of their backbones; NaN if none is known.
    log_params_ref : float
        ln N_ref.
    recipes : dict of str to RecipeRange
        What the runs of each recipe have seen.
    """

    values: dict[str, np.ndarray]
    labels: dict[str, pd.Index]
    sample: np.ndarray
    backbones: pd.Index
    families: pd.Index
    volumes: tuple[float, float]
    log_params: tuple[float, float]
    log_params_ref: float
    recipes: dict[str, RecipeRange]

    @classmethod
    def of(cls, fit: Fit, draws: int | None = None, *, group: str = "posterior") -> LawDraws:
        """Read the draws of a fit.

        Parameters
        ----------
        fit : Fit
        draws : int, optional
            Keep at most this many, evenly spaced.
        group : {"posterior", "prior"}

        Raises
        ------
        ModelError
            The fit's model is not a transfer model.
        RequestError
            Fewer than one draw is asked for.
        """
        posterior, constant = fit.group(group), fit.group("constant_data")
        missing = [name for name in REQUIRED if name not in posterior]
        if missing:
            raise ModelError(
                f"model '{fit.model}' has no {', '.join(missing)}: predictions need a transfer model"
            )
        if draws is not None and draws < 1:
            raise RequestError(f"{draws} draws asked for; give at least 1")
        sample = _evenly_spaced(posterior.sizes["chain"] * posterior.sizes["draw"], draws)
        dims = {name: dims for name, dims in (REQUIRED | OPTIONAL).items() if name in posterior}
        variants = tuple(posterior["variant"].to_numpy().astype(str))
        if variants != VARIANTS:
            raise ModelError(
                f"model '{fit.model}' has variants {', '.join(variants)}, not {', '.join(VARIANTS)}"
            )
        informing = constant.isel(run=np.flatnonzero(constant["weight"].to_numpy() > 0))
        with_runs = np.unique(informing["backbone_of_run"].to_numpy())
        families = np.unique(constant["family_of_backbone"].to_numpy()[with_runs])
        known = informing["log_volume"].to_numpy()[informing["volume_known"].to_numpy() > 0]
        reference = float(constant["log_params_ref"])
        labels = {dim: _labels(posterior, dim) for dim in ("component", "family", "backbone")}
        return cls(
            values={name: _stacked(posterior[name], own)[sample] for name, own in dims.items()},
            labels={**labels, "recipe": _labels(constant, "recipe")},
            sample=sample,
            backbones=_labels(constant, "backbone")[with_runs],
            families=_labels(constant, "family")[families],
            volumes=_range(np.exp(known) * float(fit.study.volume_ref or np.nan)),
            log_params=_range(constant["log_params"].to_numpy()[with_runs] + reference),
            log_params_ref=reference,
            recipes=_recipe_ranges(fit, informing),
        )

    def __contains__(self, name: str) -> bool:
        """Whether the model has a quantity."""
        return name in self.values

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the draws of a quantity, (sample, ...); KeyError if the model does not have it."""
        return self.values[name]

    def optional(self, name: str) -> np.ndarray:
        """Return a quantity without labels, 0 where the model does not have it, (sample,)."""
        if name not in OPTIONAL:
            raise KeyError(name)
        return self.values.get(name, np.zeros(len(self.sample)))

    def positions(self, dim: str, names: Iterable[Any]) -> np.ndarray:
        """Return positions of labels along a dimension, −1 for those that it does not have."""
        return self.labels[dim].get_indexer(pd.Index(list(names), dtype=object))

    def direction(self, components: pd.Index) -> np.ndarray:
        """Return w with its components in a given order, (sample, component).

        Raises
        ------
        ModelError
            If they are not the components that the fit has.
        """
        positions = self.positions("component", components)
        if len(positions) != len(self.labels["component"]) or (positions < 0).any():
            raise ModelError("the fit's direction and its capability do not have the same components")
        return self["w"][:, positions]


def _evenly_spaced(total: int, draws: int | None) -> np.ndarray:
    return np.linspace(0, total - 1, min(draws or total, total)).round().astype(int)


def _stacked(values: xr.DataArray, dims: tuple[str, ...]) -> np.ndarray:
    """Chain after chain along the first axis, then the given dimensions."""
    ordered = values.transpose("chain", "draw", *dims).to_numpy()
    return ordered.reshape(-1, *ordered.shape[2:])


def _recipe_ranges(fit: Fit, informing: xr.Dataset) -> dict[str, RecipeRange]:
    """Largest backbone and range of volumes of each recipe, over the runs that inform the fit."""
    runs = fit.study.runs.reindex(informing["run"].to_numpy())
    params = fit.study.backbones["params"].reindex(runs["backbone"]).to_numpy(float)
    return {
        str(recipe): RecipeRange(_range(params[places])[1], _range(runs["volume"].to_numpy(float)[places]))
        for recipe, places in runs.groupby("recipe").indices.items()
    }


def _labels(data: xr.Dataset, dim: str) -> pd.Index:
    return pd.Index(data[dim].to_numpy().astype(str), dtype=object)


def _range(values: np.ndarray) -> tuple[float, float]:
    known = values[np.isfinite(values)]
    return (float(known.min()), float(known.max())) if len(known) else (np.nan, np.nan)
