"""Simulation-based calibration of a model file: draw parameters and data, sample, rank the truth.

If parameters are drawn from the prior and data from the likelihood, the true parameters are one more draw
of the posterior: their ranks among its draws are uniform, whatever the model. Anything wrong with prior,
likelihood, a transform or the sampler shows in some rank.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pymc as pm
import pytensor
import pytensor.tensor as pt
import xarray as xr

from bayescdm.atomic import replacing
from bayescdm.errors import FitError, ModelError
from bayescdm.sampling import DATA_NAMES, CompiledModel, SamplerSettings, compile_model, prior_draws
from bayescdm.validate.uniformity import uniformity_p_value

__all__ = ["Calibration", "calibrate"]

#: Name of the joint log likelihood among the ranked quantities.
LOG_LIKELIHOOD = "log_likelihood"
#: Simulations between two writes of the file of finished ones.
WRITE_EVERY = 5
#: Times that a simulation is sampled anew, each time twice as long, until its draws are worth enough.
MAX_DOUBLINGS = 3

Build = Callable[[Any], pm.Model]


@dataclass(frozen=True)
class Calibration:
    """Ranks of true values among posterior draws.

    Parameters
    ----------
    model : str
    ranks : DataFrame of int, (simulation, quantity)
        0 … `draws`. Quantities that always have equal ranks stand once.
    draws : int
        Nearly independent posterior draws that each truth was ranked among.
    min_ess : Series of float, (simulation,)
        Smallest effective sample size of the ranked quantities, before thinning.
    divergences : int
        Over all simulations.
    failed : int
        Simulations that could not be sampled.
    """

    model: str
    ranks: pd.DataFrame
    draws: int
    min_ess: pd.Series
    divergences: int
    failed: int

    def table(self) -> pd.DataFrame:
        """Each quantity's p value and mean rank, smallest p value first.

        Returns
        -------
        DataFrame
            ``quantity``, ``p_value`` (of uniform ranks, its own), ``mean_rank`` (0 to 1; above ½ the truth
            is larger than the posterior says), ``spread`` (sd of ranks over that of uniform ones; above 1
            the posterior is too narrow).
        """
        scaled = (self.ranks + 0.5) / (self.draws + 1)
        uniform_sd = np.sqrt((1 - 1 / (self.draws + 1) ** 2) / 12)
        table = pd.DataFrame(
            {
                "quantity": self.ranks.columns,
                "p_value": [uniformity_p_value(self.ranks[q].to_numpy(), self.draws) for q in self.ranks],
                "mean_rank": scaled.mean().to_numpy(),
                "spread": (scaled.std(ddof=0) / uniform_sd).to_numpy(),
            }
        )
        return table.sort_values("p_value", kind="stable", ignore_index=True)

    @property
    def p_value(self) -> float:
        """P value of the whole: the smallest of all quantities, times their number (Bonferroni)."""
        table = self.table()
        return float(min(1.0, table["p_value"].min() * len(table)))

    def __str__(self) -> str:
        """Return the verdict on one line."""
        worst = self.table().iloc[0]
        return (
            f"{self.model}: {len(self.ranks)} simulations ({self.failed} failed), {self.ranks.shape[1]} "
            f"quantities, p = {self.p_value:.3g}; least uniform {worst['quantity']} (p = "
            f"{worst['p_value']:.3g}, mean rank {worst['mean_rank']:.2f}, spread {worst['spread']:.2f})"
        )


def calibrate(
    build: Build,
    data: Any,
    *,
    name: str,
    simulations: int,
    draws: int = 31,
    settings: SamplerSettings,
    seed: int = 0,
    generator: Build | None = None,
    store: str | Path | None = None,
    report: Callable[[int], None] = lambda done: None,
) -> Calibration:
    """Draw parameters and data from a model, fit the data, and rank the parameters among the draws.

    Parameters
    ----------
    build : callable
        ``build(data) -> pymc.Model`` of a model file with one observed variable.
    data : object
        What the model file takes; its observations are replaced by simulated ones.
    name : str
        What the model is called in the result.
    simulations : int
    draws : int
        L, the number of thinned draws. Sampling is repeated twice as long until the smallest effective
        sample size reaches it, at most three times.
    settings : SamplerSettings
        Of each simulation.
    seed : int
    generator : callable, optional
        Another model that draws parameters and data, for a test that must fail. Quantities that both have
        are ranked; the joint log likelihood only if it has every free variable of `build`.
    store : str or Path, optional
        JSON file of finished simulations; what stands there is not repeated.
    report : callable
        Told the number of finished simulations after each.

    Returns
    -------
    Calibration

    Raises
    ------
    ModelError
        The model has no single observed variable that is given by the data.

    Notes
    -----
    Talts et al. (2018); the joint log likelihood as a test quantity after Modrák et al. (2023), which sees
    what single parameters do not. Parameters come from `bayescdm.sampling.prior_draws`, penalties included.
    """
    model = build(data)
    observed, field = _observed(model, data)
    plan = (name, simulations, draws, seed, repr(settings), generator is None, _digest(data))
    done = _Finished.read(store, json.dumps(plan))
    if len(done.rows) == simulations:
        return _gathered(name, done.rows, draws)
    compiled = compile_model(lambda _: _with_log_likelihood(model), data)
    truths = prior_draws((generator or build)(data), simulations, seed).isel(chain=0)
    quantities = [name for name in _quantities(model) if name in truths]
    likelihood = None
    if all(rv.name in truths for rv in model.free_RVs):
        likelihood = _likelihood(model)
        quantities.append(LOG_LIKELIHOOD)
    for i in range(len(done.rows), simulations):
        truth = truths.isel(draw=i)
        swapped = compiled.refit(**{field: truth[observed].to_numpy()})
        if likelihood is not None:
            swapped.model_of_data()
            truth = truth.assign({LOG_LIKELIHOOD: likelihood(truth)})
        done.rows.append(_simulate_once(swapped, truth, quantities, draws, settings, seed + i))
        if len(done.rows) % WRITE_EVERY == 0 or len(done.rows) == simulations:
            done.write()
        report(len(done.rows))
    return _gathered(name, done.rows, draws)


def _simulate_once(
    compiled: CompiledModel,
    truth: xr.Dataset,
    quantities: list[str],
    draws: int,
    settings: SamplerSettings,
    seed: int,
) -> dict[str, Any] | None:
    """Ranks of one truth with the sampler's figures; None if the sampler cannot start or move."""
    from dataclasses import replace

    import arviz as az

    for doubling in range(MAX_DOUBLINGS + 1):
        longer = replace(settings, draws=settings.draws * 2**doubling)
        try:
            tree = compiled.sample(seed=seed, settings=longer)
        except FitError:
            return None
        posterior = tree["posterior"].to_dataset()[quantities]
        cells = _flat(posterior, ("chain", "draw"))
        varying = {q: v for q, v in cells.items() if np.ptp(v) > 0}
        if not varying:
            return None
        ess = min(float(az.ess(v, method="bulk")) for v in _distinct(varying).values())
        if ess >= draws:
            break
    total = settings.chains * longer.draws
    keep = np.linspace(0, total - 1, draws).round().astype(int)
    true_cells = _flat(truth[quantities], ())
    ranks = {q: int((v.reshape(-1)[keep] < true_cells[q]).sum()) for q, v in varying.items()}
    diverging = int(tree["sample_stats"]["diverging"].sum())
    return {"ranks": ranks, "min_ess": ess, "divergences": diverging}


def _with_log_likelihood(model: pm.Model) -> pm.Model:
    """Add the joint log likelihood as a quantity of the draws."""
    with model:
        terms = [pt.sum(pm.logp(rv, model.rvs_to_values[rv])) for rv in model.observed_RVs]
        pm.Deterministic(LOG_LIKELIHOOD, sum(terms))
    return model


def _likelihood(model: pm.Model) -> Callable[[xr.Dataset], float]:
    """Joint log likelihood of the model's present data at given parameters."""
    function = pytensor.function(
        model.free_RVs, model[LOG_LIKELIHOOD], mode="FAST_COMPILE", on_unused_input="ignore"
    )
    return lambda truth: float(function(*(truth[rv.name].to_numpy() for rv in model.free_RVs)))


def _observed(model: pm.Model, data: Any) -> tuple[str, str]:
    """Name of the observed variable, and of the field of the data that it is swapped by."""
    fields = {DATA_NAMES.get(field, field): field for field in data.SWAPPABLE}
    found = [(rv.name, fields.get(model.rvs_to_values[rv].name)) for rv in model.observed_RVs]
    if len(found) != 1 or found[0][1] is None:
        raise ModelError("calibration needs one observed variable whose values are a swappable pm.Data")
    return found[0][0], found[0][1]


def _quantities(model: pm.Model) -> list[str]:
    """Names of free variables and deterministics that mean something alone."""
    names = [variable.name for variable in (*model.free_RVs, *model.deterministics)]
    return [name for name in names if not name.endswith(("_offset", "_raw", "_shift"))]


def _flat(dataset: xr.Dataset, sample: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Every cell of every variable by name, sample dimensions first."""
    cells = {}
    for name in dataset:
        values = dataset[name].transpose(*sample, ...)
        own = values.dims[len(sample) :]
        flat = values.to_numpy().reshape(*values.shape[: len(sample)], -1)
        labels = pd.MultiIndex.from_product([values[d].to_numpy() for d in own]) if own else [()]
        for position, label in enumerate(labels):
            suffix = f"[{', '.join(map(str, label))}]" if own else ""
            cells[f"{name}{suffix}"] = flat[..., position]
    return cells


def _distinct(cells: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Cells without copies: a pooled rate stands in every family's cell."""
    seen: dict[bytes, str] = {}
    return {q: v for q, v in cells.items() if seen.setdefault(v.tobytes(), q) == q}


def _gathered(name: str, rows: list[dict[str, Any] | None], draws: int) -> Calibration:
    sampled = [row for row in rows if row is not None]
    ranks = pd.DataFrame([row["ranks"] for row in sampled]).dropna(axis=1).astype(int)
    return Calibration(
        model=name,
        ranks=ranks.loc[:, ~ranks.T.duplicated().to_numpy()],
        draws=draws,
        min_ess=pd.Series([row["min_ess"] for row in sampled]),
        divergences=sum(row["divergences"] for row in sampled),
        failed=len(rows) - len(sampled),
    )


def _digest(data: Any) -> str:
    """Hash of the arrays of a model's data."""
    digest = hashlib.sha256()
    for name, value in vars(data).items():
        if isinstance(value, np.ndarray):
            digest.update(name.encode() + np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


@dataclass
class _Finished:
    """Simulations that are done, and the file that keeps them."""

    path: Path | None
    plan: str
    rows: list[dict[str, Any] | None]

    @classmethod
    def read(cls, store: str | Path | None, plan: str) -> _Finished:
        """Read what stands in the file; nothing if it belongs to another plan."""
        path = None if store is None else Path(store)
        if path is None or not path.exists():
            return cls(path, plan, [])
        kept = json.loads(path.read_text())
        return cls(path, plan, kept["simulations"] if kept["plan"] == plan else [])

    def write(self) -> None:
        if self.path is None:
            return
        with replacing(self.path, overwrite=True) as unfinished:
            unfinished.write_text(json.dumps({"plan": self.plan, "simulations": self.rows}))
