"""Known parameters come back: simulated studies whose truth is stored beside them."""

import numpy as np
import pytest
from scipy.stats import binom

import bayescdm as cdm
from bayescdm.capability import fit_capability
from bayescdm.modelfiles import load_model
from bayescdm.modeling import model_data
from bayescdm.sampling import SamplerSettings, compile_model
from bayescdm.simulate import simulate_from

SEEDS = range(20)
SETTINGS = SamplerSettings(draws=400, tune=500, chains=2, target_accept=0.9)


def simulated(seed):
    return simulate_from(seed, n_families=4, backbones_per_cell=3, volumes=(2.5e9, 1e10, 5e10))


@pytest.fixture(scope="module")
def refits():
    """Truth and draws of 20 simulated studies of one shape, compiled once."""
    compiled = None
    results = []
    for seed in SEEDS:
        study = simulated(seed)
        data = model_data(study, fit_capability(study, components=3))
        if compiled is None:
            compiled = compile_model(load_model("transfer_hierarchical").build, data)
        refit = compiled.refit(components=data.components, log_volume=data.log_volume, accuracy=data.accuracy)
        results.append((study, refit.sample(seed=seed, settings=SETTINGS)["posterior"].to_dataset()))
    return results


def truth_of(study, name):
    truth = study.truth[name]
    if isinstance(truth, dict):
        cells = [[truth[f][v] for v in ("base", "instruct")] for f in sorted(truth)]
        return np.array(cells)
    return np.asarray(truth)


@pytest.mark.parametrize("name", ["w", "A", "B0", "Bm", "P0"])
def test_known_parameters_lie_in_their_95_percent_intervals_at_the_nominal_rate(refits, name):
    """Hits counted a study at a time (cells of one study are dependent): the mean rate is near 95 %."""
    rates = []
    for study, draws in refits:
        low, high = draws[name].quantile([0.025, 0.975], ("chain", "draw")).to_numpy()
        truth = truth_of(study, name)
        rates.append(((low <= truth) & (truth <= high)).mean())
    lowest = binom.ppf(0.001, len(SEEDS), 0.95) / len(SEEDS)
    assert np.mean(rates) >= lowest, (
        f"{name}: {np.mean(rates):.3f} of the true values in their 95 % intervals"
    )


def test_posterior_mean_agrees_with_variable_projection():
    """On a simulated study of the paper's roster, with rates shared by all, both find the same law."""
    study = cdm.simulate(seed=3)
    point = cdm.point_fit(study)
    fit = cdm.fit(
        study, model="transfer_pooled", seed=1, settings=SamplerSettings(draws=800, tune=800, chains=2)
    )
    posterior = fit.posterior
    assert posterior["w"].mean(("chain", "draw")).to_numpy() @ point.w > 0.99
    for name in ("A", "B0"):
        draws = posterior[f"{name}_population"]
        assert abs(float(draws.mean()) - getattr(point, name)) < 3 * float(draws.std()), name
