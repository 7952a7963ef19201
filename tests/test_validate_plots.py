"""Plots and page sections of validations show the figures of their tables."""

from dataclasses import replace

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from bayescdm.errors import Note, RequestError
from bayescdm.plots.validation import plot_held_out, plot_pit, plot_residuals
from bayescdm.report.page import render
from bayescdm.report.validation import validation_section
from bayescdm.validate import PosteriorCheck, Validation, readable_scores
from bayescdm.validate.judge import summarise_rows
from bayescdm.validate.uniformity import ecdf_band


@pytest.fixture(autouse=True)
def close_figures():
    with mpl.rc_context({"backend": "agg"}):
        yield
        plt.close("all")


@pytest.fixture
def validation() -> Validation:
    """Made by hand: two folds of two runs, one fold not converged."""
    volumes = [1e9, 1e10]
    rows = pd.DataFrame(
        {
            "fold": ["F", "F", "G", "G"], "run": list("abcd"), "backbone": ["f", "f", "g", "g"],
            "family": ["F", "F", "G", "G"], "variant": "base", "recipe": "r", "volume": volumes * 2,
            "accuracy": [0.50, 0.55, 0.60, 0.65], "median": [0.51, 0.55, 0.58, 0.66],
        }
    )  # fmt: skip
    lines = rows.loc[:, ["fold", "backbone", "recipe", "volume", "median"]].copy()
    for prob, half in ((50, 0.01), (80, 0.02), (95, 0.04)):
        for table in (rows, lines):
            table[f"run_{prob}_lower"] = table["median"] - half
            table[f"run_{prob}_upper"] = table["median"] + half
    rows = rows.assign(
        error=rows["median"] - rows["accuracy"], crps=0.005, log_density=2.0, pit=[0.2, 0.5, 0.9, 0.4],
        capability_distance=[0.0, 0.0, 1.5, 1.5], volume_distance=0.0, recipe_known=1, evaluable=1,
    )  # fmt: skip
    folds = []
    for label, converged in (("F", 1), ("G", 0)):
        scores = summarise_rows(rows[rows["fold"] == label], np.full((2, 3), 2.0))
        folds.append({"fold": label, **scores, "max_r_hat": 1.0, "converged": converged})
    return Validation(
        study="made by hand", model="transfer_pooled", by="family", rows=rows, folds=pd.DataFrame(folds),
        scores=summarise_rows(rows) | {"elpd_joint": 8.0}, trajectories=lines, volume_unit="tokens",
        simulated=True, notes=(Note("not-converged", "NOT CONVERGED: 1 of 2 refits", "warning"),),
    )  # fmt: skip


def test_a_panel_a_fold_with_its_bands_and_its_runs(validation):
    first, second = plot_held_out(validation)
    assert [first.get_title(), second.get_title()] == ["F", "G"]
    (line,) = first.lines
    assert np.allclose(line.get_ydata(), [0.51, 0.55])
    points = first.collections[-1].get_offsets()
    assert np.allclose(points, [[1e9, 0.50], [1e10, 0.55]])
    outer = first.collections[1].get_paths()[0].vertices[:, 1]
    assert outer.min() == pytest.approx(0.47)
    words = [text.get_text() for text in first.figure.legends[0].get_texts()]
    assert "run, 95 % interval" in words
    assert not first.texts
    assert "converged" in second.texts[0].get_text()


def test_asking_for_a_fold_without_trajectory_names_those_there_are(validation):
    with pytest.raises(RequestError, match="trajectories of F, G"):
        plot_held_out(validation, folds=["H"])
    with pytest.raises(RequestError, match="none"):
        plot_held_out(replace(validation, trajectories=validation.trajectories.iloc[:0]))


def test_pit_curve_is_the_empirical_distribution_with_its_simultaneous_band():
    pit = np.random.default_rng(0).uniform(size=50)
    ax = plot_pit(pit, prob=0.9)
    z, lower, _ = ecdf_band(50, 99, 0.9)
    curve = ax.lines[1]
    assert np.allclose(curve.get_ydata(), (pit[:, None] <= z).mean(axis=0) - z)
    assert ax.collections[0].get_paths()[0].vertices[:, 1].min() == pytest.approx((lower - z).min())
    assert "90 % band if uniform" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_residuals_are_shown_in_points_with_their_p_values():
    rows = pd.DataFrame({"capability": [0.0, 1.0], "log_volume": [0.0, 1.0], "family": ["F", "G"],
                         "recipe": ["r | CLIP-L/14-336", "s"], "residual": [0.01, -0.02]})  # fmt: skip
    table = pd.DataFrame({"check": ["S", "ln D", "recipe", "family"], "p_value": [0.1, 0.2, 0.3, 0.4]})
    axes = plot_residuals(PosteriorCheck(rows, table, ()))
    assert [ax.get_title() for ax in axes] == [
        "S (p = 0.10)", "ln D (p = 0.20)", "recipe (p = 0.30)", "family (p = 0.40)",
    ]  # fmt: skip
    assert np.allclose(axes[0].collections[0].get_offsets(), [[0, 1], [1, -2]])
    assert np.allclose(axes[2].collections[0].get_offsets(), [[1, 0], [-2, 1]]), "a line a recipe"
    assert [label.get_text() for label in axes[2].get_yticklabels()] == ["r | CLIP-L/14-336", "s"]


def test_section_of_the_page_says_the_scores_and_what_did_not_converge(validation):
    section = validation_section(validation)
    page = render("title", "subtitle", [section])
    assert "made by hand (simulated)" in page
    assert f"{100 * validation.scores['mae']:.2f} points" in page
    assert "NOT CONVERGED: 1 of 2 refits" in page
    shown = readable_scores(validation)
    assert list(shown["fold"]) == ["F", "G", "all"]
    assert list(shown["judged"]) == ["2 of 2", "2 of 2", "4 of 4"]
    assert "Not drawn" not in page


def test_page_names_the_families_whose_trajectories_cannot_be_drawn(validation):
    lines = validation.trajectories
    page = render(
        "t", "s", [validation_section(replace(validation, trajectories=lines[lines["fold"] == "F"]))]
    )
    assert "Not drawn, for want of a known data volume: G." in page
