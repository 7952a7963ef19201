"""A simulated study on disk: read back to the bit, still called simulated, and never mixed with another."""

import json
import os

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayescdm as cdm
from bayescdm import cli
from bayescdm.errors import InputError, RequestError
from bayescdm.reading import fix_study
from bayescdm.simulate import simulate_from, true_accuracy, write_study
from bayescdm.simulate.folder import FILES


def small(seed=0, **options):
    return simulate_from(seed, n_families=2, backbones_per_cell=2, n_text_benchmarks=6, **options)


def command(*arguments):
    return CliRunner().invoke(cli.app, ["simulate", *map(str, arguments)])


def test_a_written_study_reads_back_to_the_bit_with_its_truth(tmp_path):
    study = cdm.simulate(seed=2)
    read = cdm.load_study(write_study(study, tmp_path / "study"))
    assert read.simulated
    assert read.truth == study.truth
    assert (read.name, read.volume_unit, read.volume_ref) == (
        study.name, study.volume_unit, study.volume_ref,
    )  # fmt: skip
    pd.testing.assert_frame_equal(read.text_scores, study.text_scores, check_names=False, check_exact=True)
    key = ["recipe", "backbone", "volume", "accuracy"]
    assert read.runs[key].to_numpy().tolist() == study.runs[key].to_numpy().tolist()
    sizes = ["family", "variant", "params", "active_params", "text_tokens"]
    assert read.backbones[sizes].to_numpy().tolist() == study.backbones[sizes].to_numpy().tolist()
    assert "simulated" in [note.code for note in read.notes]


def test_the_truth_speaks_of_what_was_read(tmp_path):
    study = small(n_recipes=2, volumes=(1.5e9, 2.5e9 / 3), sigma=0.0)
    read = cdm.load_study(write_study(study, tmp_path / "study"))
    accuracy = true_accuracy(read, read.runs["backbone"], read.runs["volume"], read.runs["recipe"])
    assert accuracy == pytest.approx(read.runs["accuracy"].to_numpy(), abs=1e-12)


def test_cleaned_files_stay_simulated_and_a_lost_truth_is_said(tmp_path):
    write_study(small(), tmp_path / "study")
    fix_study(tmp_path / "study", tmp_path / "fixed")
    read = cdm.load_study(tmp_path / "fixed")
    assert read.simulated
    with pytest.raises(RequestError, match=r"truth\.json"):
        true_accuracy(read, read.runs["backbone"], read.runs["volume"])


@pytest.mark.parametrize("text", ["{", "[1, 2]"])
def test_a_broken_truth_is_refused(tmp_path, text):
    folder = write_study(small(), tmp_path / "study")
    (folder / "truth.json").write_text(text)
    with pytest.raises(InputError, match=r"truth\.json"):
        cdm.load_study(folder)


def test_a_label_that_is_no_truth_value_is_refused(tmp_path):
    folder = write_study(small(), tmp_path / "study")
    settings = (folder / "study.toml").read_text().replace("simulated = true", 'simulated = "no"')
    (folder / "study.toml").write_text(settings)
    with pytest.raises(InputError, match="true or false"):
        cdm.load_study(folder)


def test_files_are_replaced_only_when_asked(tmp_path):
    folder = write_study(small(seed=0), tmp_path / "study")
    before = {name: (folder / name).read_bytes() for name in FILES}
    with pytest.raises(RequestError, match="already"):
        write_study(small(seed=1), folder)
    assert before == {name: (folder / name).read_bytes() for name in FILES}
    write_study(small(seed=1), folder, overwrite=True)
    assert cdm.load_study(folder).truth["seed"] == 1


@pytest.mark.parametrize("survives", range(len(FILES)))
def test_a_write_that_is_broken_off_leaves_no_study_that_reads(tmp_path, monkeypatch, survives):
    folder = write_study(small(seed=0), tmp_path / "study")
    calls = iter(range(len(FILES)))
    replace = os.replace

    def broken(*paths):
        if next(calls) == survives:
            raise OSError(28, "No space left on device")
        replace(*paths)

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="No space"):
        write_study(small(seed=1), folder, overwrite=True)
    with pytest.raises(InputError, match=r"no runs\.csv"):
        cdm.load_study(folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(set(FILES) - {"runs.csv"})


def test_a_real_study_is_not_written_as_simulated(tmp_path):
    with pytest.raises(RequestError, match="not simulated"):
        write_study(cdm.load_study("open-vlm"), tmp_path / "study")


def test_command_writes_what_the_function_simulates(tmp_path):
    result = command("--out", tmp_path / "a", "--seed", 5, "--missing-runs", 0.2, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["simulated"] is True
    assert cdm.load_study(tmp_path / "a").truth == cdm.simulate(seed=5, missing_runs=0.2).truth
    assert command("--out", tmp_path / "b", "--seed", 5, "--missing-runs", 0.2).exit_code == 0
    assert [(tmp_path / "a" / name).read_bytes() for name in FILES] == [
        (tmp_path / "b" / name).read_bytes() for name in FILES
    ]


def test_command_takes_sizes(tmp_path):
    sizes = ("--families", 2, "--backbones-per-cell", 2, "--text-benchmarks", 8, "--recipes", 2)
    assert command("--out", tmp_path / "a", *sizes).exit_code == 0
    study = cdm.load_study(tmp_path / "a")
    assert (len(study.families), len(study.backbones), study.text_scores.shape[1]) == (2, 8, 8)
    assert study.recipes == ["simulated recipe 1", "simulated recipe 2"]
    assert np.isfinite(study.runs["accuracy"]).all()


@pytest.mark.parametrize("arguments", [("--missing-runs", 1.5), ("--families", 1, "--backbones-per-cell", 1)])
def test_impossible_sizes_are_one_line_and_write_nothing(tmp_path, arguments):
    result = command("--out", tmp_path / "a", *arguments)
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "a").exists()


def test_command_does_not_overwrite_unless_asked(tmp_path):
    assert command("--out", tmp_path / "a").exit_code == 0
    assert command("--out", tmp_path / "a").exit_code == 1
    assert command("--out", tmp_path / "a", "--overwrite").exit_code == 0


def test_a_study_that_could_not_be_read_again_is_not_written(tmp_path):
    """With almost all text scores missing a benchmark has one value, which reading refuses."""
    folder = tmp_path / "study"
    with pytest.raises(RequestError, match="too many text scores are missing"):
        write_study(cdm.simulate(seed=0, missing_text=0.99), folder)
    assert not folder.exists()
    found = command("--missing-text", 0.99, "--out", folder)
    assert found.exit_code == 1
    assert not folder.exists()
    assert command("--seed", -1, "--out", folder).exit_code == 2
