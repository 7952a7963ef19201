"""The page in a real browser: it sorts, turns dark, fits a phone and prints, without a mouse or a network."""

import matplotlib as mpl
import numpy as np
import pytest
from browser import ENTER, LEFT, RIGHT, browser, missing
from conftest import known_draws

from bayescdm.plots.style import DARK, LIGHT
from bayescdm.report import report

COLUMN = """
  const rows = Array.from(document.querySelectorAll("#ranking tbody tr"));
  return rows.map(row => row.cells[arguments[0]].textContent)
"""


@pytest.fixture(scope="module")
def page(known_fit, tmp_path_factory):
    if missing():
        pytest.skip(f"no browser: {missing()} is not installed")
    # Family G absorbs five times as fast, so that it overtakes at a volume that the slider reaches.
    dims, B0 = known_draws(2000)["B0"]
    fit = known_fit(2000, B0=(dims, B0 * np.array([[1.0], [5.0]])))
    with mpl.rc_context({"backend": "agg"}):
        path = report(fit, tmp_path_factory.mktemp("page") / "page.html")
    with browser() as driven:
        driven.open(path.as_uri())
        yield driven


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
    names = page.run(COLUMN, 0)
    assert names == sorted(names, key=str.lower)
    page.press(ENTER)
    assert page.run(COLUMN, 0) == names[::-1]
    assert page.run("return document.querySelectorAll('#ranking th[aria-sort]').length") == 1


SHOWN = """
  const step = document.querySelector("#volumes .step:not([hidden])");
  const rows = Array.from(step.querySelectorAll("tbody tr"));
  return rows.map(row => Array.from(row.cells, cell => cell.textContent));
"""


def test_the_slider_moves_the_ranking_with_the_volume(page):
    asked = page.run(SHOWN)
    # Another test may have sorted the table of the answer.
    answered = map(list, zip(page.run(COLUMN, 0), page.run(COLUMN, 1)))
    assert sorted(row[:2] for row in asked) == sorted(answered)
    assert page.text("#volumes output").endswith("samples, as chosen")
    page.run("document.querySelector('#volumes input').focus()")
    seen = {page.text("#volumes output")}
    for _ in range(20):
        page.press(LEFT)
        seen.add(page.text("#volumes output"))
        assert page.run("return document.querySelectorAll('#volumes .step:not([hidden])').length") == 1
    assert len(seen) == page.run("return document.querySelectorAll('#volumes .step').length") > 8
    smallest = page.run(SHOWN)
    assert [row[0] for row in smallest] != [row[0] for row in asked]
    assert page.run("return document.querySelector('#volumes input').ariaValueText") is not None
    accuracy = [float(row[1]) for row in smallest]
    assert accuracy == sorted(accuracy, reverse=True)
    for _ in range(20):
        page.press(RIGHT)
    assert page.run(SHOWN) == asked


def test_a_table_that_is_cut_off_says_that_it_scrolls(page):
    hint = "#ranking-caption .hint"
    page.resize(390)
    assert not page.run("return document.querySelector(arguments[0]).hidden", hint)
    more = "return document.querySelector('#ranking').closest('.box').classList.contains('more')"
    assert page.run(more)
    page.run(
        "const box = document.querySelector('#ranking').closest('.box'); box.scrollLeft = box.scrollWidth"
    )
    page.run("return new Promise(done => setTimeout(done, 100))")
    assert not page.run(more)
    page.run("document.querySelector('#ranking').closest('.box').scrollLeft = 0")


def test_everything_that_can_be_worked_is_reached_by_tab(page):
    wanted, reached = page.workable()
    assert reached == wanted


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_fits_the_window_in_both_schemes(page, width, scheme):
    page.resize(width)
    page.prefer(scheme)
    assert page.colour() == {"light": LIGHT, "dark": DARK}[scheme].paper
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
        assert page.cut_labels() == []


def test_the_button_turns_the_page_and_its_figures_dark_and_back(page):
    page.prefer("light")
    label = "figure svg text"
    before = page.colour(), page.colour(label, "fill")
    page.run("document.getElementById('theme').click()")
    assert (page.colour(), page.colour(label, "fill")) == (DARK.paper, DARK.ink)
    page.run("document.getElementById('theme').click()")
    assert (page.colour(), page.colour(label, "fill")) == before


def test_every_row_of_a_table_has_its_line_in_the_sticky_column_as_well(page):
    lines = """
      const collapse = getComputedStyle(document.querySelector("#ranking")).borderCollapse;
      return Array.from(document.querySelectorAll("#ranking tr"), row => Array.from(row.cells, cell => {
        const style = getComputedStyle(cell);
        return [style.borderBottomWidth, style.borderBottomColor, collapse];
      }));
    """
    rows = page.run(lines)
    # A collapsed border is painted with the table, under the background of a sticky cell.
    assert {cell[2] for row in rows for cell in row} == {"separate"}
    assert {cell[0] for row in rows[:-1] for cell in row} == {"1px"}
    assert len({cell[1] for row in rows[:-1] for cell in row}) == 1


def test_print_breaks_no_name_inside_a_word(page):
    broken = """
      const broken = [];
      for (const head of document.querySelectorAll("#ranking tbody th")) {
        const text = head.firstChild, range = document.createRange();
        for (const word of text.data.matchAll(/[A-Za-z0-9.]+/g)) {
          range.setStart(text, word.index);
          range.setEnd(text, word.index + word[0].length);
          if (new Set(Array.from(range.getClientRects(), box => box.top)).size > 1) broken.push(word[0]);
        }
      }
      return broken;
    """
    page.resize(700)
    page.medium("print")
    try:
        assert page.run(broken) == []
    finally:
        page.medium("")
        page.resize(1280)


def test_print_shows_all_that_was_folded(page):
    assert page.run("return document.querySelectorAll('details:not([open])').length") > 0
    page.run("window.dispatchEvent(new Event('beforeprint'))")
    assert page.run("return document.querySelectorAll('details:not([open])').length") == 0
