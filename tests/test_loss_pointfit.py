"""Point fits reach the best known optimum from any seed, and say where they cannot be trusted."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime

from bayescdm.errors import NotFoundError, RequestError
from bayescdm.laws import compute_loss, contrastive_error
from bayescdm.loss.huber import HuberObjective
from bayescdm.loss.logs import prepare_logs, thin_logs
from bayescdm.loss.packaged import chinchilla_points
from bayescdm.loss.pointfit import capability_direction, fit_loss_points
from bayescdm.loss.scope import Scope
from bayescdm.loss.simulate import CAPABILITY_TRUTH, VOLUME_REF, simulate_losses
from bayescdm.loss.study import LossStudy

BEST_KNOWN = {"A": 477.8, "B": 2143.5, "E": 1.8172, "alpha": 0.3473, "beta": 0.3672}


@pytest.fixture(scope="module")
def points():
    return chinchilla_points()


@pytest.fixture(scope="module")
def fits(points):
    return [fit_loss_points(points, seed=seed) for seed in (0, 1, 2)]


def scaled(study, factor):
    runs = study.runs.assign(params=study.runs["params"] * factor)
    return replace(study, runs=runs, points=study.points.assign(volume=study.points["volume"] * factor))


def grid(families=("f",), N=(1e8, 3e8, 1e9, 3e9, 1e10), D=(1e9, 1e10, 1e11), **constants):
    """Noise-free losses of a known compute law, one point a run."""
    rows = [
        (f"{f}-{n:g}-{d:g}", f, n, d, compute_loss(n, d, **constants)) for f in families for n in N for d in D
    ]
    table = pd.DataFrame(rows, columns=["run", "family", "params", "volume", "loss"])
    scope = chinchilla_points().scope
    return LossStudy(
        "grid", table.set_index("run")[["family", "params"]], table[["run", "volume", "loss"]], scope
    )


def test_chinchilla_optimum_is_reached_from_any_seed(fits):
    for fit in fits:
        assert fit.objective == pytest.approx(0.0010183, abs=1e-6)
        assert fit.reached == fit.starts
        assert not [n for n in fit.notes if n.severity == "warning"]
        for name, value in BEST_KNOWN.items():
            assert fit.parameters[name] == pytest.approx(value, rel=2e-4)


def test_three_seeds_give_one_fit(fits):
    for fit in fits[1:]:
        for name in BEST_KNOWN:
            assert fit.parameters[name] == pytest.approx(fits[0].parameters[name], rel=1e-6)


def test_variable_projection_alone_reaches_the_optimum(points):
    fit = fit_loss_points(points, starts=1, seed=3)
    assert fit.objective == pytest.approx(0.0010183, abs=1e-6)


@pytest.mark.parametrize("factor", [0.01, 7.0])
def test_units_of_N_and_D_leave_predictions_alone(points, fits, factor):
    other = fit_loss_points(scaled(points, factor))
    N, D = np.array([1e8, 1e9, 1e10]), np.array([1e11, 1e10, 1e12])
    ours = fits[0].predict(D, params=N).table["loss"]
    theirs = other.predict(D * factor, params=N * factor).table["loss"]
    np.testing.assert_allclose(theirs, ours, rtol=1e-8)


def test_gradient_and_hessian_are_those_of_the_objective():
    rng = np.random.default_rng(0)
    objective = HuberObjective(rng.normal(size=(40, 3, 5)), rng.normal(size=40), rng.uniform(0, 2, 40), 0.5)
    x = rng.normal(0, 0.3, 5)
    np.testing.assert_allclose(objective(x)[1], approx_fprime(x, lambda y: objective(y)[0], 1e-7), rtol=1e-4)
    for i in range(5):
        numeric = approx_fprime(x, lambda y, i=i: objective(y)[1][i], 1e-7)
        np.testing.assert_allclose(objective.hessian(x)[i], numeric, rtol=1e-3, atol=1e-4)


def test_noise_free_constants_come_back():
    truth = {"A": 300.0, "B": 900.0, "E": 1.5, "alpha": 0.31, "beta": 0.33}
    fit = fit_loss_points(grid(**truth))
    for name, value in truth.items():
        assert fit.parameters[name] == pytest.approx(value, rel=1e-4)
    assert fit.mae < 1e-7


def test_bootstrap_intervals_hold_the_estimate_and_repeat(points):
    first, again = (fit_loss_points(points, starts=2, resamples=40, seed=5).intervals(0.9) for _ in range(2))
    pd.testing.assert_frame_equal(first, again)
    assert (first["bootstrap_lower_90"] < first["estimate"]).all()
    assert (first["estimate"] < first["bootstrap_upper_90"]).all()
    assert first.loc["alpha", "bootstrap_upper_90"] - first.loc["alpha", "bootstrap_lower_90"] > 0.01


def test_without_resamples_there_are_no_intervals(fits):
    with pytest.raises(RequestError, match="resamples=500"):
        fits[0].intervals()


def codes(fit):
    return {n.code for n in fit.notes if n.severity == "warning"}


def test_an_optimum_at_a_bound_is_told():
    without_floor = fit_loss_points(grid(A=300.0, B=900.0, E=0.0, alpha=0.3, beta=0.3), starts=4)
    (note,) = [n for n in without_floor.notes if n.code == "optimum-at-bound"]
    assert note.where == "ln E"
    with_floor = fit_loss_points(grid(A=300.0, B=900.0, E=1.5, alpha=0.3, beta=0.3), starts=4)
    assert "optimum-at-bound" not in codes(with_floor)


@pytest.mark.parametrize("levels", [{"N": (1e9,)}, {"D": (1e10,)}, {"N": (1e9, 2e9)}])
def test_too_few_sizes_or_volumes_leave_constants_undetermined(levels):
    constants = {"A": 300.0, "B": 900.0, "E": 1.5, "alpha": 0.3, "beta": 0.3}
    assert "undetermined" in codes(fit_loss_points(grid(**levels, **constants), starts=2))
    assert "undetermined" not in codes(fit_loss_points(grid(**constants), starts=2))


def test_disagreeing_starts_are_told():
    """Two kinds of runs that no constants explain: the objective has more than one valley."""
    rng = np.random.default_rng(1)
    study = grid(A=300.0, B=900.0, E=1.5, alpha=0.3, beta=0.3)
    torn = study.points["loss"] * np.where(rng.uniform(size=len(study.points)) < 0.5, 1.0, 3.0)
    fit = fit_loss_points(replace(study, points=study.points.assign(loss=torn)), starts=30)
    (note,) = [n for n in fit.notes if n.code == "starts-disagree" and n.where == "direct search"]
    assert f"{fit.starts - fit.reached} of 30 starts" in note.message


def test_extrapolations_are_flagged_and_the_scope_is_printed(fits):
    answer = fits[0].predict([1e10, 1e13], params=[1e9, 1e12])
    assert answer.table["extrapolation"].tolist() == [False, True]
    assert "1 of 2 points lie outside the fitted range" in str(answer)
    for part in (
        "text loss (nats per token)",
        "MassiveText",
        " to 1.618e+10 parameters",
        "2203.15556",
    ):
        assert part in str(answer)


def test_capability_law_recovers_its_direction_and_rates():
    study = thin_logs(prepare_logs(simulate_losses("capability", noise=0.005)), 40)
    fit = fit_loss_points(study, "capability", starts=8)
    w = np.asarray(CAPABILITY_TRUTH["w"]) / np.linalg.norm(CAPABILITY_TRUTH["w"])
    assert fit.parameters["w"] @ w > 0.99
    assert fit.parameters["alpha"] == pytest.approx(CAPABILITY_TRUTH["alpha"], rel=0.2)
    assert fit.parameters["B"] / VOLUME_REF ** fit.parameters["beta"] == pytest.approx(0.22, abs=0.05)
    assert fit.n_parameters == 7
    log_volume, weights = np.log(study.volume / study.volume_ref), np.ones(len(study.points))
    Z = study.component_scores[study.run_of_point]
    start = capability_direction(Z, log_volume, np.log(study.loss), weights)
    np.testing.assert_allclose(start, fit.parameters["w"], atol=1e-4)
    S = study.component_scores @ fit.parameters["w"]
    asked = fit.predict(1e10, S=[S.min(), S.max(), S.max() + 0.1])
    assert asked.table["extrapolation"].tolist() == [False, False, True]


def test_few_runs_make_the_bootstrap_a_hint():
    study = thin_logs(simulate_losses("compute", log_every=500), 10)
    llama = study.select_runs(study.runs.index[study.runs["family"] == "Llama-3.2"])
    fit = fit_loss_points(llama, starts=2, resamples=3)
    assert "few-runs" in {n.code for n in fit.notes}


def test_contrastive_law_is_recovered_whatever_the_unit_of_compute():
    C = np.geomspace(1e9, 1e13, 12)
    labels = [f"model {i}" for i in range(12)]
    runs = pd.DataFrame({"family": "set", "params": 1e8, "compute": C}, index=labels)
    points = pd.DataFrame({"run": labels, "volume": 1e9, "loss": contrastive_error(C, 8.0, -0.15, 0.1)})
    scope = Scope("error", ranges={"compute": (1e9, 1e13)})
    fit = fit_loss_points(LossStudy("made up", runs, points, scope), "contrastive", starts=4)
    assert fit.parameters == pytest.approx({"beta": 8.0, "alpha": -0.15, "floor": 0.1}, rel=1e-3)
    other = LossStudy("made up", runs.assign(compute=C * 1e3), points, scope)
    scaled = fit_loss_points(other, "contrastive", starts=4)
    asked = np.array([1e10, 1e14])
    answer = fit.predict(compute=asked).table
    np.testing.assert_allclose(answer["loss"], scaled.predict(compute=asked * 1e3).table["loss"], rtol=1e-6)
    assert answer["extrapolation"].tolist() == [False, True]
    with pytest.raises(RequestError, match="the contrastive law needs compute"):
        fit.predict(1e9)


def test_unknown_law_is_refused(points):
    with pytest.raises(NotFoundError, match="known: capability, compute, contrastive"):
        fit_loss_points(points, "quadratic")
