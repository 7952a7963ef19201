"""Plots of loss laws show what they are about and mark what lies outside the fitted range."""

import inspect
from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from bayescdm.errors import Note
from bayescdm.loss import plots
from bayescdm.loss.allocate import allocate, preset
from bayescdm.loss.fit import LossFit
from bayescdm.loss.logs import prepare_logs, thin_logs
from bayescdm.loss.packaged import openclip_points
from bayescdm.loss.pointfit import fit_loss_points
from bayescdm.loss.simulate import simulate_losses


@pytest.fixture(autouse=True)
def no_window():
    mpl.use("Agg")
    yield
    plt.close("all")


def texts(ax):
    figure = ax.get_figure()
    legends = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    return " | ".join([ax.get_title(), ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel(), *legends])


def contrastive_fit(diverging=False):
    """Made-up draws around plausible constants."""
    rng = np.random.default_rng(0)
    dims = ("chain", "draw", "family")
    families = openclip_points().families

    def draws(centre):
        return dims, centre * np.exp(rng.normal(0, 0.02, (2, 400, 4)))

    posterior = xr.Dataset(
        {
            "alpha": draws(-0.12),
            "beta": draws(7.0),
            "floor": draws(0.05),
            "sigma": (("chain", "draw"), rng.uniform(0.03, 0.05, (2, 400))),
            "nu": (("chain", "draw"), rng.uniform(4, 9, (2, 400))),
        },
        {"family": families},
    )
    stats = xr.Dataset({"diverging": (("chain", "draw"), np.full((2, 400), diverging))})
    tree = xr.DataTree.from_dict({"posterior": posterior, "sample_stats": stats})
    return LossFit(tree, openclip_points(), "contrastive_power")


def test_loss_curve_says_metric_budget_and_optimum():
    ax = plots.plot_loss_curve(allocate(1e21))
    assert "1e21 FLOPs" in texts(ax)
    assert "text loss (nats per token)" in texts(ax)
    assert "optimum: N 1.824B, D 91.36B" in texts(ax)
    assert "outside the fitted range" in texts(ax)


def test_loss_curve_stays_a_curve_when_sizes_are_asked_for():
    ax = plots.plot_loss_curve(allocate(1e21, sizes=["7B", "400M"]))
    assert "size asked for" in texts(ax)
    assert max(len(line.get_xdata()) for line in ax.lines) > 80
    marked = [line for line in ax.lines if line.get_marker() == "s"]
    assert list(marked[0].get_xdata()) == [7e9, 4e8]


def test_legend_ends_inside_the_figure():
    ax = plots.plot_loss_curve(allocate(1e23, tokens_served="1T"))
    figure = ax.get_figure()
    figure.canvas.draw()
    (legend,) = figure.legends
    assert legend.get_window_extent().x1 <= figure.bbox.x1


def test_solid_lines_stay_inside_the_fitted_range():
    allocation = allocate(1e21)
    solid, dashed = plots.plot_loss_curve(allocation).lines[:2]
    drawn = solid.get_xdata()[np.isfinite(solid.get_ydata())]
    inside = allocation.curve.loc[~allocation.curve["extrapolation"], "params"]
    assert drawn.min() == inside.min()
    assert drawn.max() == inside.max()
    assert np.isfinite(dashed.get_ydata()).all()


def test_iso_flop_has_a_curve_and_an_optimum_a_budget():
    budgets = [1e19, 1e20, 1e21]
    ax = plots.plot_iso_flop(preset(), budgets)
    path = ax.lines[-1]
    np.testing.assert_allclose(
        path.get_xdata(), [allocate(b).optimum.loc["params", "value"] for b in budgets]
    )
    assert [text.get_text() for text in ax.texts] == ["1e19", "1e20", "1e21"]
    assert "N* ∝ C^0.452" in texts(ax)


def test_iso_loss_frames_the_fitted_range():
    ax = plots.plot_iso_loss(preset())
    (frame,) = ax.patches
    assert frame.get_bbox().get_points().tolist() == [[70e6, 5e9], [16e9, 500e9]]
    assert "extrapolation" in texts(ax)


def test_contrastive_panels_name_training_set_and_kinds_of_interval():
    axes = plots.plot_contrastive(contrastive_fit())
    assert [ax.get_title(loc="left") or ax.get_title() for ax in axes] == [
        "CLIP-WIT (3 models)", "LAION-2B (11 models)", "LAION-400M (9 models)", "LAION-80M (9 models)",
    ]  # fmt: skip
    assert "law, 90 % interval" in texts(axes[0])
    assert "run, 90 % interval" in texts(axes[0])


def test_draws_that_did_not_converge_are_stamped():
    def stamps(fit):
        axes = plots.plot_contrastive(fit)
        return [text for ax in axes for text in ax.texts if text.get_text() == "not\nconverged"]

    assert len(stamps(contrastive_fit(diverging=True))) == 4
    assert not stamps(contrastive_fit())


def test_logs_are_called_simulated_and_laws_are_dashed_once_each():
    study = thin_logs(prepare_logs(simulate_losses(log_every=100)), 20)
    by_family = [
        fit_loss_points(study.select_runs(list(runs.index)), "compute", starts=2)
        for _, runs in study.runs.groupby("family", sort=False)
    ]
    laws = {"by family": by_family, "one law": [fit_loss_points(study, "capability", starts=2)]}
    separate, one = plots.plot_loss_logs(study, laws)
    assert "simulated" in separate.get_figure().get_supylabel()
    sizes = len(study.runs.groupby(["family", "params"]))
    assert len(separate.lines) == len(study.runs) + sizes
    assert len(one.lines) == 2 * len(study.runs)
    for part in ("Falcon3", "logged, one line a run", "predicted by the law"):
        assert part in texts(one)
    own = plots.plot_loss_logs(study, laws, axes=plt.subplots(1, 2)[1])
    assert [ax.get_title() for ax in own] == list(laws)
    assert "simulated" in own[0].get_ylabel()


@pytest.mark.parametrize("name", plots.__all__)
def test_options_of_plots_are_keywords(name):
    parameters = inspect.signature(getattr(plots, name)).parameters.values()
    optional = [p for p in parameters if p.default is not inspect.Parameter.empty]
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in optional)


def test_given_axes_are_drawn_on():
    figure, ax = plt.subplots()
    assert plots.plot_loss_curve(allocate(1e21), ax=ax) is ax
    assert not figure.legends


def test_the_legend_of_a_law_with_a_long_name_stays_inside_the_picture():
    law = replace(preset(), name="posterior of simulated loss logs (compute law), family Falcon3")
    ax = plots.plot_loss_curve(allocate(1e21, law, sizes=["7B"]))
    figure = ax.figure
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x1 <= figure.bbox.x1


@pytest.mark.parametrize("converged", [True, False])
def test_pictures_of_an_allocation_are_stamped_where_the_draws_did_not_converge(converged):
    note = Note("not-converged", "NOT CONVERGED: 3 divergences", "warning")
    law = preset() if converged else replace(preset(), notes=(note,))
    pictures = [
        plots.plot_loss_curve(allocate(1e21, law)),
        plots.plot_iso_flop(law, [1e20, 1e21]),
        plots.plot_iso_loss(law),
    ]
    for ax in pictures:
        assert any("not\nconverged" in text.get_text() for text in ax.texts) == (not converged)
