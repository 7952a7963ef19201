"""Non-convergence, forced in two ways by the real sampler, is seen wherever an answer is."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import bayescdm as cdm
from bayescdm import cli
from bayescdm.compare import compare_families, compare_variants, rank_backbones, transfer_coefficients
from bayescdm.fit import Fit, fit_compiled
from bayescdm.predict import predict, prediction_table
from bayescdm.report import answer
from bayescdm.sampling import SamplerSettings

VOLUME = 1.2e6
RECIPE = "LLaVA-1.5"


def too_few_draws(study, capability, compiled):
    few = SamplerSettings(draws=40, tune=60, chains=2)
    return fit_compiled(compiled, study, capability, model="transfer_hierarchical", seed=1, sampler=few)


def impossible_data(study, capability, compiled):
    """Every run exactly on one law: no residual and no intercept, so that scales have no least value."""
    S = compiled.data.components[compiled.data.backbone, 0]
    accuracy = np.clip(0.5 + 0.3 * S, 0, 1)
    exact = compiled.refit(accuracy=accuracy)
    study = replace(study, name="impossible")
    settings = SamplerSettings(draws=150, tune=100, chains=2)
    return fit_compiled(exact, study, capability, model="transfer_hierarchical", seed=1, sampler=settings)


@pytest.fixture(scope="module", params=[too_few_draws, impossible_data], ids=lambda make: make.__name__)
def bad(request, open_vlm_compiled) -> Fit:
    return request.param(*open_vlm_compiled)


@pytest.fixture(scope="module")
def saved(bad, tmp_path_factory):
    return bad.save(tmp_path_factory.mktemp("bad") / "fit.nc")


def test_the_diagnosis_says_what_is_wrong(bad):
    diagnosis = bad.diagnose()
    assert not diagnosis.converged
    if bad.study.name == "impossible":
        # No number of draws would do: the chains are in different places, or cannot move.
        assert diagnosis.max_r_hat > 1.5 or diagnosis.divergences > 0, str(diagnosis)
    assert bad.warnings[0].code == "not-converged"
    assert str(diagnosis) in bad.warnings[0].message


TABLES = {
    "predict": lambda fit: prediction_table(predict(fit, volumes=VOLUME)),
    "rank_backbones": lambda fit: rank_backbones(fit, volume=VOLUME),
    "compare_families": compare_families,
    "compare_variants": compare_variants,
    "transfer_coefficients": transfer_coefficients,
    "answer": lambda fit: answer(fit).ranking,
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_say_so(bad, name):
    attrs = TABLES[name](bad).attrs
    assert attrs["converged"] == 0
    assert attrs["warnings"][0].startswith("warning [not-converged] NOT CONVERGED: ")


PLOTS = {
    "ranking": lambda fit: cdm.plot_ranking(fit, volume=VOLUME),
    "trajectories": lambda fit: cdm.plot_trajectories(fit, volumes=[1e6, 1e7]),
    "families": cdm.plot_families,
    "coefficients": cdm.plot_transfer_coefficients,
    "convergence": cdm.plot_convergence,
}


@pytest.mark.parametrize("name", PLOTS)
def test_plots_say_so(bad, name):
    import matplotlib.pyplot as plt

    axes = np.ravel(np.asarray(PLOTS[name](bad), dtype=object))
    assert all("not\nconverged" in [text.get_text() for text in ax.texts] for ax in axes)
    plt.close("all")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    return lambda *arguments: CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


COMMANDS = {
    "fit": ("fit", "open-vlm", "--out", "new.nc"),
    "predict": ("predict", "FIT", "--volume", "1.2M"),
    "compare": ("compare", "FIT", "families"),
    "report": ("report", "FIT", "--out", "page.html"),
    "choose": ("choose", "FIT"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_terminal_json_page_and_status_say_so(bad, saved, name, run, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules["bayescdm.fit"], "fit", lambda *_, **__: bad)
    arguments = [saved if word == "FIT" else word for word in COMMANDS[name]]
    shown = run(*arguments)
    assert shown.exit_code == 3, shown.stderr
    assert "NOT CONVERGED" in shown.stderr
    if name != "fit":
        assert "NOT CONVERGED" in shown.stdout
    told = run(*arguments, "--json", "--overwrite")
    assert told.exit_code == 3
    document = json.loads(told.stdout)
    facts = document.get("facts", document)
    assert not facts["converged"]
    assert any("not-converged" in line for line in facts["warnings"])
    if name == "fit":
        assert not cdm.load_fit(tmp_path / "new.nc").diagnose().converged
    if name == "report":
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert page.index("<strong>Not converged.</strong>") < page.index("<main")
        assert page.index("NOT CONVERGED: the draws cannot be trusted") < page.index("P(best)")


def test_a_saved_fit_says_so_again(bad, saved):
    loaded = cdm.load_fit(saved)
    assert str(loaded.diagnose()) == str(bad.diagnose())
    assert loaded.warnings == bad.warnings
