"""Plots: what they show, where their labels end, and that nothing unconverged passes unmarked."""

import inspect
from dataclasses import replace
from itertools import pairwise

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.path import Path
from matplotlib.text import Text

import bayescdm.plots as plots
from bayescdm.compare import family_draws, rank_backbones, transfer_coefficients
from bayescdm.decide import choose
from bayescdm.errors import NotFoundError, RequestError
from bayescdm.fit import Diagnosis
from bayescdm.plots.style import DARK, LIGHT

PLOTS = [name for name in plots.__all__ if name.startswith("plot_")]
#: What each plot needs besides the fit.
ASKED = {
    "plot_chain_ranks": {"variable": "sigma"},
    "plot_prior_posterior": {"variable": "A_population"},
    "plot_rank_distribution": {"volume": 1e6, "recipe": "wide"},
    "plot_ranking": {"volume": 1e6, "recipe": "wide"},
    "plot_text_scores": {"family": "F"},
    "plot_trajectories": {"volume": 1e6, "recipe": "wide"},
}
PANELS = ("plot_families", "plot_trajectories")
#: Plots of a choice, which holds all that they need.
OF_CHOICE = ("plot_differences", "plot_pareto", "plot_probability_matrix")


@pytest.fixture(scope="module")
def fit(known_fit):
    return known_fit(2000)


@pytest.fixture(scope="module")
def unconverged(known_fit):
    return known_fit(50)


@pytest.fixture(autouse=True)
def close_figures():
    with mpl.rc_context({"backend": "agg"}):
        yield
        plt.close("all")


def draw(name, fit, **more):
    if name in OF_CHOICE:
        return [getattr(plots, name)(choose(fit, volume=1e6, recipe="wide"), **more)]
    axes = getattr(plots, name)(fit, **{**ASKED.get(name, {}), **more})
    return [axes] if isinstance(axes, Axes) else list(axes)


def texts(ax):
    figure = ax.figure
    return [text.get_text() for text in figure.findobj(Text) if text.get_visible()]


@pytest.mark.parametrize("name", PLOTS)
def test_only_what_is_plotted_is_positional(name):
    first, *others = inspect.signature(getattr(plots, name)).parameters.values()
    assert first.name == ("choice" if name in OF_CHOICE else "fit")
    assert others
    assert {parameter.kind for parameter in others} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("name", PLOTS)
def test_given_axes_are_drawn_on_and_returned(name, fit):
    figure, axes = plt.subplots(2, 4)
    given = {"axes": axes} if name in PANELS else {"ax": axes[0, 0]}
    returned = draw(name, fit, **given)
    assert all(mine is theirs for mine, theirs in zip(returned, axes.ravel()))
    assert plt.get_fignums() == [figure.number]


def drawn_texts(figure, monkeypatch):
    """Boxes of the texts that are really drawn; ticks outside the view are not."""
    drawn = {}
    draw_text = Text.draw

    def note(text, renderer, *rest, **more):
        draw_text(text, renderer, *rest, **more)
        if text.get_visible() and text.get_text():
            drawn[text] = text.get_window_extent(renderer)

    monkeypatch.setattr(Text, "draw", note)
    figure.canvas.draw()
    return drawn


@pytest.mark.parametrize("name", PLOTS)
@pytest.mark.parametrize("width", [None, 3.7])
def test_every_label_ends_inside_the_figure(name, width, fit, monkeypatch):
    if width is None or name in PANELS:
        ax = draw(name, fit, **({"columns": 2, "width": width} if width else {}))[0]
    else:
        ax = plt.figure(figsize=(width, 3), layout="constrained").add_subplot()
        draw(name, fit, ax=ax)
    figure = ax.figure
    page = figure.bbox
    drawn = drawn_texts(figure, monkeypatch)
    assert len(drawn) > 5
    for text, box in drawn.items():
        assert box.x0 >= page.x0 - 1 and box.x1 <= page.x1 + 1, text
        assert box.y0 >= page.y0 - 1 and box.y1 <= page.y1 + 1, text


@pytest.mark.parametrize("name", PLOTS)
def test_every_plot_names_its_study_and_says_once_that_it_is_simulated(name, fit):
    def shown(study, simulated):
        renamed = replace(fit, study=replace(fit.study, name=study, simulated=simulated))
        return " ".join(" ".join(texts(draw(name, renamed)[0])).split())

    assert "a lab's own runs" in shown("a lab's own runs", False)
    assert "simulated" not in shown("a lab's own runs", False)
    assert "a lab's own runs (simulated)" in shown("a lab's own runs", True)
    assert shown("simulated-paper", True).count("simulated") == 1


@pytest.mark.parametrize("name", PLOTS)
def test_a_long_name_of_a_study_ends_inside_a_narrow_figure(name, fit, monkeypatch):
    study = replace(fit.study, name="runs of the vision group, spring and summer, all encoders")
    renamed = replace(fit, study=study)
    if name in PANELS:
        ax = draw(name, renamed, columns=2, width=3.7)[0]
    else:
        ax = plt.figure(figsize=(3.7, 3), layout="constrained").add_subplot()
        draw(name, renamed, ax=ax)
    for text, box in drawn_texts(ax.figure, monkeypatch).items():
        assert box.x1 <= ax.figure.bbox.x1 + 1, text


@pytest.mark.parametrize("name", PLOTS)
def test_what_did_not_converge_is_stamped_on_every_panel(name, fit, unconverged):
    assert not fit.diagnose().notes
    for ax in draw(name, unconverged):
        assert "not\nconverged" in [text.get_text() for text in ax.texts]
    for ax in draw(name, fit):
        assert "not\nconverged" not in [text.get_text() for text in ax.texts]


@pytest.mark.parametrize("name", PLOTS)
def test_light_and_dark_use_only_their_own_colours(name, fit):
    for theme, palette in (("light", LIGHT), ("dark", DARK)):
        with plots.theme(theme):
            ax = draw(name, fit)[0]
        allowed = {to_rgb(c) for c in (*palette.series, palette.ink, palette.muted, palette.grid)}
        for text in ax.figure.findobj(Text):
            assert to_rgb(text.get_color()) in allowed
        for line in ax.lines:
            assert to_rgb(line.get_color()) in allowed


def luminance(colour):
    channels = np.array(to_rgb(colour))
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_text_and_data_stand_out_from_the_background(palette):
    def contrast(colour):
        high, low = sorted((luminance(colour), luminance(palette.paper)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    # WCAG 2.2: 4.5 for text, 3 for graphical objects.
    assert min(map(contrast, (palette.ink, palette.muted, palette.warning))) >= 4.5
    assert min(map(contrast, palette.series)) >= 3


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_every_colour_has_one_role(palette):
    colours = [palette.paper, palette.ink, palette.muted, palette.grid, palette.warning, *palette.series]
    assert len(set(colours)) == len(colours)


def test_ranking_shows_the_rows_of_the_table_in_order(fit):
    asked = {"volume": 1e6, "recipe": "wide", "prob": 0.8}
    table = rank_backbones(fit, **asked)
    ax = plots.plot_ranking(fit, **asked)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(table["backbone"])
    means = [line.get_xdata()[0] for line in ax.lines if line.get_marker() in "oD"]
    assert means == pytest.approx(table["mean"])
    assert any("backbone, 80 % interval" in text for text in texts(ax))


def test_ranking_says_how_many_it_leaves_out(fit):
    ax = plots.plot_ranking(fit, volume=1e6, recipe="wide", limit=2)
    assert len(ax.get_yticks()) == 2
    assert "4 lower candidates are not shown" in ax.get_xlabel()


def test_forty_backbones_keep_their_names_apart(known_fit, fit):
    names = [f"candidate-{i}" for i in range(40)]
    scores = pd.DataFrame(
        np.random.default_rng(1).uniform(0.3, 0.6, (40, 3)), index=names, columns=["x", "y", "z"]
    )
    labels = pd.DataFrame({"family": "F", "variant": "base", "params": 1e9}, index=names)
    for plot in (plots.plot_ranking, plots.plot_rank_distribution):
        ax = plot(fit, candidates=(scores, labels), volume=1e6, recipe="wide")
        ax.figure.draw_without_rendering()
        boxes = sorted((label.get_window_extent() for label in ax.get_yticklabels()), key=lambda b: b.y0)
        assert len(boxes) == 40
        assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(boxes))


def test_trajectory_legend_names_both_kinds_and_the_probability(fit):
    ax = draw("plot_trajectories", fit, candidates=["f-base", "n-base"], prob=0.5)[0]
    assert {"law, 50 % interval", "run, 50 % interval", "observed run"} <= set(texts(ax))


def test_trajectory_shows_the_runs_of_its_backbone_and_recipe_only(fit):
    known, new = draw("plot_trajectories", fit, candidates=["f-base", "f-other"])
    assert known.collections[-1].get_offsets().tolist() == [[1e5, 0.5], [1e7, 0.5]]
    assert len(new.collections[-1].get_offsets()) == 0


def test_trajectory_needs_some_volume(known_fit, fit):
    study = fit.study
    unknown = study.runs.assign(volume=np.nan)
    blank = replace(fit, study=replace(study, runs=unknown))
    with pytest.raises(RequestError, match="no run has a known volume"):
        plots.plot_trajectories(blank, recipe="wide")


def test_too_few_axes_are_refused(fit):
    _, axes = plt.subplots(1, 1, squeeze=False)
    with pytest.raises(RequestError, match="1 axes for 6 panels"):
        draw("plot_trajectories", fit, axes=axes)


def test_a_family_panel_marks_its_posterior_mean_and_the_others(fit):
    draws = family_draws(fit)
    (ax,) = draw("plot_families", fit, families=["G"])
    mean = next(line for line in ax.lines if line.get_marker() == "o")
    expected = [float(draws[q].sel(family="G").mean()) for q in ("A", "mean_B")]
    assert np.ravel(mean.get_data()).tolist() == pytest.approx(expected)
    assert "posterior, 90 % region" in texts(ax)
    with pytest.raises(NotFoundError, match="family 'H' is not known"):
        draw("plot_families", fit, families=["H"])


def test_half_of_the_draws_lie_in_the_fifty_percent_region(fit):
    (ax,) = draw("plot_families", fit, families=["F"])
    draws = family_draws(fit).sel(family="F")
    inner = ax.collections[1].get_paths()
    points = np.column_stack([draws["A"], draws["mean_B"]])
    inside = np.any([Path(p.vertices, p.codes).contains_points(points) for p in inner], axis=0)
    assert inside.mean() == pytest.approx(0.5, abs=0.06)


def test_coefficients_are_those_of_the_table_with_the_probability_of_a_tax(fit):
    table = transfer_coefficients(fit)
    ax = plots.plot_transfer_coefficients(fit)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(table["benchmark"])
    assert "P(tax)" in texts(ax)


def test_convergence_plot_counts_what_is_outside_the_limits(fit, unconverged):
    assert ", 0 outside" in plots.plot_convergence(fit).get_title()
    assert ", 0 outside" not in plots.plot_convergence(unconverged).get_title()


def test_quantities_with_dims_or_unknown_ones_are_refused(fit):
    with pytest.raises(NotFoundError, match="quantity 'sigmas' is not known; did you mean 'sigma'"):
        plots.plot_chain_ranks(fit, variable="sigmas")
    with pytest.raises(RequestError, match="'S' has dims backbone"):
        plots.plot_prior_posterior(fit, variable="S")


@pytest.mark.parametrize("name", PLOTS)
def test_the_stamp_moves_no_other_label(name, fit, monkeypatch):
    def places():
        figure = draw(name, fit)[0].figure
        figure.canvas.draw()
        return [ax.get_position().bounds for ax in figure.axes]

    unstamped = places()
    monkeypatch.setattr(Diagnosis, "converged", False)
    assert places() == unstamped


def test_ticks_of_a_narrow_range_of_costs_are_told_apart(fit):
    asked = {"recipe": "wide", "flops": 4e19, "tokens_per_sample": 800, "min_volume": 3e6}
    ax = plots.plot_pareto(choose(fit, ["f-base", "f-instruct"], **asked))
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    labels = [tick.label1.get_text() for tick in ax.xaxis.get_major_ticks() if low <= tick.get_loc() <= high]
    assert len(labels) > 1
    assert len(set(labels)) == len(labels)


@pytest.mark.parametrize(("n", "a_cell"), [(60, 1), (61, 2), (1500, 25)])
def test_ranks_among_many_candidates_share_cells_and_each_row_adds_up(n, a_cell):
    rng = np.random.default_rng(0)
    draws = xr.DataArray(
        rng.normal(size=(400, n)), dims=("sample", "backbone"),
        coords={"backbone": [f"m{i}" for i in range(n)]}, attrs={"kind": "backbone"},
    )  # fmt: skip
    ax = plots.ranking.draw_ranks(draws, title="made by hand (simulated)")
    assert (f"{a_cell} ranks a cell" in ax.get_xlabel()) == (a_cell > 1)
    boxes = [path.vertices for part in ax.collections for path in part.get_paths()]
    assert {round(float(np.ptp(box[:, 0]))) for box in boxes} == {a_cell}
    assert len(boxes) > 40, "each of the 40 rows has cells"


@pytest.mark.parametrize(("width", "below", "above"), [(8, "<1", ">99"), (3.6, "<", ">")])
def test_the_matrix_numbers_candidates_before_their_names_and_says_no_more_than_draws_can(
    fit, width, below, above
):
    choice = choose(fit, volume=1e6, recipe="wide")
    pairs = choice.pairs.copy()
    pairs.iloc[0, 1], pairs.iloc[1, 0], pairs.iloc[0, 2] = 0.9999, 0.0001, 0.99
    ax = plt.figure(figsize=(width, 4)).add_subplot()
    plots.plot_probability_matrix(replace(choice, pairs=pairs), ax=ax)
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert labels == [f"{place}. {name}" for place, name in enumerate(pairs.index, start=1)]
    told = {text.get_position(): text.get_text() for text in ax.texts}
    assert [told[1, 0], told[0, 1], told[2, 0]] == [above, below, "99"]


def test_ranks_and_labels_of_a_narrow_figure_do_not_run_into_each_other(fit):
    n = 12
    draws = xr.DataArray(
        np.random.default_rng(0).normal(size=(4000, n)),
        {"backbone": [f"org/candidate-with-a-long-name-{i}" for i in range(n)]},
        ("sample", "backbone"),
        attrs={"kind": "backbone"},
    )
    figure = plt.figure(figsize=(3.6, 4), layout="constrained")
    ax = plots.ranking.draw_ranks(draws, title="made by hand", ax=figure.add_subplot())
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_xticklabels()]
    assert len(boxes) > 3
    assert all(left.x1 + 2 < right.x0 for left, right in pairwise(boxes))


def test_names_beside_the_front_have_paper_behind_them(fit):
    choice = choose(fit, flops=1e19, tokens_per_sample=700, recipe="wide")
    ax = plots.plot_pareto(choice, ax=plt.figure(figsize=(8, 4)).add_subplot())
    named = [text for text in ax.texts if text.get_text() in set(choice.ranking["backbone"])]
    assert named
    assert {to_rgb(text.get_bbox_patch().get_facecolor()) for text in named} == {
        to_rgb(plots.style.palette(ax).paper)
    }
