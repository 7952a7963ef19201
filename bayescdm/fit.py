"""Fit: the posterior draws of a study under a model, with all that is needed to read answers off them."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import itertools
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import xarray as xr

from bayescdm import __version__
from bayescdm.capability import Capability, Population, fit_capability
from bayescdm.errors import FitError, Note
from bayescdm.fitfile import PROGRAM, check_agreement, checked_name, parsing, read_fit_file, write_fit_file
from bayescdm.identify import identifiability, prior_dominated
from bayescdm.intervals import equal_tailed, interval_columns
from bayescdm.modelfiles import load_model
from bayescdm.modeling import ModelData, model_data
from bayescdm.reading import load_study
from bayescdm.sampling import (
    DEFAULTS,
    LONGER,
    CompiledModel,
    SamplerSettings,
    compile_model,
    interruption,
    prior_draws,
    quiet_forward_sampling,
)
from bayescdm.seeds import checked_seed
from bayescdm.study import Study, Unscored

__all__ = ["Diagnosis", "Fit", "fit", "load_fit"]

#: Version of a saved fit's record.
FORMAT = 2
#: Criteria of convergence for every quantity (Vehtari et al. 2021, tightened to 1.01).
MAX_R_HAT = 1.01
MIN_ESS = 400
PRIOR_DRAWS = 1000
#: Sampler settings that a fit remembers; the number of cores changes no draw.
RECORDED = ("draws", "tune", "chains", "target_accept", "thin")


@dataclass(frozen=True)
class Diagnosis:
    """Whether the draws can be trusted.

    Parameters
    ----------
    divergences : int
    max_r_hat, min_ess_bulk, min_ess_tail : float
        Over every quantity of the posterior.
    worst : dict of str to str
        Which quantity has each of the three.
    draws : int
        Over all chains.
    """

    divergences: int
    max_r_hat: float
    min_ess_bulk: float
    min_ess_tail: float
    worst: dict[str, str]
    draws: int

    @property
    def converged(self) -> bool:
        """No divergence, every R-hat < 1.01, every bulk and tail ESS > 400."""
        return (
            self.divergences == 0
            and self.max_r_hat < MAX_R_HAT
            and min(self.min_ess_bulk, self.min_ess_tail) > MIN_ESS
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """The ``not-converged`` warning, or nothing."""
        return () if self.converged else (Note("not-converged", f"NOT CONVERGED: {self}", "warning"),)

    def __str__(self) -> str:
        """Return the figures on one line."""
        return (
            f"{self.divergences} divergences in {self.draws} draws; "
            f"largest R-hat {self.max_r_hat:.4f} ({self.worst['r_hat']}); "
            f"smallest bulk ESS {self.min_ess_bulk:.0f} ({self.worst['ess_bulk']}); "
            f"smallest tail ESS {self.min_ess_tail:.0f} ({self.worst['ess_tail']})"
        )


@dataclass(frozen=True)
class Fit:
    """Posterior draws of one study under one model file.

    Parameters
    ----------
    draws : DataTree
        Groups ``posterior``, ``sample_stats``, ``prior``, ``prior_predictive``,
        ``posterior_predictive``, ``log_likelihood``, ``observed_data``, ``constant_data``.
    study : Study
    capability : Capability
    model : str
        Name of the model file.
    settings : dict
        Model source hash, seed, sampler settings, versions, choice of population and components.
    notes : tuple of Note
        Identifiability warnings and what was decided on the way.
    """

    draws: xr.DataTree
    study: Study
    capability: Capability
    model: str
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def posterior(self) -> xr.Dataset:
        """Posterior draws, dims chain, draw and the model's own."""
        return self.group("posterior")

    def group(self, name: str) -> xr.Dataset:
        """Return one group of the draws.

        Raises
        ------
        FitError
            If the fit does not hold that group.
        """
        if name not in self.draws.children:
            raise FitError(f"this fit has no group '{name}'; it has {', '.join(sorted(self.draws.children))}")
        return self.draws[name].to_dataset()

    def diagnose(self) -> Diagnosis:
        """Check convergence of every quantity of the posterior.

        Returns
        -------
        Diagnosis
        """
        return worst_of(self.convergence, self.group("sample_stats"))

    @cached_property
    def convergence(self) -> pd.DataFrame:
        """R-hat, bulk and tail ESS of every quantity; worked out once, since every table asks for it."""
        return convergence(self.posterior)

    @property
    def warnings(self) -> tuple[Note, ...]:
        """Notes of severity ``warning``: of the draws first, then of the study."""
        notes = dict.fromkeys((*self.diagnose().notes, *self.notes, *self.study.notes))
        return tuple(note for note in notes if note.severity == "warning")

    def facts(self) -> dict[str, Any]:
        """Return what every table and prediction says about its origin; plain values, for ``attrs``.

        Returns
        -------
        dict
            ``model``, ``study``, ``volume_unit``, ``simulated`` and ``converged`` (0 or 1), ``warnings``
            (one line each).
        """
        return {
            "model": self.model,
            "study": self.study.name,
            "volume_unit": self.study.volume_unit,
            "simulated": int(self.study.simulated),
            "converged": int(self.diagnose().converged),
            "warnings": [str(note) for note in self.warnings],
        }

    def summary(self, variables: list[str] | None = None, *, prob: float = 0.9) -> pd.DataFrame:
        """Summarise posterior quantities, one row a scalar, labels taken from its own coordinates.

        Parameters
        ----------
        variables : list of str, optional
            The model's interpretable quantities by default.
        prob : float
            Probability of the equal-tailed interval.

        Returns
        -------
        DataFrame
            Columns ``mean``, ``sd``, ``posterior_90_lower``, ``posterior_90_upper``, ``ess_bulk``,
            ``ess_tail``, ``r_hat``, ``prior_sd_ratio``: posterior sd over prior sd; near 1 the data say
            little beyond the prior; of a positive quantity it falls with the level as well.
            Index: ``name[label, …]``.
        """
        posterior = self.posterior
        chosen = variables or [str(name) for name in posterior if not _auxiliary(str(name))]
        prior = self.group("prior") if "prior" in self.draws.children else None
        return summarise(posterior[chosen], prior, prob=prob, checks=self.convergence)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the fit to one NetCDF file, atomically.

        Parameters
        ----------
        path : str or Path
        overwrite : bool
            Replace an existing file.

        Returns
        -------
        Path

        Raises
        ------
        RequestError
            If the file exists and `overwrite` is false, or its folder does not.
        """
        return save_fit(self, Path(path), overwrite=overwrite)


def _auxiliary(name: str) -> bool:
    """Names of non-centred offsets and raw vectors, which mean nothing alone."""
    return name.endswith(("_offset", "_raw", "_shift")) or name.startswith("log_")


def fit(
    study: Study | str | Path,
    *,
    model: str | Path = "transfer_hierarchical",
    components: int | None = None,
    population: Population = "all",
    unscored: Unscored | None = None,
    seed: int = 1,
    settings: SamplerSettings = DEFAULTS,
    progress: bool = False,
) -> Fit:
    """Fit a transfer model to a study.

    Parameters
    ----------
    study : Study, str or Path
        A study, the name of a packaged one, or a folder.
    model : str or Path
        Name of a packaged model file, or the path of your own.
    components : int, optional
        Number of text components; by default the fewest with 95 % of the variance.
    population : {"all", "with_runs"}
        Backbones that define the components: all with text scores, or only those with runs.
    unscored : {"leave_out", "by_size"}, optional
        What becomes of runs on backbones without text scores; by default what the study says.
    seed : int
    settings : SamplerSettings
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    Fit

    Raises
    ------
    InputError, NotFoundError, ModelError, FitError, RequestError

    Notes
    -----
    Ctrl-C while draws are made keeps those that were made, says so, and leaves the warning ``interrupted``.
    Where the default settings leave chains unmixed, without divergences, the model is sampled once more with
    three times the draws, of which every third is kept; note ``sampled-longer`` says so.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm", seed=1)  # doctest: +SKIP
    """
    # Refused before a model is compiled.
    checked_seed(seed)
    if not isinstance(study, Study):
        study = load_study(study)
    if unscored is not None:
        study = study.with_unscored(unscored)
    file = load_model(model)
    capability = fit_capability(study, components=components, population=population)
    data = model_data(study, capability)
    compiled = compile_model(file.build, data)
    return fit_compiled(
        compiled,
        study,
        capability,
        model=file.name,
        seed=seed,
        sampler=settings,
        progress=progress,
        settings={"source_hash": file.source_hash, "population": population},
    )


def fit_compiled(
    compiled: CompiledModel,
    study: Study,
    capability: Capability,
    *,
    model: str,
    seed: int,
    sampler: SamplerSettings = DEFAULTS,
    progress: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> Fit:
    """Sample a compiled model and gather every group of the result.

    Parameters
    ----------
    compiled : CompiledModel
        Made from ``model_data(study, capability)``.
    study, capability, model, seed, sampler, progress
        As for :func:`fit`.
    settings : mapping, optional
        More facts to keep with the fit.

    Returns
    -------
    Fit
    """
    tree, sampler, notes = _sampled(compiled, seed, sampler, progress=progress)
    for name, group in predictive_groups(compiled.model_of_data(), tree, seed=seed).items():
        tree[name] = xr.DataTree(group)
    tree["constant_data"] = constant_data(compiled.data)
    record = {
        "seed": seed,
        "sampler": {
            name: getattr(sampler, name) for name in ("draws", "tune", "chains", "target_accept", "thin")
        },
        "components": len(capability.scores.columns),
        "versions": _versions(),
        **(settings or {}),
    }
    left_open = prior_dominated(tree["posterior"].to_dataset(), tree["prior"].to_dataset())
    warned = (*notes, *identifiability(study), *left_open)
    return Fit(tree, study, capability, model, record, warned)


def _sampled(
    compiled: CompiledModel, seed: int, sampler: SamplerSettings, *, progress: bool
) -> tuple[xr.DataTree, SamplerSettings, tuple[Note, ...]]:
    """Draws, the settings that made them, and what is to be said of both; longer where the defaults fail."""
    tree = compiled.sample(seed=seed, settings=sampler, progress=progress, keep_interrupted=True)
    notes = interruption(tree["posterior"].to_dataset(), sampler)
    if notes or dataclasses.replace(sampler, cores=None) != DEFAULTS:
        return tree, sampler, notes
    found = diagnose(tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset())
    # More draws of a sampler that diverges are no better draws.
    if found.converged or found.divergences:
        return tree, sampler, notes
    message = (
        f"{DEFAULTS.draws} draws a chain did not do (largest R-hat {found.max_r_hat:.4f}, smallest ESS "
        f"{min(found.min_ess_bulk, found.min_ess_tail):.0f}): sampled again, every {LONGER.thin}rd of "
        f"{LONGER.draws * LONGER.thin} draws is kept"
    )
    logging.getLogger("bayescdm").info(message)
    longer = dataclasses.replace(LONGER, cores=sampler.cores)
    try:
        tree = compiled.sample(seed=seed, settings=longer, progress=progress, keep_interrupted=True)
    except FitError:
        # Interrupted before there were draws to speak of: the first ones are there, and say NOT CONVERGED.
        return tree, sampler, notes
    cut = interruption(tree["posterior"].to_dataset(), longer)
    return tree, longer, (Note("sampled-longer", message, "note", "posterior"), *cut)


def predictive_groups(model: pm.Model, tree: xr.DataTree, *, seed: int) -> dict[str, xr.Dataset]:
    """Prior, prior predictive, posterior predictive, log likelihood and observed data of a sampled model."""
    observed = [rv.name for rv in model.observed_RVs]
    prior = prior_draws(model, PRIOR_DRAWS, seed)
    with model, quiet_forward_sampling():
        replicated = pm.sample_posterior_predictive(tree, progressbar=False, random_seed=seed)
        likelihood = pm.compute_log_likelihood(tree, extend_inferencedata=False, progressbar=False)
    values = {
        rv.name: (model.named_vars_to_dims[rv.name], model.rvs_to_values[rv].eval())
        for rv in model.observed_RVs
    }
    return {
        "prior": prior.drop_vars(observed),
        "prior_predictive": prior[observed],
        "posterior_predictive": replicated["posterior_predictive"].to_dataset(),
        "log_likelihood": _dataset(likelihood, "log_likelihood"),
        "observed_data": xr.Dataset(
            values, coords={d: list(c) for d, c in model.coords.items() if d == "run"}
        ),
    }


def _dataset(result: Any, group: str) -> xr.Dataset:
    return result if isinstance(result, xr.Dataset) else result[group].to_dataset()


def constant_data(data: ModelData) -> xr.Dataset:
    """Predictors of the fit as labelled arrays: components, labels and volumes."""
    coords = {dim: [str(label) for label in labels] for dim, labels in data.coords.items() if labels}
    return xr.Dataset(
        {
            "components": (("backbone", "component"), data.components),
            "family_of_backbone": ("backbone", data.family),
            "variant_of_backbone": ("backbone", data.variant),
            "log_params": ("backbone", data.log_params),
            "log_params_ref": data.log_params_ref,
            "backbone_of_run": ("run", data.backbone),
            "recipe_of_run": ("run", data.recipe),
            "log_volume": ("run", data.log_volume),
            "volume_known": ("run", (data.unknown_volume < 0).astype(int)),
            "weight": ("run", data.weight),
        },
        coords=coords,
    )


def _versions() -> dict[str, str]:
    packages = ("pymc", "pytensor", "nutpie", "arviz", "numpy", "xarray")
    versions = {name: importlib.metadata.version(name) for name in packages}
    return {"bayescdm": __version__, **versions}


# --- tables and diagnostics -------------------------------------------------------------------------


def convergence(posterior: xr.Dataset) -> pd.DataFrame:
    """R-hat and effective sample sizes of every scalar of `posterior`; seconds of work.

    Parameters
    ----------
    posterior : Dataset, (chain, draw, ...)

    Returns
    -------
    DataFrame, one row a scalar
        ``r_hat``, ``ess_bulk``, ``ess_tail``; NaN for constants, such as w with one component. Index:
        ``name[label, …]``.
    """
    import arviz as az

    # Constants divide zero by zero; they are passed over below.
    with np.errstate(divide="ignore", invalid="ignore"):
        # Not the standard deviation, which rounding keeps from being 0 where all draws are equal.
        spread = posterior.max(("chain", "draw"), skipna=False) - posterior.min(
            ("chain", "draw"), skipna=False
        )
        columns = {
            "r_hat": az.rhat(posterior),
            "ess_bulk": az.ess(posterior, method="bulk"),
            "ess_tail": az.ess(posterior, method="tail"),
        }
    checks = pd.DataFrame(
        {
            column: {f"{name}{label}": value for name in values for label, value in _cells(values[name])}
            for column, values in columns.items()
        }
    )
    spreads = pd.Series([value for name in spread for _, value in _cells(spread[name])], checks.index)
    # What varies and cannot be checked (one chain alone, a draw that is no number) must not pass.
    checks = checks.where(np.isfinite(spreads), np.nan).fillna(
        {"r_hat": np.inf, "ess_bulk": 0, "ess_tail": 0}
    )
    return checks.where(spreads != 0, np.nan)


def diagnose(posterior: xr.Dataset, sample_stats: xr.Dataset) -> Diagnosis:
    """Check convergence of every quantity in `posterior`; constants are passed over."""
    return worst_of(convergence(posterior), sample_stats)


def worst_of(checks: pd.DataFrame, sample_stats: xr.Dataset) -> Diagnosis:
    """Worst of the convergence checks of every quantity.

    Parameters
    ----------
    checks : DataFrame
        From `convergence`.
    sample_stats : Dataset, (chain, draw)

    Returns
    -------
    Diagnosis
    """
    worst = {
        "r_hat": str(checks["r_hat"].idxmax()),
        "ess_bulk": str(checks["ess_bulk"].idxmin()),
        "ess_tail": str(checks["ess_tail"].idxmin()),
    }
    return Diagnosis(
        divergences=int(sample_stats["diverging"].sum()),
        max_r_hat=float(checks["r_hat"].max()),
        min_ess_bulk=float(checks["ess_bulk"].min()),
        min_ess_tail=float(checks["ess_tail"].min()),
        worst=worst,
        draws=sample_stats.sizes["chain"] * sample_stats.sizes["draw"],
    )


def _cells(values: xr.DataArray) -> list[tuple[str, float]]:
    """Each cell of an array with a label made of its own coordinates."""
    if not values.dims:
        return [("", float(values))]
    labels = [[str(x) for x in values[dim].to_numpy()] for dim in values.dims]
    names = [f"[{', '.join(cell)}]" for cell in itertools.product(*labels)]
    return list(zip(names, values.to_numpy().ravel().tolist()))


def summarise(
    posterior: xr.Dataset,
    prior: xr.Dataset | None,
    *,
    prob: float,
    checks: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Summarise draws, one row a scalar; see :meth:`Fit.summary`. `checks` hold those of `convergence`."""
    checks = convergence(posterior) if checks is None else checks
    lower_name, upper_name = interval_columns("posterior", prob)
    rows: dict[str, dict[str, float]] = {}
    for name in posterior:
        draws = posterior[name]
        lower, upper = equal_tailed(draws, prob)
        columns = {
            "mean": draws.mean(("chain", "draw")),
            "sd": draws.std(("chain", "draw")),
            lower_name: lower,
            upper_name: upper,
        }
        if prior is not None and name in prior:
            with np.errstate(divide="ignore", invalid="ignore"):
                columns["prior_sd_ratio"] = columns["sd"] / prior[name].std(("chain", "draw"))
        for column, values in columns.items():
            for label, value in _cells(values):
                rows.setdefault(f"{name}{label}", {})[column] = value
    table = pd.DataFrame.from_dict(rows, orient="index")
    checked = checks.loc[table.index, ["ess_bulk", "ess_tail", "r_hat"]]
    position = len(table.columns) - ("prior_sd_ratio" in table)
    for offset, column in enumerate(checked):
        table.insert(position + offset, column, checked[column])
    return table


# --- one file ---------------------------------------------------------------------------------------


def save_fit(fit: Fit, path: Path, *, overwrite: bool) -> Path:
    """Write `fit` with its study and components to one file; see :func:`write_fit_file`."""
    record = {
        "format": FORMAT,
        "model": fit.model,
        "settings": fit.settings,
        "study": fit.study.to_dict(),
        "capability": fit.capability.to_dict(),
        "notes": [note.to_dict() for note in fit.notes],
    }
    groups = {name: fit.group(name) for name in fit.draws.children}
    return write_fit_file(path, groups, record, program=PROGRAM, overwrite=overwrite)


def load_fit(path: str | Path) -> Fit:
    """Load a fit that :meth:`Fit.save` wrote; it predicts to the bit as before.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Fit

    Raises
    ------
    FitError
        If the file is missing, is not a fit, is damaged, was written by another program or format, or is not
        laid out as this program lays out a fit.
    """
    path = Path(path)
    draws, record = read_fit_file(path, program=PROGRAM, version=FORMAT)
    with parsing(path, "its record is damaged"):
        fit = Fit(
            draws=draws,
            study=Study.from_dict(record["study"]),
            capability=Capability.from_dict(record["capability"]),
            model=checked_name(record["model"]),
            settings=dict(record["settings"]),
            notes=tuple(Note(**note) for note in record["notes"]),
        )
        check_agreement(fit.draws, fit.study, fit.capability)
        return fit
