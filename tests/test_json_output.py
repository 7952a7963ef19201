"""Every command with --json prints one document of valid JSON on stdout, and nothing else."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import studies
import typer
import xarray as xr
from conftest import FITTED
from typer.testing import CliRunner

from bayescdm import cli

ROOT = Path(__file__).parents[1]


def with_likelihood(fit):
    """The fit with draws of a log likelihood, which comparisons of models need."""
    runs = {"run": list(fit.study.runs.index)}
    accuracy = fit.study.runs["accuracy"].to_numpy()
    shape = (fit.posterior.sizes["chain"], fit.posterior.sizes["draw"], len(accuracy))
    values = np.random.default_rng(0).normal(2, 0.01, shape)
    likelihood = xr.Dataset({"accuracy": (("chain", "draw", "run"), values)}, coords=runs)
    fit.draws["log_likelihood"] = xr.DataTree(likelihood)
    fit.draws["observed_data"] = xr.DataTree(xr.Dataset({"accuracy": ("run", accuracy)}, coords=runs))
    return fit


def fits_of(known_fit):
    """What makes the fits of the paper's analyses, of known draws, most of them missing."""
    from bayescdm.paper import PaperFits

    missing = dict.fromkeys(("pooled", "no_decay", "left_out"), "not made")
    return lambda *_, **__: PaperFits(known_fit(500), None, None, None, missing)


@pytest.fixture(scope="module")
def there(known_fit, tmp_path_factory):
    """A folder with a study, a fit, another fit, and candidates with a gap."""
    folder = tmp_path_factory.mktemp("json")
    studies.folder(folder / "study")
    with_likelihood(known_fit(500)).save(folder / "fit.nc")
    with_likelihood(known_fit(500)).save(folder / "other.nc")
    table = "backbone,family,variant,params,x,y,z\nfresh,N,,,40,-,45\nfresh,N,,,40,-,45\n"
    (folder / "mine.csv").write_text(table)
    sizes = [(b, v, s) for b in [*FITTED, "f-other"] for v in (3e4, 1e5) for s in (128, 256, 512, 1024)]
    losses = pd.DataFrame(sizes, columns=["backbone", "volume", "batch_size"])
    optimum = np.log2(losses["volume"]) / 2 + losses["backbone"].factorize()[0] / 9
    losses["loss"] = 2 + 0.01 * (np.log2(losses["batch_size"]) - 1 - optimum) ** 2
    losses.to_csv(folder / "losses.csv", index=False)
    (folder / "other.csv").write_text(
        "backbone,family,variant,params,x,y,z\nfresh,N,,,40,-,45\nf,F,,7B,40,-,45\n"
    )
    return folder


@pytest.fixture
def sampled(monkeypatch, known_fit):
    """Draws that are known where commands would sample."""
    monkeypatch.setattr(importlib.import_module("bayescdm.fit"), "fit", lambda *_, **__: known_fit(500))
    monkeypatch.setattr(importlib.import_module("bayescdm.paper"), "fit_paper", fits_of(known_fit))
    compiled = SimpleNamespace(data=SimpleNamespace(coords={"component": ["PC1", "PC2"]}))

    def refit(fold):
        return known_fit(500, weights=np.where(fold.held_out, 0.0, 1.0))

    known = SimpleNamespace(model="known", source_hash="", compiled=compiled, refit=refit)
    module = importlib.import_module("bayescdm.validate.validation")
    monkeypatch.setattr(module, "prepare_refits", lambda *_, **__: known)
    study = known_fit(10).study
    monkeypatch.setattr(sys.modules["bayescdm.cli.validation"], "load", lambda *_, **__: study)


COMMANDS = {
    "check": ("check", "study"),
    "check a packaged study": ("check", "open-vlm"),
    "check --fix": ("check", "study", "--fix", "OUT/cleaned"),
    "datasets": ("datasets",),
    "simulate": ("simulate", "--out", "OUT/simulated"),
    "fit": ("fit", "study", "--out", "OUT/new.nc"),
    "predict": ("predict", "fit.nc", "--volume", "1M", "--recipe", "new"),
    "predict candidates": ("predict", "fit.nc", "--volume", "1M", "--candidates", "mine.csv"),
    "compare families": ("compare", "fit.nc", "families"),
    "compare variants": ("compare", "fit.nc", "variants"),
    "compare backbones": ("compare", "fit.nc", "backbones", "--out", "OUT/backbones.csv"),
    "compare benchmarks": ("compare", "fit.nc", "benchmarks"),
    "compare models": ("compare", "fit.nc", "models", "--with", "other.nc"),
    "paper": ("paper", "study", "--no-families"),
    "report": ("report", "fit.nc", "--out", "OUT/page.html"),
    "choose": ("choose", "fit.nc", "--volume", "1M", "--next"),
    "choose candidates": ("choose", "fit.nc", "--candidates", "other.csv", "--max-size", "8B"),
    "report --family": ("report", "fit.nc", "--family", "F", "--format", "json", "--out", "OUT/family.json"),
    "report --family all": (
        "report",
        "fit.nc",
        "--family",
        "all",
        "--format",
        "json",
        "--out",
        "OUT/all.json",
    ),
    "validate": ("validate", "study", "--by", "backbone", "--out", "OUT/validation"),
    "batch": ("batch", "fit.nc", "losses.csv", "--volume", "1M"),
    "batch --compare": ("batch", "fit.nc", "losses.csv", "--compare"),
    "loss": ("loss", "chinchilla", "--point"),
    "allocate": ("allocate", "--flops", "1e21", "--preset", "chinchilla", "--size", "7B"),
}


def test_every_command_is_here():
    commands = typer.main.get_command(cli.app).commands
    assert set(commands) == {arguments[0] for arguments in COMMANDS.values()}
    for name, command in commands.items():
        assert "--json" in {option for parameter in command.params for option in parameter.opts}, name


def strict(text):
    """Parse JSON as its standard has it: no NaN, no infinity, no name twice in one object."""

    def refuse(constant):
        raise AssertionError(f"{constant} is no JSON")

    def unique(pairs):
        names = [name for name, _ in pairs]
        assert len(names) == len(set(names)), names
        return dict(pairs)

    return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)


@pytest.mark.parametrize("name", COMMANDS)
def test_json_stands_alone_on_stdout(name, there, tmp_path, monkeypatch, sampled):
    monkeypatch.chdir(there)
    monkeypatch.setenv("MPLBACKEND", "agg")
    arguments = [argument.replace("OUT", str(tmp_path)) for argument in COMMANDS[name]]
    result = CliRunner().invoke(cli.app, [*arguments, "--json"])
    assert result.exit_code in (0, 3), result.stderr
    document = strict(result.stdout)
    assert isinstance(document, dict | list) and document
    # One form everywhere: true and false.
    assert all(isinstance(value, bool) for value in named(document, "converged", "simulated"))


def named(document, *names):
    """Every value of these names, however deep."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for name, value in entries:
        if name in names:
            yield value
        if isinstance(value, dict | list):
            yield from named(value, *names)


def test_a_terminal_that_knows_no_greek_gets_all_the_same():
    """JSON escapes what the encoding of stdout lacks; text for readers has question marks there."""
    ascii_only = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)}
    options = {"env": ascii_only, "capture_output": True, "check": True}
    code = "from bayescdm.cli.output import print_json; print_json({'λ': 'é'})"
    printed = subprocess.run([sys.executable, "-c", code], **options).stdout
    assert strict(printed.decode("ascii")) == {"λ": "é"}
    text = subprocess.run([sys.executable, "-m", "bayescdm", "--help"], **options).stdout
    assert b"transfer?absorption" in text
