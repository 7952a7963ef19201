"""Checks of a fit against its own data and its priors: predictive checks and sensitivity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from bayescdm.errors import Note
from bayescdm.modelfiles import load_model
from bayescdm.modeling import model_data
from bayescdm.seeds import generator
from bayescdm.validate.predictive import run_predictive

if TYPE_CHECKING:
    from pathlib import Path

    from bayescdm.fit import Fit

__all__ = [
    "PosteriorCheck",
    "check_posterior",
    "check_prior",
    "posterior_p_values",
    "prior_sensitivity",
]

#: Posterior predictive p values below this call for a look at the residuals.
SUSPICIOUS = 0.01
#: Share of prior predictive accuracies outside [0, 1] that is still none to speak of.
OUTSIDE = 0.05
#: Sensitivity above this means that scaling the prior moves the posterior (Kallioinen et al. 2024).
SENSITIVE = 0.05


@dataclass(frozen=True)
class PosteriorCheck:
    """How the runs that a fit has seen lie in its predictions of them.

    Parameters
    ----------
    rows : DataFrame, one row a run
        ``run``, ``backbone``, ``family``, ``variant``, ``recipe``, ``capability`` (posterior mean of S),
        ``log_volume`` (ln D/D_ref, NaN where unknown), ``accuracy``, ``predicted`` (posterior mean),
        ``residual`` (accuracy minus predicted), ``pit``, ``z`` (the residual on the Normal scale).
    table : DataFrame, one row a check
        ``check``, ``observed`` and ``replicated`` (posterior means of the discrepancy), ``p_value`` (share
        of draws in which replicated data are at least as far off).
    notes : tuple of Note
        ``residual-pattern`` for checks that no more than one in a hundred replications would fail so badly.
    """

    rows: pd.DataFrame
    table: pd.DataFrame
    notes: tuple[Note, ...]


def check_posterior(fit: Fit, *, seed: int = 0) -> PosteriorCheck:
    """Compare the residuals of a fit's runs with those of data replicated from the fit.

    Parameters
    ----------
    fit : Fit
    seed : int

    Returns
    -------
    PosteriorCheck

    Notes
    -----
    Realised discrepancies of Gelman, Meng and Stern (1996), of residuals scaled by their own scale in each
    draw: their correlation with S and with ln D, the spread of their means over recipes and over families,
    their largest size, and their skewness. The runs were used in the fit, so p values lean towards ½ and a
    small one weighs all the more; what is predicted without a run is judged by `bayescdm.validate`.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> check_posterior(cdm.fit("open-vlm")).table  # doctest: +SKIP
    """
    runs = fit.study.fitted_runs
    labels = fit.study.backbones.loc[runs["backbone"]]
    predictive = run_predictive(fit, runs)
    observed = runs["accuracy"].to_numpy(float)
    scaled = (observed[:, None] - predictive.expected) / predictive.scale
    rng = generator(seed)
    nu, shape = predictive.nu, scaled.shape
    replicated = rng.standard_normal(shape) if nu is None else rng.standard_t(nu, shape)
    log_volume = np.log(runs["volume"].to_numpy(float) / float(fit.study.volume_ref or 1.0))
    capability = predictive.capability.mean(axis=1)
    discrepancies = {
        "S": _slope(capability),
        "ln D": _slope(log_volume),
        "recipe": _between(runs["recipe"].to_numpy()),
        "family": _between(labels["family"].to_numpy()),
        "largest residual": lambda e: np.abs(e).max(axis=0),
        "skewness": lambda e: np.abs(np.tanh(e).mean(axis=0)),
    }
    pit = predictive.pit(observed)
    predicted = predictive.expected.mean(axis=1)
    rows = pd.DataFrame(
        {
            "run": runs.index.astype(str),
            "backbone": runs["backbone"].to_numpy(),
            "family": labels["family"].to_numpy(),
            "variant": labels["variant"].to_numpy(),
            "recipe": runs["recipe"].to_numpy(),
            "capability": capability,
            "log_volume": log_volume,
            "accuracy": observed,
            "predicted": predicted,
            "residual": observed - predicted,
            "pit": pit,
            "z": norm.ppf(np.clip(pit, 1e-6, 1 - 1e-6)),
        }
    )
    table = posterior_p_values(scaled, replicated, discrepancies)
    notes = [
        Note("residual-pattern", f"residuals go with {c.check}: posterior predictive p = {c.p_value:.3f}",
             "warning", "runs")
        for c in table.itertuples()
        if c.p_value < SUSPICIOUS
    ]  # fmt: skip
    return PosteriorCheck(rows, table, tuple(notes))


Discrepancy = Callable[[np.ndarray], np.ndarray]


def posterior_p_values(
    observed: np.ndarray, replicated: np.ndarray, discrepancies: dict[str, Discrepancy]
) -> pd.DataFrame:
    """Posterior predictive p values of discrepancies of scaled residuals.

    Parameters
    ----------
    observed, replicated : ndarray, (run, sample)
        Scaled residuals of the data, and of data drawn anew in each draw.
    discrepancies : dict of str to callable
        ``(run, sample) -> (sample,)``, larger when further off.

    Returns
    -------
    DataFrame
        As `PosteriorCheck.table`.
    """
    rows = []
    for name, discrepancy in discrepancies.items():
        of_data, of_replicas = discrepancy(observed), discrepancy(replicated)
        rows.append(
            {
                "check": name,
                "observed": float(of_data.mean()),
                "replicated": float(of_replicas.mean()),
                "p_value": float((of_replicas >= of_data).mean()),
            }
        )
    return pd.DataFrame(rows)


def _slope(predictor: np.ndarray) -> Discrepancy:
    """|Correlation| of residuals with a predictor over the runs where it is known; 0 where it is constant."""
    known = np.isfinite(predictor)
    x = predictor[known]
    varies = len(np.unique(x)) > 1
    x = x - x.mean() if varies else x

    def discrepancy(e: np.ndarray) -> np.ndarray:
        if not varies:
            return np.zeros(e.shape[1])
        # Heavy tails would let one run decide: residuals are bounded first.
        bounded = np.tanh(e[known] / 2)
        centred = bounded - bounded.mean(axis=0)
        return np.abs(x @ centred) / (np.linalg.norm(x) * np.linalg.norm(centred, axis=0))

    return discrepancy


def _between(groups: np.ndarray) -> Discrepancy:
    """Sum over groups of n times the squared mean of their residuals."""
    membership = pd.get_dummies(pd.Series(groups)).to_numpy(float)

    def discrepancy(e: np.ndarray) -> np.ndarray:
        sums = membership.T @ np.tanh(e / 2)
        return (sums**2 / membership.sum(axis=0)[:, None]).sum(axis=0)

    return discrepancy


def check_prior(fit: Fit) -> tuple[dict[str, Any], tuple[Note, ...]]:
    """Share of accuracies that the prior puts outside [0, 1].

    Parameters
    ----------
    fit : Fit
        With group ``prior_predictive``.

    Returns
    -------
    facts : dict
        ``below`` and ``above`` (shares over all runs), ``worst_run`` and its share ``worst``, ``lower`` and
        ``upper`` (bounds of 95 % of prior accuracies), ``draws``.
    notes : tuple of Note
        ``prior-outside-accuracies`` when more than 5 % lie outside.
    """
    accuracy = fit.group("prior_predictive")["accuracy"].stack(sample=("chain", "draw"))
    values = accuracy.transpose("run", "sample").to_numpy()
    outside = ((values < 0) | (values > 1)).mean(axis=1)
    lower, upper = np.quantile(values, [0.025, 0.975])
    facts = {
        "below": float((values < 0).mean()),
        "above": float((values > 1).mean()),
        "worst_run": str(accuracy["run"].to_numpy()[outside.argmax()]),
        "worst": float(outside.max()),
        "lower": float(lower),
        "upper": float(upper),
        "draws": values.shape[1],
    }
    total = facts["below"] + facts["above"]
    if total <= OUTSIDE:
        return facts, ()
    message = f"the prior puts {total:.0%} of accuracies outside [0, 1], more than {OUTSIDE:.0%}"
    return facts, (Note("prior-outside-accuracies", message, "warning", "prior"),)


def prior_sensitivity(
    fit: Fit, variables: list[str] | None = None, *, model: str | Path | None = None
) -> pd.DataFrame:
    """How far each quantity moves when prior or likelihood are made a little stronger or weaker.

    Parameters
    ----------
    fit : Fit
        With group ``log_likelihood``.
    variables : list of str, optional
        Quantities of the posterior; by default those without labels of families, backbones or recipes.
    model : str or Path, optional
        The model file, when the fit was made with one of your own.

    Returns
    -------
    DataFrame, one row a scalar
        ``quantity``, ``prior`` and ``likelihood`` (sensitivities), ``diagnosis``: ``"prior matters"``
        when both exceed 0.05, ``"prior decides"`` when only the prior's does, ``""`` otherwise.

    Notes
    -----
    Power-scaling by importance sampling (Kallioinen et al. 2024), without refits. The priors of population
    quantities are scaled, not the distributions of families, backbones and recipes, which are part of the
    model rather than of what is assumed beforehand.
    """
    import arviz as az
    import pymc as pm
    import xarray as xr

    compiled = load_model(model or fit.model).build(model_data(fit.study, fit.capability))
    top = [rv.name for rv in compiled.free_RVs if _is_population(compiled, rv.name)]
    with compiled:
        log_prior = pm.stats.compute_log_prior(
            fit.draws, var_names=top, extend_inferencedata=False, progressbar=False
        )
    tree = xr.DataTree.from_dict(
        {name: fit.group(name) for name in ("posterior", "log_likelihood")} | {"log_prior": log_prior}
    )
    posterior = fit.posterior
    chosen = variables or [
        str(name)
        for name in posterior
        if set(posterior[name].dims) <= {"chain", "draw", "component"} and not str(name).endswith("_raw")
    ]
    rows = []
    for name in chosen:
        by_group = {g: az.psense(tree, var_names=[name], group=g)[name] for g in ("prior", "likelihood")}
        for label, prior, likelihood in _scalars(by_group["prior"], by_group["likelihood"]):
            moved = (prior > SENSITIVE, likelihood > SENSITIVE)
            diagnosis = {(True, True): "prior matters", (True, False): "prior decides"}.get(moved, "")
            rows.append(
                {
                    "quantity": f"{name}{label}",
                    "prior": prior,
                    "likelihood": likelihood,
                    "diagnosis": diagnosis,
                }
            )
    return pd.DataFrame(rows, columns=["quantity", "prior", "likelihood", "diagnosis"])


def _is_population(model: Any, name: str) -> bool:
    """Whether a free variable is no deviation of a family, backbone or recipe."""
    dims = model.named_vars_to_dims.get(name) or ()
    return not set(dims) & {"family", "backbone", "backbone_incomplete", "recipe", "recipe_unknown_volume"}


def _scalars(prior: Any, likelihood: Any) -> list[tuple[str, float, float]]:
    """Each cell with its own label."""
    if not prior.dims:
        return [("", float(prior), float(likelihood))]
    (dim,) = prior.dims
    return [
        (f"[{label}]", float(prior.sel({dim: label})), float(likelihood.sel({dim: label})))
        for label in prior[dim].to_numpy()
    ]
