"""Comparisons are statements about pairs of draws."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

from bayescdm.compare import (
    compare_families,
    compare_models,
    compare_variants,
    difference,
    family_draws,
    pairwise_probability,
    rank_backbones,
    transfer_coefficients,
)
from bayescdm.errors import FitError, ModelError, NotFoundError, RequestError
from bayescdm.predict import predict_draws


def flat(fit, name, **labels):
    """Draws of a quantity, chain after chain."""
    return fit.posterior[name].sel(**labels).to_numpy().reshape(fit.posterior.sizes["chain"] * 200, -1)


def three(values):
    """Draws of three labels."""
    return xr.DataArray(
        np.asarray(values, float), dims=("sample", "backbone"), coords={"backbone": list("abc")}
    )


# --- pairs ------------------------------------------------------------------------------------------


def test_pairwise_probability_counts_draws_and_halves_ties():
    table = pairwise_probability(three([[1, 0, 1], [1, 2, 1], [3, 2, 1], [3, 2, 1]]))
    assert table.loc["a", "b"] == 0.75
    assert table.loc["a", "c"] == 0.75
    np.testing.assert_allclose(table + table.T, 1)
    assert (np.diag(table) == 0.5).all()


def test_differences_are_paired_by_draw():
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 10, (4000, 1))
    table = difference(three(shared + rng.normal([0, 1, 2], 0.1, (4000, 3))), "a", prob=0.9)
    assert table.loc["c", "mean"] == pytest.approx(2, abs=0.02)
    # Unpaired, the interval would be some 46 wide.
    assert table.loc["c", "posterior_90_upper"] - table.loc["c", "posterior_90_lower"] < 0.6
    assert table.loc["c", "p_greater"] == 1
    assert table.loc["a", ["mean", "sd", "p_greater"]].tolist() == [0, 0, 0.5]


def test_difference_takes_kind_from_predictions_and_names_unknown_references(known_fit):
    draws = predict_draws(known_fit(), ["f-base", "n-base"], volumes=1e6, kind="run")
    assert "run_80_lower" in difference(draws, "f-base", prob=0.8)
    with pytest.raises(NotFoundError, match="backbone 'f-bass' is not known; did you mean 'f-base'"):
        difference(draws, "f-bass")


def test_draws_of_several_volumes_are_refused(known_fit):
    draws = predict_draws(known_fit(), ["f-base", "n-base"], volumes=[1e6, 2e6], kind="run")
    with pytest.raises(RequestError, match=r"dimensions \(sample, backbone, volume\)"):
        pairwise_probability(draws)
    assert pairwise_probability(draws.sel(volume=2e6)).shape == (2, 2)


# --- ranking ----------------------------------------------------------------------------------------


def test_ranking_equals_counting_over_draws(known_fit):
    fit = known_fit()
    options = {"recipe": "wide", "seed": 4}
    table = rank_backbones(fit, volume=3e6, prob=0.8, **options).set_index("backbone")
    draws = predict_draws(fit, volumes=3e6, kind="backbone", **options).isel(volume=0)
    values = pd.DataFrame(draws.to_numpy(), columns=draws["backbone"].to_numpy())
    ranks = values.rank(axis=1, ascending=False)
    best = values.mean().idxmax()
    assert table.index[0] == best
    assert table["mean"].is_monotonic_decreasing
    for name in table.index:
        row = table.loc[name]
        assert row["p_best"] == pytest.approx((ranks[name] == 1).mean())
        assert row["p_top_3"] == pytest.approx((ranks[name] <= 3).mean())
        assert row["expected_rank"] == pytest.approx(ranks[name].mean())
        assert row["rank_backbone_80_upper"] == pytest.approx(ranks[name].quantile(0.9))
        assert row["expected_regret"] == pytest.approx((values.max(axis=1) - values[name]).mean())
        assert row["difference_mean"] == pytest.approx((values[name] - values[best]).mean())
        assert row["difference_backbone_80_lower"] == pytest.approx(
            (values[name] - values[best]).quantile(0.1)
        )
        assert row["backbone_80_lower"] == pytest.approx(values[name].quantile(0.1))


def test_probabilities_are_shared_out_and_regret_favours_the_highest_mean(known_fit):
    table = rank_backbones(known_fit(), volume=1e6)
    assert table["p_best"].sum() == pytest.approx(1)
    assert table["p_top_3"].sum() == pytest.approx(3)
    assert table["expected_rank"].sum() == pytest.approx(len(table) * (len(table) + 1) / 2)
    assert table["expected_regret"].idxmin() == 0
    assert (table["expected_regret"] >= 0).all()


def test_identical_candidates_share_their_probability(known_fit):
    fit = known_fit()
    scores = fit.study.text_scores.loc[["n-base"] * 2].set_axis(["twin 1", "twin 2"])
    labels = fit.study.backbones.loc[["n-base"] * 2].set_axis(["twin 1", "twin 2"])
    table = rank_backbones(fit, (scores, labels), volume=1e6, kind="law")
    assert table["p_best"].tolist() == [0.5, 0.5]
    assert table["expected_rank"].tolist() == [1.5, 1.5]
    assert table["expected_regret"].tolist() == [0, 0]


def test_a_backbone_is_ranked_once(known_fit):
    """Twice, its probability of being the best would be halved."""
    with pytest.raises(RequestError, match="asked for more than once: 'f-base'"):
        rank_backbones(known_fit(), ["f-base", "g-base", "f-base"], volume=1e6)


def test_ranking_runs_adds_noise_to_the_order_and_not_to_means_or_regret(known_fit):
    fit = known_fit(draws=4000)
    by_run, by_backbone = (
        rank_backbones(fit, volume=1e6, kind=kind).set_index("backbone") for kind in ("run", "backbone")
    )
    for column in ("mean", "expected_regret", "difference_mean"):
        pd.testing.assert_series_equal(by_run[column], by_backbone[column])
    width = by_run["run_90_upper"] - by_run["run_90_lower"]
    assert (width > by_backbone["backbone_90_upper"] - by_backbone["backbone_90_lower"]).all()
    assert by_run["p_best"].max() < by_backbone["p_best"].max()


def test_order_of_candidates_does_not_change_the_ranking(known_fit):
    fit = known_fit()
    names = list(fit.study.scored)
    first, second = (rank_backbones(fit, n, volume=1e6) for n in (names, names[::-1]))
    pd.testing.assert_frame_equal(first, second, rtol=1e-9)


# --- families and variants --------------------------------------------------------------------------


def test_family_draws_are_geometric_means_and_mean_absorption_of_backbones(known_fit):
    fit = known_fit()
    draws = family_draws(fit)
    A = flat(fit, "A", family="F")
    np.testing.assert_allclose(draws["A"].sel(family="F"), np.sqrt(A.prod(axis=1)))
    B = [
        flat(fit, "B0", family="F", variant=v)
        - flat(fit, "Bm", family="F", variant=v) * flat(fit, "S", backbone=b)
        for b, v in (("f-base", "base"), ("f-instruct", "instruct"))
    ]
    np.testing.assert_allclose(draws["mean_B"].sel(family="F"), np.mean(B, axis=0)[:, 0])


def test_transfer_rate_moves_with_the_stated_volume_as_the_law_says(known_fit):
    fit = known_fit()
    at_ref, later = family_draws(fit), family_draws(fit, volume=fit.study.volume_ref * np.e)
    np.testing.assert_allclose(later["A"], at_ref["A"] - at_ref["Bm"])
    xr.testing.assert_equal(later["mean_B"], at_ref["mean_B"])
    with pytest.raises(RequestError, match="volume -1 is not a positive number"):
        family_draws(fit, volume=-1)


def test_table_of_families_counts_what_informs_it(known_fit):
    fit = known_fit()
    table = compare_families(fit).set_index(["family", "quantity"])
    assert table.loc[("F", "A"), ["backbones", "runs"]].tolist() == [2, 8]
    assert table.loc[("G", "A"), ["backbones", "runs"]].tolist() == [1, 4]
    assert table.loc[("G", "Bm"), "mean"] == pytest.approx(
        family_draws(fit)["Bm"].sel(family="G").mean().item()
    )
    held_out = (fit.study.runs["backbone"] != "g-base").to_numpy()
    without = compare_families(known_fit(weights=held_out)).set_index(["family", "quantity"])
    assert without.loc[("G", "A"), ["backbones", "runs"]].tolist() == [0, 0]


def test_variants_are_compared_on_the_same_draws(known_fit):
    fit = known_fit()
    table = compare_variants(fit, prob=0.8).set_index(["family", "quantity"])
    base, instruct = flat(fit, "A", family="F").T
    row = table.loc[("F", "A")]
    assert row["difference_mean"] == pytest.approx((instruct - base).mean())
    assert row["difference_posterior_80_upper"] == pytest.approx(np.quantile(instruct - base, 0.9))
    assert row["p_instruct_greater"] == pytest.approx((instruct > base).mean())
    assert row[["base_backbones", "instruct_backbones"]].tolist() == [1, 1]
    population = flat(fit, "A_population") * 2 * np.sinh(flat(fit, "A_contrast") / 2)
    assert table.loc[("all families", "A"), "difference_mean"] == pytest.approx(population.mean())
    # Absorption at one capability: the mean of the family's backbones.
    S = (flat(fit, "S", backbone="f-base") + flat(fit, "S", backbone="f-instruct"))[:, 0] / 2
    B = flat(fit, "B0", family="F") - flat(fit, "Bm", family="F") * S[:, None]
    assert table.loc[("F", "mean_B"), "difference_mean"] == pytest.approx((B[:, 1] - B[:, 0]).mean())


def test_a_model_with_one_rate_for_both_variants_has_nothing_to_compare(known_fit):
    same = {r: (("family", "variant"), np.full((2, 200, 2, 2), 0.1)) for r in ("A", "B0", "Bm")}
    contrasts = [f"{r}_contrast" for r in same]
    with pytest.raises(ModelError, match="same rates for base and instruct"):
        compare_variants(known_fit(without=contrasts, **same))


# --- text benchmarks --------------------------------------------------------------------------------


def test_transfer_coefficients_reproduce_capability_and_have_unit_length(known_fit):
    fit = known_fit()
    table = transfer_coefficients(fit).set_index("benchmark")
    w = flat(fit, "w")
    values = w @ fit.capability.loadings.T
    for i, benchmark in enumerate(fit.capability.benchmarks):
        assert table.loc[benchmark, "mean"] == pytest.approx(values[:, i].mean())
        assert table.loc[benchmark, "p_tax"] == pytest.approx((values[:, i] < 0).mean(), abs=0.02)
    centred = fit.study.text_scores.loc["n-base"].to_numpy() - fit.capability.mean
    np.testing.assert_allclose(values @ centred, w @ fit.capability.scores.loc["n-base"].to_numpy())
    np.testing.assert_allclose((values**2).sum(1), 1)
    assert table["mean"].is_monotonic_decreasing


# --- tables -----------------------------------------------------------------------------------------


TABLES = {
    "ranking": lambda fit: rank_backbones(fit, volume=1e6),
    "families": compare_families,
    "variants": compare_variants,
    "benchmarks": transfer_coefficients,
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES.keys())
def test_tables_are_numeric_and_say_that_draws_did_not_converge(known_fit, make):
    table = make(known_fit())
    words = {
        "backbone",
        "family",
        "variant",
        "mode",
        "extrapolation",
        "beyond_recipe",
        "quantity",
        "benchmark",
    }
    numbers = table.drop(columns=[c for c in table if c in words])
    assert all(dtype.kind in "fi" for dtype in numbers.dtypes)
    assert table.attrs["converged"] == 0
    assert any("not-converged" in line for line in table.attrs["warnings"])
    assert table.attrs["prob"] == 0.9


@pytest.mark.parametrize(
    ("make", "ratio"), [(compare_families, 0.5), (compare_variants, 0.5), (transfer_coefficients, 1.0)]
)
def test_prior_sd_ratio_is_posterior_over_prior_spread(known_fit, make, ratio):
    """The hand-made prior has all rates doubled, and the same directions."""
    fit = known_fit()
    np.testing.assert_allclose(make(fit)["prior_sd_ratio"], ratio)
    without = dataclasses.replace(fit, draws=fit.draws.copy())
    del without.draws["prior"]
    assert "prior_sd_ratio" not in make(without)


# --- models -----------------------------------------------------------------------------------------


def with_likelihood(fit, log_likelihood, accuracy=None):
    """A fit with these draws of the log likelihood, (chain, draw, run)."""
    runs = {"run": list(fit.study.runs.index)}
    draws = fit.draws.copy()
    observed = fit.study.runs["accuracy"].to_numpy() if accuracy is None else accuracy
    draws["log_likelihood"] = xr.DataTree(
        xr.Dataset({"accuracy": (("chain", "draw", "run"), log_likelihood)}, coords=runs)
    )
    draws["observed_data"] = xr.DataTree(xr.Dataset({"accuracy": ("run", observed)}, coords=runs))
    return dataclasses.replace(fit, draws=draws)


def normal_likelihood(fit, scale, seed=0):
    mean = np.random.default_rng(seed).normal(0.5, 0.001, (2, 200, 1))
    return stats.norm.logpdf(fit.study.runs["accuracy"].to_numpy(), mean, scale)


def test_loo_table_orders_models_and_pairs_their_difference(known_fit):
    fit = known_fit()
    fits = {s: with_likelihood(fit, normal_likelihood(fit, float(s))) for s in ("0.05", "0.01")}
    table = compare_models(fits)
    assert table["model"].tolist() == ["0.01", "0.05"]
    assert table.loc[0, ["elpd_difference", "elpd_difference_se"]].tolist() == [0, 0]
    runs = len(fit.study.runs)
    assert table.loc[1, "elpd_difference"] == pytest.approx(-runs * np.log(5), rel=0.02)
    assert table["runs"].tolist() == [runs, runs]
    assert table["pareto_k_bad"].tolist() == [0, 0]
    assert table.attrs["method"] == "PSIS-LOO over runs, not leave-one-family-out"
    assert any("not-converged" in line for line in table.attrs["warnings"])


def test_bad_pareto_k_is_counted_and_said(known_fit):
    fit = known_fit()
    heavy = normal_likelihood(fit, 0.01)
    # Importance ratios are inverse likelihoods: these have a Pareto tail of shape 1.
    heavy[..., 0] = -np.log1p(np.random.default_rng(0).pareto(1.0, (2, 200)))
    table = compare_models(
        {"heavy": with_likelihood(fit, heavy), "light": with_likelihood(fit, normal_likelihood(fit, 0.01))}
    )
    assert table.set_index("model")["pareto_k_bad"].to_dict() == {"light": 0, "heavy": 1}
    assert table.attrs["warnings"][0].startswith("warning [pareto-k] heavy: 1 of 12 runs")


def test_only_fits_to_the_same_data_are_compared(known_fit):
    fit = known_fit()
    likelihood = normal_likelihood(fit, 0.01)
    good = with_likelihood(fit, likelihood)
    with pytest.raises(RequestError, match="at least two"):
        compare_models({"one": good})
    # As many rows, but others.
    renamed = fit.study.runs.rename(index={"run 3": "run x"})
    other = known_fit(study=dataclasses.replace(fit.study, runs=renamed))
    with pytest.raises(RequestError, match=r"not fitted to the same runs: 2 differ, e\.g\. 'run 3'"):
        compare_models({"a": good, "b": with_likelihood(other, likelihood)})
    accuracy = fit.study.runs["accuracy"].to_numpy() + (np.arange(12) == 5) * 0.01
    with pytest.raises(RequestError, match=r"accuracy of 1 run, e\.g\. 'run 5'"):
        compare_models({"a": good, "b": with_likelihood(fit, likelihood, accuracy)})
    backwards = known_fit(study=dataclasses.replace(fit.study, runs=fit.study.runs.iloc[::-1]))
    with pytest.raises(RequestError, match="in another order"):
        compare_models({"a": good, "b": with_likelihood(backwards, likelihood)})
    held_out = with_likelihood(known_fit(weights=np.arange(12) > 0), likelihood)
    with pytest.raises(RequestError, match="'b' was fitted with runs held out"):
        compare_models({"a": good, "b": held_out})


def test_an_infinite_log_likelihood_is_refused_by_name(known_fit):
    fit = known_fit()
    broken = normal_likelihood(fit, 0.01)
    broken[1, 7, 2] = -np.inf
    with pytest.raises(FitError, match="'b': the log likelihood of run 'run 2' is not finite"):
        compare_models(
            {"a": with_likelihood(fit, normal_likelihood(fit, 0.01)), "b": with_likelihood(fit, broken)}
        )


# --- on published and simulated figures -------------------------------------------------------------


def test_tables_of_the_published_study(open_vlm_fit):
    ranking = rank_backbones(open_vlm_fit, volume=1.2e6)
    assert len(ranking) == len(open_vlm_fit.study.scored)
    assert ranking.attrs["converged"] == 1
    # Sizes within a family are ordered as anybody would order them.
    place = {name: i for i, name in enumerate(ranking["backbone"])}
    assert place["Qwen/Qwen2.5-72B"] < place["Qwen/Qwen2.5-7B"] < place["Qwen/Qwen2.5-0.5B"]
    families = compare_families(open_vlm_fit)
    assert set(families["family"]) == set(open_vlm_fit.posterior["family"].to_numpy())
    assert (families.loc[families["quantity"] != "mean_B", "mean"] > 0).all()
    assert families["runs"].sum() == 4 * len(open_vlm_fit.study.fitted_runs)


def test_simulated_truth_is_recovered_by_the_tables(simulated_fit):
    truth = simulated_fit.study.truth
    coefficients = transfer_coefficients(simulated_fit).set_index("benchmark")["mean"]
    assert np.corrcoef(pd.Series(truth["lambda"]).loc[coefficients.index], coefficients)[0, 1] > 0.98
    families = compare_families(simulated_fit, prob=0.95).set_index(["quantity", "family"])
    true = pd.Series(
        {
            (rate, family): np.sqrt(values["base"] * values["instruct"])
            for rate in ("A", "B0", "Bm")
            for family, values in truth[rate].items()
        },
        name="true",
    )
    table = families.join(true, how="inner", on=["quantity", "family"])
    assert len(table) == len(true)
    inside = table["true"].between(table["posterior_95_lower"], table["posterior_95_upper"])
    # 21 intervals of 0.95: fewer than 18 inside would be beyond two standard errors of a binomial. Rate by
    # rate the count hung on one family at an end of its interval, whose side changed with the machine.
    assert inside.sum() >= 18, table.loc[
        ~inside, ["mean", "posterior_95_lower", "posterior_95_upper", "true"]
    ]
