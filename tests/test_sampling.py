"""Compiled once, sampled and refitted: same seed, same draws; a refit equals a fresh compilation."""

import numpy as np
import pytest

from bayescdm.sampling import SamplerSettings, compile_model, prior_draws

SHORT = SamplerSettings(draws=100, tune=200, chains=2)


def test_same_seed_same_draws_whatever_the_cores(open_vlm_compiled):
    compiled = open_vlm_compiled[2]
    one = compiled.sample(seed=7, settings=SamplerSettings(draws=50, tune=100, chains=2, cores=1))
    two = compiled.sample(seed=7, settings=SamplerSettings(draws=50, tune=100, chains=2, cores=2))
    other = compiled.sample(seed=8, settings=SamplerSettings(draws=50, tune=100, chains=2, cores=2))
    assert one["posterior"].to_dataset().equals(two["posterior"].to_dataset())
    assert not one["posterior"].to_dataset().equals(other["posterior"].to_dataset())


def test_a_refit_equals_a_fresh_compilation(open_vlm_compiled):
    compiled = open_vlm_compiled[2]
    weight = compiled.data.weight.copy()
    weight[:10] = 0
    accuracy = compiled.data.accuracy[::-1].copy()
    refitted = compiled.refit(weight=weight, accuracy=accuracy)
    fresh = compile_model(compiled.build, compiled.data.swap(weight=weight, accuracy=accuracy))
    a = refitted.sample(seed=3, settings=SHORT)["posterior"].to_dataset()
    b = fresh.sample(seed=3, settings=SHORT)["posterior"].to_dataset()
    for name in a:
        assert np.allclose(a[name], b[name], rtol=1e-6, atol=1e-9), name


def test_a_refit_does_not_touch_the_original(open_vlm_compiled):
    compiled = open_vlm_compiled[2]
    before = compiled.sample(seed=5, settings=SHORT)["posterior"].to_dataset()
    compiled.refit(weight=np.zeros_like(compiled.data.weight))
    after = compiled.sample(seed=5, settings=SHORT)["posterior"].to_dataset()
    assert before.equals(after)


def test_a_held_out_family_is_drawn_from_the_population(open_vlm_compiled):
    """Its deviations return to their prior N(0, 1); those of a family with data do not."""
    compiled = open_vlm_compiled[2]
    data = compiled.data
    family = data.coords["family"].index("Qwen2.5")
    weight = np.where(data.family[data.backbone] == family, 0.0, 1.0)
    settings = SamplerSettings(draws=1000, tune=700, chains=2)
    draws = compiled.refit(weight=weight).sample(seed=1, settings=settings)["posterior"].to_dataset()
    offset = draws["A_family_offset"].sel(family="Qwen2.5")
    assert float(offset.mean()) == pytest.approx(0, abs=0.1)
    assert float(offset.std()) == pytest.approx(1, abs=0.1)


def test_prior_draws_are_as_many_as_asked_and_seeded(open_vlm_compiled):
    model = open_vlm_compiled[2].model
    a, b = prior_draws(model, 60, 1), prior_draws(model, 60, 1)
    assert a.sizes["draw"] == 60
    assert a.equals(b)
