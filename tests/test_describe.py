"""What check says of a study."""

import json

import numpy as np
import pytest
from studies import edited, folder
from typer.testing import CliRunner

from bayescdm.cli import app
from bayescdm.datasets import load_dataset
from bayescdm.describe import describe, family_table, recipe_table, summarise
from bayescdm.reading import load_study


@pytest.fixture(scope="module")
def packaged():
    return load_dataset("open-vlm")


def test_every_count_of_the_summary_is_that_of_the_study(packaged):
    summary = summarise(packaged)
    assert summary["counts"]["runs"] == len(packaged.runs)
    assert sum(recipe["runs"] for recipe in summary["recipes"]) == len(packaged.runs)
    assert sum(recipe["fitted_runs"] for recipe in summary["recipes"]) == len(packaged.fitted_runs)
    assert sum(family["runs"] for family in summary["families"]) == len(packaged.fitted_runs)
    assert summary["volume"]["unknown_runs"] == packaged.runs["volume"].isna().sum()


def test_families_count_scored_backbones_and_those_with_runs(packaged):
    table = family_table(packaged)
    assert table[["base", "instruct"]].to_numpy().sum() == len(packaged.scored)
    used = packaged.fitted_runs["backbone"].nunique()
    assert table[["base_with_runs", "instruct_with_runs"]].to_numpy().sum() == used


def test_recipes_show_their_volumes(packaged):
    table = recipe_table(packaged)
    assert (table["volume_max"].dropna() >= table["volume_min"].dropna()).all()


def test_text_names_units_volumes_recipes_and_every_warning(tmp_path):
    runs = edited("runs", (3, "samples", ""), (4, "backbone", "Larkspur-2-3B-instruct"))
    said = describe(load_study(folder(tmp_path / "mine", runs=runs)))
    for part in (
        "mine: 10 runs of 2 recipes",
        "text scores in percent, runs in percent; fractions inside",
        "volumes in samples: 1,200,000 to 2,600,000",
        "unknown for 1 run",
        "two-stage-m | ViT-L/14-336",
        "[name-matched] runs.csv:4:backbone",
        "[one-backbone-cell]",
    ):
        assert part in said


def test_two_numbers_of_recipes_are_explained(packaged):
    said = describe(packaged)
    assert "88 runs of 34 recipes" in said
    assert "71 runs of 32 recipes inform the law" in said
    assert "2 of the study's 34 recipes cannot inform the law, since their runs stand on backbones" in said


def test_many_notes_of_one_code_are_cut_and_counted(tmp_path):
    edits = [
        (row, column, f"**{row}.{i}**")
        for row in range(2, 14)
        for i, column in enumerate(("BBH", "GPQA", "MUSR"))
    ]
    said = describe(load_study(folder(tmp_path, text_scores=edited("text_scores", *edits))))
    assert said.count("[decoration-removed]") == 21
    assert "… and 16 more" in said


def test_packaged_study_is_checked_from_the_command_line():
    result = CliRunner().invoke(app, ["check", "open-vlm", "--json"])
    summary = json.loads(result.stdout)
    assert result.exit_code == 0 and summary["name"] == "open-vlm"
    assert "text-outlier" in {note["code"] for note in summary["notes"]}
    assert not np.isnan(summary["volume"]["reference"])


def test_packaged_studies_are_listed_with_sources():
    result = CliRunner().invoke(app, ["datasets"])
    assert result.exit_code == 0 and "open-vlm (real)" in result.stdout and "sources: " in result.stdout
    assert json.loads(CliRunner().invoke(app, ["datasets", "--json"]).stdout)[0]["name"] == "open-vlm"


def test_check_takes_a_list_of_benchmarks_as_fit_does():
    both = ["--benchmark", "GQA", "--benchmark", "POPE"]
    listed = json.loads(CliRunner().invoke(app, ["check", "open-vlm", *both, "--json"]).stdout)
    loaded = load_study("open-vlm", benchmarks=["GQA", "POPE"])
    assert listed["counts"] == summarise(loaded)["counts"]
    assert listed["benchmarks"]["accuracy"] == ["GQA", "POPE"]
