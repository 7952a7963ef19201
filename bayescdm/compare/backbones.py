"""Which backbone is best, and how sure: ranks, probabilities, regret and differences, draw by draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr
from scipy.stats import rankdata

from bayescdm.compare.tables import greater, interval, summarised
from bayescdm.errors import RequestError, unknown_name
from bayescdm.intervals import PredictionKind, check_probability
from bayescdm.predict import Candidates, check_once, predict_draws

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["difference", "pairwise_probability", "rank_backbones", "rank_draws"]

#: Largest number of draws × backbones that are ranked, unless asked otherwise.
RANKED_CELLS = 20_000_000
FEWEST_DRAWS = 1_000


def rank_backbones(
    fit: Fit,
    candidates: Candidates = None,
    *,
    volume: float,
    recipe: str | None = None,
    kind: PredictionKind = "backbone",
    prob: float = 0.9,
    seed: int = 0,
    draws: int | None = None,
) -> pd.DataFrame:
    """Rank backbones by expected accuracy at one volume under one recipe.

    Parameters
    ----------
    fit, candidates, recipe, seed
        As for `bayescdm.predict.predict_draws`.
    volume : float
        In the study's unit.
    kind : {"backbone", "law", "run"}
        What is ranked. The default is the accuracy that runs of a backbone average to: what a choice
        depends on is a property of the backbone, its own intercept included, and not the residual of one
        run, which would strike whichever is chosen. ``run`` answers which single run will measure best.
    prob : float
        Probability of the equal-tailed intervals.
    draws : int, optional
        Use at most this many posterior draws; by default as many as 20 million draws × backbones allow.

    Returns
    -------
    DataFrame, one row a backbone, best first
        ``backbone``, ``family``, ``variant``, ``mode``; ``mean`` and its interval (``backbone_90_lower``,
        ``backbone_90_upper``); ``p_best`` and ``p_top_3``, ties shared; ``expected_rank`` (1 is best),
        with ``rank_backbone_90_lower`` and ``…_upper``; ``expected_regret``, the mean accuracy lost against
        the best of each draw; ``difference_mean`` from the first row, with ``difference_backbone_90_lower``
        and ``…_upper``; ``extrapolation`` and ``beyond_recipe`` in words. Means and regret never include
        the residual of a run.

    Raises
    ------
    NotFoundError, RequestError, ModelError
        As for `bayescdm.predict.predict_draws`; a backbone is asked for more than once.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("open-vlm")  # doctest: +SKIP
    >>> cdm.rank_backbones(fit, volume=1.2e6).iloc[0]["p_best"]  # doctest: +SKIP
    0.45
    """
    check_probability(prob)
    if draws is None:
        draws = most_draws(_count(fit, candidates))
    asked: dict[str, Any] = {"volumes": [volume], "recipe": recipe, "seed": seed, "draws": draws}
    array = predict_draws(fit, candidates, kind=kind, **asked).isel(volume=0)
    expected = array
    if kind == "run":
        # The Student-t residual may have no mean; it is symmetric, and nobody can choose by it.
        expected = predict_draws(fit, candidates, kind="backbone", **asked).isel(volume=0)
    table = rank_draws(array, prob=prob, expected=expected)
    table.attrs = {**fit.facts(), **array.attrs, "volume": float(volume), "prob": prob}
    return table


def most_draws(backbones: int) -> int:
    """Number of posterior draws that so many backbones are ranked with at most."""
    return max(FEWEST_DRAWS, RANKED_CELLS // max(1, backbones))


def rank_draws(
    accuracy: xr.DataArray, *, prob: float = 0.9, expected: xr.DataArray | None = None
) -> pd.DataFrame:
    """Rank backbones by draws of their accuracy, each at a volume of its own if need be.

    Parameters
    ----------
    accuracy : DataArray, (sample, backbone)
        With ``kind`` among its attributes; coordinates over backbone as those of
        `bayescdm.predict.predict_draws`.
    prob : float
        Probability of the equal-tailed intervals.
    expected : DataArray, (sample, backbone), optional
        What means and regret are of, when `accuracy` holds residuals of runs.

    Returns
    -------
    DataFrame, one row a backbone, best first
        As `rank_backbones` returns it.

    Raises
    ------
    RequestError
        A backbone stands twice.
    """
    check_once(accuracy.indexes["backbone"])
    kind = accuracy.attrs["kind"]
    values = accuracy.to_numpy()
    means = values if expected is None else expected.to_numpy()
    best = int(means.mean(0).argmax())
    # A greater value has a smaller rank; where values tie, the first and the last rank that they share.
    first, last = (rankdata(-values, method=method, axis=1) for method in ("min", "max"))
    columns = {
        "mean": means.mean(0),
        **interval(values, kind, prob),
        "p_best": _share_of_top(first, last, 1),
        "p_top_3": _share_of_top(first, last, 3),
        "expected_rank": (first + last).mean(0) / 2,
        **interval((first + last) / 2, kind, prob, of="rank"),
        "expected_regret": (means.max(1, keepdims=True) - means).mean(0),
        "difference_mean": (means - means[:, [best]]).mean(0),
        **interval(values - values[:, [best]], kind, prob, of="difference"),
    }
    labels = {name: accuracy[name].to_numpy() for name in ("backbone", "family", "variant", "mode")}
    beyond = {name: accuracy[name].to_numpy() for name in ("extrapolation", "beyond_recipe")}
    table = pd.DataFrame({**labels, **columns, **beyond})
    return table.sort_values("mean", ascending=False, kind="stable", ignore_index=True)


def pairwise_probability(draws: xr.DataArray) -> pd.DataFrame:
    """Probability that the row's value exceeds the column's, draw by draw; ties count half.

    Parameters
    ----------
    draws : DataArray, (sample, label)
        Draws of one quantity for several labels, for instance one volume of
        `bayescdm.predict.predict_draws`, or ``family_draws(fit)["A"]``.

    Returns
    -------
    DataFrame, (label, label)
        ½ on the diagonal; a cell and its mirror image sum to 1.

    Raises
    ------
    RequestError
        The draws have another shape.

    Examples
    --------
    >>> draws = xr.DataArray([[1.0, 2.0], [1.0, 0.0], [1.0, 3.0]], dims=("sample", "family"),
    ...                      coords={"family": ["a", "b"]})
    >>> float(pairwise_probability(draws).loc["b", "a"].round(3))
    0.667
    """
    values, labels = _one_label(draws)
    above = np.empty((len(labels), len(labels)))
    # A label's draws side by side, each pair once: with hundreds of labels this is what a choice takes.
    by_label = np.ascontiguousarray(values.T)
    for row, own in enumerate(by_label):
        rest = by_label[row:]
        p = (np.count_nonzero(own > rest, axis=1) + np.count_nonzero(own >= rest, axis=1)) / (2 * len(own))
        above[row, row:], above[row:, row] = p, 1 - p
    return pd.DataFrame(above, index=labels, columns=labels)


def difference(draws: xr.DataArray, reference: str, *, prob: float = 0.9) -> pd.DataFrame:
    """Differences from a reference, paired by draw.

    Parameters
    ----------
    draws : DataArray, (sample, label)
        As for `pairwise_probability`.
    reference : str
        One of the labels.
    prob : float
        Probability of the equal-tailed interval.

    Returns
    -------
    DataFrame, (label, ...)
        ``mean``, ``sd``, an interval whose columns name kind and probability (``backbone_90_lower``, …;
        ``posterior`` for parameters), ``p_greater``, ties counted half.

    Raises
    ------
    NotFoundError
        The reference is not among the labels.
    RequestError
        The draws have another shape.

    Examples
    --------
    >>> draws = xr.DataArray([[1.0, 2.0], [1.0, 0.0], [1.0, 3.0]], dims=("sample", "family"),
    ...                      coords={"family": ["a", "b"]})
    >>> difference(draws, "a").loc["b", "mean"].round(3)
    np.float64(0.667)
    """
    values, labels = _one_label(draws)
    if reference not in labels:
        raise unknown_name(str(labels.name), reference, labels)
    margin = values - values[:, [labels.get_loc(reference)]]
    columns = {
        **summarised(margin, draws.attrs.get("kind", "posterior"), prob),
        "p_greater": greater(margin),
    }
    table = pd.DataFrame(columns, index=labels)
    table.attrs = {**draws.attrs, "reference": reference, "prob": prob}
    return table


def _count(fit: Fit, candidates: Candidates) -> int:
    if candidates is None:
        return len(fit.study.scored)
    return len(candidates[0]) if isinstance(candidates, tuple) else len(candidates)


def _share_of_top(first: np.ndarray, last: np.ndarray, k: int) -> np.ndarray:
    """Probability of a place among the top k, ties broken at random, (label,)."""
    return np.clip((k - (first - 1)) / (last - first + 1), 0, 1).mean(0)


def _one_label(draws: xr.DataArray) -> tuple[np.ndarray, pd.Index]:
    """Values (sample, label) and the labels; dimensions of one element are dropped."""
    if "sample" in draws.dims:
        draws = draws.squeeze(
            [d for d in draws.dims if d != "sample" and draws.sizes[d] == 1 and draws.ndim > 2]
        )
    if "sample" not in draws.dims or draws.ndim != 2:
        shape = ", ".join(map(str, draws.dims))
        raise RequestError(
            f"draws have dimensions ({shape}); select one cell of all but sample and one label"
        )
    draws = draws.transpose("sample", ...)
    dim: Any = draws.dims[1]
    labels = pd.Index(draws[dim].to_numpy().astype(str), name=dim, dtype=object)
    check_once(labels)
    return draws.to_numpy(), labels
