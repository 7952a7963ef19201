"""The words of model files mean what they say."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import stats

from bayescdm import modeling
from bayescdm.errors import ModelError
from bayescdm.modeling import ModelData


def data(K=3, families=2, accuracy=None, **changes):
    """Two backbones a family (base, instruct), two runs each, one recipe of two with unknown volume."""
    rng = np.random.default_rng(0)
    n = 2 * families
    runs = 2 * n
    fields = {
        "coords": {
            "component": [f"PC{k + 1}" for k in range(K)],
            "family": [f"f{i}" for i in range(families)],
            "variant": ["base", "instruct"],
            "backbone": [f"b{i}" for i in range(n)],
            "recipe": ["known", "unknown"],
            "run": [f"r{i}" for i in range(runs)],
            "recipe_unknown_volume": ["unknown"],
            "backbone_incomplete": [],
        },
        "components": rng.normal(0, 0.2, (n, K)),
        "component_factors": np.zeros((0, K, K)),
        "incomplete": np.full(n, -1),
        "family": np.repeat(np.arange(families), 2),
        "variant": np.tile([0, 1], families),
        "log_params": np.zeros(n),
        "log_params_ref": 0.0,
        "backbone": np.repeat(np.arange(n), 2),
        "recipe": np.tile([0, 1], n),
        "unknown_volume": np.tile([-1, 0], n),
        "log_volume": np.zeros(runs),
        "accuracy": rng.uniform(0.4, 0.6, runs) if accuracy is None else accuracy,
        "standard_error": np.zeros(runs),
        "weight": np.ones(runs),
        "start": {},
    }
    return ModelData(**{**fields, **changes})


@pytest.mark.parametrize("K", [2, 3, 6])
def test_direction_density_is_uniform_angle_times_radius_law(K):
    """∫ density over a shell = p(radius): the Jacobian r^(K−1) is taken out, checked numerically."""
    z = pt.matrix("z")
    logp = pytensor.function([z], modeling._radial_logp(z), mode="FAST_COMPILE")
    rng = np.random.default_rng(1)
    radius = np.linspace(0.7, 1.3, 61)
    angles = rng.normal(size=(40, K))
    angles /= np.linalg.norm(angles, axis=1, keepdims=True)
    density = np.array([np.exp(logp(r * angles)) for r in radius])
    assert np.ptp(density, axis=1).max() < 1e-12, "the density depends on the angle"
    on_shell = density.mean(axis=1) * radius ** (K - 1)
    expected = stats.norm.pdf(radius, 1, 0.1)
    assert np.allclose(on_shell / on_shell.sum(), expected / expected.sum(), rtol=1e-10)


@pytest.mark.parametrize("K", [2, 3])
def test_prior_direction_is_uniform_on_the_sphere(K):
    with pm.Model(coords={"component": range(K)}):
        modeling.unit_direction("w", data(K))
        prior = pm.sample_prior_predictive(2000, random_seed=1)["prior"].to_dataset()
    w = prior["w"].to_numpy()[0]
    assert np.allclose(np.linalg.norm(w, axis=1), 1)
    # On S² each coordinate is uniform on [−1, 1]; on the circle its arcsine is uniform.
    flat = w[:, 0] if K == 3 else np.arcsin(w[:, 0]) / (np.pi / 2)
    assert stats.kstest(flat, stats.uniform(-1, 2).cdf).pvalue > 0.001
    radius = np.linalg.norm(prior["w_raw"].to_numpy()[0], axis=1)
    assert stats.kstest(radius, stats.norm(1, 0.1).cdf).pvalue > 0.001


def test_one_component_needs_no_direction():
    with pm.Model(coords={"component": ["PC1"]}) as model:
        w = modeling.unit_direction("w", data(1))
    assert not model.free_RVs
    assert w.eval() == pytest.approx([1.0])


def test_weight_zero_removes_a_run_from_the_density():
    base = data()
    changed = base.accuracy.copy()
    changed[0] = 0.99
    densities = []
    for accuracy in (base.accuracy, changed):
        weight = np.where(np.arange(len(changed)) == 0, 0.0, 1.0)
        d = data(accuracy=accuracy, weight=weight)
        with pm.Model(coords=d.coords) as model:
            modeling.robust_likelihood("accuracy", pt.full((len(changed),), 0.5), d)
        densities.append(model.compile_logp()(model.initial_point()))
    assert densities[0] == densities[1]
    with pm.Model(coords=base.coords) as full:
        modeling.robust_likelihood("accuracy", pt.full((len(changed),), 0.5), base)
    assert full.compile_logp()(full.initial_point()) != densities[0]


def test_likelihood_is_student_t_with_known_errors_added_in_quadrature():
    d = data(standard_error=np.full(8, 0.03))
    with pm.Model(coords=d.coords) as model:
        modeling.robust_likelihood("accuracy", pt.full((8,), 0.5), d)
    point = {"sigma_log__": np.log(0.04), "nu_log__": np.log(5.0)}
    total = model.compile_logp(vars=[model["accuracy"]])(point)
    assert total == pytest.approx(stats.t(5, 0.5, 0.05).logpdf(d.accuracy).sum(), rel=1e-10)


def test_unknown_volume_is_one_latent_a_recipe():
    d = data(log_volume=np.arange(8.0))
    with pm.Model(coords=d.coords) as model:
        logs = modeling.log_volume(d)
        drawn = pm.draw(logs, random_seed=3)
    assert np.array_equal(drawn[::2], np.arange(8.0)[::2])
    assert len(set(drawn[1::2])) == 1
    assert model["log_volume_unknown"].eval().shape == (1,)


def test_negative_absorption_is_penalised_and_positive_is_not():
    with pm.Model() as model:
        B = pm.Normal("B", 0, 1, shape=2)
        modeling.nonnegative(B)
    potential = model.compile_logp(vars=model.potentials)
    assert potential({"B": np.array([0.1, 0.0])}) == 0
    assert potential({"B": np.array([0.1, -0.002])}) == pytest.approx(-0.5)


def test_rates_of_cells_are_population_times_family_and_half_contrast():
    d = data()
    with pm.Model(coords=d.coords) as model:
        rate = modeling.partial_pool("A", 0.25, 0.5, d)
        values = pm.do(
            model,
            {
                "log_A": np.log(0.3),
                "A_family_scale": 0.5,
                "A_family_offset": np.array([1.0, -1.0]),
                "A_contrast": 0.4,
                "A_contrast_scale": 0.2,
                "A_contrast_offset": np.array([0.0, 1.0]),
            },
        )
        cells = values["A"].eval()
    assert rate.type.shape == (2, 2) or cells.shape == (2, 2)
    expected = 0.3 * np.exp(np.array([[0.5 - 0.2, 0.5 + 0.2], [-0.5 - 0.3, -0.5 + 0.3]]))
    assert np.allclose(cells, expected)


def test_missing_text_scores_spread_the_components_as_stated():
    factors = np.zeros((1, 3, 3))
    factors[0] = np.diag([0.1, 0.2, 0.0])
    d = data(component_factors=factors, incomplete=np.array([-1, 0, -1, -1]))
    d.coords["backbone_incomplete"] = ["b1"]
    with pm.Model(coords=d.coords):
        S = modeling.capability(pt.as_tensor(np.array([0.6, 0.8, 0.0])), d)
        drawn = pm.draw(S, draws=4000, random_seed=1)
    assert np.ptp(drawn[:, [0, 2, 3]], axis=0).max() == 0
    assert drawn[:, 1].std() == pytest.approx(np.hypot(0.06, 0.16), rel=0.05)


def test_swapping_checks_names_and_shapes():
    with pytest.raises(ModelError, match="cannot be swapped"):
        data().swap(family=np.zeros(4))
    with pytest.raises(ModelError, match="shape"):
        data().swap(weight=np.zeros(3))
