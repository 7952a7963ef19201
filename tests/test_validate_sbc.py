"""Every model file is calibrated; what is wrong on purpose is caught by the same function."""

import json
from pathlib import Path

import numpy as np
import pytest

from bayescdm.errors import ModelError
from bayescdm.modelfiles import load_model, model_names
from bayescdm.sampling import SamplerSettings
from bayescdm.validate.designs import design, transfer_design
from bayescdm.validate.sbc import _Finished, calibrate
from bayescdm.validate.uniformity import ecdf_band, uniformity_p_value

OWN = Path(__file__).parent / "models"
QUICK = SamplerSettings(draws=400, tune=400, chains=1, target_accept=0.9, cores=1)
#: A correct model fails at this level once in a hundred seeds; seeds are fixed.
LEVEL = 0.01
#: Model files whose thirty simulations take seconds; those of the others take a minute or more.
QUICK_MODELS = ("chinchilla", "contrastive_power", "transfer_pooled")

# --- ranks ------------------------------------------------------------------------------------------


def test_p_values_of_uniform_ranks_are_those_of_chance():
    rng = np.random.default_rng(0)
    p = np.array([uniformity_p_value(rng.integers(0, 32, 60), 31) for _ in range(400)])
    for level in (0.05, 0.2, 0.5):
        assert np.mean(p <= level) == pytest.approx(level, abs=3 * np.sqrt(level * (1 - level) / 400))


@pytest.mark.parametrize(
    ("a", "b"), [(0.5, 0.5), (3, 3), (1, 2)], ids=["posterior too narrow", "too wide", "biased"]
)
def test_ranks_that_are_not_uniform_are_seen(a, b):
    ranks = np.floor(np.random.default_rng(1).beta(a, b, 200) * 32).astype(int)
    assert uniformity_p_value(ranks, 31) < 0.001


def test_band_holds_whole_ecdfs_at_its_probability():
    rng = np.random.default_rng(2)
    M, L = 80, 19
    _, lower, upper = ecdf_band(M, L, 0.9)
    ranks = rng.integers(0, L + 1, (2000, M))
    below = (ranks[:, :, None] < np.arange(1, L + 1)).mean(axis=1)
    inside = ((lower <= below) & (below <= upper)).all(axis=1).mean()
    assert inside == pytest.approx(0.9, abs=0.03)


# --- model files ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK_MODELS else pytest.mark.slow) for name in model_names()],
)
def test_posterior_of_a_model_file_is_calibrated(name):
    calibration = calibrate(
        load_model(name).build, design(name), name=name, simulations=30, settings=QUICK, seed=1
    )
    assert calibration.failed == 0
    assert len(calibration.ranks) == 30
    assert "log_likelihood" in calibration.ranks
    assert calibration.p_value > LEVEL, str(calibration)


FULL_SIZE = json.loads((Path(__file__).parent / "benchmarks" / "results" / "sbc.json").read_text())


@pytest.mark.parametrize("name", model_names())
def test_calibration_at_full_size_is_kept_for_the_model_file_as_it_is(name):
    kept = FULL_SIZE[name]
    assert kept["source_hash"] == load_model(name).source_hash, "run tests/benchmarks/sbc.py again"
    assert kept["simulations"] >= 300
    assert kept["must_pass"]
    assert kept["p_value"] > LEVEL


@pytest.mark.parametrize("name", ["sabotaged_jacobian", "sabotaged_no_intercept"])
def test_models_that_are_wrong_on_purpose_fail_at_full_size(name):
    kept = FULL_SIZE[name]
    assert kept["source_hash"] == load_model(OWN / f"{name}.py").source_hash
    assert kept["simulations"] >= 300
    assert kept["p_value"] < LEVEL


def test_dropped_backbone_intercept_is_caught():
    calibration = calibrate(
        load_model(OWN / "sabotaged_no_intercept.py").build, transfer_design(), name="no intercept",
        simulations=30, settings=QUICK, seed=1, generator=load_model("transfer_pooled").build,
    )  # fmt: skip
    assert calibration.p_value < LEVEL, str(calibration)
    assert calibration.table()["quantity"].iloc[0] in ("sigma", "log_likelihood")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "caught"), [("sphere_by_angles", False), ("sabotaged_jacobian", True)])
def test_wrong_jacobian_on_the_sphere_is_caught_and_the_right_one_passes(name, caught):
    """Eight components and four runs: the prior on the sphere is what is tested."""
    data = transfer_design(components=8)
    data = data.swap(weight=(np.arange(len(data.accuracy)) % 9 == 0).astype(float))
    calibration = calibrate(
        load_model(OWN / f"{name}.py").build, data, name=name, simulations=80, settings=QUICK, seed=0,
        generator=load_model(OWN / "sphere.py").build,
    )  # fmt: skip
    assert (calibration.p_value < LEVEL) == caught, str(calibration)
    if caught:
        assert calibration.table()["quantity"].iloc[0].startswith("w[")


def test_finished_simulations_are_read_and_not_repeated(tmp_path):
    def ask(done):
        return calibrate(
            load_model(OWN / "sphere.py").build, transfer_design(), name="sphere", simulations=6,
            settings=QUICK, store=tmp_path / "ranks.json", report=done.append,
        )  # fmt: skip

    first, again = [], []
    ranks = ask(first).ranks
    assert first == [1, 2, 3, 4, 5, 6]
    assert ask(again).ranks.equals(ranks)
    assert again == []
    kept = json.loads((tmp_path / "ranks.json").read_text())
    kept["simulations"] = kept["simulations"][:4]
    (tmp_path / "ranks.json").write_text(json.dumps(kept))
    assert ask(again).ranks.equals(ranks)
    assert again == [5, 6]
    assert _Finished.read(tmp_path / "ranks.json", "another plan").rows == []


def test_a_model_without_swappable_observations_is_refused(tmp_path):
    source = (OWN / "sphere.py").read_text().replace("robust_likelihood(", "(lambda *_: None)(")
    (tmp_path / "unobserved.py").write_text(source)
    build = load_model(tmp_path / "unobserved.py").build
    with pytest.raises(ModelError, match="one observed variable"):
        calibrate(build, transfer_design(), name="x", simulations=1, settings=QUICK)
