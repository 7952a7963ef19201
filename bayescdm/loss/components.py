"""Capability of each run's backbone, from text scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from bayescdm.capability import fit_components
from bayescdm.errors import InputError, Note
from bayescdm.loss.study import LossStudy

__all__ = ["with_capability"]


def with_capability(
    study: LossStudy, text_scores: pd.DataFrame, *, components: int | None = None, variance: float = 0.95
) -> LossStudy:
    """Return the study with capability components of each run's backbone.

    Parameters
    ----------
    study : LossStudy
        Whose runs name their ``backbone``; a run without one is its own.
    text_scores : DataFrame, (backbone, benchmark)
        Fractions; every backbone with a score shapes the components, with runs or without.
    components, variance
        As for `bayescdm.capability.fit_components`.

    Returns
    -------
    LossStudy

    Raises
    ------
    InputError
        A run's backbone has no text scores.
    """
    runs = study.runs
    backbone = runs["backbone"] if "backbone" in runs else pd.Series(runs.index, index=runs.index)
    scored = text_scores[text_scores.notna().any(axis=1)]
    unknown = backbone[~backbone.isin(scored.index)]
    if len(unknown):
        raise InputError(
            [f"run '{run}': its backbone '{name}' has no text scores" for run, name in unknown.items()]
        )
    capability = fit_components(scored, components=components, variance=variance)
    position = capability.scores.index.get_indexer(backbone)
    Z = capability.scores.iloc[position].set_axis(runs.index)
    notes = [*study.notes, *capability.notes]
    uncertain = np.trace(capability.covariance[position], axis1=1, axis2=2) > 0
    if uncertain.any():
        named = ", ".join(dict.fromkeys(backbone[uncertain].astype(str)))
        message = f"text scores of {named} are incomplete: their expected components are taken as known"
        notes.append(Note("incomplete-text-scores", message, "warning"))
    return replace(study, components=Z, notes=tuple(notes))
