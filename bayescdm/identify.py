"""What a study cannot tell: coded warnings, each with the figure that it was judged by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bayescdm.capability import fit_capability
from bayescdm.errors import BayesCDMError, Note, Severity
from bayescdm.study import VARIANTS, Study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["identifiability", "prior_dominated"]

#: |correlation| of capability and ln D above which S and ln D count as confounded (half the variance).
CONFOUNDED = 0.7
#: Fewer runs than this give no correlation worth naming.
MIN_RUNS = 4
#: Fewer backbones than this, trained at several volumes, make absorption a matter of a few models.
FEW_BACKBONES = 5
#: Posterior over prior sd from which on a quantity counts as left to its prior.
PRIOR_DOMINATED = 0.8
#: Quantities whose prior deciding them limits every answer; of the others it is a note.
LEADING = ("w", "A_population", "B0_population", "Bm_population", "size_slope")
#: Share of (family, variant) cells with one backbone above which the note becomes a warning.
MANY_CELLS = 0.5


def identifiability(study: Study, *, components: int | None = None) -> tuple[Note, ...]:
    """Say what the runs of a study cannot tell apart, before anything is fitted.

    Parameters
    ----------
    study : Study
    components : int, optional
        K, the number of text components; by default the fewest with 95 % of the variance.

    Returns
    -------
    tuple of Note
        Codes and criteria, over the runs whose backbone has text scores:

        ``single-volume``
            One known volume in all; or in every recipe, so that ln D cannot be told from the recipe's
            baseline; or in some recipes, which then inform A only (a warning when fewer than 5 backbones
            were trained at several volumes, else a note).
        ``unknown-volume``
            Number of runs of unknown volume; they inform A, not B.
        ``volume-capability-confounded``
            |correlation| of PC1 and ln D, within recipes of several volumes or over all runs, at least 0.7.
        ``one-backbone-cell``
            Share of (family, variant) cells with runs that hold one backbone; a warning from 0.5.
        ``one-family``, ``one-variant``
            All runs stand on one family, or on one variant.
        ``recipes-disconnected``
            Number of groups of recipes that share no backbone.
        ``mixed-recipes``
            Number of recipes, and of those with a single run.
        ``too-many-components``
            K components need at least K + 2 backbones with runs: w has K − 1 free directions, the transfer
            rate and the baseline make K + 1 parameters, and one backbone more leaves a residual.
        ``no-text-scores``
            Number of runs left out of the law.

    Examples
    --------
    >>> from bayescdm.datasets import load_dataset
    >>> sorted({note.code for note in identifiability(load_dataset("open-vlm"))})[:2]
    ['mixed-recipes', 'no-text-scores']
    """
    runs = study.fitted_runs
    runs = runs.join(study.backbones[["family", "variant"]], on="backbone")
    notes = list(study.unscored_notes())
    if runs.empty:
        return tuple(notes)
    for find in (_volumes, _cells, _recipes):
        notes += find(runs)
    K, first = _components(study, components)
    if first is not None:
        notes += _confounding(runs.assign(capability=runs["backbone"].map(first)))
    notes += _too_many_components(K, runs["backbone"].nunique())
    return tuple(notes)


def prior_dominated(posterior: xr.Dataset, prior: xr.Dataset) -> tuple[Note, ...]:
    """Say which population quantities the data left to their prior.

    Parameters
    ----------
    posterior, prior : Dataset, (chain, draw, ...)

    Returns
    -------
    tuple of Note
        Code ``prior-dominated``: a warning for the direction and the rates' population medians, a note for
        contrasts, scales and the rest, each with posterior over prior sd of at least 0.8. Quantities of
        single families, backbones and recipes are not judged: their ratio stands in every table.

    Examples
    --------
    >>> import xarray as xr
    >>> rng = np.random.default_rng(0)
    >>> wide = xr.Dataset({"A_population": (("chain", "draw"), rng.normal(0, 1, (1, 500)))})
    >>> [note.code for note in prior_dominated(wide, wide)], prior_dominated(0.1 * wide, wide)
    (['prior-dominated'], ())
    """
    found: dict[Severity, list[str]] = {"warning": [], "note": []}
    for name in map(str, posterior):
        if name not in prior or set(posterior[name].dims) - {"chain", "draw", "component"}:
            continue
        if name.startswith("log_") or name.endswith("_raw"):
            continue
        spread = prior[name].std(("chain", "draw"))
        ratio = float((posterior[name].std(("chain", "draw")) / spread.where(spread > 0)).max())
        if ratio >= PRIOR_DOMINATED:
            found["warning" if name in LEADING else "note"].append(f"{name} {ratio:.2f}")
    notes = []
    for severity, listed in found.items():
        if listed:
            message = (
                f"the data say little beyond the prior (posterior over prior sd at least {PRIOR_DOMINATED}): "
                f"{', '.join(listed)}"
            )
            notes.append(Note("prior-dominated", message, severity, "parameters"))
    return tuple(notes)


def _volumes(runs: pd.DataFrame) -> list[Note]:
    """Recipes and studies in which the data volume does not change."""
    known = runs[runs["volume"].notna()]
    notes = []
    if unknown := len(runs) - len(known):
        recipes = _count(runs.loc[runs["volume"].isna(), "recipe"].nunique(), "recipe")
        message = f"{_count(unknown, 'run')} of {recipes} have an unknown volume: they inform A, not B"
        notes.append(_note("unknown-volume", message, "note"))
    volumes = known.groupby("recipe")["volume"].nunique()
    several = volumes.index[volumes > 1]
    recipes = _count(len(volumes), "recipe")
    if known["volume"].nunique() < 2:
        which = "no run has a known volume" if known.empty else f"all {len(known)} runs have one volume"
        message = f"{which}: absorption (B0, Bm) is not informed, and its posterior is its prior"
        notes.append(_note("single-volume", message))
    elif not len(several):
        message = f"the volume is constant within each of {recipes}: "
        message += "absorption cannot be told from the recipes' baselines"
        notes.append(_note("single-volume", message))
    elif len(several) < len(volumes):
        of_backbone = known.groupby(["recipe", "backbone"])["volume"].nunique()
        backbones = of_backbone.index[of_backbone > 1].get_level_values("backbone").nunique()
        message = (
            f"{len(volumes) - len(several)} of {recipes} have one volume and inform A only; absorption "
            f"rests on {', '.join(several)}, with {_count(backbones, 'backbone')} at several volumes"
        )
        severity: Severity = "warning" if backbones < FEW_BACKBONES else "note"
        notes.append(_note("single-volume", message, severity))
    return notes


def _confounding(runs: pd.DataFrame) -> list[Note]:
    """Runs in which larger volumes went to better (or worse) backbones."""
    known = runs[runs["volume"].notna()].assign(log_volume=lambda table: np.log(table["volume"]))
    by_recipe = known.groupby("recipe")
    inside = known[by_recipe["volume"].transform("nunique") > 1]
    both = ["capability", "log_volume"]
    centred = inside[both] - inside.groupby("recipe")[both].transform("mean")
    notes = []
    scopes = ((centred, "within recipes of several volumes"), (known, "over all runs"))
    for table, scope in scopes:
        r = _correlation(table)
        if abs(r) >= CONFOUNDED:
            message = (
                f"PC1 and ln D have correlation {r:.2f} {scope} ({len(table)} runs, limit {CONFOUNDED}): "
                "transfer and absorption can hardly be told apart"
            )
            notes.append(_note("volume-capability-confounded", message))
    return notes


def _correlation(table: pd.DataFrame) -> float:
    """Correlation of capability and log volume; 0 when either is constant or the runs are few."""
    values = table[["capability", "log_volume"]].to_numpy(dtype=float)
    if len(values) < MIN_RUNS or (np.ptp(values, axis=0) < 1e-9).any():
        return 0.0
    return float(np.corrcoef(values.T)[0, 1])


def _cells(runs: pd.DataFrame) -> list[Note]:
    """Families and variants with few backbones."""
    sizes = runs.groupby(["family", "variant"])["backbone"].nunique()
    single = int((sizes == 1).sum())
    notes = []
    if single:
        message = (
            f"{single} of {len(sizes)} (family, variant) cells with runs hold one backbone "
            f"({single / len(sizes):.0%}): their own rates are hardly informed"
        )
        if single == len(sizes):
            message += ", and w is not identified however good the fit looks"
        notes.append(
            _note("one-backbone-cell", message, "warning" if single >= MANY_CELLS * len(sizes) else "note")
        )
    families = runs["family"].unique()
    if len(families) == 1:
        message = f"all runs stand on family {families[0]}: how families differ is not informed"
        notes.append(_note("one-family", message))
    variants = runs["variant"].unique()
    if len(variants) == 1:
        other = next(v for v in VARIANTS if v != variants[0])
        message = f"all runs stand on {variants[0]} models: what {other} models do rests on the prior"
        notes.append(_note("one-variant", message))
    return notes


def _recipes(runs: pd.DataFrame) -> list[Note]:
    """Several recipes, recipes of one run, and recipes that no chain of shared backbones connects."""
    sizes = runs["recipe"].value_counts()
    if len(sizes) == 1:
        return []
    single = int((sizes == 1).sum())
    message = (
        f"{len(sizes)} recipes, each with its own baseline and benchmarks ({single} with one run, which "
        "informs its baseline only): accuracies compare within a recipe"
    )
    notes = [_note("mixed-recipes", message, "note")]
    groups = recipe_groups(runs)
    if len(groups) > 1:
        largest = max(groups, key=len)
        message = (
            f"recipes fall into {len(groups)} groups that share no backbone (the largest holds "
            f"{len(largest)} of {len(sizes)}): their baselines compare through S only"
        )
        notes.append(_note("recipes-disconnected", message))
    return notes


def recipe_groups(runs: pd.DataFrame) -> list[set[str]]:
    """Connected components of the graph whose edges are shared backbones.

    Parameters
    ----------
    runs : DataFrame
        ``recipe`` and ``backbone``.

    Returns
    -------
    list of set of str
        Each recipe in one set.

    Examples
    --------
    >>> runs = pd.DataFrame({"recipe": ["a", "b", "b", "c"], "backbone": ["m1", "m1", "m2", "m3"]})
    >>> [sorted(group) for group in recipe_groups(runs)]
    [['a', 'b'], ['c']]
    """
    groups: list[tuple[set[str], set[str]]] = []
    for recipe, rows in runs.groupby("recipe"):
        recipes, backbones = {str(recipe)}, set(rows["backbone"])
        apart = []
        for others, shared in groups:
            if shared & backbones:
                recipes |= others
                backbones |= shared
            else:
                apart.append((others, shared))
        groups = [*apart, (recipes, backbones)]
    return [recipes for recipes, _ in groups]


def _components(study: Study, components: int | None) -> tuple[int | None, pd.Series | None]:
    """K, and PC1 of every scored backbone as a stand-in for S; None where there are no components."""
    try:
        capability = fit_capability(study, components=components)
    except BayesCDMError:
        return components, None
    return len(capability.components), capability.scores["PC1"]


def _too_many_components(K: int | None, n_backbones: int) -> list[Note]:
    """More directions than the backbones with runs can tell apart."""
    if K is None or n_backbones >= K + 2:
        return []
    message = (
        f"{K} components need at least {K + 2} backbones with runs and text scores, there "
        f"{'is' if n_backbones == 1 else 'are'} {n_backbones}: ask for {max(1, n_backbones - 2)}"
    )
    return [_note("too-many-components", message)]


def _note(code: str, message: str, severity: Severity = "warning") -> Note:
    """A note that concerns the runs."""
    return Note(code, message, severity, "runs")


def _count(n: int, noun: str) -> str:
    """Number and noun, such as ``2 runs``."""
    return f"{n} {noun}" + ("" if n == 1 else "s")
