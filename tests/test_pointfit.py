"""The point fit: one objective, two optimisers, and nothing claimed that the runs do not say."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import huber

from bayescdm.capability import fit_capability
from bayescdm.errors import InputError, NotFoundError, RequestError
from bayescdm.pointfit import algorithm1, point_fit, variable_projection
from bayescdm.pointfit.objective import DELTA, LOWER, PENALTY, pose
from bayescdm.pointfit.varpro import SphereSearch
from bayescdm.reading import load_study
from bayescdm.study import Study

TRUTH = {"A": 0.23, "B0": 0.0155, "Bm": 0.0091}


def simulated_arrays(seed=0, components=3, backbones=32, volumes=8, recipes=1, noise=0.013):
    """Arguments of `variable_projection`, and the direction they were simulated with."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(backbones, components)) * np.array([0.33, 0.13, 0.08, 0.05, 0.04, 0.03])[:components]
    w = np.array([0.9, 0.35, -0.25, 0.1, 0.1, 0.1])[:components]
    w /= np.linalg.norm(w)
    backbone = np.repeat(np.arange(backbones), volumes)
    log_volume = np.tile(np.linspace(-1.6, 1.4, volumes), backbones)
    recipe = rng.integers(recipes, size=backbones)[backbone]
    S = (Z @ w)[backbone]
    baselines = 0.5 + 0.05 * rng.normal(size=recipes)
    accuracy = TRUTH["A"] * S + (TRUTH["B0"] - TRUTH["Bm"] * S) * log_volume + baselines[recipe]
    accuracy += noise * 0.7 * rng.standard_t(4, size=len(S))
    return (Z, backbone, log_volume, accuracy, recipe), w


def simulated_study(seed=0, recipes=1, noise=0.013, backbones=12) -> Study:
    """A simulated study whose text scores have three components."""
    (Z, backbone, log_volume, accuracy, recipe), _ = simulated_arrays(
        seed, backbones=backbones, recipes=recipes, volumes=4, noise=noise
    )
    directions = np.linalg.qr(np.random.default_rng(99).normal(size=(5, 3)))[0]
    labels = [f"m{i:02d}" for i in range(backbones)]
    scores = pd.DataFrame(
        (0.5 + 0.3 * Z @ directions.T).clip(0, 1), index=labels, columns=[f"b{i}" for i in range(5)]
    )
    table = pd.DataFrame({"family": "f", "variant": "base", "params": 1e9}, index=labels)
    runs = pd.DataFrame(
        {
            "recipe": [f"r{i}" for i in recipe],
            "backbone": [labels[i] for i in backbone],
            "volume": 1e6 * np.exp(log_volume),
            "accuracy": accuracy.clip(0, 1),
        },
        index=[f"run{i:03d}" for i in range(len(accuracy))],
    )
    return Study("simulated", scores, table, runs, simulated=True)


def written_out_objective(w, theta, arrays, delta=DELTA, penalty=PENALTY):
    """The objective of SPEC section 3 with SciPy's Huber function and a loop over backbones."""
    Z, backbone, log_volume, accuracy, recipe = arrays
    A, B0, Bm, *baselines = theta
    total = 0.0
    for b, x, p, r in zip(backbone, log_volume, accuracy, recipe):
        S = Z[b] @ w
        total += huber(delta, A * S + (B0 - Bm * S) * x + baselines[r] - p)
    return total + penalty * sum(min(0, B0 - Bm * (Z[b] @ w)) ** 2 for b in set(backbone))


@pytest.mark.parametrize("fit", [variable_projection, algorithm1])
def test_objective_is_the_one_written_down(fit):
    arrays, _ = simulated_arrays(1, backbones=6, volumes=3, recipes=2)
    found = fit(*arrays)
    theta = [found.A, found.B0, found.Bm, *found.baselines]
    assert found.objective == pytest.approx(written_out_objective(found.w, theta, arrays), rel=1e-12)
    assert np.linalg.norm(found.w) == pytest.approx(1, abs=1e-12)
    assert min(found.A, found.B0, found.Bm) >= LOWER


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    components=st.integers(1, 4),
    recipes=st.integers(1, 5),
    delta=st.sampled_from([1e-4, 1e-2, 1.0]),
    penalty=st.sampled_from([0.0, 1.0, 1e4]),
)
# Some residuals within a small δ come and go: hundreds of steps.
@example(seed=500, components=3, recipes=5, delta=1e-4, penalty=0.0)
@example(seed=6798, components=2, recipes=3, delta=1e-4, penalty=0.0)
def test_inner_solution_meets_the_optimality_conditions(seed, components, recipes, delta, penalty):
    arrays, _ = simulated_arrays(seed, components, backbones=9, volumes=4, recipes=recipes)
    problem, _ = pose(*arrays, delta=delta, penalty=penalty, weights=None)
    w = np.random.default_rng(seed).normal(size=components)
    w /= np.linalg.norm(w)
    theta = SphereSearch(problem).coefficients(w)
    X, rates = problem.design(w)
    gradient = problem.gradient_of_coefficients(X, rates, X @ theta - problem.accuracy, rates @ theta)
    on_bound = theta <= problem.lower
    # Convex: no free derivative, and none that a bound would not hold, is all there is to show.
    scale = delta * len(problem.accuracy)
    assert np.abs(gradient[~on_bound]).max() <= 1e-7 * scale
    assert (gradient[on_bound] >= -1e-7 * scale).all()


def test_derivative_of_the_projected_objective():
    arrays, _ = simulated_arrays(3, recipes=3)
    search = SphereSearch(pose(*arrays, delta=DELTA, penalty=PENALTY, weights=None)[0])
    for vector in np.random.default_rng(0).normal(size=(5, 3)):
        vector = vector * np.sign(vector[0])
        steps = 1e-6 * np.eye(3)
        numeric = [(search(vector + h)[0] - search(vector - h)[0]) / 2e-6 for h in steps]
        np.testing.assert_allclose(search(vector)[1], numeric, rtol=1e-4, atol=1e-7)


def test_coefficients_respond_to_the_direction_as_a_step_predicts():
    """Where the next inner solution starts is right to second order."""
    arrays, w = simulated_arrays(4, 3, recipes=2)
    search = SphereSearch(pose(*arrays, delta=DELTA, penalty=PENALTY, weights=None)[0])
    w = w / np.linalg.norm(w)
    _, gradient = search(w)
    theta = search.theta
    step, response = search.newton_step(w, gradient)
    off = []
    for length in (1e-3, 1e-4):
        trial = w + length * step / np.linalg.norm(step)
        trial = trial / np.linalg.norm(trial)
        off.append(np.abs(search.coefficients(trial) - theta - response @ (trial - w)).max())
    assert off[0] < 1e-4
    assert off[1] < off[0] / 30


def test_steps_on_the_sphere_are_tangent_and_downhill():
    arrays, w = simulated_arrays(4, 6, recipes=2)
    search = SphereSearch(pose(*arrays, delta=DELTA, penalty=PENALTY, weights=None)[0])
    for vector in [w, *np.random.default_rng(0).normal(size=(8, 6))]:
        vector = vector / np.linalg.norm(vector)
        _, gradient = search(vector)
        step, _ = search.newton_step(vector, gradient)
        assert abs(step @ vector) < 1e-9 * np.linalg.norm(step)
        assert gradient @ step < 0


@pytest.mark.parametrize("seed", range(3))
def test_no_worse_than_algorithm1_from_every_start(seed):
    arrays, _ = simulated_arrays(seed)
    theirs = algorithm1(*arrays, seed=seed).objective
    assert variable_projection(*arrays).objective <= theirs * (1 + 1e-6)
    for start in np.random.default_rng(seed).normal(size=(12, 3)):
        found = variable_projection(*arrays, starts=start)
        assert found.objective <= theirs * (1 + 1e-6)
        assert found.converged


@pytest.mark.parametrize("components", [1, 2, 3, 6])
@pytest.mark.parametrize("recipes", [1, 4])
def test_exact_data_give_the_exact_law(components, recipes):
    arrays, w = simulated_arrays(5, components, recipes=recipes, noise=0)
    found = variable_projection(*arrays)
    np.testing.assert_allclose(found.w, w, atol=1e-4)
    for name, value in TRUTH.items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-3)
    assert found.unidentified == ()


def test_huber_resists_a_wild_run():
    arrays, _ = simulated_arrays(6, noise=0.004)
    clean = variable_projection(*arrays)
    wild = (*arrays[:3], arrays[3].copy(), arrays[4])
    wild[3][10] += 0.4
    robust = variable_projection(*wild)
    squared = variable_projection(*wild, delta=10.0)
    assert abs(robust.A - clean.A) < 0.2 * abs(squared.A - clean.A)


def test_penalty_keeps_absorption_from_falling_below_zero():
    arrays, _ = simulated_arrays(7)
    Z, backbone, log_volume, accuracy, recipe = arrays
    steeper = accuracy - 0.1 * (Z[backbone, 0]) * log_volume
    lowest = [
        (found.B0 - found.Bm * (Z @ found.w)).min()
        for found in (
            variable_projection(Z, backbone, log_volume, steeper, recipe, penalty=p) for p in (0.0, 1.0, 1e5)
        )
    ]
    assert lowest[0] < -0.01
    assert lowest[0] < lowest[1] < lowest[2]
    assert lowest[2] > -1e-3


def test_weight_zero_is_absence_and_weight_two_is_twice():
    (Z, backbone, log_volume, accuracy, recipe), _ = simulated_arrays(8, backbones=10, volumes=4)
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, size=len(accuracy))
    rows = np.repeat(np.arange(len(accuracy)), weights)
    weighted = variable_projection(Z, backbone, log_volume, accuracy, recipe, weights=weights)
    repeated = variable_projection(Z, backbone[rows], log_volume[rows], accuracy[rows], recipe[rows])
    assert weighted.objective == pytest.approx(repeated.objective, rel=1e-9)
    np.testing.assert_allclose(weighted.w, repeated.w, atol=1e-4)
    assert (np.isnan(weighted.residuals) == (weights == 0)).all()


def test_missing_accuracy_is_left_out_by_both():
    arrays, _ = simulated_arrays(9, backbones=8, volumes=4)
    holed = (*arrays[:3], arrays[3].copy(), arrays[4])
    holed[3][::5] = np.nan
    kept = np.isfinite(holed[3])
    reduced = (arrays[0], *(a[kept] for a in holed[1:]))
    for fit in (variable_projection, algorithm1):
        assert fit(*holed).objective == pytest.approx(fit(*reduced).objective, rel=1e-7)


def test_sphere_of_three_components_agrees_with_a_direct_search():
    arrays, _ = simulated_arrays(10, recipes=3)
    found = variable_projection(*arrays)
    best = np.inf
    rng = np.random.default_rng(1)
    for _ in range(6):
        start = np.concatenate([rng.normal(size=3) * [1, 0.3, 0.3], [0.2, 0.01, 0.01, 0.5, 0.5, 0.5]])

        def direct(vector):
            S = arrays[0] @ (vector[:3] / np.linalg.norm(vector[:3]))
            rate = vector[4] - vector[5] * S
            predicted = vector[3] * S[arrays[1]] + rate[arrays[1]] * arrays[2] + vector[6:][arrays[4]]
            short = np.minimum(rate, 0)
            return 1e3 * (huber(DELTA, predicted - arrays[3]).sum() + PENALTY * short @ short)

        bounds = [(None, None)] * 3 + [(LOWER, None)] * 3 + [(None, None)] * 3
        reached = minimize(direct, start, bounds=bounds, options={"maxfun": 20_000, "maxiter": 2000}).fun
        best = min(best, reached / 1e3)
    assert found.objective <= best * (1 + 1e-9)
    assert found.objective == pytest.approx(best, rel=1e-3)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 100_000),
    components=st.integers(1, 6),
    backbones=st.integers(1, 5),
    runs=st.integers(0, 8),
    recipes=st.integers(1, 4),
    single_volume=st.booleans(),
    scale=st.sampled_from([0.0, 1e-9, 0.1, 10.0]),
)
def test_never_fails_on_finite_data(seed, components, backbones, runs, recipes, single_volume, scale):
    rng = np.random.default_rng(seed)
    Z = scale * rng.normal(size=(backbones, components))
    log_volume = np.zeros(runs) if single_volume else 3 * rng.normal(size=runs)
    found = variable_projection(
        Z,
        rng.integers(backbones, size=runs),
        log_volume,
        rng.choice([0.0, 0.3, 0.5, 1.0], size=runs),
        rng.integers(recipes, size=runs),
    )
    assert np.isfinite([found.A, found.B0, found.Bm, found.objective, *found.baselines, *found.w]).all()
    assert np.linalg.norm(found.w) == pytest.approx(1)
    assert min(found.A, found.B0, found.Bm) >= LOWER
    if single_volume:
        assert {"B0", "Bm"} <= set(found.unidentified)
    if runs < 3:
        assert "Bm" in found.unidentified


@pytest.mark.parametrize(
    ("change", "unidentified"),
    [
        ({"log_volume": "zero"}, {"B0", "Bm"}),
        ({"log_volume": "by recipe"}, {"B0"}),
        ({"backbone": "one"}, {"w", "A", "Bm"}),
        ({"backbone": "two"}, {"w"}),
        ({}, set()),
    ],
)
def test_what_the_runs_leave_open_is_named(change, unidentified):
    (Z, backbone, log_volume, accuracy, recipe), _ = simulated_arrays(11, volumes=4, recipes=2)
    if change.get("log_volume") == "zero":
        log_volume = np.zeros_like(log_volume)
    if change.get("log_volume") == "by recipe":
        log_volume = recipe - 0.5
    if change.get("backbone") == "one":
        backbone, recipe = np.zeros_like(backbone), np.zeros_like(recipe)
    if change.get("backbone") == "two":
        backbone, recipe = backbone % 2, np.zeros_like(recipe)
    found = variable_projection(Z, backbone, log_volume, accuracy, recipe)
    # With one backbone S is a constant: A cannot be told from P0, nor Bm from B0.
    expected = unidentified | ({"B0"} if change.get("backbone") == "one" else set())
    assert set(found.unidentified) == expected


def test_labelled_fit_recovers_a_simulated_study():
    study = simulated_study(noise=0)
    fit = point_fit(study, fit_capability(study, components=3))
    assert fit.mae < 1e-5
    # Text scores hold 0.3 of each component, so that the slope per unit of S is larger by as much.
    assert pytest.approx(TRUTH["A"] / 0.3, rel=1e-2) == fit.A
    np.testing.assert_allclose(fit.runs["predicted"] - fit.runs["accuracy"], fit.runs["residual"], atol=1e-15)
    np.testing.assert_allclose(fit.B, fit.B0 - fit.Bm * fit.S)
    summary = fit.summary()
    assert summary.loc["A", "value"] == fit.A
    assert summary["identified"].all()


def test_both_methods_give_one_labelled_answer():
    study = simulated_study(1)
    ours, theirs = point_fit(study), point_fit(study, method="algorithm1")
    assert ours.objective <= theirs.objective * (1 + 1e-6)
    np.testing.assert_allclose(ours.runs["predicted"], theirs.runs["predicted"], atol=1e-4)
    assert (ours.method, theirs.method) == ("varpro", "algorithm1")


def shuffled(study):
    scores = study.text_scores.sample(frac=1, random_state=1).sample(frac=1, axis=1, random_state=2)
    runs, backbones = (table.sample(frac=1, random_state=3) for table in (study.runs, study.backbones))
    return replace(study, text_scores=scores, backbones=backbones, runs=runs), {}


def renamed(study):
    """Every name another, in another order of the alphabet, which is the order of sums inside."""
    rng = np.random.default_rng(0)
    names = {
        old: f"{kind}{n:03d}"
        for kind, labels in (("b", study.backbones.index), ("f", study.families), ("r", study.recipes))
        for old, n in zip(labels, rng.permutation(len(labels)))
    }
    runs = study.runs.assign(
        backbone=study.runs["backbone"].map(names), recipe=study.runs["recipe"].map(names)
    )
    backbones = study.backbones.rename(index=names)
    backbones["family"] = backbones["family"].map(names)
    return (
        replace(study, text_scores=study.text_scores.rename(index=names), backbones=backbones, runs=runs),
        names,
    )


def in_millions(study):
    runs = study.runs.assign(volume=study.runs["volume"] / 1e6)
    ref = None if study.volume_ref is None else study.volume_ref / 1e6
    return replace(study, runs=runs, volume_ref=ref), {}


@pytest.mark.parametrize("change", [shuffled, renamed, in_millions])
@pytest.mark.parametrize("seed", range(4))
def test_names_order_and_unit_of_volume_change_nothing(change, seed):
    """To 1e-12 relative, which is the rounding of sums in another order."""
    study = simulated_study(seed, recipes=1 + seed)
    other, names = change(study)
    fit, again = point_fit(study), point_fit(other)
    exactly = {"rtol": 1e-12, "atol": 1e-12}
    for name in ("A", "B0", "Bm", "P0", "objective", "mae", "residual_scale"):
        assert getattr(again, name) == pytest.approx(getattr(fit, name), rel=1e-12), name
    np.testing.assert_allclose(again.w, fit.w, **exactly)
    for name in ("S", "B", "baselines", "transfer_coefficients"):
        ours = getattr(fit, name).rename(index=names)
        np.testing.assert_allclose(getattr(again, name)[ours.index], ours, **exactly, err_msg=name)
    columns = ["predicted", "residual"]
    np.testing.assert_allclose(again.runs.loc[fit.runs.index, columns], fit.runs[columns], **exactly)


@pytest.mark.parametrize("change", [shuffled, renamed, in_millions])
def test_published_figures_under_other_names_give_the_same_rates(change):
    """Baselines and residuals to 1e-10: of several recipes, runs on the flat part of the loss hold little."""
    study = load_study("open-vlm")
    other, names = change(study)
    fit, again = point_fit(study), point_fit(other)
    assert pytest.approx(fit.A, rel=1e-12) == again.A
    np.testing.assert_allclose(again.w, fit.w, atol=1e-12)
    ours = fit.baselines.rename(index=names)
    np.testing.assert_allclose(again.baselines[ours.index], ours, rtol=1e-10)
    np.testing.assert_allclose(again.runs.loc[fit.runs.index, "residual"], fit.runs["residual"], atol=1e-10)


def test_a_study_without_a_reference_volume_takes_one_in_its_own_unit():
    study = simulated_study(2, recipes=3)
    millions, _ = in_millions(replace(study, volume_ref=None))
    fit, other = point_fit(study), point_fit(millions)
    assert other.Bm == pytest.approx(fit.Bm, rel=1e-9)
    one = fit.predict(fit.S, 3e6, "r1")["accuracy"]
    np.testing.assert_allclose(other.predict(other.S, 3.0, "r1")["accuracy"], one, rtol=1e-12)


def test_reference_volume_moves_A_and_P0_as_the_law_says():
    study = simulated_study(3)
    fit, moved = point_fit(study), point_fit(replace(study, volume_ref=2 * study.volume_ref))
    assert pytest.approx(fit.A - fit.Bm * np.log(2), rel=1e-4) == moved.A
    assert pytest.approx(fit.P0 + fit.B0 * np.log(2), rel=1e-4) == moved.P0
    np.testing.assert_allclose(
        moved.predict(moved.S, [1e6, 9e6])["accuracy"], fit.predict(fit.S, [1e6, 9e6])["accuracy"], atol=1e-6
    )


def test_band_is_the_residual_scale_wide_everywhere():
    fit = point_fit(simulated_study(4))
    band = fit.band(fit.S, [1e6, 1e9])
    half = (band["residual_upper_95"] - band["residual_lower_95"]) / 2
    np.testing.assert_allclose(half, 1.959964 * fit.residual_scale, rtol=1e-6)
    assert "residual_lower_80" in fit.band(fit.S, 1e6, prob=0.8)
    inside = fit.runs["residual"].abs() < 1.96 * fit.residual_scale
    assert 0.85 < inside.mean() <= 1


def test_new_backbones_are_predicted_from_text_scores():
    study = simulated_study(5)
    fit = point_fit(study)
    S = fit.capability_of(study.text_scores)
    np.testing.assert_allclose(S.loc[fit.S.index], fit.S, atol=1e-12)
    by_benchmark = (study.text_scores - fit.capability.mean) @ fit.transfer_coefficients
    np.testing.assert_allclose(by_benchmark.loc[fit.S.index], fit.S, atol=1e-12)
    table = fit.predict(S.iloc[:2], [1e6, 2e6, 3e6])
    assert list(table["backbone"]) == ["m00"] * 3 + ["m01"] * 3


def test_single_volume_is_said_and_never_a_slope():
    study = simulated_study(6)
    single = study.select_runs(study.runs["volume"].eq(study.runs["volume"].iloc[0]))
    single = replace(single, volume_ref=None)
    fit = point_fit(single)
    assert np.isnan([fit.B0, fit.Bm]).all()
    assert "unidentified" in [note.code for note in fit.notes]
    there = fit.predict(fit.S, fit.volume_ref)["accuracy"]
    elsewhere = fit.predict(fit.S, 2 * fit.volume_ref)["accuracy"]
    assert there.notna().all()
    assert elsewhere.isna().all()


def test_unknown_volume_is_absorbed_by_its_own_baseline_or_left_out():
    study = simulated_study(7, recipes=3)
    runs = study.runs.copy()
    runs.loc[runs["recipe"] == "r2", "volume"] = np.nan
    unknown = replace(study, runs=runs, volume_ref=None)
    fit = point_fit(unknown)
    assert fit.unknown_volume == ("r2",)
    assert len(fit.runs) == len(runs)
    with pytest.raises(RequestError, match="unknown volume"):
        fit.predict(fit.S, 1e6, "r2")
    shared = point_fit(unknown, baselines="shared")
    assert len(shared.runs) == (runs["recipe"] != "r2").sum()
    assert "unknown-volume-left-out" in [note.code for note in shared.notes]


def test_one_baseline_a_recipe_only_where_there_are_several():
    several = simulated_study(8, recipes=3)
    fit = point_fit(several)
    assert fit.baselines.nunique() == 3
    assert pytest.approx(fit.baselines.mean()) == fit.P0
    assert point_fit(several, baselines="shared").baselines.nunique() == 1
    assert point_fit(several, baselines="shared").mae > fit.mae


def test_requests_that_cannot_be_met_say_why():
    study = simulated_study(9, recipes=2)
    fit = point_fit(study)
    with pytest.raises(RequestError, match="not a positive number"):
        fit.predict(fit.S, [1e6, -1])
    with pytest.raises(NotFoundError, match="nearest: r1"):
        fit.predict(fit.S, 1e6, "r11")
    with pytest.raises(RequestError, match="between 0 and 1"):
        fit.band(fit.S, 1e6, prob=95)
    with pytest.raises(RequestError, match="varpro"):
        point_fit(study, method="newton")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match="shared"):
        point_fit(study, baselines="none")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no run"):
        point_fit(study.select_runs([]))
    with pytest.raises(InputError, match="finite"):
        variable_projection(np.array([[np.nan]]), np.array([0]), np.zeros(1), np.array([0.5]))
    with pytest.raises(InputError, match="outside"):
        variable_projection(np.ones((1, 1)), np.array([1]), np.zeros(1), np.array([0.5]))
