"""Every published figure beside ours, in one table and by one command, or a plain reason why not."""

import importlib
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import norm
from scipy.stats import t as student_t
from typer.testing import CliRunner

import bayescdm as cdm
from bayescdm import cli
from bayescdm.datasets import paper_table
from bayescdm.errors import ModelError, Note, RequestError
from bayescdm.paper import PaperFits, published_against_ours
from bayescdm.paper.batch import true_composite
from bayescdm.paper.figures import _half_width, _no_family
from bayescdm.paper.readers import figure_columns, readable_figures
from bayescdm.simulate import true_accuracy


def held_out(known_fit, **options):
    fit = known_fit(500)
    weights = np.where((fit.study.runs["backbone"] == "g-base").to_numpy(), 0.0, 1.0)
    return known_fit(500, weights=weights, **options)


def validation(study, families):
    """Ten judged runs of a left-out family each, two runs outside their interval for the last."""
    runs = study.fitted_runs.reset_index()
    runs["family"] = runs["backbone"].map(study.backbones["family"])
    rows = pd.concat([runs[runs["family"] == family].head(10) for family in families], ignore_index=True)
    low = rows["accuracy"] - 0.1 + np.where(np.arange(len(rows)) >= len(rows) - 2, 0.2, 0)
    rows = rows.assign(run_95_lower=low, run_95_upper=low + 0.2, error=0.01, crps=0.01, evaluable=1)
    return SimpleNamespace(
        rows=rows,
        model="known",
        study="known",
        volume_unit="tokens",
        simulated=True,
        converged=True,
        notes=(),
    )


LEFT_OUT = ["DeepSeek", "Falcon3", "Gemma-2", "Qwen3"]


@pytest.fixture(scope="module")
def fits(simulated_fit, known_fit):
    no_decay = held_out(known_fit, Bm=(("family", "variant"), np.zeros((2, 500, 2, 2))))
    left_out = validation(simulated_fit.study, LEFT_OUT)
    return PaperFits(simulated_fit, held_out(known_fit), no_decay, left_out, {})


@pytest.fixture(scope="module")
def table(fits):
    return published_against_ours(fits)


def test_every_published_figure_has_a_row_and_each_row_a_figure_or_a_reason(table):
    published = paper_table("published_figures")
    settings = published["analysis"].eq("batch-size")
    assert settings.sum() == 12
    published = published[~settings]
    asked = set(zip(published["analysis"], published["quantity"], published["subject"]))
    rows = list(zip(table["analysis"], table["quantity"], table["subject"]))
    assert len(set(rows)) == len(rows)
    assert asked <= set(rows)
    assert (table["ours"].notna() == (table["cannot"] == "")).all()
    values = published.set_index(["analysis", "quantity", "subject"])["value"]
    shown = table.dropna(subset=["published"]).set_index(["analysis", "quantity", "subject"])["published"]
    assert shown.sort_index().equals(values.rename("published").sort_index().astype(float))


def test_figures_are_those_of_the_analyses(table, simulated_fit):
    one = table.set_index(["quantity", "subject"])
    claims = cdm.variant_claims(simulated_fit).set_index("quantity")
    assert one.at[("Bm", "instruct"), "ours"] == pytest.approx(claims.at["Bm", "instruct"])
    assert one.at[("p_claim", claims.at["A", "claim"]), "ours"] == claims.at["A", "p_claim"]
    families = cdm.family_estimates(simulated_fit).set_index(["family", "quantity"])
    assert one.at[("B0", "Falcon3"), "ours"] == pytest.approx(families.at[("Falcon3", "B0"), "mean"])
    assert one.at[("A", "Llama"), "true"] == pytest.approx(families.at[("Llama-3.2", "A"), "true"])
    assert one.at[("within_band", "Falcon3"), "ours"] == 1
    assert one.at[("within_band", "Qwen3"), "ours"] == 0
    covered = one.loc[("covered", "Qwen3; 95 % nominal")]
    assert covered["ours"] == pytest.approx(0.8)
    assert covered["interval_90_lower"] < 0.5 < 0.95 < covered["interval_90_upper"]
    assert one.at[("elpd_difference", "held-out models, without − with Bm"), "ours"] != 0


def test_every_figure_lies_in_its_interval_and_the_interval_has_a_kind(table):
    bounded = table[table["interval_90_lower"].notna()]
    inside = bounded["ours"].between(bounded["interval_90_lower"], bounded["interval_90_upper"])
    assert inside.all(), bounded.loc[~inside, ["quantity", "subject"]]
    assert (bounded["interval"] != "").all()
    kinds = bounded.groupby("quantity")["interval"].unique()
    assert kinds["mae"].tolist() == ["error of the law's draws"]
    assert kinds["Bm"].tolist() == ["posterior"]
    assert "standard errors" in kinds["elpd_difference"][0]
    assert kinds["log2_batch"].tolist() == ["backbone"]
    assert (table.loc[table["interval_90_lower"].isna(), "interval"] == "").all()


def test_what_is_simulated_has_a_truth(table):
    one = table.set_index(["quantity", "subject"])["true"]
    for key in [
        ("B0", "base"),
        ("B0", "instruct"),
        ("slope", "of the optimum on the composite"),
        ("log2_batch", "Qwen2.5-72B at 50B tokens"),
        ("log2_batch", "Qwen2.5-72B-Instruct at 50B tokens"),
        ("p_larger", "composite: Qwen3-1.7B-Base > Falcon3-3B-Base"),
        ("p_order", "A: Llama-3.2 > Gemma-2 > Falcon3 > Qwen3"),
        ("theta", "one slope for all"),
        ("mae", "Falcon3"),
        ("mae", "base"),
    ]:
        assert np.isfinite(one[key]), key
    assert one["slope", "of the optimum on the composite"] == 15.0
    assert one["theta", "one slope for all"] == pytest.approx(0.23, abs=0.03)
    ours = table.set_index(["quantity", "subject"]).loc[("theta", "one slope for all")]
    assert ours["interval_90_lower"] < ours["true"] < ours["interval_90_upper"]
    volumes = table[table["quantity"] == "overtaking_volume"]
    assert len(volumes) == 3


@pytest.fixture(scope="module")
def all_simulated(simulated_fit):
    """The table whose every fit is of the simulated study, the 72B models held out."""
    fit = simulated_fit
    params = fit.study.backbones["params"].reindex(fit.study.fitted_runs["backbone"]).to_numpy()
    constant = fit.draws["constant_data"].to_dataset()
    tree = fit.draws.copy()
    tree["constant_data"] = xr.DataTree(constant.assign(weight=("run", np.where(params > 4e10, 0.0, 1.0))))
    held = replace(fit, draws=tree)
    return published_against_ours(PaperFits(fit, held, held, validation(fit.study, LEFT_OUT), {}))


def test_every_figure_of_a_simulated_study_has_a_truth_or_says_why_it_has_none(all_simulated, known_fit):
    table = all_simulated
    ours = table["ours"].notna()
    assert ours.sum() > 100
    assert (table["true"].notna() ^ (table["no_truth"] != ""))[ours].all(), table[
        ours & table["true"].isna() & (table["no_truth"] == "")
    ][["quantity", "subject"]]
    assert (table.loc[~ours, "no_truth"] == "").all()
    shown = readable_figures(table).set_index("figure")["none"]
    assert shown["mae: compute law, one fit a family"].startswith("truth: ")
    real = published_against_ours(PaperFits(known_fit(500), None, None, None, dict.fromkeys(
        ("pooled", "no_decay", "left_out"), "not made")))  # fmt: skip
    assert (real["no_truth"] == "").all()


def test_the_true_error_of_losses_is_that_of_their_law(all_simulated):
    rows = all_simulated[all_simulated["analysis"] == "loss"].set_index("subject")
    # What is simulated strays from the law by 2 % of one logged loss, which smoothing makes less.
    assert 0.001 < rows.at["capability law, one fit", "true"] < 0.02
    assert rows.at["capability law, one fit", "true"] == pytest.approx(
        rows.at["capability law, one fit", "ours"], rel=0.5
    )
    assert np.isnan(rows.at["compute law, one fit a family", "true"])


def test_the_true_coverage_is_that_of_the_true_law_on_the_same_runs(all_simulated, simulated_fit):
    own = all_simulated[all_simulated["analysis"] == "leave-one-family-out"]
    own = own.set_index(["quantity", "subject"])
    study = simulated_fit.study
    rows = validation(study, LEFT_OUT).rows
    law = true_accuracy(study, rows["backbone"], rows["volume"], rows["recipe"], with_backbone_effect=False)
    random = np.random.default_rng(0)
    truth = study.truth
    off = truth["tau"] * random.standard_normal(400_000) + truth["sigma"] * random.standard_t(
        truth["nu"], 400_000
    )
    assert _half_width(truth["tau"], truth["sigma"], truth["nu"], 0.95) == pytest.approx(
        np.quantile(np.abs(off), 0.95), rel=0.01
    )
    within = np.abs(rows["accuracy"] - law) <= np.quantile(np.abs(off), 0.95)
    for family in LEFT_OUT:
        share = within[rows["family"] == family].mean()
        assert own.at[("covered", f"{family}; 95 % nominal"), "true"] == pytest.approx(share)
        assert own.at[("within_band", family), "true"] == (share == 1)


@pytest.mark.parametrize(("tau", "sigma", "nu"), [(0.0, 0.01, 4.0), (0.01, 0.0, 4.0), (0.01, 0.002, None)])
def test_the_width_of_a_true_band_without_one_of_its_parts(tau, sigma, nu):
    expected = norm.ppf(0.975) * np.hypot(tau, sigma) if tau else sigma * student_t.ppf(0.975, nu)
    assert _half_width(tau, sigma, nu, 0.95) == pytest.approx(expected, rel=1e-6)


def test_a_true_optimum_is_that_of_the_simulated_losses(simulated_fit):
    losses = cdm.simulate_batch_losses(simulated_fit.study, backbone_scale=0.0)
    names = losses["backbone"].unique()
    optimum = pd.DataFrame(losses.attrs["optimum"])
    expected = losses.attrs["intercept"] + 15.0 * true_composite(
        simulated_fit.study, names, optimum["volume"].unique()
    )
    assert expected.ravel() == pytest.approx(optimum["log2_batch"].to_numpy())


def test_rates_that_rest_on_the_prior_or_on_one_backbone_are_marked(known_fit):
    """The known prior is twice as wide as the posterior; one backbone of G has two volumes."""
    table = published_against_ours(PaperFits(known_fit(500), None, None, None, dict.fromkeys(
        ("pooled", "no_decay", "left_out"), "not made")))  # fmt: skip
    codes = table.set_index(["quantity", "subject"])["rests_on"]
    assert codes["Bm", "instruct"] == "few-volumes (1 backbone), one-backbone"
    assert codes["B0", "base"] == ""
    assert codes["A", "base"] == ""
    fit = known_fit(500)
    wide = fit.draws.copy()
    wide["prior"] = fit.draws["posterior"].copy()
    same = replace(fit, draws=wide)
    table = published_against_ours(PaperFits(same, None, None, None, dict.fromkeys(
        ("pooled", "no_decay", "left_out"), "not made")))  # fmt: skip
    codes = table.set_index(["quantity", "subject"])["rests_on"]
    assert codes["A", "base"].startswith("prior-dominated (1.00)")


def test_lambda_is_compared_at_the_published_length(table):
    own = table[table["quantity"] == "lambda"]
    assert len(own) == 40
    assert np.linalg.norm(own["ours"]) == pytest.approx(np.linalg.norm(own["published"]))
    assert own["true"].to_numpy() == pytest.approx(own["published"].to_numpy(), abs=1e-9)


def test_the_fits_that_did_not_converge_are_named(known_fit, capsys, monkeypatch):
    fit = known_fit(500)
    apart = fit.posterior["A"].to_numpy() + np.array([0.0, 1.0])[:, None, None, None]
    unmixed = held_out(known_fit, A=(("family", "variant"), apart))
    failed = Note(
        "not-converged", "NOT CONVERGED: 1 of 3 refits (Qwen2): largest R-hat 1.02", "warning", "folds"
    )
    left_out = SimpleNamespace(notes=(failed, Note("not-evaluable", "1 of 3 held-out runs")))
    fits = PaperFits(fit, unmixed, None, left_out, {})
    first, second = map(str, fits.notes)
    assert first.startswith(
        "warning [not-converged] the paper's law without the largest models: NOT CONVERGED"
    )
    assert "Qwen2" in second and not fits.converged
    bare = replace(fits, left_out=None, why_none={"no_decay": "not made", "left_out": "not made"})
    table = published_against_ours(bare)
    assert not table.attrs["converged"] and table.attrs["warnings"][0] == first
    monkeypatch.setattr(importlib.import_module("bayescdm.paper"), "fit_paper", lambda *_, **__: bare)
    result = CliRunner().invoke(cli.app, ["paper", "open-vlm"])
    assert result.exit_code == 3 and first in result.stderr


def test_what_a_real_study_cannot_carry_is_said_plainly(known_fit):
    """A study made by hand: no text benchmark of the paper, none of its families, no 72B model."""
    fits = PaperFits(
        known_fit(500), held_out(known_fit), None, None, {"no_decay": "why 1", "left_out": "why 2"}
    )
    table = published_against_ours(fits)
    why = (
        table[table["published"].notna() | table["analysis"].eq("batch-size")]
        .groupby("analysis")["cannot"]
        .agg(lambda reasons: set(reasons) - {""})
    )
    assert why["transfer-coefficients"] == {"none of the study's text benchmarks is in Table 7"}
    assert why["ablation"] == {"why 1"}
    assert why["leave-one-family-out"] == {"why 2"}
    assert "72B" in " ".join(why["absorption"])
    assert "not public" in " ".join(why["batch-size"] | why["loss"])
    assert table.query("analysis == 'absorption'")["ours"].notna().sum() == 1
    transfer = " ".join(why["transfer"])
    assert "12.5B tokens" in transfer
    assert "samples" in transfer
    families = table[table["analysis"] == "families"].groupby("subject")["cannot"].first()
    assert families["Falcon3"] == "the study has no backbone of Falcon3"


def test_a_family_without_runs_is_not_called_absent():
    study = cdm.load_study("open-vlm")
    assert _no_family(study, "Falcon3") == "Falcon3: 8 backbones, 8 scored, no run on a scored one"
    assert _no_family(study, "Llama-9") == (
        "the study has no backbone of Llama-9 (it has Llama-2, Llama-3, Llama-3.1, Llama-3.2)"
    )


def test_72b_models_that_are_held_out_beside_others_have_their_own_figure(known_fit):
    """As in published figures, where a third large model is held out with them."""
    names = {"f-base": "Qwen/Qwen2.5-72B", "f-instruct": "Qwen/Qwen2.5-72B-Instruct"}
    made = known_fit(300)
    weights = np.where(made.study.runs["recipe"] == "wide", 1.0, 0.0)
    fit = known_fit(300, weights=weights)
    study = replace(
        fit.study,
        text_scores=fit.study.text_scores.rename(names),
        backbones=fit.study.backbones.rename(names),
        runs=fit.study.runs.replace({"backbone": names}),
    )
    constant = fit.draws["constant_data"].to_dataset()
    labels = [names.get(name, name) for name in constant["backbone"].to_numpy()]
    tree = fit.draws.copy()
    for group in ("constant_data", "posterior", "prior"):
        tree[group] = xr.DataTree(fit.draws[group].to_dataset().assign_coords(backbone=labels))
    renamed = replace(fit, draws=tree, study=study, capability=cdm.fit_capability(study, components=2))
    table = published_against_ours(
        PaperFits(renamed, renamed, None, None, {"no_decay": "x", "left_out": "x"})
    )
    own = table.query("analysis == 'absorption'").set_index("subject")
    assert own.at["Qwen2.5-72B, both", "cannot"] == ""
    assert own.index.str.startswith("all held out").sum() == 1


def test_figures_up_to_8b_are_of_such_models(simulated_fit):
    """Of the simulated roster four models have 9B or 10B, and two 30B parameters."""
    fit = simulated_fit
    runs = fit.study.fitted_runs
    large = fit.study.backbones["params"].reindex(runs["backbone"]).to_numpy() > 4e10
    constant = fit.draws["constant_data"].to_dataset()
    tree = fit.draws.copy()
    tree["constant_data"] = xr.DataTree(constant.assign(weight=("run", np.where(large, 0.0, 1.0))))
    held = replace(fit, draws=tree)
    table = cdm.compare_decay({"with Bm": held, "without Bm": held}).set_index(["law", "subject"])
    assert table.at[("with Bm", "fitted"), "backbones"] == 32
    assert table.at[("with Bm", "fitted, up to 8B"), "backbones"] == 26
    S = fit.posterior["S"].mean(("chain", "draw"))
    params = fit.study.backbones["params"]
    small = S.sel(backbone=[n for n in S["backbone"].to_numpy() if params[n] <= 8e9])
    assert table.at[("with Bm", "fitted, up to 8B"), "S_max"] == pytest.approx(float(small.max()))


def test_readers_see_their_units_and_one_line_a_reason(table, fits, known_fit):
    readable = readable_figures(table)
    assert list(readable) == [column.source for column in figure_columns(0.9)]
    row = readable.set_index("figure").loc["B0: Falcon3"]
    assert (row["published"], row["unit"]) == ("1.12", "points per ln D")
    bare = published_against_ours(PaperFits(known_fit(500), None, None, None, dict.fromkeys(
        ("pooled", "no_decay", "left_out"), "not made")))  # fmt: skip
    lines = readable_figures(bare).set_index("analysis")
    assert lines.at["transfer-coefficients", "figure"] == "40 published figures"
    assert len(readable_figures(bare)) < 50


def test_a_fit_of_another_study_is_refused(known_fit, simulated_fit):
    with pytest.raises(RequestError, match="the fit is of made by hand"):
        cdm.fit_paper(simulated_fit.study, fit=known_fit(50))


def test_a_fit_of_one_law_for_all_is_refused_in_one_line(one_law):
    with pytest.raises(ModelError, match="one set of rates for all families: give a partially pooled fit"):
        cdm.fit_paper(one_law.study, fit=one_law)


def test_seeds_are_checked_before_work_begins(fits):
    for seed in (-1, 1.5):
        with pytest.raises(RequestError, match="whole number"):
            cdm.fit_paper("no such study is looked for", seed=seed)
        with pytest.raises(RequestError, match="whole number"):
            published_against_ours(fits, seed=seed)
    assert CliRunner().invoke(cli.app, ["paper", "--seed", "-1"]).exit_code == 2


def test_what_fails_is_kept_as_a_reason(known_fit, monkeypatch):
    """No backbone is larger than 40B: nothing can be held out, and the other analyses go on."""
    fit = known_fit(100)
    said = []
    fits = cdm.fit_paper(fit.study, fit=fit, families=False, report=said.append)
    assert fits.pooled is None
    assert "40B" in fits.why_none["pooled"]
    assert len(said) == 2


def test_command_prints_the_table_once_as_json_and_as_text(monkeypatch, fits, table, tmp_path):
    paper = importlib.import_module("bayescdm.paper")
    monkeypatch.setattr(paper, "fit_paper", lambda *_, **__: fits)
    monkeypatch.setattr(paper, "published_against_ours", lambda *_, **__: table)
    text = CliRunner().invoke(cli.app, ["paper"])
    assert text.exit_code == 0, text.output
    assert "40" in text.stdout
    assert "simulated" in text.stdout
    out = tmp_path / "figures.csv"
    found = CliRunner().invoke(cli.app, ["paper", "--json", "--out", str(out)])
    document = json.loads(found.stdout)
    assert document["facts"]["simulated"] is True
    assert len(document["rows"]) == len(pd.read_csv(out))
    assert CliRunner().invoke(cli.app, ["paper", "--out", str(out)]).exit_code == 1
    assert CliRunner().invoke(cli.app, ["paper", "no-such-study"]).exit_code == 1
