"""Components of text scores: plain PCA on complete tables, honest uncertainty on incomplete ones."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from bayescdm.capability import Capability, fit_capability, fit_components
from bayescdm.errors import InputError, NotFoundError, RequestError
from bayescdm.study import Study

FIGURES = Path(__file__).parents[2] / "shared" / "data" / "open-vlm" / "text_scores.csv"
BENCHMARKS = ["IFEval", "BBH", "MATH-Lvl-5", "GPQA", "MUSR", "MMLU-PRO"]


def simulated_scores(seed: int, backbones: int, benchmarks: int, rank: int, noise: float) -> pd.DataFrame:
    """Rank-`rank` scores around 0.5 plus noise, kept inside (0, 1) by their scale."""
    rng = np.random.default_rng(seed)
    scale = np.array([0.12, 0.07, 0.05, 0.03])[:rank]
    directions = np.linalg.qr(rng.normal(size=(benchmarks, rank)))[0]
    values = 0.5 + (rng.normal(size=(backbones, rank)) * scale) @ directions.T
    values += rng.normal(scale=noise, size=values.shape)
    return pd.DataFrame(
        values.clip(0, 1),
        index=[f"m{i:03d}" for i in range(backbones)],
        columns=[f"b{i:02d}" for i in range(benchmarks)],
    )


def hide(scores: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """Hide a share of the scores completely at random, keeping one in each row."""
    rng = np.random.default_rng(seed)
    mask = rng.random(scores.shape) < share
    mask[np.arange(len(mask)), rng.integers(scores.shape[1], size=len(mask))] = False
    return scores.mask(mask)


def study_of(scores: pd.DataFrame, with_runs: list[str] | None = None) -> Study:
    used = list(scores.index) if with_runs is None else with_runs
    backbones = pd.DataFrame({"family": "f", "variant": "base", "params": 1e9}, index=scores.index)
    runs = pd.DataFrame({"recipe": "r", "backbone": used, "volume": 1e6, "accuracy": 0.5})
    return Study("simulated", scores, backbones, runs, simulated=True)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    backbones=st.integers(3, 60),
    benchmarks=st.integers(2, 40),
    components=st.integers(1, 4),
)
def test_complete_table_equals_scikit_learn(seed, backbones, benchmarks, components):
    components = min(components, backbones - 1, benchmarks)
    rng = np.random.default_rng(seed)
    # Scales a factor two apart keep the eigenvalues distinct, so that the components are defined.
    values = rng.uniform(size=(backbones, benchmarks)) * 0.5 ** (np.arange(benchmarks) % 8)
    scores = pd.DataFrame(
        values, index=[f"m{i}" for i in range(backbones)], columns=[f"b{i}" for i in range(benchmarks)]
    )
    ours = fit_components(scores, components=components)
    theirs = PCA(n_components=components, svd_solver="full").fit(values)
    signs = np.sign((theirs.components_.T * ours.loadings).sum(axis=0))
    gaps = np.diff(-np.append(theirs.singular_values_, 0)) / theirs.singular_values_[0]
    tolerance = 1e-10 if gaps.min() > 1e-4 else 1e-6
    np.testing.assert_allclose(ours.loadings * signs, theirs.components_.T, atol=tolerance)
    np.testing.assert_allclose(ours.scores * signs, theirs.transform(values), atol=tolerance)
    np.testing.assert_allclose(ours.explained, theirs.explained_variance_ratio_, atol=1e-10)
    assert (ours.covariance == 0).all()
    assert len(ours.incomplete) == 0


def test_published_scores_need_three_of_six_components():
    if not FIGURES.exists():
        pytest.skip("the shared figures are not beside the project")
    table = pd.read_csv(FIGURES).set_index("backbone")[BENCHMARKS].dropna() / 100
    capability = fit_components(table)
    np.testing.assert_allclose(capability.cumulative, [0.7317, 0.9346, 0.9792], atol=5e-5)


def test_higher_scores_mean_higher_pc1():
    for seed in range(20):
        scores = simulated_scores(seed, 30, 8, 2, 0.02)
        capability = fit_components(scores)
        better = capability.project(scores.iloc[[0]] + 0.01)[0]
        assert better["PC1"].iloc[0] > capability.scores["PC1"].iloc[0]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 1000), share=st.sampled_from([0.0, 0.15]))
def test_order_of_rows_and_columns_changes_nothing(seed, share):
    scores = hide(simulated_scores(seed, 25, 6, 2, 0.03), share, seed)
    rng = np.random.default_rng(seed)
    shuffled = scores.iloc[rng.permutation(25), rng.permutation(6)]
    one, other = fit_components(scores, components=2), fit_components(shuffled, components=2)
    pd.testing.assert_frame_equal(one.scores, other.scores.loc[scores.index], rtol=0, atol=1e-14)
    aligned = other.loadings[other.benchmarks.get_indexer(one.benchmarks)]
    np.testing.assert_array_equal(one.loadings, aligned)


def test_filling_beats_the_mean():
    for seed in range(5):
        complete = simulated_scores(seed, 60, 8, 2, 0.02)
        truth = fit_components(complete, components=2)
        holed = hide(complete, 0.25, seed)
        capability = fit_components(holed, components=2)
        exact = (complete - capability.mean) @ capability.loadings
        by_mean = (holed.fillna(holed.mean()) - capability.mean) @ capability.loadings
        rows = capability.incomplete
        ours = ((capability.scores.to_numpy() - exact) ** 2).loc[rows].to_numpy().mean()
        assert ours < 0.5 * ((by_mean - exact) ** 2).loc[rows].to_numpy().mean()
        cosines = np.abs((truth.loadings * capability.loadings).sum(axis=0))
        assert cosines.min() > 0.9


@pytest.mark.parametrize(("backbones", "benchmarks"), [(150, 6), (34, 20)])
def test_covariance_covers_the_scores_that_complete_rows_would_have(backbones, benchmarks):
    squared, inside = [], []
    for seed in range(12):
        complete = simulated_scores(seed, backbones, benchmarks, 2, 0.03)
        capability = fit_components(hide(complete, 0.3, seed), components=2)
        exact = ((complete - capability.mean) @ capability.loadings).to_numpy()
        sd = np.sqrt(np.diagonal(capability.covariance, axis1=1, axis2=2))
        missing = sd[:, 0] > 0
        z = (capability.scores.to_numpy() - exact)[missing] / sd[missing]
        squared.append((z**2).mean())
        inside.append((np.abs(z) < 1.645).mean())
    # Components estimated from few rows cost a little more than the conditional covariance knows.
    assert 0.8 < np.mean(squared) < 1.6
    assert 0.82 < np.mean(inside) < 0.94


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_noise_is_not_taken_for_signal(share):
    # 95 % of the variance needs many components of noisy benchmarks; two are signal.
    for seed in range(4):
        capability = fit_components(hide(simulated_scores(seed, 34, 40, 2, 0.03), share, seed))
        assert len(capability.components) > 10
        assert capability.noise_variance == pytest.approx(0.03**2, rel=0.2)
        eigenvalues = np.linalg.eigvalsh(capability.score_covariance)
        assert 1 <= (eigenvalues > 1.5 * capability.noise_variance).sum() <= 3


def test_half_the_scores_missing_is_visibly_wider_than_one_missing():
    scores = simulated_scores(1, 40, 6, 2, 0.03)
    capability = fit_components(scores, components=2)
    rows = pd.concat([scores.iloc[[0]]] * 3)
    rows.iloc[1, :1] = np.nan
    rows.iloc[2, :3] = np.nan
    mean, covariance = capability.project(rows)
    spread = np.sqrt(np.trace(covariance, axis1=1, axis2=2))
    assert spread[0] == 0
    assert 0 < spread[1] < spread[2]
    total = np.sqrt(capability.variances.sum())
    assert 0.05 * total < spread[2] < total
    expected = (rows.iloc[[0]].to_numpy() - capability.mean) @ capability.loadings
    np.testing.assert_array_equal(mean.iloc[[0]].to_numpy(), expected)


def test_absent_column_is_a_missing_score():
    scores = simulated_scores(2, 30, 5, 2, 0.03)
    capability = fit_components(scores)
    holed = scores.iloc[:3].copy()
    holed["b02"] = np.nan
    one, other = capability.project(holed), capability.project(holed.drop(columns="b02"))
    pd.testing.assert_frame_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_excluded_backbones_are_scored_but_do_not_shape_the_components():
    scores = simulated_scores(3, 30, 5, 2, 0.03)
    held_out = list(scores.index[:6])
    capability = fit_capability(study_of(scores), components=2, exclude=held_out)
    alone = fit_components(scores.drop(index=held_out), components=2)
    np.testing.assert_array_equal(capability.loadings, alone.loadings)
    assert list(capability.scores.index) == list(scores.index)
    assert not capability.fitted_on.isin(held_out).any()


def test_population_with_runs_uses_only_their_backbones():
    scores = simulated_scores(4, 30, 5, 2, 0.03)
    used = list(scores.index[5:20])
    capability = fit_capability(study_of(scores, used), components=2, population="with_runs")
    np.testing.assert_array_equal(
        capability.loadings, fit_components(scores.loc[used], components=2).loadings
    )
    assert sorted(capability.fitted_on) == used


def test_backbone_without_scores_has_no_capability():
    scores = simulated_scores(5, 12, 4, 2, 0.03)
    scores.iloc[3] = np.nan
    capability = fit_capability(study_of(scores))
    assert scores.index[3] not in capability.scores.index
    with pytest.raises(RequestError, match="m003"):
        capability.project(scores)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_json_round_trip_to_the_bit(share):
    capability = fit_components(hide(simulated_scores(6, 20, 5, 2, 0.03), share, 0))
    again = Capability.from_dict(json.loads(json.dumps(capability.to_dict(), allow_nan=False)))
    for name in ("mean", "loadings", "explained", "variances", "covariance", "score_covariance"):
        np.testing.assert_array_equal(getattr(again, name), getattr(capability, name))
    pd.testing.assert_frame_equal(again.scores, capability.scores, check_exact=True)
    assert again.noise_variance == capability.noise_variance
    assert again.notes == capability.notes


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    backbones=st.integers(2, 12),
    benchmarks=st.integers(1, 8),
    share=st.floats(0, 0.7),
)
def test_any_table_gives_finite_components_or_a_reason(seed, backbones, benchmarks, share):
    scores = hide(simulated_scores(seed, backbones, benchmarks, 1, 0.05), share, seed)
    try:
        capability = fit_components(scores)
    except InputError as error:
        assert "measured for" in str(error) or "constant" in str(error)
        return
    assert np.isfinite(capability.scores.to_numpy()).all()
    assert np.linalg.eigvalsh(capability.covariance).min() > -1e-12
    np.testing.assert_allclose(
        capability.loadings.T @ capability.loadings, np.eye(capability.loadings.shape[1]), atol=1e-10
    )
    # Nobody is placed further out than the scores themselves can reach.
    assert np.abs(capability.scores.to_numpy()).max() < 3 * np.sqrt(benchmarks)


def test_mistakes_are_named():
    scores = simulated_scores(7, 10, 4, 2, 0.03)
    study = study_of(scores)
    with pytest.raises(RequestError, match="allow 1 to 4"):
        fit_capability(study, components=5)
    with pytest.raises(NotFoundError, match="nearest: m00"):
        fit_capability(study, exclude=["m00x"])
    with pytest.raises(RequestError, match="population"):
        fit_capability(study, population="some")  # type: ignore[arg-type]
    with pytest.raises(RequestError, match=r"0\.95"):
        fit_capability(study, variance=1.5)
    with pytest.raises(InputError, match="constant"):
        fit_components(scores.assign(b01=0.3))
    with pytest.raises(InputError, match="'b01' is measured for 0"):
        fit_components(scores.assign(b01=np.nan))
    with pytest.raises(InputError, match="at least 2"):
        fit_components(scores.iloc[:1])
    with pytest.raises(NotFoundError, match="nearest: b01"):
        fit_components(scores).project(scores.rename(columns={"b01": "b1"}))
    with pytest.raises(InputError, match=r"m000, b00: 61\.2"):
        fit_components(scores).project(scores.iloc[:1].assign(b00=61.2))
