"""Checks see what they are for, and nothing where nothing is."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from bayescdm.fit import Fit
from bayescdm.validate.checks import check_posterior, check_prior, posterior_p_values, prior_sensitivity


def with_accuracy(fit: Fit, change) -> Fit:
    """The same draws, held against other accuracies."""
    runs = fit.study.runs.copy()
    runs["accuracy"] = np.clip(runs["accuracy"] + change(fit.study, runs), 0, 1)
    return replace(fit, study=replace(fit.study, runs=runs))


def test_residuals_of_the_true_model_show_no_pattern(simulated_fit):
    check = check_posterior(simulated_fit)
    assert check.notes == ()
    assert check.table["p_value"].between(0.01, 0.99).all()
    assert len(check.rows) == len(simulated_fit.study.fitted_runs)
    assert check.rows["residual"].abs().median() < 0.01


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ln D", lambda study, runs: 0.01 * np.log(runs["volume"] / study.volume_ref)),
        ("family", lambda study, runs: 0.03 * (runs["backbone"].map(study.backbones["family"]) == "Qwen3")),
        ("S", lambda study, runs: 0.1 * runs["backbone"].map(study.truth["S"])),
        ("largest residual", lambda study, runs: np.where(np.arange(len(runs)) == 7, -0.5, 0.0)),
    ],
)
def test_a_pattern_put_into_the_data_is_named(simulated_fit, name, change):
    check = check_posterior(with_accuracy(simulated_fit, change))
    p = check.table.set_index("check")["p_value"]
    assert p[name] < 0.01
    assert any(f"go with {name}" in note.message for note in check.notes)


def test_posterior_p_value_is_the_share_of_replications_further_off():
    rng = np.random.default_rng(0)
    observed, replicated = rng.normal(size=(5, 1000)), rng.normal(size=(5, 1000))
    table = posterior_p_values(observed, replicated, {"first": lambda e: e[0]})
    assert table["p_value"][0] == np.mean(replicated[0] >= observed[0])


def test_hardly_any_prior_accuracy_lies_outside_zero_and_one(open_vlm_fit, simulated_fit):
    for fit in (open_vlm_fit, simulated_fit):
        facts, notes = check_prior(fit)
        assert facts["below"] + facts["above"] < 0.05
        assert notes == ()


def test_a_prior_outside_the_accuracies_is_named(open_vlm_fit):
    prior = open_vlm_fit.group("prior_predictive")
    tree = xr.DataTree.from_dict({"prior_predictive": prior + 0.5})
    facts, (note,) = check_prior(replace(open_vlm_fit, draws=tree))
    accuracy = prior["accuracy"].to_numpy() + 0.5
    assert facts["above"] == pytest.approx((accuracy > 1).mean())
    assert note.code == "prior-outside-accuracies"


def test_scaling_the_prior_moves_what_the_data_leave_open(open_vlm_fit):
    """On published figures the decay's spread between families is the prior's; the direction is not."""
    table = prior_sensitivity(open_vlm_fit, ["Bm_family_scale", "P0", "w"]).set_index("quantity")
    assert list(table.index) == ["Bm_family_scale", "P0", "w[PC1]", "w[PC2]", "w[PC3]"]
    assert table.loc["Bm_family_scale", "prior"] > 0.05
    assert table.loc["Bm_family_scale", "diagnosis"] in ("prior matters", "prior decides")
    assert table.loc[["P0", "w[PC1]"], "prior"].max() < 0.05
    assert (table.loc[["P0", "w[PC1]"], "diagnosis"] == "").all()
