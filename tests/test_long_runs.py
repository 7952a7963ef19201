"""Long runs: Ctrl-C, full disks, and silence when nobody watches. Going on is in test_validate.py."""

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
import studies
import typer
from typer.testing import CliRunner

import bayescdm as cdm
from bayescdm import cli
from bayescdm.errors import Note
from bayescdm.fit import load_fit
from bayescdm.interrupts import program_begins
from bayescdm.sampling import SamplerSettings

FITS = importlib.import_module("bayescdm.fit")
VALIDATION = importlib.import_module("bayescdm.validate.validation")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


# --- Ctrl-C -----------------------------------------------------------------------------------------


def test_ctrl_c_while_a_fit_is_drawn_writes_what_there_is_and_says_so(
    run, tmp_path, monkeypatch, open_vlm_compiled, caplog
):
    """The whole command; only the compiling is taken from elsewhere."""

    def compiled(*_):
        threading.Timer(4, os.kill, (os.getpid(), signal.SIGINT)).start()
        return open_vlm_compiled[2]

    monkeypatch.setattr(FITS, "compile_model", compiled)
    asked = ("fit", "open-vlm", "--out", "fit.nc", "--draws", "1000000", "--tune", "50", "--chains", "2")
    result = run(*asked, "--json")
    told = json.loads(result.stdout)
    assert result.exit_code == (0 if told["converged"] else 3)
    (line,) = [line for line in told["warnings"] if "[interrupted]" in line]
    kept = load_fit(tmp_path / "fit.nc")
    assert f"{kept.posterior.sizes['draw']} draws of {kept.posterior.sizes['chain']} chains are kept" in line
    assert "interrupted" in result.stderr
    assert line in [record.getMessage() for record in caplog.records]
    # What was kept answers like any fit, and says in every answer what it is.
    later = run("predict", "fit.nc", "--volume", "1.2M", "--json")
    assert later.exit_code == result.exit_code
    assert line in json.loads(later.stdout)["facts"]["warnings"]


WHILE_SAMPLING = """
import os, signal, sys, threading
import nutpie
from bayescdm.__main__ import main
begin = nutpie.sample
def sample(*arguments, **options):
    threading.Timer(4, os.kill, (os.getpid(), signal.SIGINT)).start()
    return begin(*arguments, **options)
nutpie.sample = sample
sys.argv[0] = "bayescdm"
main()
"""


@pytest.mark.slow
def test_ctrl_c_in_a_process_of_its_own_is_heard_first_and_then_what_was_kept(tmp_path):
    """Nothing is replaced; the signal comes four seconds into the sampling."""
    out = tmp_path / "fit.nc"
    asked = ["fit", "open-vlm", "--out", out, "--draws", "1000000", "--tune", "50", "--chains", "2"]
    run = [sys.executable, "-c", WHILE_SAMPLING, *asked]
    seen = subprocess.run(run, capture_output=True, text=True, check=False)
    heard, kept, *rest = seen.stderr.splitlines()
    assert heard.startswith("Ctrl-C: no more draws are made")
    assert "draws of 2 chains are kept" in kept and kept.endswith("fit again for all")
    assert not any("Traceback" in line for line in rest)
    assert f"written to {out}" in seen.stdout
    assert seen.returncode == (3 if "NOT CONVERGED" in seen.stderr.replace(kept, "") else 0)
    (note,) = [note for note in load_fit(out).notes if note.code == "interrupted"]
    assert note.message in kept


@pytest.mark.parametrize("module", ["typer", "pandas"])
def test_ctrl_c_while_the_program_is_imported_is_one_line(tmp_path, module):
    """The signal comes in the middle of an import that would make of it whatever it likes."""
    (tmp_path / f"{module}.py").write_text(
        "import os, signal\n"
        "try: os.kill(os.getpid(), signal.SIGINT); [None for _ in range(1000)]\n"
        "except BaseException as error: raise ImportError('odd') from error\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = [sys.executable, "-m", "bayescdm", "check", "open-vlm"]
    env = os.environ | {"PYTHONPATH": path}
    seen = subprocess.run(run, env=env, capture_output=True, text=True, check=False)
    assert (seen.returncode, seen.stdout) == (130, "")
    assert seen.stderr == "stopped: nothing was written\n"


def test_ctrl_c_stays_ignored_where_it_was_and_is_an_exception_in_a_command(monkeypatch):
    monkeypatch.setattr(cli.frame.typer.core.TyperGroup, "invoke", lambda *_: signal.getsignal(signal.SIGINT))
    command, usual = typer.main.get_command(cli.app), signal.getsignal(signal.SIGINT)
    try:
        for before, during in [(signal.SIG_IGN, signal.SIG_IGN), (usual, usual)]:
            signal.signal(signal.SIGINT, before)
            program_begins()
            assert command.invoke(None) is during
    finally:
        signal.signal(signal.SIGINT, usual)


def test_ctrl_c_before_any_draw_writes_nothing(run, tmp_path, monkeypatch):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(FITS, "compile_model", stop)
    result = run("fit", "open-vlm", "--out", "fit.nc")
    assert result.exit_code == 130
    assert result.stderr.splitlines() == ["stopped: nothing was written"]
    assert result.stdout == ""
    assert not list(tmp_path.iterdir())


def test_an_interrupted_report_does_not_start_its_second_fit(run, monkeypatch, known_fit):
    calls = []

    def interrupted(*arguments, **_):
        calls.append(arguments)
        return replace(known_fit(500), notes=(Note("interrupted", "few draws", "warning"),))

    monkeypatch.setattr(FITS, "fit", interrupted)
    monkeypatch.setenv("MPLBACKEND", "agg")
    result = run("report", "open-vlm", "--out", "page.html", "--json")
    assert len(calls) == 1
    assert json.loads(result.stdout)["report"] == "page.html"
    assert "interrupted" in result.stderr


def test_without_a_folder_nothing_can_go_on_and_that_is_said(run, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(VALIDATION, "prepare_refits", stop)
    result = run("validate", "open-vlm")
    assert result.exit_code == 130
    assert result.stderr.splitlines() == ["stopped: give --out to keep finished refits"]


# --- full disks -------------------------------------------------------------------------------------

FULL = """
import json, os, resource, sys
from typer.testing import CliRunner
from bayescdm import cli
import bayescdm.fit, bayescdm.loss.page, bayescdm.predict, bayescdm.reading, bayescdm.report.make
fit, folder = sys.argv[1:]
os.chdir(folder)
volumes = [word for n in range(1, 60) for word in ("--volume", f"{n}M")]
commands = {
    "predict": ["predict", fit, *volumes, "--recipe", "wide", "--out", "table.csv"],
    "compare": ["compare", fit, "families", "--out", "families.csv"],
    "report": ["report", fit, "--out", "page.html"],
    "check": ["check", "../study", "--fix", "cleaned"],
    "allocate": ["allocate", "--flops", "1e21", "--preset", "chinchilla", "--page", "explorer.html"],
}
resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
runs = {name: CliRunner().invoke(cli.app, command) for name, command in commands.items()}
told = {name: (run.exit_code, run.stderr, run.stdout) for name, run in runs.items()}
print(json.dumps(told))
"""


def test_a_full_disk_is_one_line_and_leaves_no_half_file(known_fit, tmp_path):
    """A limit on the size of any file stands for a full disk: the system refuses the same call."""
    fit = known_fit(500).save(tmp_path / "fit.nc")
    studies.folder(tmp_path / "study")
    folder = tmp_path / "full"
    folder.mkdir()
    told = subprocess.run(
        [sys.executable, "-c", FULL, fit, folder],
        env=os.environ | {"MPLBACKEND": "agg", "MPLCONFIGDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    names = {
        "predict": "table.csv",
        "compare": "families.csv",
        "report": "page.html",
        "check": "cleaned/text_scores.csv",
        "allocate": "explorer.html",
    }
    for command, (status, stderr, stdout) in json.loads(told.stdout).items():
        assert (status, stdout) == (1, ""), command
        assert stderr == f"{names[command]}: File too large\n"
    assert [path for path in folder.rglob("*") if path.is_file()] == []


# --- progress ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("watched", [False, True])
def test_progress_is_shown_only_to_who_watches(run, monkeypatch, known_fit, watched):
    asked = {}

    def fit(*_, **options):
        asked.update(options)
        return known_fit(500)

    monkeypatch.setattr(FITS, "fit", fit)
    # CliRunner replaces the streams by its own, whose type is asked.
    monkeypatch.setattr(sys.modules["typer.testing"]._NamedTextIOWrapper, "isatty", lambda _: watched, False)
    result = run("fit", "open-vlm", "--out", "fit.nc", "--json")
    assert asked["progress"] is watched
    assert ("sampling" in result.stderr) is watched
    assert json.loads(result.stdout)["fit"] == "fit.nc"


def test_sampling_is_silent_unless_asked(open_vlm_compiled, capfd):
    settings = SamplerSettings(draws=20, tune=20, chains=2)
    fit = FITS.fit_compiled(
        open_vlm_compiled[2], *open_vlm_compiled[:2], model="transfer_hierarchical", seed=1, sampler=settings
    )
    assert np.isfinite(fit.posterior["A"]).all()
    assert capfd.readouterr() == ("", "")
    assert isinstance(fit, cdm.Fit)
