"""Plots of the paper's figures: axes in and out, keyword-only options, labels inside, and the stamp."""

import inspect
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.text import Text

import bayescdm as cdm
from bayescdm.paper import plots


@pytest.fixture(autouse=True)
def close_figures():
    with mpl.rc_context({"backend": "agg"}):
        yield
        plt.close("all")


@pytest.fixture(scope="module")
def without_one(known_fit):
    """Known draws of a fit from which one backbone is held out."""
    fit = known_fit(1000)
    held = (fit.study.runs["backbone"] == "g-base").to_numpy()
    return known_fit(1000, weights=np.where(held, 0.0, 1.0))


def drawn(name, simulated_fit, without_one):
    """Axes of one plot."""
    if name in ("plot_transfer", "plot_held_out_trajectories"):
        options = {"volume": 1e7} if name == "plot_transfer" else {}
        found = getattr(plots, name)(without_one, **options)
    elif name == "plot_text_against_multimodal":
        found = plots.plot_text_against_multimodal(simulated_fit.study)
    elif name == "plot_batch_size":
        losses = cdm.simulate_batch_losses(simulated_fit.study)
        batch = cdm.fit_batch_size(simulated_fit, losses, draws=200)
        found = plots.plot_batch_size(batch, candidates=["Qwen2.5-72B", "Qwen2.5-72B-Instruct"])
    else:
        found = getattr(plots, name)(simulated_fit)
    return [found] if isinstance(found, Axes) else list(found)


@pytest.mark.parametrize("name", plots.__all__)
def test_options_are_keyword_only(name):
    first, *rest = inspect.signature(getattr(plots, name)).parameters.values()
    assert first.kind is first.POSITIONAL_OR_KEYWORD
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in rest)


@pytest.mark.parametrize("name", plots.__all__)
def test_every_label_ends_inside_the_figure(name, simulated_fit, without_one):
    figure = drawn(name, simulated_fit, without_one)[0].figure
    figure.canvas.draw()
    drawn_box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(drawn_box.x0, drawn_box.y0) > -0.02
    assert drawn_box.x1 < width + 0.02
    assert drawn_box.y1 < height + 0.02


def test_axes_that_are_given_are_drawn_on(simulated_fit):
    figure, ax = plt.subplots()
    assert plots.plot_capability_on_compute(simulated_fit, ax=ax) is ax
    assert plt.get_fignums() == [figure.number]


def test_shrinkage_shows_posterior_means(simulated_fit):
    axes = plots.plot_shrinkage(simulated_fit)
    table = cdm.family_estimates(simulated_fit)
    shown = np.concatenate(
        [points.get_offsets()[:, 0] for points in axes[0].collections if len(points.get_offsets())]
    )
    means = table.loc[table["quantity"] == "A", "mean"]
    assert all(np.isclose(shown, mean).any() for mean in means)


def test_unconverged_draws_are_stamped(known_fit):
    fit = known_fit(50)
    weights = np.where((fit.study.runs["backbone"] == "g-base").to_numpy(), 0.0, 1.0)
    ax = plots.plot_transfer(known_fit(50, weights=weights), volume=1e7)
    assert any("not\nconverged" in text.get_text() for text in ax.texts)


def test_a_simulated_study_is_called_so(simulated_fit):
    renamed = replace(simulated_fit, study=replace(simulated_fit.study, name="mine"))
    ax = plots.plot_capability_on_compute(renamed)
    assert "simulated" in " ".join(text.get_text() for text in ax.figure.findobj(Text))
