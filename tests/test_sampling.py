"""Compiled once, sampled and refitted: same seed, same draws; a refit equals a fresh compilation."""

import logging
import os
import signal
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from bayescdm.errors import FitError
from bayescdm.sampling import (
    SamplerSettings,
    _thinned,
    compile_model,
    complete_draws,
    interruption,
    prior_draws,
)

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


# --- interrupted ------------------------------------------------------------------------------------


def chains_of(lengths):
    """Groups as an interrupted sampler leaves them: NaN where a chain did not come."""
    longest = max(lengths)
    came = np.arange(longest) < np.array(lengths)[:, None]
    coords = {"chain": np.arange(len(lengths)), "draw": np.arange(longest)}
    value = np.where(came, 1000.0 * np.arange(len(lengths))[:, None] + np.arange(longest), np.nan)
    dims = ("chain", "draw")
    return {
        "posterior": xr.Dataset({"x": (dims, value)}, coords),
        "sample_stats": xr.Dataset({"logp": (dims, value), "diverging": (dims, ~came)}, coords),
    }


@pytest.mark.parametrize(
    ("lengths", "kept_chains", "kept_draws"),
    [
        ([500, 500, 500, 500], [0, 1, 2, 3], 500),
        ([300, 280, 290, 310], [0, 1, 2, 3], 280),
        ([500, 500, 40, 30], [0, 1], 500),
        ([500, 20, 480, 0], [0, 2], 480),
        ([500, 200, 0, 0], [0, 1], 200),
        ([500, 3, 0, 0], [0], 500),
        ([0, 120, 0, 0], [1], 120),
    ],
)
def test_an_interrupted_sampler_keeps_the_chains_that_give_most_draws(lengths, kept_chains, kept_draws):
    kept = complete_draws(chains_of(lengths), SamplerSettings(draws=500, chains=4))
    assert kept["posterior"]["x"].shape == (len(kept_chains), kept_draws)
    assert np.isfinite(kept["posterior"]["x"]).all()
    assert not kept["sample_stats"]["diverging"].any()
    assert list(kept["posterior"]["x"][:, 0] // 1000) == kept_chains
    assert list(kept["posterior"]["chain"]) == list(range(len(kept_chains)))


@pytest.mark.parametrize("lengths", [[0, 0], [1, 0], [49, 50], [99, 0]])
def test_too_few_draws_are_not_kept(lengths):
    with pytest.raises(FitError, match=f"interrupted after {sum(lengths)} draws: .*nothing was kept"):
        complete_draws(chains_of(lengths), SamplerSettings(draws=500, chains=2))


def test_few_draws_that_were_asked_for_are_no_interruption(caplog):
    asked = SamplerSettings(draws=10, chains=2)
    groups = chains_of([10, 10])
    assert complete_draws(groups, asked) is groups
    assert interruption(groups["posterior"], asked) == ()
    assert not caplog.records


def test_thinned_draws_keep_every_divergence():
    groups = chains_of([12, 12])
    groups["sample_stats"]["diverging"][1, 4] = True
    kept = {name: _thinned(group, 3) for name, group in groups.items()}
    np.testing.assert_array_equal(kept["posterior"]["x"], groups["posterior"]["x"][:, 2::3])
    assert kept["sample_stats"]["diverging"].to_numpy().tolist() == [[False] * 4, [False, True, False, False]]
    assert list(kept["posterior"]["draw"]) == [0, 1, 2, 3]


def test_settings_that_thin_keep_the_draws_of_the_whole_run(open_vlm_compiled):
    compiled = open_vlm_compiled[2]
    whole = compiled.sample(seed=7, settings=replace(SHORT, draws=60))["posterior"].to_dataset()
    kept = compiled.sample(seed=7, settings=replace(SHORT, draws=20, thin=3))["posterior"].to_dataset()
    np.testing.assert_array_equal(kept["P0"], whole["P0"][:, 2::3])


def interrupt_after(seconds):
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    return timer


ENDLESS = SamplerSettings(draws=1_000_000, tune=50, chains=2)


def test_ctrl_c_keeps_the_draws_so_far_and_says_so(open_vlm_compiled, caplog):
    timer = interrupt_after(5)
    tree = open_vlm_compiled[2].sample(seed=1, settings=ENDLESS, keep_interrupted=True)
    timer.join()
    posterior = tree["posterior"].to_dataset()
    assert 100 <= posterior.sizes["chain"] * posterior.sizes["draw"] < 1_000_000
    assert all(np.isfinite(posterior[name]).all() for name in posterior)
    (note,) = interruption(posterior, ENDLESS)
    assert (note.code, note.severity) == ("interrupted", "warning")
    assert f"{posterior.sizes['draw']} draws" in note.message and "1000000" in note.message
    heard, kept = caplog.records
    assert {heard.levelno, kept.levelno} == {logging.WARNING}
    assert heard.getMessage().startswith("Ctrl-C: no more draws are made, those so far are kept")
    assert "NOT CONVERGED" in kept.getMessage() and kept.getMessage().endswith("fit again for all")


def test_ctrl_c_before_there_are_draws_is_one_line_without_a_warning(open_vlm_compiled):
    timer = interrupt_after(3)
    with warnings.catch_warnings(action="error"), pytest.raises(FitError, match="interrupted after 0 draws"):
        open_vlm_compiled[2].sample(seed=1, settings=replace(ENDLESS, tune=1_000_000), keep_interrupted=True)
    timer.join()


def test_a_second_ctrl_c_drops_the_draws(open_vlm_compiled, monkeypatch, caplog):
    class Sampler:
        def wait(self):
            raise KeyboardInterrupt

        abort = wait

    monkeypatch.setattr("nutpie.sample", lambda *_, **__: Sampler())
    with pytest.raises(KeyboardInterrupt):
        open_vlm_compiled[2].sample(seed=1, settings=ENDLESS, keep_interrupted=True)
    assert "Ctrl-C again drops them" in caplog.text


def test_ctrl_c_ends_what_does_not_want_part_of_the_draws(open_vlm_compiled):
    timer = interrupt_after(1)
    with pytest.raises(KeyboardInterrupt):
        open_vlm_compiled[2].sample(seed=1, settings=ENDLESS)
    timer.join()


def test_a_start_that_is_not_finite_is_one_line(open_vlm_compiled):
    compiled = open_vlm_compiled[2]
    nowhere = replace(compiled.data, start={**compiled.data.start, "P0": np.nan})
    with pytest.raises(
        FitError, match=r"the sampler stopped .*; check the data for extreme values"
    ) as caught:
        replace(compiled, data=nowhere).sample(seed=1, settings=SHORT)
    assert "\n" not in str(caught.value)
