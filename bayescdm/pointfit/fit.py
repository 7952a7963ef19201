"""The point fit of a study, labelled: rates, residuals, predictions and the paper's band."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from bayescdm.capability import Capability, fit_capability
from bayescdm.errors import InputError, Note, NotFoundError, RequestError
from bayescdm.intervals import check_probability
from bayescdm.laws import transfer_absorption
from bayescdm.pointfit.evolution import algorithm1
from bayescdm.pointfit.objective import DELTA, PENALTY, RATES, Solution
from bayescdm.pointfit.varpro import variable_projection
from bayescdm.study import Study
from bayescdm.wording import counted

Method = Literal["varpro", "algorithm1"]
Baselines = Literal["auto", "shared", "recipe"]


@dataclass(frozen=True)
class PointFit:
    """The best-fitting law of a study, labelled.

    Attributes
    ----------
    w : Series, (component,)
        Unit direction.
    A, B0, Bm, P0 : float
        Rates and baseline at `volume_ref`; P0 is the mean baseline where each recipe has its own.
        Not a number where the runs do not determine it (see `unidentified`).
    baselines : Series, (recipe,)
        Accuracy at S = 0 and D = D_ref of each recipe; all equal when shared. For a recipe of unknown
        volume: at that volume.
    S : Series, (backbone,)
        Capability of every scored backbone, in units of the text scores.
    runs : DataFrame, (run, ...)
        ``backbone``, ``recipe``, ``volume``, ``accuracy``, ``predicted``, ``residual`` (predicted minus
        observed) of the fitted runs.
    objective : float
        Huber sum plus absorption penalty.
    mae : float
        Mean absolute residual, a fraction.
    residual_scale : float
        Root mean square residual, a fraction: the σ of the paper's ±1.96σ band.
    volume_ref, volume_unit : float, str
        D_ref and its unit.
    unknown_volume : tuple of str
        Recipes of one but unknown volume: ln D is 0 there and the baseline absorbs B0's share, while Bm's
        share of it stays in the slope on S.
    method, delta, penalty : str, float, float
        How it was fitted.
    converged : bool
        Whether the optimiser ended at a stationary point.
    unidentified : tuple of str
        Those of w, A, B0, Bm that the runs do not determine.
    capability : Capability
        Components that turn text scores into S.
    notes : tuple of Note
        What limits the answer.
    """

    w: pd.Series
    A: float
    B0: float
    Bm: float
    P0: float
    baselines: pd.Series
    S: pd.Series
    runs: pd.DataFrame
    objective: float
    mae: float
    residual_scale: float
    volume_ref: float
    volume_unit: str
    unknown_volume: tuple[str, ...]
    method: Method
    delta: float
    penalty: float
    converged: bool
    unidentified: tuple[str, ...]
    capability: Capability
    notes: tuple[Note, ...] = ()

    @property
    def B(self) -> pd.Series:
        """Absorption rate B0 − Bm·S of every scored backbone, per unit of ln D."""
        return (self.B0 - self.Bm * self.S).rename("B")

    @property
    def transfer_coefficients(self) -> pd.Series:
        """λ of each text benchmark: γ·w (SPEC section 2)."""
        loadings = self.capability.loadings @ self.w.to_numpy()
        return pd.Series(loadings, index=self.capability.benchmarks, name="lambda")

    def summary(self) -> pd.DataFrame:
        """Parameters and quality of the fit, one row each: ``value`` and ``identified``."""
        values = {f"w[{k}]": v for k, v in self.w.items()}
        values |= {"A": self.A, "B0": self.B0, "Bm": self.Bm, "P0": self.P0}
        used = self.runs["backbone"].unique()
        values |= {"mean B": float(self.B.loc[used].mean()), "MAE": self.mae}
        values |= {"residual_scale": self.residual_scale, "objective": self.objective}
        identified = np.array([name.split("[")[0] not in self.unidentified for name in values])
        table = pd.DataFrame({"value": values}, dtype=float)
        return table.assign(identified=identified & table["value"].notna()).rename_axis("quantity")

    def capability_of(self, text_scores: pd.DataFrame) -> pd.Series:
        """Capability S of backbones from their text scores (conditional mean where some are missing).

        Parameters
        ----------
        text_scores : DataFrame, (backbone, benchmark)
            Fractions; NaN where not measured.

        Returns
        -------
        Series, (backbone,)
        """
        mean, _ = self.capability.project(text_scores)
        return pd.Series(mean.to_numpy() @ self.w.to_numpy(), index=mean.index, name="S")

    def predict(
        self, S: pd.Series, volume: float | Sequence[float] | np.ndarray, recipe: str | None = None
    ) -> pd.DataFrame:
        """Accuracy of backbones of capability `S` at each volume.

        Parameters
        ----------
        S : Series, (backbone,)
            Rows of ``fit.S``, or `capability_of` new text scores.
        volume : float or sequence of float
            In `volume_unit`.
        recipe : str, optional
            Its baseline is used; without one, P0.

        Returns
        -------
        DataFrame
            ``backbone``, ``recipe``, ``volume``, ``S``, ``accuracy`` (fraction); backbones vary slowest.
            Accuracy is NaN where it needs a rate that the runs do not determine.

        Raises
        ------
        NotFoundError
            The recipe was not fitted.
        RequestError
            A volume is not positive, or the recipe's own volume is unknown.
        """
        volumes = np.atleast_1d(np.asarray(volume, dtype=float))
        if not (np.isfinite(volumes) & (volumes > 0)).all():
            bad = volumes[~(np.isfinite(volumes) & (volumes > 0))][0]
            raise RequestError(f"volume {bad:g} {self.volume_unit} is not a positive number")
        baseline = self.P0 if recipe is None else self._baseline(recipe)
        capabilities, grid = np.repeat(S.to_numpy(dtype=float), len(volumes)), np.tile(volumes, len(S))
        log_volume = np.log(grid / self.volume_ref)
        # At the reference volume no absorption enters, so an undetermined one does no harm there.
        B0, Bm = (np.where(log_volume == 0, 0.0, rate) for rate in (self.B0, self.Bm))
        accuracy = transfer_absorption(capabilities, log_volume, self.A, B0, Bm, baseline)
        return pd.DataFrame(
            {
                "backbone": np.repeat(S.index.to_numpy(), len(volumes)),
                "recipe": recipe,
                "volume": grid,
                "S": capabilities,
                "accuracy": accuracy,
            }
        )

    def band(
        self,
        S: pd.Series,
        volume: float | Sequence[float] | np.ndarray,
        recipe: str | None = None,
        *,
        prob: float = 0.95,
    ) -> pd.DataFrame:
        """Predictions with the paper's band: ±z residual scales, 1.96 of them at `prob` 0.95.

        Parameters
        ----------
        S, volume, recipe
            As in `predict`.
        prob : float
            Probability under Normal residuals, in (0, 1).

        Returns
        -------
        DataFrame
            The columns of `predict`, and ``residual_lower_95``, ``residual_upper_95`` (for `prob` 0.95).

        Notes
        -----
        The band knows nothing of the uncertainty of the rates, nor of backbones that deviate as a whole: it
        has one width everywhere, in and out of the fitted range.
        """
        from scipy.stats import norm

        check_probability(prob)
        table = self.predict(S, volume, recipe)
        half = float(norm.ppf((1 + prob) / 2)) * self.residual_scale
        table[f"residual_lower_{100 * prob:g}"] = table["accuracy"] - half
        table[f"residual_upper_{100 * prob:g}"] = table["accuracy"] + half
        return table

    def _baseline(self, recipe: str) -> float:
        """Baseline of a fitted recipe whose volume is known."""
        if recipe not in self.baselines.index:
            near = difflib.get_close_matches(recipe, list(self.baselines.index), n=3, cutoff=0.3)
            raise NotFoundError(f"recipe '{recipe}' was not fitted; nearest: {', '.join(near) or 'none'}")
        if recipe in self.unknown_volume:
            raise RequestError(
                f"recipe '{recipe}' has one unknown volume, so no prediction at another; leave the recipe out"
            )
        return float(self.baselines[recipe])


def point_fit(
    study: Study,
    capability: Capability | None = None,
    *,
    method: Method = "varpro",
    baselines: Baselines = "auto",
    delta: float = DELTA,
    penalty: float = PENALTY,
    seed: int = 0,
) -> PointFit:
    """Fit one law to a study's runs by the paper's objective.

    Parameters
    ----------
    study : Study
    capability : Capability, optional
        Components of the text scores; fitted with defaults when not given.
    method : {"varpro", "algorithm1"}
        Variable projection, or the paper's differential evolution and L-BFGS-B on the same objective.
    baselines : {"auto", "shared", "recipe"}
        One P0, or one a recipe; ``auto`` gives each recipe its own when there are several.
    delta : float
        Huber threshold, a fraction.
    penalty : float
        λ of the absorption penalty.
    seed : int
        Seed of differential evolution.

    Returns
    -------
    PointFit

    Raises
    ------
    InputError
        No run's backbone has text scores.
    RequestError
        An option is none of those above.

    Notes
    -----
    Appendix E of arXiv 2608.00013; SPEC section 3. A run of unknown volume enters with ln D = 0 when its
    recipe has a baseline of its own and no other volume; otherwise nothing can absorb the volume, and the
    run is left out with a note.

    Examples
    --------
    >>> scores = pd.DataFrame({"x": [0.1, 0.4, 0.6], "y": [0.2, 0.5, 0.7]}, index=["a", "b", "c"])
    >>> backbones = pd.DataFrame({"family": "f", "variant": "base", "params": 1e9}, index=scores.index)
    >>> runs = pd.DataFrame({"recipe": "r", "backbone": ["a", "b", "c"] * 2,
    ...     "volume": [1e6] * 3 + [4e6] * 3, "accuracy": [0.50, 0.60, 0.66, 0.53, 0.62, 0.67]})
    >>> fit = point_fit(Study("six runs", scores, backbones, runs))
    >>> fit.A > 0, bool(fit.mae < 0.01)
    (True, True)
    """
    if method not in ("varpro", "algorithm1"):
        raise RequestError(f"method '{method}' is neither 'varpro' nor 'algorithm1'")
    if baselines not in ("auto", "shared", "recipe"):
        raise RequestError(f"baselines '{baselines}' is none of 'auto', 'shared', 'recipe'")
    capability = fit_capability(study) if capability is None else capability
    # A fixed order inside makes the fit the same for any order of rows outside.
    runs = study.fitted_runs.sort_index()
    runs = runs[runs["backbone"].isin(capability.scores.index)]
    own = baselines == "recipe" or (baselines == "auto" and runs["recipe"].nunique() > 1)
    runs, unknown, notes = _settle_unknown_volumes(runs, own)
    if runs.empty:
        raise InputError(f"study '{study.name}': no run of known volume has a backbone with text scores")
    Z = capability.scores.sort_index()
    recipes = pd.Index(sorted(runs["recipe"].unique()), name="recipe")
    recipe_of_run = recipes.get_indexer(runs["recipe"]) if own else np.zeros(len(runs), dtype=int)
    volume_ref = float(study.volume_ref or 1.0)
    arguments: dict[str, Any] = {"delta": delta, "penalty": penalty}
    if method == "algorithm1":
        arguments["seed"] = seed
    solution = (variable_projection if method == "varpro" else algorithm1)(
        Z.to_numpy(),
        Z.index.get_indexer(runs["backbone"]),
        np.log(runs["volume"].fillna(volume_ref).to_numpy(dtype=float) / volume_ref),
        runs["accuracy"].to_numpy(dtype=float),
        recipe_of_run,
        **arguments,
    )
    return _labelled(
        solution, study, capability, runs, recipes, volume_ref, unknown, notes, method, delta, penalty
    )


def _settle_unknown_volumes(
    runs: pd.DataFrame, own_baseline: bool
) -> tuple[pd.DataFrame, tuple[str, ...], list[Note]]:
    """Keep runs of unknown volume where a baseline of their own can absorb it, leave out the others."""
    unknown = runs["volume"].isna()
    known_elsewhere = runs["recipe"].isin(runs.loc[~unknown, "recipe"])
    out = unknown & (known_elsewhere | (not own_baseline))
    notes = []
    if out.any():
        notes.append(
            Note(
                "unknown-volume-left-out",
                f"{counted(out.sum(), 'run')} of unknown volume left out: no own baseline to absorb it",
                "warning",
            )
        )
    kept = runs[~out]
    absorbed = tuple(sorted(kept.loc[kept["volume"].isna(), "recipe"].unique()))
    if absorbed:
        notes.append(
            Note(
                "unknown-volume",
                f"{counted(kept['volume'].isna().sum(), 'run')} of {counted(len(absorbed), 'recipe')} of "
                "unknown volume: their baselines absorb it; they inform A, not B",
            )
        )
    return kept, absorbed, notes


def _labelled(
    solution: Solution,
    study: Study,
    capability: Capability,
    runs: pd.DataFrame,
    recipes: pd.Index,
    volume_ref: float,
    unknown: tuple[str, ...],
    notes: list[Note],
    method: Method,
    delta: float,
    penalty: float,
) -> PointFit:
    """Put labels on a solution and state what the runs leave open."""
    rates = {name: np.nan if name in solution.unidentified else getattr(solution, name) for name in RATES}
    if solution.unidentified:
        notes.append(
            Note(
                "unidentified",
                f"{', '.join(solution.unidentified)}: {counted(len(runs), 'run')} of "
                f"{counted(runs['backbone'].nunique(), 'backbone')} at "
                f"{counted(runs['volume'].nunique(), 'volume')} do not determine them",
                "warning",
            )
        )
    if not solution.converged:
        notes.append(Note("not-converged", f"{method} did not reach a stationary point", "warning"))
    baselines = solution.baselines if len(solution.baselines) == len(recipes) else solution.baselines[0]
    baselines = pd.Series(baselines, index=recipes, name="baseline", dtype=float)
    w = pd.Series(solution.w, index=capability.components, name="w")
    columns = ["backbone", "recipe", "volume", "accuracy"]
    table = runs[columns].assign(predicted=runs["accuracy"] + solution.residuals, residual=solution.residuals)
    return PointFit(
        w=w,
        **rates,
        P0=float(baselines.drop(list(unknown)).mean() if len(unknown) < len(baselines) else baselines.mean()),
        baselines=baselines,
        S=pd.Series(capability.scores.to_numpy() @ solution.w, index=capability.scores.index, name="S"),
        runs=table,
        objective=solution.objective,
        mae=float(np.abs(solution.residuals).mean()),
        residual_scale=float(np.sqrt((solution.residuals**2).mean())),
        volume_ref=volume_ref,
        volume_unit=study.volume_unit,
        unknown_volume=unknown,
        method=method,
        delta=delta,
        penalty=penalty,
        converged=solution.converged,
        unidentified=solution.unidentified,
        capability=capability,
        notes=tuple(notes),
    )
