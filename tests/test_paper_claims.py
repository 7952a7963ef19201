"""Both directions: a claim that holds in a simulation is found, one that does not hold is refuted."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

import bayescdm as cdm
from bayescdm.capability import fit_capability
from bayescdm.datasets import paper_table
from bayescdm.fit import Fit, constant_data
from bayescdm.modelfiles import load_model
from bayescdm.modeling import model_data
from bayescdm.sampling import SamplerSettings, compile_model
from bayescdm.simulate import RatePopulation, simulate_from

SETTINGS = SamplerSettings(draws=800, tune=700, chains=4, target_accept=0.95)
SHAPE = {
    "n_families": 4, "backbones_per_cell": 3, "volumes": (2.5e9, 1e10, 5e10), "tau": 0.004, "sigma": 0.003,
}  # fmt: skip
#: Two benchmarks whose regime is exchanged where the paper's claims do not hold.
TURNED = ("dyck_languages_hard", "boolean_expressions_hard")


def rates(sign):
    """Contrasts of section 4.2, strong enough to be seen in 24 backbones, or their contraries."""
    return {
        "A": RatePopulation(0.25, 0.1, sign * 0.35, 0.02),
        "B0": RatePopulation(0.016, 0.1, -sign * 0.2, 0.02),
        "Bm": RatePopulation(0.02, 0.1, sign * 0.7, 0.02),
    }


def coefficients(*, turned):
    published = paper_table("transfer_coefficients").set_index("benchmark")["lambda"]
    return published.where(~published.index.isin(TURNED) | (not turned), -published)


def compiled_fit(model, study, compiled=None, held_out=None):
    """The fit of a study of this shape, and the compiled model, which other studies of the shape share."""
    capability = fit_capability(study, components=3)
    data = model_data(study, capability)
    compiled = compiled or compile_model(load_model(model).build, data)
    weight = np.ones(len(data.accuracy)) if held_out is None else np.where(held_out, 0.0, 1.0)
    compiled = compiled.refit(
        components=data.components, log_volume=data.log_volume, accuracy=data.accuracy, weight=weight
    )
    tree = compiled.sample(seed=1, settings=SETTINGS)
    tree["constant_data"] = xr.DataTree(constant_data(compiled.data))
    return Fit(tree, study, capability, model), compiled


@pytest.fixture(scope="module")
def directions():
    """A study in which the paper's claims hold and one in which they do not, fitted by one compiled model."""
    holds = simulate_from(11, **SHAPE, rates=rates(1), coefficients=coefficients(turned=False))
    S = np.random.default_rng(5).permutation(np.linspace(-0.4, 0.4, 24))
    fails = simulate_from(12, **SHAPE, rates=rates(-1), coefficients=coefficients(turned=True), S=S)
    first, compiled = compiled_fit("transfer_hierarchical", holds)
    second, _ = compiled_fit("transfer_hierarchical", fails, compiled)
    return first, second


def test_fits_of_both_directions_can_be_trusted(directions):
    for fit in directions:
        assert fit.diagnose().max_r_hat < 1.03
        assert fit.diagnose().divergences < 10


def test_claims_on_base_and_instruct_are_found_where_they_hold_and_refuted_where_not(directions):
    holds, fails = map(cdm.variant_claims, directions)
    assert holds["holds"].eq(1).all()
    assert (holds["p_claim"] > 0.9).all(), holds[["claim", "p_claim"]]
    assert fails["holds"].eq(0).all()
    assert (fails["p_claim"] < 0.1).all(), fails[["claim", "p_claim"]]


def test_base_overtakes_only_where_it_does(directions):
    high, low = (cdm.overtaking_volume(fit, capabilities=[0.3]).iloc[0] for fit in directions)
    assert high["p_gains"] > 0.9
    assert high["p_ahead_at_smallest"] < 0.1
    assert low["p_gains"] < 0.1
    holds, fails = (cdm.overtaking_volume(fit, capabilities=[0.015]).iloc[0] for fit in directions)
    assert holds["p_overtakes"] > 0.5
    assert holds["true_ahead_at_smallest"] == 0
    assert holds["true_ahead_at_largest"] == 1
    assert holds["posterior_90_lower"] < holds["true_volume"] < holds["posterior_90_upper"]
    assert fails["p_overtakes"] < 0.1
    assert np.isnan(fails["true_volume"])


def test_taxes_are_found_where_they_are_and_published_claims_refuted_where_they_fail(directions):
    holds, fails = (cdm.coefficient_claims(fit).set_index("benchmark") for fit in directions)
    assert holds.loc[list(TURNED), "holds"].eq(1).all()
    assert (holds.loc[list(TURNED), "verdict"] == "survives").all()
    assert fails.loc[list(TURNED), "holds"].eq(0).all()
    assert (fails.loc[list(TURNED), "verdict"] == "refuted").all()
    large = fails.drop(list(TURNED)).query("abs(published) > 0.04")
    assert (large["verdict"] == "survives").all()


def test_capability_follows_compute_only_where_it_does(directions):
    holds, fails = (cdm.capability_on_compute(fit).set_index("family").iloc[-1] for fit in directions)
    assert holds["posterior_90_lower"] > 0.15
    assert holds["explained"] > 0.8
    assert fails["posterior_90_lower"] < 0.1
    assert fails["explained"] < 0.6


@pytest.fixture(scope="module")
def decays():
    """Law with and without Bm·S, fitted without the largest models, where Bm is large and where it is 0."""
    found = {}
    compiled = {}
    for name, median in (("decay", 0.05), ("none", 0.0)):
        study = simulate_from(
            21, **SHAPE, rates={"A": RatePopulation(0.25, 0.0), "B0": RatePopulation(0.03, 0.0),
                                "Bm": RatePopulation(median, 0.0)},
        )  # fmt: skip
        params = study.backbones["params"].loc[study.runs["backbone"]].to_numpy()
        for law, model in (("with Bm", "transfer_pooled"), ("without Bm", "transfer_no_decay")):
            fit, compiled[model] = compiled_fit(model, study, compiled.get(model), params > 5e9)
            found[name, law] = fit
    return found


def test_decay_is_worth_its_place_only_where_there_is_one(decays):
    tables = {
        name: cdm.compare_decay({law: decays[name, law] for law in ("with Bm", "without Bm")})
        .query("law == 'without Bm'")
        .set_index("subject")
        for name in ("decay", "none")
    }
    for subject in ("fitted", "held out"):
        assert tables["decay"].at[subject, "elpd_difference"] < -5
        assert tables["decay"].at[subject, "mae_difference"] > 0
        assert tables["none"].at[subject, "elpd_difference"] > -2
    assert tables["decay"].at["held out", "S_min"] > tables["decay"].at["fitted", "S_min"]


def test_the_law_without_decay_recovers_its_rates(decays):
    fit = decays["none", "without Bm"]
    truth = fit.study.truth
    for rate in ("A", "B0"):
        draws = fit.posterior[f"{rate}_population"]
        low, high = draws.quantile([0.005, 0.995], ("chain", "draw")).to_numpy()
        assert low < truth[f"{rate}_population"] < high
        assert float(draws.std()) < 0.1 * float(draws.mean())
    assert float(np.abs(fit.posterior["Bm"]).max()) == 0.0
    assert float((fit.posterior["w"].mean(("chain", "draw")) * truth["w"]).sum()) > 0.97
    new = replace(fit.study, name="same").backbones.index[:1]
    assert np.isfinite(cdm.predict_draws(fit, list(new), volumes=1e10, kind="run")).all()


def test_held_out_models_lie_in_their_band_only_where_the_law_holds(decays):
    """The paper's prediction of 72B in both directions: a law of the wrong kind misses what it never saw."""
    right = cdm.trajectory_errors(decays["decay", "with Bm"]).iloc[-1]
    wrong = cdm.trajectory_errors(decays["decay", "without Bm"]).iloc[-1]
    assert right["mae"] < wrong["mae"]
    assert right["covered_run_90"] > 0.7
    table = cdm.transfer_at_volume(decays["decay", "with Bm"], volume=1e10)
    assert table["within_run"].mean() > 0.7
    low, high = table.attrs["slope_interval"]
    truth = decays["decay", "with Bm"].study.truth
    slope = truth["A_population"] - truth["Bm_population"] * np.log(1e10 / truth["volume_ref"])
    assert low < slope < high
