"""Moments of a table of scores with gaps: probabilistic PCA at the rank that stands above the noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

#: Rounds of filling and re-estimating, and the relative change of the covariance that ends them.
MAX_ROUNDS = 2_000
TOLERANCE = 1e-9
#: Smallest eigenvalue of the score covariance, as a share of the mean variance, so that it stays invertible.
FLOOR = 1e-10


@dataclass(frozen=True)
class Estimate:
    """Moments of the scores, (benchmark,) and (benchmark, benchmark), and probabilistic PCA of them."""

    mean: np.ndarray
    directions: np.ndarray
    eigenvalues: np.ndarray
    rank: int
    noise_variance: float
    covariance: np.ndarray
    converged: bool


def estimate_moments(values: np.ndarray, most: int) -> Estimate:
    """Probabilistic PCA of the rank at which the next eigenvalue is no larger than noise makes it.

    Pure noise of variance σ² over n rows and T columns has eigenvalues up to σ²(1 + √(T/(n − 1)))²
    (Marchenko and Pastur 1967). A larger rank would fit noise and claim to know missing scores from it.
    """
    n, T = values.shape
    edge = (1 + np.sqrt(T / (n - 1))) ** 2
    covariance = np.diag(np.nanvar(values, axis=0, ddof=1))
    for rank in range(1, most + 1):
        found = _fill_and_refit(values, rank, covariance)
        if rank == T or found.eigenvalues[rank] <= edge * found.noise_variance:
            break
        covariance = found.covariance
    return found


def _fill_and_refit(values: np.ndarray, rank: int, covariance: np.ndarray) -> Estimate:
    """Alternate the expected moments of the unseen scores with probabilistic PCA of the filled table.

    This is expectation maximisation with only the unseen scores as latent variables, so that with none
    unseen its first round is PCA itself. The noise variance counts degrees of freedom (see
    `_noise_variance`), as in regularised iterative PCA (Josse and Husson 2012).
    """
    n = len(values)
    mean = np.nanmean(values, axis=0)
    observed_variance = float(np.nanvar(values, axis=0, ddof=1).mean())
    converged = False
    for _ in range(MAX_ROUNDS):
        filled = values.copy()
        unseen_moment = np.zeros_like(covariance)
        for rows, unseen, expected, conditional in conditionals(values, mean, covariance):
            filled[np.ix_(rows, unseen)] = expected
            unseen_moment[np.ix_(unseen, unseen)] += len(rows) * conditional
        mean = filled.mean(axis=0)
        eigenvalues, directions = _spectrum(filled - mean, unseen_moment)
        # Unseen cells carry the noise of the last round: capped, it cannot grow from round to round.
        noise = min(_noise_variance(eigenvalues, rank, n), observed_variance)
        previous = covariance
        covariance = _model_covariance(
            directions[:, :rank], eigenvalues[:rank], max(noise, FLOOR * observed_variance)
        )
        if np.abs(covariance - previous).max() <= TOLERANCE * np.abs(covariance).max():
            converged = True
            break
    return Estimate(mean, directions, eigenvalues, rank, noise, covariance, converged)


def _spectrum(centred: np.ndarray, unseen_moment: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (falling) and eigenvectors of the score covariance, denominator n − 1."""
    n, T = centred.shape
    if not unseen_moment.any():
        # The moment matrix would square the condition number: complete data take the singular values.
        _, singular, rows = np.linalg.svd(centred, full_matrices=n < T)
        eigenvalues = np.zeros(T)
        eigenvalues[: len(singular)] = singular**2 / (n - 1)
        return eigenvalues, rows.T
    eigenvalues, vectors = np.linalg.eigh((centred.T @ centred + unseen_moment) / (n - 1))
    return np.maximum(eigenvalues[::-1], 0), vectors[:, ::-1]


def conditionals(
    values: np.ndarray, mean: np.ndarray, covariance: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Per pattern of unseen scores: its rows, the unseen columns, their conditional mean and covariance."""
    patterns, which = np.unique(np.isnan(values), axis=0, return_inverse=True)
    for number, unseen in enumerate(patterns):
        if not unseen.any():
            continue
        rows = np.flatnonzero(which.reshape(-1) == number)
        seen = ~unseen
        gain = np.linalg.solve(covariance[np.ix_(seen, seen)], covariance[np.ix_(seen, unseen)])
        expected = mean[unseen] + (values[np.ix_(rows, np.flatnonzero(seen))] - mean[seen]) @ gain
        conditional = covariance[np.ix_(unseen, unseen)] - covariance[np.ix_(unseen, seen)] @ gain
        yield rows, np.flatnonzero(unseen), expected, (conditional + conditional.T) / 2


def _model_covariance(directions: np.ndarray, variances: np.ndarray, noise: float) -> np.ndarray:
    """Score covariance γΛγᵀ + σ²(I − γγᵀ) of probabilistic PCA."""
    signal = np.maximum(variances - noise, 0)
    return (directions * signal) @ directions.T + noise * np.eye(len(directions))


def _noise_variance(eigenvalues: np.ndarray, K: int, n: int) -> float:
    """Variance outside K components, per degree of freedom left.

    The maximum-likelihood value Σ discarded / (T − K) is too small for few backbones, because the
    components were chosen to leave little: n − 1 rows and T columns minus K fitted directions on each side
    leave (n − 1 − K)(T − K) degrees of freedom.
    """
    T = len(eigenvalues)
    if K >= T:
        return 0.0
    discarded = float(eigenvalues[K:].sum())
    if n - 1 <= K:
        return discarded / (T - K)
    return discarded * (n - 1) / ((n - 1 - K) * (T - K))
