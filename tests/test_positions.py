"""Families against the population, their own runs alone, and each other."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import bayescdm as cdm
from bayescdm.compare.positions import compare_positions, nearest_families, position_draws
from bayescdm.compare.separate import separate_rates
from bayescdm.errors import NotFoundError, RequestError
from bayescdm.predict import predict_draws

QUANTITIES = ["A", "B0", "Bm", "mean_B"]


@pytest.fixture(scope="module")
def fit(known_fit):
    return known_fit(2000)


# --- positions --------------------------------------------------------------------------------------


def test_differences_from_the_population_are_paired_by_draw(fit):
    draws = position_draws(fit, ["F"], volume=1e7)
    table = compare_positions(fit, ["F"], volume=1e7, prob=0.8).set_index("quantity")
    for name in QUANTITIES:
        margin = (draws[name] - draws[f"population_{name}"]).to_numpy().ravel()
        row = table.loc[name]
        assert row["difference_mean"] == pytest.approx(margin.mean())
        assert row["p_greater"] == pytest.approx((margin > 0).mean())
        ends = row[["difference_posterior_80_lower", "difference_posterior_80_upper"]]
        assert ends.to_list() == pytest.approx(np.quantile(margin, [0.1, 0.9]).tolist())
    posterior = fit.posterior.stack(sample=("chain", "draw"))
    A = np.sqrt(posterior["A"].sel(family="F").prod("variant")).to_numpy()
    Bm = np.sqrt(posterior["Bm"].sel(family="F").prod("variant")).to_numpy()
    # D_ref is 1e6.
    assert draws["A"].to_numpy().ravel() == pytest.approx(A - Bm * np.log(10))


def test_mean_absorption_of_the_population_is_at_the_familys_own_capabilities(known_fit):
    """With the population's rates as its own, a family lies exactly on the population."""
    fit = known_fit(300)
    posterior = fit.posterior
    half = np.array([-0.5, 0.5])
    rates = {}
    for rate in ("A", "B0", "Bm"):
        values = posterior[f"{rate}_population"].to_numpy()[..., None] * np.exp(
            posterior[f"{rate}_contrast"].to_numpy()[..., None] * half
        )
        rates[rate] = (("family", "variant"), np.repeat(values[:, :, None, :], 2, axis=2))
    draws = position_draws(known_fit(300, **rates), volume=3e6)
    for name in QUANTITIES:
        assert draws[name].to_numpy() == pytest.approx(draws[f"population_{name}"].to_numpy())


def test_a_family_without_runs_is_drawn_from_the_population_like_its_predictions(fit):
    table = compare_positions(fit, ["N", "F"]).set_index(["family", "quantity"])
    assert set(table.loc["N", "mode"]) == {"new family"}
    assert set(table.loc["F", "mode"]) == {"known family"}
    assert (table.loc["N", "runs"] == 0).all()
    assert table.loc["N", "separate"].isna().all()
    draws = position_draws(fit, ["N"])
    # At D_ref two backbones of one family and variant differ by A times their difference in S, and no more.
    study = fit.study
    scores = pd.concat([study.text_scores.loc[["n-base"]]] * 2).set_axis(["low", "high"])
    scores.loc["high"] += 0.1
    labels = pd.DataFrame({"family": "N", "variant": ["base", "base"]}, index=scores.index)
    law = predict_draws(fit, (scores, labels), volumes=1e6, kind="law").isel(volume=0)
    mean, _ = fit.capability.project(scores)
    w = fit.posterior.stack(sample=("chain", "draw"))["w"].transpose("sample", "component").to_numpy()
    S = w @ mean.to_numpy().T
    slope = (law.sel(backbone="high") - law.sel(backbone="low")).to_numpy() / (S[:, 1] - S[:, 0])
    contrast = np.exp(0.5 * 0.2)
    assert np.median(draws["A"] / slope) == pytest.approx(contrast, rel=0.05)
    assert np.corrcoef(np.log(draws["A"].to_numpy().ravel()), np.log(slope))[0, 1] > 0.9


def test_what_cannot_be_asked_is_refused(fit):
    with pytest.raises(NotFoundError, match="family 'f' is not known; did you mean 'F'"):
        position_draws(fit, ["f"])
    with pytest.raises(RequestError, match="is no accuracy between 0 and 1"):
        nearest_families(fit, "F", equivalent=1)
    unscored = replace(fit.study, text_scores=fit.study.text_scores.assign(x=np.nan, y=np.nan, z=np.nan))
    with pytest.raises(RequestError, match="'N' has no backbone with text scores"):
        position_draws(replace(fit, study=unscored), ["N"])


# --- own runs alone ---------------------------------------------------------------------------------


def on_a_law(backbones, S, rates, recipes, volumes, volume_ref):
    """Runs of every backbone, recipe and volume on P = A·S + (B0 − Bm·S)·ln(D/D_ref) + baseline."""
    rows = []
    for name in S.index:
        A, B0, Bm = rates[backbones.at[name, "family"]]
        for recipe, baseline in recipes.items():
            for volume in volumes[recipe]:
                log_volume = np.log(volume / volume_ref)
                accuracy = A * S[name] + (B0 - Bm * S[name]) * log_volume + baseline
                rows.append((recipe, name, volume, accuracy))
    runs = pd.DataFrame(rows, columns=["recipe", "backbone", "volume", "accuracy"])
    return runs.set_axis([f"run {i}" for i in range(len(runs))])


@pytest.fixture(scope="module")
def lawful(known_fit):
    """The known fit's draws with S fixed, on runs that obey separate laws."""

    def make(volumes):
        fit = known_fit(100)
        S = pd.Series([-0.1, 0.0, 0.15], index=["f-base", "f-instruct", "g-base"])
        rates = {"F": (0.2, 0.03, 0.01), "G": (0.4, 0.02, 0.02)}
        backbones = fit.study.backbones
        runs = on_a_law(backbones, S, rates, {"narrow": 0.5, "wide": 0.55}, volumes, 1e6)
        study = replace(fit.study, runs=runs)
        draws = np.broadcast_to(S.to_numpy(), (2, 100, 3)).copy()
        return known_fit(100, study=study, S=(("backbone",), draws)), rates

    return make


def test_least_squares_finds_the_law_that_the_runs_obey(lawful):
    fit, rates = lawful({"narrow": [1e5, 1e7], "wide": [1e5, 1e6, 1e7]})
    table = separate_rates(fit).set_index(["family", "quantity"])
    for quantity, value in zip(("A", "B0", "Bm"), rates["F"]):
        assert table.at[("F", quantity), "separate"] == pytest.approx(value, abs=1e-8)
        assert table.at[("F", quantity), "separate_sd"] > 0
    assert table.at[("F", "mean_B"), "separate"] == pytest.approx(0.03 + 0.01 * 0.05, abs=1e-8)
    # One backbone: its intercept and its family's rate are the same thing.
    assert table.loc["G", "separate"].isna().all()
    assert table.at[("G", "A"), "why_none"] == "5 runs on 1 backbone: too few"
    at = separate_rates(fit, volume=1e7).set_index(["family", "quantity"])
    assert at.at[("F", "A"), "separate"] == pytest.approx(0.2 - 0.01 * np.log(10), abs=1e-8)


def test_absorption_needs_two_volumes_under_one_recipe(lawful):
    fit, _ = lawful({"narrow": [1e6], "wide": [1e6]})
    table = separate_rates(fit).set_index(["family", "quantity"])
    assert table.at[("F", "A"), "separate"] == pytest.approx(0.2, abs=1e-8)
    assert table.at[("F", "B0"), "why_none"] == "no recipe has runs of it at two volumes"


def test_shrinkage_is_the_share_of_the_way_to_the_population(lawful):
    fit, _ = lawful({"narrow": [1e5, 1e7], "wide": [1e5, 1e7]})
    row = compare_positions(fit, ["F"]).set_index("quantity").loc["A"]
    share = row["shrinkage"]
    assert row["separate"] + share * (row["population"] - row["separate"]) == pytest.approx(row["mean"])


# --- nearest ----------------------------------------------------------------------------------------


def test_neighbours_are_compared_in_accuracy_draw_by_draw(fit):
    table = nearest_families(fit, "F", volume=1e6, prob=0.8, equivalent=0.02)
    (row,) = table.to_dict("records")
    draws = position_draws(fit, volume=1e6)
    margin = (draws["A"].sel(family="F") - draws["A"].sel(family="G")).to_numpy()
    transfer = margin * table.attrs["capability_step"]
    B = (draws["mean_B"].sel(family="F") - draws["mean_B"].sel(family="G")).to_numpy() * np.log(10)
    assert row["family"] == "G"
    assert row["p_A_greater"] == pytest.approx((margin > 0).mean())
    assert row["transfer_mean"] == pytest.approx(transfer.mean())
    assert row["absorption_mean"] == pytest.approx(B.mean())
    assert row["p_equivalent"] == pytest.approx(((np.abs(transfer) < 0.02) & (np.abs(B) < 0.02)).mean())
    assert row["distance"] == pytest.approx(np.hypot(transfer.mean(), B.mean()))
    mirror = nearest_families(fit, "G", volume=1e6).iloc[0]
    assert mirror["p_A_greater"] == pytest.approx(1 - row["p_A_greater"])


# --- text scores ------------------------------------------------------------------------------------


def test_contributions_of_a_complete_backbone_add_up_to_its_capability(fit):
    table = cdm.text_contributions(fit, "F")
    S = fit.capability.scores @ fit.posterior["w"].mean(("chain", "draw")).to_numpy()
    for name in ("f-base", "f-other"):
        assert table.loc[table["backbone"] == name, "mean"].sum() == pytest.approx(S[name])
    each = table[table["backbone"].isin(["f-base", "f-instruct", "f-other"])]
    mean = table[table["backbone"] == "mean of its backbones"].set_index("benchmark")["mean"]
    assert mean.to_numpy() == pytest.approx(each.groupby("benchmark")["mean"].mean()[mean.index].to_numpy())


def test_signs_of_contributions_follow_lambda_and_score(fit):
    table = cdm.text_contributions(fit, "F", prob=0.8)
    above = table["score"] > table["population_mean"]
    expected = np.where(above, 1 - table["p_tax"], table["p_tax"])
    assert table["p_positive"].to_numpy() == pytest.approx(expected, abs=1e-3)
    assert (table["posterior_80_lower"] <= table["mean"]).all()
    A = position_draws(fit, ["F"])["A"].mean().item()
    large = table["mean"].abs() > 0.01
    assert (table["accuracy_mean"] / table["mean"])[large].to_numpy() == pytest.approx(A, rel=0.1)


def test_what_was_not_measured_has_no_contribution(fit):
    scores = fit.study.text_scores.copy()
    scores.loc["n-base", "y"] = np.nan
    table = cdm.text_contributions(replace(fit, study=replace(fit.study, text_scores=scores)), "N")
    row = table.set_index(["backbone", "benchmark"]).loc[("n-base", "y")]
    assert row[["score", "mean", "p_positive", "accuracy_mean"]].isna().all()
    assert table["mean"].isna().sum() == 2
