"""A saved loss law predicts from the command line, at points of a table, with the scope of its fit."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from typer.testing import CliRunner

from bayescdm import cli
from bayescdm.loss.fit import LossFit, load_loss_fit
from bayescdm.loss.logs import prepare_logs
from bayescdm.loss.packaged import chinchilla_points, openclip_points
from bayescdm.loss.simulate import simulate_losses

COMPUTE = {"A": 400.0, "B": 400.0, "E": 1.7, "alpha": 0.34, "beta": 0.28}
CENTRES = {
    "chinchilla": (COMPUTE, ()),
    "loss_compute": (COMPUTE, ("family",)),
    "loss_compute_pooled": (COMPUTE, ("family",)),
    "loss_capability": ({**COMPUTE, "A": 0.4, "alpha": 1.4}, ()),
    "contrastive_power": ({"beta": 10.0, "alpha": -0.14, "floor": 0.05}, ("family",)),
}


def made_up(model, *, stuck=False):
    """A fit of a law whose draws are known; two chains that do not agree where it is stuck."""
    studies = {"chinchilla": chinchilla_points, "contrastive_power": openclip_points}
    study = studies.get(model, lambda: prepare_logs(simulate_losses(log_every=500)))()
    centres, dims = CENTRES[model]
    rng = np.random.default_rng(0)
    coords = {"chain": [0, 1], "draw": range(300), "family": study.families}
    if model == "loss_capability":
        coords["component"] = list(study.components)
    shape = (2, 300, *(len(coords[dim]) for dim in dims))
    values = {
        name: (("chain", "draw", *dims), centre * (1 + 0.01 * rng.normal(size=shape)))
        for name, centre in centres.items()
    }
    if model == "loss_capability":
        w = np.array([0.85, 0.45, -0.27]) + 0.01 * rng.normal(size=(2, 300, 3))
        values["w"] = (("chain", "draw", "component"), w / np.linalg.norm(w, axis=-1, keepdims=True))
    scatter = np.abs(0.004 + 0.0001 * rng.normal(size=(2, 300)))
    values |= {"sigma": (("chain", "draw"), scatter), "tau": (("chain", "draw"), scatter[::-1])}
    used = {dim for _, (own, *_) in values.items() for dim in own}
    posterior = xr.Dataset(values, {name: labels for name, labels in coords.items() if name in used})
    if stuck:
        posterior["E" if "E" in values else "floor"][0] += 1.0
    stats = xr.Dataset({"diverging": (("chain", "draw"), np.zeros((2, 300), dtype=bool))})
    tree = xr.DataTree.from_dict({"posterior": posterior, "sample_stats": stats, "prior": posterior})
    return LossFit(tree, study, model, {"seed": 1})


QUESTIONS = {
    "chinchilla": "params,tokens,name\n7B,140B,a\n70B,1.4T,b\n",
    "loss_compute": "family,params,volume\nFalcon3,7B,10B\nLlama-3.2,7B,10B\n",
    "loss_compute_pooled": "family,params,samples\nFalcon3,7e9,1e10\nLlama-3.2,7B,10B\n",
    "loss_capability": "backbone,tokens\nFalcon3-7B-Base,10B\nFalcon3-10B-Base,100B\n",
    "contrastive_power": "family,compute\nLAION-2B,1e12\nLAION-2B,1e14\n",
}


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(cli.app, list(map(str, arguments)))


@pytest.mark.parametrize("model", CENTRES)
def test_every_saved_law_predicts_with_its_scope_and_flags(run, tmp_path, model):
    fit = made_up(model)
    file = fit.save(tmp_path / "fit.nc")
    (tmp_path / "points.csv").write_text(QUESTIONS[model])
    result = run("loss", file, "--at", tmp_path / "points.csv", "--json")
    assert result.exit_code == 0, result.stderr
    answer = json.loads(result.stdout)
    told = pd.DataFrame(answer["predictions"])
    # The second point lies beyond the runs that speak about it.
    assert told["extrapolation"].tolist() == [False, True]
    assert answer["notes"][-1]["code"] == "extrapolation"
    assert answer["scope"] == json.loads(json.dumps(load_loss_fit(file).scope.to_dict()))
    predictors = told.drop(columns=["loss", "law_90_lower", "law_90_upper", "extrapolation"])
    expected = load_loss_fit(file).predict(predictors).table
    np.testing.assert_allclose(told["loss"], expected["loss"])
    printed = run("loss", file, "--at", tmp_path / "points.csv", "--kind", "run", "--prob", "0.8").stdout
    for part in ("run_80_lower", "metric ", "architecture ", "range of ", "warning [extrapolation] 1 of 2"):
        assert part in printed
    assert fit.describe() == run("loss", file).stdout.rstrip("\n")


@pytest.mark.parametrize("model", CENTRES)
def test_the_commands_named_after_saving_are_ones_that_run(run, tmp_path, monkeypatch, model):
    fit = made_up(model)
    study = fit.study if model in ("chinchilla", "contrastive_power") else None
    monkeypatch.setattr("bayescdm.loss.fit.fit_loss", lambda *_, **__: fit)
    folder = tmp_path / "a folder"
    folder.mkdir()
    logs = "simulated" if study is None else {"chinchilla": "chinchilla"}.get(model, "openclip")
    saved = run("loss", logs, "--out", folder / "fit.nc")
    assert saved.exit_code == 0, saved.stderr
    line = saved.stdout.splitlines()[-1]
    commands = [shlex.split(command) for command in re.findall(r"`bayescdm ([^`]+)`", line)]
    assert [command[0] for command in commands] == (
        ["allocate", "loss"] if "A" in CENTRES[model][0] and model != "loss_capability" else ["loss"]
    )
    (columns,) = re.findall(r"\(columns ([^)]+)\)", line)
    (tmp_path / "POINTS.csv").write_text(
        QUESTIONS[model].replace("tokens", "volume").replace("samples", "volume")
    )
    assert set(columns.split(",")) <= set(pd.read_csv(tmp_path / "POINTS.csv"))
    monkeypatch.chdir(tmp_path)
    for command in commands:
        result = run(*command)
        assert result.exit_code == 0, result.stderr


def test_a_backbone_that_was_not_fitted_is_asked_about_by_its_components(run, tmp_path):
    file = made_up("loss_capability").save(tmp_path / "fit.nc")
    (tmp_path / "points.csv").write_text("name,PC1,PC2,PC3,volume\nmine,0.1,0,0,10B\n")
    result = run("loss", file, "--at", tmp_path / "points.csv")
    assert result.exit_code == 0, result.stderr
    assert "mine" in result.stdout


def test_draws_that_did_not_converge_are_called_so_beside_every_prediction(run, tmp_path):
    file = made_up("chinchilla", stuck=True).save(tmp_path / "fit.nc")
    (tmp_path / "points.csv").write_text(QUESTIONS["chinchilla"])
    for arguments in ((), ("--at", tmp_path / "points.csv")):
        result = run("loss", file, *arguments)
        assert result.exit_code == 3
        assert "NOT CONVERGED" in result.stdout
    assert not json.loads(run("loss", file, "--at", tmp_path / "points.csv", "--json").stdout)["converged"]


@pytest.mark.parametrize(
    ("model", "table", "message"),
    [
        ("chinchilla", "params,volume\n7,140B\n", "row 2, column 'params': params 7 is not an absolute"),
        ("chinchilla", "params,volume\n7B,\n", "row 2, column 'volume': value ''"),
        ("chinchilla", "params,volume\n7B,140B\n\n7B,many\n", "row 4, column 'volume': value"),
        ("chinchilla", "params\n7B\n", "no column volume; needed are params, volume"),
        ("chinchilla", "params,volume,loss\n7B,140B,2\n", "column loss is what is predicted"),
        ("chinchilla", "params;volume\n7B;140B\n", "its columns are separated by semicolons"),
        ("chinchilla", "params,volume\n", "no row below the titles"),
        (
            "loss_compute",
            "family,params,volume\nQwen2,7B,140B\n",
            "row 2, column 'family': 'Qwen2' was not fitted",
        ),
        ("loss_capability", "backbone,volume\nQwen2,140B\n", "row 2, column 'backbone': 'Qwen2' was not"),
        ("contrastive_power", "family,compute\nLAION-2B,-1\n", "row 2, column 'compute': '-1' is not"),
        ("contrastive_power", "family,compute\nLAION-2B,x\n", "row 2, column 'compute': 'x' is not"),
    ],
)
def test_a_faulty_table_of_points_is_one_line_with_its_place(run, tmp_path, model, table, message):
    file = made_up(model).save(tmp_path / "fit.nc")
    (tmp_path / "points.csv").write_text(table)
    result = run("loss", file, "--at", tmp_path / "points.csv")
    assert result.exit_code == 1
    assert result.stderr.startswith("points.csv")
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(("arguments", "message"), [
    (["fit.nc", "--law", "compute"], "--law belongs to fitting, and fit.nc is fitted already"),
    (["fit.nc", "--window", "3", "--out", "y.nc"], "--window, --out belong to fitting"),
    (["fit.nc", "--kind", "run"], "--kind belongs to --at"),
    (["fit.nc"], "fit.nc: no such file"),
    (["chinchilla", "--at", "points.csv"], "--at belongs to a saved fit"),
    (["chinchilla", "--kind", "run"], "--kind belongs to a saved fit"),
])  # fmt: skip
def test_what_would_be_ignored_beside_a_saved_fit_is_refused(run, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = run("loss", *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1
