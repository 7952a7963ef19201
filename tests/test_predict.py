"""Predictions equal the law evaluated on the draws, in three kinds and three modes."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import bayescdm as cdm
from bayescdm.errors import InputError, ModelError, NotFoundError, RequestError
from bayescdm.predict import predict, predict_draws, prediction_table, question

VOLUME_REF = 1e6
FITTED = ["f-base", "f-instruct", "g-base"]


def flat(fit, name, **labels):
    """Draws of a quantity, chain after chain."""
    return fit.posterior[name].sel(**labels).to_numpy().reshape(-1)


def one(fit, candidates, *, volumes=VOLUME_REF, kind="law", **options):
    """Draws of one backbone at one volume."""
    array = predict_draws(fit, candidates, volumes=volumes, kind=kind, **options)
    assert array.sizes["backbone"] == array.sizes["volume"] == 1
    return array.to_numpy().reshape(-1)


def candidates_of(fit, rows):
    """A candidate table: name → (family, variant), all with the text scores of 'f-other'."""
    scores = fit.study.text_scores.loc[["f-other"] * len(rows)].set_axis(list(rows))
    labels = pd.DataFrame(rows.values(), index=list(rows), columns=["family", "variant"], dtype=object)
    return scores, labels


# --- the law, exactly -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["law", "backbone"])
def test_a_known_backbone_is_the_law_on_its_own_draws(known_fit, kind):
    fit = known_fit()
    S, volume = flat(fit, "S", backbone="g-base"), 3e6
    cell = {"family": "G", "variant": "base"}
    B = flat(fit, "B0", **cell) - flat(fit, "Bm", **cell) * S
    baseline = flat(fit, "P0") + flat(fit, "recipe_effect", recipe="wide")
    expected = flat(fit, "A", **cell) * S + B * np.log(volume / VOLUME_REF) + baseline
    expected += flat(fit, "backbone_effect", backbone="g-base")
    got = one(fit, ["g-base"], volumes=volume, recipe="wide", kind=kind)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_a_new_backbone_takes_the_rates_of_its_cell_even_if_no_run_has_it(known_fit):
    fit = known_fit()
    Z = fit.capability.scores.loc["g-instruct"]
    S = fit.posterior["w"].to_numpy().reshape(-1, 2) @ Z.to_numpy()
    expected = flat(fit, "A", family="G", variant="instruct") * S + flat(fit, "P0")
    np.testing.assert_allclose(one(fit, ["g-instruct"]), expected, rtol=1e-13)


def test_components_are_matched_by_label_not_by_position(known_fit):
    fit = known_fit()
    turned = known_fit()
    turned.draws["posterior"] = xr.DataTree(
        fit.posterior.isel(component=[1, 0], family=[1, 0], backbone=[2, 0, 1])
    )
    names = ["g-instruct", "f-base", "g-base"]
    first, second = (predict_draws(f, names, volumes=[2e6], kind="run") for f in (fit, turned))
    xr.testing.assert_allclose(first, second, rtol=1e-13)


def test_missing_text_scores_widen_capability_by_what_they_leave_open(known_fit):
    fit = known_fit(draws=20_000)
    scores, labels = candidates_of(fit, {"whole": ("F", "base"), "part": ("F", "base")})
    scores.loc["part", ["y", "z"]] = np.nan
    mean, covariance = fit.capability.project(scores)
    w = fit.posterior["w"].to_numpy().reshape(-1, 2)
    A = flat(fit, "A", family="F", variant="base")
    got = one(fit, (scores.loc[["part"]], labels.loc[["part"]])) - flat(fit, "P0")
    scale = np.sqrt(np.einsum("sk,kl,sl->s", w, covariance[1], w))
    standard = (got / A - w @ mean.loc["part"].to_numpy()) / scale
    assert scale.min() > 0.01
    assert stats.kstest(standard, "norm").pvalue > 0.001


def test_a_fitted_backbone_keeps_its_posterior_capability_when_scores_are_missing(known_fit):
    fit = known_fit()
    scores, labels = fit.study.text_scores.loc[["f-base"]].copy(), fit.study.backbones.loc[["f-base"]]
    scores["x"] = np.nan
    np.testing.assert_array_equal(one(fit, (scores, labels)), one(fit, ["f-base"]))


def test_size_slope_adds_its_share(known_fit):
    slope = np.random.default_rng(1).normal(0.02, 0.01, (2, 200))
    plain, sized = known_fit(), known_fit(size_slope=((), slope))
    ref = float(sized.group("constant_data")["log_params_ref"])
    added = one(sized, ["f-other"]) - one(plain, ["f-other"])
    np.testing.assert_allclose(added, slope.reshape(-1) * (np.log(7e9) - ref), rtol=1e-9)
    scores, labels = candidates_of(sized, {"new": ("F", "base")})
    with pytest.raises(RequestError, match="number of parameters of 'new'"):
        predict_draws(sized, (scores, labels), volumes=1e6, kind="law")


# --- kinds ------------------------------------------------------------------------------------------


def test_kinds_add_backbone_spread_then_residual_on_the_same_draws(known_fit):
    fit = known_fit(draws=20_000)
    law, backbone, run = (one(fit, ["f-other"], kind=kind) for kind in ("law", "backbone", "run"))
    intercept = (backbone - law) / flat(fit, "tau")
    assert stats.kstest(intercept, "norm").pvalue > 0.001
    residual = (run - backbone) / flat(fit, "sigma")
    uniform = stats.t(df=flat(fit, "nu")).cdf(residual)
    assert stats.kstest(uniform, "uniform").pvalue > 0.001


def test_residuals_are_normal_in_a_model_without_nu(known_fit):
    fit = known_fit(draws=20_000, without=["nu"])
    residual = one(fit, ["f-base"], kind="run") - one(fit, ["f-base"], kind="law")
    assert stats.kstest(residual / flat(fit, "sigma"), "norm").pvalue > 0.001


def test_two_runs_of_one_backbone_share_its_intercept_and_not_their_residuals(known_fit):
    fit = known_fit(draws=5_000)
    volumes = [1e6, 2e6]
    run, backbone, law = (
        predict_draws(fit, ["f-other"], volumes=volumes, kind=kind) for kind in ("run", "backbone", "law")
    )
    intercept = (backbone - law).to_numpy()[:, 0]
    np.testing.assert_allclose(intercept[:, 0], intercept[:, 1], atol=1e-15)
    residual = (run - backbone).to_numpy()[:, 0]
    assert abs(np.corrcoef(residual.T)[0, 1]) < 0.05


# --- new families -----------------------------------------------------------------------------------


def test_new_family_rates_are_log_normal_around_the_population(known_fit):
    fit = known_fit(draws=20_000)
    # At D_ref and with S known, accuracy gives A itself.
    S = fit.posterior["w"].to_numpy().reshape(-1, 2) @ fit.capability.scores.loc["n-base"].to_numpy()
    A = (one(fit, ["n-base"]) - flat(fit, "P0")) / S
    centre = np.log(flat(fit, "A_population")) - flat(fit, "A_contrast") / 2
    scale = np.hypot(flat(fit, "A_family_scale"), flat(fit, "A_contrast_scale") / 2)
    assert stats.kstest((np.log(A) - centre) / scale, "norm").pvalue > 0.001


def test_without_scales_a_new_family_is_the_population(known_fit):
    parts = [f"{r}_{p}" for r in ("A", "B0", "Bm") for p in ("family_scale", "contrast", "contrast_scale")]
    fit = known_fit(without=parts)
    S = fit.posterior["w"].to_numpy().reshape(-1, 2) @ fit.capability.scores.loc["n-base"].to_numpy()
    np.testing.assert_allclose(one(fit, ["n-base"]), flat(fit, "A_population") * S + flat(fit, "P0"))


def test_rows_of_one_new_family_share_its_draw(known_fit):
    fit = known_fit()
    rows = {"a": ("N", "base"), "b": ("N", "base"), "c": ("N", "instruct"), "d": ("M", "base")}
    a, b, c, d = predict_draws(fit, candidates_of(fit, rows), volumes=[3e6], kind="law").to_numpy()[..., 0].T
    np.testing.assert_array_equal(a, b)
    assert np.corrcoef(a, c)[0, 1] > np.corrcoef(a, d)[0, 1] + 0.1


@pytest.mark.parametrize("missing", [np.nan, "", "unknown", None])
def test_a_missing_family_makes_each_row_a_family_of_its_own(known_fit, missing):
    fit = known_fit()
    rows = {"a": (missing, "base"), "b": (missing, "base")}
    draws = predict_draws(fit, candidates_of(fit, rows), volumes=[3e6], kind="law")
    assert list(draws["mode"].to_numpy()) == ["new family", "new family"]
    assert list(draws["family"].to_numpy()) == ["unknown", "unknown"]
    a, b = draws.to_numpy()[..., 0].T
    assert (a != b).all()


def test_a_missing_variant_is_either_one_in_each_draw(known_fit):
    fit = known_fit()
    rows = {"a": ("F", "base"), "b": ("F", "instruct"), "c": ("F", np.nan)}
    base, instruct, either = (
        predict_draws(fit, candidates_of(fit, rows), volumes=[3e6], kind="law").to_numpy()[..., 0].T
    )
    assert ((either == base) | (either == instruct)).all()
    assert 0.4 < (either == base).mean() < 0.6


def test_a_model_without_population_says_that_it_cannot_speak_of_a_new_family(known_fit):
    fit = known_fit(without=["A_population"])
    assert one(fit, ["f-other"]).shape == (400,)
    with pytest.raises(ModelError, match="no population of families from which to draw 'N'"):
        one(fit, ["n-base"])


# --- recipes ----------------------------------------------------------------------------------------


def test_recipe_effect_is_added_and_zero_for_the_mean(known_fit):
    fit = known_fit()
    added = one(fit, ["f-base"], recipe="narrow") - one(fit, ["f-base"])
    np.testing.assert_allclose(added, flat(fit, "recipe_effect", recipe="narrow"), atol=1e-15)


def test_a_new_recipe_deviates_from_a_mean_of_zero_sum_effects(known_fit):
    fit = known_fit(draws=20_000)
    names = ["f-base", "n-base"]
    new, mean = (
        predict_draws(fit, names, volumes=1e6, recipe=r, kind="law").to_numpy()[..., 0] for r in ("new", None)
    )
    first, second = (new - mean).T
    np.testing.assert_allclose(first, second, atol=1e-15)
    assert stats.kstest(first / (flat(fit, "recipe_scale") * np.sqrt(1.5)), "norm").pvalue > 0.001


def test_one_recipe_says_nothing_about_other_recipes(known_fit):
    fit = known_fit(recipes=("only",))
    np.testing.assert_array_equal(one(fit, ["f-base"], recipe="only"), one(fit, ["f-base"]))
    with pytest.raises(RequestError, match="cannot say how recipes differ"):
        one(fit, ["f-base"], recipe="new")


def test_unknown_recipe_names_the_nearest(known_fit):
    with pytest.raises(NotFoundError, match="recipe 'narow' is not known; did you mean 'narrow'"):
        one(known_fit(), ["f-base"], recipe="narow")


# --- labels and random numbers ----------------------------------------------------------------------


def test_order_and_company_change_nothing(known_fit):
    fit = known_fit()
    rows = {"a": ("N", "base"), "b": (np.nan, np.nan), "c": ("M", "instruct"), "f-base": ("F", "base")}
    scores, labels = candidates_of(fit, rows)
    scores.loc["f-base"] = fit.study.text_scores.loc["f-base"]
    scores.loc["c", "x"] = np.nan
    options = {"recipe": "new", "kind": "run", "seed": 3}
    asked = predict_draws(fit, (scores, labels), volumes=[1e6, 3e6], **options)
    assert list(asked["backbone"].to_numpy()) == list(rows)
    order = ["c", "f-base", "a", "b"]
    shuffled = predict_draws(fit, (scores.loc[order], labels.loc[order]), volumes=[3e6, 1e6], **options)
    assert list(shuffled["backbone"].to_numpy()) == order
    # To rounding: a product of matrices may sum in another order for other rows.
    back = shuffled.sel(backbone=list(rows), volume=[1e6, 3e6])
    xr.testing.assert_allclose(back, asked, rtol=1e-12)
    alone = predict_draws(fit, (scores.loc[["c"]], labels.loc[["c"]]), volumes=[3e6], **options)
    xr.testing.assert_allclose(alone, asked.sel(backbone=["c"], volume=[3e6]), rtol=1e-12)


def test_another_seed_gives_other_draws_of_what_is_not_known(known_fit):
    fit = known_fit()
    assert (one(fit, ["n-base"], seed=1) != one(fit, ["n-base"], seed=2)).all()
    np.testing.assert_array_equal(one(fit, ["f-base"], seed=1), one(fit, ["f-base"], seed=2))


def test_modes_follow_the_runs_that_inform_the_fit(known_fit):
    names = ["f-base", "f-other", "g-base", "g-instruct", "n-base"]

    def modes(fit):
        return list(predict_draws(fit, names, volumes=1e6, kind="law")["mode"].to_numpy())

    known, new, other = "known backbone", "new backbone of known family", "new family"
    fit = known_fit()
    assert modes(fit) == [known, new, known, new, other]
    held_out = (fit.study.runs["backbone"] != "g-base").to_numpy()
    assert modes(known_fit(weights=held_out)) == [known, new, other, other, other]


def test_extrapolation_is_said_in_capability_and_in_volume(known_fit):
    S = np.broadcast_to([-0.4, 0.0, 0.4], (2, 200, 3))
    inside = known_fit(S=(("backbone",), S))
    volumes = [1e5, 1e7, 0.99e5, 1.01e7]
    flags = predict_draws(inside, ["f-other"], volumes=volumes, kind="law")["extrapolation"]
    assert list(flags.to_numpy()[0]) == ["", "", "extrapolation in volume", "extrapolation in volume"]
    outside = known_fit(S=(("backbone",), S * 0.01))
    flags = predict_draws(outside, ["f-other", "f-base"], volumes=[1e5, 1e9], kind="law")["extrapolation"]
    both = "extrapolation in capability, volume"
    assert flags.to_numpy().tolist() == [
        ["extrapolation in capability", both],
        ["", "extrapolation in volume"],
    ]


def test_what_the_recipes_own_runs_do_not_reach_is_said(known_fit):
    fit = known_fit(10)  # runs of both recipes on backbones of 1B, 2B and 4B, from 1e5 to 1e7
    names = ["g-base", "f-other"]

    def flags(fit, recipe, volume):
        draws = predict_draws(fit, names, volumes=volume, recipe=recipe, kind="law")
        return draws["beyond_recipe"].to_numpy()[:, 0].tolist()

    assert flags(fit, "narrow", 1e6) == ["", "larger than any run of this recipe (4B)"]
    assert flags(fit, None, 1e6) == flags(fit, "new", 1e6) == ["", ""]
    runs = fit.study.runs
    held_out = ((runs["recipe"] == "wide") & (runs["backbone"] == "g-base")).to_numpy()
    weights = np.where(held_out, 0.0, 1.0)
    assert flags(known_fit(10, weights=weights), "wide", 1e6)[0] == "larger than any run of this recipe (2B)"
    weights = np.where((runs["recipe"] == "wide") & (runs["volume"] > 1e6), 0.0, 1.0)
    assert flags(known_fit(10, weights=weights), "wide", 1e7) == [
        "no run of this recipe at this volume (100K)",
        "larger than any run of this recipe (4B); no run of this recipe at this volume (100K)",
    ]
    # Outside of what all runs have seen is an extrapolation, said in the other column.
    assert flags(fit, "narrow", 1e9)[0] == ""


def test_thinned_draws_are_a_subset_by_position(known_fit):
    fit = known_fit()
    every = predict_draws(fit, ["f-base"], volumes=1e6, kind="law")
    some = predict_draws(fit, ["f-base"], volumes=1e6, kind="law", draws=50)
    assert some.sizes["sample"] == 50
    xr.testing.assert_equal(some, every.sel(sample=some["sample"]).assign_attrs(some.attrs))
    assert predict_draws(fit, ["f-base"], volumes=1e6, kind="law", draws=10**6).sizes["sample"] == 400


def test_ten_thousand_rows_come_back_in_their_order(known_fit):
    fit = known_fit(draws=50)
    rng = np.random.default_rng(0)
    names = [f"c{i}" for i in rng.permutation(10_000)]
    rows = {name: ("F" if i % 2 else f"new {i}", "base") for i, name in enumerate(names)}
    predictions = predict(fit, candidates_of(fit, rows), volumes=[1e6], kind="run")
    assert list(predictions["backbone"].to_numpy()) == names
    assert np.isfinite(predictions["mean"]).all()


def test_rows_of_one_name_come_as_often_as_asked_with_the_same_draws(known_fit):
    fit = known_fit(draws=50)
    rows = {"a": ("N", "base"), "b": (np.nan, np.nan), "f-base": ("F", "base")}
    scores, labels = candidates_of(fit, rows)
    scores.loc["f-base"] = fit.study.text_scores.loc["f-base"]
    order = ["b", "a", "b", "f-base", "a", "f-base"]
    asked = (scores.loc[order], labels.loc[order])
    draws = predict_draws(fit, asked, volumes=[1e6, 2e6], recipe="new", kind="run")
    assert list(draws["backbone"].to_numpy()) == order
    once = predict_draws(fit, (scores, labels), volumes=[1e6, 2e6], recipe="new", kind="run")
    xr.testing.assert_identical(draws, once.sel(backbone=order))
    table = prediction_table(predict(fit, asked, volumes=1e6))
    assert list(table["backbone"]) == order
    assert table.iloc[0].equals(table.iloc[2])
    names = ["f-base", "n-base", "f-base"]
    assert list(predict(fit, names, volumes=1e6)["backbone"].to_numpy()) == names


def test_rows_of_one_name_that_differ_are_refused(known_fit):
    fit = known_fit(draws=50)
    scores, labels = candidates_of(fit, {"a": ("N", "base"), "b": ("F", "base")})
    twice = ["a", "b", "a", "b"]
    scores, labels = scores.loc[twice], labels.loc[twice]
    predict(fit, (scores, labels), volumes=1e6)
    labels.iloc[2, 0] = "M"
    with pytest.raises(RequestError, match="rows of one name differ: 'a';"):
        predict(fit, (scores, labels), volumes=1e6)
    scores.iloc[3, 0] += 0.01
    with pytest.raises(RequestError, match="rows of one name differ: 'a', 'b';"):
        predict(fit, (scores, labels), volumes=1e6)


def test_a_family_not_stated_is_the_words_for_it_and_an_unknown_variant_is_either(known_fit):
    """NaN, an empty cell and the reader's ``unknown`` mean the same; such rows share nothing."""
    fit = known_fit(draws=400)
    rows = {"a": (np.nan, "base"), "b": ("", "base"), "c": ("unknown", "base"), "n1": ("N", "base")}
    rows |= {"n2": ("N", "base"), "either": ("N", np.nan)}
    draws = predict_draws(fit, candidates_of(fit, rows), volumes=1e6, kind="law").isel(volume=0)
    assert set(draws["mode"].to_numpy()) == {"new family"}
    value = {name: draws.sel(backbone=name).to_numpy() for name in rows}
    np.testing.assert_array_equal(value["n1"], value["n2"])
    for first, second in (("a", "b"), ("b", "c"), ("a", "n1")):
        assert (value[first] != value[second]).all()
    of_instruct = candidates_of(fit, {"either": ("N", "instruct")})
    instruct = predict_draws(fit, of_instruct, volumes=1e6, kind="law").to_numpy().reshape(-1)
    from_base, from_instruct = (np.isclose(value["either"], x, rtol=1e-12) for x in (value["n1"], instruct))
    assert (from_base ^ from_instruct).all()
    assert from_base.mean() == pytest.approx(0.5, abs=0.1)


# --- summaries --------------------------------------------------------------------------------------


def test_predict_summarises_the_draws_whatever_the_chunks(known_fit, monkeypatch):
    fit = known_fit()
    options = {"volumes": [1e6, 4e6], "recipe": "wide", "kind": "backbone"}
    draws = predict_draws(fit, **options)
    whole = predict(fit, prob=0.8, **options)
    np.testing.assert_allclose(whole["mean"], draws.mean("sample"))
    np.testing.assert_allclose(whole["lower"], draws.quantile(0.1, "sample"))
    np.testing.assert_allclose(whole["upper"], draws.quantile(0.9, "sample"))
    monkeypatch.setattr(question, "CELLS_AT_ONCE", 2 * 400 * 2)
    xr.testing.assert_allclose(predict(fit, prob=0.8, **options), whole, rtol=1e-12)


def test_sd_of_normal_draws_is_their_standard_deviation(known_fit):
    fit = known_fit(draws=20_000)
    predictions = predict(fit, ["f-base"], volumes=1e6, kind="law")
    assert predictions["sd"].item() == pytest.approx(one(fit, ["f-base"]).std(), rel=0.05)


def test_heavy_tails_move_neither_mean_nor_sd_with_the_seed(known_fit):
    fit = known_fit(draws=2_000, nu=((), np.full((2, 2_000), 0.5)))
    first, second = (predict(fit, ["f-base"], volumes=1e6, kind="run", seed=seed) for seed in (1, 2))
    assert first["mean"].item() == second["mean"].item()
    assert first["sd"].item() == pytest.approx(second["sd"].item(), rel=0.2)


def test_attributes_say_what_was_asked_and_whether_the_draws_converged(known_fit):
    attrs = predict(known_fit(), volumes=1e6, kind="law", prob=0.5, recipe="wide").attrs
    assert attrs["kind"], attrs["prob"] == ("law", 0.5)
    assert attrs["recipe"] == "wide"
    assert attrs["volume_unit"] == "samples"
    # 400 draws cannot have an effective sample size above 400.
    assert attrs["converged"] == 0
    assert any("not-converged" in line for line in attrs["warnings"])


def test_table_has_one_row_a_cell_and_names_kind_and_probability(known_fit):
    predictions = predict(known_fit(), ["n-base", "f-base"], volumes=[4e6, 1e6], kind="run", prob=0.95)
    table = prediction_table(predictions)
    assert list(table.columns) == [
        *("backbone", "family", "variant", "mode", "volume"),
        *("mean", "sd", "run_95_lower", "run_95_upper", "extrapolation", "beyond_recipe"),
    ]
    assert list(zip(table["backbone"], table["volume"])) == [
        (b, v) for b in ("n-base", "f-base") for v in (4e6, 1e6)
    ]
    assert table.select_dtypes("number").columns.tolist() == [
        "volume",
        "mean",
        "sd",
        "run_95_lower",
        "run_95_upper",
    ]
    cell = predictions.sel(backbone="f-base", volume=4e6)
    row = table[(table["backbone"] == "f-base") & (table["volume"] == 4e6)].iloc[0]
    assert row["run_95_upper"] == cell["upper"].item()
    assert table.attrs["kind"] == "run"


def test_predictions_can_be_written_to_netcdf(known_fit, tmp_path):
    predictions = predict(known_fit(), volumes=1e6)
    predictions.to_netcdf(tmp_path / "p.nc", engine="h5netcdf")
    with xr.open_dataset(tmp_path / "p.nc", engine="h5netcdf") as back:
        np.testing.assert_array_equal(back["mean"], predictions["mean"])


def test_all_scored_backbones_are_asked_by_default(known_fit):
    fit = known_fit()
    draws = predict_draws(fit, volumes=1e6, kind="law")
    assert list(draws["backbone"].to_numpy()) == list(fit.study.scored)


# --- refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("candidates", "options", "error", "message"),
    [
        ([], {}, RequestError, "no backbone asked for"),
        (["f-bass"], {}, NotFoundError, "backbone 'f-bass' is not known; did you mean 'f-base'"),
        (["unscored", "f-base"], {}, RequestError, "no text scores, so no capability: 'unscored'"),
        (["f-base"], {"volumes": 0}, RequestError, "volume 0 is not a positive number"),
        (["f-base"], {"volumes": [1e6, -1]}, RequestError, "volume -1 is not"),
        (["f-base"], {"volumes": np.nan}, RequestError, "volume nan is not"),
        (["f-base"], {"volumes": np.inf}, RequestError, "volume inf is not"),
        (["f-base"], {"volumes": []}, RequestError, "no volume"),
        (["f-base"], {"volumes": [1e6, 1e6]}, RequestError, "volume is asked for twice"),
        (["f-base"], {"volumes": "1.2M"}, RequestError, "are not numbers"),
        (["f-base"], {"kind": "runs"}, RequestError, "kind 'runs' is none of law, backbone, run"),
        (["f-base"], {"prob": 90}, RequestError, "did you mean 0.9"),
        (["f-base"], {"draws": 0}, RequestError, "0 draws"),
    ],
)
def test_refusals(known_fit, candidates, options, error, message):
    with pytest.raises(error, match=message):
        predict(known_fit(), candidates, **{"volumes": 1e6, **options})


def test_every_unknown_name_is_listed(known_fit):
    with pytest.raises(NotFoundError, match=r"(?s)'q1'.*\n.*'q2'"):
        predict(known_fit(), ["q1", "f-base", "q2"], volumes=1e6)


def test_refusals_of_candidate_tables(known_fit):
    fit = known_fit()
    scores, labels = candidates_of(fit, {"a": ("F", "chat"), "b": ("F", "base")})
    with pytest.raises(RequestError, match="variant 'chat' of 'a' is neither"):
        predict(fit, (scores, labels), volumes=1e6)
    with pytest.raises(RequestError, match="same backbones in the same order"):
        predict(fit, (scores, labels.iloc[::-1]), volumes=1e6)
    with pytest.raises(NotFoundError, match="xx"):
        predict(fit, (scores.rename(columns={"x": "xx"}), labels.assign(variant="base")), volumes=1e6)
    with pytest.raises(InputError, match="is not a fraction"):
        predict(fit, (scores * 100, labels.assign(variant="base")), volumes=1e6)
    with pytest.raises(RequestError, match="no backbone asked for"):
        predict(fit, (scores.iloc[:0], labels.iloc[:0]), volumes=1e6)


def test_a_fitted_name_with_other_figures_is_refused_with_all_of_them(known_fit):
    fit = known_fit()
    scores, labels = fit.study.text_scores.loc[["f-base"]].copy(), fit.study.backbones.loc[["f-base"]].copy()
    scores["x"] = 0.99
    labels["family"] = "G"
    with pytest.raises(RequestError, match=r"(?s)family 'G', in the fit 'F'.*\n.*x 0.99, in the fit 0\."):
        predict(fit, (scores, labels), volumes=1e6)


def test_a_fitted_name_with_rounded_figures_is_the_fitted_backbone(known_fit):
    fit = known_fit()
    scores, labels = fit.study.text_scores.loc[["f-base"]].round(3), fit.study.backbones.loc[["f-base"]]
    np.testing.assert_array_equal(one(fit, (scores, labels)), one(fit, ["f-base"]))


def test_a_model_of_another_kind_is_refused(known_fit):
    with pytest.raises(ModelError, match="has no Bm: predictions need a transfer model"):
        predict(known_fit(without=["Bm"]), volumes=1e6)


def test_predicting_does_not_import_the_sampler():
    code = "import sys, bayescdm.predict, bayescdm.compare; print('pymc' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"


# --- on published figures ---------------------------------------------------------------------------


def test_law_draws_give_the_models_own_log_likelihood(open_vlm_fit):
    """Every run with a known volume: the same mean, by another road than the model's graph."""
    fit, n = open_vlm_fit, 400
    likelihood = fit.group("log_likelihood")["accuracy"].stack(sample=("chain", "draw"))
    checked = 0
    for recipe, runs in fit.study.fitted_runs.dropna(subset="volume").groupby("recipe"):
        names, volumes = list(runs["backbone"].unique()), sorted(runs["volume"].unique())
        law = predict_draws(fit, names, volumes=volumes, recipe=recipe, kind="law", draws=n)
        nu, sigma = (flat(fit, name)[law["sample"]] for name in ("nu", "sigma"))
        for label, run in runs.iterrows():
            mean = law.sel(backbone=run["backbone"], volume=run["volume"]).to_numpy()
            expected = stats.t.logpdf(run["accuracy"], nu, mean, sigma)
            model = likelihood.sel(run=str(label)).to_numpy()[law["sample"]]
            np.testing.assert_allclose(expected, model, rtol=1e-8, atol=1e-8)
            checked += 1
    assert checked > 40


def test_run_intervals_are_the_models_posterior_predictive(open_vlm_fit):
    fit = open_vlm_fit
    replicated = fit.group("posterior_predictive")["accuracy"]
    runs = fit.study.fitted_runs.dropna(subset="volume").iloc[::7]
    for label, run in runs.iterrows():
        mine = one(fit, [run["backbone"]], volumes=run["volume"], recipe=run["recipe"], kind="run")
        model = replicated.sel(run=str(label)).to_numpy().reshape(-1)
        probabilities = [0.05, 0.25, 0.5, 0.75, 0.95]
        gap = np.quantile(mine, probabilities) - np.quantile(model, probabilities)
        assert np.abs(gap).max() < 0.1 * (np.quantile(model, 0.95) - np.quantile(model, 0.05))


def test_new_families_are_wider_than_known_ones(open_vlm_fit):
    scores, labels = (
        t.loc[["Qwen/Qwen2.5-7B"]] for t in (open_vlm_fit.study.text_scores, open_vlm_fit.study.backbones)
    )
    scores, labels = (pd.concat([t, t, t]).set_axis(["known", "new", "unstated"]) for t in (scores, labels))
    labels["family"] = ["Qwen2.5", "a new family", np.nan]
    predictions = predict(open_vlm_fit, (scores, labels), volumes=1.2e6, kind="backbone")
    width = (predictions["upper"] - predictions["lower"]).to_numpy()[:, 0]
    assert width[1] > 1.1 * width[0]
    # Unstated differs from a named new family only in that nobody shares its draw.
    assert width[2] == pytest.approx(width[1], rel=0.1)


def test_a_candidate_with_half_its_scores_missing_is_less_certain(open_vlm_fit):
    scores, labels = (
        t.loc[["Qwen/Qwen2.5-7B"]] for t in (open_vlm_fit.study.text_scores, open_vlm_fit.study.backbones)
    )
    scores, labels = (pd.concat([t, t]).set_axis(["whole", "half"]) for t in (scores, labels))
    scores.iloc[1, ::2] = np.nan
    whole, half = predict(open_vlm_fit, (scores, labels), volumes=1.2e6, kind="law")["sd"].to_numpy()[:, 0]
    assert half > whole


def test_a_reloaded_fit_predicts_to_the_bit(open_vlm_fit, tmp_path):
    path = open_vlm_fit.save(tmp_path / "fit.nc")
    options = {"volumes": [6e5, 1.2e6], "recipe": "new", "kind": "run"}
    before = predict_draws(open_vlm_fit, **options)
    xr.testing.assert_identical(predict_draws(cdm.load_fit(path), **options), before)
