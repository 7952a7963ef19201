"""Exact refits: what is held out has no say, and predictions are those that a user gets."""

import importlib
import json
import signal
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pymc as pm
import pytest
from typer.testing import CliRunner

import bayescdm as cdm
from bayescdm.cli import app
from bayescdm.errors import NotFoundError, RequestError
from bayescdm.fit import Diagnosis, Fit
from bayescdm.identify import prior_dominated
from bayescdm.modelfiles import load_model
from bayescdm.sampling import DEFAULTS, LONGER, CompiledModel, SamplerSettings, prior_draws
from bayescdm.simulate import simulate_from
from bayescdm.validate import (
    REFIT_SETTINGS,
    Fold,
    components_without,
    make_folds,
    prepare_refits,
    readable_scores,
    run_predictive,
)
from bayescdm.validate.judge import score_fold, summarise_rows
from bayescdm.validate.rivals import compare_predictors
from bayescdm.validate.validation import Validation, validate

QUICK = SamplerSettings(draws=300, tune=300, chains=2, target_accept=0.9)


@pytest.fixture(scope="module")
def study():
    """Simulated: three recipes (one of unknown volume, one with a single run), gaps in the text scores."""
    study = simulate_from(3, n_families=3, backbones_per_cell=2, n_recipes=2, volumes=(1e9, 1e10),
                          n_text_benchmarks=8, missing_text=0.05)  # fmt: skip
    runs = study.runs.copy()
    runs.loc[runs["recipe"] == "simulated recipe 2", "volume"] = np.nan
    runs = runs[~runs.duplicated(["recipe", "backbone", "volume"])]
    alone = runs.iloc[[0]].assign(recipe="a recipe of one run").rename(index=lambda label: f"{label} alone")
    runs = pd.concat([runs, alone])
    runs["standard_error"] = np.where(np.arange(len(runs)) % 3 == 0, 0.004, np.nan)
    return replace(study, runs=runs)


@pytest.fixture(scope="module")
def refitter(study):
    return prepare_refits(
        study, load_model("transfer_hierarchical"), components_without(study, components=2), settings=QUICK
    )


@pytest.fixture(scope="module")
def family_fold(study):
    return make_folds(study, "family")[0]


@pytest.fixture(scope="module")
def without_family(refitter, family_fold):
    return refitter.refit(family_fold)


# --- folds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["family", "recipe", "backbone"])
def test_every_run_is_held_out_exactly_once(study, by):
    folds = make_folds(study, by)
    assert (np.sum([fold.held_out for fold in folds], axis=0) == 1).all()


def test_runs_placed_by_size_are_held_out_with_their_family():
    study = cdm.load_dataset("open-vlm").with_unscored("by_size")
    placed = study.backbones.loc[study.placed_by_size.intersection(study.runs["backbone"].unique())]
    folds = {fold.label: fold for fold in make_folds(study, "family")}
    assert set(placed["family"]) <= set(folds)
    for fold in folds.values():
        family = study.fitted_runs["backbone"].map(study.backbones["family"])
        np.testing.assert_array_equal(fold.held_out, family == fold.label)
    large = make_folds(study, "size", cut=20e9)[0]
    np.testing.assert_array_equal(
        large.held_out, study.fitted_runs["backbone"].map(study.backbones["params"]) > 20e9
    )


def test_a_cut_in_size_separates_large_from_small(study):
    (fold,) = make_folds(study, "size", cut=1e9)
    params = study.backbones["params"].loc[study.fitted_runs["backbone"]].to_numpy()
    assert params[fold.held_out].min() > 1e9 >= params[~fold.held_out].max()
    assert set(fold.unseen) == set(study.backbones.index[study.backbones["params"] > 1e9])


def test_nothing_left_to_fit_or_to_predict_is_refused(study):
    with pytest.raises(RequestError, match="no run is left"):
        make_folds(study, "size", cut=1.0)
    with pytest.raises(RequestError, match="no run is held out"):
        make_folds(study, "size", cut=1e15)
    with pytest.raises(NotFoundError, match="did you mean"):
        make_folds(study, "holdout", holdout=["F1-0.5B-bas"])
    with pytest.raises(RequestError, match="holdout"):
        make_folds(study, "family", holdout=["F1-0.5B-base"])
    with pytest.raises(RequestError, match="none of"):
        make_folds(study, "famliy")  # type: ignore[arg-type]


def test_recipes_do_not_touch_the_components_and_families_do(study):
    assert all(fold.unseen == () for fold in make_folds(study, "recipe"))
    without = components_without(study, components=2)
    kept = components_without(study, components=2, refit=False)
    unseen = make_folds(study, "family")[0].unseen
    assert not set(without(unseen).fitted_on) & set(unseen)
    assert set(without(unseen).scores.index) == set(study.scored)
    assert kept(unseen) is kept(())


# --- refits -----------------------------------------------------------------------------------------


def test_held_out_runs_have_no_say(refitter, family_fold, without_family, study):
    """Other accuracies of the held-out family leave every draw as it was, to the bit."""
    accuracy = study.fitted_runs["accuracy"].to_numpy().copy()
    accuracy[family_fold.held_out] = 0.99
    other = replace(refitter, compiled=refitter.compiled.refit(accuracy=accuracy))
    again = other.refit(family_fold)
    for name in without_family.posterior:
        assert np.array_equal(without_family.posterior[name], again.posterior[name]), name


def test_predictions_of_runs_equal_the_density_inside_the_model(refitter, family_fold, without_family, study):
    """All runs, held out or not, volume known or not, with and without a standard error."""
    weight = np.ones(len(study.fitted_runs))
    with refitter.masked(family_fold)[0].refit(weight=weight).model_of_data():
        inside = pm.compute_log_likelihood(
            without_family.draws, extend_inferencedata=False, progressbar=False
        )
    inside = inside["accuracy"].stack(sample=("chain", "draw")).transpose("run", "sample").to_numpy()
    runs = study.fitted_runs
    outside = run_predictive(without_family, runs).log_density(runs["accuracy"].to_numpy())
    assert np.allclose(outside, inside, rtol=1e-8, atol=1e-8)


def test_rates_of_a_held_out_family_are_draws_of_the_population(without_family, family_fold, study):
    posterior = without_family.posterior
    family = study.backbones.at[family_fold.unseen[0], "family"]
    deviation = posterior["A_family_offset"].sel(family=family).to_numpy().ravel()
    assert abs(deviation.mean()) < 0.2
    assert deviation.std() == pytest.approx(1.0, abs=0.15)
    informed = posterior["A_family_offset"].drop_sel(family=family).std(("chain", "draw"))
    assert (informed < 1.0).any()


def test_finished_refits_are_read_and_not_repeated(refitter, family_fold, without_family, tmp_path):
    stored = replace(refitter, store=tmp_path)
    first = stored.refit(family_fold)
    (path,) = tmp_path.glob("*.nc")
    written = path.stat().st_mtime_ns
    second = stored.refit(family_fold)
    assert path.stat().st_mtime_ns == written
    for fit in (first, second):
        assert np.array_equal(fit.posterior["A"], without_family.posterior["A"])
    other = replace(
        stored, compiled=refitter.compiled.refit(accuracy=refitter.compiled.data.accuracy + 0.001)
    )
    other.refit(family_fold)
    assert len(list(tmp_path.glob("*.nc"))) == 2, "other data must not find the stored refit"


def test_a_refit_that_does_not_converge_is_sampled_again_for_longer(refitter, family_fold, monkeypatch):
    asked = []
    real = CompiledModel.sample

    def sample(self, *, seed, settings):
        asked.append(settings)
        return real(self, seed=seed, settings=SamplerSettings(draws=20, tune=50, chains=2))

    monkeypatch.setattr(CompiledModel, "sample", sample)
    replace(refitter, settings=REFIT_SETTINGS).refit(family_fold)
    assert asked == [REFIT_SETTINGS, DEFAULTS]
    asked.clear()
    replace(refitter, settings=QUICK).refit(family_fold)
    assert asked == [QUICK], "settings of one's own are kept"
    for diverged, expected in ((0, [DEFAULTS, LONGER]), (3, [DEFAULTS])):
        asked.clear()
        worst = {"r_hat": "A", "ess_bulk": "A", "ess_tail": "A"}
        found = Diagnosis(diverged, 1.02, 900, 900, worst, draws=100)
        monkeypatch.setattr(Fit, "diagnose", lambda _, found=found: found)
        replace(refitter, settings=DEFAULTS).refit(family_fold)
        assert asked == expected


def test_at_one_volume_absorption_keeps_its_prior_and_a_warning_says_so(refitter, study):
    """No slope on ln D is made up: B0 and Bm at one known volume are draws of their prior."""
    runs = study.fitted_runs
    known = (runs["recipe"] == "simulated recipe 1").to_numpy(float)
    at_one = refitter.compiled.refit(weight=known, log_volume=np.zeros(len(runs)))
    long = SamplerSettings(draws=1000, tune=500, chains=2, target_accept=0.95)
    posterior = at_one.sample(seed=3, settings=long)["posterior"].to_dataset()
    prior = prior_draws(refitter.compiled.model, 2000, seed=3)
    for name in ("log_B0", "log_Bm"):
        assert float(posterior[name].std()) == pytest.approx(float(prior[name].std()), rel=0.2)
        assert float(posterior[name].mean()) == pytest.approx(float(prior[name].mean()), abs=0.2)
    notes = prior_dominated(posterior, prior)
    assert any(n.severity == "warning" and "B0_population" in n.message for n in notes)
    assert not any("A_population" in n.message for n in notes if n.severity == "warning")


# --- scores -----------------------------------------------------------------------------------------


def test_runs_of_a_recipe_of_their_own_do_not_count(without_family, family_fold):
    rows, log_densities = score_fold(without_family, family_fold, by="family", seed=0)
    alone = rows["recipe"] == "a recipe of one run"
    assert alone.sum() == 1
    assert (rows["evaluable"] == (~alone).astype(int)).all()
    scores = summarise_rows(rows, log_densities)
    assert scores["evaluable"] == scores["runs"] - 1
    assert scores["elpd"] == pytest.approx(rows.loc[~alone, "log_density"].sum())
    assert scores["mae"] == pytest.approx((rows["median"] - rows["accuracy"])[~alone].abs().mean())


def test_intervals_nest_and_pit_agrees_with_them(without_family, family_fold):
    rows, _ = score_fold(without_family, family_fold, by="family", seed=0)
    for inner, outer in ((50, 80), (80, 95)):
        assert (rows[f"run_{inner}_lower"] > rows[f"run_{outer}_lower"]).all()
        assert (rows[f"run_{inner}_upper"] < rows[f"run_{outer}_upper"]).all()
    inside = rows["accuracy"].between(rows["run_80_lower"], rows["run_80_upper"])
    far = (rows["pit"] - 0.1).abs().gt(0.03) & (rows["pit"] - 0.9).abs().gt(0.03)
    assert (inside == rows["pit"].between(0.1, 0.9))[far].all()


def test_a_new_recipe_is_as_uncertain_as_recipes_differ(refitter, study):
    """Held out, a recipe's baseline is that of a new one: wider than under a recipe with runs."""
    fold = next(f for f in make_folds(study, "recipe") if f.label == "simulated recipe 2")
    rows, _ = score_fold(refitter.refit(fold), fold, by="recipe", seed=0)
    assert (rows["recipe_known"] == 0).all()
    assert (rows["evaluable"] == 1).all()
    all_runs = refitter.refit(Fold("nothing", np.zeros_like(fold.held_out), ()))
    known = run_predictive(all_runs, study.fitted_runs[fold.held_out]).expected.std(axis=1)
    width = rows["run_80_upper"] - rows["run_80_lower"]
    assert (width.to_numpy() > 2 * 2.56 * known).all()


def test_validation_holds_trajectories_and_round_trips_to_json(study, refitter, monkeypatch, tmp_path):
    # Compiled already: what is compiled here is the same.
    module = importlib.import_module("bayescdm.validate.validation")
    monkeypatch.setattr(module, "prepare_refits", lambda *_, **__: refitter)
    validation = validate(study, by="holdout", holdout=["F1-10B-base", "F1-10B-instruct"])
    assert isinstance(validation, Validation)
    assert set(validation.rows["backbone"]) == {"F1-10B-base", "F1-10B-instruct"}
    lines = validation.trajectories
    assert set(lines["backbone"]) == set(validation.rows["backbone"])
    assert (lines["run_95_lower"] < lines["median"]).all()
    assert lines.groupby(["backbone", "recipe"])["volume"].apply(lambda v: v.is_monotonic_increasing).all()
    assert json.loads(json.dumps(validation.to_dict()))["scores"]["runs"] == len(validation.rows)
    shown = readable_scores(validation)
    assert shown["mae"].iloc[0] == pytest.approx(100 * validation.scores["mae"])
    assert shown["judged"].iloc[0] == f"{len(validation.rows)} of {len(validation.rows)}"
    validation.save(tmp_path)
    assert len(pd.read_csv(tmp_path / "rows.csv")) == len(validation.rows)
    with pytest.raises(RequestError, match="exists already"):
        validation.save(tmp_path)


def test_rivals_are_scored_on_the_same_runs_and_compared_pair_by_pair(study, refitter, monkeypatch):
    module = importlib.import_module("bayescdm.validate.rivals")
    monkeypatch.setattr(module, "prepare_refits", lambda *_, **__: refitter)
    names = ["transfer_hierarchical", "point fit ± 1.96 σ"]
    table = compare_predictors(study, by=["family"], predictors=names).set_index("predictor")
    assert table.attrs["simulated"] == 1
    assert table["evaluable"].nunique() == 1
    bayes, point = (table.loc[name] for name in names)
    assert bayes["crps_difference"] == 0
    assert point["crps_difference"] == pytest.approx(point["crps"] - bayes["crps"])
    assert point["crps_difference_se"] > 0


# --- command ----------------------------------------------------------------------------------------


def test_command_refuses_before_any_sampling():
    command = CliRunner()
    unknown = command.invoke(app, ["validate", "open-vlm", "--by", "famliy"])
    assert unknown.exit_code == 1
    assert "none of family" in unknown.output
    missing = command.invoke(app, ["validate", "open-vlm", "--holdout", "Qwen/Qwen2-8B"])
    assert missing.exit_code == 1
    assert "did you mean" in missing.output


@pytest.mark.parametrize(
    ("option", "place", "name"),
    [
        ((), "bayescdm.validate.validation", "prepare_refits"),
        (("--rivals",), "bayescdm.validate", "compare_predictors"),
    ],
)
def test_command_samples_as_often_as_asked(study, monkeypatch, option, place, name):
    seen = []

    def stop(*_, settings, **__):
        seen.append(settings)
        raise RequestError("far enough")

    monkeypatch.setattr(sys.modules["bayescdm.cli.validation"], "load", lambda *_, **__: study)
    monkeypatch.setattr(sys.modules[place], name, stop)
    result = CliRunner().invoke(app, ["validate", "here", *option, "--draws", "70", "--chains", "2"])
    assert result.exit_code == 1 and "far enough" in result.output
    assert seen == [replace(REFIT_SETTINGS, draws=70, chains=2)]


def test_command_says_by_its_status_whether_refits_converged(study, refitter, monkeypatch, tmp_path):
    module = importlib.import_module("bayescdm.validate.validation")
    monkeypatch.setattr(sys.modules["bayescdm.cli.validation"], "load", lambda *_, **__: study)
    monkeypatch.setattr(module, "prepare_refits", lambda *_, **__: refitter)
    asked = ["validate", "here", "--by", "size", "--cut", "5B", "--json", "--out", str(tmp_path / "new")]
    first = CliRunner().invoke(app, asked)
    answer = json.loads(first.stdout)
    assert first.exit_code == (0 if answer["converged"] else 3)
    assert answer["folds"][0]["fold"] == "more than 5B parameters"
    assert {path.name for path in (tmp_path / "new").glob("*.csv")} == {
        "rows.csv", "folds.csv", "trajectories.csv",
    }  # fmt: skip
    again = CliRunner().invoke(app, asked)
    assert again.exit_code == 1
    assert "exists already" in again.output


def test_command_goes_on_where_it_was_stopped(study, refitter, tmp_path, monkeypatch):
    """Three families, so three refits; Ctrl-C in the second of them."""
    monkeypatch.chdir(tmp_path)
    quick = replace(refitter, settings=SamplerSettings(draws=100, tune=100, chains=2))
    monkeypatch.setattr(sys.modules["bayescdm.cli.validation"], "load", lambda *_, **__: study)

    def prepared(*_, store, **__):
        store.mkdir(parents=True, exist_ok=True)
        return replace(quick, store=store)

    monkeypatch.setattr(sys.modules["bayescdm.validate.validation"], "prepare_refits", prepared)
    sampled = []
    real = CompiledModel.sample

    def sample(self, **options):
        sampled.append(options)
        if len(sampled) == 2:
            signal.raise_signal(signal.SIGINT)
        return real(self, **options)

    monkeypatch.setattr(CompiledModel, "sample", sample)
    asked = ["validate", "simulated", "--out", "there", "--json"]
    stopped = CliRunner().invoke(app, asked)
    assert stopped.exit_code == 130
    assert stopped.stdout == ""
    assert stopped.stderr.endswith(
        "stopped: finished refits are kept in there/refits; the same command goes on from there\n"
    )
    assert len(list((tmp_path / "there" / "refits").glob("*.nc"))) == 1
    assert not list((tmp_path / "there").glob("*.csv"))
    went_on = CliRunner().invoke(app, asked)
    assert went_on.exit_code in (0, 3), went_on.stderr
    assert len(sampled) == 2 + 2, "the finished refit must not be repeated"
    afresh = CliRunner().invoke(app, ["validate", "simulated", "--out", "elsewhere", "--json"])
    assert len(sampled) == 4 + 3
    assert json.loads(went_on.stdout) == json.loads(afresh.stdout)
    for table in ("rows", "folds", "trajectories"):
        first, second = (pd.read_csv(tmp_path / where / f"{table}.csv") for where in ("there", "elsewhere"))
        pd.testing.assert_frame_equal(first, second)
    page = (tmp_path / "there" / "validation.html").read_text(encoding="utf-8")
    assert "by-family" in page or "validation-family" in page
    standing = CliRunner().invoke(app, asked)
    assert standing.exit_code == 1 and "exists already" in standing.stderr
