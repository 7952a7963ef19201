"""Validation of a model on a study: exact refits, scores of what was held out, and its trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from bayescdm.atomic import replacing
from bayescdm.capability import Population
from bayescdm.errors import Note, RequestError
from bayescdm.modelfiles import load_model
from bayescdm.reading import load_study
from bayescdm.sampling import SamplerSettings
from bayescdm.seeds import checked_seed
from bayescdm.study import Study
from bayescdm.tracking import tracked
from bayescdm.validate.folds import SIZE_CUT, By, make_folds
from bayescdm.validate.judge import convergence, score_fold, summarise_rows, trajectories
from bayescdm.validate.refit import REFIT_SETTINGS, components_without, prepare_refits

__all__ = ["Validation", "refuse_tables", "validate"]

#: Fewer draws than this behind a joint density make it a lower bound rather than an estimate.
MIN_JOINT_DRAWS = 20


@dataclass(frozen=True)
class Validation:
    """How well a model predicted what it was refitted without.

    Parameters
    ----------
    study, model : str
    by : str
        What was held out together.
    rows : DataFrame, one row a held-out run
        ``fold``, ``run``, ``backbone``, ``family``, ``variant``, ``recipe``, ``volume``, ``accuracy``,
        ``median``, ``run_50_lower``, ``run_50_upper`` and so on for 80 and 95, ``error`` (median minus
        accuracy), ``crps``, ``log_density``, ``pit``, ``capability`` (posterior mean of S),
        ``capability_distance`` and ``volume_distance`` (beyond the range of the runs that were fitted, in
        their standard deviations), ``recipe_known`` (1 when the recipe has other runs), ``evaluable``
        (1 when the row counts in the scores).
    folds : DataFrame, one row a fold
        ``fold``, the columns of `scores`, ``divergences``, ``max_r_hat``, ``min_ess``, ``converged``.
    scores : dict of str to float
        Over all evaluable rows: ``runs``, ``evaluable``, ``mae``, ``mae_within``, ``crps``, ``elpd``
        (pointwise sum), ``elpd_joint`` (sum over folds), ``coverage_50``, ``coverage_80``, ``coverage_95``,
        ``width_50``, ``width_80``, ``width_95`` (means).
    trajectories : DataFrame
        ``fold``, ``backbone``, ``recipe``, ``volume``, ``median`` and the intervals of `rows`, over the
        study's volumes, for held-out backbones whose recipe has a known volume.
    volume_unit : str
    simulated : bool
    settings : dict
        Model source hash, seed, sampler, components, what was refitted.
    notes : tuple of Note
    """

    study: str
    model: str
    by: str
    rows: pd.DataFrame
    folds: pd.DataFrame
    scores: dict[str, float]
    trajectories: pd.DataFrame
    volume_unit: str
    simulated: bool
    settings: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether every refit converged."""
        return bool(self.folds["converged"].all())

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the trajectories as plain data, for JSON."""
        return {
            "study": self.study,
            "model": self.model,
            "by": self.by,
            "simulated": self.simulated,
            "converged": self.converged,
            "scores": self.scores,
            "folds": self.folds.to_dict("records"),
            "rows": self.rows.to_dict("records"),
            "settings": self.settings,
            "notes": [note.to_dict() for note in self.notes],
        }

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Path:
        """Write ``rows.csv``, ``folds.csv`` and ``trajectories.csv`` into a folder.

        Parameters
        ----------
        folder : str or Path
            Made when it is missing.
        overwrite : bool
            Replace tables that stand there.

        Returns
        -------
        Path

        Raises
        ------
        RequestError
            If a table exists and `overwrite` is false.
        """
        folder = Path(folder)
        if not overwrite:
            refuse_tables(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for name in TABLES:
            with replacing(folder / f"{name}.csv", overwrite=overwrite) as unfinished:
                getattr(self, name).to_csv(unfinished, index=False)
        return folder


TABLES = ("rows", "folds", "trajectories")
#: What the command writes beside them.
PAGE = "validation.html"


def refuse_tables(folder: Path) -> None:
    """Raise a RequestError when a folder holds tables or the page of a finished validation."""
    names = (*(f"{name}.csv" for name in (*TABLES, "rivals")), PAGE)
    standing = [str(folder / name) for name in names if (folder / name).exists()]
    if standing:
        raise RequestError(f"{standing[0]}: exists already; choose another folder or ask to overwrite it")


def validate(
    study: Study | str | Path,
    *,
    by: By = "family",
    holdout: Sequence[str] = (),
    cut: float = SIZE_CUT,
    model: str | Path = "transfer_hierarchical",
    components: int | None = None,
    population: Population = "all",
    refit_components: bool = True,
    store: str | Path | None = None,
    seed: int = 1,
    settings: SamplerSettings = REFIT_SETTINGS,
    progress: bool = False,
) -> Validation:
    """Refit a model without parts of a study, exactly, and score its predictions of them.

    Parameters
    ----------
    study : Study, str or Path
        A study, the name of a packaged one, or a folder.
    by : {"family", "recipe", "backbone", "size", "holdout"}
        What is held out together: each family, recipe or backbone in turn; all models above `cut`; or the
        backbones named in `holdout`.
    holdout : sequence of str
        Backbones, for ``by="holdout"``.
    cut : float
        Parameters, an absolute count, for ``by="size"``.
    model, components, population
        As for `bayescdm.fit`.
    refit_components : bool
        Fit the text components without the backbones held out; False keeps their text scores, which leaks
        a little. K stays what all backbones give.
    store : str or Path, optional
        Folder of finished refits; those that stand there are not repeated.
    seed : int
    settings : SamplerSettings
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    Validation

    Raises
    ------
    InputError, NotFoundError, ModelError, FitError, RequestError

    Notes
    -----
    The model is compiled once. A fold's runs get weight 0 and keep their labels, so that a held-out
    family's draws are those of a new family. A run can be judged only against a baseline: where no other
    run has its recipe it does not count (``evaluable`` 0), unless recipes themselves are held out, when
    the uncertainty of a new recipe's baseline is part of every prediction.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> validation = cdm.validate("open-vlm", by="family")  # doctest: +SKIP
    >>> validation.scores["crps"]  # doctest: +SKIP
    """
    checked_seed(seed)
    if not isinstance(study, Study):
        study = load_study(study)
    folds = make_folds(study, by, cut=cut, holdout=holdout)
    refitter = prepare_refits(
        study,
        load_model(model),
        components_without(study, components=components, population=population, refit=refit_components),
        settings=settings,
        seed=seed,
        store=None if store is None else Path(store),
    )
    rows, tables, lines = [], [], []
    for fold in tracked(folds, "exact refits", progress=progress):
        fit = refitter.refit(fold)
        scored, log_densities = score_fold(fit, fold, by=by, seed=seed)
        rows.append(scored)
        tables.append({"fold": fold.label, **summarise_rows(scored, log_densities), **convergence(fit)})
        lines.append(trajectories(fit, fold))
    all_rows, by_fold = pd.concat(rows, ignore_index=True), pd.DataFrame(tables)
    return Validation(
        study=study.name,
        model=refitter.model,
        by=by,
        rows=all_rows,
        folds=by_fold,
        scores=_overall(all_rows, by_fold),
        trajectories=pd.concat([part for part in lines if len(part)] or lines, ignore_index=True),
        volume_unit=study.volume_unit,
        simulated=study.simulated,
        settings={
            "source_hash": refitter.source_hash,
            "seed": seed,
            "components": len(refitter.compiled.data.coords["component"]),
            "refit_components": refit_components,
            "sampler": {name: getattr(settings, name) for name in ("draws", "tune", "chains")},
        },
        notes=_notes(all_rows, by_fold),
    )


def _overall(rows: pd.DataFrame, folds: pd.DataFrame) -> dict[str, float]:
    """Scores over all folds; the joint elpd is the sum of theirs."""
    scores = summarise_rows(rows)
    scores["elpd_joint"] = float(folds["elpd_joint"].sum())
    scores["joint_draws"] = float(folds["joint_draws"].min())
    return scores


def _notes(rows: pd.DataFrame, folds: pd.DataFrame) -> tuple[Note, ...]:
    """What limits the scores."""
    notes = []
    apart = int((rows["evaluable"] == 0).sum())
    if apart:
        message = (
            f"{apart} of {len(rows)} held-out runs have a recipe that no other run has: their baseline is "
            "unknown, and they do not count"
        )
        notes.append(Note("not-evaluable", message, "note", "rows"))
    failed = folds[folds["converged"] == 0]
    if len(failed):
        message = (
            f"NOT CONVERGED: {len(failed)} of {len(folds)} refits ({', '.join(failed['fold'])}): largest "
            f"R-hat {failed['max_r_hat'].max():.3f}, smallest ESS {failed['min_ess'].min():.0f}, "
            f"{failed['divergences'].sum()} divergences"
        )
        notes.append(Note("not-converged", message, "warning", "folds"))
    thin = folds[folds["joint_draws"] < MIN_JOINT_DRAWS]
    if len(thin):
        message = (
            f"the joint elpd of {len(thin)} of {len(folds)} folds rests on fewer than {MIN_JOINT_DRAWS} "
            f"effective draws ({', '.join(thin['fold'])}): it is a lower bound there; compare CRPS and "
            "pointwise elpd"
        )
        notes.append(Note("joint-elpd-unreliable", message, "warning", "folds"))
    return tuple(notes)
