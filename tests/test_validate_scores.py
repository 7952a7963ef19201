"""Scores agree with closed forms."""

import numpy as np
import pytest
from scipy import stats

from bayescdm.validate import scores

RNG = np.random.default_rng(0)


def test_crps_of_normal_draws_approaches_the_closed_form():
    mean, sd, observed = np.array([0.0, 1.0, -2.0]), np.array([1.0, 0.5, 2.0]), np.array([0.3, 2.0, -2.5])
    draws = mean[:, None] + sd[:, None] * RNG.standard_normal((3, 200_000))
    assert np.allclose(scores.crps(draws, observed), scores.crps_normal(mean, sd, observed), atol=4e-3)


def test_crps_equals_its_definition_as_mean_differences():
    draws, observed = RNG.normal(size=(4, 57)), RNG.normal(size=4)
    pairs = np.abs(draws[:, :, None] - draws[:, None, :]).mean(axis=(1, 2))
    expected = np.abs(draws - observed[:, None]).mean(axis=1) - pairs / 2
    assert np.allclose(scores.crps(draws, observed), expected, rtol=1e-12)


def test_crps_of_a_uniform_is_the_integral_of_the_squared_cdf_error():
    grid = np.linspace(0, 1, 200_001)
    for y in (0.0, 0.3, 1.0):
        integral = np.mean((grid - (grid >= y)) ** 2)
        assert scores.crps(grid[None, :], np.array([y]))[0] == pytest.approx(integral, abs=1e-4)


def test_log_density_of_a_normal_mixture_over_means_is_the_wider_normal():
    means = RNG.normal(0, 0.5, 400_000)
    log_densities = stats.norm(means, 1.0).logpdf(np.array([[0.4], [1.5]]))
    expected = stats.norm(0, np.hypot(1.0, 0.5)).logpdf([0.4, 1.5])
    assert np.allclose(scores.log_density(log_densities), expected, atol=2e-3)


def test_joint_density_keeps_what_rows_share_and_the_pointwise_sum_does_not():
    """Rows with a common Normal offset: the joint is a multivariate Normal."""
    offset = RNG.normal(0, 1.0, 400_000)
    observed = np.array([1.0, 1.1, 0.9])
    log_densities = stats.norm(offset, 0.5).logpdf(observed[:, None])
    covariance = 0.25 * np.eye(3) + 1.0
    exact = stats.multivariate_normal(np.zeros(3), covariance).logpdf(observed)
    joint = scores.joint_log_density(log_densities)
    assert joint.value == pytest.approx(exact, abs=0.01)
    assert abs(scores.log_density(log_densities).sum() - exact) > 0.5
    assert 1 < joint.effective_draws < len(offset)


def test_one_draw_that_decides_leaves_one_effective_draw():
    log_densities = np.array([[0.0, -800.0, -900.0]])
    assert scores.joint_log_density(log_densities).effective_draws == pytest.approx(1.0)


def test_equal_tailed_intervals_cover_at_their_probability():
    draws = RNG.standard_t(5, (1, 100_000))
    observed = RNG.standard_t(5, 100_000)
    for prob in (0.5, 0.8, 0.95):
        lower, upper = scores.equal_tails(draws, prob)
        assert scores.covered(lower, upper, observed).mean() == pytest.approx(prob, abs=0.01)
    assert scores.covered(np.array([0.0]), np.array([1.0]), np.array([1.0])).all()


def test_distance_counts_standard_deviations_beyond_the_range_seen():
    seen = np.array([0.0, 1.0, 2.0, np.nan])
    sd = np.std([0.0, 1.0, 2.0])
    got = scores.distance_beyond(np.array([1.5, 2.0, 3.0, -2.0]), seen)
    assert np.allclose(got, [0, 0, 1 / sd, 2 / sd])
    assert np.isnan(scores.distance_beyond(np.array([1.0]), np.array([np.nan]))).all()
    assert scores.distance_beyond(np.array([1.0, 2.0]), np.array([1.0])).tolist() == [0.0, np.inf]


def test_clustered_error_is_binomial_for_single_rows_and_larger_for_clusters():
    hits = RNG.uniform(size=500) < 0.8
    share, error = scores.clustered_share(hits, np.arange(500))
    assert error == pytest.approx(np.sqrt(share * (1 - share) / 499), rel=1e-12)
    copied = np.repeat(hits[:100], 5)
    _, of_clusters = scores.clustered_share(copied, np.repeat(np.arange(100), 5))
    assert of_clusters == pytest.approx(scores.clustered_share(hits[:100], np.arange(100))[1], rel=1e-12)
    assert np.isnan(scores.clustered_share(hits, np.zeros(500))[1])


def test_clustered_error_is_the_spread_of_repeated_shares():
    shares, errors = [], []
    for _ in range(400):
        p = RNG.beta(8, 2, 60)
        size = RNG.integers(1, 8, 60)
        hits = RNG.uniform(size=size.sum()) < np.repeat(p, size)
        share, error = scores.clustered_share(hits, np.repeat(np.arange(60), size))
        shares.append(share)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(shares), rel=0.15)


def test_paired_differences_are_sharper_than_unpaired_ones():
    easy = RNG.normal(0, 1, 300)
    difference, error = scores.paired_difference(easy + 0.1, easy, np.arange(300))
    assert difference == pytest.approx(0.1)
    assert error < 1e-12
