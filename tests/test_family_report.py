"""The report of one family: its sentences are its numbers, and page, text and JSON say the same."""

import json
import re
from dataclasses import replace
from html import unescape

import matplotlib as mpl
import numpy as np
import pytest
from typer.testing import CliRunner

import bayescdm as cdm
from bayescdm import cli
from bayescdm.compare import compare_positions
from bayescdm.errors import NotFoundError, RequestError
from bayescdm.predict import predict_draws
from bayescdm.report.family import same_size_pairs
from bayescdm.report.family_words import (
    extrapolation_in_words,
    nearest_in_words,
    observed_in_words,
    position_in_words,
    scores_in_words,
)
from bayescdm.tables import written
from bayescdm.wording import short_of


@pytest.fixture(scope="module")
def fit(known_fit):
    fit = known_fit(2000)
    backbones = fit.study.backbones.copy()
    # f-base and f-instruct are one size; so are g-base and g-instruct.
    backbones["params"] = [2e9, 2e9, 4e9, 7e9, 4.02e9, 9e9, 1e9]
    return replace(fit, study=replace(fit.study, backbones=backbones), settings={"seed": 3})


@pytest.fixture(scope="module")
def report(fit):
    return cdm.family_report(fit, "F")


@pytest.fixture(scope="module")
def page(report):
    with mpl.rc_context({"backend": "agg"}):
        return report.to_html()


def cells(page, name):
    """Texts of the cells of a table of the page, row by row, without the header."""
    body = re.search(rf'<table id="{name}".*?<tbody>(.*?)</tbody>', page, re.S).group(1)
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.S)
    return [[unescape(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)] for row in rows]


def said(report, name):
    """Sentences of one section."""
    return " ".join(next(s for s in report.document().sections if s.name == name).sentences)


# --- what it says -----------------------------------------------------------------------------------


def test_position_is_said_with_its_numbers(report):
    row = report.position.set_index("quantity").loc["A"]
    text = said(report, "answer")
    assert f"A = {written(row['mean'], 'number')} (posterior, 90 % interval" in text
    side = "above" if row["p_greater"] >= 0.5 else "below"
    assert f"against {written(row['population'], 'number')}; {side}" in text
    assert short_of(max(row["p_greater"], 1 - row["p_greater"]), 0.9) in text
    assert "puts A at" in text
    assert f"{written(row['separate'], 'number')} ± {written(row['separate_sd'], 'number')}" in text


@pytest.mark.parametrize(
    ("factor", "words"), [(4.0, "F has a higher transfer rate"), (0.25, "F has a lower transfer rate")]
)
def test_a_family_that_differs_is_told_from_the_population(known_fit, factor, words):
    A = known_fit(500).posterior["A"].to_numpy() * np.array([[factor], [1.0]])
    assert words in str(cdm.family_report(known_fit(500, A=(("family", "variant"), A)), "F"))


def test_pairs_are_of_one_size_and_paired_by_draw(fit, report):
    assert same_size_pairs(fit, ["f-base", "f-instruct", "f-other"]) == [("f-base", "f-instruct")]
    question = report.question
    draws = predict_draws(
        fit, ["f-base", "f-instruct"], volumes=question.volume, recipe=question.recipe, kind="backbone"
    )
    margin = draws.sel(backbone="f-instruct") - draws.sel(backbone="f-base")
    row = report.pairs[report.pairs["volume"] == question.volume].iloc[0]
    assert row["difference_mean"] == pytest.approx(float(margin.mean()))
    assert row["p_instruct_greater"] == pytest.approx(float((margin > 0).mean()))
    assert "f-instruct" in said(report, "pairs")


def test_a_family_without_a_pair_says_so(fit):
    assert "no base and instruct backbone of one size" in said(cdm.family_report(fit, "N"), "pairs")


def test_without_runs_only_the_population_speaks(fit):
    report = cdm.family_report(fit, "N")
    assert not report.has_runs
    assert report.sentences[0] == (
        "No run of the study uses N: only the population of families speaks of it, and its rates are drawn "
        "from it."
    )
    assert "Without runs of its own nothing brings N near any family" in said(report, "nearest")
    assert report.runs.empty


def test_strengths_and_taxes_follow_the_table(report):
    text = said(report, "text-scores")
    mean = report.text_scores[report.text_scores["backbone"] == "mean of its backbones"]
    for row in mean.to_dict("records"):
        strong = row["mean"] > 0 and row["p_positive"] >= 0.9 and row["accuracy_mean"] >= 0.0005
        assert (f"{row['benchmark']} (+" in text.partition("Weaknesses")[0]) == strong
        tax = row["p_tax"] >= 0.9 and row["score"] > row["population_mean"]
        assert (f"{row['benchmark']} (P(tax)" in text) == tax


def test_a_probability_below_its_threshold_never_reads_as_the_threshold(report):
    row = report.position["quantity"] == "A"
    text = []
    for p in (0.8965, 0.1035):
        position = report.position.assign(p_greater=report.position["p_greater"].mask(row, p))
        text.append(position_in_words(replace(report, position=position))[0])
    assert "above it with probability .896 only, less than 0.9" in text[0]
    assert "below it with probability .896 only, less than 0.9" in text[1]


def test_pooling_is_said_of_both_rates_and_how_far_it_stands_from_the_own_runs(report):
    numbers = {"separate": 0.0226, "separate_sd": 0.0064, "mean": 0.0085, "shrinkage": 0.97}
    told = report.position.assign(**numbers, why_none="")
    text = " ".join(position_in_words(replace(report, position=told)))
    for symbol in ("A", "mean B"):
        assert f"puts {symbol} at 0.0226 ± 0.00640 (standard error); pooling has moved it 97 %" in text
    assert "to 0.00850, 2.2 standard errors from what its own runs say" in text
    near = " ".join(position_in_words(replace(report, position=told.assign(separate_sd=0.02))))
    assert "standard errors" not in near
    none = told.assign(why_none="1 run on 1 backbone: too few")
    assert "no separate estimate of A and mean B (1 run on 1 backbone: too few)" in " ".join(
        position_in_words(replace(report, position=none))
    )


def test_runs_outside_the_interval_of_a_run_are_counted_against_what_is_expected(report):
    runs = report.runs
    here = runs[runs["recipe"] == report.question.recipe]
    low, high = here["run_90_lower"].astype(float), here["run_90_upper"].astype(float)
    outside = ((here["accuracy"] < low) | (here["accuracy"] > high)).to_numpy()
    assert (here["outside"].astype(bool).to_numpy() == outside).all()
    where = {"recipe": report.question.recipe, "kind": "run"}
    for row in here.itertuples():
        told = cdm.predict(report.fit, [row.backbone], volumes=row.volume, **where).squeeze()
        assert (row.run_90_lower, row.run_90_upper) == (float(told["lower"]), float(told["upper"]))
    far = runs.assign(outside=True)
    text = " ".join(observed_in_words(replace(report, runs=far)))
    n, every = len(here), len(runs)
    assert f"Of its {n} runs of known volume under {report.question.recipe}, {n} lie outside" in text
    assert f"where {0.1 * n:.1f} would be expected: f-base at 100K" in text
    assert f"Of its {every} runs of known volume under all recipes, {every} lie outside" in text
    assert " 0 lie outside" in " ".join(observed_in_words(replace(report, runs=runs.assign(outside=False))))
    assert observed_in_words(replace(report, runs=runs.assign(outside=None))) == []


def test_what_rounds_to_no_accuracy_is_no_strength(report):
    scores = report.text_scores.assign(p_positive=1.0, mean=0.1, accuracy_mean=0.02)
    scores.loc[scores["benchmark"] == "x", "accuracy_mean"] = 0.0004
    text = " ".join(scores_in_words(replace(report, text_scores=scores)))
    assert "x (+" not in text
    assert "Of sure sign, but worth less than 0.05 points of accuracy: x." in text


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("N", "1 backbone of N can be placed by the law; it has no run."),
        ("F", "2 of them have 8 runs in all."),
    ],
)
def test_backbones_and_runs_are_counted_in_whole_sentences(fit, family, words):
    assert words in said(cdm.family_report(fit, family), "trajectories")


def test_the_nearest_family_comes_with_how_little_that_says(report):
    first = report.nearest.iloc[0]
    text = report.sentences
    assert any(
        sentence.startswith(f"Nearest is {first['family']}")
        and f"has a probability of only {short_of(first['p_equivalent'], 0.9)}" in sentence
        for sentence in text
    )
    assert f"A of F exceeds that of {first['family']} with probability" in said(report, "nearest")
    sure = replace(report, nearest=report.nearest.assign(p_equivalent=0.95))
    assert "the two are practically equal (both" in nearest_in_words(sure)[0]


def test_what_the_recipe_has_not_seen_is_said_and_drawn_as_extrapolation(known_fit):
    fit = known_fit(300)
    runs = fit.study.runs
    # The narrow recipe has seen f-base (1B) alone, at the smallest volume alone.
    weights = ~((runs["recipe"] == "narrow") & ((runs["backbone"] != "f-base") | (runs["volume"] > 1e6)))
    fit = known_fit(300, weights=weights.astype(float))
    report = cdm.family_report(fit, "F", recipe="narrow", volume=1e5)
    text = " ".join(extrapolation_in_words(report))
    assert "larger than any run of this recipe (1B)" in text
    assert "none of its backbones lies outside" not in text
    assert "narrow was run at one volume (100K samples)" in text
    table = report.trajectories
    assert (table.loc[table["volume"] > 2e5, "beyond_recipe"] != "").all()
    with mpl.rc_context({"backend": "agg"}):
        axes = cdm.plot_trajectories(fit, candidates=["f-base", "f-instruct"], recipe="narrow", volume=1e5)
        solid = [next(line for line in ax.lines if line.get_linewidth() == 1.8) for ax in axes]
    x, y = solid[0].get_data()
    assert np.isfinite(y).any()
    assert x[np.isfinite(y)].max() <= 1.15e5
    assert np.isnan(solid[1].get_ydata()).all()


def test_what_is_extrapolated_is_said(fit):
    scores = fit.study.text_scores.copy()
    scores.loc["f-other"] = 0.99
    far = replace(fit, study=replace(fit.study, text_scores=scores))
    report = cdm.family_report(far, "F")
    assert report.backbones.set_index("backbone").at["f-other", "extrapolation"]
    assert "f-other is an extrapolation in capability beyond what was observed in runs." in str(report)
    assert "f-other: larger than any run of this recipe (4B); that wide carries over to it is" in str(report)


def test_a_model_of_one_rate_for_all_says_so(known_fit):
    draws = known_fit(300).posterior
    population = {rate: draws[f"{rate}_population"].to_numpy()[..., None, None] for rate in ("A", "B0", "Bm")}
    same = {rate: (("family", "variant"), np.tile(v, (1, 1, 2, 2))) for rate, v in population.items()}
    parts = ("family_scale", "contrast", "contrast_scale")
    gone = [f"{rate}_{part}" for rate in population for part in parts]
    report = cdm.family_report(known_fit(300, without=gone, **same), "F")
    assert "gives all families the same rates" in str(report)
    assert report.contrasts.empty


# --- what is refused --------------------------------------------------------------------------------


def test_unknown_families_are_refused_with_the_nearest(fit):
    with pytest.raises(NotFoundError, match="family 'f' is not known; did you mean 'F'"):
        cdm.family_report(fit, "f")
    scores = fit.study.text_scores.copy()
    scores.loc["n-base"] = np.nan
    with pytest.raises(RequestError, match="family 'N': none of its backbones has text scores"):
        cdm.family_report(replace(fit, study=replace(fit.study, text_scores=scores)), "N")


def test_draws_that_did_not_converge_are_announced_everywhere(known_fit):
    report = cdm.family_report(known_fit(50), "F")
    with mpl.rc_context({"backend": "agg"}):
        page, text, told = report.to_html(), report.to_md(), json.loads(report.to_json())
    assert report.sentences[0].startswith("NOT CONVERGED")
    assert 'role="alert"' in page
    assert all("converged" in figure for figure in re.findall(r"<svg.*?</svg>", page, flags=re.S))
    assert text.index("> **NOT CONVERGED.**") < text.index("##")
    assert text.count("**not converged**") == 5
    assert told["converged"] is False
    assert told["problem"]


# --- page, text and JSON ----------------------------------------------------------------------------


def tables_of(told):
    return {part["name"]: part for section in told["sections"] for part in section["parts"] if "rows" in part}


def test_page_text_and_json_hold_the_same_numbers(report, page):
    told = json.loads(report.to_json(), parse_constant=lambda name: pytest.fail(name))
    plain = re.sub(r"\\(.)", r"\1", report.to_md())
    tables = {part.name: part for s in report.document().sections for part in s.parts if part.kind == "table"}
    assert tables.keys() == tables_of(told).keys()
    for name, table in tables.items():
        rows = tables_of(told)[name]["rows"]
        assert len(rows) == len(cells(page, name)) == len(table.rows)
        for row, shown in zip(rows, cells(page, name)):
            for column, cell in zip(table.columns, shown):
                ends = [column.source] if isinstance(column.source, str) else column.source
                values = [row[end] if row[end] is not None else np.nan for end in ends]
                assert " to ".join(written(value, column.form) for value in values) == cell
        if not table.folded:
            for shown in cells(page, name):
                assert f"| {' | '.join(shown)} |" in plain
    for section in told["sections"]:
        for sentence in section["sentences"]:
            assert sentence in plain


def test_text_holds_no_markup_and_says_what_it_leaves_out(report):
    text = report.to_md()
    assert not re.search(r"(?<!\\)<[a-zA-Z/!]", text)
    assert "figure: Transfer rate A of each family" in text
    assert "- All quantities" in text
    tables = [line for line in text.splitlines() if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)


def test_written_text_has_its_figures_beside_it(report, tmp_path):
    with mpl.rc_context({"backend": "agg"}):
        report.write(tmp_path / "f.md", format="md")
    text = (tmp_path / "f.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(pictures) == 5
    assert all((tmp_path / place).read_bytes().startswith(b"\x89PNG") for place in pictures)
    with pytest.raises(RequestError, match="exists already"):
        report.write(tmp_path / "f.md", format="md")
    with pytest.raises(RequestError, match="format 'pdf' is none of html, md, json"):
        report.write(tmp_path / "f.pdf", format="pdf")


def test_all_families_stand_on_one_page(fit):
    reports = cdm.family_reports(fit)
    assert [report.family for report in reports.reports] == ["F", "G", "N"]
    with mpl.rc_context({"backend": "agg"}):
        page = reports.to_html()
    identifiers = re.findall(r'\bid="([^"]+)"', page)
    assert len(identifiers) == len(set(identifiers))
    assert [row[0] for row in cells(page, "positions-all")] == ["F", "F", "G", "G", "N", "N"]
    told = json.loads(reports.to_json())
    assert [entry["family"] for entry in told["families"]] == ["F", "G", "N"]
    assert "3 families of made by hand can be placed" in str(reports)


def test_rates_of_all_families_are_stated_at_one_volume(known_fit):
    fit = known_fit(200)
    runs = fit.study.runs.copy()
    # The volumes of F are known under one recipe, those of G under the other, up to another volume.
    of_f, narrow = runs["backbone"].str.startswith("f-"), runs["recipe"] == "narrow"
    runs.loc[of_f != narrow, "volume"] = np.nan
    runs.loc[runs["volume"] > 1e6, "volume"] = runs["volume"].where(narrow, 2e7)
    reports = cdm.family_reports(replace(fit, study=replace(fit.study, runs=runs)))
    assert [report.question.volume for report in reports.reports[:2]] == [1e7, 2e7]
    one = {report.rates_volume for report in reports.reports}
    assert one == {fit.study.volume_ref}
    told = compare_positions(fit, ["F", "G"]).set_index(["family", "quantity"])["mean"]
    with mpl.rc_context({"backend": "agg"}):
        page = reports.to_html()
    sentences = " ".join(s for section in reports.document().sections for s in section.sentences)
    shown = {row[0]: row[2] for row in cells(page, "positions-all") if row[1] == "A"}
    for family in ("F", "G"):
        assert shown[family] == written(told[family, "A"], "number")
        assert f"at 1M samples A = {shown[family]} (posterior" in sentences
    assert "Position of every family. A at 1M samples" in page
    assert "Transfer rate A of each family at 1M samples" in page
    assert {report.rates_volume for report in cdm.family_reports(fit, volume=1e5).reports} == {1e5}


# --- the command ------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    return lambda *arguments: CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def saved(fit, tmp_path_factory):
    return fit.save(tmp_path_factory.mktemp("fits") / "fit.nc")


def test_terminal_json_and_file_agree(run, saved, report, tmp_path):
    shown = run("report", saved, "--family", "F", "--format", "md")
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.endswith("report: bayescdm-made-by-hand-F.md\n")
    for sentence in report.sentences:
        assert sentence in shown.stdout
    told = run("report", saved, "--family", "F", "--format", "json", "--json")
    document = json.loads(told.stdout)
    written_to = document.pop("report")
    assert json.loads((tmp_path / written_to).read_text(encoding="utf-8")) == document
    assert document == json.loads(report.to_json())


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--family", "Fs"), "family 'Fs' is not known; did you mean 'F'?"),
        (("--family", "F", "--min-size", "1B"), "--family reports on the study's own backbones; leave out"),
        (("--family", "F", "--prob", "1.5"), "probability 1.5 is not between 0 and 1"),
    ],
)
def test_mistakes_are_one_line(run, saved, arguments, line):
    result = run("report", saved, *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_an_unknown_family_is_refused_before_minutes_of_sampling(run, monkeypatch):
    import sys

    monkeypatch.setattr(sys.modules["bayescdm.fit"], "fit", lambda *_, **__: pytest.fail("sampled"))
    result = run("report", "open-vlm", "--family", "Qwen25")
    assert result.exit_code == 1
    assert "did you mean 'Qwen2.5'" in result.stderr
