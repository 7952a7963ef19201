"""The page of a choice in a real browser: it sorts, slides and turns dark, without a mouse or a network."""

import matplotlib as mpl
import numpy as np
import pytest
from browser import ENTER, LEFT, browser, missing
from conftest import known_draws

from bayescdm.decide import choose
from bayescdm.plots.style import DARK, LIGHT

COLUMN = """
  const rows = Array.from(document.querySelectorAll(arguments[0] + " tbody tr"));
  return rows.map(row => row.cells[arguments[1]].textContent)
"""
SHOWN = """
  const step = document.querySelector("#volumes .step:not([hidden])");
  return Array.from(step.querySelectorAll("tbody tr"), row => row.cells[0].textContent);
"""


@pytest.fixture(scope="module")
def choice(known_fit):
    # Family G absorbs five times as fast, so that it overtakes at a volume that the slider reaches.
    dims, B0 = known_draws(2000)["B0"]
    fit = known_fit(2000, B0=(dims, B0 * np.array([[1.0], [5.0]])))
    return fit, choose(fit, ["f-base", "f-other", "g-base", "n-base", "unscored"], volume=1e7, next_run=True)


@pytest.fixture(scope="module")
def page(choice, tmp_path_factory):
    if missing():
        pytest.skip(f"no browser: {missing()} is not installed")
    with mpl.rc_context({"backend": "agg"}):
        path = choice[1].write(tmp_path_factory.mktemp("page") / "choice.html")
    with browser() as driven:
        driven.open(path.as_uri())
        yield driven


def test_the_recommendation_stands_first_and_nothing_is_fetched(page, choice):
    assert page.text("main p") == choice[1].sentences[0].replace(" %", "\N{NO-BREAK SPACE}%")
    assert page.errors() == []
    assert page.run("return performance.getEntriesByType('resource').length") == 0


@pytest.mark.parametrize("table", ["#ranking", "#differences", "#next-runs"])
def test_tables_sort_from_the_keyboard(page, table):
    page.run("document.querySelectorAll(arguments[0] + ' thead button')[0].focus()", table)
    page.press(ENTER)
    names = page.run(COLUMN, table, 0)
    assert names == sorted(names)
    page.press(ENTER)
    assert page.run(COLUMN, table, 0) == sorted(names, reverse=True)


def test_the_slider_moves_the_ranking(page, choice):
    assert page.run(SHOWN) == list(choice[1].ranking["backbone"])
    page.run("document.querySelector('#volumes input').focus()")
    for _ in range(20):
        page.press(LEFT)
    assert page.run(SHOWN) != list(choice[1].ranking["backbone"])
    assert sorted(page.run(SHOWN)) == sorted(choice[1].ranking["backbone"])
    assert "100K" in page.text("#volumes output")


def test_the_button_turns_the_page_dark_and_back(page):
    page.prefer("light")

    assert page.colour() == LIGHT.paper
    page.run("document.getElementById('theme').focus()")
    page.press(ENTER)
    assert page.colour() == DARK.paper
    page.press(ENTER)
    assert page.colour() == LIGHT.paper


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_and_every_label_fit_the_window(page, width):
    page.resize(width)
    assert page.run("return document.documentElement.scrollWidth") <= width
    assert page.cut_labels() == []


def test_everything_that_can_be_worked_is_reached_by_tab(page):
    wanted, reached = page.workable()
    assert reached == wanted


def test_infeasible_candidates_stand_with_their_reason(page):
    assert page.run(COLUMN, "#out", 1) == ["no usable text score, so no capability"]
