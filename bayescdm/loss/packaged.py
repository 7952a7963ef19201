"""The packaged loss points as loss studies, with what is known of them."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from bayescdm.datasets import load_chinchilla_points, load_openclip
from bayescdm.errors import Note
from bayescdm.loss.scope import CHINCHILLA_SCOPE, Scope
from bayescdm.loss.study import LossStudy

__all__ = ["chinchilla_points", "openclip_points"]


def chinchilla_points(*, drop_highest: int = 5) -> LossStudy:
    """Loss points of the Chinchilla study as published, read off a figure.

    Parameters
    ----------
    drop_highest : int
        Points of highest loss left out as outliers.

    Returns
    -------
    LossStudy
        240 runs of one point each by default; the scope has the range of these points.

    Examples
    --------
    >>> len(chinchilla_points().points)
    240
    """
    points = load_chinchilla_points(drop_highest=drop_highest)
    # The study's own range is wider than what can be read off its figure: a fit has seen these points only.
    ranges = {
        name: (float(points[column].min()), float(points[column].max()))
        for name, column in (("params", "params"), ("volume", "tokens"))
    }
    labels = pd.Index([f"point {i + 1}" for i in range(len(points))], name="run")
    read_off = "losses were read from the colour of a dot in a figure: they are rounded by its colour scale"
    notes = [Note("read-off-a-figure", read_off)]
    if drop_highest:
        notes.append(Note("outliers-dropped", f"the {drop_highest} points of highest loss were left out"))
    return LossStudy(
        name="Chinchilla points",
        runs=pd.DataFrame({"family": "Chinchilla", "params": points["params"].to_numpy()}, index=labels),
        points=pd.DataFrame({"run": labels, "volume": points["tokens"], "loss": points["loss"]}),
        scope=replace(CHINCHILLA_SCOPE, ranges=ranges),
        notes=tuple(notes),
    )


def openclip_points() -> LossStudy:
    """ImageNet zero-shot error of contrastive models, a family a training set.

    Returns
    -------
    LossStudy
        32 models; ``runs["compute"]`` in giga multiply–accumulates of the forward passes. The volume is
        samples seen, not tokens.

    Examples
    --------
    >>> openclip_points().families
    ['CLIP-WIT', 'LAION-2B', 'LAION-400M', 'LAION-80M']
    """
    models = load_openclip()
    labels = pd.Index(models["model"], name="run")
    runs = models[["dataset", "params", "compute_gmacs"]].set_axis(labels)
    ranges = {
        name: (float(models[column].min()), float(models[column].max()))
        for name, column in (("compute", "compute_gmacs"), ("params", "params"), ("volume", "samples"))
    }
    tuning = "learning rate and batch size were not tuned alike in these models"
    repeats = "LAION-80M flattens with compute because its samples are seen many times"
    few = "CLIP-WIT has three models, all of one data volume: they do not determine its exponent and floor"
    return LossStudy(
        name="OpenCLIP zero-shot error",
        runs=runs.rename(columns={"dataset": "family", "compute_gmacs": "compute"}),
        points=pd.DataFrame({"run": labels, "volume": models["samples"], "loss": models["error"]}),
        scope=Scope(
            metric="ImageNet zero-shot error",
            objective="contrastive image–text training; its loss is another quantity than this error",
            data_distribution="one law for each training set: LAION-80M, LAION-400M, LAION-2B, CLIP-WIT",
            architecture="CLIP with ViT-B/32 to ViT-g/14; parameters of both towers",
            ranges=ranges,
            units={
                "metric": "fraction",
                "compute": "GMACs of forward passes, not training FLOPs",
                "params": "parameters",
                "volume": "image–text samples seen",
            },
            source="Cherti et al. 2023 (arXiv 2212.07143), OpenAI models beside them",
        ),
        notes=(
            Note("not-tuned-alike", tuning),
            Note("repeated-samples", repeats, "warning", "LAION-80M"),
            Note("few-models", few, "warning", "CLIP-WIT"),
        ),
    )
