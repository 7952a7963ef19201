"""The page in a real browser: it sorts, turns dark, fits a phone and prints, without a mouse or a network."""

import re

import matplotlib as mpl
import pytest
from browser import browser, missing

from bayescdm.plots.style import DARK, LIGHT
from bayescdm.report import report

ENTER, TAB = "\ue007", "\ue004"
COLUMN = """
  const rows = Array.from(document.querySelectorAll("#ranking tbody tr"));
  return rows.map(row => row.cells[arguments[0]].textContent)
"""
STYLE = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"


@pytest.fixture(scope="module")
def page(known_fit, tmp_path_factory):
    if missing():
        pytest.skip(f"no browser: {missing()} is not installed")
    with mpl.rc_context({"backend": "agg"}):
        path = report(known_fit(2000), tmp_path_factory.mktemp("page") / "page.html")
    with browser() as driven:
        driven.open(path.as_uri())
        yield driven


def colour(page, selector="body", what="backgroundColor"):
    red, green, blue = map(int, re.findall(r"\d+", page.run(STYLE, selector, what))[:3])
    return f"#{red:02x}{green:02x}{blue:02x}"


def test_page_runs_without_errors_and_asks_the_network_for_nothing(page):
    assert page.errors() == []
    assert page.run("return performance.getEntriesByType('resource').length") == 0


def test_tables_sort_from_the_keyboard(page):
    accuracy = [float(cell) for cell in page.run(COLUMN, 1)]
    assert accuracy == sorted(accuracy, reverse=True)
    page.run("document.querySelectorAll('#ranking thead button')[1].focus()")
    page.press(ENTER)
    page.press(ENTER)
    assert [float(cell) for cell in page.run(COLUMN, 1)] == sorted(accuracy)
    assert page.run("return document.querySelectorAll('#ranking th')[1].ariaSort") == "ascending"
    page.run("document.querySelectorAll('#ranking thead button')[0].focus()")
    page.press(ENTER)
    page.press(ENTER)
    names = page.run(COLUMN, 0)
    assert names == sorted(names)
    assert page.run("return document.querySelectorAll('#ranking th[aria-sort]').length") == 1


def test_everything_that_can_be_worked_is_reached_by_tab(page):
    every = "Array.from(document.querySelectorAll('a, button, summary, .box'))"
    folded = "details:not([open]) > :not(summary), details:not([open]) > :not(summary) *"
    wanted = page.run(f"return {every}.flatMap((e, i) => e.matches(arguments[0]) ? [] : [i])", folded)
    page.run("document.querySelector('.skip').focus()")
    reached = set()
    for _ in wanted:
        reached.add(page.run(f"return {every}.indexOf(document.activeElement)"))
        page.press(TAB)
    assert sorted(reached) == wanted


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_the_window_in_both_schemes(page, width, scheme):
    page.resize(width)
    page.prefer(scheme)
    assert colour(page) == {"light": LIGHT, "dark": DARK}[scheme].paper
    assert page.run("return document.documentElement.scrollWidth") <= width
    shown = page.run(
        "return Array.from(document.querySelectorAll('figure svg'))"
        ".filter(svg => svg.getClientRects().length).map(svg => svg.getBoundingClientRect().right)"
    )
    assert len(shown) == page.run("return document.querySelectorAll('figure').length")
    assert max(shown) <= width


def test_no_label_of_a_figure_is_cut_off(page):
    for width in (390, 1280):
        page.resize(width)
        cut = page.run(
            """
            const cut = [];
            for (const svg of document.querySelectorAll('figure svg')) {
              const room = svg.getBoundingClientRect();
              if (!room.width) continue;
              for (const text of svg.querySelectorAll('text')) {
                const box = text.getBoundingClientRect();
                if (box.left < room.left - 1 || box.right > room.right + 1 || box.top < room.top - 1
                    || box.bottom > room.bottom + 1) cut.push(text.textContent);
              }
            }
            return cut;
            """
        )
        assert cut == []


def test_the_button_turns_the_page_and_its_figures_dark_and_back(page):
    page.prefer("light")
    label = "figure svg text"
    before = colour(page), colour(page, label, "fill")
    page.run("document.getElementById('theme').click()")
    assert (colour(page), colour(page, label, "fill")) == (DARK.paper, DARK.ink)
    page.run("document.getElementById('theme').click()")
    assert (colour(page), colour(page, label, "fill")) == before


def test_print_shows_all_that_was_folded(page):
    assert page.run("return document.querySelectorAll('details:not([open])').length") > 0
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run("return document.querySelectorAll('details:not([open])').length") == 0
