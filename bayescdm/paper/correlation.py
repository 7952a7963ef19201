"""Text scores against multimodal accuracy: rank correlation and line, with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bayescdm.compare.tables import single_interval
from bayescdm.datasets import paper_table
from bayescdm.errors import RequestError
from bayescdm.intervals import check_probability
from bayescdm.seeds import generator
from bayescdm.study import Study

__all__ = ["score_pairs", "text_against_multimodal", "weighted_spearman"]


def text_against_multimodal(
    study: Study, *, recipe: str | None = None, prob: float = 0.9, draws: int = 4000, seed: int = 0
) -> pd.DataFrame:
    """Correlate the mean text score of language models with the accuracy of VLMs built on them.

    Parameters
    ----------
    study : Study
    recipe : str, optional
        Only runs of this recipe; by default all, like the paper's Figure 6, whose VLMs have recipes of their
        own.
    prob : float
        Probability of the equal-tailed intervals.
    draws : int
        Of the Bayesian bootstrap.
    seed : int

    Returns
    -------
    DataFrame, one row a quantity
        ``quantity`` (``spearman``, ``slope`` in points per point, ``intercept`` in fractions), ``value``
        (every backbone with the same weight, shared by its pairs), ``unweighted`` (every pair with the same
        weight, as the paper has it), ``mean``, interval, ``p_positive``, ``published`` (Figure 6),
        ``backbones``, ``vlms``.

    Raises
    ------
    RequestError
        Fewer than four backbones.

    Notes
    -----
    One pair a backbone and recipe: its run of largest volume, and the mean of its text scores, unmeasured
    ones filled by what the backbone scores on the others relative to all. The posterior is Rubin's (1981)
    Bayesian bootstrap: Dirichlet weights on backbones, since VLMs of one backbone share its text scores.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> table = text_against_multimodal(cdm.simulate(seed=0), draws=500).set_index("quantity")
    >>> bool(table.at["spearman", "posterior_90_lower"] > 0.5)
    True
    """
    check_probability(prob)
    pairs = score_pairs(study, recipe=recipe)
    x, y = pairs["text_score"].to_numpy(), pairs["accuracy"].to_numpy()
    codes, backbones = pd.factorize(pairs["backbone"])
    if len(backbones) < 4:
        raise RequestError(
            f"text scores and accuracy of {len(backbones)} backbones: four at least are needed"
        )
    rng = generator(seed)
    shares = rng.dirichlet(np.ones(len(backbones)), draws)
    weights = shares[:, codes] / np.bincount(codes)[codes]
    sample = {
        "spearman": np.array([weighted_spearman(x, y, w) for w in weights]),
        **_lines(x, y, weights),
    }
    even = 1 / (len(backbones) * np.bincount(codes)[codes])
    values, plain = _figures(x, y, even), _figures(x, y, np.full(len(pairs), 1 / len(pairs)))
    figures = paper_table("published_figures").query("analysis == 'text-against-multimodal'")
    published = figures.set_index("quantity")["value"].astype(float)
    # The paper prints the intercept in points.
    published["intercept"] /= 100
    rows: list[dict[str, Any]] = []
    for quantity, found in sample.items():
        rows.append(
            {
                "quantity": quantity,
                "value": values[quantity],
                "unweighted": plain[quantity],
                "mean": float(found.mean()),
                **single_interval(found, "posterior", prob),
                "p_positive": float((found > 0).mean()),
                "published": float(published[quantity]),
                "backbones": len(backbones),
                "vlms": len(pairs),
            }
        )
    table = pd.DataFrame(rows)
    facts: dict[str, Any] = {"study": study.name, "simulated": int(study.simulated), "converged": 1}
    table.attrs = {**facts, "kind": "posterior", "prob": prob}
    return table


def score_pairs(study: Study, *, recipe: str | None = None) -> pd.DataFrame:
    """Pair each backbone's mean text score with the accuracy of its largest run under each recipe.

    Parameters
    ----------
    study : Study
    recipe : str, optional

    Returns
    -------
    DataFrame, one row a backbone and recipe
        ``backbone``, ``family``, ``variant``, ``recipe``, ``volume``, ``text_score`` and ``accuracy``
        (fractions).

    Raises
    ------
    RequestError
        The study has no run of that recipe on a scored backbone.
    """
    runs = study.runs[study.runs["backbone"].isin(study.scored)]
    if recipe is not None:
        runs = runs[runs["recipe"] == recipe]
    if runs.empty:
        raise RequestError(f"study '{study.name}' has no run on a scored backbone to correlate")
    runs = runs.sort_values("volume", kind="stable", na_position="first")
    runs = runs.drop_duplicates(["backbone", "recipe"], keep="last").sort_index(kind="stable")
    scores = study.text_scores.loc[study.scored]
    level = scores.mean()
    mean = level.mean() + (scores - level).mean(axis=1)
    labels = study.backbones.loc[runs["backbone"]]
    return pd.DataFrame(
        {
            "backbone": runs["backbone"].to_numpy(),
            "family": labels["family"].to_numpy(),
            "variant": labels["variant"].to_numpy(),
            "recipe": runs["recipe"].to_numpy(),
            "volume": runs["volume"].to_numpy(float),
            "text_score": mean.loc[runs["backbone"]].to_numpy(float),
            "accuracy": runs["accuracy"].to_numpy(float),
        }
    )


def weighted_spearman(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> float:
    """Rank correlation of weighted pairs: Pearson's of weighted mid-ranks.

    Parameters
    ----------
    x, y, weights : ndarray, (pair,)

    Returns
    -------
    float
        With equal weights, Spearman's ρ; NaN where one side does not vary.

    Examples
    --------
    >>> x = np.array([1.0, 2.0, 3.0, 4.0])
    >>> round(weighted_spearman(x, x**3, np.full(4, 0.25)), 12)
    1.0
    """
    ranks = [_weighted_ranks(values, weights) for values in (x, y)]
    centred = [rank - np.average(rank, weights=weights) for rank in ranks]
    (xx, xy), (_, yy) = [[float((weights * a * b).sum()) for b in centred] for a in centred]
    return xy / np.sqrt(xx * yy) if xx > 0 and yy > 0 else float("nan")


def _figures(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """Rank correlation and line of weighted pairs."""
    line = {name: float(value[0]) for name, value in _lines(x, y, weights[None, :]).items()}
    return {"spearman": float(weighted_spearman(x, y, weights)), **line}


def _weighted_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weight below each value plus half of the weight at it."""
    _, position = np.unique(values, return_inverse=True)
    at = np.bincount(position, weights)
    return (np.cumsum(at) - at / 2)[position]


def _lines(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Weighted least-squares lines, (draw,)."""
    weights = weights / weights.sum(1, keepdims=True)
    mx, my = weights @ x, weights @ y
    slope = (weights @ (x * y) - mx * my) / (weights @ x**2 - mx**2)
    return {"slope": slope, "intercept": my - slope * mx}
