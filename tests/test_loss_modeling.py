"""Densities and reparametrisations behind the loss model files."""

import inspect

import numpy as np
import pymc as pm
import pytest
from scipy import stats

from bayescdm.errors import ModelError
from bayescdm.loss.logs import prepare_logs, thin_logs
from bayescdm.loss.mixed_modal import mixed_modal_data, simulate_mixed_modal
from bayescdm.loss.modeling import (
    loss_model_data,
    pair_label,
    pooled_by_family,
    terms_at_reference,
    trajectory_likelihood,
)
from bayescdm.loss.packaged import chinchilla_points, openclip_points
from bayescdm.loss.simulate import simulate_losses
from bayescdm.modelfiles import load_model


def logs():
    """Runs of unequal length: the likelihood may not assume a rectangle."""
    study = thin_logs(prepare_logs(simulate_losses(log_every=100)), 6)
    keep = np.ones(len(study.points), dtype=bool)
    keep[[1, 2, 8]] = False
    return loss_model_data(study.select_points(keep))


LOGS = logs()
DATA = {
    "chinchilla": loss_model_data(chinchilla_points()),
    "contrastive_power": loss_model_data(openclip_points()),
    "loss_compute": LOGS,
    "loss_compute_pooled": LOGS,
    "loss_capability": LOGS,
    "mixed_modal": mixed_modal_data(simulate_mixed_modal()),
}


def at(model, **values):
    """Log density of the observed part of a model at given values."""
    point = model.initial_point()
    point.update({model.rvs_to_values[model[name]].name: np.log(value) for name, value in values.items()})
    density = model.compile_logp(vars=model.observed_RVs, mode="FAST_COMPILE")
    return density(point)


@pytest.fixture(scope="module")
def trajectories():
    with pm.Model(coords=LOGS.coords) as model:
        trajectory_likelihood(np.full(len(LOGS.run), 0.1), LOGS)
    return model


def test_points_of_a_run_are_jointly_normal(trajectories):
    sigma, tau = 0.02, 0.05
    expected = 0.0
    for run in range(len(LOGS.family)):
        own = LOGS.log_loss[LOGS.run == run]
        covariance = sigma**2 * np.eye(len(own)) + tau**2
        expected += stats.multivariate_normal(np.full(len(own), 0.1), covariance).logpdf(own)
    assert at(trajectories, sigma=sigma, tau=tau) == pytest.approx(expected, rel=1e-10)


def test_a_run_of_weight_nought_says_nothing(trajectories):
    whole = at(trajectories, sigma=0.02, tau=0.05)
    own = LOGS.log_loss[LOGS.run == 3]
    covariance = 0.02**2 * np.eye(len(own)) + 0.05**2
    with trajectories:
        pm.set_data({"weight": (LOGS.run != 3).astype(float)})
    without = at(trajectories, sigma=0.02, tau=0.05)
    with trajectories:
        pm.set_data({"weight": LOGS.weight})
    of_run = stats.multivariate_normal(np.full(len(own), 0.1), covariance).logpdf(own)
    assert whole - without == pytest.approx(of_run, rel=1e-9)


def test_simulated_trajectories_have_the_covariance_of_the_density(trajectories):
    with trajectories:
        fixed = pm.do(trajectories, {"sigma": 0.02, "tau": 0.05})
    with fixed:
        draws = pm.sample_prior_predictive(4000, random_seed=1, var_names=["ln_loss"])
    simulated = draws["prior_predictive"]["ln_loss"].to_numpy()[0][:, LOGS.run == 0]
    covariance = np.cov(simulated.T)
    off_diagonal = covariance[np.triu_indices(len(covariance), 1)]
    np.testing.assert_allclose(off_diagonal, 0.05**2, rtol=0.1)
    np.testing.assert_allclose(np.diag(covariance), 0.05**2 + 0.02**2, rtol=0.1)


def test_terms_at_the_reference_point_add_up_and_have_their_ratios():
    a, b, E = (part.eval() for part in terms_at_reference(2.5, np.log(0.3), np.log(0.2)))
    assert a + b + E == pytest.approx(2.5)
    assert a / E == pytest.approx(0.3)
    assert b / E == pytest.approx(0.2)


@pytest.mark.parametrize("name", DATA)
def test_model_files_are_finite_where_chains_start_and_swap_their_losses(name):
    data = DATA[name]
    model = load_model(name).build(data)
    start = model.initial_point()
    if "w_raw" in model.named_vars:
        start[model.rvs_to_values[model["w_raw"]].name] = data.start["w_raw"]
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")(start))
    # Arrays of points among the results would make swapping and storing draws impossible.
    assert not [v.name for v in model.deterministics if "point" in model.named_vars_to_dims.get(v.name, ())]
    assert {"log_loss", "weight"} <= set(model.named_vars)
    swapped = data.swap(log_loss=data.log_loss + 0.1)
    assert swapped.coords == data.coords
    with pytest.raises(ModelError, match="cannot be swapped"):
        data.swap(coords=data.coords)


@pytest.mark.parametrize("name", DATA)
def test_docstrings_state_law_pooling_priors_dims_and_source(name):
    # Python 3.13 strips the indentation of docstrings itself.
    text = inspect.getdoc(load_model(name).build)
    for heading in ("Law", "Pooling", "Priors", "Dims", "Source"):
        assert f"\n{heading} " in text


def test_a_pair_has_one_name():
    order = ["text", "image"]
    assert pair_label("image", "text", order) == pair_label("text", "image", order) == "text + image"


def test_pooled_families_lie_student_t_around_a_mean_that_is_theirs():
    with pm.Model(coords={"family": ["F", "G", "H"]}) as model:
        values = pooled_by_family("q", 1.0, 0.5, 0.3)
        mean, offsets, drawn = pm.draw(
            [model["q_mean"], model["q_offset"], values], draws=20_000, random_seed=1
        )
    np.testing.assert_allclose(drawn.mean(axis=1), mean)
    density = model.compile_logp(vars=[model["q_offset"]], mode="FAST_COMPILE")
    expected = stats.multivariate_t(np.zeros(2), np.eye(2), df=4).logpdf(offsets[0])
    assert density({"q_mean": mean[0], "q_offset": offsets[0]}) == pytest.approx(expected, rel=1e-10)
    assert offsets.shape == (20_000, 2)
    # Every pair of families is as far apart as any other: √2 of the scale, with four degrees of freedom.
    for first, second in ((0, 1), (0, 2), (1, 2)):
        apart = (drawn[:, first] - drawn[:, second]) / (0.3 * np.sqrt(2))
        assert stats.kstest(apart, stats.t(4).cdf).pvalue > 1e-3
