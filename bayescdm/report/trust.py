"""Sections on what stands behind the answers: diagnostics, data and warnings, settings and sources."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure as Drawing

from bayescdm.describe import family_table, recipe_table, recipes_left_out
from bayescdm.errors import Note
from bayescdm.fit import MAX_R_HAT, MIN_ESS, Fit
from bayescdm.plots import plot_convergence, plot_prior_posterior
from bayescdm.report.figures import NARROW, figure
from bayescdm.report.parts import Definitions, Notes, Part, Section
from bayescdm.tables import Column, table
from bayescdm.wording import counted, interval_label, short_count

__all__ = [
    "data_section",
    "diagnostics_section",
    "problem_of",
    "settings_section",
    "subtitle",
]

#: Quantities whose prior and posterior are drawn, where the model has them.
SCALARS = {
    "A_population": "transfer rate A",
    "B0_population": "base absorption B0",
    "Bm_population": "absorption decay Bm",
    "A_contrast": "instruct − base, ln A",
    "A_family_scale": "spread of families, ln A",
    "recipe_scale": "spread of recipes",
    "tau": "spread of backbones τ",
    "sigma": "residual scale σ",
}


def subtitle(fit: Fit) -> str:
    """Say what the numbers of a report are draws of."""
    draws = fit.posterior.sizes["chain"] * fit.posterior.sizes["draw"]
    return f"Posterior of the transfer–absorption law, model {fit.model}, {draws} draws."


def problem_of(fit: Fit) -> str:
    """Say what is wrong with the draws of a fit, for the banner; empty when they have converged."""
    diagnosis = fit.diagnose()
    return "" if diagnosis.converged else f"{diagnosis}. Nothing below can be relied on."


def diagnostics_section(fit: Fit, prob: float) -> Section:
    """Build the section on convergence and on what the data add to the priors."""
    diagnosis = fit.diagnose()
    shown = [name for name in SCALARS if name in fit.posterior and name in fit.group("prior")]

    def draw_convergence(width: float) -> Drawing:
        drawing = plt.figure(figsize=(width, 3.2), layout="constrained")
        plot_convergence(fit, ax=drawing.add_subplot())
        return drawing

    def draw_priors(width: float) -> Drawing:
        columns = 2 if width <= NARROW else 4
        rows = -(-len(shown) // columns)
        drawing = plt.figure(figsize=(width, 1.6 * rows + 0.5), layout="constrained")
        axes = np.ravel(drawing.subplots(rows, columns, squeeze=False))
        for ax, name in zip(axes, shown):
            plot_prior_posterior(fit, variable=name, label=SCALARS[name], ax=ax)
        for empty in axes[len(shown) :]:
            empty.set_axis_off()
        return drawing

    summary = fit.summary(prob=prob).rename_axis("quantity").reset_index()
    interval = interval_label("posterior", prob)
    ends = tuple(name for name in summary if str(name).startswith("posterior_"))
    columns = [
        Column("quantity", "quantity"),
        Column("mean", "mean", "number"),
        Column(interval, (ends[0], ends[1]), "number"),
        Column("R-hat", "r_hat", "rhat"),
        Column("bulk ESS", "ess_bulk", "integer"),
        Column("tail ESS", "ess_tail", "integer"),
    ]
    if "prior_sd_ratio" in summary:
        columns.append(Column("sd / prior sd", "prior_sd_ratio", "number"))
    state = "The draws have converged" if diagnosis.converged else "THE DRAWS HAVE NOT CONVERGED"
    parts: list[Part] = [
        figure("convergence", "R-hat and effective sample size of every quantity.", draw_convergence)
    ]
    if shown:
        parts.append(figure("priors", "What the data add: prior (line) and posterior (filled).", draw_priors))
    parts += [
        Definitions(DIAGNOSTIC_TERMS, folded="What these figures mean"),
        table(
            "summary",
            f"{len(summary)} quantities of the model",
            summary,
            columns,
            converged=diagnosis.converged,
            folded="All quantities",
        ),
    ]
    return Section("diagnostics", "Can the draws be trusted?", [f"{state}: {diagnosis}."], parts)


DIAGNOSTIC_TERMS = (
    ("R-hat", f"agreement of the chains; 1 is perfect, below {MAX_R_HAT} is asked for (Vehtari et al. 2021)"),
    (
        "ESS",
        f"independent draws that the dependent ones are worth, for the centre (bulk) and for interval ends "
        f"(tail); above {MIN_ESS} is asked for",
    ),
    ("divergence", "a place where the sampler could not follow the posterior; none is asked for"),
    ("sd / prior sd", "posterior sd over prior sd; near 1 the data say little about the quantity"),
)


def data_section(fit: Fit) -> Section:
    """Build the section on what was read, left out and flagged, every note included."""
    study = fit.study
    notes = [*dict.fromkeys([*fit.notes, *fit.capability.notes, *study.notes])]
    by_severity = {s: [note for note in notes if note.severity == s] for s in ("warning", "note")}
    recipes = recipe_table(study).reset_index()
    families = family_table(study).reset_index()
    simulated = (
        "a simulated study: its runs were drawn from known parameters" if study.simulated else "real runs"
    )
    used = study.fitted_runs
    of_families = study.backbones.loc[used["backbone"], "family"].nunique()
    sentences = [
        f"{study.name} ({simulated}): {len(used)} of {counted(len(study.runs), 'run')} inform the law, on "
        f"{counted(used['backbone'].nunique(), 'backbone')} of {counted(of_families, 'family')} under "
        f"{counted(used['recipe'].nunique(), 'recipe')}; {counted(len(study.scored), 'backbone')} of the "
        f"study have text scores, on {counted(study.text_scores.shape[1], 'benchmark')}.",
        *recipes_left_out(study),
    ]
    if by_severity["warning"]:
        n = len(by_severity["warning"])
        sentences.append(f"{counted(n, 'warning')} {'limits' if n == 1 else 'limit'} the answers:")
    parts: list[Part] = [
        Notes(by_severity["warning"]),
        Notes(
            by_severity["note"],
            folded=f"{counted(len(by_severity['note']), 'note')} on what was done to the data",
        ),
        table("recipes", "Runs of each recipe", recipes, RECIPE_COLUMNS, folded="Recipes"),
        table("families-data", "Backbones of each family", families, FAMILY_COLUMNS, folded="Families"),
    ]
    return Section("data", "Data and warnings", sentences, parts)


RECIPE_COLUMNS = (
    Column("recipe", "recipe"),
    Column("runs", "runs", "integer"),
    Column("with text scores", "fitted_runs", "integer"),
    Column("backbones", "backbones", "integer"),
    Column("benchmarks averaged", "benchmarks", "integer"),
    Column("volume, smallest", "volume_min", "count"),
    Column("largest", "volume_max", "count"),
)
FAMILY_COLUMNS = (
    Column("family", "family"),
    Column("base", "base", "integer"),
    Column("instruct", "instruct", "integer"),
    Column("base with runs", "base_with_runs", "integer"),
    Column("instruct with runs", "instruct_with_runs", "integer"),
    Column("runs", "runs", "integer"),
)


def settings_section(fit: Fit) -> Section:
    """Build the section on model, settings, versions and sources."""
    settings, study = fit.settings, fit.study
    sampler = ", ".join(f"{name} {value}" for name, value in settings.get("sampler", {}).items())
    versions = ", ".join(f"{name} {version}" for name, version in settings.get("versions", {}).items())
    items = [
        ("model", f"{fit.model} (SHA-256 of the file: {settings.get('source_hash', 'unknown')})"),
        ("sampler", f"NUTS, {sampler}, seed {settings.get('seed', 'unknown')}"),
        ("text components", str(len(fit.capability.components))),
        (
            "components from",
            f"{counted(len(fit.capability.fitted_on), 'backbone')} ({fit.capability.population})",
        ),
        ("D_ref", f"{short_count(study.volume_ref or 1)} {study.volume_unit}"),
        ("versions", versions),
    ]
    cited = [Note("source", source) for source in study.sources]
    parts: list[Part] = [Definitions(items)]
    if cited:
        parts.append(Notes(cited, folded=counted(len(cited), "source")))
    return Section("settings", "Settings, versions and sources", [], parts)
