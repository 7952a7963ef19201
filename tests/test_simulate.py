"""Simulated studies obey the law exactly but for the noise that was asked for, and carry their truth."""

import json
from functools import lru_cache

import numpy as np
import pandas as pd
import pytest

from bayescdm.capability import fit_capability
from bayescdm.datasets import load_dataset, paper_table
from bayescdm.errors import NotFoundError, RequestError
from bayescdm.laws import transfer_absorption
from bayescdm.outliers import flag_text_outliers
from bayescdm.pointfit import variable_projection
from bayescdm.simulate import DEFAULT_RATES, RatePopulation, simulate, simulate_from, true_accuracy

SEEDS = range(8)
#: One study a seed, made once; no test changes it.
paper_study = lru_cache(simulate)
NOISELESS = {"tau": 0.0, "sigma": 0.0, "text_noise": 0.0}


def values(labelled: dict) -> np.ndarray:
    """Values of a part of the truth, in the order of its labels."""
    return np.array(list(labelled.values()))


def log_rates(study) -> pd.DataFrame:
    """Log of A, B0, Bm of a simulated study, (rate, family, variant) in rows."""
    rows = [
        (rate, family, variant, np.log(value))
        for rate in ("A", "B0", "Bm")
        for family, cells in study.truth[rate].items()
        for variant, value in cells.items()
    ]
    return pd.DataFrame(rows, columns=["rate", "family", "variant", "log"])


# The law


def test_without_noise_every_run_lies_on_the_law():
    study = simulate_from(seed=3, n_recipes=2, **NOISELESS)
    truth, runs = study.truth, study.runs
    cells = study.backbones.loc[runs["backbone"], ["family", "variant"]].to_numpy()
    rates = [np.array([truth[rate][f][v] for f, v in cells]) for rate in ("A", "B0", "Bm")]
    S = runs["backbone"].map(truth["S"]).to_numpy()
    baseline = truth["P0"] + runs["recipe"].map(truth["recipe_effect"]).to_numpy()
    log_volume = np.log(runs["volume"].to_numpy(float) / study.volume_ref)
    law = transfer_absorption(S, log_volume, *rates, baseline)
    np.testing.assert_allclose(runs["accuracy"], law, atol=1e-12)


def test_without_text_noise_pca_recovers_components_and_direction():
    study = simulate(seed=1, text_noise=0.0, missing_text=0.0)
    capability = fit_capability(study)
    assert capability.scores.shape[1] == 3
    Z = pd.DataFrame(study.truth["components"]).T.loc[capability.scores.index]
    np.testing.assert_allclose(capability.scores, Z, atol=1e-10)
    np.testing.assert_allclose(capability.loadings, values(study.truth["loadings"]), atol=1e-9)
    np.testing.assert_allclose(capability.scores @ study.truth["w"], values(study.truth["S"]), atol=1e-10)


@pytest.mark.parametrize("n_components", [2, 3])
def test_without_noise_the_point_fit_returns_the_parameters(n_components):
    pooled = {rate: RatePopulation(DEFAULT_RATES[rate].median, family_scale=0.0) for rate in DEFAULT_RATES}
    study = simulate_from(seed=6, rates=pooled, n_components=n_components, **NOISELESS)
    capability = fit_capability(study, components=n_components)
    runs, truth = study.runs, study.truth
    fit = variable_projection(
        capability.scores.to_numpy(),
        capability.scores.index.get_indexer(runs["backbone"]),
        np.log(runs["volume"] / study.volume_ref).to_numpy(float),
        runs["accuracy"].to_numpy(),
        np.zeros(len(runs), dtype=int),
    )
    np.testing.assert_allclose(fit.w, truth["w"], atol=1e-8)
    found = [fit.A, fit.B0, fit.Bm, fit.P0]
    np.testing.assert_allclose(
        found, [truth["A_population"], truth["B0_population"], truth["Bm_population"], truth["P0"]], atol=1e-8
    )


@pytest.mark.parametrize("n_components", [1, 2, 3, 5])
def test_truth_is_consistent_for_any_rank(n_components):
    study = simulate_from(seed=2, n_components=n_components, n_families=4)
    truth = study.truth
    w, loadings = np.array(truth["w"]), values(truth["loadings"])
    assert np.linalg.norm(w) == pytest.approx(1)
    np.testing.assert_allclose(loadings.T @ loadings, np.eye(n_components), atol=1e-12)
    np.testing.assert_allclose(loadings @ w, values(truth["lambda"]), atol=1e-12)
    centred = study.text_scores - pd.Series(truth["mean"])
    np.testing.assert_allclose(centred @ values(truth["lambda"]), values(truth["S"]), atol=1e-12)
    S = values(truth["S"])
    assert S.mean() == pytest.approx(0, abs=1e-12)


def test_capability_uses_the_measured_scores_whatever_the_noise():
    study = simulate_from(seed=5, text_noise=0.05)
    S = (study.text_scores - study.text_scores.mean()) @ pd.Series(study.truth["lambda"])
    np.testing.assert_allclose(S, values(study.truth["S"]), atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_absorption_is_never_negative(seed):
    assert min(paper_study(seed).truth["B"].values()) >= 0
    assert min(simulate_from(seed).truth["B"].values()) >= 0


# The study of the paper


@pytest.mark.parametrize("seed", SEEDS)
def test_capability_lies_in_the_range_of_the_paper(seed):
    study = paper_study(seed)
    S = pd.Series(study.truth["S"])
    small = S[study.backbones["params"] <= 8e9]
    assert small.min() == pytest.approx(-0.369, abs=0.1)
    assert small.max() == pytest.approx(0.339, abs=0.15)
    assert S[study.backbones["params"] == 72e9].min() > 0.6


@pytest.mark.parametrize("seed", SEEDS)
def test_three_components_have_95_percent_of_the_variance(seed):
    assert fit_capability(paper_study(seed)).scores.shape[1] == 3


def test_roster_benchmarks_and_checkpoints_are_those_of_the_paper():
    study = simulate(seed=0)
    roster = paper_table("roster").set_index("backbone")
    assert study.backbones.index.equals(roster.index)
    assert study.backbones[["family", "variant"]].equals(roster[["family", "variant"]])
    assert set(study.text_scores) == set(paper_table("text_benchmarks")["benchmark"])
    assert study.runs["volume"].agg(["min", "max"]).tolist() == [2.5e9, 50e9]
    assert 12.5e9 in set(study.runs["volume"])
    assert 150 < len(study.runs) <= 170
    assert study.volume_unit == "tokens"


def test_transfer_coefficients_are_proportional_to_table_7():
    published = paper_table("transfer_coefficients").set_index("benchmark")["lambda"]
    ours = pd.Series(simulate(seed=4).truth["lambda"])[published.index]
    np.testing.assert_allclose(ours, published / np.linalg.norm(published), atol=1e-12)


def test_rates_are_drawn_around_tables_2_and_3():
    logs = pd.concat([log_rates(paper_study(seed)) for seed in range(20)])
    mean = logs.groupby(["rate", "family"])["log"].mean().unstack("rate")
    table = paper_table("rates_by_family").replace({"family": {"Llama": "Llama-3.2", "Gemma": "Gemma-2"}})
    published = np.log(table.set_index("family")[["A", "B0", "Bm"]])
    np.testing.assert_allclose(mean.loc[published.index, published.columns], published, atol=0.12)
    by_variant = logs.groupby(["rate", "variant"])["log"].mean().unstack("variant")
    table = np.log(paper_table("rates_by_variant").set_index("variant")[["A", "B0", "Bm"]])
    np.testing.assert_allclose(
        by_variant["instruct"] - by_variant["base"], table.loc["instruct"] - table.loc["base"], atol=1e-9
    )


def test_mean_error_around_the_law_is_that_of_the_paper():
    errors = []
    for seed in SEEDS:
        study = paper_study(seed)
        runs = study.runs
        law = true_accuracy(study, runs["backbone"], runs["volume"], with_backbone_effect=False)
        errors.append(np.abs(runs["accuracy"] - law).mean())
    assert np.mean(errors) == pytest.approx(0.0129, abs=0.003)


def test_simulated_scores_hold_no_broken_ones():
    assert sum(len(flag_text_outliers(paper_study(seed))) for seed in SEEDS) == 0


# Names, seeds, truth


def test_a_simulated_study_says_so_everywhere():
    for study in (simulate(seed=0), simulate_from(seed=0, name="small"), load_dataset("simulated-paper")):
        assert study.simulated
        assert "simulated" in study.name
        assert study.runs["source"].str.contains("simulated").all()
        assert study.backbones["source"].str.contains("simulated").all()
        assert any(note.code == "simulated" for note in study.notes)


def test_same_seed_same_study_and_another_seed_another():
    one, two, other = simulate(seed=7), simulate(seed=7), simulate(seed=8)
    pd.testing.assert_frame_equal(one.runs, two.runs)
    pd.testing.assert_frame_equal(one.text_scores, two.text_scores)
    assert one.truth == two.truth
    assert not np.allclose(one.truth["w"], other.truth["w"])


def test_each_part_has_its_own_random_stream():
    plain = simulate_from(seed=9)
    noisy = simulate_from(seed=9, sigma=0.02, missing_text=0.2, missing_runs=0.3)
    assert noisy.truth | {"sigma": plain.truth["sigma"]} == plain.truth
    shared = plain.runs.index.intersection(noisy.runs.index)
    assert plain.text_scores.where(noisy.text_scores.notna()).equals(noisy.text_scores)
    assert len(shared) == len(noisy.runs) < len(plain.runs)


def test_truth_survives_json():
    for study in (simulate(seed=0), simulate_from(seed=0, nu=None)):
        assert json.loads(json.dumps(study.truth, allow_nan=False)) == study.truth


def test_packaged_simulated_study_has_no_single_benchmarks():
    with pytest.raises(RequestError, match="averages only"):
        load_dataset("simulated-paper", benchmarks="GQA")


# Parameters


def test_missing_shares_are_as_asked_and_leave_every_backbone_a_score():
    study = simulate_from(seed=0, n_families=8, missing_text=0.3, missing_runs=0.2)
    assert study.text_scores.isna().to_numpy().mean() == pytest.approx(0.3, abs=0.05)
    assert len(study.runs) / (len(study.backbones) * 5) == pytest.approx(0.8, abs=0.07)
    sparse = simulate_from(seed=0, missing_text=0.99, missing_runs=0.999)
    assert len(sparse.scored) == len(sparse.backbones)
    assert len(sparse.runs) >= 1


def test_a_contrast_may_be_switched_off_or_set():
    none = {rate: RatePopulation(0.02, 0.3) for rate in ("A", "B0", "Bm")}
    logs = log_rates(simulate_from(seed=0, rates=none)).pivot(
        index=["rate", "family"], columns="variant", values="log"
    )
    np.testing.assert_allclose(logs["base"], logs["instruct"], atol=1e-12)
    reversed_ = {"A": RatePopulation(0.25, 0.1, contrast=-0.4)}
    logs = log_rates(simulate_from(seed=0, rates=reversed_)).pivot(
        index=["rate", "family"], columns="variant", values="log"
    )
    np.testing.assert_allclose(logs.loc["A", "instruct"] - logs.loc["A", "base"], -0.4, atol=1e-12)


def test_drawn_rates_have_the_moments_of_their_population():
    population = RatePopulation(0.2, family_scale=0.3, contrast=0.4, contrast_scale=0.2)
    logs = np.log(population.draw([f"F{i}" for i in range(20_000)], np.random.default_rng(0)))
    assert logs.mean() == pytest.approx(np.log(0.2), abs=0.01)
    assert logs.mean(axis=1).std() == pytest.approx(0.3, rel=0.02)
    assert (logs[:, 1] - logs[:, 0]).mean() == pytest.approx(0.4, abs=0.01)
    assert (logs[:, 1] - logs[:, 0]).std() == pytest.approx(0.2, rel=0.02)


def test_no_decay_makes_absorption_the_same_for_all_backbones_of_a_cell():
    study = simulate_from(seed=0, rates={"Bm": RatePopulation(0.0)})
    B = pd.Series(study.truth["B"])
    assert (B.groupby([study.backbones["family"], study.backbones["variant"]]).nunique() == 1).all()


def test_rates_may_be_given():
    cells = pd.MultiIndex.from_product([["F1", "F2"], ["base", "instruct"]], names=["family", "variant"])
    rates = pd.DataFrame({"A": 0.3, "B0": [0.01, 0.02, 0.01, 0.02], "Bm": 0.0}, index=cells)
    truth = simulate_from(seed=0, n_families=2, rates=rates).truth
    assert truth["A"]["F1"] == {"base": 0.3, "instruct": 0.3}
    assert truth["B0"]["F2"] == {"base": 0.01, "instruct": 0.02}
    assert "A_population" not in truth
    with pytest.raises(RequestError, match="rates of F2, instruct"):
        simulate_from(seed=0, n_families=2, rates=rates.iloc[:-1])


def test_populations_are_part_of_the_truth():
    truth = simulate_from(seed=0).truth
    assert truth["A_population"] == DEFAULT_RATES["A"].median
    assert truth["Bm_contrast"] == DEFAULT_RATES["Bm"].contrast


def test_residuals_have_the_tails_that_were_asked_for():
    normal = simulate_from(seed=0, n_families=40, tau=0, sigma=0.01, nu=None)
    heavy = simulate_from(seed=0, n_families=40, tau=0, sigma=0.01, nu=3)
    residuals = [
        study.runs["accuracy"] - true_accuracy(study, study.runs["backbone"], study.runs["volume"])
        for study in (normal, heavy)
    ]
    assert residuals[0].std() == pytest.approx(0.01, rel=0.06)
    assert residuals[0].abs().max() < 0.045 < residuals[1].abs().max()


def test_recipe_effects_sum_to_zero_and_shift_their_runs():
    study = simulate_from(seed=0, n_recipes=4, recipe_scale=0.05, **NOISELESS)
    effects = study.truth["recipe_effect"]
    assert sum(effects.values()) == pytest.approx(0, abs=1e-12)
    means = study.runs.groupby("recipe")["accuracy"].mean()
    np.testing.assert_allclose(means - means.mean(), [effects[recipe] for recipe in means.index], atol=1e-12)


def test_a_given_roster_direction_and_capability_are_kept():
    roster = pd.DataFrame(
        {"family": list("AAABBB"), "variant": ["base", "instruct", "base"] * 2, "params": 1e9},
        index=[f"m{i}" for i in range(6)],
    )
    S = np.array([-0.2, -0.1, 0.0, 0.1, 0.2, 0.3])
    study = simulate_from(seed=0, roster=roster, S=S, w=[3.0, 4.0], text_noise=0.0)
    np.testing.assert_allclose(values(study.truth["S"]), S - S.mean(), atol=1e-12)
    np.testing.assert_allclose(np.abs(study.truth["w"]), [0.6, 0.8], atol=1e-12)
    assert study.backbones["active_params"].tolist() == [1e9] * 6


def test_true_accuracy_answers_for_labels_only_of_simulated_studies():
    study = simulate_from(seed=0)
    with pytest.raises(NotFoundError, match="backbone 'nobody'"):
        true_accuracy(study, ["nobody"], 1e10)
    with pytest.raises(NotFoundError, match="recipe 'none'"):
        true_accuracy(study, study.backbones.index[:1], 1e10, ["none"])
    with pytest.raises(RequestError, match="not simulated"):
        true_accuracy(load_dataset("open-vlm"), ["microsoft/phi-2"], 1e6)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"volumes": []}, "volumes must be positive"),
        ({"volumes": [1e9, 0]}, "volumes must be positive"),
        ({"missing_text": 1.0}, "missing_text is a share"),
        ({"missing_runs": -0.1}, "missing_runs is a share"),
        ({"sigma": -1.0}, "sigma is a spread"),
        ({"nu": 0.0}, "nu must be positive"),
        ({"n_families": 1, "backbones_per_cell": 1}, "3 components need at least 5 backbones"),
        ({"n_components": 5, "n_text_benchmarks": 4}, "5 components need at least as many text benchmarks"),
        ({"rates": {"B0": RatePopulation(1e-6)}}, "negative absorption rate"),
        ({"w": [0.0, 0.0]}, "a direction needs"),
    ],
)
def test_parameters_that_leave_no_study_are_refused(parameters, message):
    with pytest.raises(RequestError, match=message):
        simulate_from(seed=0, **parameters)


def test_unknown_rates_name_the_nearest():
    with pytest.raises(NotFoundError, match="rate 'bm' is not known; did you mean 'Bm'"):
        simulate_from(seed=0, rates={"bm": RatePopulation(0.01)})


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_seeds_that_are_none_are_refused(seed):
    for make in (simulate, simulate_from):
        with pytest.raises(RequestError, match="whole number"):
            make(seed=seed)


@pytest.mark.parametrize(
    "count", ["n_families", "backbones_per_cell", "n_components", "n_text_benchmarks", "n_recipes"]
)
def test_counts_below_one_are_refused(count):
    with pytest.raises(RequestError, match=f"{count} is 0: give at least 1"):
        simulate_from(**{count: 0})


def test_what_had_to_be_put_at_the_bounds_is_noted():
    def clipped(study):
        return [note.message for note in study.notes if note.code == "clipped"]

    assert not clipped(simulate(seed=0))
    study = simulate(seed=0, sigma=0.3, missing_runs=0.0)
    at = int(study.runs["accuracy"].isin([0.0, 1.0]).sum())
    assert at > 0
    assert clipped(study) == [f"{at} accuracies beyond 0 or 1 put there: the truth has no such bounds"]
