"""Faults of tables that look like good ones: nothing is read a thousandth or a hundredfold, or said twice."""

import csv

import pytest
from studies import edited, folder, table, text

from bayescdm.errors import InputError
from bayescdm.reading import fix_study, load_study


def refusal(path):
    """The lines with which a folder is refused."""
    with pytest.raises(InputError) as caught:
        load_study(path)
    return caught.value.problems


def told(study, code):
    return [note for note in study.notes if note.code == code]


def with_volumes(path, volumes):
    """A study whose runs have these volumes, again and again."""
    rows = table("runs")
    for i, row in enumerate(rows[1:]):
        row[4] = volumes[i % len(volumes)]
    return folder(path, runs=text(rows))


def changes(path, out):
    fix_study(path, out)
    return list(csv.DictReader((out / "changes.csv").open(encoding="utf-8")))


class TestDots:
    def test_thousands_are_taken_where_another_cell_proves_them(self, tmp_path):
        study = load_study(with_volumes(tmp_path, ["600.000", "1.200.000"]))
        assert sorted(set(study.runs["volume"])) == [6e5, 1.2e6]
        (note,) = told(study, "dots-are-thousands")
        assert "'600.000' in row 2" in note.message and note.where == "runs.csv::samples"

    def test_the_cleaned_file_says_the_same_without_dots(self, tmp_path):
        path = with_volumes(tmp_path / "in", ["600.000", "1.200.000"])
        assert changes(path, tmp_path / "out")[0]["after"] == "600000"
        again = load_study(tmp_path / "out")
        assert again.runs["volume"].tolist() == load_study(path).runs["volume"].tolist()
        assert not told(again, "dots-are-thousands")

    def test_three_digits_behind_a_dot_are_refused_without_proof(self, tmp_path):
        lines = refusal(with_volumes(tmp_path, ["558.000", "665.000"]))
        assert len(lines) == 2
        assert "'558.000' may be 558000 or 558: write one of them" in lines[0]

    @pytest.mark.parametrize(
        ("volumes", "seen"),
        [
            (["1.223", "1.2", "558"], "'1.223' in row 2 and 6 more are no whole numbers of samples"),
            (["558", "1.223"], "'1.223' in row 3 and 4 more are no whole numbers of samples"),
        ],
    )
    def test_a_column_of_millions_without_their_unit_is_one_line(self, volumes, seen, tmp_path):
        (line,) = refusal(with_volumes(tmp_path, volumes))
        assert line.startswith(f"runs.csv, column 'samples': {seen}: write 1.223M if millions are meant")
        assert '[units] volume = "million samples"' in line

    def test_billions_of_parameters_are_no_thousands(self, tmp_path):
        study = load_study(folder(tmp_path, text_scores=edited("text_scores", (3, "params_b", "7.615"))))
        assert study.backbones["params"].iloc[1] == 7.615e9

    def test_a_stated_unit_leaves_no_doubt(self, tmp_path):
        rows = table("runs")
        for row in rows[1:]:
            row[4] = "1.223"
        settings = '[units]\nvolume = "million samples"\n'
        study = load_study(folder(tmp_path, runs=text(rows), settings=settings))
        assert set(study.runs["volume"]) == {1.223e6}


class TestVolumes:
    @pytest.mark.parametrize(("cell", "word"), [("1200", "tiny"), ("1200000000", "huge")])
    def test_a_thousand_times_is_flagged_both_ways(self, cell, word, tmp_path):
        rows = table("runs")
        for row in rows[1:]:
            row[4] = "1200000"
        rows[2][4] = cell
        (note,) = told(load_study(folder(tmp_path, runs=text(rows))), "volume-suspect")
        assert note.where == "runs.csv:3:samples" and word in note.message

    def test_a_column_of_thousands_is_flagged(self, tmp_path):
        (note,) = told(load_study(with_volumes(tmp_path, ["600", "1200"])), "volume-suspect")
        assert note.where == "runs.csv::samples" and 'volume = "thousand samples"' in note.message

    def test_missing_volumes_are_counted(self, tmp_path):
        study = load_study(folder(tmp_path, runs=edited("runs", (3, "samples", ""), (4, "samples", "TODO"))))
        (note,) = told(study, "volume-missing")
        assert note.message.startswith("2 of ")

    def test_a_large_fractional_count_is_not_called_millions(self, tmp_path):
        (line,) = refusal(folder(tmp_path, runs=edited("runs", (3, "samples", "600000.5"))))
        assert "write it without a fraction" in line


class TestPercentSigns:
    def test_one_cell_is_one_change_from_what_stood_to_what_stands(self, tmp_path):
        path = folder(tmp_path / "in", text_scores=edited("text_scores", (3, "IFEval", "24.8%")))
        (change,) = changes(path, tmp_path / "out")
        assert (change["before"], change["after"]) == ("24.8%", "24.8")
        (note,) = told(load_study(path), "percent-sign-removed")
        assert note.message.startswith("'24.8%' → '24.8'")

    def test_a_table_of_percent_signs_stays_one_of_percentages_with_a_note_a_column(self, tmp_path):
        rows = table("text_scores")
        for row in rows[1:]:
            row[4:] = [f"{cell}%" for cell in row[4:]]
        path = folder(tmp_path / "in", text_scores=text(rows))
        assert len(told(load_study(path), "percent-sign-removed")) == 6
        listed = changes(path, tmp_path / "out")
        assert len(listed) == 72 and listed[0]["after"] == listed[0]["before"].removesuffix("%")

    def test_a_column_of_percentages_among_fractions_is_one_line_with_the_way_out(self, tmp_path):
        rows = table("text_scores")
        for row in rows[1:]:
            row[4:] = [cell if i == 3 else f"{float(cell) / 100:.4g}" for i, cell in enumerate(row[4:])]
        (line,) = refusal(folder(tmp_path, text_scores=text(rows)))
        assert '[column_units] "GPQA" = "percent"' in line


class TestSizes:
    def test_active_parameters_are_named(self, tmp_path):
        study = load_study(folder(tmp_path, text_scores=edited("text_scores", (3, "params_b", "30.85B-A3B"))))
        (note,) = told(study, "count-converted")
        assert "3B of it are active" in note.message

    def test_sizes_beyond_every_model_are_flagged(self, tmp_path):
        study = load_study(folder(tmp_path, text_scores=edited("text_scores", (3, "params_b", "7100"))))
        (note,) = told(study, "size-suspect")
        assert "7.1e+12 params" in note.message

    @pytest.mark.parametrize(
        ("cell", "advice"), [("7100000000", "write 7.1"), ("7x", "write a number such as 7B")]
    )
    def test_advice_is_about_sizes(self, cell, advice, tmp_path):
        (line,) = refusal(folder(tmp_path, text_scores=edited("text_scores", (3, "params_b", cell))))
        assert advice in line


class TestCells:
    @pytest.mark.parametrize("cell", ["N / A", "-/-"])
    def test_spaced_markers_are_missing(self, cell, tmp_path):
        study = load_study(folder(tmp_path, text_scores=edited("text_scores", (3, "BBH", cell))))
        assert study.text_scores["BBH"].isna().sum() == 1

    def test_a_failed_formula_is_called_so(self, tmp_path):
        (line,) = refusal(folder(tmp_path, text_scores=edited("text_scores", (3, "BBH", "#DIV/0!"))))
        assert "'#DIV/0!' is the error of a spreadsheet" in line

    @pytest.mark.parametrize("cell", ["1e999", "612.", "**101**"])
    def test_values_are_shown_as_written(self, cell, tmp_path):
        (line,) = refusal(folder(tmp_path, text_scores=edited("text_scores", (3, "BBH", cell))))
        assert f"value '{cell}' is outside" in line

    def test_rows_that_disagree_are_shown_as_written(self, tmp_path):
        rows = table("text_scores")
        again = [*rows[2]]
        again[4] = "24.9"
        (line,) = refusal(folder(tmp_path, text_scores=text([*rows, again])))
        assert "IFEval: 24.8 there, 24.9 here" in line


class TestNames:
    @pytest.mark.parametrize("column", ["backbone", "family"])
    @pytest.mark.parametrize(("cell", "what"), [("TODO", "placeholder"), ('"', "neither letter nor digit")])
    def test_what_names_nothing_is_refused(self, column, cell, what, tmp_path):
        lines = refusal(folder(tmp_path, text_scores=edited("text_scores", (13, column, cell))))
        assert lines[0].startswith(
            f"text_scores.csv, row 13 (header is row 1), column '{column}': value '{cell}'"
        )
        assert what in lines[0]

    def test_a_recipe_to_come_is_no_recipe(self, tmp_path):
        (line,) = refusal(folder(tmp_path, runs=edited("runs", (3, "recipe", "TBD"))))
        assert "row 3" in line and "column 'recipe'" in line and "placeholder" in line

    def test_a_variant_of_a_study_must_be_stated(self, tmp_path):
        (line,) = refusal(folder(tmp_path, text_scores=edited("text_scores", (3, "variant", "unknown"))))
        assert line.startswith("text_scores.csv, row 3 (header is row 1), column 'variant': value 'unknown'")

    def test_a_title_that_is_a_formula_is_refused(self, tmp_path):
        rows = table("text_scores")
        rows[0][7] = "=GPQA"
        (line,) = refusal(folder(tmp_path, text_scores=text(rows)))
        assert line == "text_scores.csv, row 1 (header is row 1): value '=GPQA' is a formula: write a title"

    def test_the_line_of_a_markdown_table_is_called_so(self, tmp_path):
        rows = table("runs")
        rows.insert(1, ["---"] * len(rows[0]))
        study = load_study(folder(tmp_path, runs=text(rows)))
        assert [note.where for note in told(study, "separator-row-skipped")] == ["runs.csv:2"]
        assert not told(study, "group-row-skipped")


WIDE = """recipe,backbone,samples,GQA,TextVQA,MMBench
r1,larkspur-2-1b,600000,55.1,46.2,60.3
r1,larkspur-2-3b,1200000,59.8,53.1,66.0
r1,larkspur-2-8b,2400000,63.5,59.9,71.5
r1,bramble-2b,1200000,57.6,48.8,63.9
r1,quillon-1.5-7b,1200000,61.8,57.5,69.4
"""


class TestWideRuns:
    @pytest.mark.parametrize("title", ["Score Avg", "Average of 3", "GQA avg", "Durchschnitt", "平均", "Σ"])
    def test_the_mean_of_the_others_is_no_benchmark_whatever_its_name(self, title, tmp_path):
        head, *lines = WIDE.splitlines()
        means = [f"{sum(map(float, line.split(',')[3:])) / 3:.2f}" for line in lines]
        rows = [f"{head},{title}", *(f"{line},{mean}" for line, mean in zip(lines, means))]
        study = load_study(folder(tmp_path, runs="\n".join(rows) + "\n"))
        assert set(study.scores["benchmark"]) == {"GQA", "TextVQA", "MMBench"}
        assert [note.where for note in told(study, "average-skipped")] == [f"runs.csv:1:{title}"]

    def test_a_benchmark_near_the_mean_of_the_others_stays(self, tmp_path):
        rows = [f"{line},{'New' if i == 0 else 52 + i}" for i, line in enumerate(WIDE.splitlines())]
        study = load_study(folder(tmp_path, runs="\n".join(rows) + "\n"))
        assert "New" in set(study.scores["benchmark"])

    @pytest.mark.parametrize("cell", ["0", "100"])
    def test_scores_at_an_end_far_from_the_others_are_flagged_and_kept(self, cell, tmp_path):
        path = folder(tmp_path, runs=WIDE.replace("59.8", cell))
        study = load_study(path)
        (note,) = told(study, "end-suspect")
        assert note.severity == "warning" and "please check" in note.message

    def test_marks_of_benchmarks_in_long_tables_are_taken_off(self, tmp_path):
        benchmark = table("runs")[0].index("benchmark")
        name = table("runs")[1][benchmark]
        study = load_study(folder(tmp_path, runs=edited("runs", (2, "benchmark", f"{name}↑"))))
        assert set(study.scores["benchmark"]) == {row[benchmark] for row in table("runs")[1:]}
        assert "runs.csv:2:benchmark" in [note.where for note in told(study, "decoration-removed")]

    def test_a_decimal_comma_taken_for_a_separator_is_named_in_one_line(self, tmp_path):
        runs = WIDE
        for score in ("55.1", "59.8", "63.5", "57.6", "61.8"):
            runs = runs.replace(score, score.replace(".", ","))
        (line,) = refusal(folder(tmp_path, runs=runs))
        assert line.startswith("runs.csv, row 2 (header is row 1; also rows 3, 4, 5, 6): has 7 cells")
        assert "'55,1' in row 2 looks like one figure with a decimal comma" in line
        assert "quotes" in line and "semicolons" in line

    def test_a_missing_cell_and_a_table_with_semicolons_have_no_decimal_comma(self, tmp_path):
        for runs in (WIDE.replace("55.1,", ""), WIDE.replace(",", ";").replace("55.1", "55;1")):
            (line,) = refusal(folder(tmp_path, runs=runs))
            assert "row 2" in line and "decimal comma" not in line

    def test_titles_alone_are_no_rows_of_data(self, tmp_path):
        head = WIDE.splitlines()[0]
        assert refusal(folder(tmp_path, runs=head)) == ["runs.csv: has a header and no rows: add the data"]
        (line,) = refusal(folder(tmp_path, runs=f"{head}\n{head}\nFirst group\n"))
        assert line.startswith("runs.csv: holds no row of data")

    @pytest.mark.parametrize("start", ["<!DOCTYPE html>\n<html>", "\n<html lang='en'>", "<!-- x --><Table>"])
    def test_a_web_page_is_called_so(self, start, tmp_path):
        page = f"{start}\n<tr><td>backbone</td></tr>\n<tr><td>larkspur-2-1b</td></tr>\n"
        (line,) = refusal(folder(tmp_path, runs=page))
        assert line.startswith("runs.csv: looks like a web page (HTML), not a table")

    def test_runs_that_nothing_tells_apart_are_one_line(self, tmp_path):
        runs = WIDE.replace("larkspur-2-3b", "larkspur-2-1b").replace("larkspur-2-8b", "larkspur-2-1b")
        for volume in (",600000,", ",1200000,", ",2400000,"):
            runs = runs.replace(volume, ",,")
        runs += "r1,bramble-2b,,57.7,48.8,63.9\n"
        (line,) = refusal(folder(tmp_path / "unnamed", runs=runs))
        assert "without a volume ('larkspur-2-1b' in rows 2, 3 and 4; 1 more like this)" in line
        assert "'vlm'" in line
        named = [f"{row},{'vlm' if i == 0 else f'run {i}'}" for i, row in enumerate(runs.splitlines())]
        assert len(load_study(folder(tmp_path / "named", runs="\n".join(named) + "\n")).runs) == 6
