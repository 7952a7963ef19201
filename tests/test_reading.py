"""What users bring: each kind of input is read as meant and said, or refused in one line (docs/inputs.md)."""

import io
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from studies import CLEAN, MESSY, edited, folder, table, text
from typer.testing import CliRunner

from bayescdm.cli import app
from bayescdm.describe import describe
from bayescdm.errors import InputError, NotFoundError, RequestError
from bayescdm.reading import (
    fix_study,
    load_study,
    parse_count,
    read_candidates,
    read_runs,
    read_text_scores,
)

#: The clean run file names a backbone that the faulty text scores do not hold.
RUNS_WITHOUT_ROW_4 = text([row for i, row in enumerate(table("runs"), start=1) if i != 4])


def refusal(call, *arguments, **options):
    """The lines with which a call refuses its input."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    assert all("\n" not in line for line in caught.value.problems)
    return caught.value.problems


def codes(notes):
    return {note.code for note in notes}


def places(notes, code):
    return [note.where for note in notes if note.code == code]


@pytest.fixture
def study(tmp_path):
    return load_study(folder(tmp_path / "study"))


@pytest.fixture
def messy(tmp_path):
    """A faulty file beside its clean partner, as a folder."""

    def make(name):
        faulty = next(MESSY.glob(f"{name}_*.csv")).read_bytes()
        if name in ("01", "02", "09"):
            return folder(tmp_path / name, text_scores=faulty, runs=RUNS_WITHOUT_ROW_4)
        return folder(tmp_path / name, runs=faulty)

    return make


class TestMessyFiles:
    """The twelve faulty files behave as tests/data/messy/EXPECTED.md says."""

    def test_clean_files_need_no_repair(self, study):
        assert len(study.text_scores) == 12
        assert study.text_scores.loc["larkspur-2-1b", "IFEval"] == 0.194
        assert study.runs["accuracy"].tolist()[:2] == [0.569, 0.598]
        assert study.runs["volume"].unique().tolist() == [1.2e6, 2.6e6]
        assert study.recipes == ["two-stage-m | ViT-L/14-336", "two-stage-s | ViT-L/14-336"]
        assert study.volume_unit == "samples"
        assert codes(study.notes) == set()

    def test_01_missing_markers_are_missing_and_placeholders_are_named(self, messy):
        study = load_study(messy("01"))
        complete = study.text_scores.notna().all(axis=1)
        assert complete[complete].index.tolist() == ["larkspur-2-3b"]
        assert study.text_scores.isna().sum().sum() == 9
        assert places(study.notes, "placeholder-missing") == [
            "text_scores.csv:7:IFEval",
            "text_scores.csv:10:MATH-Lvl-5",
            "text_scores.csv:8:MUSR",
            "text_scores.csv:11:MMLU-PRO",
        ]

    def test_02_rows_of_fractions_are_converted_and_a_small_percentage_is_not(self, messy):
        study = load_study(messy("02"))
        assert places(study.notes, "percent-converted") == ["text_scores.csv:4", "text_scores.csv:7"]
        assert study.text_scores.loc["larkspur-2-8b"].tolist() == [0.279, 0.492, 0.104, 0.306, 0.390, 0.340]
        assert study.text_scores.loc["larkspur-2-1b", "MATH-Lvl-5"] == 0.006
        assert "tenfold-suspect" not in codes(study.notes)

    def test_03_a_stage_name_is_no_volume(self, messy):
        (line,) = refusal(load_study, messy("03"))
        assert line.startswith("runs.csv, row 8 (header is row 1), column 'samples': value '2-a'")

    def test_03_volumes_are_read_in_full(self, messy, tmp_path):
        runs = (MESSY / "03_thousands_and_volumes.csv").read_text().replace("2-a", "2600000")
        volumes = load_study(folder(tmp_path / "mended", runs=runs)).runs["volume"]
        assert volumes.tolist() == [1.2e6, 1.2e6, 1.223e6, 1.1e6, 2.6e6, 2.6e6, 2.6e6, 2.6e6]

    def test_04_ambiguous_decorations_are_refused(self, messy):
        lines = refusal(load_study, messy("04"))
        assert [line.split(":")[0] for line in lines] == [
            f"runs.csv, row {row} (header is row 1), column 'score'" for row in (7, 8, 9)
        ]

    def test_04_other_decorations_are_taken_off_and_named(self, tmp_path):
        lines = (MESSY / "04_decorations.csv").read_text(encoding="utf-8").splitlines(keepends=True)
        study = load_study(folder(tmp_path / "mended", runs="".join(lines[:6])))
        assert study.runs["accuracy"].tolist() == [0.569, 0.598, 0.625, 0.576, 0.618]
        assert [f"runs.csv:{row}:score" for row in (2, 3, 4, 5, 6)] == [
            place for place in places(study.notes, "decoration-removed") if place.endswith("score")
        ]

    def test_05_two_values_are_never_averaged_or_divided(self, messy):
        lines = refusal(load_study, messy("05"))
        assert [line.split(",")[1] for line in lines] == [
            f" row {r} (header is row 1)" for r in (2, 3, 4, 5, 7)
        ]
        assert "'60.9/56.8' holds two values" in lines[0]

    def test_06_sizes_are_read_and_unseen_families_named(self, study):
        path = MESSY / "06_candidates_sizes_unseen_family.csv"
        scores, backbones, notes = read_candidates(path, study)
        params = backbones["params"] / 1e9
        np.testing.assert_allclose(params, [0.93819, 2.21, 30.85, 14, np.nan, 7.242])
        assert backbones.loc["ondine3-30b-a3b", "active_params"] == 3e9
        assert scores.shape == (6, 6)
        (unseen,) = [note for note in notes if note.code == "unseen-family"]
        assert "Ondine3, Tessera" in unseen.message
        assert "Larkspur" not in unseen.message
        assert places(notes, "size-unclear") == [f"{path.name}:6:params_b"]

    def test_07_rows_that_disagree_are_refused_with_both_values(self, messy):
        (line,) = refusal(load_study, messy("07"))
        assert "row 3" in line and "'58.4'" in line and "'56.9' (row 2)" in line

    def test_07_equal_rows_are_merged_and_sources_that_disagree_are_shown(self, tmp_path):
        lines = (MESSY / "07_duplicates_disagree.csv").read_text().splitlines(keepends=True)
        study = load_study(folder(tmp_path / "mended", runs="".join(lines[:2] + lines[3:])))
        assert places(study.notes, "duplicate-merged") == ["runs.csv:4"]
        (disagree,) = [note for note in study.notes if note.code == "sources-disagree"]
        assert disagree.severity == "warning"
        assert "62.5 in row 5 (invented A), 62.9 in row 6 (invented B)" in disagree.message
        assert len(study.runs) == 4

    def test_08_merged_cells_are_refused_not_filled(self, messy):
        (line,) = refusal(load_study, messy("08"))
        assert line.startswith("runs.csv, row 5 ") and "'recipe', 'backbone'" in line

    def test_08_titles_headers_and_blanks_are_skipped_and_named(self, tmp_path):
        lines = (MESSY / "08_group_header_rows.csv").read_text().splitlines(keepends=True)
        study = load_study(folder(tmp_path / "mended", runs="".join(lines[:4] + lines[5:])))
        assert len(study.runs) == 4
        assert places(study.notes, "group-row-skipped") == ["runs.csv:2", "runs.csv:6"]
        assert places(study.notes, "repeated-header-skipped") == ["runs.csv:5"]
        assert places(study.notes, "blank-row-skipped") == ["runs.csv:8"]

    def test_09_byte_order_mark_and_semicolons(self, messy):
        study = load_study(messy("09"))
        assert len(study.text_scores) == 6
        assert study.text_scores.loc["bramble-2b", "BBH"] == 0.344
        assert {"byte-order-mark", "separator"} <= codes(study.notes)

    def test_10_utf16_and_odd_characters_are_matched_and_shown(self, messy):
        study = load_study(messy("10"))
        assert study.runs["backbone"].tolist()[1:3] == ["larkspur-2-3b", "larkspur-2-8b"]
        said = " ".join(note.message for note in study.notes if note.code == "odd-character-replaced")
        assert all(point in said for point in ("U+2011", "U+2013", "U+00A0"))
        assert len(places(study.notes, "odd-character-replaced")) == 5

    def test_11_averages_stay_out_and_a_tenth_is_flagged_but_kept(self, messy):
        study = load_study(messy("11"))
        assert places(study.notes, "average-skipped") == ["runs.csv:4", "runs.csv:7", "runs.csv:10"]
        assert study.runs["n_benchmarks"].tolist() == [2, 2, 2]
        (suspect,) = [note for note in study.notes if note.code == "tenfold-suspect"]
        assert suspect.where == "runs.csv:6:score" and suspect.severity == "warning"
        assert "the printed average implies 53.1%" in suspect.message
        assert study.scores.query("run == 'T1-3B' and benchmark == 'TextVQA'")["score"].item() == 0.0531

    def test_12_swapped_columns_are_named_and_not_swapped(self, messy):
        (line,) = refusal(load_study, messy("12"))
        assert "look swapped" in line and "'1200000'" in line and "'56.9'" in line


#: A score cell of the text scores (row 3, BBH), and what it is read as.
READ_SCORES = {
    "empty": ("", np.nan),
    "dash": ("—", np.nan),
    "not available": ("N/A", np.nan),
    "nan": ("NaN", np.nan),
    "placeholder": ("TBD", np.nan),
    "percent sign": ("40.3%", 0.403),
    "bold": ("**40.3**", 0.403),
    "latex": (r"\underline{\textbf{40.3}}", 0.403),
    "html": ("<b>40.3</b>", 0.403),
    "footnote": ("40.3<sup>1</sup>", 0.403),
    "superscript": ("40.3²", 0.403),
    "dagger": ("40.3 †", 0.403),
    "latex dagger": (r"$40.3^{\dagger}$", 0.403),
    "link": ("[40.3](https://example.org/1)", 0.403),
    "medal": ("🥇 40.3", 0.403),
    "decimal comma": ("40,3", 0.403),
    "no-break space": ("40.3\u00a0", 0.403),
    "scientific": ("4.03e1", 0.403),
    "apostrophe": ("'40.3", 0.403),
    "hundred": ("100", 1.0),
    "zero": ("0", 0.0),
}

#: A score cell that is refused, and a part of the reason.
REFUSED_SCORES = {
    "two values": ("60.9/56.8", "two values"),
    "half a pair": ("69.3 / -", "two values"),
    "brackets": ("(40.3)", "brackets"),
    "footnote in brackets": ("40.3[1]", "brackets"),
    "difference in brackets": ("40.3 (+1.1)", "brackets"),
    "arrow": ("↑ 40.3", "difference"),
    "plus": ("+1.1", "difference"),
    "spread": ("40.3 ± 0.4", "standard_error"),
    "thousands": ("1,234", "decimal comma"),
    "above": ("101", "outside 0–100"),
    "612": ("612", "outside 0–100"),
    "negative": ("-4", "below 0"),
    "minus sign": ("−4", "below 0"),
    "infinite": ("inf", "not finite"),
    "word": ("good", "not a number"),
    "date": ("2024-03-40", "date"),
    "formula": ("=AVERAGE(A1:A9)", "formula"),
    "other digits": ("４０.３", "not a number"),
    "underscore": ("4_0", "not a number"),
    "long": ("4" * 10_000, "longer than"),
    "control character": ("40\x1b[31m", "control character"),
    "line break": ("40.3\n41", "line break"),
    "fraction in a column of percentages": ("0.403", "looks like a fraction"),
}


class TestScores:
    @pytest.mark.parametrize("kind", READ_SCORES)
    def test_score_is_read(self, kind, tmp_path):
        cell, value = READ_SCORES[kind]
        study = load_study(folder(tmp_path, text_scores=edited("text_scores", (3, "BBH", cell))))
        read = study.text_scores.loc["larkspur-2-3b", "BBH"]
        assert read == value or (np.isnan(value) and np.isnan(read))

    @pytest.mark.parametrize("kind", REFUSED_SCORES)
    def test_score_is_refused(self, kind, tmp_path):
        cell, reason = REFUSED_SCORES[kind]
        path = folder(tmp_path, text_scores=edited("text_scores", (3, "BBH", cell)))
        (line,) = refusal(load_study, path)
        assert line.startswith("text_scores.csv, row 3 (header is row 1), column 'BBH': value '")
        assert reason in line
        assert len(line) < 400

    @pytest.mark.parametrize("kind", ["bold", "dagger", "medal", "superscript", "percent sign"])
    def test_marks_taken_off_are_named(self, kind, tmp_path):
        path = folder(tmp_path, text_scores=edited("text_scores", (3, "BBH", READ_SCORES[kind][0])))
        notes = load_study(path).notes
        assert "text_scores.csv:3:BBH" in {note.where for note in notes}

    def test_a_column_a_hundred_times_off_is_refused_in_one_line(self, tmp_path):
        edits = [(row, "BBH", f"0.{row + 30}") for row in range(2, 14)]
        (line,) = refusal(load_study, folder(tmp_path, text_scores=edited("text_scores", *edits)))
        assert "all within 0–1" in line and "column_units" in line

    def test_the_unit_of_a_column_can_be_stated(self, tmp_path):
        edits = [(row, "BBH", f"0.{row + 30}") for row in range(2, 14)]
        settings = '[column_units]\nBBH = "fraction"\n'
        path = folder(tmp_path, text_scores=edited("text_scores", *edits), settings=settings)
        assert load_study(path).text_scores["BBH"].iloc[0] == 0.32

    def test_small_percentages_are_refused_until_the_unit_is_stated(self, tmp_path):
        rows = table("text_scores")
        at = rows[0].index("MATH-Lvl-5")
        for i, row in enumerate(rows[1:], start=1):
            row[at] = f"0.{i}"
        assert "MATH-Lvl-5" in refusal(load_study, folder(tmp_path, text_scores=text(rows)))[0]
        path = folder(tmp_path, text_scores=text(rows), settings='[units]\ntext_scores = "percent"\n')
        assert load_study(path).text_scores["MATH-Lvl-5"].max() == 0.009

    def test_a_cell_ten_times_off_is_flagged_and_kept(self, tmp_path):
        study = load_study(folder(tmp_path, text_scores=edited("text_scores", (4, "GPQA", "2.70"))))
        assert places(study.notes, "tenfold-suspect") == ["text_scores.csv:4:GPQA"]
        assert study.text_scores.loc["larkspur-2-3b-instruct", "GPQA"] == 0.027

    def test_point_sums_are_refused_in_one_line(self, tmp_path):
        rows = table("runs")
        rows += [[*row[:5], "MME", f"14{i}1", row[7]] for i, row in enumerate(rows[1:9])]
        (line,) = refusal(load_study, folder(tmp_path, runs=text(rows)))
        assert "point sums" in line and "'MME'" in line

    def test_decimal_commas_of_a_whole_file(self, tmp_path):
        rows = [
            [cell.replace(".", ",") if i > 2 else cell for i, cell in enumerate(r)]
            for r in table("text_scores")
        ]
        plain = load_study(folder(tmp_path / "plain"))
        rows[0] = table("text_scores")[0]
        study = load_study(folder(tmp_path / "comma", text_scores=text(rows, ";")))
        pd.testing.assert_frame_equal(study.text_scores, plain.text_scores)
        assert study.backbones["params"].equals(plain.backbones["params"])
        assert "decimal-comma" in codes(study.notes)

    @pytest.mark.parametrize("cell", ["nan", "NaN", "inf", "-inf"])
    def test_accuracy_that_is_no_number_is_refused(self, cell, tmp_path):
        (line,) = refusal(load_study, folder(tmp_path, runs=edited("runs", (3, "score", cell))))
        assert "row 3" in line and f"'{cell}'" in line

    def test_missing_score_of_a_run_is_left_out_and_named(self, tmp_path):
        study = load_study(folder(tmp_path, runs=edited("runs", (3, "score", "-"))))
        assert places(study.notes, "missing-score-skipped") == ["runs.csv:3"]
        assert "T1-3B" not in study.runs.index

    def test_standard_errors_follow_the_unit_of_their_scores(self, tmp_path):
        rows = table("runs")
        for row, cell in zip(rows, ["standard_error", "0.4", *[""] * 20]):
            row.append(cell)
        study = load_study(folder(tmp_path, runs=text(rows)))
        assert study.runs["standard_error"].iloc[0] == 0.004
        assert study.runs["standard_error"].iloc[1:].isna().all()

    def test_standard_errors_beside_several_scores_are_left_out_and_named(self, tmp_path):
        rows = table("runs")
        wide = [
            [*rows[0][:5], "GQA", "POPE", "standard_error"],
            *([*r[:5], r[6], "85", "0.4"] for r in rows[1:]),
        ]
        study = load_study(folder(tmp_path, runs=text(wide)))
        assert places(study.notes, "column-ignored") == ["runs.csv:1:standard_error"]


COUNTS = {
    "7B": 7e9,
    "7b": 7e9,
    "938.19M": 938.19e6,
    "30.85B-A3B": 30.85e9,
    "558K+665K": 1223e3,
    "0.5M + 0.6M": 1.1e6,
    "1.8M": 1.8e6,
    "1,200,000": 1.2e6,
    "1 200 000": 1.2e6,
    "1\u202f200\u202f000": 1.2e6,
    "1'200'000": 1.2e6,
    "2.600.000": 2.6e6,
    "1,200": 1200,
    "1.2e6": 1.2e6,
    "5 million": 5e6,
    "15T": 15e12,
    "1200000.0": 1.2e6,
}
NO_COUNTS = [
    *(
        "2-a",
        "1.6B×4-Top2",
        "8x7B",
        "1,223M",
        "10⁶",
        "1.2×10^6",
        "0",
        "-5",
        "inf",
        "nan",
        "",
        "1.2M+",
        "~1.2M",
    ),
    *("558+665K", "1e400", "1.2M samples", "1.200.00", "12,00,000", "M"),
]


class TestCounts:
    @pytest.mark.parametrize("written", COUNTS)
    def test_count_is_read(self, written):
        assert parse_count(written) == COUNTS[written]

    @pytest.mark.parametrize("written", NO_COUNTS)
    def test_no_clear_count_is_refused_in_one_line(self, written):
        (line,) = refusal(parse_count, written)
        assert f"'{written}'" in line

    def test_numbers_are_counts(self):
        assert parse_count(1.2e6) == parse_count(1_200_000) == 1.2e6

    @pytest.mark.parametrize(
        ("cell", "reason"),
        [("0", "not above 0"), ("-5", "not above 0"), ("56.9", "no whole number"), ("2-a", "not a count")],
    )
    def test_volume_is_refused(self, cell, reason, tmp_path):
        (line,) = refusal(load_study, folder(tmp_path, runs=edited("runs", (3, "samples", cell))))
        assert "column 'samples'" in line and reason in line

    def test_unknown_volume_is_kept_as_unknown(self, tmp_path):
        study = load_study(folder(tmp_path, runs=edited("runs", (3, "samples", "-"))))
        assert np.isnan(study.runs.loc["T1-3B", "volume"])

    def test_tiny_volume_is_flagged(self, tmp_path):
        study = load_study(folder(tmp_path, runs=edited("runs", (3, "samples", "2"))))
        assert places(study.notes, "volume-suspect") == ["runs.csv:3:samples"]

    def test_volumes_in_millions(self, tmp_path):
        rows = table("runs")
        for row in rows[1:]:
            row[4] = f"{int(row[4]) / 1e6:g}"
        assert "no whole number" in refusal(load_study, folder(tmp_path, runs=text(rows)))[0]
        settings = '[units]\nvolume = "million samples"\n'
        study = load_study(folder(tmp_path, runs=text(rows), settings=settings))
        assert study.runs["volume"].unique().tolist() == [1.2e6, 2.6e6]

    def test_two_volume_columns_need_a_choice(self, tmp_path):
        rows = [[*row, "tokens" if i == 0 else f"{i}000000000"] for i, row in enumerate(table("runs"))]
        (line,) = refusal(load_study, folder(tmp_path, runs=text(rows)))
        assert "'samples' and 'tokens'" in line
        study = load_study(folder(tmp_path, runs=text(rows), settings='[units]\nvolume = "tokens"\n'))
        assert study.volume_unit == "tokens" and study.runs["volume"].iloc[0] == 1e9

    @pytest.mark.parametrize("cell", ["7000000000", "0"])
    def test_impossible_sizes_are_refused(self, cell, tmp_path):
        path = folder(tmp_path, text_scores=edited("text_scores", (3, "params_b", cell)))
        (line,) = refusal(load_study, path)
        assert "column 'params_b'" in line

    def test_sizes_in_the_unit_of_the_other_column_are_one_line(self, tmp_path):
        content = CLEAN["text_scores"].replace("params_b", "params", 1)
        (line,) = refusal(load_study, folder(tmp_path, text_scores=content))
        assert "give the column its unit" in line


class TestNames:
    def test_a_family_with_a_slip_of_the_pen_is_flagged(self, tmp_path):
        study = load_study(folder(tmp_path, text_scores=edited("text_scores", (3, "family", "Larkspr-2"))))
        assert places(study.notes, "similar-families") == ["text_scores.csv:3:family"]
        assert "Larkspr-2" in study.families

    @pytest.mark.parametrize("name", ["Larkspur-2-3B", "larkspur_2-3b", "invented/larkspur-2-3b"])
    def test_names_are_matched_when_one_can_be_meant(self, name, tmp_path):
        study = load_study(folder(tmp_path, runs=edited("runs", (3, "backbone", name))))
        assert study.runs.loc["T1-3B", "backbone"] == "larkspur-2-3b"
        assert places(study.notes, "name-matched") == ["runs.csv:3:backbone"]

    def test_a_separator_between_digits_counts(self, tmp_path):
        (line,) = refusal(load_study, folder(tmp_path, runs=edited("runs", (3, "backbone", "larkspur-23b"))))
        assert "'larkspur-23b' is not among the text scores" in line

    def test_ambiguous_names_are_refused(self, tmp_path):
        rows = table("text_scores")
        rows += [["a/twin-1b", *rows[1][1:]], ["b/twin-1b", *rows[1][1:]]]
        path = folder(tmp_path, text_scores=text(rows), runs=edited("runs", (3, "backbone", "twin-1b")))
        (line,) = refusal(load_study, path)
        assert "may be 'a/twin-1b' or 'b/twin-1b'" in line

    def test_another_organisation_is_another_model(self, tmp_path):
        rows = table("text_scores")
        rows.append(["a/twin-1b", *rows[1][1:]])
        path = folder(tmp_path, text_scores=text(rows), runs=edited("runs", (3, "backbone", "b/twin-1b")))
        assert "not among the text scores" in refusal(load_study, path)[0]

    def test_a_backbone_of_many_rows_is_one_line(self, tmp_path):
        edits = [(row, "backbone", "zephyr-9b") for row in (3, 5, 9)]
        (line,) = refusal(load_study, folder(tmp_path, runs=edited("runs", *edits)))
        assert "row 3 (header is row 1; also rows 5, 9)" in line

    def test_no_backbone_in_common_is_one_line(self, tmp_path):
        edits = [(row, "backbone", f"other-{row}") for row in range(2, 12)]
        (line,) = refusal(load_study, folder(tmp_path, runs=edited("runs", *edits)))
        assert "names no backbone of the text scores" in line

    @pytest.mark.parametrize("column", ["recipe", "vision_encoder"])
    def test_labels_that_group_runs_are_refused_in_two_spellings(self, column, tmp_path):
        usual = table("runs")[2][table("runs")[0].index(column)]
        (line,) = refusal(load_study, folder(tmp_path, runs=edited("runs", (3, column, usual.upper()))))
        assert f"'{usual.upper()}' and '{usual}' (row 2)" in line

    def test_benchmarks_are_matched_to_the_usual_spelling(self, tmp_path):
        study = load_study(folder(tmp_path, runs=edited("runs", (3, "benchmark", "gqa"))))
        assert places(study.notes, "name-matched") == ["runs.csv:3:benchmark"]
        assert study.scores["benchmark"].unique().tolist() == ["GQA"]

    @pytest.mark.parametrize(
        ("word", "variant"), [("Chat", "instruct"), ("pretrained", "base"), ("Base", "base")]
    )
    def test_usual_words_for_variants(self, word, variant, tmp_path):
        study = load_study(folder(tmp_path, text_scores=edited("text_scores", (3, "variant", word))))
        assert study.backbones.loc["larkspur-2-3b", "variant"] == variant
        assert places(study.notes, "variant-matched") == ["text_scores.csv:3:variant"]

    def test_other_words_for_variants_are_refused(self, tmp_path):
        path = folder(tmp_path, text_scores=edited("text_scores", (3, "variant", "reward")))
        assert "neither 'base' nor 'instruct'" in refusal(load_study, path)[0]

    def test_equal_backbones_are_merged_and_different_ones_refused(self, tmp_path):
        rows = table("text_scores")
        study = load_study(folder(tmp_path, text_scores=text([*rows, rows[3]])))
        assert places(study.notes, "duplicate-merged") == ["text_scores.csv:14"]
        rows.append([*rows[3][:4], "58.4", *rows[3][5:]])
        (line,) = refusal(load_study, folder(tmp_path, text_scores=text(rows)))
        assert "row 14" in line and "row 4 as well" in line and "IFEval: 58.3 there, 58.4 here" in line


class TestColumns:
    @pytest.mark.parametrize(
        ("file", "old", "new"),
        [
            ("text_scores", "backbone", "model"),
            ("text_scores", "family", "famly"),
            ("runs", "samples", "data_size"),
            ("runs", "score", "accuracy_pct"),
            ("runs", "recipe", "method"),
            ("runs", "benchmark", "benchmrk"),
        ],
    )
    def test_missing_column_is_one_line_with_the_nearest_title(self, file, old, new, tmp_path):
        content = CLEAN[file].replace(old, new, 1)
        (line,) = refusal(load_study, folder(tmp_path, **{file: content}))
        assert line.startswith(f"{file}.csv, row 1") and f"'{old}'" in line
        assert f"'{new}' may be it" in line or new == "accuracy_pct"

    def test_titles_can_be_mapped(self, tmp_path):
        content = CLEAN["text_scores"].replace("backbone", "Model", 1)
        study = load_study(folder(tmp_path, text_scores=content, settings='[columns]\nbackbone = "Model"\n'))
        assert len(study.text_scores) == 12

    def test_titles_differing_in_case_and_spaces_are_taken(self, tmp_path):
        content = CLEAN["runs"].replace("vision_encoder", "Vision Encoder", 1)
        study = load_study(folder(tmp_path, runs=content))
        assert "column-matched" in codes(study.notes)
        assert study.runs["encoder"].iloc[0] == "ViT-L/14-336"

    def test_a_misspelt_optional_column_is_not_dropped(self, tmp_path):
        content = CLEAN["runs"].replace("vision_encoder", "vision_encodr", 1)
        (line,) = refusal(load_study, folder(tmp_path, runs=content))
        assert "looks like 'vision_encoder'" in line

    def test_links_pictures_and_arrows_in_titles(self, tmp_path):
        content = CLEAN["text_scores"].replace("IFEval,BBH", "🏆 [IFEval](https://x.org) ↑,**BBH** (%)", 1)
        study = load_study(folder(tmp_path, text_scores=content))
        assert study.text_scores.columns.tolist()[:2] == ["IFEval", "BBH"]
        assert len(places(study.notes, "header-cleaned")) == 2

    def test_titles_standing_twice_are_refused(self, tmp_path):
        content = CLEAN["text_scores"].replace("IFEval,BBH", "BBH,BBH", 1)
        assert "both called 'BBH'" in refusal(load_study, folder(tmp_path, text_scores=content))[0]

    def test_averages_ranks_and_words_are_no_benchmarks(self, tmp_path):
        extra = ["Average ⬆️", "rank", "licence note"]
        rows = [
            [*row, *(extra if i == 0 else ["33.1", str(i), "MIT"])]
            for i, row in enumerate(table("text_scores"))
        ]
        study = load_study(folder(tmp_path, text_scores=text(rows)))
        assert study.text_scores.shape == (12, 6)
        assert {"average-skipped", "column-ignored"} <= codes(study.notes)

    def test_columns_can_be_ignored(self, tmp_path):
        rows = [[*row, "shots" if i == 0 else str(i)] for i, row in enumerate(table("text_scores"))]
        study = load_study(folder(tmp_path, text_scores=text(rows), settings='ignore = ["shots"]\n'))
        assert "shots" not in study.text_scores

    def test_a_column_of_row_numbers_without_title_is_left_out(self, tmp_path):
        rows = [["" if i == 0 else str(i - 1), *row] for i, row in enumerate(table("runs"))]
        study = load_study(folder(tmp_path, runs=text(rows)))
        assert "column-ignored" in codes(study.notes) and len(study.runs) == 10

    def test_rows_of_another_width_are_refused(self, tmp_path):
        content = CLEAN["runs"].replace("GQA,59.8", "GQA,59,8", 1)
        lines = refusal(load_study, folder(tmp_path, runs=content))
        assert len(lines) == 1
        assert lines[0].startswith("runs.csv, row 3 (header is row 1): has 9 cells, the header 8")

    def test_a_constant_benchmark_is_refused(self, tmp_path):
        edits = [(row, "BBH", "40") for row in range(2, 14)]
        (line,) = refusal(load_study, folder(tmp_path, text_scores=edited("text_scores", *edits)))
        assert "column 'BBH'" in line and "must vary" in line


class TestLayouts:
    def test_wide_and_long_say_the_same(self, tmp_path):
        rows = table("runs")
        wide = [[*rows[0][:5], "GQA", "source"], *([*row[:5], row[6], row[7]] for row in rows[1:])]
        long_study, wide_study = (
            load_study(folder(tmp_path / "l")),
            load_study(folder(tmp_path / "w", runs=text(wide))),
        )
        pd.testing.assert_frame_equal(long_study.runs, wide_study.runs)

    def test_one_accuracy_a_run(self, tmp_path):
        rows = table("runs")
        content = [[*rows[0][:5], "accuracy"], *([*row[:5], row[6]] for row in rows[1:])]
        study = load_study(folder(tmp_path, runs=text(content)))
        assert study.runs["accuracy"].iloc[0] == 0.569
        assert study.runs["benchmark"].unique().tolist() == ["accuracy"]

    def test_a_run_without_any_score_is_refused(self, tmp_path):
        rows = table("runs")
        content = [[*rows[0][:5], "GQA", "POPE"], *([*row[:5], row[6], "80"] for row in rows[1:])]
        content[3][5:] = ["", "-"]
        (line,) = refusal(load_study, folder(tmp_path, runs=text(content)))
        assert "row 4" in line and "no score" in line

    def test_recipe_can_be_stated_for_all_runs(self, tmp_path):
        rows = [row[1:] for row in table("runs")]
        settings = 'recipe = "two-stage"\n'
        study = load_study(folder(tmp_path, runs=text(rows), settings=settings))
        assert study.recipes == ["two-stage | ViT-L/14-336"]

    def test_groups_and_single_benchmarks(self, tmp_path):
        rows = table("runs")
        rows += [[*row[:5], "POPE", "85.5", row[7]] for row in rows[1:]]
        settings = '[groups]\nhallucination = ["POPE"]\n'
        path = folder(tmp_path, runs=text(rows), settings=settings)
        assert load_study(path).runs["n_benchmarks"].iloc[0] == 2
        assert load_study(path, benchmarks="hallucination").runs["accuracy"].iloc[0] == 0.855
        assert load_study(path, benchmarks="GQA").runs["accuracy"].iloc[0] == 0.569
        with pytest.raises(NotFoundError, match="did you mean 'POPE'"):
            load_study(path, benchmarks="POP")

    def test_a_benchmark_that_no_run_has_leaves_nothing(self, tmp_path):
        settings = 'benchmark = "ocr"\n[groups]\nocr = ["TextVQA"]\n'
        lines = refusal(load_study, folder(tmp_path, settings=settings))
        assert len(lines) == 2 and "none of its 6 runs has TextVQA" in lines[0]

    @pytest.mark.parametrize(
        ("settings", "reason"),
        [
            ("volum_ref = 3\n", "nearest: 'volume_ref'"),
            ("name = 3\n", "a text"),
            ("volume_ref = -3\n", "above 0"),
            ("[units]\nruns = 'points'\n", "'percent' or 'fraction'"),
            ("[units]\nvolume = '3 lorries!'\n", "no unit of volume"),
            ("name = \n", "not valid TOML"),
            ("[groups]\nocr = 'TextVQA'\n", "a table of lists"),
            ("[columns]\nbackbone = 'Modell'\n", "no column of the files"),
            ("[columns]\nbakbone = 'backbone'\n", "nearest: 'backbone'"),
            ("[column_units]\nBHH = 'percent'\n", "nearest: 'BBH'"),
            ("ignore = ['licence']\n", "no column of the files"),
            ("ignore = 'licence'\n", "a list of texts"),
        ],
    )
    def test_faulty_settings_are_refused(self, settings, reason, tmp_path):
        (line,) = refusal(load_study, folder(tmp_path, settings=settings))
        assert line.startswith("study.toml") and reason in line


class TestFiles:
    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le-mark", "utf-32"])
    def test_encodings_with_a_mark(self, encoding, tmp_path):
        content = CLEAN["runs"]
        raw = (
            b"\xff\xfe" + content.encode("utf-16-le")
            if encoding.endswith("mark")
            else content.encode(encoding)
        )
        assert len(load_study(folder(tmp_path, runs=raw)).runs) == 10

    @pytest.mark.parametrize(
        ("raw", "reason"),
        [
            (b"", "is empty"),
            (b"\n\n  \n", "is empty"),
            (CLEAN["runs"].splitlines()[0].encode(), "no rows"),
            (CLEAN["runs"].encode("utf-16-le"), "zero bytes"),
            (CLEAN["runs"].replace("invented", "erfundén", 1).encode("latin-1"), "0xE9"),
            (b"\x1f\x8b\x08\x00", "compressed"),
            (b"\xd0\xcf\x11\xe0\xa1", "old Excel"),
            (b"PK\x03\x04 no archive", "Excel"),
            (b"PAR1 no table", "Parquet"),
            (b'recipe,"backbone\nx,y\n', "quotes"),
            (b"recipe," + b"x" * 200_000, "quotes"),
        ],
    )
    def test_files_that_are_no_tables(self, raw, reason, tmp_path):
        (line,) = refusal(load_study, folder(tmp_path, runs=raw))
        assert line.startswith("runs.csv") and reason in line

    @pytest.mark.parametrize("separator", [";", "\t", "|"])
    def test_separators(self, separator, tmp_path):
        study = load_study(folder(tmp_path, runs=text(table("runs"), separator)))
        assert len(study.runs) == 10 and "separator" in codes(study.notes)

    def test_quoted_cells_behind_spaces(self, tmp_path):
        content = "\n".join(", ".join(f'"{cell}"' for cell in row) for row in table("runs"))
        assert len(load_study(folder(tmp_path, runs=content)).runs) == 10

    def test_a_title_of_absurd_length_is_refused(self, tmp_path):
        content = CLEAN["runs"].replace("source", "s" * 5000, 1)
        (line,) = refusal(load_study, folder(tmp_path, runs=content))
        assert "longer than 200" in line and len(line) < 300

    @pytest.mark.parametrize("end", ["\r\n", "\r"])
    def test_line_ends(self, end, tmp_path):
        study = load_study(folder(tmp_path, runs=CLEAN["runs"].replace("\n", end)))
        assert len(study.runs) == 10

    def test_line_ends_of_an_old_mac_are_read_and_told(self, tmp_path, study):
        old_mac = {name: CLEAN[name].replace("\n", "\r").encode() for name in ("text_scores", "runs")}
        read = load_study(folder(tmp_path / "mac", **old_mac))
        pd.testing.assert_frame_equal(read.runs, study.runs)
        pd.testing.assert_frame_equal(read.text_scores, study.text_scores)
        assert places(read.notes, "line-ends") == ["text_scores.csv", "runs.csv"]
        faulty = edited("runs", (5, "score", "612")).replace("\n", "\r")
        (line,) = refusal(load_study, folder(tmp_path / "faulty", runs=faulty.encode()))
        assert line.startswith("runs.csv, row 5 (header is row 1), column 'score': value '612'")
        latin = edited("runs", (4, "source", "erfundén")).replace("\n", "\r").encode("cp1252")
        (line,) = refusal(load_study, folder(tmp_path / "latin", runs=latin))
        assert line.startswith("runs.csv, row 4 (header is row 1): holds the byte 0xE9")

    def test_lines_above_the_header(self, tmp_path):
        study = load_study(folder(tmp_path / "ok", runs="Table 3; results\n\n" + CLEAN["runs"]))
        assert len(study.runs) == 10 and "leading-rows-skipped" in codes(study.notes)
        runs = "Table 3; results\n\n" + edited("runs", (3, "score", "612"))
        (line,) = refusal(load_study, folder(tmp_path / "bad", runs=runs))
        assert line.startswith("runs.csv, row 5 (header is row 3)")

    def test_row_numbers_are_lines_of_the_file(self, tmp_path):
        lines = CLEAN["runs"].splitlines(keepends=True)
        lines.insert(3, "\n")
        lines[5] = lines[5].replace("62.5", "625")
        (line,) = refusal(load_study, folder(tmp_path, runs="".join(lines)))
        assert line.startswith("runs.csv, row 6 ")

    def test_excel(self, tmp_path, study):
        pytest.importorskip("openpyxl")
        path = tmp_path / "excel"
        path.mkdir()
        for name in ("text_scores", "runs"):
            pd.read_csv(io.StringIO(CLEAN[name])).to_excel(path / f"{name}.xlsx", index=False)
        read = load_study(path)
        pd.testing.assert_frame_equal(read.text_scores, study.text_scores)
        pd.testing.assert_frame_equal(read.runs, study.runs)

    def test_excel_formulas_percentages_and_sheets(self, tmp_path):
        openpyxl = pytest.importorskip("openpyxl")
        path = folder(tmp_path / "excel")
        (path / "runs.csv").unlink()
        book = openpyxl.Workbook()
        book.active.title = "notes"
        book.active["A1"] = "about"
        sheet = book.create_sheet("runs")
        for row in table("runs"):
            sheet.append([float(c) if c.replace(".", "").isdigit() else c for c in row])
        sheet["G2"] = 0.569
        sheet["G2"].number_format = "0.0%"
        book.save(path / "runs.xlsx")
        assert load_study(path).runs["accuracy"].iloc[0] == 0.569
        sheet["G3"] = "=G2+1"
        book.save(path / "runs.xlsx")
        assert (
            "row 3 (header is row 1), column 'score': value '=G2+1' is a formula"
            in refusal(load_study, path)[0]
        )
        book.create_sheet("more")["A1"] = "x"
        sheet.title = "results"
        book.save(path / "runs.xlsx")
        assert "several sheets ('notes', 'results', 'more')" in refusal(load_study, path)[0]

    def test_parquet(self, tmp_path, study):
        pytest.importorskip("pyarrow")
        path = tmp_path / "parquet"
        path.mkdir()
        for name in ("text_scores", "runs"):
            pd.read_csv(io.StringIO(CLEAN[name])).to_parquet(path / f"{name}.parquet")
        read = load_study(path)
        pd.testing.assert_frame_equal(read.text_scores, study.text_scores)
        pd.testing.assert_frame_equal(read.runs, study.runs)

    def test_missing_and_doubled_files(self, tmp_path):
        path = folder(tmp_path / "study")
        shutil.copy(path / "runs.csv", path / "runs.tsv")
        assert "runs.csv and runs.tsv" in refusal(load_study, path)[0]
        (path / "runs.tsv").unlink()
        (path / "runs.csv").rename(path / "run.csv")
        assert "nearest: 'run.csv'" in refusal(load_study, path)[0]

    def test_unknown_name_and_single_file(self, tmp_path):
        with pytest.raises(NotFoundError, match="did you mean 'open-vlm'"):
            load_study("open-vlms")
        path = folder(tmp_path / "study")
        assert "give the folder" in refusal(load_study, path / "runs.csv")[0]


class TestWholeStudies:
    @pytest.mark.parametrize(("score", "status"), [("56.9", 0), ("612", 1)])
    def test_check_imports_no_sampler(self, score, status, tmp_path):
        path = folder(tmp_path, runs=edited("runs", (2, "score", score)))
        code = (
            "import sys\nfrom bayescdm.cli import app\n"
            f"try: app(['check', {str(path)!r}, '--json'])\n"
            "except SystemExit as end: status = end.code\n"
            "print(status, {'pymc', 'nutpie', 'arviz'} & set(sys.modules), file=sys.stderr)"
        )
        seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert seen.stderr.splitlines()[-1] == f"{status} set()"

    @pytest.mark.parametrize(
        "command",
        ["fit {} --out x.nc", "report {}", "validate {} --by family", "paper {}", "choose {} --volume 1M"],
    )
    def test_a_faulty_study_is_refused_before_the_sampler_is_imported(self, command, tmp_path):
        path = folder(tmp_path / "study", runs=edited("runs", (2, "score", "612")))
        arguments = [str(path) if word == "{}" else word for word in command.split()]
        code = (
            "import sys\nfrom bayescdm.cli import app\n"
            f"try: app({arguments!r})\n"
            "except SystemExit as end: status = end.code\n"
            "print(status, {'pymc', 'pytensor', 'nutpie', 'arviz'} & set(sys.modules), file=sys.stderr)"
        )
        seen = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert seen.stderr.splitlines()[-1] == "1 set()"
        assert "value '612'" in seen.stderr

    def test_three_mistakes_are_three_lines_and_status_1(self, tmp_path):
        """A score of 612, an unlisted backbone, and a family spelled in two ways."""
        rows = table("text_scores")
        for row in rows[1:6]:
            row[1] = "Qwen-2.5"
        rows[4][1] = "qwen2.5"
        runs = edited("runs", (3, "score", "612"), (6, "backbone", "zephyr-9b"))
        path = folder(tmp_path / "study", text_scores=text(rows), runs=runs)
        before = sorted(p.name for p in path.iterdir())
        result = CliRunner().invoke(app, ["check", str(path), "--fix", str(tmp_path / "out")])
        assert result.exit_code == 1
        assert result.stdout == ""
        lines = result.stderr.splitlines()
        assert len(lines) == 3
        assert lines[0].startswith(
            "text_scores.csv, row 5 (header is row 1), column 'family': value 'qwen2.5'"
        )
        assert lines[1].startswith("runs.csv, row 3 (header is row 1), column 'score': value '612'")
        assert lines[2].startswith("runs.csv, row 6 (header is row 1), column 'backbone': value 'zephyr-9b'")
        assert not (tmp_path / "out").exists()
        assert sorted(p.name for p in path.iterdir()) == before

    @pytest.mark.parametrize(
        ("edits", "reason"),
        [
            ([(row, "score", "-") for row in range(2, 12)], "holds no score"),
            ([(row, "benchmark", "Average") for row in range(2, 12)], "holds no score"),
        ],
    )
    def test_runs_without_scores_are_refused(self, edits, reason, tmp_path):
        (line,) = refusal(load_study, folder(tmp_path, runs=edited("runs", *edits)))
        assert reason in line

    def test_text_scores_without_scores_are_refused(self, tmp_path):
        rows = [row if i == 0 else [*row[:4], *[""] * 6] for i, row in enumerate(table("text_scores"))]
        (line,) = refusal(load_study, folder(tmp_path, text_scores=text(rows)))
        assert "text scores of 0 backbones" in line

    def test_no_variance_is_refused(self, tmp_path):
        edits = [(row, "score", "50") for row in range(2, 12)]
        assert "no score varies" in refusal(load_study, folder(tmp_path, runs=edited("runs", *edits)))[0]

    def test_one_backbone_is_refused(self, tmp_path):
        edits = [(row, "backbone", "larkspur-2-1b") for row in range(2, 12)]
        assert (
            "only 'larkspur-2-1b' has text scores"
            in refusal(load_study, folder(tmp_path, runs=edited("runs", *edits)))[0]
        )

    def test_runs_of_backbones_without_scores_are_kept_and_named(self, tmp_path):
        columns = table("text_scores")[0][4:]
        scores = edited("text_scores", *((2, column, "") for column in columns))
        study = load_study(folder(tmp_path, text_scores=scores))
        assert len(study.runs) == 10 and len(study.fitted_runs) == 8
        assert "no-text-scores" in codes(study.notes)

    def test_check_prints_valid_json_alone(self, tmp_path):
        path = folder(tmp_path, runs=edited("runs", (3, "samples", "")))
        result = CliRunner().invoke(app, ["check", str(path), "--json"])
        summary = json.loads(result.stdout)
        assert result.exit_code == 0
        assert summary["counts"]["runs"] == 10 and summary["volume"]["unknown_runs"] == 1
        assert {note["code"] for note in summary["notes"]} >= {"unknown-volume", "one-backbone-cell"}


class TestCandidates:
    @staticmethod
    def rows(*rows):
        return text([table("text_scores")[0], *rows])

    @pytest.fixture
    def read(self, study, tmp_path):
        def call(content):
            path = tmp_path / "candidates.csv"
            path.write_text(content, encoding="utf-8")
            return read_candidates(path, study)

        return call

    def test_one_row_of_fractions(self, read):
        scores, _, _ = read(
            self.rows(["x-1b", "X", "base", "1", "0.2", "0.3", "0.01", "0.25", "0.35", "0.15"])
        )
        assert scores.loc["x-1b"].tolist() == [0.2, 0.3, 0.01, 0.25, 0.35, 0.15]

    @pytest.mark.parametrize("kind", ["csv", "semicolons.csv", "tsv", "xlsx", "parquet"])
    def test_candidates_come_in_the_formats_of_a_study(self, kind, study, tmp_path):
        rows = table("text_scores")
        path = tmp_path / f"candidates.{kind}"
        frame = pd.read_csv(io.StringIO(text(rows)))
        if kind == "xlsx":
            pytest.importorskip("openpyxl")
            frame.to_excel(path, index=False)
        elif kind == "parquet":
            pytest.importorskip("pyarrow")
            frame.to_parquet(path)
        else:
            separator = {"csv": ",", "semicolons.csv": ";", "tsv": "\t"}[kind]
            path.write_text(text(rows, separator), encoding="utf-8")
        scores, backbones, _ = read_candidates(path, study)
        pd.testing.assert_frame_equal(scores, study.text_scores.loc[scores.index, scores.columns])
        assert list(backbones["family"]) == [row[1] for row in rows[1:]]

    @pytest.mark.parametrize("command", ["predict", "choose"])
    def test_help_names_the_formats_of_candidates(self, command):
        told = " ".join(CliRunner(env={"COLUMNS": "200"}).invoke(app, [command, "--help"]).stdout.split())
        assert "(CSV, TSV, Excel or Parquet)" in told

    def test_one_row_of_percentages(self, read):
        scores, _, _ = read(self.rows(["x-1b", "X", "base", "1", "20", "30", "0.6", "25", "35", "15"]))
        assert scores.loc["x-1b"].tolist() == [0.2, 0.3, 0.006, 0.25, 0.35, 0.15]

    def test_order_and_repeated_names_are_kept(self, read):
        rows = table("text_scores")[1:5]
        scores, backbones, notes = read(self.rows(rows[3], rows[0], rows[3], rows[1]))
        assert scores.index.tolist() == [rows[i][0] for i in (3, 0, 3, 1)] == backbones.index.tolist()
        assert "duplicate-name" in codes(notes)

    def test_missing_benchmarks_family_and_variant(self, read):
        scores, backbones, notes = read("model_id,backbone,bbh,Extra\n1,x-1b,30,5\n2,y-1b,40,6\n")
        assert scores["BBH"].tolist() == [0.3, 0.4] and scores["GPQA"].isna().all()
        assert backbones["family"].tolist() == ["unknown"] * 2
        assert {"benchmark-missing", "benchmark-ignored", "family-unknown", "variant-unknown"} <= codes(notes)

    def test_an_empty_table_is_refused(self, read):
        assert "no rows" in refusal(read, self.rows())[0]

    def test_ten_thousand_rows(self, read):
        rows = [
            [f"x-{i}", f"F{i % 50}", "base", "7", "20", "30", "5", "25", "35", "15"] for i in range(10_000)
        ]
        scores, _, _ = read(self.rows(*rows))
        assert len(scores) == 10_000

    def test_no_row_with_a_score_is_read_as_nothing_measured(self, read):
        scores, _, _ = read(self.rows(["x-1b", "X", "base", "1", *[""] * 6]))
        assert scores.isna().all(axis=None) and set(scores.dtypes) == {np.dtype(float)}

    def test_another_score_than_that_of_a_backbone_with_runs_is_refused(self, read):
        row = [*table("text_scores")[1]]
        row[2], row[4] = "instruct", "20.4"
        lines = refusal(read, self.rows(row))
        assert [line.split(":")[0] for line in lines] == [
            f"candidates.csv, row 2 (header is row 1), column '{column}'" for column in ("IFEval", "variant")
        ]
        assert "value '20.4' is not the 19.4 % of the study's 'larkspur-2-1b'" in lines[0]

    def test_names_and_families_of_the_study_are_matched_and_named(self, read):
        row = [*table("text_scores")[1]]
        row[:2] = ["org/Larkspur-2-1B", "larkspur 2"]
        scores, backbones, notes = read(self.rows(row))
        assert scores.index.tolist() == ["larkspur-2-1b"] and backbones["family"].tolist() == ["Larkspur-2"]
        matched = ["candidates.csv:2:backbone", "candidates.csv:2:family"]
        assert places(notes, "name-matched") == matched and "unseen-family" not in codes(notes)

    def test_a_family_near_one_of_the_study_is_named_with_it(self, read):
        _, _, notes = read(self.rows(["x-1b", "Larkspurs-2", "base", "1", "20", "30", "6", "25", "35", "15"]))
        (note,) = [note for note in notes if note.code == "unseen-family"]
        assert "Larkspurs-2 (nearest with runs: Larkspur-2)" in note.message

    def test_a_row_without_scores_has_one_located_message(self, read, study, tmp_path):
        rows = [
            ["x-1b", "X", "base", "1", *[""] * 6],
            ["y-1b", "X", "base", "1", *["20", "30", "6", "25", "35", "15"]],
        ]
        _, _, notes = read(self.rows(*rows))
        assert places(notes, "scores-missing") == ["candidates.csv:2:backbone"]
        (line,) = refusal(read_candidates, tmp_path / "candidates.csv", study, need_scores=True)
        assert line.startswith("candidates.csv, row 2 (header is row 1), column 'backbone': value 'x-1b'")

    def test_a_missing_file_is_named(self, study, tmp_path):
        with pytest.raises(NotFoundError, match=r"nothing\.csv"):
            read_candidates(tmp_path / "nothing.csv", study)


class TestFix:
    def test_cleaned_files_read_alike_and_without_a_repair(self, tmp_path):
        scores = edited(
            "text_scores",
            (3, "BBH", "**40.3**"),
            (4, "params_b", "3.2B"),
            (5, "GPQA", "-"),
            (6, "variant", "Chat"),
        )
        scores = scores.replace("19.4,32.1,1.6,25.1,34.9,15.2", "0.194,0.321,0.016,0.251,0.349,0.152")
        runs = edited(
            "runs", (2, "samples", "558K+642K"), (3, "backbone", "Larkspur-2-3B"), (5, "score", "62.5%")
        )
        path = folder(tmp_path / "study", text_scores=scores, runs="Table 1\n" + runs)
        changes = fix_study(path, tmp_path / "out")
        first, second = load_study(path), load_study(tmp_path / "out")
        pd.testing.assert_frame_equal(first.text_scores, second.text_scores)
        pd.testing.assert_frame_equal(first.backbones, second.backbones)
        pd.testing.assert_frame_equal(first.runs, second.runs)
        assert codes(second.notes) == set()
        written = pd.read_csv(tmp_path / "out" / "changes.csv", keep_default_na=False)
        pd.testing.assert_frame_equal(written, changes, check_dtype=False)
        listed = {(c.file, c.row, c.column, c.after) for c in changes.itertuples()}
        assert ("text_scores.csv", 3, "BBH", "40.3") in listed
        assert ("text_scores.csv", 2, "IFEval", "19.4") in listed
        assert ("runs.csv", 3, "samples", "1200000") in listed

    @pytest.mark.parametrize(
        ("raw", "before", "after"),
        [
            (b"\xef\xbb\xbf" + CLEAN["runs"].encode(), "UTF-8 with a byte order mark", "UTF-8"),
            (CLEAN["runs"].encode("utf-16"), "UTF-16", "UTF-8"),
            (CLEAN["runs"].encode("utf-32"), "UTF-32", "UTF-8"),
            (text(table("runs"), ";").encode(), "semicolons", "commas"),
            (text(table("runs"), "\t").encode(), "tabs", "commas"),
            (CLEAN["runs"].replace("\n", "\r\n").encode(), "CR LF (Windows)", "LF"),
            (CLEAN["runs"].replace("\n", "\r\n", 3).encode(), "CR LF (Windows) and LF", "LF"),
            (CLEAN["runs"].replace("\n", "\r").encode(), "CR alone (old Mac)", "LF"),
        ],
    )
    def test_what_was_changed_about_the_file_itself_is_listed(self, raw, before, after, tmp_path):
        path = folder(tmp_path / "study", runs=raw)
        changes = fix_study(path, tmp_path / "out")
        assert changes[["file", "row", "column", "before", "after"]].to_numpy().tolist() == [
            ["runs.csv", 0, "", before, after]
        ]
        assert (tmp_path / "out" / "runs.csv").read_bytes() == CLEAN["runs"].encode()
        assert fix_study(tmp_path / "out", tmp_path / "again").empty

    def test_a_decimal_comma_is_a_change_of_the_file_and_of_each_cell(self, tmp_path):
        rows = table("runs")
        for row in rows[1:]:
            row[6] = row[6].replace(".", ",")
        changes = fix_study(folder(tmp_path / "study", runs=text(rows, ";")), tmp_path / "out")
        of_file = changes.loc[changes["row"] == 0, ["before", "after"]].to_numpy().tolist()
        assert of_file == [["semicolons", "commas"], ["decimal comma", "decimal point"]]
        assert changes.loc[changes["row"] > 0, "before"].tolist() == [row[6] for row in rows[1:]]
        assert (tmp_path / "out" / "runs.csv").read_text(encoding="utf-8") == CLEAN["runs"]

    def test_lines_above_the_header_and_numbers_of_rows_are_listed(self, tmp_path):
        rows = [[str(i) if i else "", *row] for i, row in enumerate(table("runs"))]
        path = folder(tmp_path / "study", runs="Table 3; results\n\n" + text(rows))
        changes = fix_study(path, tmp_path / "out")[["row", "before", "after"]].to_numpy().tolist()
        assert changes == [[1, "Table 3; results", ""], [0, "column 1", ""]]

    def test_a_workbook_says_which_sheet_became_the_table(self, tmp_path):
        pytest.importorskip("openpyxl")
        path = folder(tmp_path / "study")
        (path / "runs.csv").unlink()
        with pd.ExcelWriter(path / "runs.xlsx") as workbook:
            pd.DataFrame({"remark": ["draft"]}).to_excel(workbook, sheet_name="notes", index=False)
            pd.read_csv(io.StringIO(CLEAN["runs"])).to_excel(workbook, sheet_name="runs", index=False)
        (change,) = fix_study(path, tmp_path / "out").itertuples()
        assert (change.file, change.before, change.after) == (
            "runs.xlsx",
            "Excel workbook, sheet 'runs'",
            "CSV",
        )

    def test_a_parquet_file_is_listed(self, tmp_path):
        pytest.importorskip("pyarrow")
        path = folder(tmp_path / "study")
        (path / "runs.csv").unlink()
        pd.read_csv(io.StringIO(CLEAN["runs"])).to_parquet(path / "runs.parquet")
        changes = fix_study(path, tmp_path / "out")
        assert changes.drop(columns="why").to_numpy().tolist() == [["runs.parquet", 0, "", "Parquet", "CSV"]]

    def test_empty_columns_and_a_blank_end_are_listed(self, tmp_path):
        rows = [["", *row, "", "Unnamed: 9"] for row in table("runs")]
        for row in rows[1:]:
            row[-1] = ""
        blank = [[""] * len(rows[0])] * 2
        path = folder(tmp_path / "study", runs=text(rows + blank))
        end = len(rows) + 1
        changes = fix_study(path, tmp_path / "out")[["row", "column", "before", "after", "why"]]
        emptied = f"column 1, column {len(rows[0]) - 1}, column {len(rows[0])}"
        assert changes.to_numpy().tolist() == [
            [0, "", emptied, "", "without a title and without content, left out"],
            [end, "", "2 blank rows", "", "at the end, left out"],
        ]
        assert (tmp_path / "out" / "runs.csv").read_text(encoding="utf-8") == CLEAN["runs"]
        assert fix_study(tmp_path / "out", tmp_path / "again").empty
        # No news of a reading: nothing was in them.
        assert [note for note in load_study(path).notes if note.where.startswith("runs.csv")] == []

    def test_settings_are_copied_to_the_byte(self, tmp_path):
        path = folder(tmp_path / "study")
        settings = b'\xef\xbb\xbfname = "mine"\r\n'
        (path / "study.toml").write_bytes(settings)
        fix_study(path, tmp_path / "out")
        assert (tmp_path / "out" / "study.toml").read_bytes() == settings

    def test_settings_still_fit_the_cleaned_files(self, tmp_path):
        content = CLEAN["text_scores"].replace("backbone", "Model", 1)
        path = folder(tmp_path / "study", text_scores=content, settings='[columns]\nbackbone = "Model"\n')
        fix_study(path, tmp_path / "out")
        assert len(load_study(tmp_path / "out").text_scores) == 12

    def test_nothing_is_replaced_unless_asked(self, tmp_path):
        path = folder(tmp_path / "study")
        fix_study(path, tmp_path / "out")
        with pytest.raises(RequestError, match="already; choose another"):
            fix_study(path, tmp_path / "out")
        fix_study(path, tmp_path / "out", overwrite=True)
        with pytest.raises(RequestError, match="never replaced"):
            fix_study(path, path, overwrite=True)

    def test_what_needs_a_decision_writes_nothing(self, messy, tmp_path):
        with pytest.raises(InputError):
            fix_study(messy("07"), tmp_path / "out")
        assert not (tmp_path / "out").exists()


class TestEquivariance:
    def test_order_of_rows_and_columns_changes_nothing(self, tmp_path, study):
        shuffled = {}
        for name in ("text_scores", "runs"):
            frame = pd.read_csv(io.StringIO(CLEAN[name]), dtype=str).sample(frac=1, random_state=1)
            shuffled[name] = frame.sample(frac=1, axis=1, random_state=2).to_csv(index=False)
        read = load_study(folder(tmp_path / "shuffled", **shuffled))
        scores = read.text_scores.loc[study.text_scores.index, study.text_scores.columns]
        pd.testing.assert_frame_equal(scores, study.text_scores)
        pd.testing.assert_frame_equal(read.runs.loc[study.runs.index], study.runs)

    def test_percent_and_fraction_give_the_same_floats(self, tmp_path, study):
        scores = table("text_scores")
        runs = table("runs")
        for row in scores[1:]:
            row[4:] = [f"{float(cell) / 100:.5f}".rstrip("0") for cell in row[4:]]
        for row in runs[1:]:
            row[6] = f"{float(row[6]) / 100:.3f}"
        read = load_study(folder(tmp_path / "fractions", text_scores=text(scores), runs=text(runs)))
        pd.testing.assert_frame_equal(read.text_scores, study.text_scores, check_exact=True)
        pd.testing.assert_frame_equal(read.runs, study.runs, check_exact=True)
        assert read.settings["units"] == {"text_scores": "fraction", "runs": "fraction"}

    def test_unit_of_volume_changes_nothing(self, tmp_path, study):
        runs = edited("runs", *((row, "samples", "1.2M") for row in range(2, 8)))
        read = load_study(folder(tmp_path / "letters", runs=runs))
        pd.testing.assert_frame_equal(read.runs, study.runs, check_exact=True)


def test_single_tables_can_be_read(tmp_path):
    path = folder(tmp_path)
    scores, backbones, notes = read_text_scores(path / "text_scores.csv")
    assert scores.shape == (12, 6) and backbones["params"].iloc[0] == 1.1e9 and notes == ()
    runs, notes = read_runs(path / "runs.csv")
    assert len(runs) == 10 and notes == ()


def test_the_page_on_inputs_names_tests_that_exist():
    """docs/inputs.md is written by hand; each behaviour that it promises has a test."""
    root = MESSY.parents[2]
    page = (root / "docs" / "inputs.md").read_text(encoding="utf-8")
    tests = "".join(path.read_text(encoding="utf-8") for path in (root / "tests").glob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", page))
    assert len(named) > 50
    assert [name for name in sorted(named) if f"def {name}(" not in tests] == []


@pytest.mark.parametrize("written", ["nan", "inf", "-3", "#DIV/0!", "good"])
def test_advice_about_an_accuracy_that_is_none_can_be_followed(tmp_path, written):
    """An empty accuracy is refused, so that messages must not ask for one."""
    header = "recipe,backbone,samples,accuracy\n"
    rows = [line.split(",") for line in CLEAN["runs"].splitlines()]
    names = dict.fromkeys(row[rows[0].index("backbone")] for row in rows[1:])
    lines = [f"r,{name},{volume},{50 + i}.5" for volume in (10**6, 2 * 10**6) for i, name in enumerate(names)]
    broken = [*lines[:-1], lines[-1].rpartition(",")[0] + f",{written}"]
    path = folder(tmp_path / "mine", runs=header + "\n".join(broken) + "\n")
    with pytest.raises(InputError, match=r"write the score( alone)?, or delete the row"):
        load_study(path)
    folder(tmp_path / "mine", runs=header + "\n".join(lines[:-1]) + "\n")
    assert len(load_study(path).runs) == len(lines) - 1


def test_converted_counts_of_a_column_are_one_note_and_every_one_a_change(tmp_path):
    rows = table("text_scores")
    column = next(i for i, title in enumerate(rows[0]) if title.startswith("params"))
    rows[0][column] = "params"
    for row in rows[1:]:
        row[column] = "7B"
    path = folder(tmp_path / "mine", text_scores=text(rows))
    notes = [note for note in load_study(path).notes if note.code == "count-converted"]
    assert len(notes) == 1
    assert f"and {len(rows) - 2} more cells of this column" in notes[0].message
    changes = fix_study(path, tmp_path / "fixed")
    assert (changes["after"] == "7000000000").sum() == len(rows) - 1


def test_recipes_and_counts_of_one_are_in_the_singular(tmp_path):
    rows = table("runs")
    recipe = rows[0].index("recipe")
    kept = [rows[0], *(row for row in rows[1:] if row[recipe] == rows[1][recipe])]
    said = describe(load_study(folder(tmp_path / "mine", runs=text(kept))))
    assert not re.search(r"\b1 (recipes|runs|backbones|families|candidates|warnings|notes)\b", said)
    assert " of 1 recipe on " in said
