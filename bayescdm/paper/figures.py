"""Every published figure of the paper beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import norm
from scipy.stats import t as student_t

from bayescdm.compare.families import family_draws
from bayescdm.compare.tables import single_interval
from bayescdm.datasets import paper_table
from bayescdm.errors import BayesCDMError, Note, NotFoundError, RequestError
from bayescdm.intervals import Kind, check_probability, interval_columns
from bayescdm.paper.basis import informing_backbones, rests_on
from bayescdm.paper.batch import (
    TUNED,
    compare_batch_predictors,
    composite_draws,
    fit_batch_size,
    optimal_batches,
    simulate_batch_losses,
    true_composite,
)
from bayescdm.paper.benchmarks import coefficient_claims, length_ratio
from bayescdm.paper.compute import COMMON, capability_on_compute, log_compute
from bayescdm.paper.correlation import text_against_multimodal
from bayescdm.paper.extrapolation import (
    LARGE,
    UP_TO_8B,
    compare_decay,
    refit_without_large,
    trajectory_errors,
    transfer_at_volume,
)
from bayescdm.paper.families import check_varied, family_estimates
from bayescdm.paper.fitting import fit_error, held_out
from bayescdm.paper.leave_out import left_out_families
from bayescdm.paper.variants import overtaking_volume, population_draws, true_rates, variant_claims
from bayescdm.predict import LawDraws
from bayescdm.seeds import checked_seed
from bayescdm.simulate.paper import TABLE_3_FAMILIES
from bayescdm.simulate.studies import true_accuracy
from bayescdm.study import VARIANTS, Study
from bayescdm.wording import counted, probability, short_count

if TYPE_CHECKING:
    from bayescdm.fit import Fit
    from bayescdm.sampling import SamplerSettings
    from bayescdm.validate import Validation

__all__ = ["PaperFits", "figure_interval", "fit_paper", "published_against_ours"]

#: Names of the two laws of the ablation, as the published table has them.
DECAY = {"with Bm": "transfer_pooled", "without Bm": "transfer_no_decay"}
#: Subjects of the published figures → variant of the held-out 72B model.
VARIANT_OF_SUBJECT = {"Qwen2.5-72B base": "base", "Qwen2.5-72B instruct": "instruct"}
#: Published figures that are settings of the paper's, not findings; `paper_table` has them.
SETTINGS = {"batch-size": ("tuned", "batch_size", "volume_min", "volume_max")}
#: Two of the tuned backbones, the second with more parameters, whose optima the paper compares.
COMPARED = ("Qwen3-1.7B-Base", "Falcon3-3B-Base")
#: Volume at which the batch size of the 72B models is forecast, in tokens.
FORECAST = 50e9
NONE = float("nan")
#: What an interval is of.
LAW_ERROR = "error of the law's draws"


@dataclass(frozen=True)
class Figure:
    """What ours is, or why there is none.

    Parameters
    ----------
    value, lower, upper : float
        NaN where there is none.
    kind : str
        What the interval is of.
    true : float
        Of a simulated study.
    no_truth : str
        Why a simulated study has none.
    rests_on : str
        From `bayescdm.paper.basis.rests_on`.
    cannot : str
        Why there is no value.
    """

    value: float = NONE
    lower: float = NONE
    upper: float = NONE
    kind: str = ""
    true: float = NONE
    rests_on: str = ""
    cannot: str = ""
    no_truth: str = ""


#: Fits that the analyses read, in words.
STEPS = {
    "fit": "partially pooled fit",
    "pooled": "the paper's law without the largest models",
    "no_decay": "the same without Bm·S",
    "left_out": "the paper's law without each family in turn",
}

#: What an analysis yields: quantity, subject, and ours.
Figures = Iterator[tuple[str, str, Figure]]


def figure_interval(prob: float) -> tuple[str, str]:
    """Return the columns of the intervals of `published_against_ours`, whose kind is a column of its own."""
    return f"interval_{100 * prob:g}_lower", f"interval_{100 * prob:g}_upper"


@dataclass(frozen=True)
class PaperFits:
    """The fits that the paper's analyses read; None where the study cannot carry one, and why.

    Parameters
    ----------
    fit : Fit
        Rates partially pooled over families and variants.
    pooled : Fit or None
        The paper's law, without the largest models.
    no_decay : Fit or None
        The same without Bm·S.
    left_out : Validation or None
        The paper's law refitted without each family.
    why_none : dict of str to str
        Name of a missing one → why.
    """

    fit: Fit
    pooled: Fit | None
    no_decay: Fit | None
    left_out: Validation | None
    why_none: dict[str, str]

    @property
    def converged(self) -> bool:
        """Whether every fit has."""
        return not self.notes

    @property
    def notes(self) -> tuple[Note, ...]:
        """Which fits have not converged, and why."""
        fits = {"fit": self.fit, "pooled": self.pooled, "no_decay": self.no_decay}
        found = [
            replace(note, where=STEPS[name])
            for name, fit in fits.items()
            if fit is not None
            for note in fit.diagnose().notes
        ]
        refits = () if self.left_out is None else self.left_out.notes
        return (*found, *(note for note in refits if note.code == "not-converged"))


def fit_paper(
    study: Study | str | Path,
    *,
    fit: Fit | None = None,
    families: bool = True,
    cut: float = LARGE,
    seed: int = 1,
    settings: SamplerSettings | None = None,
    report: Callable[[str], object] = lambda message: None,
) -> PaperFits:
    """Make every fit that the paper's analyses read; minutes of work.

    Parameters
    ----------
    study : Study, str or Path
        A study, the name of a packaged one, or a folder.
    fit : Fit, optional
        A partially pooled fit of this study that is there already.
    families : bool
        Whether each family is left out in turn.
    cut : float
        Backbones with more parameters than this are held out.
    seed : int
    settings : SamplerSettings, optional
        Of the refits; by default those of a fit, since their tables are of parameters too.
    report : callable, optional
        Told what is being done.

    Returns
    -------
    PaperFits

    Raises
    ------
    RequestError
        `fit` is of another study, or the seed is none.
    ModelError
        `fit` has one set of rates for all families.
    """
    from bayescdm.fit import fit as fit_model
    from bayescdm.reading import load_study
    from bayescdm.sampling import DEFAULTS
    from bayescdm.validate import validate

    checked_seed(seed)
    if not isinstance(study, Study):
        study = load_study(study)
    if fit is not None:
        check_varied(fit)
    if fit is not None and not fit.study.runs.index.equals(study.runs.index):
        raise RequestError(f"the fit is of {fit.study.name}, not of {study.name}: fit that, or leave it out")
    refits = settings or DEFAULTS
    if fit is None:
        report(STEPS["fit"])
        fit = fit_model(study, seed=seed)
    found: dict[str, Any] = {}
    why_none: dict[str, str] = {}
    steps: dict[str, Callable[[], Any]] = {
        name: partial(refit_without_large, study, model=model, cut=cut, seed=seed, settings=refits)
        for name, model in (("pooled", DECAY["with Bm"]), ("no_decay", DECAY["without Bm"]))
    }
    if families:
        steps["left_out"] = partial(
            validate, study, by="family", model=DECAY["with Bm"], seed=seed, settings=refits
        )
    else:
        why_none["left_out"] = "families were not left out: not asked for"
    for name, step in steps.items():
        report(STEPS[name])
        try:
            found[name] = step()
        except BayesCDMError as error:
            why_none[name] = str(error)
    return PaperFits(
        fit, found.get("pooled"), found.get("no_decay"), found.get("left_out"), why_none
    )  # fmt: skip


def published_against_ours(fits: PaperFits, *, prob: float = 0.9, seed: int = 0) -> pd.DataFrame:
    """Set every published figure of the paper beside ours, with an interval, or say why there is none.

    Parameters
    ----------
    fits : PaperFits
        From `fit_paper`.
    prob : float
        Probability of the equal-tailed intervals.
    seed : int
        Of simulated training losses and resampling.

    Returns
    -------
    DataFrame, one row a figure
        ``analysis``, ``quantity``, ``subject``, ``unit``, ``published`` (NaN for figures that the paper
        lacks), ``ours``; ``interval_90_lower``, ``interval_90_upper`` and ``interval``, what it is of;
        ``true`` of a simulated study (of an error: that of its true law on these runs; of a coverage: that of
        the true law's run intervals); ``rests_on``, a code where a rate is no finding of the runs:
        ``prior-dominated``, ``few-volumes``, ``one-backbone`` (see `bayescdm.paper.basis.rests_on`);
        ``cannot``: why there is none of ours, empty where there is;
        ``no_truth``: why a figure of a simulated study has no truth.

    Notes
    -----
    λ of ours is scaled to the published length: Table 7 lists 40 of more than 200 benchmarks, and Σ λ² = 1
    over all of them. An ``mae`` is the median of the law's error over draws, which lies in its interval; what
    a point fit reaches stands beside that of the fit. The error of the transfer to 72B is that of a line
    fitted at one volume, as in the paper; the law's own (``error_of_law``) stands beside it. Rows "up to 8B"
    are of those models, the law being fitted to all up to the cut. Losses at several batch sizes and along
    training are not public: those analyses simulate theirs, for simulated studies only. Settings of the paper
    (which models it tuned, at which batch sizes) are in ``paper_table("published_figures")``.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fits = cdm.fit_paper("simulated-paper")  # doctest: +SKIP
    >>> cdm.published_against_ours(fits).query("analysis == 'fit'")  # doctest: +SKIP
    """
    check_probability(prob)
    checked_seed(seed)
    figures = paper_table("published_figures")
    analyses: dict[str, Callable[[PaperFits, float, int], Figures]] = {
        "fit": _fit,
        "transfer": _transfer,
        "absorption": _absorption,
        "ablation": _ablation,
        "leave-one-family-out": _left_out,
        "transfer-coefficients": _coefficients,
        "base-against-instruct": _variants,
        "families": _families,
        "capability-on-compute": _compute,
        "batch-size": _batch_size,
        "text-against-multimodal": _correlation,
        "loss": _losses,
    }
    lower, upper = figure_interval(prob)
    rows = []
    for analysis, compute in analyses.items():
        published = figures[figures["analysis"] == analysis]
        published = published[~published["quantity"].isin(SETTINGS.get(analysis, ()))]
        ours, why = _tried(compute, fits, prob, seed)
        units = published.set_index("quantity")["unit"].to_dict()
        asked = {(str(row.quantity), str(row.subject)): row for row in published.itertuples()}
        keys = [*asked, *(key for key in ours if key not in asked)]
        if why and not keys:
            keys = [(WITHOUT_FIGURES.get(analysis, analysis), "")]
        for quantity, subject in keys:
            row = asked.get((quantity, subject))
            found = ours.get((quantity, subject), Figure(cannot=why or "this analysis does not give it"))
            unit = units.get(quantity, EXTRA_UNITS.get(quantity, ""))
            rows.append(
                {
                    "analysis": analysis,
                    "quantity": quantity,
                    "subject": subject,
                    "unit": unit if row is None else row.unit,
                    "published": NONE if row is None else float(row.value),
                    "ours": found.value,
                    lower: found.lower,
                    upper: found.upper,
                    "interval": found.kind if np.isfinite(found.lower) else "",
                    "true": found.true,
                    "rests_on": found.rests_on,
                    "cannot": "" if np.isfinite(found.value) else found.cannot or why,
                    "no_truth": _no_truth(fits.fit.study, quantity, found),
                }
            )
    table = pd.DataFrame(rows)
    facts = fits.fit.facts()
    facts["warnings"] = list(dict.fromkeys((*map(str, fits.notes), *facts["warnings"])))
    table.attrs = {**facts, "converged": int(fits.converged), "kind": "as in column interval", "prob": prob}
    return table


#: Analyses of which the paper prints no number → what stands for them when ours has none either.
WITHOUT_FIGURES = {"capability-on-compute": "theta", "batch-size": "log2_batch"}
#: Units of figures that the paper lacks.
EXTRA_UNITS = {
    "B0": "accuracy per ln D",
    "mae": "fraction",
    "mae_of_mean": "fraction",
    "mae_of_point_fit": "fraction",
    "error_of_law": "fraction",
    "within_line": "yes = 1",
    "p_claim": "probability",
    "p_ahead": "probability",
    "overtaking_volume": "volume",
    "p_order": "probability",
    "theta": "score per ln C",
    "log2_batch": "log2 samples",
    "slope": "log2 samples per accuracy",
    "slope_positive": "probability",
    "p_larger": "probability",
    "mae_log2": "log2 samples",
    "survive": "count",
    "undecided": "count",
    "refuted": "count",
    "slope_at_volume": "accuracy per score",
    "elpd_difference": "nats",
    "covered": "share of runs",
}


#: Quantities without a parameter of the simulation behind them → why they have no truth.
NO_TRUTH = {
    "components": "a choice of the analysis",
    "backbones": "a count of what was fitted",
    "models": "a count of what was fitted",
    "volume": "a choice of the analysis",
    "slope_at_volume": "true rates differ by family and variant: no one slope is true",
    "within_line": "the line is that of the fitted models, not of the law",
    "elpd_difference": "compares two fits",
    "survive": "a count of verdicts; the truth of each λ stands in its row",
    "undecided": "a count of verdicts; the truth of each λ stands in its row",
    "refuted": "a count of verdicts; the truth of each λ stands in its row",
    "spearman": "a statistic of the scores, no parameter of the simulation",
    "slope": "a statistic of the scores, no parameter of the simulation",
    "intercept": "a statistic of the scores, no parameter of the simulation",
    "overtaking_volume": "in truth base does not overtake within the observed volumes",
}


def _no_truth(study: Study, quantity: str, found: Figure) -> str:
    """Why a figure of a simulated study stands without its truth; empty where it has one, or no figure."""
    if not study.simulated or not np.isfinite(found.value) or np.isfinite(found.true):
        return ""
    if not study.truth:
        return "the study came without its truth.json"
    return found.no_truth or NO_TRUTH.get(quantity, "")


def _tried(
    compute: Callable[[PaperFits, float, int], Figures], fits: PaperFits, prob: float, seed: int
) -> tuple[dict[tuple[str, str], Figure], str]:
    """Figures of one analysis by quantity and subject, and why they end where they do."""
    found: dict[tuple[str, str], Figure] = {}
    try:
        for quantity, subject, figure in compute(fits, prob, seed):
            found[quantity, subject] = figure
    except BayesCDMError as error:
        return found, str(error)
    return found, ""


def _present(fits: PaperFits, name: str) -> Any:
    """A fit, or a RequestError that says why there is none."""
    found = getattr(fits, name)
    if found is None:
        raise RequestError(fits.why_none[name])
    return found


def _of_row(row: Any, prob: float, value: str, kind: Kind, words: str = "", **more: Any) -> Figure:
    """Figure of a table's row with its interval."""
    low, high = interval_columns(kind, prob)
    return Figure(float(row[value]), float(row[low]), float(row[high]), words or kind, **more)


def _of_draws(values: np.ndarray, prob: float, **more: Any) -> Figure:
    """Posterior mean and interval of a quantity's draws."""
    low, high = single_interval(values, "posterior", prob).values()
    return Figure(float(values.mean()), low, high, "posterior", **more)


def _true_error(study: Study, runs: pd.DataFrame) -> float:
    """Mean absolute error of a simulated study's true law on its runs, backbone intercepts apart."""
    if not study.truth or runs.empty:
        return NONE
    law = true_accuracy(study, runs["backbone"], runs["volume"], runs["recipe"], with_backbone_effect=False)
    return float(np.abs(law - runs["accuracy"].to_numpy(float)).mean())


def _true_coverage(study: Study, runs: pd.DataFrame, prob: float) -> float:
    """Share of a simulated study's runs within the run intervals of its true law.

    Rates, S and scales are the true ones; intercepts of backbones are not known, as of a new backbone.
    """
    truth = study.truth
    if not truth or runs.empty:
        return NONE
    law = true_accuracy(study, runs["backbone"], runs["volume"], runs["recipe"], with_backbone_effect=False)
    off = np.abs(law - runs["accuracy"].to_numpy(float))
    return float((off <= _half_width(truth["tau"], truth["sigma"], truth["nu"], prob)).mean())


def _half_width(tau: float, sigma: float, nu: float | None, prob: float) -> float:
    """Half of the central interval of a Normal intercept plus a Student-t residual."""
    if nu is None or sigma == 0:
        return float(norm.ppf((1 + prob) / 2) * np.hypot(tau, sigma))
    # The distribution function of the sum is the residual's, averaged over the intercept.
    z, above = norm.ppf((np.arange(4000) + 0.5) / 4000), (1 + prob) / 2
    most = tau * norm.ppf(1 - (1 - above) / 2) + sigma * student_t.ppf(1 - (1 - above) / 2, nu)
    return float(brentq(lambda x: student_t.cdf((x - tau * z) / sigma, nu).mean() - above, 0, most))


def _fit(fits: PaperFits, prob: float, seed: int) -> Figures:
    yield "components", "K", Figure(len(fits.fit.capability.components))
    chosen = fits.pooled or fits.fit
    row = fit_error(chosen, prob=prob).iloc[0]
    true = _true_error(chosen.study, chosen.study.fitted_runs[~held_out(chosen)])
    yield "backbones", "fitted", Figure(row["backbones"])
    yield "mae", "32 backbones", _of_row(row, prob, "mae_median", "law", LAW_ERROR, true=true)
    yield "mae_of_mean", "posterior mean of the law", Figure(row["mae"], true=true)
    yield "mae_of_point_fit", "the paper's objective", Figure(row["point_mae"], true=true)


def _transfer(fits: PaperFits, prob: float, seed: int) -> Figures:
    pooled = _present(fits, "pooled")
    table = transfer_at_volume(pooled, prob=prob)
    yield "volume", "fixed", Figure(table.attrs["volume"])
    low, high = table.attrs["slope_interval"]
    yield "slope_at_volume", "one law", Figure(table.attrs["slope"], low, high, "posterior")
    lower, upper = interval_columns("law", prob)
    found = _of_72b(table)
    for subject in VARIANT_OF_SUBJECT:
        if subject not in found:
            volume = short_count(table.attrs["volume"])
            yield "error", subject, Figure(cannot=f"no run of {subject} is held out at {volume}")
            continue
        row = found[subject]
        runs = pooled.study.fitted_runs
        own = runs[(runs["backbone"] == row["backbone"]) & (runs["volume"] == table.attrs["volume"])]
        true = _true_error(pooled.study, own)
        yield "error", subject, Figure(abs(row["line_error"]), true=true)
        yield "within_line", f"{subject}, ±{norm.ppf((1 + prob) / 2):.2f}σ", Figure(row["within_line"])
        low, high = sorted([row[lower] - row["accuracy"], row[upper] - row["accuracy"]])
        nearest, furthest = (0.0 if low < 0 < high else min(abs(low), abs(high))), max(abs(low), abs(high))
        yield "error_of_law", subject, Figure(abs(row["error"]), nearest, furthest, "law", true)


def _of_72b(table: pd.DataFrame) -> dict[str, pd.Series]:
    """Rows of the paper's 72B models by published subject."""
    if "variant" not in table:
        table = table.assign(variant=np.where(table["backbone"].str.endswith("Instruct"), "instruct", "base"))
    named = table[table["backbone"].str.contains("Qwen2.5-72B", regex=False)]
    return {
        subject: named[named["variant"] == variant].iloc[0]
        for subject, variant in VARIANT_OF_SUBJECT.items()
        if (named["variant"] == variant).any()
    }


def _without_72b(fit: Fit) -> str:
    """Why a fit holds no run of a 72B model out, for each that it lacks."""
    study, out = fit.study, fit.study.fitted_runs["backbone"][held_out(fit)]
    reasons = []
    for subject, row in _of_72b(pd.DataFrame({"backbone": study.backbones.index})).items():
        if row["backbone"] not in set(out):
            reasons.append(f"{row['backbone']} ({subject}) has no run on scored text that is held out")
    found = _of_72b(pd.DataFrame({"backbone": study.backbones.index}))
    reasons += [f"the study has no {subject}" for subject in VARIANT_OF_SUBJECT if subject not in found]
    return "; ".join(reasons)


def _absorption(fits: PaperFits, prob: float, seed: int) -> Figures:
    pooled = _present(fits, "pooled")
    runs = pooled.study.fitted_runs[held_out(pooled)]
    both = [
        row["backbone"] for row in _of_72b(pd.DataFrame({"backbone": runs["backbone"].unique()})).values()
    ]
    every = trajectory_errors(pooled, prob=prob)
    others = [name for name in every["backbone"].iloc[:-1] if name not in both]
    if others or len(both) < 2:
        figure = _of_row(
            every.iloc[-1], prob, "mae_median", "law", LAW_ERROR, true=_true_error(pooled.study, runs)
        )
        yield "mae", f"all held out: {', '.join(every['backbone'].iloc[:-1])}", figure
    if len(both) < 2:
        raise RequestError(_without_72b(pooled))
    row = trajectory_errors(pooled, backbones=both, prob=prob).iloc[-1]
    own = runs[runs["backbone"].isin(both)]
    subject = "Qwen2.5-72B, both"
    one_volume = own.groupby(["backbone", "recipe"])["volume"].nunique().max() < 2
    yield (
        "mae",
        subject,
        _of_row(
            row,
            prob,
            "mae_median",
            "law",
            LAW_ERROR,
            true=_true_error(pooled.study, own),
            rests_on="one-volume: no trajectory" if one_volume else "",
        ),
    )
    true = _true_coverage(pooled.study, own, prob)
    figure = Figure(row[f"covered_run_{100 * prob:g}"], true=true)
    yield "covered", f"{subject}; {100 * prob:g} % nominal", figure


def _ablation(fits: PaperFits, prob: float, seed: int) -> Figures:
    laws = {"with Bm": _present(fits, "pooled"), "without Bm": _present(fits, "no_decay")}
    table = compare_decay(laws, prob=prob)
    pooled = laws["with Bm"]
    study, runs, out = pooled.study, pooled.study.fitted_runs, held_out(pooled)
    S = _true_capability(pooled)
    small = table[table["subject"] == UP_TO_8B]
    if small.empty:
        yield "S_min", "up to 8B", Figure(cannot="no model of known size up to 8B was fitted")
    else:
        sizes = study.backbones["params"].reindex(runs["backbone"]).to_numpy(float)
        own = runs[~out & (sizes <= 8.5e9)]
        true_S = S.reindex(own["backbone"].unique())
        yield "S_min", "up to 8B", Figure(small["S_min"].iloc[0], true=float(true_S.min()))
        yield "S_max", "up to 8B", Figure(small["S_max"].iloc[0], true=float(true_S.max()))
        true = _true_error(study, own)
        for row in small.to_dict("records"):
            yield (
                "mae",
                f"up to 8B, {row['law']}",
                _of_row(row, prob, "mae_median", "law", LAW_ERROR, true=true),
            )
    for subject, words in (("fitted", "all fitted models (PSIS-LOO)"), ("held out", "held-out models")):
        row = table[table["subject"] == subject].iloc[1]
        z, difference = norm.ppf((1 + prob) / 2), row["elpd_difference"]
        ends = difference - z * row["elpd_difference_se"], difference + z * row["elpd_difference_se"]
        yield (
            "elpd_difference",
            f"{words}, without − with Bm",
            Figure(difference, *ends, f"± {z:.2f} standard errors"),
        )
    of_backbones = table[table["subject"].isin(runs["backbone"][out])].rename(columns={"subject": "backbone"})
    found = False
    for law, rows in of_backbones.groupby("law", sort=False):
        for subject, row in _of_72b(rows).items():
            found = True
            true = _true_error(study, runs[runs["backbone"] == row["backbone"]])
            yield "mae", f"{subject}, {law}", _of_row(row, prob, "mae_median", "law", LAW_ERROR, true=true)
    if not found:
        raise RequestError(_without_72b(pooled))
    large = [row["backbone"] for row in _of_72b(of_backbones).values()]
    lowest = of_backbones.query("law == 'with Bm' and backbone in @large")["S_min"].min()
    yield "S_above", "Qwen2.5-72B", Figure(lowest, true=float(S.reindex(large).min()))


def _true_capability(fit: Fit) -> pd.Series:
    """True S of a simulated study, centred as that of a fit is; NaN of a real one, (backbone,)."""
    names = fit.study.backbones.index
    S = pd.Series(fit.study.truth.get("S", {}), dtype=float).reindex(names)
    return S - S.reindex(fit.capability.fitted_on).mean()


def _left_out(fits: PaperFits, prob: float, seed: int) -> Figures:
    validation = _present(fits, "left_out")
    table = left_out_families(validation)
    judged = validation.rows[validation.rows["evaluable"] == 1]
    low, high = interval_columns("posterior", 0.9, of="covered")
    for row in table.to_dict("records"):
        own = judged if row["family"] == "all" else judged[judged["family"] == row["family"]]
        true = _true_coverage(fits.fit.study, own, 0.95)
        within = float(true == 1) if np.isfinite(true) else NONE
        yield "within_band", row["family"], Figure(row["all_within"], true=within)
        figure = Figure(row["covered_run_95"], row[low], row[high], "posterior, 90 %", true)
        yield "covered", f"{row['family']}; 95 % nominal", figure
    known = set(fits.fit.study.fitted_runs["backbone"].map(fits.fit.study.backbones["family"]))
    for family in ("Qwen3", "DeepSeek", "Falcon3", "Gemma-2"):
        if family not in set(table["family"]):
            why = _no_family(fits.fit.study, family)
            if family in known:
                why = f"no run of {family} can be judged: its recipes have no other run"
            yield "within_band", family, Figure(cannot=why)


def _no_family(study: Study, family: str) -> str:
    """Why a study has no runs of a family to fit."""
    own = study.backbones[study.backbones["family"] == family]
    if own.empty:
        near = [f for f in study.families if f.partition("-")[0] == family.partition("-")[0]]
        more = f" (it has {', '.join(near)})" if near else ""
        return f"the study has no backbone of {family}{more}"
    scored = int(own.index.isin(study.scored).sum())
    return f"{family}: {counted(len(own), 'backbone')}, {scored} scored, no run on a scored one"


def _coefficients(fits: PaperFits, prob: float, seed: int) -> Figures:
    table = coefficient_claims(fits.fit, prob=prob)
    if table.empty:
        raise RequestError("none of the study's text benchmarks is in Table 7")
    scale = length_ratio(fits.fit)
    low, high = interval_columns("posterior", prob)
    # A true λ of a simulated study is the published one, scaled to length 1.
    length = np.linalg.norm(table["true"]) if table["true"].notna().all() else NONE
    true_scale = float(np.linalg.norm(table["published"])) / length
    for row in table.to_dict("records"):
        ends = (scale * row[low], scale * row[high])
        yield (
            "lambda",
            row["benchmark"],
            Figure(scale * row["mean"], *ends, "posterior", true_scale * row["true"]),
        )
    absent = set(paper_table("transfer_coefficients")["benchmark"]) - set(table["benchmark"])
    for name in sorted(absent):
        yield "lambda", name, Figure(cannot=f"the study has no scores of {name}")
    counts = table["verdict"].value_counts()
    for quantity, verdict in (("survive", "survives"), ("undecided", "undecided"), ("refuted", "refuted")):
        yield quantity, "claims of Table 7", Figure(int(counts.get(verdict, 0)))


def _variants(fits: PaperFits, prob: float, seed: int) -> Figures:
    fit = fits.fit
    claims = variant_claims(fit, prob=prob)
    draws, basis = population_draws(fit), informing_backbones(fit)
    prior = population_draws(fit, group="prior") if "prior" in fit.draws.children else {}
    truth = true_rates(fit.study, list(basis.index))
    for quantity, values in draws.items():
        for position, variant in enumerate(VARIANTS):
            ratio = _sd_ratio(values[:, position], prior[quantity][:, position] if prior else None)
            codes = rests_on(quantity, basis[basis["variant"] == variant], ratio)
            if not np.isfinite(values[:, position]).all():
                yield quantity, variant, Figure(cannot=f"no run stands on a scored {variant} backbone")
                continue
            figure = _of_draws(values[:, position], prob, true=truth[quantity][position], rests_on=codes)
            yield quantity, variant, figure
    decay = draws["Bm"][:, 1] / draws["Bm"][:, 0]
    ratio = _sd_ratio(decay, prior["Bm"][:, 1] / prior["Bm"][:, 0] if prior else None)
    figure = _of_draws(
        decay, prob, true=truth["Bm"][1] / truth["Bm"][0], rests_on=rests_on("Bm", basis, ratio)
    )
    yield "ratio_Bm", "instruct / base", replace(figure, value=float(np.median(decay)))
    # A claim rests on the variant of which less is known.
    weaker = min((basis[basis["variant"] == v] for v in VARIANTS), key=lambda own: own["several"].sum())
    for row in claims.to_dict("records"):
        quantity = row["quantity"]
        ratio = _sd_ratio(_contrast(draws[quantity]), _contrast(prior[quantity]) if prior else None)
        figure = Figure(row["p_claim"], true=row["holds"], rests_on=rests_on(quantity, weaker, ratio))
        yield "p_claim", row["claim"], figure
    yield from _errors_of(fit, {variant: variant for variant in VARIANTS}, prob)
    codes = rests_on("Bm", weaker)
    unit = fit.study.volume_unit
    for row in overtaking_volume(fit, prob=prob).to_dict("records"):
        for end, volume in zip(("smallest", "largest"), LawDraws.of(fit, 1).volumes):
            figure = Figure(row[f"p_ahead_at_{end}"], true=row[f"true_ahead_at_{end}"], rests_on=codes)
            yield "p_ahead", f"base at S = {row['S']:.2f}, {short_count(volume)} {unit}", figure
        low, high = interval_columns("posterior", prob)
        why = f"base overtakes within the observed volumes with probability {probability(row['p_overtakes'])}"
        figure = Figure(
            row["median"], row[low], row[high], "posterior, where it does", row["true_volume"], codes, why
        )
        yield "overtaking_volume", f"base, S = {row['S']:.2f}, {unit}", figure


def _contrast(values: np.ndarray) -> np.ndarray:
    """Instruct against base: the log ratio of rates, the difference of what can be negative."""
    if (values > 0).all():
        values = np.log(values)
    contrast: np.ndarray = values[:, 1] - values[:, 0]
    return contrast


def _sd_ratio(posterior: np.ndarray, prior: np.ndarray | None) -> float:
    """Posterior over prior sd; NaN where the prior is unknown or does not vary."""
    spread = 0.0 if prior is None else float(prior.std())
    return float(posterior.std()) / spread if spread > 0 else NONE


def _errors_of(fit: Fit, subjects: dict[str, str], prob: float) -> Figures:
    """Errors of the law by group of runs, for published subjects."""
    errors = fit_error(fit, prob=prob).set_index("group")
    runs = fit.study.fitted_runs[~held_out(fit)]
    labels = fit.study.backbones.loc[runs["backbone"]]
    for group, subject in subjects.items():
        if group in errors.index:
            own = (labels["family"] == group) | (labels["variant"] == group)
            codes = "one-backbone" if errors.at[group, "backbones"] < 2 else ""
            figure = _of_row(errors.loc[group], prob, "mae_median", "law", LAW_ERROR, rests_on=codes)
            yield "mae", subject, replace(figure, true=_true_error(fit.study, runs[own.to_numpy()]))


def _families(fits: PaperFits, prob: float, seed: int) -> Figures:
    fit = fits.fit
    names = {family: subject for subject, family in TABLE_3_FAMILIES.items()}
    table, basis = family_estimates(fit, prob=prob), informing_backbones(fit)
    for row in table.to_dict("records"):
        if row["family"] in names and row["runs"]:
            own = basis[basis["family"] == row["family"]]
            codes = rests_on(row["quantity"], own, row.get("prior_sd_ratio", NONE))
            figure = _of_row(row, prob, "mean", "posterior", true=row["true"], rests_on=codes)
            yield row["quantity"], names[row["family"]], figure
    yield from _errors_of(fit, names, prob)
    fitted = set(basis["family"])
    for family, subject in names.items():
        if family not in fitted:
            why = _no_family(fit.study, family)
            for quantity in ("A", "B0", "Bm", "mean_B", "mae"):
                yield quantity, subject, Figure(cannot=why)
    yield from _order(fit, [family for family in names if family in fitted])


def _order(fit: Fit, families: list[str]) -> Figures:
    """Whether families lie in the order of A of Table 3, which section 4.3 reads."""
    words = " > ".join(families)
    if len(families) < 2:
        yield "p_order", "A of Table 3", Figure(cannot="fewer than two families of Table 3 have runs")
        return
    A = family_draws(fit)["A"].sel(family=families).to_numpy()
    p = float((np.diff(A, axis=1) < 0).all(axis=1).mean())
    truth = fit.study.truth
    true = NONE
    if truth:
        middle = [np.sqrt(truth["A"][f]["base"] * truth["A"][f]["instruct"]) for f in families]
        true = float((np.diff(middle) < 0).all())
    yield "p_order", f"A: {words}", Figure(p, true=true)


def _compute(fits: PaperFits, prob: float, seed: int) -> Figures:
    fit = fits.fit
    truth = _true_slopes(fit)
    for row in capability_on_compute(fit, prob=prob, seed=seed).to_dict("records"):
        figure = _of_row(row, prob, "mean", "posterior", true=truth.get(row["family"], NONE))
        yield "theta", row["family"], figure


def _true_slopes(fit: Fit) -> dict[str, float]:
    """Least-squares slopes of the true S on ln C, by family and for all."""
    S = _true_capability(fit)
    names = LawDraws.of(fit, 1).backbones
    table = pd.DataFrame({"x": log_compute(fit), "S": S.reindex(names).to_numpy()})
    table["family"] = fit.study.backbones.loc[names, "family"].to_numpy()
    centred = table[["x", "S"]] - table.groupby("family")[["x", "S"]].transform("mean")
    products = (centred["x"] * centred["S"]).groupby(table["family"]).sum(min_count=1)
    squares = (centred["x"] ** 2).groupby(table["family"]).sum()
    several = squares.index[squares > 0]
    slopes = {str(family): float(products[family] / squares[family]) for family in several}
    return {**slopes, COMMON: float(products[several].sum(skipna=False) / squares[several].sum())}


def _batch_size(fits: PaperFits, prob: float, seed: int) -> Figures:
    study = fits.fit.study
    if not study.truth:
        raise RequestError(
            "the study holds no losses at several batch sizes, and those of the paper are not public"
        )
    absent = [name for name in TUNED if name not in study.backbones.index]
    if absent:
        raise NotFoundError(f"the study lacks {', '.join(absent)}, which the paper tuned")
    losses = simulate_batch_losses(study, seed)
    batch = fit_batch_size(fits.fit, losses, seed=seed)
    slope = batch.summary(prob=prob).set_index("quantity").loc["beta"]
    figure = _of_row(slope, prob, "mean", "posterior", true=losses.attrs["slope"])
    yield "slope", "of the optimum on the composite", figure
    yield "slope_positive", "the optimum grows with the composite", Figure(slope["p_positive"], true=1.0)
    large = [name for name in ("Qwen2.5-72B", "Qwen2.5-72B-Instruct") if name in study.scored]
    if large:
        table = batch.predict(large, volumes=FORECAST, kind="backbone", prob=prob)
        true = (
            losses.attrs["intercept"] + losses.attrs["slope"] * true_composite(study, large, [FORECAST])[:, 0]
        )
        low, high = interval_columns("backbone", prob, of="log2_batch")
        for row, expected in zip(table.to_dict("records"), true):
            figure = Figure(row["log2_batch"], row[low], row[high], "backbone", float(expected))
            yield "log2_batch", f"{row['backbone']} at 50B tokens", figure
    larger, smaller = composite_draws(fits.fit, list(COMPARED), volumes=FORECAST).to_numpy()[..., 0].T
    true_larger, true_smaller = true_composite(study, COMPARED, [FORECAST])[:, 0]
    figure = Figure(float((larger > smaller).mean()), true=float(true_larger > true_smaller))
    yield "p_larger", f"composite: {COMPARED[0]} > {COMPARED[1]}", figure
    for row in compare_batch_predictors(fits.fit, losses, seed=seed).to_dict("records"):
        if row["predictor"] == "composite":
            figure = Figure(row["mae_log2"], true=_true_batch_error(study, losses))
            yield "mae_log2", "backbone left out, by composite", figure
        else:
            none = "the losses are simulated from the composite: no line in size is true of them"
            yield "mae_log2", "backbone left out, by parameter count", Figure(row["mae_log2"], no_truth=none)


def _true_batch_error(study: Study, losses: pd.DataFrame) -> float:
    """Mean absolute error of the true line in the composite on the optima that are judged."""
    optima = optimal_batches(losses).query("at_edge == 0")
    lines = [
        losses.attrs["intercept"] + losses.attrs["slope"] * true_composite(study, [name], [volume])[0, 0]
        for name, volume in zip(optima["backbone"], optima["volume"])
    ]
    return float(np.abs(np.array(lines) - optima["log2_batch"].to_numpy()).mean())


def _correlation(fits: PaperFits, prob: float, seed: int) -> Figures:
    table = text_against_multimodal(fits.fit.study, prob=prob, seed=seed).set_index("quantity")
    low, high = interval_columns("posterior", prob)
    many = table["backbones"].iloc[0]
    yield "models", "VLMs", Figure(table["vlms"].iloc[0])
    for quantity in ("spearman", "slope", "intercept"):
        # The paper prints the intercept in points.
        scale = 100 if quantity == "intercept" else 1
        row = table.loc[quantity]
        ends = scale * row[low], scale * row[high]
        words = f"bootstrap of {many} backbones"
        yield quantity, "VLMs", Figure(scale * row["value"], *ends, words)
        yield quantity, "VLMs, each with the same weight", Figure(scale * row["unweighted"])


def _losses(fits: PaperFits, prob: float, seed: int) -> Figures:
    if not fits.fit.study.simulated:
        raise RequestError("the study holds no training losses, and those of the paper are not public")
    from bayescdm.loss.compare import point_fit_errors
    from bayescdm.loss.logs import prepare_logs, thin_logs
    from bayescdm.loss.simulate import simulate_losses, true_losses

    used = thin_logs(prepare_logs(simulate_losses(seed=seed)), 30)
    errors = point_fit_errors(used)
    none = "the losses are simulated from the capability law: no compute law is true of them"
    yield "mae", "compute law, one fit a family", Figure(errors["compute"], no_truth=none)
    true = float(np.abs(true_losses(used) - used.loss).mean())
    yield "mae", "capability law, one fit", Figure(errors["capability"], true=true)
