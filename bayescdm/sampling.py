"""Compile a model once; sample it, and refit it under other data without compiling again."""

from __future__ import annotations

import dataclasses
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import xarray as xr
from pytensor.graph.replace import vectorize_graph
from pytensor.graph.traversal import ancestors

from bayescdm.errors import FitError

__all__ = [
    "DEFAULTS",
    "CompiledModel",
    "SamplerSettings",
    "compile_model",
    "prior_draws",
    "quiet_forward_sampling",
]

#: Names by which a swappable array of a data set is known inside the model.
DATA_NAMES = {"accuracy": "observed_accuracy"}


@dataclass(frozen=True)
class SamplerSettings:
    """How NUTS is run; the defaults hold on every packaged study.

    Parameters
    ----------
    draws, tune, chains : int
        Per chain, except `chains`.
    target_accept : float
        Acceptance that step-size adaptation aims at.
    cores : int, optional
        Chains sampled at once; the draws do not depend on it.
    """

    draws: int = 2500
    tune: int = 1500
    chains: int = 4
    target_accept: float = 0.95
    cores: int | None = None


DEFAULTS = SamplerSettings()


@dataclass(frozen=True)
class CompiledModel:
    """A compiled model and the data it was compiled with.

    Parameters
    ----------
    build : callable
        ``build(data) -> pymc.Model`` of the model file.
    data : object
        What `build` was given: has ``start``, and ``swap`` for refits.
    model : pymc.Model
    compiled : object
        The sampler's compiled density.
    """

    build: Callable[[Any], pm.Model]
    data: Any
    model: pm.Model
    compiled: Any

    def sample(
        self, *, seed: int, settings: SamplerSettings = DEFAULTS, progress: bool = False
    ) -> xr.DataTree:
        """Draw from the posterior with NUTS.

        Parameters
        ----------
        seed : int
            Same seed, same draws, whatever the number of cores.
        settings : SamplerSettings
        progress : bool
            Show a progress bar on standard error.

        Returns
        -------
        DataTree
            Groups ``posterior`` and ``sample_stats``, dims chain and draw.

        Raises
        ------
        FitError
            If the sampler cannot start, because the density is not finite there.
        """
        import nutpie

        start = _flat_start(self.model, self.data.start)

        def jittered(chain_seed: Any = None) -> np.ndarray:
            # A start exactly at a stationary point has a zero gradient, which the sampler refuses.
            return start + np.random.default_rng(chain_seed).normal(0, 0.05, size=start.shape)

        compiled = dataclasses.replace(self.compiled, initial_point_func=jittered)
        try:
            tree = nutpie.sample(
                compiled,
                draws=settings.draws,
                tune=settings.tune,
                chains=settings.chains,
                cores=settings.cores or min(settings.chains, os.cpu_count() or 1),
                seed=seed,
                target_accept=settings.target_accept,
                progress_bar=progress,
                save_warmup=False,
            )
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise FitError(f"the sampler stopped ({reason}); check the data for extreme values") from error
        return xr.DataTree.from_dict(
            {name: tree[name].to_dataset() for name in ("posterior", "sample_stats")}
        )

    def refit(self, **arrays: np.ndarray) -> CompiledModel:
        """Return the same compiled density under other data (other weights, accuracies, components, …).

        Parameters
        ----------
        **arrays
            Fields of the data that may be swapped, same shapes as before.
        """
        data = self.data.swap(**arrays)
        named = {DATA_NAMES.get(name, name): value for name, value in arrays.items()}
        compiled = self.compiled.with_data(
            **{key: value for key, value in named.items() if key in self.model.named_vars}
        )
        return dataclasses.replace(self, data=data, compiled=compiled)

    def model_of_data(self) -> pm.Model:
        """Return the model with this object's data in it.

        All refits share one model, whose data are those of whoever asked last: ask again before each use.
        """
        arrays = {DATA_NAMES.get(name, name): getattr(self.data, name) for name in self.data.SWAPPABLE}
        with self.model:
            pm.set_data({key: value for key, value in arrays.items() if key in self.model.named_vars})
        return self.model


def compile_model(build: Callable[[Any], pm.Model], data: Any) -> CompiledModel:
    """Build and compile a model; the slow step (seconds), done once a model.

    Parameters
    ----------
    build : callable
        ``build(data) -> pymc.Model``.
    data : object
        What the model file takes, for example a :class:`bayescdm.modeling.ModelData`.

    Returns
    -------
    CompiledModel
    """
    import nutpie

    model = build(data)
    with warnings.catch_warnings():
        # Numba says that it cannot cache some functions; that costs time, not correctness.
        warnings.filterwarnings("ignore", category=UserWarning, module="pytensor|numba")
        compiled = nutpie.compile_pymc_model(model, backend="numba")
    return CompiledModel(build, data, model, compiled)


def _initial_values(model: pm.Model, start: dict[str, Any]) -> dict[str, np.ndarray]:
    """Unconstrained start of every random variable; the support point where the point fit is silent."""
    from pymc.initial_point import make_initial_point_fn

    named = {rv.name: rv for rv in model.free_RVs}
    overrides = {named[name]: np.asarray(value) for name, value in start.items() if name in named}
    return make_initial_point_fn(model=model, overrides=overrides, return_transformed=True)(0)


def _flat_start(model: pm.Model, start: dict[str, Any]) -> np.ndarray:
    values = _initial_values(model, start)
    ordered = [values[model.rvs_to_values[rv].name] for rv in model.free_RVs]
    return np.concatenate([np.ravel(value) for value in ordered]).astype("float64")


def prior_draws(model: pm.Model, draws: int, seed: int) -> xr.Dataset:
    """Draw parameters and data from the prior, penalties included.

    Parameters
    ----------
    model : pymc.Model
    draws : int
        Draws returned.
    seed : int

    Returns
    -------
    Dataset, (chain, draw, ...)
        Prior draws of parameters and, as ``accuracy``-like observed names, of the data.

    Notes
    -----
    PyMC's forward sampling ignores potentials. Ours are penalties with values ≤ 0, so that accepting a
    draw with probability exp(potential) samples the true prior.
    """
    log_accept = _vectorised_potential(model)
    rng = np.random.default_rng(seed)
    kept: list[xr.Dataset] = []
    have = 0
    while have < draws:
        with model, quiet_forward_sampling():
            tree = pm.sample_prior_predictive(
                # Drawn once: compiling to machine code would cost more than it saves.
                2 * draws,
                random_seed=int(rng.integers(2**31)),
                compile_kwargs={"mode": "FAST_COMPILE"},
            )
        batch = tree["prior"].to_dataset().merge(tree["prior_predictive"].to_dataset())
        accept = np.log(rng.uniform(size=batch.sizes["draw"])) < log_accept(batch)
        batch = batch.isel(draw=np.flatnonzero(accept))
        kept.append(batch)
        have += batch.sizes["draw"]
    return xr.concat(kept, "draw").isel(draw=slice(draws)).assign_coords(draw=np.arange(draws))


@contextmanager
def quiet_forward_sampling() -> Iterator[None]:
    """Silence what forward sampling says of potentials and object mode.

    Our potentials speak of parameters only: prior draws meet them by rejection, and draws of data given the
    posterior are not touched by them. Object mode costs time, not correctness.
    """
    log = logging.getLogger("pymc.sampling.forward")
    level = log.level
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*effect of Potentials.*")
        warnings.filterwarnings("ignore", message=".*object mode.*")
        log.setLevel(logging.WARNING)
        try:
            yield
        finally:
            log.setLevel(level)


def _vectorised_potential(model: pm.Model) -> Callable[[xr.Dataset], np.ndarray]:
    """Sum of a model's potentials as a function of prior draws."""
    if not model.potentials:
        return lambda batch: np.zeros(batch.sizes["draw"])
    total = sum(pt.sum(potential) for potential in model.potentials)
    batched = {rv: pt.tensor(rv.name, shape=(None, *rv.type.shape), dtype=rv.dtype) for rv in model.free_RVs}
    ancestry = set(ancestors([total]))
    needed = [rv for rv in model.free_RVs if rv in ancestry]
    function = pytensor.function(
        [batched[rv] for rv in needed],
        vectorize_graph(total, {rv: batched[rv] for rv in needed}),
        mode="FAST_COMPILE",
    )
    return lambda batch: function(*(batch[rv.name].isel(chain=0).to_numpy() for rv in needed))
