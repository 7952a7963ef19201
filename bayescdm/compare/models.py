"""Models against each other by PSIS-LOO, with what that does and does not say."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from bayescdm.errors import FitError, RequestError
from bayescdm.wording import counted

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["METHOD", "compare_models"]

#: What the table is, to be shown with it.
METHOD = "PSIS-LOO over runs, not leave-one-family-out"


def compare_models(fits: Mapping[str, Fit]) -> pd.DataFrame:
    """Compare models of the same runs by PSIS-LOO: how well each predicts a run left out alone.

    Parameters
    ----------
    fits : mapping of str to Fit
        Two or more fits to the same runs.

    Returns
    -------
    DataFrame, one row a model, best first
        ``model``, ``elpd`` and ``elpd_se``, ``elpd_difference`` from the first row and
        ``elpd_difference_se`` (paired by run), ``p_loo``, ``runs``, ``pareto_k_bad`` (runs above
        ``pareto_k_threshold``), ``pareto_k_max``, ``converged``. ``.attrs["method"]`` says what it is;
        ``.attrs["warnings"]`` name models with bad Pareto k or without convergence.

    Raises
    ------
    RequestError
        Fewer than two fits, other runs or accuracies, or runs held out of a fit.
    FitError
        A log likelihood is not finite.

    Notes
    -----
    A run left out alone still has its backbone, family and recipe in the fit, so this flatters compared
    with predicting a new family: refit exactly for that. Vehtari, Gelman and Gabry (2017); threshold
    min(1 − 1/log10(draws), 0.7) of Vehtari et al. (2024).

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fits = {m: cdm.fit("open-vlm", model=m)
    ...         for m in ("transfer_hierarchical", "transfer_pooled")}  # doctest: +SKIP
    >>> cdm.compare_models(fits)  # doctest: +SKIP
    """
    _check_same_runs(fits)
    loo = {name: _loo(name, fit) for name, fit in fits.items()}
    pointwise = {name: np.asarray(result.elpd_i) for name, result in loo.items()}
    best = max(loo, key=lambda name: float(loo[name].elpd))
    rows = []
    for name, result in loo.items():
        margin = pointwise[name] - pointwise[best]
        k = np.asarray(result.pareto_k)
        rows.append(
            {
                "model": name,
                "elpd": float(result.elpd),
                "elpd_se": float(result.se),
                "elpd_difference": float(margin.sum()),
                "elpd_difference_se": float(np.sqrt(len(margin) * margin.var())),
                "p_loo": float(result.p),
                "runs": len(margin),
                "pareto_k_bad": int((k > result.good_k).sum()),
                "pareto_k_max": float(k.max()),
                "pareto_k_threshold": float(result.good_k),
                "converged": int(fits[name].diagnose().converged),
            }
        )
    table = pd.DataFrame(rows).sort_values("elpd", ascending=False, kind="stable", ignore_index=True)
    table.attrs = {"method": METHOD, "warnings": [*_warnings(table, fits)]}
    return table


def _check_same_runs(fits: Mapping[str, Fit]) -> None:
    """Only likelihoods of the same data can be compared; equal numbers of rows are not enough."""
    if len(fits) < 2:
        raise RequestError(f"{len(fits)} fit given; a comparison needs at least two")
    (first, reference), *others = ((name, _observed(name, fit)) for name, fit in fits.items())
    for name, observed in others:
        if set(observed.index) != set(reference.index):
            odd = sorted(set(observed.index) ^ set(reference.index))
            raise RequestError(
                f"'{first}' and '{name}' were not fitted to the same runs: {len(odd)} differ, e.g. '{odd[0]}'"
            )
        if not observed.index.equals(reference.index):
            raise RequestError(f"'{first}' and '{name}' have the same runs in another order; fit one study")
        changed = observed.index[observed.to_numpy() != reference.to_numpy()]
        if len(changed):
            raise RequestError(
                f"'{first}' and '{name}' differ in the accuracy of {counted(len(changed), 'run')}, e.g. "
                f"'{changed[0]}'"
            )


def _observed(name: str, fit: Fit) -> pd.Series:
    """Accuracies by run label."""
    if (fit.group("constant_data")["weight"].to_numpy() != 1).any():
        raise RequestError(f"'{name}' was fitted with runs held out or weighted; compare fits to all runs")
    accuracy = fit.group("observed_data")["accuracy"]
    return pd.Series(accuracy.to_numpy(), index=pd.Index(accuracy["run"].to_numpy().astype(str)))


def _loo(name: str, fit: Fit) -> Any:
    import arviz as az

    likelihood = fit.group("log_likelihood")["accuracy"]
    finite = np.isfinite(likelihood.transpose("run", ...).to_numpy()).all(axis=(1, 2))
    if not finite.all():
        # PSIS would answer NaN without a word.
        run = str(likelihood["run"].to_numpy()[~finite][0])
        raise FitError(f"'{name}': the log likelihood of run '{run}' is not finite")
    with warnings.catch_warnings():
        # The table counts what this says in words.
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto")
        return az.loo(fit.draws, pointwise=True, var_name="accuracy")


def _warnings(table: pd.DataFrame, fits: Mapping[str, Fit]) -> list[str]:
    bad = [
        f"warning [pareto-k] {row.model}: {row.pareto_k_bad} of {row.runs} runs have Pareto k above "
        f"{row.pareto_k_threshold:.2f}; their elpd is unreliable"
        for row in table.itertuples()
        if row.pareto_k_bad
    ]
    return bad + [f"{note} ({name})" for name, fit in fits.items() for note in fit.diagnose().notes]
