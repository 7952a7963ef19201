"""Scores of predictive distributions against what was observed: pure functions of arrays.

Draws and log densities have one row an observed value, one column a posterior draw: shape (row, sample).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp
from scipy.stats import norm

__all__ = [
    "JointDensity",
    "clustered_share",
    "covered",
    "crps",
    "crps_normal",
    "distance_beyond",
    "equal_tails",
    "joint_log_density",
    "log_density",
    "paired_difference",
]


def crps(draws: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Continuous ranked probability score of each observed value under its draws; smaller is better.

    Parameters
    ----------
    draws : ndarray, (row, sample)
    observed : ndarray, (row,)

    Returns
    -------
    ndarray, (row,)
        In the unit of the observed values; the absolute error when all draws agree.

    Notes
    -----
    E|X − y| − ½·E|X − X'| with both expectations over the draws (Gneiting and Raftery 2007, eq. 21); the
    second is read off the sorted draws.

    Examples
    --------
    >>> float(crps(np.array([[0.5, 0.5, 0.5]]), np.array([0.6]))[0].round(12))
    0.1
    """
    ordered = np.sort(draws, axis=1)
    n = ordered.shape[1]
    spread = ordered @ (2 * np.arange(1, n + 1) - n - 1) / n**2
    return np.abs(ordered - observed[:, None]).mean(axis=1) - spread


def crps_normal(mean: np.ndarray, sd: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Continuous ranked probability score of Normal predictions, in closed form.

    Parameters
    ----------
    mean, sd, observed : ndarray, (row,)

    Returns
    -------
    ndarray, (row,)

    Notes
    -----
    sd·(z·(2Φ(z) − 1) + 2φ(z) − 1/√π), z = (y − mean)/sd (Gneiting and Raftery 2007, eq. 5).

    Examples
    --------
    >>> round(float(crps_normal(np.array(0.0), np.array(1.0), np.array(0.0))), 4)
    0.2337
    """
    z = (observed - mean) / sd
    return sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi))


def log_density(log_densities: np.ndarray) -> np.ndarray:
    """Log predictive density of each observed value: the log of its mean density over the draws.

    Parameters
    ----------
    log_densities : ndarray, (row, sample)

    Returns
    -------
    ndarray, (row,)
        Their sum is the pointwise elpd.

    Examples
    --------
    >>> log_density(np.log([[0.2, 0.4]])).round(6)
    array([-1.203973])
    """
    return logsumexp(log_densities, axis=1) - np.log(log_densities.shape[1])


class JointDensity(NamedTuple):
    """Log joint predictive density of several rows, and how many draws stand behind it.

    Parameters
    ----------
    value : float
    effective_draws : float
        (Σ density)² / Σ density² over the draws; near 1 a single draw decides and the value is too low.
    """

    value: float
    effective_draws: float


def joint_log_density(log_densities: np.ndarray) -> JointDensity:
    """Log joint predictive density of all rows together, whose parameters are shared in each draw.

    Parameters
    ----------
    log_densities : ndarray, (row, sample)

    Returns
    -------
    JointDensity

    Notes
    -----
    Log of the mean over draws of the product over rows. Rows of one held-out family depend on each other
    through what the family has in common, so this is the score of the whole prediction; the pointwise sum
    treats every row as the only one.

    Examples
    --------
    >>> joint = joint_log_density(np.log([[0.2, 0.4], [0.5, 0.25]]))
    >>> round(float(np.exp(joint.value)), 6), round(joint.effective_draws, 6)
    (0.1, 2.0)
    """
    total = log_densities.sum(axis=0)
    value = logsumexp(total) - np.log(len(total))
    effective = np.exp(2 * logsumexp(total) - logsumexp(2 * total))
    return JointDensity(float(value), float(effective))


def equal_tails(draws: np.ndarray, prob: float) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bound of the equal-tailed interval of each row.

    Parameters
    ----------
    draws : ndarray, (row, sample)
    prob : float

    Returns
    -------
    lower, upper : ndarray, (row,)
    """
    lower, upper = np.quantile(draws, [(1 - prob) / 2, (1 + prob) / 2], axis=1)
    return lower, upper


def covered(lower: np.ndarray, upper: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Whether each observed value lies in its interval, bounds included."""
    return (lower <= observed) & (observed <= upper)


def distance_beyond(values: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """How far values lie beyond the range of those seen, in standard deviations of those seen.

    Parameters
    ----------
    values : ndarray, (row,)
    seen : ndarray, (seen,)
        What the fit has seen; NaN are passed over.

    Returns
    -------
    ndarray, (row,)
        0 inside the range; NaN where nothing was seen, infinite where all seen values are equal.

    Examples
    --------
    >>> distance_beyond(np.array([0.5, 2.0, -1.0]), np.array([0.0, 1.0])).tolist()
    [0.0, 2.0, 2.0]
    """
    seen = seen[np.isfinite(seen)]
    if not len(seen):
        return np.full(len(values), np.nan)
    beyond = np.maximum(np.maximum(values - seen.max(), seen.min() - values), 0.0)
    spread = seen.std()
    if spread == 0:
        return np.where(beyond > 0, np.inf, beyond)
    return beyond / spread


def clustered_share(hits: np.ndarray, cluster: np.ndarray) -> tuple[float, float]:
    """Share of hits, and its standard error when rows of one cluster are not independent.

    Parameters
    ----------
    hits : ndarray of bool, (row,)
    cluster : ndarray, (row,)
        Label of each row's cluster, such as its study.

    Returns
    -------
    share, standard_error : float

    Notes
    -----
    Ratio estimator over G clusters: se² = G/(G − 1)·Σ_g (hits_g − share·rows_g)² / rows² (Cochran 1977,
    eq. 6.13). With one row a cluster it is the binomial error with G − 1 in place of G. NaN for one cluster.

    Examples
    --------
    >>> share, error = clustered_share(np.array([1, 1, 0, 0]), np.array([0, 0, 1, 1]))
    >>> share, error
    (0.5, 0.5)
    """
    _, position = np.unique(cluster, return_inverse=True)
    rows = np.bincount(position)
    share = float(np.mean(hits))
    excess = np.bincount(position, weights=np.asarray(hits, float)) - share * rows
    G = len(rows)
    if G < 2:
        return share, float("nan")
    return share, float(np.sqrt(G / (G - 1) * np.sum(excess**2)) / rows.sum())


def paired_difference(a: np.ndarray, b: np.ndarray, cluster: np.ndarray) -> tuple[float, float]:
    """Mean difference a − b of paired scores, and its standard error over clusters.

    Parameters
    ----------
    a, b : ndarray, (row,)
        Scores of the same rows.
    cluster : ndarray, (row,)

    Returns
    -------
    difference, standard_error : float

    Notes
    -----
    The ratio estimator of `clustered_share`.
    """
    return clustered_share(np.asarray(a, float) - np.asarray(b, float), cluster)
