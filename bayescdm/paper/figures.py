"""Every published figure of the paper beside ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from bayescdm.datasets import paper_table
from bayescdm.errors import BayesCDMError, NotFoundError, RequestError
from bayescdm.intervals import check_probability, interval_columns
from bayescdm.paper.batch import (
    BATCH_SIZES,
    TUNED,
    compare_batch_predictors,
    fit_batch_size,
    simulate_batch_losses,
)
from bayescdm.paper.benchmarks import coefficient_claims
from bayescdm.paper.correlation import text_against_multimodal
from bayescdm.paper.extrapolation import (
    LARGE,
    compare_decay,
    refit_without_large,
    trajectory_errors,
    transfer_at_volume,
)
from bayescdm.paper.families import family_estimates
from bayescdm.paper.fitting import fit_error
from bayescdm.paper.leave_out import left_out_families
from bayescdm.paper.variants import variant_claims
from bayescdm.simulate.paper import TABLE_3_FAMILIES
from bayescdm.study import Study

if TYPE_CHECKING:
    from bayescdm.fit import Fit
    from bayescdm.sampling import SamplerSettings
    from bayescdm.validate import Validation

__all__ = ["PaperFits", "fit_paper", "published_against_ours"]

#: Names of the two laws of the ablation, as the published table has them.
DECAY = {"with Bm": "transfer_pooled", "without Bm": "transfer_no_decay"}
#: Subjects of the published figures → variant of the held-out 72B model.
VARIANT_OF_SUBJECT = {"Qwen2.5-72B base": "base", "Qwen2.5-72B instruct": "instruct"}
#: What ours is: value, the ends of its interval, and what is true of a simulated study.
Figure = tuple[float, float, float, float]
NONE = float("nan")


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
        fits = [fit.diagnose().converged for fit in (self.fit, self.pooled, self.no_decay) if fit is not None]
        return all(fits) and (self.left_out is None or self.left_out.converged)


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
        `fit` is of another study.
    """
    from bayescdm.fit import fit as fit_model
    from bayescdm.reading import load_study
    from bayescdm.sampling import DEFAULTS
    from bayescdm.validate import validate

    if not isinstance(study, Study):
        study = load_study(study)
    if fit is not None and not fit.study.runs.index.equals(study.runs.index):
        raise RequestError(f"the fit is of {fit.study.name}, not of {study.name}: fit that, or leave it out")
    refits = settings or DEFAULTS
    if fit is None:
        report("partially pooled fit")
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
    words = {"pooled": "the paper's law without the largest models", "no_decay": "the same without Bm·S"}
    for name, step in steps.items():
        report(words.get(name, "the paper's law without each family in turn"))
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
        lacks), ``ours``, interval (``posterior_90_lower``, …; of an error: the law's error over draws),
        ``true`` of a simulated study, ``cannot``: why there is none of ours, empty where there is.

    Notes
    -----
    λ of ours is scaled to the published length: Table 7 lists 40 of more than 200 benchmarks, and Σ λ² = 1
    over all of them. Losses at several batch sizes and along training are not public: those analyses simulate
    theirs, for simulated studies only.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fits = cdm.fit_paper("simulated-paper")  # doctest: +SKIP
    >>> cdm.published_against_ours(fits).query("analysis == 'fit'")  # doctest: +SKIP
    """
    check_probability(prob)
    figures = paper_table("published_figures")
    analyses: dict[str, Callable[[PaperFits, float, int], Iterator[tuple[str, str, Figure]]]] = {
        "fit": _fit,
        "transfer": _transfer,
        "absorption": _absorption,
        "ablation": _ablation,
        "leave-one-family-out": _left_out,
        "transfer-coefficients": _coefficients,
        "base-against-instruct": _variants,
        "families": _families,
        "batch-size": _batch_size,
        "text-against-multimodal": _correlation,
        "loss": _losses,
    }
    lower, upper = interval_columns("posterior", prob)
    rows = []
    for analysis, compute in analyses.items():
        published = figures[figures["analysis"] == analysis]
        ours, why = _tried(compute, fits, prob, seed)
        units = published.set_index("quantity")["unit"].to_dict()
        asked = {(str(row.quantity), str(row.subject)): row for row in published.itertuples()}
        for quantity, subject in [*asked, *(key for key in ours if key not in asked)]:
            row = asked.get((quantity, subject))
            value, low, high, true = ours.get((quantity, subject), (NONE,) * 4)
            reason = "" if np.isfinite(value) else why or f"the study has no {subject}"
            rows.append(
                {
                    "analysis": analysis,
                    "quantity": quantity,
                    "subject": subject,
                    "unit": row.unit
                    if row is not None
                    else units.get(quantity, EXTRA_UNITS.get(quantity, "")),
                    "published": NONE if row is None else float(row.value),
                    "ours": value,
                    lower: low,
                    upper: high,
                    "true": true,
                    "cannot": reason,
                }
            )
    table = pd.DataFrame(rows)
    facts = fits.fit.facts()
    table.attrs = {**facts, "converged": int(fits.converged), "kind": "posterior", "prob": prob}
    return table


#: Units of figures that the paper lacks.
EXTRA_UNITS = {
    "p_claim": "probability",
    "log2_batch": "log2 samples",
    "slope_positive": "probability",
    "mae_log2": "log2 samples",
    "survive": "count",
    "undecided": "count",
    "refuted": "count",
    "slope_at_volume": "accuracy per score",
    "elpd_difference": "nats",
    "covered": "share of runs",
}


def _tried(
    compute: Callable[[PaperFits, float, int], Iterator[tuple[str, str, Figure]]],
    fits: PaperFits,
    prob: float,
    seed: int,
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


def _single(value: float, true: float = NONE) -> Figure:
    return float(value), NONE, NONE, true


def _fit(fits: PaperFits, prob: float, seed: int) -> Iterator[tuple[str, str, Figure]]:
    yield "components", "K", _single(len(fits.fit.capability.components))
    chosen = fits.pooled or fits.fit
    row = fit_error(chosen, prob=prob).iloc[0]
    yield "backbones", "fitted", _single(row["backbones"])
    low, high = interval_columns("law", prob)
    yield "mae", "32 backbones", (row["mae"], row[low], row[high], NONE)


def _transfer(fits: PaperFits, prob: float, seed: int) -> Iterator[tuple[str, str, Figure]]:
    pooled = _present(fits, "pooled")
    table = transfer_at_volume(pooled, prob=prob)
    yield "volume", "fixed", _single(table.attrs["volume"])
    lower, upper = interval_columns("law", prob)
    low, high = table.attrs["slope_interval"]
    yield "slope_at_volume", "one law", (table.attrs["slope"], low, high, NONE)
    for subject, row in _of_72b(table).items():
        ends = row[lower] - row["accuracy"], row[upper] - row["accuracy"]
        low, high = sorted(map(abs, ends))
        low = 0.0 if ends[0] < 0 < ends[1] else low
        yield "error", subject, (abs(row["error"]), low, high, NONE)


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


def _absorption(fits: PaperFits, prob: float, seed: int) -> Iterator[tuple[str, str, Figure]]:
    table = trajectory_errors(_present(fits, "pooled"), prob=prob)
    low, high = interval_columns("law", prob)
    both = table.iloc[-1]
    subject = "Qwen2.5-72B, both"
    if len(_of_72b(table)) < 2 or len(table) != 3:
        held = ", ".join(table["backbone"].iloc[:-1])
        yield "mae", f"held out: {held}", (both["mae"], both[low], both[high], NONE)
        raise RequestError("the study does not hold runs of both Qwen2.5-72B models")
    yield "mae", subject, (both["mae"], both[low], both[high], NONE)
    nominal = f"{subject}; {100 * prob:g} % nominal"
    yield "covered", nominal, _single(both[f"covered_run_{100 * prob:g}"])


def _ablation(fits: PaperFits, prob: float, seed: int) -> Iterator[tuple[str, str, Figure]]:
    laws = {"with Bm": _present(fits, "pooled"), "without Bm": _present(fits, "no_decay")}
    table = compare_decay(laws, prob=prob)
    low, high = interval_columns("law", prob)
    fitted = table.query("subject == 'fitted'")
    held = table.query("subject == 'held out'")
    yield "S_min", "up to 8B", _single(fitted["S_min"].iloc[0])
    yield "S_max", "up to 8B", _single(fitted["S_max"].iloc[0])
    for row in fitted.to_dict("records"):
        yield "mae", f"up to 8B, {row['law']}", (row["mae"], row[low], row[high], NONE)
    for part in (fitted, held):
        row = part.iloc[1].to_dict()
        words = "fitted models (PSIS-LOO)" if row["subject"] == "fitted" else "held-out models"
        margin = norm.ppf((1 + prob) / 2) * row["elpd_difference_se"]
        difference = row["elpd_difference"]
        yield (
            "elpd_difference",
            f"{words}, without − with Bm",
            (difference, difference - margin, difference + margin, NONE),
        )
    of_backbones = table[~table["subject"].isin(["fitted", "held out"])].rename(
        columns={"subject": "backbone"}
    )
    found = False
    for law, own in of_backbones.groupby("law", sort=False):
        for subject, row in _of_72b(own).items():
            found = True
            yield "mae", f"{subject}, {law}", (row["mae"], row[low], row[high], NONE)
    if not found:
        raise RequestError("the study does not hold runs of the Qwen2.5-72B models")
    yield "S_above", "Qwen2.5-72B", _single(held["S_min"].iloc[0])


def _left_out(fits: PaperFits, prob: float, seed: int) -> Iterator[tuple[str, str, Figure]]:
    table = left_out_families(_present(fits, "left_out"))
    for row in table.to_dict("records"):
        yield "within_band", row["family"], _single(row["within_band"])
        yield "covered", f"{row['family']}; 95 % nominal", _single(row["covered_run_95"])


def _coefficients(fits: PaperFits, prob: float, seed: int) -> Iterator[tuple[str, str, Figure]]:
    table = coefficient_claims(fits.fit, prob=prob)
    if table.empty:
        raise RequestError("none of the study's text benchmarks is in Table 7")
    scale = float(np.linalg.norm(table["published"]) / np.linalg.norm(table["mean"]))
    low, high = interval_columns("posterior", prob)
    # A true λ of a simulated study is the published one, scaled to length 1.
    length = np.linalg.norm(table["true"]) if table["true"].notna().all() else NONE
    true_scale = float(np.linalg.norm(table["published"])) / length
    for row in table.to_dict("records"):
        ends = (scale * row[low], scale * row[high])
        yield "lambda", row["benchmark"], (scale * row["mean"], *ends, true_scale * row["true"])
    counts = table["verdict"].value_counts()
    for quantity, verdict in (("survive", "survives"), ("undecided", "undecided"), ("refuted", "refuted")):
        yield quantity, "claims of Table 7", _single(int(counts.get(verdict, 0)))


def _variants(fits: PaperFits, prob: float, seed: int) -> Iterator[tuple[str, str, Figure]]:
    from bayescdm.compare.families import population_rate
    from bayescdm.compare.tables import interval
    from bayescdm.paper.variants import population_draws
    from bayescdm.predict import LawDraws

    claims = variant_claims(fits.fit, prob=prob).set_index("quantity")
    draws = population_draws(fits.fit)
    draws["B0"] = population_rate(LawDraws.of(fits.fit), "B0")
    for quantity, values in draws.items():
        for position, variant in enumerate(("base", "instruct")):
            true = claims.at[quantity, f"true_{variant}"] if quantity in claims.index else NONE
            low, high = interval(values[:, position], "posterior", prob).values()
            yield quantity, variant, (values[:, position].mean(), float(low), float(high), float(true))
    ratio = draws["Bm"][:, 1] / draws["Bm"][:, 0]
    low, high = interval(ratio, "posterior", prob).values()
    true = claims.at["Bm", "true_instruct"] / claims.at["Bm", "true_base"]
    yield "ratio_Bm", "instruct / base", (float(np.median(ratio)), float(low), float(high), float(true))
    for row in claims.to_dict("records"):
        yield "p_claim", row["claim"], _single(row["p_claim"], row["holds"])
    errors = fit_error(fits.fit, prob=prob).set_index("group")
    low_name, high_name = interval_columns("law", prob)
    for variant in ("base", "instruct"):
        if variant in errors.index:
            row = errors.loc[variant]
            yield "mae", variant, (row["mae"], row[low_name], row[high_name], NONE)


def _families(fits: PaperFits, prob: float, seed: int) -> Iterator[tuple[str, str, Figure]]:
    names = {family: subject for subject, family in TABLE_3_FAMILIES.items()}
    low, high = interval_columns("posterior", prob)
    for row in family_estimates(fits.fit, prob=prob).to_dict("records"):
        if row["family"] in names:
            figure = (row["mean"], row[low], row[high], row["true"])
            yield row["quantity"], names[row["family"]], figure
    errors = fit_error(fits.fit, prob=prob).set_index("group")
    low, high = interval_columns("law", prob)
    for family, subject in names.items():
        if family in errors.index:
            row = errors.loc[family]
            yield "mae", subject, (row["mae"], row[low], row[high], NONE)


def _batch_size(fits: PaperFits, prob: float, seed: int) -> Iterator[tuple[str, str, Figure]]:
    study = fits.fit.study
    if not study.truth:
        raise RequestError(
            "the study holds no losses at several batch sizes, and those of the paper are not public"
        )
    absent = [name for name in TUNED if name not in study.backbones.index]
    if absent:
        raise NotFoundError(f"the study lacks {', '.join(absent)}, which the paper tuned")
    losses = simulate_batch_losses(study, seed)
    for name in losses["backbone"].unique():
        yield "tuned", str(name), _single(1)
    for size in BATCH_SIZES:
        yield "batch_size", f"setting {size}", _single(size)
    yield "volume_min", "all", _single(losses["volume"].min())
    yield "volume_max", "all", _single(losses["volume"].max())
    batch = fit_batch_size(fits.fit, losses, seed=seed)
    positive = batch.summary(prob=prob).set_index("quantity").at["beta", "p_positive"]
    yield "slope_positive", "the optimum grows with the composite", _single(positive, 1.0)
    low, high = interval_columns("backbone", prob)
    large = [name for name in ("Qwen2.5-72B", "Qwen2.5-72B-Instruct") if name in study.scored]
    if large:
        table = batch.predict(large, volumes=50e9, kind="backbone", prob=prob)
        for row in table.to_dict("records"):
            ends = (row[f"log2_batch_{low}"], row[f"log2_batch_{high}"])
            yield "log2_batch", f"{row['backbone']} at 50B tokens", (row["log2_batch"], *ends, NONE)
    for row in compare_batch_predictors(fits.fit, losses, seed=seed).to_dict("records"):
        words = "composite" if row["predictor"] == "composite" else "parameter count"
        yield "mae_log2", f"backbone left out, by {words}", _single(row["mae_log2"])


def _correlation(fits: PaperFits, prob: float, seed: int) -> Iterator[tuple[str, str, Figure]]:
    table = text_against_multimodal(fits.fit.study, prob=prob, seed=seed).set_index("quantity")
    low, high = interval_columns("posterior", prob)
    yield "models", "VLMs", _single(table["vlms"].iloc[0])
    for quantity in ("spearman", "slope", "intercept"):
        # The paper prints the intercept in points.
        scale = 100 if quantity == "intercept" else 1
        row = table.loc[quantity]
        yield quantity, "VLMs", (scale * row["value"], scale * row[low], scale * row[high], NONE)


def _losses(fits: PaperFits, prob: float, seed: int) -> Iterator[tuple[str, str, Figure]]:
    if not fits.fit.study.simulated:
        raise RequestError("the study holds no training losses, and those of the paper are not public")
    from bayescdm.loss.compare import point_fit_errors
    from bayescdm.loss.logs import prepare_logs, thin_logs
    from bayescdm.loss.simulate import simulate_losses

    errors = point_fit_errors(thin_logs(prepare_logs(simulate_losses(seed=seed)), 30))
    yield "mae", "compute law, one fit a family", _single(errors["compute"])
    yield "mae", "capability law, one fit", _single(errors["capability"])
