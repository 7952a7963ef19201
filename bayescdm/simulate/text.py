"""Simulated text scores: a few orthogonal components plus noise, from which capability is read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bayescdm.errors import RequestError
from bayescdm.simulate.labels import labelled

__all__ = ["draw_coefficients", "draw_direction", "draw_text_scores", "unit"]

#: Spreads of successive components relative to the first; further ones shrink by a factor of 0.7.
COMPONENT_DECAY = (1.0, 0.4, 0.27)
#: Text scores keep this distance from 0 and 1 before noise.
SCORE_MARGIN = 0.03
#: By how much the largest loading of a component exceeds the largest of the other sign, where possible.
SIGN_MARGIN = 1.25
#: Draws of loadings tried for that, and for scores between 0 and 1.
MAX_TRIES = 300


def draw_text_scores(
    backbones: pd.Index,
    S: np.ndarray,
    w: np.ndarray,
    coefficients: pd.Series,
    noise: float,
    rng: np.random.Generator,
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Draw complete text scores, and the components, direction and capability of these very scores.

    Parameters
    ----------
    backbones : Index
    S : array, (backbone,)
        Capability before noise.
    w : array, (component,)
        Unit direction.
    coefficients : Series, (benchmark,)
        λ up to scale.
    noise : float
        Standard deviation, a fraction.
    rng : Generator

    Returns
    -------
    text_scores : DataFrame, (backbone, benchmark)
    truth : dict
        ``w``, ``mean``, ``loadings``, ``lambda``, ``components``, ``S``; signs as in `bayescdm.capability`:
        PC1 towards higher scores, the largest loading of each other component positive.
    """
    K, T = len(w), len(coefficients)
    if K > T:
        raise RequestError(f"{K} components need at least as many text benchmarks, not {T}")
    if len(S) < K + 2:
        raise RequestError(f"{K} components need at least {K + 2} backbones, not {len(S)}")
    found = None
    for _ in range(MAX_TRIES):
        loadings = _loadings(w, coefficients, rng)
        signal = _components(S, w, rng) @ loadings
        if (np.ptp(signal, axis=0) <= 1 - 2 * SCORE_MARGIN).all():
            found = loadings, signal
            if _has_clear_signs(loadings):
                break
    if found is None:
        raise RequestError(
            "the spread of S under this w needs text scores outside 0 to 1; take w nearer to PC1"
        )
    loadings, signal = found
    text_scores = pd.DataFrame(
        _fractions(signal, noise, rng), index=backbones, columns=coefficients.index.astype(str)
    )
    return text_scores, _truth(text_scores, loadings, w)


def draw_direction(n_components: int, rng: np.random.Generator) -> np.ndarray:
    """Uniform direction with w₁ > 0.3: with less, the scores that a given spread of S needs leave [0, 1]."""
    while (w := unit(rng.standard_normal(n_components)))[0] <= 0.3:
        pass
    return w


def draw_coefficients(n_benchmarks: int, rng: np.random.Generator) -> pd.Series:
    """Transfer coefficients up to scale: most positive, some negative."""
    names = [f"text-{i:02d}" for i in range(1, n_benchmarks + 1)]
    return pd.Series(0.6 + rng.standard_normal(n_benchmarks), index=names)


def unit(vector: np.ndarray) -> np.ndarray:
    """Vector of length 1 in the same direction."""
    length = np.linalg.norm(vector)
    if not 0 < length < np.inf:
        raise RequestError("a direction needs a finite component other than 0")
    return vector / length


def _orthonormal(first: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Orthonormal rows: the unit vector `first`, then `others` as far as they are independent of it."""
    basis, triangle = np.linalg.qr(np.vstack([first, others]).T)
    return (basis * np.sign(np.diag(triangle))).T


def _components(S: np.ndarray, w: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Uncorrelated, centred component scores Z of decreasing spread with Z·w = S − mean(S).

    With S = ‖S‖·u and orthonormal columns E = [u, …] of the centred space, Z = E·Q·diag(n) with Q
    orthogonal: its first row is w_k·n_k/‖S‖, of length 1, which fixes the scale of the spreads n.
    """
    K = len(w)
    S = S - S.mean()
    random = rng.standard_normal((K - 1, len(S)))
    E = _orthonormal(unit(S), random - random.mean(axis=1, keepdims=True))
    spread = np.array([*COMPONENT_DECAY, *(COMPONENT_DECAY[-1] * 0.7**k for k in range(1, K))][:K])
    spread *= np.linalg.norm(S) / np.linalg.norm(w * spread)
    Q = _orthonormal(w * spread / np.linalg.norm(S), np.eye(K)[1:] if w[0] else np.eye(K)[:-1])
    return E.T @ Q * spread


def _loadings(w: np.ndarray, coefficients: pd.Series, rng: np.random.Generator) -> np.ndarray:
    """Orthonormal loadings, shape (component, benchmark), with λ = w·loadings along `coefficients`.

    The first component is as near to an even mean of all benchmarks as λ allows, the others are random.
    """
    K, T = len(w), len(coefficients)
    others = np.vstack([np.ones(T), rng.standard_normal((K, T))])[: K - 1]
    return _orthonormal(w, np.eye(K)[: K - 1]).T @ _orthonormal(unit(coefficients.to_numpy(float)), others)


def _has_clear_signs(loadings: np.ndarray) -> bool:
    """Whether noise leaves the sign of every component alone, which its largest loading decides."""
    positive, negative = loadings[1:].max(axis=1), -loadings[1:].min(axis=1)
    return bool((np.maximum(positive, negative) >= SIGN_MARGIN * np.minimum(positive, negative)).all())


def _fractions(signal: np.ndarray, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Fractions: a mean for each benchmark that leaves room for its spread, components, and noise."""
    low = SCORE_MARGIN - signal.min(axis=0)
    high = 1 - SCORE_MARGIN - signal.max(axis=0)
    mean = low + (high - low) * rng.uniform(0.2, 0.8, signal.shape[1])
    return np.clip(mean + signal + noise * rng.standard_normal(signal.shape), 0, 1)


def _truth(text_scores: pd.DataFrame, loadings: np.ndarray, w: np.ndarray) -> dict[str, Any]:
    """Components, direction and capability of the measured scores, signs as in `bayescdm.capability`."""
    sign = np.where(loadings[np.arange(len(w)), np.abs(loadings).argmax(axis=1)] < 0, -1, 1)
    sign[0] = -1 if loadings[0].sum() < 0 else 1
    loadings, w = sign[:, None] * loadings, sign * w
    mean = text_scores.mean()
    Z = (text_scores - mean).to_numpy() @ loadings.T
    return {
        "w": w.tolist(),
        "mean": labelled(text_scores.columns, mean.to_numpy()),
        "loadings": {str(name): column.tolist() for name, column in zip(text_scores.columns, loadings.T)},
        "lambda": labelled(text_scores.columns, w @ loadings),
        "components": {str(name): row.tolist() for name, row in zip(text_scores.index, Z)},
        "S": labelled(text_scores.index, Z @ w),
    }
