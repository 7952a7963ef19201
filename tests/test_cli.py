"""Exit status, one-line errors and clean JSON of the command line."""

import json
import subprocess
import sys

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from bayescdm import cli
from bayescdm.cli.frame import Commands
from bayescdm.cli.output import print_json
from bayescdm.errors import InputError


@pytest.fixture
def run():
    runner = CliRunner()
    return lambda *arguments: runner.invoke(cli.app, list(arguments))


def test_help_imports_neither_sampler_nor_plots():
    heavy = "{'pymc', 'arviz', 'nutpie', 'matplotlib', 'sklearn', 'pytensor'} & set(sys.modules)"
    code = f"import sys; from bayescdm import cli; print({heavy})"
    seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert seen.stdout.strip() == "set()"


def test_usage_error_is_status_2(run):
    assert run("no-such-command").exit_code == 2


@pytest.mark.parametrize(
    ("raised", "printed"),
    [
        (InputError(["runs.csv, row 2: first", "runs.csv, row 3: second"]), "row 2: first\nruns.csv, row 3"),
        (OSError(28, "No space left on device", "fit.nc"), "fit.nc: No space left on device"),
    ],
)
def test_users_mistakes_are_lines_on_stderr_and_status_1(raised, printed):
    app = typer.Typer(cls=Commands)

    @app.callback()
    def options() -> None:
        pass

    @app.command()
    def fail() -> None:
        raise raised

    result = CliRunner().invoke(app, ["fail"])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert printed in result.stderr


def test_json_has_no_nan(capsys):
    print_json({"a": np.array([1.0, np.nan]), "b": (np.int64(2), float("inf")), "c": "é"})
    printed = capsys.readouterr().out
    assert json.loads(printed) == {"a": [1.0, None], "b": [2, None], "c": "é"}
    assert "NaN" not in printed
