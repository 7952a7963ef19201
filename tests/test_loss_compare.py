"""The law that made the losses is recognised on held-out runs, whichever of the two it is."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from typer.testing import CliRunner

from bayescdm import cli
from bayescdm.errors import InputError, RequestError
from bayescdm.laws import capability_loss
from bayescdm.loss.compare import compare_loss_laws, compile_loss_laws, run_log_score
from bayescdm.loss.fit import LossFit
from bayescdm.loss.logs import prepare_logs, thin_logs
from bayescdm.loss.packaged import openclip_points
from bayescdm.loss.simulate import simulate_losses
from bayescdm.sampling import SamplerSettings

SHORT = SamplerSettings(draws=250, tune=300, chains=2)
LAWS = ("capability", "compute")


@pytest.fixture(scope="module")
def studies():
    return {truth: prepare_logs(simulate_losses(truth)) for truth in LAWS}


@pytest.fixture(scope="module")
def compiled(studies):
    return compile_loss_laws(studies["capability"], 8)


@pytest.fixture(scope="module")
def comparisons(studies, compiled):
    return {
        truth: compare_loss_laws(study, folds=4, points_per_run=8, settings=SHORT, compiled=compiled)
        for truth, study in studies.items()
    }


@pytest.mark.parametrize("truth", LAWS)
def test_the_true_law_is_recognised(comparisons, truth):
    comparison = comparisons[truth]
    other = next(law for law in LAWS if law != truth)
    assert comparison.preferred == truth
    assert comparison.table.loc[truth, "mae"] < 0.5 * comparison.table.loc[other, "mae"]
    assert comparison.table.loc[truth, "elpd"] > comparison.table.loc[other, "elpd"]


def test_figures_are_those_of_the_runs(comparisons):
    comparison = comparisons["capability"]
    assert comparison.difference == pytest.approx(
        (comparison.by_run["capability"] - comparison.by_run["compute"]).sum()
    )
    assert comparison.table.loc["capability", ["n_fits", "n_parameters"]].tolist() == [1, 7]
    assert comparison.table.loc["compute", ["n_fits", "n_parameters"]].tolist() == [2, 10]
    assert len(comparison.by_run) == 12


def test_what_limits_the_comparison_is_said(comparisons):
    text = str(comparisons["compute"])
    assert "exact refits without runs of 4 folds" in text
    assert "compute laws by family predict held-out runs better" in text
    assert "warning [few-sizes] Llama-3.2: 2 model sizes" in text
    assert "note [early-steps-dropped]" in text


def test_refits_that_did_not_converge_are_said(comparisons, monkeypatch):
    comparison = comparisons["compute"]  # of far fewer draws than the default
    assert not comparison.converged
    assert not comparison.to_dict()["converged"]
    assert "warning [not-converged] capability law: NOT CONVERGED: 4 of 4 refits (0 divergences" in str(
        comparison
    )
    monkeypatch.setattr("bayescdm.loss.compare.compare_loss_laws", lambda *_, **__: comparison)
    result = CliRunner().invoke(cli.app, ["loss", "simulated", "--compare"])
    assert result.exit_code == 3
    assert "NOT CONVERGED" in result.stdout


def test_log_score_is_that_of_the_joint_normal(compiled, studies):
    """The offset of a run is integrated out: its points are jointly normal, not independent."""
    data = compiled["capability"].data
    tree = compiled["capability"].sample(seed=1, settings=SamplerSettings(draws=3, tune=100, chains=1))
    study = thin_logs(studies["capability"], 8)
    score = run_log_score(LossFit(tree, study, "loss_capability"), study.runs.index[3])
    posterior = tree["posterior"].to_dataset().isel(chain=0)
    own = data.run == 3
    densities = []
    for draw in range(3):
        at = {name: values.to_numpy()[draw] for name, values in posterior.items()}
        L = capability_loss(
            at["S"][3], study.volume[own], *(at[name] for name in ("A", "B", "E", "alpha", "beta"))
        )
        covariance = at["sigma"] ** 2 * np.eye(own.sum()) + at["tau"] ** 2
        densities.append(multivariate_normal(np.log(L), covariance).pdf(np.log(study.loss[own])))
    assert score == pytest.approx(np.log(np.mean(densities)), rel=1e-8)


def test_comparisons_that_make_no_sense_are_refused(studies, compiled):
    study = studies["compute"]
    one_family = study.select_runs(study.runs.index[study.runs["family"] == "Falcon3"])
    with pytest.raises(RequestError, match="at least two families"):
        compare_loss_laws(one_family)
    with pytest.raises(RequestError, match="2 to 12 are possible"):
        compare_loss_laws(study, folds=13, points_per_run=8, compiled=compiled)
    with pytest.raises(RequestError, match="other runs or steps"):
        compare_loss_laws(study, points_per_run=9, compiled=compiled)
    with pytest.raises(InputError, match="needs the components"):
        compare_loss_laws(openclip_points())
