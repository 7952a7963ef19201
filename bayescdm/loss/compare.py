"""The comparison of the paper's Figure 1: one capability law against a compute law for each family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from bayescdm.errors import Note, RequestError
from bayescdm.fit import Diagnosis
from bayescdm.loss.fit import LOSS_DEFAULTS, MODEL_OF_LAW, LossFit, law_draws
from bayescdm.loss.logs import thin_logs
from bayescdm.loss.modeling import loss_model_data
from bayescdm.loss.pointfit import fit_loss_points
from bayescdm.loss.study import LossStudy
from bayescdm.modelfiles import load_model
from bayescdm.sampling import CompiledModel, SamplerSettings, compile_model
from bayescdm.seeds import generator

__all__ = [
    "LAWS_COMPARED",
    "REFIT_SETTINGS",
    "LossComparison",
    "compare_loss_laws",
    "compile_loss_laws",
    "point_fit_errors",
]

LAWS_COMPARED = ("capability", "compute")
#: Those of a fit: with 1000 draws after 500 of tuning one refit in twelve had an R-hat just above 1.01.
REFIT_SETTINGS = LOSS_DEFAULTS


@dataclass(frozen=True)
class LossComparison:
    """Two loss laws on the same runs.

    Attributes
    ----------
    table : DataFrame, (law,)
        ``n_fits``, ``n_parameters``, ``mae`` (of the point fits, on the points they were fitted to),
        ``elpd`` (log score of held-out runs, summed) and ``elpd_se``; the higher elpd is better.
    by_run : DataFrame, (run,)
        Log score of each run when it was held out, a column a law.
    difference, difference_se : float
        elpd of the capability law less that of the compute laws, paired by run, and its standard error.
    folds : int
        How many times the runs were split; as many as there are runs when each is held out alone.
    notes : tuple of Note
    """

    table: pd.DataFrame
    by_run: pd.DataFrame
    difference: float
    difference_se: float
    folds: int
    notes: tuple[Note, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the draws of every refit can be trusted."""
        return all(note.code != "not-converged" for note in self.notes)

    @property
    def preferred(self) -> str | None:
        """Law of the higher elpd; None when the difference is below twice its standard error."""
        if abs(self.difference) < 2 * self.difference_se:
            return None
        return "capability" if self.difference > 0 else "compute"

    def __str__(self) -> str:
        """Return the table and what it says."""
        table = self.table.to_string(float_format=lambda value: f"{value:.4g}")
        held_out = "one run" if self.folds == len(self.by_run) else f"runs of {self.folds} folds"
        verdict = {
            "capability": "one capability law predicts held-out runs better than compute laws by family",
            "compute": "compute laws by family predict held-out runs better than one capability law",
            None: "held-out runs do not tell the laws apart",
        }[self.preferred]
        difference = f"{self.difference:.1f} ± {self.difference_se:.1f}"
        score = f"elpd difference {difference} (exact refits without {held_out})"
        return "\n".join([table, score, verdict, *map(str, self.notes)])

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values, for JSON."""
        return {
            "laws": self.table.to_dict("index"),
            "by_run": self.by_run.to_dict("index"),
            "difference": self.difference,
            "difference_se": self.difference_se,
            "folds": self.folds,
            "preferred": self.preferred,
            "converged": self.converged,
            "notes": [note.to_dict() for note in self.notes],
        }


def compile_loss_laws(study: LossStudy, points_per_run: int = 30) -> dict[str, CompiledModel]:
    """Compile both laws once, for comparisons on studies of the same runs and steps.

    Parameters
    ----------
    study : LossStudy
        Prepared, with capability components.
    points_per_run : int
        As for `compare_loss_laws`.

    Returns
    -------
    dict of str to CompiledModel
    """
    data = loss_model_data(thin_logs(study, points_per_run))
    return {law: compile_model(load_model(MODEL_OF_LAW[law]).build, data) for law in LAWS_COMPARED}


def compare_loss_laws(
    study: LossStudy,
    *,
    seed: int = 1,
    folds: int | None = None,
    points_per_run: int = 30,
    settings: SamplerSettings = REFIT_SETTINGS,
    compiled: dict[str, CompiledModel] | None = None,
) -> LossComparison:
    """Compare one capability law for all families with a compute law for each family.

    Parameters
    ----------
    study : LossStudy
        Prepared, of at least two families, with capability components.
    seed : int
    folds : int, optional
        Into how many parts the runs are split to be held out; by default each run alone.
    points_per_run : int
        Logged losses kept of each run.
    settings : SamplerSettings
        Of each refit.
    compiled : dict of str to CompiledModel, optional
        From `compile_loss_laws`, of the same runs and steps.

    Returns
    -------
    LossComparison

    Raises
    ------
    RequestError
        With fewer than two families, or compiled models of other runs.
    InputError
        Without capability components.

    Notes
    -----
    Figure 1 and section 3.3 of *What Transfers from Text to Vision?* compare mean absolute errors on the runs
    that were fitted; with as many constants as runs that says little, so whole runs are held out here too.
    """
    if len(study.families) < 2:
        raise RequestError(f"{study.name}: one law for all families needs at least two families to compare")
    thin = thin_logs(study, points_per_run)
    K = thin.component_scores.shape[1]
    points, family_of_run = point_fit_errors(thin), thin.runs["family"]
    compiled = compiled or compile_loss_laws(study, points_per_run)
    if compiled["compute"].data.coords != loss_model_data(thin).coords:
        raise RequestError("the compiled models were made for other runs or steps")
    split = _folds(thin, len(thin.runs) if folds is None else folds, seed)
    held_out = {law: _held_out(compiled[law], law, thin, split, seed, settings) for law in LAWS_COMPARED}
    by_run = pd.DataFrame({law: scores for law, (scores, _) in held_out.items()}, index=thin.runs.index)
    troubles = {law: diagnoses for law, (_, diagnoses) in held_out.items()}
    table = pd.DataFrame(
        {
            "n_fits": [1, family_of_run.nunique()],
            "n_parameters": [4 + K, 5 * family_of_run.nunique()],
            "mae": [points[law] for law in LAWS_COMPARED],
            "elpd": by_run.sum(),
            "elpd_se": by_run.std() * np.sqrt(len(by_run)),
        },
        index=pd.Index(LAWS_COMPARED, name="law"),
    )
    paired = by_run["capability"] - by_run["compute"]
    return LossComparison(
        table=table,
        by_run=by_run,
        difference=float(paired.sum()),
        difference_se=float(paired.std() * np.sqrt(len(paired))),
        folds=int(split.max()) + 1,
        notes=(*_not_converged(troubles), *study.notes, *_few_sizes(thin)),
    )


def run_log_score(fit: LossFit, run: str) -> float:
    """Log predictive density of all points of a run that the fit did not see.

    Parameters
    ----------
    fit : LossFit
        Whose study holds the run's points.
    run : str

    Returns
    -------
    float
        ln of the mean over draws of p(points | draw), the run's own offset integrated out.
    """
    study = fit.study
    of_run = study.select_runs([run])
    table = pd.DataFrame({"params": of_run.params, "volume": of_run.volume})
    table["family"] = of_run.runs["family"].iloc[0]
    if of_run.components is not None:
        table = table.assign(**of_run.components.iloc[0].to_dict())
    residual = np.log(of_run.loss) - np.log(law_draws(fit, table))
    sigma, tau = (fit.posterior[name].to_numpy().ravel() for name in ("sigma", "tau"))
    n, mean = residual.shape[1], residual.mean(axis=1)
    of_mean = sigma**2 + n * tau**2
    square = ((residual - mean[:, None]) ** 2).sum(axis=1) / sigma**2 + n * mean**2 / of_mean
    density = -0.5 * (square + (n - 1) * np.log(sigma**2) + np.log(of_mean) + n * np.log(2 * np.pi))
    return float(logsumexp(density) - np.log(len(density)))


def point_fit_errors(study: LossStudy) -> dict[str, float]:
    """Mean absolute error of each law's point fits over all points."""
    capability = fit_loss_points(study, "capability", starts=8)
    by_family = [
        fit_loss_points(study.select_runs(list(group.index)), "compute", starts=8)
        for _, group in study.runs.groupby("family", sort=False)
    ]
    weights = [fit.n_points for fit in by_family]
    return {
        "capability": capability.mae,
        "compute": float(np.average([f.mae for f in by_family], weights=weights)),
    }


def _folds(study: LossStudy, folds: int, seed: int) -> np.ndarray:
    """Fold of each run, shape (run,): every family is spread over the folds."""
    if not 2 <= folds <= len(study.runs):
        raise RequestError(f"{folds} folds of {len(study.runs)} runs: 2 to {len(study.runs)} are possible")
    order = generator(seed).permutation(len(study.runs))
    by_family = order[np.argsort(study.runs["family"].to_numpy()[order], kind="stable")]
    fold = np.empty(len(order), dtype=int)
    fold[by_family] = np.arange(len(order)) % folds
    return fold


def _held_out(
    compiled: CompiledModel,
    law: str,
    study: LossStudy,
    split: np.ndarray,
    seed: int,
    settings: SamplerSettings,
) -> tuple[np.ndarray, list[Diagnosis]]:
    """Log score of each run under a refit without its fold, shape (run,), and how each refit converged."""
    scores, diagnoses = np.empty(len(split)), []
    for fold in range(split.max() + 1):
        out = np.flatnonzero(split == fold)
        weight = (~np.isin(study.run_of_point, out)).astype(float)
        refit = compiled.refit(log_loss=np.log(study.loss), weight=weight)
        tree: Any = refit.sample(seed=seed, settings=settings)
        fit = LossFit(tree, study, MODEL_OF_LAW[law])
        diagnoses.append(fit.diagnose())
        scores[out] = [run_log_score(fit, run) for run in study.runs.index[out]]
    return scores, diagnoses


def _not_converged(troubles: dict[str, list[Diagnosis]]) -> tuple[Note, ...]:
    """Say of which law how many refits did not converge, with what the first of them says."""
    notes = []
    for law, diagnoses in troubles.items():
        failed = [diagnosis for diagnosis in diagnoses if not diagnosis.converged]
        if failed:
            message = f"NOT CONVERGED: {len(failed)} of {len(diagnoses)} refits ({failed[0]})"
            notes.append(Note("not-converged", message, "warning", f"{law} law"))
    return tuple(notes)


def _few_sizes(study: LossStudy) -> tuple[Note, ...]:
    """Families whose compute law rests on its prior, because they have too few sizes."""
    sizes = study.runs.groupby("family", sort=False)["params"].nunique()
    return tuple(
        Note(
            "few-sizes",
            f"{count} model sizes cannot determine A, α and E: the compute law leans on its prior",
            "warning",
            str(family),
        )
        for family, count in sizes[sizes < 3].items()
    )
