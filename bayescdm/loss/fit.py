"""Bayesian fits of the loss laws: draws, what they were fitted to, and predictions read off them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from bayescdm import __version__
from bayescdm.errors import InputError, Note, RequestError, unknown_name
from bayescdm.fit import Diagnosis, diagnose, summarise
from bayescdm.fitfile import LOSS_PROGRAM, checked_name, parsing, read_fit_file, write_fit_file
from bayescdm.intervals import check_probability, interval_columns
from bayescdm.laws import capability_loss, compute_loss, contrastive_error
from bayescdm.loss.logs import thin_logs
from bayescdm.loss.modeling import loss_model_data
from bayescdm.loss.prediction import LossPrediction
from bayescdm.loss.scope import Scope
from bayescdm.loss.study import LossStudy
from bayescdm.modelfiles import load_model
from bayescdm.sampling import SamplerSettings, compile_model, interruption, prior_draws
from bayescdm.seeds import checked_seed, generator

__all__ = ["LOSS_DEFAULTS", "LossFit", "fit_loss", "law_draws", "load_loss_fit"]

#: Enough for an effective sample size above 400 of every quantity on the packaged points.
LOSS_DEFAULTS = SamplerSettings(draws=1500, tune=1000)
#: What a user calls a law, and the model file that states it.
MODEL_OF_LAW = {
    "chinchilla": "chinchilla",
    "compute": "loss_compute",
    "compute-pooled": "loss_compute_pooled",
    "capability": "loss_capability",
    "contrastive": "contrastive_power",
}
PRIOR_DRAWS = 1000
#: Version of a saved fit's record.
FORMAT = 2
Kind = Literal["law", "run"]


@dataclass(frozen=True)
class LossFit:
    """Posterior draws of one loss law.

    Parameters
    ----------
    draws : DataTree
        Groups ``posterior``, ``sample_stats`` and ``prior``.
    study : LossStudy
        What was fitted, after preparation; its scope travels with every prediction.
    model : str
        Name of the model file.
    settings : dict
        Seed, sampler, source hash of the model file, version.
    notes : tuple of Note
        What happened while drawing.
    """

    draws: xr.DataTree
    study: LossStudy
    model: str
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def posterior(self) -> xr.Dataset:
        """Posterior draws, dims chain, draw and the model's own."""
        return self.draws["posterior"].to_dataset()

    @property
    def scope(self) -> Scope:
        """What the runs were, by the capability law also the range of their backbones' components."""
        study = self.study
        if self.model != "loss_capability" or study.components is None:
            return study.scope
        return study.scope.with_ranges(study.components.loc[study.runs.index])

    def diagnose(self) -> Diagnosis:
        """Check convergence of every quantity of the posterior.

        Returns
        -------
        Diagnosis
        """
        return self._diagnosis

    @cached_property
    def _diagnosis(self) -> Diagnosis:
        return diagnose(self.posterior, self.draws["sample_stats"].to_dataset())

    @property
    def warnings(self) -> tuple[Note, ...]:
        """What limits every answer: draws that did not converge, then the study's own warnings."""
        notes = (*self.diagnose().notes, *self.notes, *self.study.notes)
        return tuple(note for note in notes if note.severity == "warning")

    def __str__(self) -> str:
        """Return the law's constants with intervals, convergence, scope and notes."""
        return self.describe()

    def describe(self, *, prob: float = 0.9) -> str:
        """Return the law's constants with intervals, convergence, scope and notes as text.

        Parameters
        ----------
        prob : float
            Probability of the intervals.

        Returns
        -------
        str
        """
        table = self.summary(prob=prob).to_string(float_format=lambda value: f"{value:.4g}")
        notes = map(str, (*self.diagnose().notes, *self.notes, *self.study.notes))
        return "\n".join(
            [f"{self.model}, {self.study.name}", table, str(self.diagnose()), "", str(self.scope), *notes]
        )

    def to_dict(self, *, prob: float = 0.9) -> dict[str, Any]:
        """Return the law's constants, convergence, scope and notes as plain values, for JSON.

        Parameters
        ----------
        prob : float
            Probability of the intervals.

        Returns
        -------
        dict
        """
        diagnosis = self.diagnose()
        return {
            "model": self.model,
            "study": self.study.name,
            "parameters": self.summary(prob=prob).to_dict("index"),
            "converged": diagnosis.converged,
            "diagnosis": str(diagnosis),
            "scope": self.scope.to_dict(),
            "notes": [note.to_dict() for note in (*diagnosis.notes, *self.notes, *self.study.notes)],
        }

    def summary(self, *, prob: float = 0.9) -> pd.DataFrame:
        """Summarise the constants of the law, one row a scalar.

        Parameters
        ----------
        prob : float
            Probability of the equal-tailed interval.

        Returns
        -------
        DataFrame
            Columns as `bayescdm.fit.Fit.summary`. Sizes of terms span decades and have no mean worth reading:
            their decimal logarithms are shown.
        """
        posterior, prior = (
            _with_logarithms(self.draws[group].to_dataset(), self.model) for group in ("posterior", "prior")
        )
        wanted = ("reference_loss", "log10_A", "log10_B", "log10_beta", "E", "alpha", "beta", "floor", "w")
        chosen = [name for name in (*wanted, "tau", "sigma") if name in posterior]
        return summarise(posterior[chosen], prior, prob=prob)

    def predict(
        self, table: pd.DataFrame, *, kind: Kind = "law", prob: float = 0.9, seed: int = 1
    ) -> LossPrediction:
        """Predict the scope's metric, with intervals and extrapolation flags.

        Parameters
        ----------
        table : DataFrame, one row a point
            ``params`` and ``volume``, absolute counts; ``family`` for a law that differs by family;
            ``compute`` in place of both for the contrastive law; the components (``PC1``, …) in place of
            ``params`` for the capability law.
        kind : {"law", "run"}
            ``law``: parameter uncertainty only; ``run``: what a training run would measure.
        prob : float
            Probability of the equal-tailed interval.
        seed : int
            Of the offsets and residuals of ``run``.

        Returns
        -------
        LossPrediction
            The table with ``loss`` (posterior mean), interval columns and ``extrapolation``.

        Raises
        ------
        RequestError
            A column is missing, a value is not positive, or the probability is not one.
        NotFoundError
            A family is not one of the fit's.
        """
        lower, upper = interval_columns(kind, check_probability(prob))
        draws = law_draws(self, table)
        if kind == "run":
            draws = draws * np.exp(self._run_spread(draws.shape, generator(seed)))
        low, high = np.quantile(draws, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
        flags = self._extrapolates(table)
        answer = table.assign(loss=draws.mean(axis=0), **{lower: low, upper: high}, extrapolation=flags)
        where = "the runs of their own family" if self.by_family else None
        notes = (*self.warnings, *self.scope.extrapolation_note(flags, where))
        return LossPrediction(answer, self.scope, notes)

    @property
    def by_family(self) -> bool:
        """Whether every family has a law of its own."""
        return "family" in self.posterior["alpha"].dims

    def _extrapolates(self, table: pd.DataFrame) -> np.ndarray:
        """Tell which points lie outside the runs that speak about them, shape (point,).

        Where every family has a law of its own, only the family's own runs speak about it.
        """
        values = {name: table[name].to_numpy(float) for name in self.scope.ranges if name in table}
        flags = np.zeros(len(table), dtype=bool) | self.scope.extrapolates(**values)
        if self.by_family:
            seen = self.study.points.join(self.study.runs, on="run")
            for name, asked in values.items():
                by_family = seen.groupby("family")[name]
                low, high = (
                    table["family"].map(edge()).to_numpy(float) for edge in (by_family.min, by_family.max)
                )
                flags |= (asked < low) | (asked > high)
        return flags

    def _run_spread(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Offset of each run and its residual on ln L, shape (draw, point)."""
        stacked = _stacked(self.posterior)
        sigma = stacked["sigma"][:, None]
        if "nu" in stacked:
            return sigma * rng.standard_t(np.broadcast_to(stacked["nu"][:, None], shape))
        return np.sqrt(sigma**2 + stacked["tau"][:, None] ** 2) * rng.standard_normal(shape)

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
        study = self.study.to_dict()
        record = {
            "format": FORMAT,
            "model": self.model,
            "settings": self.settings,
            "study": study,
            "notes": [note.to_dict() for note in self.notes],
        }
        groups = {name: self.draws[name].to_dataset() for name in self.draws.children}
        return write_fit_file(path, groups, record, program=LOSS_PROGRAM, overwrite=overwrite)


def fit_loss(
    study: LossStudy,
    law: str = "capability",
    *,
    seed: int = 1,
    points_per_run: int = 30,
    settings: SamplerSettings = LOSS_DEFAULTS,
    progress: bool = False,
) -> LossFit:
    """Draw from the posterior of a loss law.

    Parameters
    ----------
    study : LossStudy
        Prepared (`prepare_logs`).
    law : {"chinchilla", "compute", "compute-pooled", "capability", "contrastive"}
        ``compute`` has constants of its own for every family, ``compute-pooled`` pools them partially.
    seed : int
    points_per_run : int
        Runs with more logged losses are thinned: neighbouring losses say the same thing.
    settings : SamplerSettings
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    LossFit

    Raises
    ------
    NotFoundError
        When there is no such law.
    InputError
        When the study lacks what the law needs.
    FitError
        When the sampler cannot start.

    Notes
    -----
    Ctrl-C while draws are made keeps those that were made and leaves the warning ``interrupted``.
    Sources of the laws: `bayescdm.laws` and the docstring of each model file.
    """
    checked_seed(seed)
    file = load_model(model_of_law(law, study))
    study = thin_logs(study, points_per_run)
    compiled = compile_model(file.build, loss_model_data(study))
    tree = compiled.sample(seed=seed, settings=settings, progress=progress, keep_interrupted=True)
    interrupted = interruption(tree["posterior"].to_dataset(), settings)
    observed = [rv.name for rv in compiled.model.observed_RVs]
    tree["prior"] = xr.DataTree(prior_draws(compiled.model, PRIOR_DRAWS, seed).drop_vars(observed))
    sampler = {name: getattr(settings, name) for name in ("draws", "tune", "chains", "target_accept")}
    record = {"seed": seed, "sampler": sampler, "source_hash": file.source_hash, "version": __version__}
    return LossFit(tree, study, file.name, record, interrupted)


def model_of_law(law: str, study: LossStudy) -> str:
    """Model file of a law, after checking that the study has what the law needs.

    Parameters
    ----------
    law : str
    study : LossStudy

    Returns
    -------
    str

    Raises
    ------
    NotFoundError
        When there is no such law.
    InputError
        When the study lacks what the law needs.
    """
    if law not in MODEL_OF_LAW:
        raise unknown_name("loss law", law, MODEL_OF_LAW)
    if law == "capability" and study.components is None:
        raise InputError(
            f"{study.name}: the capability law needs the components of each run's backbone; "
            "give text scores, or fit the compute law"
        )
    if law == "compute-pooled" and len(study.families) < 2:
        raise InputError(f"{study.name}: pooling needs at least two families; fit the compute law")
    if law == "contrastive" and "compute" not in study.runs:
        raise InputError(f"{study.name}: the contrastive law needs the compute of each run")
    return MODEL_OF_LAW[law]


def load_loss_fit(path: str | Path) -> LossFit:
    """Load a fit that `LossFit.save` wrote; it predicts to the bit as before.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    LossFit

    Raises
    ------
    FitError
        If the file is missing, is not a fit of a loss law, or is damaged.
    """
    path = Path(path)
    draws, record = read_fit_file(path, program=LOSS_PROGRAM, version=FORMAT)
    with parsing(path, "its record is damaged"):
        study = LossStudy.from_dict(record["study"])
        notes = tuple(Note(**note) for note in record["notes"])
        return LossFit(draws, study, checked_name(record["model"]), dict(record["settings"]), notes)


def _with_logarithms(draws: xr.Dataset, model: str) -> xr.Dataset:
    """Replace the sizes of terms by their decimal logarithms."""
    sizes = ["beta"] if model == "contrastive_power" else [name for name in ("A", "B") if name in draws]
    return draws.drop_vars(sizes).assign({f"log10_{name}": np.log10(draws[name]) for name in sizes})


# --- the laws on draws ------------------------------------------------------------------------------


def law_draws(fit: LossFit, table: pd.DataFrame) -> np.ndarray:
    """Value of the law at each point under each draw.

    Parameters
    ----------
    fit : LossFit
    table : DataFrame
        As for `LossFit.predict`.

    Returns
    -------
    ndarray, shape (draw, point)

    Raises
    ------
    RequestError, NotFoundError
        As for `LossFit.predict`.
    """
    law = {"loss_capability": _capability_draws, "contrastive_power": _contrastive_draws}
    return law.get(fit.model, _compute_draws)(fit, table)


def _compute_draws(fit: LossFit, table: pd.DataFrame) -> np.ndarray:
    constant = _constants(fit, table)
    N, D = _positive(table, "params"), _positive(table, "volume")
    return compute_loss(N, D, *(constant(name) for name in ("A", "B", "E", "alpha", "beta")))


def _capability_draws(fit: LossFit, table: pd.DataFrame) -> np.ndarray:
    w, constant = _stacked(fit.posterior)["w"], _constants(fit, table)
    labels = [str(label) for label in fit.posterior["component"].to_numpy()]
    missing = [label for label in labels if label not in table]
    if missing:
        raise RequestError(f"the capability law needs the components {', '.join(labels)} of each point")
    S = w @ table[labels].to_numpy(float).T
    volume = _positive(table, "volume")
    return capability_loss(S, volume, *(constant(name) for name in ("A", "B", "E", "alpha", "beta")))


def _contrastive_draws(fit: LossFit, table: pd.DataFrame) -> np.ndarray:
    constant = _constants(fit, table)
    return contrastive_error(_positive(table, "compute"), *(constant(n) for n in ("beta", "alpha", "floor")))


def _constants(fit: LossFit, table: pd.DataFrame) -> Callable[[str], np.ndarray]:
    """Constants by name, shape (draw, point), or (draw, 1) where all families share them."""
    stacked = _stacked(fit.posterior)
    if "family" not in fit.posterior["E" if "E" in fit.posterior else "floor"].dims:
        return lambda name: stacked[name][:, None]
    families = [str(family) for family in fit.posterior["family"].to_numpy()]
    if "family" not in table:
        raise RequestError(f"this law differs by family: add a column family ({', '.join(families)})")
    for family in table["family"].unique():
        if family not in families:
            raise unknown_name("family", str(family), families)
    which = [families.index(family) for family in table["family"]]
    return lambda name: stacked[name][:, which]


def _stacked(posterior: xr.Dataset) -> dict[str, np.ndarray]:
    """Draws of every quantity with chains joined, shape (draw, …)."""
    return {str(name): values.to_numpy().reshape(-1, *values.shape[2:]) for name, values in posterior.items()}


def _positive(table: pd.DataFrame, name: str) -> np.ndarray:
    """A column of absolute counts, shape (point,)."""
    if name not in table:
        raise RequestError(f"a column '{name}' is needed, an absolute count")
    values = table[name].to_numpy(float)
    if not (values > 0).all():
        raise RequestError(f"{name} {values[~(values > 0)][0]:g} is not a positive number")
    return values
