"""The wheel carries model files and studies: it fits in an empty environment, outside the checkout."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SCRIPT = """
import bayescdm as cdm
from bayescdm.sampling import SamplerSettings
import bayescdm.modelfiles as files
assert "site-packages" in files.__file__, files.__file__
assert {"transfer_hierarchical", "transfer_pooled"} <= set(cdm.model_names())
short = SamplerSettings(draws=50, tune=50, chains=1)
fit = cdm.fit("open-vlm", model="transfer_pooled", seed=1, settings=short)
print("posterior draws:", fit.posterior.sizes["draw"])
"""


def run(*command, **kwargs):
    done = subprocess.run(command, capture_output=True, text=True, **kwargs)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("uv") is None, reason="uv builds the wheel and makes the environment")
def test_wheel_fits_in_an_empty_environment(tmp_path):
    run("uv", "build", "--wheel", "--python", sys.executable, "--out-dir", str(tmp_path), cwd=ROOT)
    (wheel,) = tmp_path.glob("*.whl")
    pins = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["constraint-dependencies"]
    (tmp_path / "pins.txt").write_text("\n".join(pins))
    environment = tmp_path / "environment"
    run("uv", "venv", "--python", sys.executable, str(environment))
    python = str(environment / "bin" / "python")
    run("uv", "pip", "install", "--python", python, "--constraint", str(tmp_path / "pins.txt"), str(wheel))
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    printed = run(python, "-c", SCRIPT, cwd=tmp_path, env=clean)
    assert "posterior draws: 50" in printed
