"""Published points of language-model loss and of contrastive zero-shot accuracy."""

from __future__ import annotations

import pandas as pd

from bayescdm.datasets.tables import read_sources, read_table

__all__ = ["load_chinchilla_points", "load_openclip"]


def load_chinchilla_points(*, drop_highest: int = 5) -> pd.DataFrame:
    """Load the loss points read off Figure 4 of the Chinchilla paper.

    Parameters
    ----------
    drop_highest : int
        How many points of highest loss to leave out. The five highest are outliers that move every fit a
        good deal; without them 240 of 245 points remain.

    Returns
    -------
    DataFrame, one row a training run
        ``params`` and ``tokens`` (absolute counts), ``flops``, ``loss`` (nats a token), ``source``.

    Notes
    -----
    Extracted by Epoch AI from Figure 4 of arXiv:2203.15556. The loss was read from the colour of a dot, so
    it is rounded by the colour scale. Tokens are not in the figure: they follow from FLOPs = 6·N·D.

    Examples
    --------
    >>> points = load_chinchilla_points()
    >>> len(points), round(float(points["loss"].max()), 3)
    (240, 3.406)
    """
    points = _with_source("chinchilla")
    points.insert(1, "tokens", points["flops"] / (6 * points["params"]))
    return points.drop(points["loss"].nlargest(drop_highest).index).reset_index(drop=True)


def load_openclip() -> pd.DataFrame:
    """Load ImageNet zero-shot accuracy of contrastive models trained at many scales.

    Returns
    -------
    DataFrame, one row a model
        ``model``, ``dataset`` (training set), ``architecture``, ``params`` (of both towers, absolute count),
        ``samples`` (image–text pairs seen), ``compute_gmacs`` (giga multiply–accumulates of the forward
        passes over all samples: not training FLOPs), ``accuracy`` and ``error`` (fractions), ``source``.

    Notes
    -----
    Final models of the LAION scaling study (arXiv:2212.07143) and three OpenAI models (dataset
    ``CLIP-WIT``). The training sets lie on different lines; LAION-80M flattens because its samples are
    seen many times.

    Examples
    --------
    >>> load_openclip().groupby("dataset").size().to_dict()
    {'CLIP-WIT': 3, 'LAION-2B': 11, 'LAION-400M': 9, 'LAION-80M': 9}
    """
    models = _with_source("openclip")
    models.insert(models.columns.get_loc("accuracy") + 1, "error", 1 - models["accuracy"])
    return models


def _with_source(name: str) -> pd.DataFrame:
    """Read a table of points with full sources in place of their ids."""
    table = read_table("loss", name)
    table["source"] = table["source"].map(read_sources("loss")["source"])
    return table
