"""Exact refits without some runs: compiled once, runs masked by weight, components refitted, resumable."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import xarray as xr

from bayescdm import __version__
from bayescdm.capability import Capability, Population, fit_capability
from bayescdm.errors import BayesCDMError, RequestError
from bayescdm.fit import Fit, constant_data, load_fit
from bayescdm.modelfiles import ModelFile
from bayescdm.modeling import model_data
from bayescdm.sampling import DEFAULTS, LONGER, CompiledModel, SamplerSettings, compile_model
from bayescdm.study import Study
from bayescdm.validate.folds import Fold

__all__ = ["REFIT_SETTINGS", "ComponentsWithout", "Refitter", "components_without", "prepare_refits"]

#: Scores of held-out runs need fewer draws than tables of parameters do.
REFIT_SETTINGS = SamplerSettings(draws=800, tune=800, chains=4, target_accept=0.95)
#: What a refit that does not converge is sampled again with, once.
LONGER_THAN = {REFIT_SETTINGS: DEFAULTS, DEFAULTS: LONGER}

#: Components that do not know the text scores of some backbones.
ComponentsWithout = Callable[[Sequence[str]], Capability]


@dataclass(frozen=True)
class Refitter:
    """A model compiled once for a study, and all that a refit without some runs needs.

    Parameters
    ----------
    study : Study
    components : callable
        Components without the text scores of the backbones given; K does not change.
    compiled : CompiledModel
        Of all runs.
    model, source_hash : str
    settings : SamplerSettings
        With `REFIT_SETTINGS` a refit that does not converge is sampled again with those of a fit, and with
        those of a fit three times as long.
    seed : int
    store : Path, optional
        Folder of finished refits. A refit that stands there is read, not repeated.
    """

    study: Study
    components: ComponentsWithout
    compiled: CompiledModel
    model: str
    source_hash: str
    settings: SamplerSettings
    seed: int
    store: Path | None = None

    def refit(self, fold: Fold) -> Fit:
        """Fit without the runs of a fold.

        Parameters
        ----------
        fold : Fold

        Returns
        -------
        Fit
            Groups ``posterior``, ``sample_stats`` and ``constant_data``. Held-out families, backbones and
            recipes keep their levels, whose draws are those of new ones.
        """
        compiled, capability = self.masked(fold)
        path = self._path(fold, compiled)
        fit = load_fit(path) if path is not None and path.exists() else None
        if fit is None or self._goes_on(fit):
            if fit is None:
                fit = self._sampled(fold, compiled, capability, self.settings)
            if self._goes_on(fit):
                fit = self._sampled(fold, compiled, capability, LONGER_THAN[self.settings])
            if path is not None:
                fit.save(path, overwrite=True)
        return fit

    def _sampled(
        self, fold: Fold, compiled: CompiledModel, capability: Capability, settings: SamplerSettings
    ) -> Fit:
        tree = compiled.sample(seed=self.seed, settings=settings)
        tree["constant_data"] = xr.DataTree(constant_data(compiled.data))
        record = {
            "seed": self.seed,
            "source_hash": self.source_hash,
            "held_out": fold.label,
            "sampler": {"draws": settings.draws, "thin": settings.thin},
        }
        return Fit(tree, self.study, capability, self.model, record)

    def _goes_on(self, fit: Fit) -> bool:
        """Whether what was tried did not do and something longer is there; it is no cure for divergences."""
        longer = LONGER_THAN.get(self.settings)
        if longer is None or fit.settings.get("sampler") == {"draws": longer.draws, "thin": longer.thin}:
            return False
        found = fit.diagnose()
        return not found.converged and (longer.thin == 1 or found.divergences == 0)

    def masked(self, fold: Fold) -> tuple[CompiledModel, Capability]:
        """Return the compiled model under the data of a fold, and the components that those are made of.

        Raises
        ------
        RequestError
            If the text scores that are left do not give the components.
        """
        arrays = {"weight": np.where(fold.held_out, 0.0, 1.0)}
        try:
            capability = self.components(fold.unseen)
        except BayesCDMError as error:
            raise RequestError(
                f"components without {fold.label}: {error}; or keep its text scores in the components"
            ) from error
        if fold.unseen:
            data = model_data(self.study, capability)
            arrays |= {"components": data.components, "component_factors": data.component_factors}
        return self.compiled.refit(**arrays), capability

    def _path(self, fold: Fold, compiled: CompiledModel) -> Path | None:
        """File of a refit, named after all that determines its draws; None without a store."""
        if self.store is None:
            return None
        digest = hashlib.sha256()
        s = self.settings  # not its cores, which change no draw
        sampler = (self.seed, s.draws, s.tune, s.chains, s.target_accept)
        plan = (__version__, self.source_hash, sampler, compiled.data.coords)
        digest.update(json.dumps(plan).encode())
        for name in ("family", "variant", "recipe", "backbone", "unknown_volume", *compiled.data.SWAPPABLE):
            digest.update(np.ascontiguousarray(getattr(compiled.data, name)).tobytes())
        words = re.sub(r"[^A-Za-z0-9.]+", "-", fold.label)[:60].strip("-")
        return self.store / f"{self.model}-{words}-{digest.hexdigest()[:12]}.nc"


def prepare_refits(
    study: Study,
    model: ModelFile,
    components: ComponentsWithout,
    *,
    settings: SamplerSettings = REFIT_SETTINGS,
    seed: int = 1,
    store: Path | None = None,
) -> Refitter:
    """Compile a model for all runs of a study; the slow step, done once for all refits.

    Parameters
    ----------
    study : Study
    model : ModelFile
    components : callable
        From `components_without`, or any function with the same contract.
    settings : SamplerSettings
    seed : int
    store : Path, optional
        Folder for finished refits; made when it is missing.

    Returns
    -------
    Refitter
    """
    if store is not None:
        store.mkdir(parents=True, exist_ok=True)
    compiled = compile_model(model.build, model_data(study, components(())))
    return Refitter(study, components, compiled, model.name, model.source_hash, settings, seed, store)


def components_without(
    study: Study, *, components: int | None = None, population: Population = "all", refit: bool = True
) -> ComponentsWithout:
    """Return a function that fits the components of a study without some backbones' text scores.

    Parameters
    ----------
    study : Study
    components, population
        As for `bayescdm.fit`; K is settled once, with every backbone, so that shapes stay.
    refit : bool
        False leaves the components as all text scores give them, those of held-out backbones included.

    Returns
    -------
    callable
        ``(backbones) -> Capability``; every backbone of the study is scored on the components.
    """
    full = fit_capability(study, components=components, population=population)
    K = len(full.components)

    def without(backbones: Sequence[str]) -> Capability:
        if not refit or not len(backbones):
            return full
        return fit_capability(study, components=K, population=population, exclude=backbones)

    return without
