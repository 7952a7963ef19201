"""Whether ranks are uniform: simultaneous bands of their empirical distribution function.

Pure functions of arrays. A rank is the number of L posterior draws below the true value, 0 … L; when the
draws are right, ranks of repeated simulations are uniform.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.stats import binom

__all__ = ["ecdf_band", "uniformity_p_value"]

#: Sets of uniform ranks drawn to learn how far an ECDF strays by chance; the smallest p value is its inverse.
NULL_SETS = 50_000


def uniformity_p_value(ranks: np.ndarray, L: int) -> float:
    """Probability that uniform ranks stray at least as far from uniformity as these do.

    Parameters
    ----------
    ranks : ndarray of int, (simulation,)
        0 … L.
    L : int
        Number of posterior draws that each truth was ranked among.

    Returns
    -------
    float

    Notes
    -----
    The ECDF is compared at every rank with its binomial distribution; the smallest two-sided tail
    probability over all ranks is the statistic, and its own distribution under uniformity is simulated
    (Säilynoja, Bürkner and Vehtari 2022, sections 2.1 and 2.3).

    Examples
    --------
    >>> uniformity_p_value(np.arange(20), 19) > 0.9, uniformity_p_value(np.zeros(20, int), 19) < 0.001
    (True, True)
    """
    M = len(ranks)
    below = np.cumsum(np.bincount(ranks, minlength=L + 1))[:-1]
    statistic = float(_smallest_tails(below[None, :], M)[0])
    null = _null_tails(M, L)
    return float((1 + np.searchsorted(null, statistic * (1 + 1e-12), side="right")) / (1 + len(null)))


def ecdf_band(M: int, L: int, prob: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Band that holds the whole ECDF of M uniform ranks with a given probability.

    Parameters
    ----------
    M : int
        Number of simulations.
    L : int
    prob : float

    Returns
    -------
    points, lower, upper : ndarray, (L,)
        Fractions z = 1/(L + 1) … L/(L + 1), and the bounds of the share of ranks below z·(L + 1).

    Examples
    --------
    >>> z, lower, upper = ecdf_band(100, 9, 0.95)
    >>> bool((lower < z).all() and (z < upper).all())
    True
    """
    gamma = float(np.quantile(_null_tails(M, L), 1 - prob))
    z = np.arange(1, L + 1) / (L + 1)
    return z, binom.ppf(gamma / 2, M, z) / M, binom.ppf(1 - gamma / 2, M, z) / M


def _smallest_tails(below: np.ndarray, M: int) -> np.ndarray:
    """Smallest two-sided binomial tail of ECDF counts, (set,), from counts (set, rank)."""
    L = below.shape[1]
    z = np.arange(1, L + 1) / (L + 1)
    cdf = binom.cdf(np.arange(-1, M + 1)[:, None], M, z)
    rank = np.arange(L)
    at_most, at_least = cdf[below + 1, rank], 1 - cdf[below, rank]
    return np.minimum(1.0, 2 * np.minimum(at_most, at_least)).min(axis=1)


@lru_cache(maxsize=64)
def _null_tails(M: int, L: int) -> np.ndarray:
    """Sorted statistics of sets of M uniform ranks."""
    rng = np.random.default_rng(20220318)
    parts = []
    for _ in range(10):
        counts = rng.multinomial(M, np.full(L + 1, 1 / (L + 1)), size=NULL_SETS // 10)
        parts.append(_smallest_tails(np.cumsum(counts, axis=1)[:, :-1], M))
    return np.sort(np.concatenate(parts))
