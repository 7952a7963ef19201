"""Convergence checks: labels, limits, and that nothing unchecked passes."""

import arviz as az
import numpy as np
import pytest
import xarray as xr

from bayescdm.fit import convergence, diagnose, summarise, worst_of


def posterior(chains=4, draws=1000, seed=0):
    rng = np.random.default_rng(seed)
    shape = (chains, draws)
    return xr.Dataset(
        {
            "mu": (("chain", "draw", "coef"), rng.normal(size=(*shape, 2))),
            "rate": (("chain", "draw", "family", "coef"), rng.normal(size=(*shape, 3, 2))),
            # Its standard deviation is not 0 by rounding.
            "fixed": (("chain", "draw"), np.full(shape, 0.7)),
        },
        {"coef": ["A", "B0"], "family": ["a", "b", "c"]},
    )


def stats(draws, divergences=0):
    diverging = np.zeros((draws.sizes["chain"], draws.sizes["draw"]), bool)
    diverging.flat[:divergences] = True
    return xr.Dataset({"diverging": (("chain", "draw"), diverging)})


def test_each_label_names_the_cell_whose_draws_were_checked():
    draws = posterior()
    draws["rate"][0, :, 1, 0] += 5
    checks = convergence(draws)
    assert checks["r_hat"].idxmax() == "rate[b, A]"
    alone = az.rhat(draws["rate"].sel(family="b", coef="A").to_dataset(name="x"))["x"]
    assert checks.loc["rate[b, A]", "r_hat"] == pytest.approx(float(alone))
    assert worst_of(checks, stats(draws)).worst["r_hat"] == "rate[b, A]"


def test_good_draws_converge_and_constants_are_passed_over():
    draws = posterior()
    checks = convergence(draws)
    assert checks.loc["fixed"].isna().all()
    assert worst_of(checks, stats(draws)).converged


def test_one_divergence_is_one_too_many():
    draws = posterior()
    diagnosis = diagnose(draws, stats(draws, divergences=1))
    assert not diagnosis.converged
    assert diagnosis.divergences == 1


@pytest.mark.parametrize("broken", [np.nan, np.inf])
def test_what_cannot_be_checked_does_not_pass(broken):
    draws = posterior()
    draws["mu"][0, 0, 0] = broken
    assert not diagnose(draws, stats(draws)).converged


def test_one_chain_alone_does_not_pass():
    draws = posterior(chains=1)
    assert not diagnose(draws, stats(draws)).converged


def test_summary_holds_the_checks_of_its_own_rows():
    draws = posterior()
    checks = convergence(draws)
    table = summarise(draws[["rate"]], None, prob=0.5, checks=checks)
    assert list(table.columns) == [
        "mean",
        "sd",
        "posterior_50_lower",
        "posterior_50_upper",
        "ess_bulk",
        "ess_tail",
        "r_hat",
    ]
    assert table.loc["rate[c, B0]", "mean"] == pytest.approx(float(draws["rate"][..., 2, 1].mean()))
    assert table["r_hat"].equals(checks.loc[table.index, "r_hat"])
