"""Commands about fits: what they print, what they write, and how they end."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayescdm import cli
from bayescdm.cli.output import column_widths
from bayescdm.compare import compare_families, compare_variants, transfer_coefficients
from bayescdm.errors import Note
from bayescdm.fit import load_fit
from bayescdm.predict import predict, prediction_table
from bayescdm.report import answer
from bayescdm.report.answers import LEFT_OUT
from bayescdm.report.document import Document
from bayescdm.report.parts import Section
from bayescdm.tables import Column, table


@pytest.fixture(scope="module")
def made(known_fit):
    fit = known_fit(2000)
    study = fit.study.with_notes(Note("odd-score", "a score is odd", "warning"))
    return replace(fit, study=study, settings={"seed": 1})


@pytest.fixture(scope="module")
def saved(made, tmp_path_factory):
    return made.save(tmp_path_factory.mktemp("fits") / "fit.nc")


@pytest.fixture(scope="module")
def one_recipe(known_fit, tmp_path_factory):
    return known_fit(500, recipes=("only | encoder",)).save(tmp_path_factory.mktemp("fits") / "one.nc")


@pytest.fixture(scope="module")
def unconverged(known_fit, tmp_path_factory):
    return known_fit(50).save(tmp_path_factory.mktemp("fits") / "bad.nc")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    return lambda *arguments: CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def refuse_constant(name):
    raise AssertionError(f"{name} is no JSON")


def read(result):
    return json.loads(result.stdout, parse_constant=refuse_constant)


COMPARISONS = {
    "families": lambda fit: compare_families(fit),
    "variants": lambda fit: compare_variants(fit),
    "benchmarks": lambda fit: transfer_coefficients(fit),
    "backbones": lambda fit: answer(fit).ranking,
}


@pytest.mark.parametrize("subject", COMPARISONS)
def test_compare_gives_the_rows_of_the_function(subject, run, saved, made):
    result = run("compare", saved, subject, "--json", "--out", "table.csv")
    assert result.exit_code == 0
    expected = COMPARISONS[subject](made)
    rows = pd.DataFrame(read(result)["rows"])
    pd.testing.assert_frame_equal(rows, expected.reset_index(drop=True), check_dtype=False)
    written = pd.read_csv("table.csv", keep_default_na=False, na_values=[""])
    numbers = expected.select_dtypes("number").columns
    assert list(written) == list(expected)
    pd.testing.assert_frame_equal(written[numbers], expected[numbers], check_dtype=False)


@pytest.mark.parametrize("subject", COMPARISONS)
def test_tables_for_readers_name_kind_and_probability(subject, run, saved):
    result = run("compare", saved, subject, "--prob", "0.8")
    assert result.exit_code == 0
    shown = re.sub(r"\s+", " ", result.stdout)
    assert "80 %" in shown
    assert ("backbone, 80 % interval" if subject == "backbones" else "posterior, 80 %") in shown


def test_predict_gives_every_backbone_and_volume(run, saved, made):
    result = run("predict", saved, "--volume", "100K", "--volume", "1.2M", "--recipe", "wide", "--json")
    assert result.exit_code == 0
    expected = prediction_table(predict(made, volumes=[1e5, 1.2e6], recipe="wide"))
    rows = pd.DataFrame(read(result)["rows"])
    assert "run_90_lower" in rows
    pd.testing.assert_frame_equal(rows, expected, check_dtype=False)


def test_candidates_come_from_a_file(run, saved, tmp_path):
    table = "backbone,family,variant,params,x,y,z\nfresh,N,base,3B,40,50,45\nsecond,F,base,1B,50,52,48\n"
    (tmp_path / "mine.csv").write_text(table)
    result = run("predict", saved, "--candidates", "mine.csv", "--volume", "1M", "--recipe", "wide", "--json")
    assert result.exit_code == 0, result.stderr
    assert [row["backbone"] for row in read(result)["rows"]] == ["fresh", "second"]


HEADER = "backbone,family,variant,params,x,y,z\n"


def test_rows_of_candidates_come_back_as_asked(run, saved, tmp_path):
    """An unknown family, one not stated, a variant not stated, and a row that stands twice."""
    rows = {
        "new": "new,N,base,,40,50,45",
        "nobody": "nobody,,base,,40,50,45",
        "either": "either,F,,,40,50,45",
        "sister": "sister,N,instruct,,41,50,45",
    }
    order = ["sister", "new", "nobody", "either", "new"]
    (tmp_path / "mine.csv").write_text(HEADER + "\n".join(rows[name] for name in order) + "\n")
    result = run("predict", saved, "--candidates", "mine.csv", "--volume", "1M", "--json")
    assert result.exit_code == 0, result.stderr
    told = read(result)["rows"]
    noted = {note["code"] for note in read(result)["notes"]}
    assert noted >= {"unseen-family", "family-unknown", "variant-unknown", "duplicate-name"}
    assert [row["backbone"] for row in told] == order
    assert told[1] == told[4]
    assert [row["family"] for row in told] == ["N", "N", "unknown", "F", "N"]
    assert [row["variant"] for row in told] == ["instruct", "base", "base", "unknown", "base"]
    assert [row["mode"] for row in told] == ["new family"] * 3 + [
        "new backbone of known family",
        "new family",
    ]
    for code in ("unseen-family", "family-unknown", "variant-unknown", "duplicate-name"):
        assert f"[{code}]" in result.stderr


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("", "no rows"),
        ("a,N,chat-tuned,,40,50,45\n", "chat-tuned"),
        ("a,N,base,,40,50,45\na,M,base,,40,50,45\n", "rows of one name differ: 'a'"),
        ("f-base,G,base,,40,50,45\n", "of the study's 'f-base'"),
    ],
)
def test_candidates_that_cannot_be_meant_are_refused(run, saved, tmp_path, rows, said):
    (tmp_path / "mine.csv").write_text(HEADER + rows)
    result = run("predict", saved, "--candidates", "mine.csv", "--volume", "1M", "--json")
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stdout == ""


def test_ten_thousand_candidates_in_any_order(run, unconverged, tmp_path):
    names = [f"c{i}" for i in np.random.default_rng(0).permutation(10_000)]
    (tmp_path / "mine.csv").write_text(HEADER + "".join(f"{name},N,base,,40,50,45\n" for name in names))
    result = run("predict", unconverged, "--candidates", "mine.csv", "--volume", "1M", "--out", "table.csv")
    assert result.exit_code == 3
    assert list(pd.read_csv("table.csv")["backbone"]) == names


def test_warnings_are_counted_on_stderr_and_stdout_stays_clean(run, saved):
    result = run("compare", saved, "benchmarks", "--json")
    assert "1 warning limits the answers (odd-score)" in result.stderr
    assert any("odd-score" in line for line in read(result)["facts"]["warnings"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("compare", "families"),
        ("compare", "backbones"),
        ("predict", "--volume", "1M", "--recipe", "wide"),
        ("report", "--out", "page.html"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_what_did_not_converge_ends_with_status_3_after_saying_so(arguments, as_json, run, unconverged):
    command, *rest = arguments
    result = run(command, unconverged, *rest, *(["--json"] if as_json else []))
    assert result.exit_code == 3, result.stderr
    assert "NOT CONVERGED" in result.stderr
    if as_json:
        shown = read(result)
        assert not shown.get("facts", shown)["converged"]
    else:
        assert "NOT CONVERGED" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("predict", "FIT", "--volume", "many"), "--volume: "),
        (("predict", "FIT", "--volume", "1M", "--recipe", "wider"), "did you mean 'wide'"),
        (("predict", "FIT", "--volume", "1M", "--prob", "90"), "did you mean 0.9"),
        (("predict", "FIT", "--volume", "1M", "--prob", "1.5"), "give a fraction such as 0.9 or 0.95"),
        (("predict", "FIT", "--volume", "1M", "--recipe", "wid"), "did you mean 'wide'"),
        (("predict", "FIT", "--volume", "1.2"), "1.2 samples is less than a thousandth of the smallest"),
        (("predict", "FIT", "--volume", "1.2"), "did you mean 1.2M?"),
        (("report", "FIT", "--volume", "12"), "did you mean 12M?"),
        (("predict", ".", "--volume", "1M"), "is a folder; give the file that `bayescdm fit"),
        (("predict", "absent.nc", "--volume", "1M"), "absent.nc: no such file"),
        (("predict", "FIT", "--volume", "1M", "--candidates", "absent.csv"), "absent.csv"),
        (("compare", "FIT", "models"), "needs at least two"),
        (("compare", "FIT", "families", "--out", "absent/table.csv"), "there is no folder absent"),
        (
            ("report", "FIT", "--max-size", "4"),
            "--max-size 4 is not an absolute count: write 4B or 4e9 for 4 billion",
        ),
        (
            ("report", "FIT", "--min-size", "1T", "--max-size", "2T"),
            "no backbone with text scores has 1T to 2T",
        ),
        (("report", "no-such-study"), "no-such-study"),
    ],
)
def test_a_users_mistake_is_one_line_and_status_1(arguments, said, run, saved):
    result = run(*(saved if argument == "FIT" else argument for argument in arguments))
    assert result.exit_code == 1
    lines = [line for line in result.stderr.splitlines() if "warning" not in line]
    assert len(lines) == 1
    assert said in lines[0]
    assert result.stdout == ""


def test_of_one_recipe_its_beginning_is_enough_for_a_hint_and_a_new_one_is_not_offered(run, one_recipe):
    begun = run("predict", one_recipe, "--volume", "1M", "--recipe", "only")
    assert begun.stderr == "recipe 'only' is not known; did you mean 'only | encoder'?\n"
    other = run("predict", one_recipe, "--volume", "1M", "--recipe", "else")
    assert other.stderr == "recipe 'else' is not known; known: only | encoder\n"


def test_candidates_say_what_they_were_not_measured_on(run, saved, tmp_path):
    rows = "full,N,base,,40,50,45\nhalf,N,base,,40,,\nalso,N,base,,41,,\n"
    (tmp_path / "mine.csv").write_text(HEADER + rows)
    result = run("compare", saved, "backbones", "--candidates", "mine.csv", "--json")
    assert "half and also have no score on y, z: their capability is less sure" in result.stderr
    told = {row["backbone"]: row for row in read(result)["rows"]}
    widths = {name: row["backbone_90_upper"] - row["backbone_90_lower"] for name, row in told.items()}
    assert widths["half"] > widths["full"]
    shown = run("report", saved, "--candidates", "mine.csv", "--format", "json")
    assert (
        "half has no score on y and z, so its capability is less sure and its interval wider." in shown.stdout
    )


def test_columns_that_are_not_the_studys_are_named_with_the_nearest(run, saved, tmp_path):
    (tmp_path / "mine.csv").write_text("backbone,family,xx,unlike\na,N,40,50\n")
    result = run("predict", saved, "--candidates", "mine.csv", "--volume", "1M")
    assert result.exit_code == 1
    assert "none of its columns is a text benchmark of the study: 'xx' (nearest: 'x')" in result.stderr
    assert "'unlike' (there are 'x', 'y', 'z')" in result.stderr


@pytest.mark.parametrize(
    "arguments", [("predict", "FIT"), ("compare", "FIT", "colours"), ("predict", "FIT", "--kind", "x")]
)
def test_wrong_usage_is_status_2(arguments, run, saved):
    assert run(*(saved if argument == "FIT" else argument for argument in arguments)).exit_code == 2


# --- report -----------------------------------------------------------------------------------------


def test_report_json_and_page_agree(run, saved, made):
    asked = answer(made)
    told = read(run("report", saved, "--json"))
    assert told["report"] == "bayescdm-made-by-hand.html"
    assert told["answer"] == list(asked.sentences)
    assert [row["backbone"] for row in told["ranking"]] == list(asked.ranking["backbone"])
    with open(told["report"], encoding="utf-8") as file:
        page = file.read()
    places = [page.index(f">{name}</th>") for name in asked.ranking["backbone"]]
    assert places == sorted(places)


def test_what_the_default_sizes_leave_out_is_said_in_terminal_json_and_page(run, made, tmp_path):
    backbones = made.study.backbones.copy()
    backbones.loc["f-base", "params"] = 9.2e9
    large = replace(made, study=replace(made.study, backbones=backbones)).save(tmp_path / "large.nc")
    said = "1 backbone with text scores is left out by size, 1 of them with runs: f-base; "
    assert f"[left-out-by-size] {said}" in run("report", large).stdout
    assert said in Path("bayescdm-made-by-hand.html").read_text(encoding="utf-8")
    for told in (run("report", large, "--json"), run("compare", large, "backbones", "--json")):
        notes = read(told)["notes"]
        assert [note["message"].startswith(said) for note in notes] == [True]
    named = read(run("report", large, "--max-size", "9.2B", "--json"))
    assert named["notes"] == [] and "f-base" in [row["backbone"] for row in named["ranking"]]


@pytest.fixture
def quick_page(monkeypatch):
    """A page that says whose it is and nothing else, for tests of what stands around it."""

    def short(*_, **__):
        return Document("title", "subtitle", [Section("answer", "Answer", [])])

    monkeypatch.setattr(sys.modules["bayescdm.report.make"], "answer_document", short)


def test_report_says_in_the_terminal_what_the_answer_is(run, saved, made, quick_page):
    asked = answer(made)
    shown = run("report", saved)
    assert shown.exit_code == 0
    for sentence in (*asked.sentences, *asked.question.chosen):
        assert sentence in shown.stdout
    places = [re.search(rf"^{name} ", shown.stdout, re.M).start() for name in asked.ranking["backbone"]]
    assert places == sorted(places)
    assert shown.stdout.endswith("report: bayescdm-made-by-hand.html\n")


def test_report_replaces_its_own_page_and_nobody_elses(run, saved, tmp_path, quick_page):
    for _ in range(2):
        assert run("report", saved).exit_code == 0
    assert run("report", saved, "--out", "page.html").exit_code == 0
    assert "page.html: exists already" in run("report", saved, "--out", "page.html").stderr
    (tmp_path / "mine.html").write_text("mine")
    refused = run("report", saved, "--out", "mine.html")
    assert refused.exit_code == 1
    assert "mine.html: exists already" in refused.stderr
    assert (tmp_path / "mine.html").read_text() == "mine"
    assert run("report", saved, "--out", "mine.html", "--overwrite").exit_code == 0


# --- fitting, with a sampler that is not asked --------------------------------------------------------


@pytest.fixture
def asked(monkeypatch, made):
    """What `fit` was called with; it returns a fit of known draws."""
    calls = []

    def remember(study, **options):
        calls.append((study, options))
        return replace(made, model=options["model"])

    monkeypatch.setattr(sys.modules["bayescdm.fit"], "fit", remember)
    return calls


def test_fit_passes_its_options_on_and_writes_the_fit(run, asked):
    result = run(
        *("fit", "open-vlm", "--out", "fit.nc", "--model", "transfer_pooled", "--seed", 7, "--components", 2),
        *("--population", "with_runs", "--draws", 10, "--chains", 2, "--json"),
    )
    assert result.exit_code == 0, result.stderr
    ((study, options),) = asked
    assert study.name == "open-vlm"
    assert (options["seed"], options["components"], options["population"]) == (7, 2, "with_runs")
    assert (options["settings"].draws, options["settings"].chains) == (10, 2)
    assert read(result)["diagnosis"]["converged"] is True
    assert load_fit("fit.nc").model == "transfer_pooled"


def test_fit_refuses_an_existing_file_before_it_samples(run, asked, tmp_path):
    (tmp_path / "fit.nc").write_text("mine")
    result = run("fit", "open-vlm", "--out", "fit.nc")
    assert result.exit_code == 1
    assert asked == []
    assert (tmp_path / "fit.nc").read_text() == "mine"


def test_flagged_scores_are_missing_in_the_fit_that_asks_for_it(run, asked):
    assert run("fit", "open-vlm", "--out", "a.nc").exit_code == 0
    assert run("fit", "open-vlm", "--out", "b.nc", "--treat-outliers-as-missing").exit_code == 0
    kept, treated = (study.text_scores.loc[study.scored].isna().sum().sum() for study, _ in asked)
    assert treated - kept == 15


def test_report_and_choose_fit_without_flagged_scores_where_that_is_asked(run, asked, saved, quick_page):
    option = "--treat-outliers-as-missing"
    assert run("report", "open-vlm", option).exit_code == 0
    assert run("choose", "open-vlm", option, "--volume", "1.2M").exit_code == 0
    assert run("fit", "open-vlm", "--out", "a.nc").exit_code == 0
    *treated, kept = (study.text_scores.loc[study.scored].isna().sum().sum() for study, _ in asked)
    assert treated == [kept + 15, kept + 15]
    for command in ("report", "choose"):
        refused = run(command, saved, option)
        assert (refused.exit_code, refused.stderr) == (
            1,
            f"{option} belongs to fitting; {saved} is fitted already\n",
        )


def test_report_of_a_study_fits_once_more_without_flagged_scores(run, asked, quick_page):
    page = run("report", "open-vlm", "--model", "transfer_pooled", "--seed", 5)
    assert page.exit_code == 0, page.stderr
    (first, options), (second, again) = asked
    assert options == again
    assert (options["model"], options["seed"]) == ("transfer_pooled", 5)
    assert second.text_scores.isna().sum().sum() - first.text_scores.isna().sum().sum() == 15
    assert run("report", "open-vlm", "--no-sensitivity").exit_code == 0
    assert len(asked) == 3


def test_report_says_in_the_terminal_what_the_refit_changes(run, asked):
    result = run("report", "open-vlm", "--format", "json", "--out", "page.json")
    assert result.exit_code == 0, result.stderr
    assert "flagged text scores treated as missing" in result.stdout.partition("report: ")[0]


def test_report_says_that_another_model_predicts_better(run, saved):
    text = run("report", saved, "--format", "json").stdout
    assert "Model transfer_hierarchical does not use the size of a backbone." in text
    assert "bayescdm validate STUDY --model transfer_size" in text
    with open(Path(__file__).parents[1] / "README.md", encoding="utf-8") as readme:
        table = readme.read()
    for model, error in LEFT_OUT.items():
        assert re.search(rf"^\| `{model}` \| \d+ \| {error:.2f} \|", table, re.M)
        assert f"{error:.2f}" in text


# --- tables in the terminal ---------------------------------------------------------------------------


@pytest.mark.parametrize("room", [20, 60, 80, 200])
def test_figures_are_never_broken_and_titles_only_between_words(room):
    rows = {"name": ["n" * 40, "short"], "low": [0.111, 0.2], "high": [0.5, 0.6], "note": ["a b c", ""]}
    columns = [
        Column("some name", "name"),
        Column("run, 90 % interval", ("low", "high"), "percent"),
        Column("what is known", "note"),
    ]
    laid_out = table("", "", pd.DataFrame(rows), columns)
    widths = column_widths(laid_out, room)
    assert widths[1] >= len("11.1 to 50.0")
    assert widths[0] >= 28
    assert all(width >= len(word) for width, c in zip(widths, columns) for word in c.title.split())
    if room == 200:
        assert widths == [40, len("run, 90 % interval"), len("what is known")]
    if room > 60:
        assert sum(widths) + 2 <= room
