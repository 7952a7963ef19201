"""A seed is checked in one place, whoever asks: no traceback from a generator, nothing compiled before."""

import numpy as np
import pytest
from typer.testing import CliRunner

import bayescdm as cdm
from bayescdm.cli import app
from bayescdm.errors import RequestError
from bayescdm.seeds import LARGEST_SEED, checked_seed, generator


@pytest.mark.parametrize("seed", [-1, LARGEST_SEED + 1, 1.0, "1", True, None, np.int64(-3)])
def test_what_is_no_seed_is_refused(seed):
    with pytest.raises(RequestError, match="give a whole number from 0"):
        checked_seed(seed)


@pytest.mark.parametrize("seed", [0, 1, np.uint8(7), 2**40, LARGEST_SEED])
def test_streams_of_a_seed_are_those_of_numpy(seed):
    assert generator(seed).random() == np.random.default_rng(int(seed)).random()
    assert generator(seed, 4).random() == np.random.default_rng([int(seed), 4]).random()


@pytest.mark.parametrize(
    "ask",
    [
        lambda seed: cdm.fit("open-vlm", seed=seed),
        lambda seed: cdm.validate("open-vlm", by="family", seed=seed),
        lambda seed: cdm.simulate(seed=seed),
        lambda seed: cdm.fit_loss(None, "compute", seed=seed),
    ],
    ids=["fit", "validate", "simulate", "fit_loss"],
)
def test_python_refuses_a_negative_seed_first(ask):
    with pytest.raises(RequestError, match="seed -1"):
        ask(-1)


def test_a_prediction_refuses_a_negative_seed(known_fit):
    with pytest.raises(RequestError, match="seed -1"):
        cdm.predict(known_fit(), volumes=1e6, seed=-1)


@pytest.mark.parametrize(
    "command",
    [
        "fit open-vlm --out x.nc",
        "predict x.nc --volume 1M",
        "report open-vlm --out x.html",
        "validate open-vlm --by family",
        "simulate x",
        "choose open-vlm --recipe new",
        "loss points.csv",
        "allocate --preset chinchilla --flops 1e21",
        "paper --out x",
    ],
)
def test_commands_refuse_a_negative_seed(command):
    result = CliRunner().invoke(app, [*command.split(), "--seed", "-1"])
    assert result.exit_code == 2
    assert "--seed" in result.output and "Traceback" not in result.output
