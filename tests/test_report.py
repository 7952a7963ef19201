"""The page: self-contained, its sentences made from its numbers, loud when the draws cannot be trusted."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from bayescdm.compare import rank_backbones
from bayescdm.decide import choose
from bayescdm.errors import Note, RequestError
from bayescdm.plots.style import DARK, LIGHT
from bayescdm.predict import predict_draws
from bayescdm.report import answer, report
from bayescdm.report.answers import Answer
from bayescdm.report.page import is_report
from bayescdm.report.question import Question, ask
from bayescdm.report.sensitivity import answer_again, changes, changes_in_words
from bayescdm.report.volumes import volume_slider
from bayescdm.tables import Column, table
from bayescdm.tables import written as written_cell
from bayescdm.wording import probability, signed_points


class Page(HTMLParser):
    """What the tests look at: attributes, text, and the cells of each table."""

    def __init__(self, text):
        super().__init__()
        self.attributes, self.ids, self.tables, self.tags = [], [], {}, []
        self.cell = self.table = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs.items()]
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "table":
            self.table = self.tables.setdefault(attrs["id"], [])
        elif tag == "tr":
            self.table.append([])
        elif tag in ("th", "td"):
            self.cell = []

    def handle_endtag(self, tag):
        if tag in ("th", "td"):
            self.table[-1].append("".join(self.cell).strip())
            self.cell = None

    def handle_data(self, data):
        if self.cell is not None:
            self.cell.append(data)


@pytest.fixture(scope="module")
def fit(known_fit):
    made = known_fit(2000)
    study = made.study.with_notes(
        Note("odd-score", "5 < 6 & so on", "warning", "runs.csv"), Note("repaired", "a cell was cleaned")
    )
    return replace(made, study=study, settings={"seed": 3, "versions": {"pymc": "6"}})


@pytest.fixture(scope="module")
def unconverged(known_fit):
    return known_fit(50)


def written(folder, fit, **more):
    with mpl.rc_context({"backend": "agg"}):
        path = report(fit, folder / "page.html", **more)
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def text(fit, tmp_path_factory):
    return written(tmp_path_factory.mktemp("report"), fit)


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


@pytest.fixture(scope="module")
def loud(unconverged, fit, tmp_path_factory):
    return written(tmp_path_factory.mktemp("loud"), unconverged, sensitivity_fit=unconverged)


# --- the page ---------------------------------------------------------------------------------------


def test_nothing_is_fetched_from_anywhere(page, text):
    assert "link" not in page.tags
    fetched = [
        v for _, name, v in page.attributes if name in ("src", "href", "xlink:href", "srcset", "action")
    ]
    assert fetched
    assert all(value.startswith("#") for value in fetched)
    assert set(re.findall(r"url\(([^)]{1})", text)) <= {"#"}
    assert "@import" not in text


def test_every_identifier_is_unique_and_every_reference_leads_somewhere(page, text, loud):
    assert len(set(Page(loud).ids)) == len(Page(loud).ids)
    assert len(set(page.ids)) == len(page.ids)
    referred = {v[1:] for _, name, v in page.attributes if name in ("href", "xlink:href") and len(v) > 1}
    referred |= set(re.findall(r"url\(#([^)]+)\)", text))
    assert referred <= set(page.ids)


def test_figures_take_their_colours_from_the_page(text):
    figures = re.findall(r"<svg.*?</svg>", text, flags=re.S)
    assert len(figures) % 2 == 0
    assert len(figures) >= 10
    for figure in figures:
        assert re.findall(r"#[0-9a-f]{6}\b", figure.lower()) == []
        assert "var(--ink)" in figure
    assert f"--ink: {LIGHT.ink}" in text
    assert f"--ink: {DARK.ink}" in text
    assert "prefers-color-scheme: dark" in text


def test_every_figure_has_a_name_and_every_scroll_box_takes_the_keyboard(page):
    drawn = [value for tag, name, value in page.attributes if (tag, name) == ("div", "aria-label")]
    assert len(drawn) == page.tags.count("svg")
    assert all(drawn)
    boxes = [value for tag, name, value in page.attributes if (tag, name) == ("div", "tabindex")]
    assert boxes == ["0"] * page.tags.count("table")


def test_every_note_of_the_study_is_on_the_page_and_escaped(text):
    assert "5 &lt; 6 &amp; so on" in text
    assert "<code>odd-score</code> <b>runs.csv:</b>" in text
    assert "a cell was cleaned" in text


@pytest.fixture(scope="module")
def odd(fit, tmp_path_factory):
    """The page of a simulated study with an unlucky name."""
    study = replace(fit.study, name="<script>alert(1)</script>", simulated=True)
    return written(tmp_path_factory.mktemp("odd"), replace(fit, study=study))


def test_a_name_cannot_bring_markup(odd):
    assert "<script>alert" not in odd
    assert "&lt;script&gt;alert" in odd


def test_simulated_studies_are_called_simulated(odd):
    assert re.search("<h1>(.*)</h1>", odd).group(1).endswith("(simulated)")
    assert "its runs were drawn from known parameters" in odd


# --- what it says -----------------------------------------------------------------------------------


def test_the_sentence_says_what_the_table_says(fit, page, text):
    ranking = rank_backbones(fit, volume=1e5, recipe="wide")
    head, *rows = page.tables["ranking"]
    assert [row[0] for row in rows] == list(ranking["backbone"])
    titles = [title.replace("\N{NO-BREAK SPACE}", " ") for title in head]
    first = dict(zip(titles, rows[0]))
    sentence = answer(fit).sentences[0]
    assert f"{rows[0][0]} has the highest expected accuracy of {len(rows)} candidates" in sentence
    assert f"{first['accuracy, %']} %" in sentence
    assert first["backbone, 90 % interval"].replace(" to", " % to") + " %" in sentence
    assert f"probability {first['P(best)']}" in sentence
    assert sentence.replace(" %", "\N{NO-BREAK SPACE}%") in text


def test_told_apart_and_not_are_counted_from_the_probabilities(fit):
    asked = answer(fit, prob=0.6)
    p = asked.ranking["p_first_better"].iloc[1:]
    said = " ".join(asked.sentences)
    told, untold = (p >= 0.6).sum(), (p < 0.6).sum()
    assert told and untold
    assert f"is better than {told} of {len(p)} others with probability 0.6 or more" in said
    for name, value in zip(asked.ranking["backbone"].iloc[1:], p):
        if value < 0.6:
            assert f"{name} ({probability(value)})" in said


def test_first_is_better_than_another_as_often_as_its_draws_are_greater(fit):
    asked = answer(fit)
    draws = predict_draws(fit, volumes=asked.question.volume, recipe=asked.question.recipe, kind="backbone")
    first, second = (draws.sel(backbone=name).to_numpy() for name in asked.ranking["backbone"][:2])
    assert asked.ranking["p_first_better"].iloc[1] == pytest.approx((first > second).mean())
    # Against itself there is nothing to say.
    assert np.isnan(asked.ranking["p_first_better"].iloc[0])


def test_a_candidate_without_runs_is_said_to_rest_on_others(fit):
    said = {name: str(answer(fit, candidates=[name])) for name in ("n-base", "f-other", "f-base")}
    assert "No run of the study uses the family of n-base; its rates are the population's." in said["n-base"]
    assert (
        "f-other has no run in the study; what is said of it rests on its family's runs." in said["f-other"]
    )
    assert "run" not in said["f-base"]


def test_unconverged_draws_are_announced_before_any_number(loud, unconverged):
    body = loud[loud.index("<body>") :]
    assert body.index("Not converged.") < re.search(r"\d", re.sub("<[^>]*>", "", body)).start() + 400
    assert 'role="alert"' in body
    assert answer(unconverged).sentences[0].startswith("NOT CONVERGED")


def test_every_table_and_figure_of_unconverged_draws_says_so(loud, text):
    from_draws = ("ranking", "family-rates", "lambda", "changes", "summary")
    for name in from_draws:
        caption = re.search(rf'<p class="caption" id="{name}-caption">.*?</p>', loud, flags=re.S).group()
        assert "not converged" in caption
    figures = re.findall(r"<svg.*?</svg>", loud, flags=re.S)
    assert all("converged" in figure for figure in figures)
    assert "not converged" not in text
    assert not any("converged" in figure for figure in re.findall(r"<svg.*?</svg>", text, flags=re.S))


# --- the question -----------------------------------------------------------------------------------


def test_defaults_are_said_aloud(fit):
    question = ask(fit)
    # Both recipes have six runs; the last by name, and the larger of its volumes.
    assert (question.recipe, question.volume) == ("wide", 1e7)
    assert question.candidates == ["f-base", "f-instruct", "g-base", "f-other", "g-instruct", "n-base"]
    assert len(question.chosen) == 3
    assert ask(fit, candidates=["f-base"], recipe="narrow", volume=2e6).chosen == ()


def test_a_volume_that_nobody_asked_for_is_marked_as_chosen(fit):
    for volume, mark in ((None, "10M samples, as chosen"), (1e6, "1M samples, as asked")):
        slider = volume_slider(fit, answer(fit, volume=volume))
        assert slider.steps[slider.start].label == mark
        assert slider.steps[slider.start].table.caption.endswith(mark)
        chosen = choose(fit, volume=volume).document().sections[0].parts
        slider = next(part for part in chosen if part.kind == "slider")
        assert slider.steps[slider.start].label == mark


def test_sizes_choose_candidates(fit):
    assert ask(fit, sizes=(2e9, 4e9)).candidates == ["f-instruct", "g-base"]
    with pytest.raises(RequestError, match="no backbone with text scores has 1T to 2T parameters"):
        ask(fit, sizes=(1e12, 2e12))
    with pytest.raises(RequestError, match="name no candidates"):
        ask(fit, candidates=["f-base"], sizes=(1e9, 2e9))


@pytest.fixture
def sized(fit):
    """Maker of the fit with other sizes, in parameters."""

    def make(**params):
        backbones = fit.study.backbones.copy()
        for name, size in params.items():
            backbones.loc[name.replace("_", "-"), "params"] = size
        return replace(fit, study=replace(fit.study, backbones=backbones))

    return make


def test_what_the_default_sizes_leave_out_is_said_and_whether_it_would_be_first(sized, tmp_path):
    order = list(answer(sized()).ranking["backbone"])
    first, last = order[0], order[-1]
    large = sized(**{first.replace("-", "_"): 9.237e9})
    whole = answer(large, sizes=(1e9, 2e10))
    assert whole.ranking["backbone"].iloc[0] == first and whole.notes == ()
    told = answer(large)
    assert first not in list(told.ranking["backbone"])
    with_runs = ", 1 of them with runs" if first in set(large.study.fitted_runs["backbone"]) else ""
    mean = f"{100 * whole.ranking['mean'].iloc[0]:.1f} %"
    message = (
        f"1 backbone with text scores is left out by size{with_runs}: {first}; {first} would be first "
        f"({mean}); --max-size 9.24B lets it in"
    )
    assert [(note.severity, note.message) for note in told.notes] == [("warning", message)]
    assert told.to_dict()["notes"][0]["message"] == message
    assert message.replace(" %", "\N{NO-BREAK SPACE}%") in written(tmp_path, large)
    assert answer(large, sizes=(1e9, 9.24e9)).ranking["backbone"].iloc[0] == first
    low = answer(sized(**{last.replace("-", "_"): 0.4943e9}))
    assert low.notes[0].message.endswith("none would be first; --min-size 494M lets it in")
    assert low.notes[0].severity == "note"


def test_what_is_left_out_is_counted_with_its_runs_and_without_a_size(sized):
    made = sized(f_base=14e9, g_base=72e9, f_other=0.5e9, n_base=np.nan)
    message = answer(made).notes[0].message
    assert message.startswith("4 backbones with text scores are left out by size, 2 of them with runs: ")
    assert set(re.findall(r"[fg]-base", message.split(";")[0])) == {"f-base", "g-base"}
    assert message.endswith(
        "--min-size 500M --max-size 72B let them in; --candidates lets in 1 backbone of unknown size"
    )
    # What the user's own limits leave out is no news.
    assert answer(made, sizes=(1e9, 15e9)).notes[0].message.startswith("1 backbone with text scores is left")
    assert answer(made, sizes=(2e9, 15e9)).notes == ()
    assert answer(made, candidates=["f-instruct"]).notes == ()


def test_a_study_of_unknown_volumes_is_asked_at_its_reference(fit):
    study = replace(fit.study, runs=fit.study.runs.assign(volume=np.nan))
    question = ask(replace(fit, study=study))
    assert question.volume == 1e6
    assert "as the recipe's is unknown" in question.chosen[-1]


# --- files ------------------------------------------------------------------------------------------


def test_an_existing_file_is_not_overwritten_unless_asked(fit, tmp_path, text):
    path = tmp_path / "page.html"
    path.write_text("mine")
    with pytest.raises(RequestError, match="exists already"):
        report(fit, path)
    assert path.read_text() == "mine"
    assert not is_report(path)
    assert not is_report(tmp_path / "absent.html")
    path.write_text(text, encoding="utf-8")
    assert is_report(path)


def test_the_same_fit_gives_the_same_page(fit, text, tmp_path):
    assert written(tmp_path, fit) == text


# --- broken text scores -----------------------------------------------------------------------------


def hand_made(names, means, p_best, converged=True):
    ranking = pd.DataFrame({"backbone": names, "mean": means, "p_best": p_best})
    return Answer(Question(None, "r", 1e6), ranking, (), converged)


def test_changes_of_places_are_said_in_words():
    before = hand_made(["a", "b", "c"], [0.6, 0.5, 0.4], [0.8, 0.15, 0.05])
    after = hand_made(["c", "a", "b"], [0.65, 0.61, 0.5], [0.7, 0.3, 0.0])
    moved = changes(before, after)
    assert moved["backbone"].tolist() == ["c", "a", "b"]
    assert moved.loc[0, ["rank_before", "rank_after"]].tolist() == [3, 1]
    assert moved["change"].tolist() == pytest.approx([0.25, 0.01, 0.0])
    said = changes_in_words(before, after, moved, flagged=2)
    assert said[0] == (
        "With 2 flagged text scores treated as missing, the first choice changes from a (P(best) .80) to c "
        "(P(best) .70)."
    )
    assert said[1] == "c moves most: it rises by 25.0 points, from place 3 to 1."
    assert "NOT CONVERGED" in changes_in_words(before, replace(after, converged=False), moved, flagged=1)[-1]


def test_scores_missing_in_the_refit_are_missing_in_candidate_tables(fit, monkeypatch):
    scores = fit.study.text_scores.loc[["f-other", "n-base"]].copy()
    labels = fit.study.backbones.loc[["f-other", "n-base"]]
    treated = fit.study.text_scores.copy()
    treated.loc["f-other", "y"] = np.nan
    refit = replace(fit, study=replace(fit.study, text_scores=treated))
    before = answer(fit, candidates=(scores, labels))
    again = answer_again(before, refit)
    asked = again.question.candidates[0]
    assert asked.isna().to_numpy().sum() == 1
    assert np.isnan(asked.loc["f-other", "y"])
    width = "backbone_90_upper", "backbone_90_lower"
    spread = [
        a.ranking.set_index("backbone").loc["f-other", list(width)].diff().iloc[-1] for a in (before, again)
    ]
    assert abs(spread[1]) > abs(spread[0])


# --- tables -----------------------------------------------------------------------------------------


def test_cells_are_written_for_readers_and_sorted_by_their_numbers():
    frame = pd.DataFrame({"name": ["a", "b"], "low": [-0.012, np.nan], "high": [0.2, np.nan]})
    columns = [Column("name", "name"), Column("change", ("low", "high"), "points")]
    first, second = table("t", "caption", frame, columns).rows
    assert [cell.text for cell in first] == ["a", "−1.2 to 20.0"]
    assert first[1].sort == -0.012
    assert second[1].text == "– to –"
    assert second[1].sort == -np.inf


def test_what_is_rounded_to_zero_has_no_sign():
    assert [written_cell(value, "points") for value in (-0.0004, -0.0006)] == ["0.0", "−0.1"]
    assert [signed_points(value) for value in (-0.0004, 0.0004, 0.0006)] == [
        "0.0 points",
        "0.0 points",
        "+0.1 points",
    ]
