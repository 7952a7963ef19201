"""The command ``choose``: which backbone, at what cost, how sure, and which run would tell most."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayescdm.cli.fits import (
    announced,
    candidates_of,
    count,
    opened,
    positive,
    refuse_fitting,
    sampler,
    seeds,
    size,
    volume_of,
)
from bayescdm.cli.frame import (
    AsJson,
    Benchmarks,
    CandidateFile,
    Chains,
    Draws,
    Model,
    Overwrite,
    Prob,
    Recipe,
    SeedOfTwo,
    TreatOutliers,
    Tune,
    Unscored,
    app,
)
from bayescdm.cli.output import end, print_json, print_table, progress
from bayescdm.errors import RequestError
from bayescdm.intervals import check_probability

if TYPE_CHECKING:
    from bayescdm.decide import Choice

__all__: list[str] = []

#: Candidates printed in the terminal; page and JSON hold all.
PRINTED = 15
#: Next runs printed.
PRINTED_RUNS = 5
#: Columns that fit into a terminal, besides interval and cost.
PRINTED_COLUMNS = (
    "backbone",
    "accuracy, %",
    "volume",
    "P(best)",
    "P(top 3)",
    "P(first is better)",
    "regret, points",
)
GIGABYTE = 1e9
#: What the name of a page ends in.
PAGES = (".html", ".htm")
#: What says how costs are counted.
PRICED = ("flops", "tokens_per_sample", "projector_volume", "costs", "budget")


@app.command()
def choose(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="STUDY|FIT", help="Folder or name of a study, or a fit (.nc).")
    ],
    candidates: CandidateFile = None,
    recipe: Recipe = None,
    volume: Annotated[str | None, typer.Option(help="Data volume of every candidate, such as 1.2M.")] = None,
    flops: Annotated[
        str | None,
        typer.Option(help="Budget of training, such as 3e19; without --volume each candidate gets its own."),
    ] = None,
    tokens_per_sample: Annotated[
        float | None,
        typer.Option(help="Tokens that the backbone meets in a sample, image included; for FLOPs."),
    ] = None,
    projector_volume: Annotated[
        str | None,
        typer.Option(help="Part of the volume that trains the projector alone, such as 558K."),
    ] = None,
    min_volume: Annotated[
        str | None,
        typer.Option(
            help="Least data that a budget is spent on; by default the least that any run has used."
        ),
    ] = None,
    max_volume: Annotated[
        str | None, typer.Option(help="Most data that there is, for a budget without --volume.")
    ] = None,
    costs: Annotated[
        Path | None, typer.Option(help="Costs of your own instead of FLOPs: CSV of backbone, volume, cost.")
    ] = None,
    budget: Annotated[float | None, typer.Option(help="Budget in the unit of --costs.")] = None,
    smallest: Annotated[str | None, typer.Option("--min-size", help="Fewest parameters, such as 1B.")] = None,
    largest: Annotated[str | None, typer.Option("--max-size", help="Most parameters, such as 9B.")] = None,
    memory: Annotated[
        float | None, typer.Option("--max-memory", help="GB that the weights may take, 2 bytes a parameter.")
    ] = None,
    bytes_per_param: Annotated[
        float, typer.Option("--bytes-per-parameter", help="Bytes a parameter takes.")
    ] = 2.0,
    licence: Annotated[
        list[str] | None,
        typer.Option("--licence", help="Licence that is allowed, as in the candidates' column; repeatable."),
    ] = None,
    exclude_family: Annotated[
        list[str] | None,
        typer.Option("--exclude-family", help="Family that is out of the question; repeatable."),
    ] = None,
    equivalent: Annotated[
        float, typer.Option("--equivalent", help="Accuracy points within which two are practically equal.")
    ] = 1.0,
    reference: Annotated[
        str | None, typer.Option("--reference", help="What differences are from; the first by default.")
    ] = None,
    next_run: Annotated[
        bool, typer.Option("--next", help="Work out which training run would tell most (EVSI).")
    ] = False,
    prob: Prob = 0.9,
    model: Model = "transfer_hierarchical",
    seed: SeedOfTwo = None,
    benchmark: Benchmarks = None,
    treat_outliers_as_missing: TreatOutliers = False,
    unscored: Unscored = "leave_out",
    draws: Draws = None,
    tune: Tune = None,
    chains: Chains = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write a self-contained page, such as choice.html.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Choose a backbone, at a volume or within a budget, and say how sure that is."""
    from bayescdm.atomic import check_place
    from bayescdm.reading import parse_flops

    # What can be refused is refused before minutes of sampling.
    refuse_fitting(context, source)
    check_probability(prob)
    if report is not None:
        _check_page(report)
        check_place(report, overwrite=overwrite)
    positive("--max-memory", memory)
    positive("--bytes-per-parameter", bytes_per_param)
    if not equivalent >= 0:
        raise RequestError(f"--equivalent {equivalent:g}: write accuracy points, 0 or more")
    study, fitted = opened(source, benchmark, unscored, treat_outliers_as_missing=treat_outliers_as_missing)
    # A faulty study is refused before the sampler is imported.
    from bayescdm.decide import Constraints, read_cost_table
    from bayescdm.decide import choose as chosen_by
    from bayescdm.decide.choice import check_volumes
    from bayescdm.decide.constraints import check_constraints
    from bayescdm.decide.costs import price
    from bayescdm.fit import fit

    limits = Constraints(
        min_params=None if smallest is None else size("--min-size", smallest),
        max_params=None if largest is None else size("--max-size", largest),
        max_memory=None if memory is None else memory * GIGABYTE,
        bytes_per_param=bytes_per_param,
        licences=tuple(licence or ()),
        exclude_families=tuple(exclude_family or ()),
    )
    of_sampler, of_draws = seeds(seed)
    asked: dict[str, Any] = {
        "recipe": recipe,
        "volume": None if volume is None else volume_of(volume, study),
        "flops": None if flops is None else parse_flops(flops),
        "tokens_per_sample": positive("--tokens-per-sample", tokens_per_sample),
        "projector_volume": 0.0
        if projector_volume is None
        else count("--projector-volume", projector_volume),
        "min_volume": None if min_volume is None else volume_of(min_volume, study, "--min-volume"),
        "max_volume": None if max_volume is None else volume_of(max_volume, study, "--max-volume"),
        "costs": None if costs is None else read_cost_table(costs),
        "budget": positive("--budget", budget),
        "constraints": limits,
        "equivalent": equivalent / 100,
        "reference": reference,
        "next_run": next_run,
        "prob": prob,
        "seed": of_draws,
    }
    price(study, **{name: asked[name] for name in PRICED})
    check_volumes(
        asked["volume"],
        least=asked["min_volume"],
        most=asked["max_volume"],
        projector_volume=asked["projector_volume"],
    )
    who = candidates_of(study, candidates, once=True)
    check_constraints(limits, who[1] if isinstance(who, tuple) else study.backbones.loc[study.scored])
    if fitted is None:
        watched = announced(study, model)
        settings = sampler(draws, tune, chains)
        fitted = fit(study, model=model, seed=of_sampler, settings=settings, progress=watched)
    choice = chosen_by(fitted, who, **asked)
    if report is not None:
        progress(f"{fitted.study.name}: drawing the page")
        choice.write(report, overwrite=overwrite)
    if as_json:
        print_json({"report": None if report is None else str(report), **choice.to_dict()})
    else:
        _show(choice, report)
    end(fitted)


def _check_page(path: Path) -> None:
    """Refuse a name that no browser would take for a page."""
    if path.suffix.lower() not in PAGES:
        raise RequestError(f"--report {path}: is a page; let its name end in .html")


def _show(choice: Choice, place: Path | None) -> None:
    """Print ranking, what is infeasible, the next runs, and the sentences."""
    from bayescdm.columns import FRONT, choice_columns, next_run_columns
    from bayescdm.decide.runs import least_volumes
    from bayescdm.tables import Column
    from bayescdm.wording import counted, first_of, short_names

    asked, unit = choice.question, choice.question["cost_unit"]
    shown = choice_columns(asked["kind"], asked["probability"], unit)
    kept = [
        c
        for c in shown
        if c.title in (*PRINTED_COLUMNS, unit, FRONT) or (isinstance(c.source, tuple) and c is shown[2])
    ]
    first = choice.shown_ranking().assign(backbone=short_names(choice.ranking["backbone"])).head(PRINTED)
    title = first_of(len(first), len(choice.ranking), "candidate")
    print_table(first, kept, title=title, converged=choice.converged)
    if choice.next_runs is not None:
        typer.echo()
        best = least_volumes(choice.next_runs).head(PRINTED_RUNS)
        runs = best.assign(backbone=_short_names_of(choice, best["backbone"]))
        told = counted(len(runs), "backbone")
        title = f"next runs of {told}, each at the least volume that tells nearly as much as more"
        print_table(runs, next_run_columns(unit), title=title, converged=choice.converged)
    if len(choice.infeasible):
        typer.echo()
        columns = [Column("infeasible", "backbone"), Column("reason", "reason")]
        print_table(choice.infeasible, columns, title="infeasible candidates", converged=choice.converged)
    typer.echo()
    for sentence in (*choice.sentences, choice.by_volume, *asked["chosen"]):
        typer.echo(sentence)
    for note in choice.notes:
        if note.code != "not-converged":
            typer.echo(str(note))
    if place is not None:
        typer.echo(f"\nreport: {place}")


def _short_names_of(choice: Choice, names: Any) -> list[str]:
    """Names as the ranking shortens them, of labels that may repeat."""
    from bayescdm.wording import short_by_name

    short = short_by_name(choice.ranking["backbone"])
    return [short[name] for name in names]
