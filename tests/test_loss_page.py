"""The explorer computes in the browser what Python computes, loads nothing, and needs no mouse."""

import json
import re
import time
from dataclasses import replace

import numpy as np
import pytest
from browser import RIGHT, TAB, browser, missing

from bayescdm.describe import short_count
from bayescdm.errors import Note, RequestError
from bayescdm.loss.allocate import ComputeLaw, allocate, preset
from bayescdm.loss.page import DRAWS, explorer_page, write_explorer
from bayescdm.loss.scope import CHINCHILLA_SCOPE, Scope


def made_up_draws(n=3 * DRAWS):
    rng = np.random.default_rng(0)
    constants = {
        name: getattr(preset(), name)[0] * np.exp(rng.normal(0, 0.01, n))
        for name in ("A", "B", "E", "alpha", "beta")
    }
    note = Note("made-up", "these draws were <made> up")
    return ComputeLaw("made-up draws", **constants, scope=CHINCHILLA_SCOPE, notes=(note,))


def test_page_loads_nothing():
    html = explorer_page([preset(), made_up_draws()])
    assert not re.search(r"https?://|//[a-z]|@import|url\(|src=|<link|fetch\(|XMLHttp", html)
    assert "/*DATA*/" not in html


def test_data_cannot_end_the_script():
    html = explorer_page([made_up_draws()])
    inside = html.split('type="application/json">')[1].split("</script>")[0]
    assert "<" not in inside
    assert json.loads(inside)["laws"][0]["notes"][0] == "these draws were <made> up"
    assert len(json.loads(inside)["laws"][0]["constants"]["alpha"]) == 3 * DRAWS


def test_laws_of_two_scopes_do_not_share_a_page():
    other = ComputeLaw("other", *(np.ones(1),) * 5, scope=Scope("loss"))
    with pytest.raises(RequestError, match="one scope"):
        explorer_page([preset(), other])
    with pytest.raises(RequestError, match="one law or more"):
        explorer_page([])


def test_nothing_is_overwritten_unasked(tmp_path):
    path = write_explorer(tmp_path / "page.html", [preset()])
    with pytest.raises(RequestError, match="exists already"):
        write_explorer(path, [preset()])
    write_explorer(path, [preset()], overwrite=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    if missing():
        pytest.skip(f"not installed: {missing()}")
    file = write_explorer(tmp_path_factory.mktemp("page") / "explorer.html", [preset(), made_up_draws()])
    with browser() as window:
        window.url = file.as_uri()
        yield window


def shown(page, identity):
    return page.text(f"#{identity}")


def test_browser_agrees_with_python_at_the_optimum(page):
    page.open(page.url + "#flops=1e21")
    best = allocate(1e21).optimum["value"]
    assert shown(page, "best-params") == f"{best['params'] / 1e9:.4g}B"
    assert shown(page, "best-tokens") == f"{best['tokens'] / 1e9:.4g}B"
    assert shown(page, "best-loss") == f"{best['loss']:.4g}"
    assert shown(page, "best-exponent") == "0.4516"
    assert shown(page, "best-exponent-tokens") == "0.5484"
    assert shown(page, "chosen-excess") == "0.000"
    assert shown(page, "flag") == ""
    assert page.errors() == []


def test_browser_agrees_with_python_on_draws_and_serving(page):
    page.open(page.url + "#flops=1e22&params=2e9&law=1&served=1e12")
    result = allocate(1e22, made_up_draws(), tokens_served=1e12, sizes=[2e9])
    loss = result.sizes.iloc[0]
    text = f"{loss['loss']:.4g} [{loss['law_90_lower']:.4g},\u00a0{loss['law_90_upper']:.4g}]"
    assert shown(page, "chosen-loss") == text
    # To the last printed digit of what the terminal prints: both use every draw.
    names = {
        "tokens_per_parameter": "best-ratio",
        "loss": "best-loss",
    }
    for quantity, cell in names.items():
        middle, low, high = result.optimum.loc[quantity]
        assert shown(page, cell) == f"{middle:.4g} [{low:.4g},\u00a0{high:.4g}]"
    low, high = (float(x) for x in re.findall(r"([\d.]+)B", shown(page, "best-params"))[1:])
    expected = result.optimum.loc["params", ["law_90_lower", "law_90_upper"]] / 1e9
    assert [low, high] == pytest.approx(expected.tolist(), rel=5e-4)


def test_extrapolation_is_said_with_its_reason(page):
    page.open(page.url + "#flops=1e24&params=7e10")
    assert shown(page, "flag") == (
        "Extrapolation: 70B parameters are more than the 16B of the largest run; "
        "2.381T tokens are more than the 500B of the largest run."
    )
    assert "(extrapolation)" in shown(page, "best-params")
    page.open(page.url + "#flops=1e21&params=1e9")
    assert shown(page, "flag") == ""


def test_serving_is_called_uncounted_only_where_it_is(page):
    page.open(page.url + "#flops=1e22&params=2e9")
    assert "cost of serving the model is not in this optimum" in shown(page, "notes")
    page.open(page.url + "#flops=1e22&params=2e9&served=1e12")
    assert "cost of serving" not in shown(page, "notes")
    assert "no exponents are given" in shown(page, "notes")
    best = allocate(1e22, tokens_served=1e12).optimum["value"]
    for part in ("training", "serving"):
        assert float(shown(page, f"best-{part}")) == pytest.approx(best[f"{part}_flops"], rel=5e-3)
    assert "grows as" not in page.text("main")


def test_serving_that_exceeds_the_budget_is_said(page):
    page.open(page.url + "#flops=1e21&params=7e10&served=1e11")
    assert shown(page, "flag") == (
        "Serving 100B tokens with this size costs 1.4e22 FLOPs, more than the budget of 1e21."
    )


def test_page_opens_with_what_was_asked_and_speaks_of_its_own_scope(page, tmp_path):
    scope = Scope(
        "multimodal training loss",
        ranges={"params": (1e9, 3e9), "volume": (1e9, 1e10)},
        units={"metric": "as logged", "volume": "tokens"},
    )
    law = ComputeLaw(
        "posterior of logs, family Llama-3.2", *(np.array([x]) for x in (400.0, 400.0, 1.7, 0.3, 0.3)), scope
    )
    file = write_explorer(tmp_path / "own.html", [law], flops=2e22, tokens_served=1e12, params=2e9)
    page.open(file.as_uri())
    assert shown(page, "flops-out") == "2e22"
    assert shown(page, "chosen-params") == "2B"
    assert page.run("return document.querySelector('#served').value") == "1T"
    text = page.text("main")
    assert "what multimodal training loss to expect" in text
    assert "family Llama-3.2" in text
    assert "text only" not in text
    assert "LLaVA" not in text
    page.open(page.url)
    assert "it is about text only" in page.text("main")


@pytest.mark.parametrize("width", [390, 1280])
def test_the_name_of_the_law_is_not_clipped(page, width):
    page.resize(width)
    page.open(page.url)
    room = """const s = document.querySelector('#law'), c = document.createElement('canvas').getContext('2d');
        c.font = getComputedStyle(s).font;
        return s.clientWidth - 40 - Math.max(...[...s.options].map(o => c.measureText(o.text).width))"""
    assert page.run(room) > 0


def test_sliders_work_from_the_keyboard(page):
    page.open(page.url + "#flops=1e21&params=1e9")
    page.press(TAB)
    assert page.run("return document.activeElement.id") == "flops"
    page.press(RIGHT, RIGHT)
    assert shown(page, "flops-out") == "1.26e21"
    page.press(TAB)
    assert page.run("return document.activeElement.id") == "params"
    before = float(shown(page, "chosen-excess"))
    page.press(*[RIGHT] * 5)
    assert page.run("return document.activeElement.getAttribute('aria-valuetext')") == "1.259B parameters"
    assert float(shown(page, "chosen-excess")) < before
    page.press(TAB, "2", "T")
    assert page.run("return document.activeElement.value") == "2T"
    page.press(TAB, TAB, " ")
    assert shown(page, "chosen-excess") == "0.000"
    assert "served=2000000000000" in page.run("return location.hash")


@pytest.mark.parametrize(("typed", "why"), [
    ("many", "is not an absolute count of tokens"), ("7", "is not an absolute count of tokens"),
    ("-1", "is not an absolute count of tokens"), ("1e30", "is beyond any count of tokens"),
])  # fmt: skip
def test_a_count_that_is_refused_is_marked_and_leaves_no_result(page, typed, why):
    page.open(page.url + "#flops=1e21&params=1e9")
    before = shown(page, "best-params")
    page.run(
        f"const f = document.querySelector('#served'); f.value = '{typed}';"
        "f.dispatchEvent(new Event('input'))"
    )
    assert page.run("return document.querySelector('#served').getAttribute('aria-invalid')") == "true"
    assert f"{typed} {why}" in page.run("return document.querySelector('#served-hint').textContent")
    assert shown(page, "flag") == f"No result: {typed} {why}: write it as 7B or 7e9."
    left = "return document.querySelectorAll('.answers td, #curve path, #curve circle').length"
    assert page.run(left) == 0
    page.run("const f = document.querySelector('#flops'); f.value = 22; f.dispatchEvent(new Event('input'))")
    assert page.run(left) == 0, "nor does another budget bring one back"
    page.run(
        "const f = document.querySelector('#flops'); f.value = 21; f.dispatchEvent(new Event('input'));"
        "const s = document.querySelector('#served'); s.value = '0'; s.dispatchEvent(new Event('input'))"
    )
    assert shown(page, "best-params") == before
    assert shown(page, "flag") == ""


@pytest.mark.parametrize(("link", "why"), [
    ("served=7", "7 is not an absolute count of tokens: write it as 7B or 7e9"),
    ("served=1e30", "1e30 is beyond any count of tokens: write it as 7B or 7e9"),
    ("params=7", "the link's params=7 is not an absolute count of parameters: write it as 7B or 7e9"),
    ("flops=many", "the link's flops=many is no budget: write 1e21"),
    ("law=9", "the link's law=9 is none of this page's"),
])  # fmt: skip
def test_a_link_is_refused_as_what_is_typed_is(page, link, why):
    page.open(page.url + f"#{link}")
    assert shown(page, "flag") == f"No result: {why}."
    assert page.run("return document.querySelectorAll('.answers td, #curve path, #curve circle').length") == 0
    height = "return document.querySelector(arguments[0]).getBoundingClientRect().height"
    for panel in ("#curve", "#key", ".answers"):
        assert page.run(height, panel) == 0, "no empty panel stands where results would"
    typed = page.run("return document.querySelector('#served').value")
    invalid = page.run("return document.querySelector('#served').getAttribute('aria-invalid')")
    assert (f"served={typed}" == link) == (invalid == "true") == link.startswith("served")
    page.run(
        "const s = document.querySelector('#served'); s.value = '0'; s.dispatchEvent(new Event('input'));"
        "document.querySelector('#best').click()"
    )
    assert shown(page, "flag") == "", "a control that is moved replaces what the link said"
    assert shown(page, "chosen-excess") == "0.000"


def test_a_link_is_read_with_the_suffixes_of_counts_also_in_an_open_page(page):
    page.open(page.url + "#flops=1e22&params=2B&served=1T")
    assert shown(page, "chosen-params") == "2B"
    assert page.run("return document.querySelector('#served').value") == "1T"
    page.run("location.hash = '#flops=1e22&params=3B'")
    deadline = time.monotonic() + 20
    while page.run("return document.querySelector('#chosen-params')?.textContent") != "3B":
        assert time.monotonic() < deadline, "the link in an open page is not followed"
        time.sleep(0.1)


def test_curve_rises_to_its_ceiling_where_serving_takes_the_whole_budget(page):
    page.resize(1100)
    page.open(page.url + "#flops=1e22&served=1T")
    top, bottom = page.run(
        """const path = document.querySelector('#curve path').getAttribute('d');
        const heights = [...path.matchAll(/[ML][\\d.]+ ([\\d.]+)/g)].map(m => Number(m[1]));
        return [heights.at(-1), Math.max(...heights)]"""
    )
    assert top < 0.25 * bottom


def test_controls_fill_the_width_of_their_panel(page):
    page.resize(1100)
    page.open(page.url)
    right = "return document.querySelector(arguments[0]).getBoundingClientRect().right"
    assert page.run(right, "#served") == pytest.approx(page.run(right, "#law"), abs=1)


@pytest.mark.parametrize("flops", ["1e28", "1e33", "1e12"])
def test_optimum_and_split_are_on_the_chart_at_any_budget(page, flops):
    page.open(page.url + f"#flops={flops}")
    where = page.run(
        """const svg = document.querySelector('#curve').viewBox.baseVal;
        const at = (id) => document.querySelector('#curve #' + id).cx.baseVal.value;
        return ['least', 'split'].map(id => at(id) / svg.width)"""
    )
    assert all(0.03 < x < 1 for x in where)
    for slider in ("flops", "params"):
        value, low, high = page.run(
            f"const s = document.querySelector('#{slider}'); return [s.value, s.min, s.max].map(Number)"
        )
        assert low <= value <= high
        assert value == pytest.approx(
            np.log10(float(flops))
            if slider == "flops"
            else np.log10(allocate(flops).optimum.loc["params", "value"]),
            abs=0.03,
        )


def test_each_law_speaks_of_its_own_range(page, tmp_path):
    own = replace(CHINCHILLA_SCOPE, ranges={"params": (1e8, 2e9), "volume": (1e9, 1e12)})
    file = write_explorer(tmp_path / "two.html", [replace(made_up_draws(), scope=own), preset()])
    page.open(file.as_uri() + "#flops=1e22&params=7e9")
    assert "more than the 2B of the largest run" in shown(page, "flag")
    assert "100M to 2B" in page.text("main")
    page.open(file.as_uri() + "#flops=1e22&params=7e9&law=1")
    assert shown(page, "flag") == ""
    assert "70M to 16B" in page.text("main")


@pytest.mark.parametrize("flops", ["1e12", "1e21", "1e33"])
def test_labels_of_sizes_do_not_touch_in_a_narrow_window(page, flops):
    page.resize(390)
    page.open(page.url + f"#flops={flops}")
    apart = page.run(
        """const texts = [...document.querySelectorAll('#curve text')];
        const sizes = texts.filter(t => /^\\d+[KMBT]$/.test(t.textContent));
        const boxes = sizes.map(t => t.getBoundingClientRect());
        return boxes.slice(1).map((b, i) => b.left - boxes[i].right)"""
    )
    assert len(apart) >= 3
    assert min(apart) > 0


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(page, width):
    page.resize(width)
    page.open(page.url + "#flops=1e24&params=7e10&law=1")
    assert page.run("return document.documentElement.scrollWidth") <= width
    clipped = page.run(
        """const box = document.querySelector('#curve').getBoundingClientRect();
        return [...document.querySelectorAll('#curve text')].filter(t => {
          const r = t.getBoundingClientRect(); return r.left < box.left - 1 || r.right > box.right + 1;
        }).map(t => t.textContent)"""
    )
    assert clipped == []


def test_dark_and_light_differ_and_are_readable(page):
    contrast = """const rgb = s => s.match(/[\\d.]+/g).slice(0, 3).map(v => { v /= 255;
          return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
        const light = s => { const [r, g, b] = rgb(s); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const of = (s, p) => light(getComputedStyle(document.querySelector(s))[p]);
        const paper = of('body', 'backgroundColor');
        return ['body', '.hint', '.flag', 'dt'].map(s => {
          const ink = of(s, 'color');
          return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05); })"""
    papers = []
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        page.open(page.url + "#flops=1e24&params=7e10")
        papers.append(page.run("return getComputedStyle(document.body).backgroundColor"))
        assert min(page.run(contrast)) > 4.5
    assert papers[0] != papers[1]


def test_counts_are_written_as_python_writes_them(page):
    page.open(page.url)
    for value in (7e10, 500e9, 1.5e9, 2.5e12, 999_600, 12.344e6, 1e7):
        assert page.run("return count(arguments[0])", value) == short_count(value)


def test_draws_that_did_not_converge_are_announced_before_any_number_and_in_each_table(page, tmp_path):
    note = Note("not-converged", "NOT CONVERGED: 3 divergences", "warning")
    law = replace(made_up_draws(), notes=(note,))
    page.open(write_explorer(tmp_path / "bad.html", [law, preset()]).as_uri())
    words = page.text("main")
    assert words.index("NOT CONVERGED: 3 divergences") < words.index("Budget")
    assert words.count("(NOT CONVERGED)") == 2
    stamped = "const s = document.querySelector('#curve #stamp'); return s ? s.textContent : ''"
    assert page.run(stamped) == "not converged"
    page.open(page.url)
    assert "NOT CONVERGED" not in page.text("main")
    assert page.run(stamped) == ""
