"""Commands about fits: ``fit``, ``predict`` and ``compare``."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bayescdm.cli.frame import (
    AsJson,
    Benchmarks,
    CandidateFile,
    Chains,
    Components,
    Draws,
    FitFile,
    Kind,
    Model,
    Overwrite,
    Population,
    Prob,
    Recipe,
    Seed,
    StudyName,
    TableOut,
    TreatOutliers,
    Tune,
    Unscored,
    app,
)
from bayescdm.cli.output import end, print_json, progress, show_frame
from bayescdm.errors import Note, RequestError
from bayescdm.wording import short_count

if TYPE_CHECKING:
    from bayescdm.fit import Fit
    from bayescdm.predict import Candidates
    from bayescdm.sampling import SamplerSettings
    from bayescdm.study import Study

__all__ = [
    "announced",
    "asked_benchmarks",
    "candidates_of",
    "candidates_read",
    "changed",
    "count",
    "far_volumes",
    "load",
    "opened",
    "positive",
    "refuse_fitting",
    "sampler",
    "seeds",
    "size",
    "volume_of",
]


@app.command()
def fit(
    study: StudyName,
    out: Annotated[Path, typer.Option("--out", help="Where the fit is written (NetCDF).")],
    model: Model = "transfer_hierarchical",
    seed: Seed = 1,
    components: Components = None,
    population: Population = "all",
    benchmark: Benchmarks = None,
    treat_outliers_as_missing: TreatOutliers = False,
    unscored: Unscored = "leave_out",
    draws: Draws = None,
    tune: Tune = None,
    chains: Chains = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Fit a model to a study and write the draws to one file."""
    from bayescdm.atomic import check_place

    # Refused before the sampler is imported, let alone started.
    check_place(out, overwrite=overwrite)
    loaded = load(study, benchmark, treat_outliers_as_missing=treat_outliers_as_missing, unscored=unscored)
    from bayescdm.fit import fit as sample

    watched = announced(loaded, model)
    fitted = sample(
        loaded,
        model=model,
        components=components,
        population=population,
        seed=seed,
        settings=sampler(draws, tune, chains),
        progress=watched,
    )
    fitted.save(out, overwrite=overwrite)
    diagnosis = fitted.diagnose()
    if as_json:
        print_json(
            {
                "fit": str(out),
                **fitted.facts(),
                "settings": fitted.settings,
                "diagnosis": {**vars(diagnosis), "converged": diagnosis.converged},
            }
        )
    else:
        typer.echo(f"{fitted.model} on {loaded.name}: {diagnosis}")
        typer.echo(f"written to {out}")
    end(fitted)


@app.command()
def predict(
    fit: FitFile,
    volume: Annotated[
        list[str], typer.Option("--volume", help="Data volume, such as 1.2M; may be repeated.")
    ],
    candidates: CandidateFile = None,
    recipe: Recipe = None,
    kind: Kind = "run",
    prob: Prob = 0.9,
    seed: Annotated[int, typer.Option(min=0, help="Seed of what is drawn for new backbones and runs.")] = 0,
    out: TableOut = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Predict the accuracy of backbones at data volumes, with intervals of a stated kind."""
    from bayescdm.columns import prediction_columns
    from bayescdm.fit import load_fit
    from bayescdm.predict import predict as predicted
    from bayescdm.predict import prediction_table

    fitted = load_fit(fit)
    asked, notes = candidates_read(fitted.study, candidates)
    values = predicted(
        fitted,
        asked,
        volumes=[volume_of(text, fitted.study) for text in volume],
        recipe=recipe,
        kind=kind,
        prob=prob,
        seed=seed,
    )
    table = prediction_table(values)
    title = f"{fitted.study.name}: recipe {values.attrs['recipe']}, volume in {fitted.study.volume_unit}"
    columns = prediction_columns(kind, prob)
    show_frame(table, columns, title=title, as_json=as_json, out=out, overwrite=overwrite, notes=notes)
    end(fitted)


class Subject(StrEnum):
    """What can be compared."""

    families = "families"
    variants = "variants"
    backbones = "backbones"
    benchmarks = "benchmarks"
    models = "models"


@app.command()
def compare(
    fit: FitFile,
    subject: Annotated[Subject, typer.Argument(help="What is compared.")],
    candidates: CandidateFile = None,
    recipe: Recipe = None,
    volume: Annotated[
        str | None,
        typer.Option(
            help="Data volume, such as 1.2M. families, variants: where A is stated, D_ref by default. "
            "backbones: by default the one that most runs of the recipe use."
        ),
    ] = None,
    other: Annotated[
        list[Path] | None,
        typer.Option("--with", help="models: another fit of the same runs; may be repeated."),
    ] = None,
    prob: Prob = 0.9,
    out: TableOut = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Compare families, base with instruct, backbones, text benchmarks, or models."""
    from bayescdm.fit import load_fit

    fitted = load_fit(fit)
    at = None if volume is None else volume_of(volume, fitted.study)
    shown: dict[str, Any]
    match subject:
        case Subject.backbones:
            shown = _backbones(fitted, candidates, recipe, at, prob)
        case Subject.models:
            shown = _models(fitted, other or [])
        case _:
            shown = _parameters(fitted, subject, at, prob)
    show_frame(**shown, as_json=as_json, out=out, overwrite=overwrite)
    end(fitted)


def _backbones(
    fit: Fit, candidates: Path | None, recipe: str | None, volume: float | None, prob: float
) -> dict[str, Any]:
    from bayescdm.columns import ranking_columns
    from bayescdm.report.answers import answer
    from bayescdm.wording import short_count

    who, notes = candidates_read(fit.study, candidates, once=True)
    ranked = answer(fit, candidates=who, recipe=recipe, volume=volume, prob=prob)
    asked = ranked.question
    for note in ranked.notes:
        typer.echo(str(note), err=True)
    title = f"{fit.study.name}: {asked.recipe} at {short_count(asked.volume)} {fit.study.volume_unit}"
    columns = ranking_columns(asked.kind, prob)
    return {"frame": ranked.ranking, "columns": columns, "title": title, "notes": (*notes, *ranked.notes)}


def _parameters(fit: Fit, subject: Subject, volume: float | None, prob: float) -> dict[str, Any]:
    from bayescdm import columns, compare
    from bayescdm.wording import short_count

    if subject is Subject.benchmarks:
        frame = compare.transfer_coefficients(fit, prob=prob)
        laid_out = columns.benchmark_columns(frame, prob)
        return {"frame": frame, "columns": laid_out, "title": f"{fit.study.name}: transfer coefficients λ"}
    if subject is Subject.families:
        frame = compare.compare_families(fit, volume=volume, prob=prob)
        # B0, Bm and prior ratios would not fit into a terminal; CSV and JSON hold them.
        laid_out = columns.family_columns(frame, prob, quantities=("A", "mean_B"), prior=False)
        shown = columns.by_family(frame)
    else:
        frame = shown = compare.compare_variants(fit, volume=volume, prob=prob)
        laid_out = columns.variant_columns(frame, prob)
    at = f"{short_count(frame.attrs['volume'])} {fit.study.volume_unit}"
    title = f"{fit.study.name}: rates of {subject}; A at {at}"
    return {"frame": frame, "shown": shown, "columns": laid_out, "title": title}


def _models(fit: Fit, others: list[Path]) -> dict[str, Any]:
    from bayescdm.columns import MODEL_COLUMNS
    from bayescdm.compare import compare_models
    from bayescdm.fit import load_fit

    fits = {fit.model: fit}
    for path in others:
        further = load_fit(path)
        fits[further.model if further.model not in fits else f"{further.model} ({path.name})"] = further
    frame = compare_models(fits)
    return {"frame": frame, "columns": MODEL_COLUMNS, "title": frame.attrs["method"]}


def load(
    study: str,
    benchmark: list[str] | None = None,
    *,
    treat_outliers_as_missing: bool = False,
    unscored: Literal["leave_out", "by_size"] = "leave_out",
) -> Study:
    """Load a study with the benchmarks, the flagged text scores and the unscored backbones as asked."""
    from bayescdm.outliers import flag_text_outliers, treat_as_missing
    from bayescdm.reading import load_study

    loaded = load_study(study, benchmarks=asked_benchmarks(benchmark)).with_unscored(unscored)
    return treat_as_missing(loaded, flag_text_outliers(loaded)) if treat_outliers_as_missing else loaded


#: Options of commands that take a study or a fit which only act when a study is fitted.
OF_FITTING = (
    "model",
    "draws",
    "tune",
    "chains",
    "benchmark",
    "treat_outliers_as_missing",
    "unscored",
    "sensitivity",
)
#: Seeds where none is given: of the sampler, and of what is drawn for new backbones.
SAMPLER_SEED, DRAWN_SEED = 1, 0


def refuse_fitting(context: typer.Context, source: str) -> None:
    """Refuse options that cannot act because the source is fitted already, one line each."""
    if not source.endswith(".nc"):
        return
    sources = {name: context.get_parameter_source(name) for name in OF_FITTING if name in context.params}
    given = [name for name, where in sources.items() if where is not None and where.name == "COMMANDLINE"]
    if given:
        raise RequestError(
            "\n".join(
                f"--{name.replace('_', '-')} belongs to fitting; {source} is fitted already" for name in given
            )
        )


def seeds(asked: int | None) -> tuple[int, int]:
    """Return the seeds of the sampler and of what is drawn for new backbones."""
    return (SAMPLER_SEED, DRAWN_SEED) if asked is None else (asked, asked)


def opened(
    source: str,
    benchmark: list[str] | None,
    unscored: Literal["leave_out", "by_size"],
    *,
    treat_outliers_as_missing: bool,
) -> tuple[Study, Fit | None]:
    """Return the study of a saved fit with that fit, or a study that is still to be fitted."""
    if source.endswith(".nc"):
        from bayescdm.fit import load_fit

        fitted = load_fit(source)
        return fitted.study, fitted
    loaded = load(source, benchmark, treat_outliers_as_missing=treat_outliers_as_missing, unscored=unscored)
    return loaded, None


def announced(study: Study, model: str) -> bool:
    """Say that a model is compiled and sampled; return whether somebody watches."""
    return progress(f"{study.name}: compiling {model} (about 20 s), then sampling")


def sampler(draws: int | None, tune: int | None, chains: int | None) -> SamplerSettings:
    """Return the sampler settings, the defaults where nothing was asked."""
    from bayescdm.sampling import DEFAULTS

    return changed(DEFAULTS, draws, tune, chains)


def changed(
    settings: SamplerSettings, draws: int | None, tune: int | None, chains: int | None
) -> SamplerSettings:
    """Return sampler settings with what was asked in place."""
    from dataclasses import replace

    asked = {"draws": draws, "tune": tune, "chains": chains}
    return replace(settings, **{name: value for name, value in asked.items() if value is not None})


def asked_benchmarks(benchmark: list[str] | None) -> str | list[str] | None:
    """Return what ``--benchmark`` names: one, a list, or None for what the study says."""
    return benchmark[0] if benchmark and len(benchmark) == 1 else benchmark


def candidates_of(study: Study, path: Path | None, *, once: bool = False) -> Candidates:
    """Read a candidate file; what was repaired or left out in it is said on stderr.

    Where candidates are compared with each other, each may stand `once` only.
    """
    return candidates_read(study, path, once=once, need_scores=False)[0]


def candidates_read(
    study: Study, path: Path | None, *, once: bool = False, need_scores: bool = True
) -> tuple[Candidates, tuple[Note, ...]]:
    """Read a candidate file; return its notes as well, which are said on stderr."""
    if path is None:
        return None, ()
    from bayescdm.predict import check_once
    from bayescdm.reading import read_candidates

    text_scores, backbones, notes = read_candidates(path, study, need_scores=need_scores)
    if once:
        check_once(text_scores.index)
    for note in notes:
        typer.echo(str(note), err=True)
    return (text_scores, backbones), notes


#: Factor below the smallest observed volume from which on a letter such as M seems to be missing.
FAR_BELOW = 1000
#: Factor above the largest observed volume from which on it is said in which unit a volume was read.
FAR_ABOVE = 100


def volume_of(text: str, study: Study, option: str = "--volume") -> float:
    """Read a data volume; one that lacks its letter, such as 1.2 for 1.2M, is refused with the letter."""
    volume = count(option, text)
    observed = study.runs["volume"].dropna()
    if observed.empty or volume * FAR_BELOW > observed.min():
        return volume
    low, high = observed.min() / FAR_BELOW, observed.max() * FAR_BELOW
    letters = [letter for letter, power in LETTERS.items() if low < volume * power < high]
    middle = float(study.volume_ref or 1.0)
    letters.sort(key=lambda letter: abs(math.log(volume * LETTERS[letter] / middle)))
    hint = f"; did you mean {text}{letters[0]}?" if letters and text[-1:].isdigit() else ""
    raise RequestError(
        f"{option} {text}: {_with_unit(volume, study.volume_unit)} is less than a thousandth of the smallest "
        f"observed volume, {short_count(float(observed.min()))}{hint}"
    )


def far_volumes(volumes: Iterable[float], study: Study) -> tuple[Note, ...]:
    """Say in which unit volumes far above all observed ones were read: another may have been meant."""
    largest, unit = float(study.runs["volume"].max()), study.volume_unit
    return tuple(
        Note(
            "volume-far-beyond",
            f"{short_count(volume)} was read as {unit}, the study's unit; its largest volume is "
            f"{short_count(largest)} {unit}. If another unit was meant, convert the volume",
            "warning",
            "--volume",
        )
        for volume in volumes
        if volume > FAR_ABOVE * largest
    )


def _with_unit(volume: float, unit: str) -> str:
    """Write a small volume with its unit, in the singular where it is one."""
    return f"{volume:g} {unit.removesuffix('s') if volume == 1 else unit}"


def positive(option: str, value: float | None) -> float | None:
    """Refuse what is no positive number; an error names the option."""
    if value is not None and not 0 < value < math.inf:
        raise RequestError(f"{option} {value:g}: write a number above 0")
    return value


#: What a count may end in.
LETTERS = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}


def count(option: str, text: str) -> float:
    """Read a count such as 1.2M or 7B; an error names the option."""
    from bayescdm.errors import InputError
    from bayescdm.reading import parse_count

    try:
        return parse_count(text)
    except InputError as error:
        raise InputError(f"{option}: {error}") from None


#: Parameters below which a size lacks its letter: 4 for 4B.
SMALLEST_SIZE = 1e6


def size(option: str, text: str) -> float:
    """Read a number of parameters; one that lacks its letter is refused with it, as in ``allocate``."""
    from bayescdm.loss.allocate import absolute_count

    return absolute_count(text, option, SMALLEST_SIZE)
