"""From small models to the largest: transfer at one volume, trajectories, and what Bm·S is worth there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from bayescdm.compare.tables import interval
from bayescdm.errors import RequestError
from bayescdm.intervals import check_probability, interval_columns
from bayescdm.paper.fitting import held_out, law_error, law_of_runs
from bayescdm.predict import LawDraws
from bayescdm.study import Study
from bayescdm.validate.predictive import run_predictive
from bayescdm.wording import counted

if TYPE_CHECKING:
    from bayescdm.fit import Fit
    from bayescdm.sampling import SamplerSettings

__all__ = [
    "LARGE",
    "TRANSFER_VOLUME",
    "compare_decay",
    "refit_without_large",
    "trajectory_errors",
    "transfer_at_volume",
]

#: The paper predicts its 72B models from all others.
LARGE = 40e9
#: Volume at which the paper fixes D, in tokens.
TRANSFER_VOLUME = 12.5e9
#: Largest number of parameters of what Table 1 of the paper calls "up to 8B", whose sizes are rounded.
SMALL = 8.5e9
#: Subject of the fitted runs of such models.
UP_TO_8B = "fitted, up to 8B"


def refit_without_large(
    study: Study,
    *,
    model: str | Path = "transfer_pooled",
    cut: float = LARGE,
    components: int | None = None,
    seed: int = 1,
    settings: SamplerSettings | None = None,
) -> Fit:
    """Fit a model without the runs, and without the text scores, of the largest backbones.

    Parameters
    ----------
    study : Study
    model : str or Path
        The paper's law by default.
    cut : float
        Backbones with more parameters than this are held out.
    components : int, optional
    seed : int
    settings : SamplerSettings, optional
        By default those of exact refits.

    Returns
    -------
    Fit
        Knows the held-out runs, which have no weight in it.

    Raises
    ------
    RequestError
        No backbone with runs is larger than `cut`, or none is smaller.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.refit_without_large(cdm.simulate(seed=0))  # doctest: +SKIP
    """
    from bayescdm.modelfiles import load_model
    from bayescdm.validate.folds import make_folds
    from bayescdm.validate.refit import REFIT_SETTINGS, components_without, prepare_refits

    fold = make_folds(study, "size", cut=cut)[0]
    refitter = prepare_refits(
        study,
        load_model(model),
        components_without(study, components=components),
        settings=settings or REFIT_SETTINGS,
        seed=seed,
    )
    return refitter.refit(fold)


def transfer_at_volume(fit: Fit, *, volume: float | None = None, prob: float = 0.95) -> pd.DataFrame:
    """Predict held-out backbones at one volume, where the law is a line in capability.

    Parameters
    ----------
    fit : Fit
        From `refit_without_large`, or any fit without some backbones' runs.
    volume : float, optional
        In the study's unit; runs at the nearest volume are compared. By default the paper's 12.5B tokens,
        for studies that count tokens.
    prob : float
        Probability of the equal-tailed intervals.

    Returns
    -------
    DataFrame, one row a held-out run at that volume
        ``backbone``, ``family``, ``variant``, ``recipe``, ``volume``, ``capability`` (mean S), ``accuracy``,
        ``mean`` of the law, ``error`` (mean − accuracy), the law's and a run's interval (``law_95_lower``, …,
        ``run_95_lower``, …), ``within_run`` (1 when the run lies in it); ``line``, ``line_error`` and
        ``line_95_lower``, ``line_95_upper``: the paper's own procedure, least squares of accuracy on S with a
        band of ±z residual standard deviations, ``within_line`` (1 when the run lies in it). ``.attrs`` holds
        ``slope`` and ``slope_interval`` of the law at that volume.

    Raises
    ------
    RequestError
        No run is held out, fewer than two fitted runs are of the same recipe and volume, or no volume is
        given and the study does not count tokens.

    Notes
    -----
    P = A′·S + P0′ at fixed D (section 3.4 of arXiv 2608.00013), with A′ = A − Bm·ln(D/D_ref). The band of the
    procedure knows nothing of the uncertainty of A′; the law's interval does.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.refit_without_large(cdm.simulate(seed=0))  # doctest: +SKIP
    >>> cdm.transfer_at_volume(fit)[["backbone", "error", "within_run"]]  # doctest: +SKIP
    """
    from scipy.stats import norm

    check_probability(prob)
    runs, out = _at_volume(fit, _stated(fit.study, volume))
    law, predictive = law_of_runs(fit, runs), run_predictive(fit, runs)
    S, observed = predictive.capability.mean(1), runs["accuracy"].to_numpy(float)
    effects = _recipe_means(runs, out)
    coefficients, residual = np.polyfit(S[~out], (observed - effects)[~out], 1), 0.0
    line = np.polyval(coefficients, S) + effects
    if (~out).sum() > 2:
        residual = float(np.sqrt(((observed - line)[~out] ** 2).sum() / ((~out).sum() - 2)))
    half = float(norm.ppf((1 + prob) / 2)) * residual
    labels = fit.study.backbones.loc[runs["backbone"]]
    run_draws = predictive.draws(0)
    bounds = {**interval(law.T, "law", prob), **interval(run_draws.T, "run", prob)}
    lower, upper = (bounds[name] for name in interval_columns("run", prob))
    table = pd.DataFrame(
        {
            "backbone": runs["backbone"].to_numpy(),
            "family": labels["family"].to_numpy(),
            "variant": labels["variant"].to_numpy(),
            "recipe": runs["recipe"].to_numpy(),
            "volume": runs["volume"].to_numpy(float),
            "capability": S,
            "accuracy": observed,
            "mean": law.mean(1),
            "error": law.mean(1) - observed,
            **bounds,
            "within_run": ((lower <= observed) & (observed <= upper)).astype(int),
            "line": line,
            "line_error": line - observed,
            f"line_{100 * prob:g}_lower": line - half,
            f"line_{100 * prob:g}_upper": line + half,
            "within_line": (np.abs(line - observed) <= half).astype(int),
        }
    )
    slope = _slope(fit, float(runs["volume"].iloc[0]))
    tail = (1 - prob) / 2
    facts: dict[str, Any] = {
        "volume": float(runs["volume"].iloc[0]),
        "slope": float(slope.mean()),
        "slope_interval": [float(bound) for bound in np.quantile(slope, [tail, 1 - tail])],
        "prob": prob,
    }
    table.attrs = {**fit.facts(), **facts}
    fitted, held = table[~out].reset_index(drop=True), table[out].reset_index(drop=True)
    held.attrs = {**table.attrs, "fitted": fitted.to_dict("list")}
    return held


def trajectory_errors(fit: Fit, *, backbones: Sequence[str] | None = None, prob: float = 0.9) -> pd.DataFrame:
    """Score the predicted trajectories of held-out backbones.

    Parameters
    ----------
    fit : Fit
        From `refit_without_large`, or any fit without some backbones' runs.
    backbones : sequence of str, optional
        Only these of the held-out ones.
    prob : float
        Probability of the equal-tailed intervals.

    Returns
    -------
    DataFrame, one row a held-out backbone, and ``all``
        ``backbone``, ``runs``, ``capability``; ``mae`` of the law's posterior mean (a fraction);
        ``mae_median`` and interval of the law's error over draws; ``covered_run_90``, the share of runs in
        their own interval; ``elpd``, the sum of their log predictive densities.

    Raises
    ------
    RequestError
        No run is held out, or none of a backbone that is named.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.refit_without_large(cdm.simulate(seed=0))  # doctest: +SKIP
    >>> cdm.trajectory_errors(fit)[["backbone", "mae"]]  # doctest: +SKIP
    """
    runs = fit.study.fitted_runs[held_out(fit)]
    if runs.empty:
        raise RequestError("the fit holds no run out; use refit_without_large, or validate")
    if backbones is not None:
        absent = [name for name in backbones if name not in set(runs["backbone"])]
        if absent:
            raise RequestError(f"the fit holds no run of {', '.join(absent)} out")
        runs = runs[runs["backbone"].isin(backbones)]
    table = _errors(fit, runs, prob)
    table.attrs = {**fit.facts(), "kind": "law", "prob": prob}
    return table


def compare_decay(fits: Mapping[str, Fit], *, prob: float = 0.9) -> pd.DataFrame:
    """Compare laws with and without the decay Bm·S, in the range that was fitted and beyond it.

    Parameters
    ----------
    fits : mapping of str to Fit
        Name of the law → its fit without the same backbones; the first is what others are compared with.
    prob : float
        Probability of the equal-tailed intervals.

    Returns
    -------
    DataFrame, one row a law and subject
        ``law``, ``subject`` (``fitted``; ``fitted, up to 8B``, the population of the paper's Table 1, where
        such models were fitted; ``held out``, and each held-out backbone), ``backbones``, ``runs``,
        ``S_min`` and ``S_max`` (posterior means), ``mae`` of the posterior mean, ``mae_median`` and interval
        of the law's error over draws, ``elpd``
        (held-out runs: exact; fitted runs: PSIS-LOO, which flatters), ``elpd_difference`` from the first
        law and its standard error over runs, ``mae_difference``.

    Raises
    ------
    RequestError
        A fit holds no run out, or they hold out different ones.

    Notes
    -----
    Table 1 of arXiv 2608.00013.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> study = cdm.simulate(seed=0)
    >>> laws = {"with Bm": "transfer_pooled", "without Bm": "transfer_no_decay"}
    >>> fits = {k: cdm.refit_without_large(study, model=v) for k, v in laws.items()}  # doctest: +SKIP
    >>> cdm.compare_decay(fits)  # doctest: +SKIP
    """
    masks = [held_out(fit) for fit in fits.values()]
    if not all(mask.any() and np.array_equal(mask, masks[0]) for mask in masks):
        raise RequestError("the fits must hold out the same runs, and some; use refit_without_large for each")
    parts, densities = [], {}
    for law, fit in fits.items():
        runs, out = fit.study.fitted_runs, held_out(fit)
        observed, law_draws = runs["accuracy"].to_numpy(float), LawDraws.of(fit)
        expected = law_of_runs(fit, runs)
        capability = law_draws["S"].mean(0)[law_draws.positions("backbone", runs["backbone"])]
        log_density = run_predictive(fit, runs).log_density(observed)
        pointwise = np.where(out, _pointwise(log_density), np.nan)
        pointwise[~out] = _loo(fit, log_density[~out])
        densities[law] = pointwise
        small = fit.study.backbones["params"].reindex(runs["backbone"]).to_numpy(float) <= SMALL
        for subject, rows in _subjects(runs, out, small).items():
            first = densities[next(iter(fits))][rows]
            difference = pointwise[rows] - first
            parts.append(
                {
                    "law": law,
                    "subject": subject,
                    "backbones": int(runs["backbone"][rows].nunique()),
                    "runs": int(rows.sum()),
                    "S_min": float(capability[rows].min()),
                    "S_max": float(capability[rows].max()),
                    **law_error(expected[rows], observed[rows], prob),
                    "elpd": float(pointwise[rows].sum()),
                    "elpd_difference": float(difference.sum()),
                    "elpd_difference_se": float(np.sqrt(len(difference)) * difference.std()),
                }
            )
    table = pd.DataFrame(parts)
    first_mae = table.groupby("subject")["mae"].transform("first")
    table = table.assign(mae_difference=table["mae"] - first_mae)
    facts = [fit.facts() for fit in fits.values()]
    table.attrs = {
        **facts[0],
        "model": ", ".join(fact["model"] for fact in facts),
        "converged": int(all(fact["converged"] for fact in facts)),
        "kind": "law",
        "prob": prob,
    }
    return table


def _stated(study: Study, volume: float | None) -> float:
    """Volume asked for, or the paper's where that is in the study's unit."""
    if volume is None and study.volume_unit != "tokens":
        raise RequestError(
            f"the paper fixes D at {TRANSFER_VOLUME / 1e9:g}B tokens, and this study counts "
            f"{study.volume_unit}: state a volume"
        )
    stated = TRANSFER_VOLUME if volume is None else float(volume)
    if not 0 < stated < np.inf:
        raise RequestError(f"volume {stated:g} is not a positive number")
    return stated


def _at_volume(fit: Fit, volume: float) -> tuple[pd.DataFrame, np.ndarray]:
    """Runs at the volume nearest to the one asked for, and which of them are held out."""
    runs, out = fit.study.fitted_runs, held_out(fit)
    candidates = runs[out & runs["volume"].notna().to_numpy()]
    if candidates.empty:
        raise RequestError("the fit holds no run of known volume out; use refit_without_large, or validate")
    volumes = candidates["volume"].to_numpy(float)
    nearest = volumes[np.abs(np.log(volumes / volume)).argmin()]
    at = np.isclose(runs["volume"].to_numpy(float), nearest)
    recipes = runs["recipe"].isin(runs["recipe"][at & out]).to_numpy()
    if (at & recipes & ~out).sum() < 2:
        names = ", ".join(f"'{name}'" for name in runs["recipe"][at & out].unique())
        many = counted(int((at & recipes & ~out).sum()), "fitted run")
        raise RequestError(
            f"{many} at {nearest:g} {fit.study.volume_unit} under {names}, the recipe of what is held out: "
            "a line needs two"
        )
    return runs[at & recipes], out[at & recipes]


def _recipe_means(runs: pd.DataFrame, out: np.ndarray) -> np.ndarray:
    """Mean accuracy of each run's recipe among the fitted runs, as a deviation from their mean."""
    fitted = runs[~out]
    means = fitted.groupby("recipe")["accuracy"].mean() - fitted["accuracy"].mean()
    return runs["recipe"].map(means).fillna(0.0).to_numpy(float)


def _slope(fit: Fit, volume: float) -> np.ndarray:
    """Slope of accuracy on S at a volume, mean over the cells of families and variants, (sample,)."""
    law = LawDraws.of(fit)
    log_volume = np.log(volume / float(fit.study.volume_ref or 1.0))
    return (law["A"] - law["Bm"] * log_volume).mean(axis=(1, 2))


def _errors(fit: Fit, runs: pd.DataFrame, prob: float) -> pd.DataFrame:
    """Errors of the law by backbone, the last row over all runs."""
    observed = runs["accuracy"].to_numpy(float)
    law, predictive = law_of_runs(fit, runs), run_predictive(fit, runs)
    lower, upper = interval(predictive.draws(0).T, "run", prob).values()
    covered = (lower <= observed) & (observed <= upper)
    log_density = _pointwise(predictive.log_density(observed))
    rows = []
    for backbone in [*runs["backbone"].unique(), "all"]:
        own = np.full(len(runs), True) if backbone == "all" else (runs["backbone"] == backbone).to_numpy()
        rows.append(
            {
                "backbone": backbone,
                "runs": int(own.sum()),
                "capability": float(predictive.capability[own].mean()),
                **law_error(law[own], observed[own], prob),
                f"covered_run_{100 * prob:g}": float(covered[own].mean()),
                "elpd": float(log_density[own].sum()),
            }
        )
    return pd.DataFrame(rows)


def _pointwise(log_density: np.ndarray) -> np.ndarray:
    """Log of the mean density over draws, (run,)."""
    return logsumexp(log_density, axis=1) - np.log(log_density.shape[1])


def _loo(fit: Fit, log_density: np.ndarray) -> np.ndarray:
    """PSIS leave-one-out log densities of fitted runs, (run,)."""
    import warnings

    import arviz as az
    import xarray as xr

    chains, draws = (fit.posterior.sizes[dim] for dim in ("chain", "draw"))
    values = log_density.T.reshape(chains, draws, -1)
    tree = xr.DataTree.from_dict(
        {
            "posterior": fit.posterior[["sigma"]],
            "log_likelihood": xr.Dataset({"accuracy": (("chain", "draw", "run"), values)}),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the table says that PSIS flatters, whatever k is
        return np.asarray(az.loo(tree, pointwise=True).elpd_i).ravel()


def _subjects(runs: pd.DataFrame, out: np.ndarray, small: np.ndarray) -> dict[str, np.ndarray]:
    """Rows of each subject: what was fitted, the small models of it, what was held out, and its backbones."""
    names = runs["backbone"].to_numpy()
    of_table_1 = {UP_TO_8B: ~out & small} if (~out & small).any() else {}
    return {
        "fitted": ~out,
        **of_table_1,
        "held out": out,
        **{str(n): out & (names == n) for n in pd.unique(names[out])},
    }
