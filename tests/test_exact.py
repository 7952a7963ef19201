"""The sampled posterior of a linear Normal model agrees with integrals that share no code with it.

In ``tests/models/additive_normal.py`` every coefficient and group effect is Normal and enters linearly, so
that given the direction w and the scales σ and τ accuracies are Normal with a covariance that is written down
here, in numpy. What is left is an integral over the sphere and two scales: Gauss–Legendre quadrature.
"""

from dataclasses import replace
from pathlib import Path

import arviz as az
import numpy as np
import pytest
from scipy import stats

from bayescdm.capability import fit_capability
from bayescdm.modelfiles import load_model
from bayescdm.modeling import model_data
from bayescdm.sampling import SamplerSettings, compile_model
from bayescdm.simulate import simulate_from

FILE = Path(__file__).parent / "models" / "additive_normal.py"
#: Prior mean and sd of each linear effect, as the model file states them.
POPULATION = {"A": (0.25, 0.10), "B0": (0.015, 0.010), "Bm": (0.02, 0.015), "P0": (0.55, 0.15)}
FAMILY_SD = {"A": 0.08, "B0": 0.005, "Bm": 0.008}
RECIPE_SD, TAU_SCALE, SIGMA_SCALE = 0.05, 0.03, 0.02


@pytest.fixture(scope="module")
def data():
    """Simulated: 3 families of 4 backbones, 2 recipes, 2 volumes, a third of the runs: 16 of 48."""
    study = simulate_from(11, n_families=3, backbones_per_cell=2, n_recipes=2, volumes=(1e9, 1e10),
                          n_text_benchmarks=10, nu=None, tau=0.012, sigma=0.01, missing_runs=0.6)  # fmt: skip
    return model_data(study, fit_capability(study, components=3))


def sphere(n):
    """Directions and weights of a product rule on the unit sphere; the weights sum to 1."""
    height, of_height = np.polynomial.legendre.leggauss(n)
    angle = np.pi * (2 * np.arange(2 * n) + 1) / (2 * n)
    ring = np.sqrt(1 - height**2)
    w = np.stack(
        [np.outer(ring, np.cos(angle)), np.outer(ring, np.sin(angle)), np.repeat(height[:, None], 2 * n, 1)],
        axis=-1,
    )
    return w.reshape(-1, 3), np.repeat(of_height / (4 * n), 2 * n)


def half_normal(n, scale):
    """Nodes and weights of a half-normal prior, up to 2.5 scales, where the posterior has long ended."""
    x, weight = np.polynomial.legendre.leggauss(n)
    nodes = (x + 1) / 2 * 2.5 * scale
    return nodes, weight * stats.halfnorm(scale=scale).pdf(nodes)


def effects(data, w):
    """Design of the known-scale effects for each direction, (direction, run, effect), and their priors."""
    S = (w @ data.components.T)[:, data.backbone]
    columns, mean, sd, names = [], [], [], []
    regressors = {"A": S, "B0": np.broadcast_to(data.log_volume, S.shape), "Bm": -S * data.log_volume}
    for name, x in regressors.items():
        columns.append(x)
        mean.append(POPULATION[name][0])
        sd.append(POPULATION[name][1])
        names.append(f"{name}_population")
        for f in range(data.family.max() + 1):
            columns.append(x * (data.family[data.backbone] == f))
            mean.append(0.0)
            sd.append(FAMILY_SD[name])
            names.append(f"{name} of family {f}")
    for r in range(data.recipe.max() + 1):
        columns.append(np.broadcast_to(data.recipe == r, S.shape).astype(float))
        mean.append(0.0)
        sd.append(RECIPE_SD)
        names.append(f"recipe {r}")
    columns.append(np.ones_like(S))
    mean.append(POPULATION["P0"][0])
    sd.append(POPULATION["P0"][1])
    names.append("P0")
    return np.stack(columns, axis=-1), np.array(mean), np.array(sd), names


def exact_posterior(data, directions, nodes):
    """Posterior mean and sd of w, σ, τ and of every linear effect, by quadrature."""
    w, weight_w = sphere(directions)
    sigmas, weight_sigma = half_normal(nodes, SIGMA_SCALE)
    taus, weight_tau = half_normal(nodes, TAU_SCALE)
    X, mean, sd, names = effects(data, w)
    residual = data.accuracy - X @ mean
    same_backbone = (data.backbone[:, None] == data.backbone[None, :]).astype(float)
    between = np.einsum("dre,e,dse->drs", X, sd**2, X)
    largest, moments = [], []
    for sigma, p_sigma in zip(sigmas, weight_sigma):
        for tau, p_tau in zip(taus, weight_tau):
            C = between + tau**2 * same_backbone + sigma**2 * np.eye(residual.shape[1])
            L = np.linalg.cholesky(C)
            solved = np.linalg.solve(C, residual[..., None])[..., 0]
            log_weight = -0.5 * np.einsum("dr,dr->d", residual, solved)
            log_weight -= np.log(np.diagonal(L, axis1=1, axis2=2)).sum(axis=1)
            log_weight += np.log(weight_w * p_sigma * p_tau)
            gain = sd**2 * X  # covariance of accuracies and effects
            expected = mean + np.einsum("dre,dr->de", gain, solved)
            shrunk = np.einsum("dre,dre->de", gain, np.linalg.solve(C, gain))
            values = np.column_stack([w, np.broadcast_to([sigma, tau], (len(w), 2)), expected])
            variance = np.column_stack([np.zeros((len(w), 5)), sd**2 - shrunk])
            largest.append(log_weight.max())
            share = np.exp(log_weight - largest[-1])
            moments.append([share.sum(), share @ values, share @ (values**2 + variance)])
    scale = np.exp(np.array(largest) - max(largest))
    total, first, second = (sum(s * m[k] for s, m in zip(scale, moments)) for k in range(3))
    mean_of = first / total
    sd_of = np.sqrt(second / total - mean_of**2)
    labels = ["w1", "w2", "w3", "sigma", "tau", *names]
    return dict(zip(labels, mean_of)), dict(zip(labels, sd_of))


@pytest.fixture(scope="module")
def exact(data):
    return exact_posterior(data, directions=34, nodes=14)


@pytest.fixture(scope="module")
def sampled(data):
    compiled = compile_model(load_model(FILE).build, data)
    settings = SamplerSettings(draws=4000, tune=1000, chains=4, target_accept=0.95)
    return compiled.sample(seed=5, settings=settings)["posterior"].to_dataset()


def cells(sampled):
    """Draws under the labels of the exact posterior, (chain, draw) each."""
    found = {f"w{k + 1}": sampled["w"][..., k] for k in range(3)}
    for name in ("sigma", "tau", "P0", "A_population", "B0_population", "Bm_population"):
        found[name] = sampled[name]
    for r in range(sampled.sizes["recipe"]):
        found[f"recipe {r}"] = sampled["recipe_effect"][..., r]
    for name, sd in FAMILY_SD.items():
        for f in range(sampled.sizes["family"]):
            found[f"{name} of family {f}"] = sd * sampled[f"{name}_offset"][..., f]
    return {label: draws.to_numpy() for label, draws in found.items()}


def test_quadrature_is_fine_enough(data, exact):
    coarse_mean, coarse_sd = exact_posterior(data, directions=28, nodes=11)
    for label in exact[0]:
        assert coarse_mean[label] == pytest.approx(exact[0][label], abs=0.01 * exact[1][label]), label
        assert coarse_sd[label] == pytest.approx(exact[1][label], rel=0.01), label


def test_sampled_means_equal_the_exact_ones_to_monte_carlo_error(exact, sampled):
    draws = cells(sampled)
    assert set(draws) == set(exact[0])
    z = {}
    for label, values in draws.items():
        assert float(az.rhat(values)) < 1.01, label
        z[label] = (values.mean() - exact[0][label]) / float(az.mcse(values, method="mean"))
    assert max(map(abs, z.values())) < 4, z
    assert np.mean(np.square(list(z.values()))) < 2.5, z


def test_sampled_spreads_equal_the_exact_ones_to_monte_carlo_error(exact, sampled):
    for label, values in cells(sampled).items():
        error = float(az.mcse(values, method="sd"))
        assert abs(values.std() - exact[1][label]) < 4 * error, label


def test_the_comparison_would_see_other_data(data, exact, sampled):
    """One family moved by one point of accuracy: its exact rates are other ones, beyond Monte Carlo error."""
    moved = replace(data, accuracy=data.accuracy + 0.01 * (data.family[data.backbone] == 0))
    other, _ = exact_posterior(moved, directions=24, nodes=8)
    draws = cells(sampled)
    z = [(v.mean() - other[k]) / float(az.mcse(v, method="mean")) for k, v in draws.items()]
    assert np.mean(np.square(z)) > 10
