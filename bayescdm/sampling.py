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

from bayescdm.errors import FitError, ModelError, Note
from bayescdm.seeds import checked_seed, generator

__all__ = [
    "DEFAULTS",
    "LONGER",
    "CompiledModel",
    "SamplerSettings",
    "compile_model",
    "complete_draws",
    "interruption",
    "prior_draws",
    "quiet_forward_sampling",
]

#: Names by which a swappable array of a data set is known inside the model.
DATA_NAMES = {"accuracy": "observed_accuracy"}
#: Fewer draws than this, over all chains, say nothing of a 90 % interval.
FEWEST_KEPT = 100


@dataclass(frozen=True)
class SamplerSettings:
    """How NUTS is run.

    Parameters
    ----------
    draws, tune, chains : int
        Per chain, except `chains`; `draws` counts those that are kept.
    target_accept : float
        Acceptance that step-size adaptation aims at.
    cores : int, optional
        Chains sampled at once; the draws do not depend on it.
    thin : int
        One of so many draws is kept.
    """

    draws: int = 4000
    tune: int = 1500
    chains: int = 4
    target_accept: float = 0.98
    cores: int | None = None
    thin: int = 1


DEFAULTS = SamplerSettings()
#: Where the defaults leave chains that have not mixed, without divergences: as many draws, of three times the
#: length. The level of the rates mixes slowly in some studies, and all draws would make a large file.
LONGER = dataclasses.replace(DEFAULTS, thin=3)


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
        self,
        *,
        seed: int,
        settings: SamplerSettings = DEFAULTS,
        progress: bool = False,
        keep_interrupted: bool = False,
    ) -> xr.DataTree:
        """Draw from the posterior with NUTS.

        Parameters
        ----------
        seed : int
            Same seed, same draws, whatever the number of cores.
        settings : SamplerSettings
        progress : bool
            Show a progress bar on standard error.
        keep_interrupted : bool
            Return the draws so far on Ctrl-C, fewer than asked for; otherwise it ends whatever is going on.

        Returns
        -------
        DataTree
            Groups ``posterior`` and ``sample_stats``, dims chain and draw.

        Raises
        ------
        FitError
            If the sampler cannot start, because the density is not finite there, or was interrupted before
            there were draws to speak of.
        RequestError
            When the seed is none.
        """
        import nutpie

        seed = checked_seed(seed)
        start = _flat_start(self.model, self.data.start)

        def jittered(chain_seed: Any = None) -> np.ndarray:
            # A start exactly at a stationary point has a zero gradient, which the sampler refuses.
            return start + np.random.default_rng(chain_seed).normal(0, 0.05, size=start.shape)

        compiled = dataclasses.replace(self.compiled, initial_point_func=jittered)
        try:
            sampler = nutpie.sample(
                compiled,
                draws=settings.draws * settings.thin,
                tune=settings.tune,
                chains=settings.chains,
                cores=settings.cores or min(settings.chains, os.cpu_count() or 1),
                seed=seed,
                target_accept=settings.target_accept,
                progress_bar=progress,
                save_warmup=False,
                blocking=False,
            )
            try:
                tree = sampler.wait()
            except KeyboardInterrupt:
                if not keep_interrupted:
                    sampler.cancel()
                    raise
                # At once: ending the chains and what is made of their draws takes a while.
                logging.getLogger("bayescdm").warning(
                    "Ctrl-C: no more draws are made, those so far are kept; Ctrl-C again drops them"
                )
                with warnings.catch_warnings():
                    # Few draws of several chains are no mistake in the names of dimensions.
                    warnings.filterwarnings("ignore", message="Found chain dimension to be longer than draw")
                    tree = sampler.abort()
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise FitError(f"the sampler stopped ({reason}); check the data for extreme values") from error
        groups = {name: tree[name].to_dataset() for name in ("posterior", "sample_stats")}
        # No message for most draws: None is neither text nor a number, and no file holds both.
        messages = groups["sample_stats"].get("divergence_message")
        if messages is not None:
            groups["sample_stats"]["divergence_message"] = messages.where(messages.notnull(), "")
        groups = {name: _thinned(group, settings.thin) for name, group in groups.items()}
        return xr.DataTree.from_dict(complete_draws(groups, settings))

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

    try:
        model = build(data)
    except AttributeError as error:
        raise ModelError(
            f"the model file cannot be built from these data ({error}); is it a model of another kind, "
            "such as a loss law for a study of accuracies?"
        ) from error
    with warnings.catch_warnings():
        # Numba says that it cannot cache some functions; that costs time, not correctness.
        warnings.filterwarnings("ignore", category=UserWarning, module="pytensor|numba")
        compiled = nutpie.compile_pymc_model(model, backend="numba")
    return CompiledModel(build, data, model, compiled)


def _thinned(group: xr.Dataset, thin: int) -> xr.Dataset:
    """Every `thin`-th draw of a group; a divergence among those in between counts as one of the kept draw."""
    if thin == 1:
        return group
    kept = group.isel(draw=slice(thin - 1, None, thin))
    kept = kept.assign_coords(draw=np.arange(kept.sizes["draw"]))
    if "diverging" in group:
        whole = group["diverging"].isel(draw=slice(thin * kept.sizes["draw"]))
        kept["diverging"] = whole.coarsen(draw=thin).max().astype(bool).assign_coords(draw=kept["draw"])
    return kept


def complete_draws(groups: dict[str, xr.Dataset], asked: SamplerSettings) -> dict[str, xr.Dataset]:
    """Cut draws down to the same number of each chain; an interrupted sampler leaves chains unequal.

    Parameters
    ----------
    groups : dict of str to Dataset, (chain, draw, ...)
        ``posterior`` and ``sample_stats``, whose ``logp`` is NaN where a chain did not come.
    asked : SamplerSettings

    Returns
    -------
    dict of str to Dataset
        As they are when all draws are there. Otherwise those chains that together keep most draws, two at
        least if they have any to speak of: one alone cannot show that it has converged.

    Raises
    ------
    FitError
        When fewer than `FEWEST_KEPT` draws would be left.
    """
    lengths = np.isfinite(groups["sample_stats"]["logp"].to_numpy()).sum(axis=1)
    if len(lengths) == asked.chains and lengths.min() == asked.draws:
        return groups
    longest_first = np.argsort(-lengths, kind="stable")
    kept = lengths[longest_first] * np.arange(1, len(lengths) + 1)
    several = kept[1:].max(initial=0) >= FEWEST_KEPT
    chains = int(kept[1:].argmax()) + 2 if several else 1
    if kept[chains - 1] < FEWEST_KEPT:
        raise FitError(
            f"interrupted after {lengths.sum()} draws: too few to keep; nothing was kept, fit again"
        )
    draws = int(lengths[longest_first[chains - 1]])
    chosen = np.sort(longest_first[:chains])
    return {
        name: group.isel(chain=chosen, draw=slice(draws)).assign_coords(chain=np.arange(chains))
        for name, group in groups.items()
    }


def interruption(posterior: xr.Dataset, asked: SamplerSettings) -> tuple[Note, ...]:
    """Say that draws are fewer than asked for, which an interrupted sampler leaves.

    Parameters
    ----------
    posterior : Dataset, (chain, draw, ...)
    asked : SamplerSettings

    Returns
    -------
    tuple of Note
        The warning ``interrupted``; empty when all draws are there. It is logged as well, so that whoever
        interrupted sees at once what was kept.
    """
    chains, draws = posterior.sizes["chain"], posterior.sizes["draw"]
    if chains * draws == asked.chains * asked.draws:
        return ()
    message = (
        f"sampling was interrupted: {draws} draws of {chains} chains are kept, of {asked.draws} draws of "
        f"{asked.chains} chains asked for; where they are too few, NOT CONVERGED is said; fit again for all"
    )
    note = Note("interrupted", message, "warning", "posterior")
    logging.getLogger("bayescdm").warning(str(note))
    return (note,)


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
    rng = generator(seed)
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
