"""Commands loss and allocate: what is asked is answered with its scope, what cannot be is refused."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayescdm import cli
from bayescdm.loss.components import with_capability
from bayescdm.loss.packaged import chinchilla_points, openclip_points
from bayescdm.loss.scope import CHINCHILLA_SCOPE
from bayescdm.loss.simulate import simulate_losses


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(cli.app, list(arguments))


@pytest.fixture
def logs(tmp_path):
    study = simulate_losses("compute", log_every=500)
    study.points.drop(columns="volume").to_csv(tmp_path / "logs.csv", index=False)
    described = study.runs[["family", "params"]].assign(tokens_per_step=12.5e9 / 12_000)
    described.to_csv(tmp_path / "runs.csv")
    return tmp_path / "logs.csv"


def test_preset_answers_at_once_with_scope_and_flags(run):
    result = run("allocate", "--flops", "1e24", "--preset", "chinchilla")
    assert result.exit_code == 0
    for part in (
        "EXTRAPOLATION",
        "text loss",
        "0.4516",
        "MassiveText",
        "other-approaches",
        "serving-not-counted",
    ):
        assert part in result.stdout


def test_json_is_the_allocation_alone(run):
    result = run("allocate", "--flops", "1e21", "--preset", "chinchilla", "--size", "7B", "--json")
    answer = json.loads(result.stdout)
    assert answer["optimum"]["exponent_tokens"]["value"] == pytest.approx(0.548, abs=5e-4)
    assert answer["sizes"][0]["params"] == 7e9
    assert len(answer["curve"]) == 82
    assert answer["scope"]["metric"] == "text loss"
    assert not answer["extrapolation"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "7"], "write 7B or 7e9"),
        (["--metric", "MMMU"], "cannot be read off a law of text loss"),
        (["--preset", "gopher"], "chinchilla"),
        (["--preset", "chinchilla", "--fit", "x.nc"], "not both"),
        (["--tokens-served", "many"], "many"),
    ],
)
def test_mistakes_are_one_line_and_status_1_before_any_sampling(run, arguments, message):
    result = run("allocate", "--flops", "1e21", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--size", "0"], "--size 0 is not above 0"),
        (["--size", "7"], "--size 7 is not an absolute count"),
        (["--tokens-served", "-5"], "--tokens-served -5 is not above 0"),
        (["--tokens-served", "1e30"], "--tokens-served 1e30 is beyond any count"),
        (["--family", "X"], "--family belongs to --fit"),
        (["--page", "x.txt"], "--page x.txt: give a name that ends in .html"),
        (["--page", "x.html", "--out", "x.html"], "--out x.html: give a name that ends in .csv"),
    ],
)
def test_what_would_be_ignored_or_means_nothing_is_refused_by_its_option(
    run, arguments, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    result = run("allocate", "--flops", "1e21", "--preset", "chinchilla", *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chinchilla", "--point", "--scope", "metric=VQA accuracy"], "it is known (text loss)"),
        (["chinchilla", "--out", "x.nc", "--scope", "metric=VQA accuracy"], "it is known (text loss)"),
        (["chinchilla", "--point", "--window", "3"], "--window belongs to training logs"),
        (["openclip", "--point", "--runs", "x.csv", "--first-step", "5"], "--runs, --first-step belong to"),
        (["mixed-modal", "--point", "--scope", "metric=x"], "--scope belongs to training logs"),
        (["simulated", "--column", "loss=nll"], "--column belongs to training logs"),
        (["openclip", "--point", "--law", "chinchilla"], "would pool them"),
        (["chinchilla", "--resamples", "5"], "--resamples belongs to --point"),
        (["chinchilla", "--point", "--prob", "1.5"], "1.5 is not between 0 and 1"),
        (["simulated", "--compare", "--out", "x.nc"], "leave out --point, --out, --law"),
    ],
)
def test_a_loss_law_is_not_fitted_when_an_option_would_be_ignored_or_untrue(run, arguments, message):
    result = run("loss", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(("option", "value"), [("--window", "-1"), ("--first-step", "-5")])
def test_a_negative_step_of_the_preparation_is_one_line(run, logs, option, value):
    result = run("loss", str(logs), "--point", option, value)
    assert result.exit_code == 1
    assert f"{value} is" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert run("loss", str(logs), "--point", "--resamples", "-5").exit_code == 2


def test_the_points_have_their_own_range_and_the_preset_that_of_the_study():
    own = chinchilla_points()
    assert own.scope.ranges == {
        "params": (own.params.min(), own.params.max()),
        "volume": (own.volume.min(), own.volume.max()),
    }
    assert own.scope.ranges != CHINCHILLA_SCOPE.ranges
    assert own.scope.is_of_the_same_study(CHINCHILLA_SCOPE)
    assert not own.scope.is_of_the_same_study(openclip_points().scope)
    # Tokens that only the study's own statement covers, and tokens that only the points cover.
    both = np.array([4e11, 1e9])
    assert own.scope.extrapolates(params=1e9, volume=both).tolist() == [True, False]
    assert CHINCHILLA_SCOPE.extrapolates(params=1e9, volume=both).tolist() == [False, True]


def test_page_and_curve_are_written_once(run, tmp_path):
    page, curve = tmp_path / "explorer.html", tmp_path / "curve.csv"
    asked = [
        "allocate",
        "--flops",
        "1e21",
        "--preset",
        "chinchilla",
        "--page",
        str(page),
        "--out",
        str(curve),
    ]
    assert run(*asked).exit_code == 0
    assert "Compute allocation explorer" in page.read_text()
    assert {"params", "tokens", "loss", "extrapolation"} <= set(pd.read_csv(curve))
    again = run(*asked)
    assert again.exit_code == 1
    assert "exists already" in again.stderr
    assert run(*asked, "--overwrite").exit_code == 0


def test_plots_are_written_into_a_new_folder(run, tmp_path):
    folder = tmp_path / "plots"
    assert run("allocate", "--flops", "1e21", "--preset", "chinchilla", "--plots", str(folder)).exit_code == 0
    assert {path.name for path in folder.iterdir()} == {"loss_curve.png", "iso_flop.png", "iso_loss.png"}


def test_point_fit_of_the_packaged_points(run):
    result = run("loss", "chinchilla", "--point", "--json")
    answer = json.loads(result.stdout)["Chinchilla"]
    assert answer["objective"] == pytest.approx(0.0010183, abs=1e-6)
    assert answer["scope"]["data_distribution"] == "MassiveText"


def test_point_fit_of_contrastive_models_has_a_law_for_each_training_set_and_one_scope(run):
    result = run("loss", "openclip", "--point")
    assert result.exit_code == 0, result.stderr
    for part in ("LAION-80M\nbeta ", "LAION-2B\nbeta ", "CLIP-WIT\nbeta ", "[optimum-at-bound] ln floor"):
        assert part in result.stdout
    assert result.stdout.count("ImageNet zero-shot error (fraction)") == 1
    refused = run("loss", "openclip", "--point", "--law", "contrastiv")
    assert refused.exit_code == 1
    assert refused.stderr.strip() == "loss law 'contrastiv' is not known; did you mean 'contrastive'?"


def test_users_logs_are_read_prepared_and_fitted_by_family(run, logs):
    result = run("loss", str(logs), "--law", "compute", "--point", "--resamples", "3", "--prob", "0.8")
    assert result.exit_code == 0
    for part in ("Falcon3", "Llama-3.2", "early-steps-dropped", "smoothed", "bootstrap_upper_80", "few-runs"):
        assert part in result.stdout


def test_users_state_what_their_runs_were(run, logs):
    stated = ["--scope", "metric=validation loss", "--scope", "data_distribution=LLaVA mix"]
    result = run("loss", str(logs), "--point", *stated)
    assert result.exit_code == 0, result.stderr
    assert "metric             validation loss" in result.stdout
    assert "LLaVA mix" in result.stdout
    assert "did you mean 'metric'" in run("loss", str(logs), "--point", "--scope", "metrics=x").stderr


def test_steps_of_the_preparation_can_be_left_out(run, logs):
    result = run("loss", str(logs), "--point", "--first-step", "0", "--window", "0")
    assert "early-steps-dropped" not in result.stdout
    assert "smoothed" not in result.stdout


def test_capability_law_without_text_scores_says_what_to_do(run, logs):
    result = run("loss", str(logs), "--law", "capability", "--point")
    assert result.exit_code == 1
    assert "give text scores, or fit the compute law" in result.stderr


def test_text_scores_give_runs_their_capability(run, logs):
    study = simulate_losses("compute", log_every=500)
    rng = np.random.default_rng(0)
    scores = pd.DataFrame(rng.uniform(20, 70, (12, 4)), study.runs.index, ["BBH", "IFEval", "GPQA", "MATH"])
    table = study.runs.assign(variant=["base", "instruct"] * 6, params=study.runs["params"].astype(int))
    table = table.drop(columns="backbone").join(scores).rename_axis("backbone")
    table.to_csv(logs.parent / "text_scores.csv")
    arguments = ["--text-scores", str(logs.parent / "text_scores.csv"), "--point"]
    result = run("loss", str(logs), *arguments)
    assert result.exit_code == 0, result.stderr
    assert "7 parameters" in result.stdout or "8 parameters" in result.stdout


def test_components_are_those_of_the_text_scores():
    study = simulate_losses(log_every=2000)
    rng = np.random.default_rng(0)
    scores = pd.DataFrame(rng.uniform(0.2, 0.7, (12, 4)), study.runs.index, list("abcd"))
    scores.iloc[0, 0] = np.nan
    told = with_capability(study, scores, components=2)
    assert told.components.shape == (12, 2)
    assert list(told.components.index) == list(study.runs.index)
    assert "incomplete-text-scores" in {n.code for n in told.notes}


def test_titles_are_given_as_pairs(run, logs):
    result = run("loss", str(logs), "--point", "--column", "loss")
    assert result.exit_code == 1
    assert "NAME=TITLE" in result.stderr
