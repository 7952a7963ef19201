"""Commands about loss laws: ``loss`` and ``allocate``."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayescdm.atomic import replacing
from bayescdm.cli.frame import AsJson, app
from bayescdm.cli.output import NOT_CONVERGED, print_json
from bayescdm.errors import RequestError, unknown_name
from bayescdm.intervals import check_probability

if TYPE_CHECKING:
    from bayescdm.loss.allocate import Allocation
    from bayescdm.loss.fit import LossFit
    from bayescdm.loss.mixed_modal import MixedModalFit
    from bayescdm.loss.scope import Scope
    from bayescdm.loss.study import LossStudy

__all__: list[str] = []

#: Laws by the names of ``--law``, and what the point fit calls each: it pools nothing.
POINT_LAW = {
    "capability": "capability",
    "compute": "compute",
    "compute-pooled": "compute",
    "chinchilla": "compute",
    "contrastive": "contrastive",
}
MIXED_MODAL = "mixed-modal"
#: Points that the package brings, and logs that it simulates.
POINTS = ("chinchilla", "openclip")
PACKAGED = (*POINTS, "simulated")
#: What ``allocate --plots`` writes.
PICTURES = ("loss_curve", "iso_flop", "iso_loss")


class Interval(StrEnum):
    """What an interval around a predicted loss covers."""

    law = "law"
    run = "run"


Seed = Annotated[int, typer.Option(min=0, help="Same seed, same result.")]
Prob = Annotated[float, typer.Option(help="Probability of the intervals.")]
Overwrite = Annotated[bool, typer.Option(help="Replace files that exist.")]


@app.command()
def loss(
    logs: Annotated[
        str,
        typer.Argument(
            help="CSV or folder of loss logs; or chinchilla, openclip, simulated, mixed-modal (packaged); or "
            "a fit that --out saved."
        ),
    ],
    law: Annotated[
        str | None,
        typer.Option(
            help="capability, compute, compute-pooled, chinchilla, contrastive or mixed-modal; by default "
            "what fits."
        ),
    ] = None,
    runs: Annotated[Path | None, typer.Option(help="CSV with run, family, params, tokens_per_step.")] = None,
    text_scores: Annotated[
        str | None, typer.Option(help="Text scores for the capability law: CSV, or name of a packaged study.")
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="Title of a column, such as loss=nll; repeat for several.")
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="What the runs were, such as metric='text loss'; repeat for several."),
    ] = None,
    first_step: Annotated[
        int | None, typer.Option(help="Drop losses before this step; 0 keeps all.", show_default="1000")
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(help="Losses in the rolling mean; 0 leaves them as logged.", show_default="5"),
    ] = None,
    point: Annotated[bool, typer.Option("--point", help="Point fit in place of a posterior.")] = False,
    resamples: Annotated[int, typer.Option(min=0, help="With --point: bootstrap resamples.")] = 0,
    compare: Annotated[
        bool, typer.Option("--compare", help="Compare one capability law with compute laws by family.")
    ] = False,
    at: Annotated[
        Path | None,
        typer.Option(help="With a saved fit: predict at the points of this CSV, a column for N, for D, …"),
    ] = None,
    kind: Annotated[
        Interval | None,
        typer.Option(
            help="With --at: what the interval covers, the law's parameters or one run.", show_default="law"
        ),
    ] = None,
    prob: Prob = 0.9,
    seed: Seed = 1,
    out: Annotated[Path | None, typer.Option(help="Save the posterior fit to this file (.nc).")] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Fit a loss law to training logs or to packaged points, with intervals and the scope of the fit."""
    check_probability(prob)
    given = {
        "--runs": runs, "--column": column, "--text-scores": text_scores, "--first-step": first_step,
        "--window": window, "--scope": scope,
    }  # fmt: skip
    if _is_saved(logs):
        fitting = {**given, "--law": law, "--point": point or None, "--resamples": resamples or None,
                   "--compare": compare or None, "--out": out}  # fmt: skip
        _saved_law(Path(logs), [option for option, value in fitting.items() if value is not None], at=at,
                   kind=kind, prob=prob, seed=seed, as_json=as_json)  # fmt: skip
        return
    if at is not None or kind is not None:
        option = "--at" if at is not None else "--kind"
        raise RequestError(
            f"{option} belongs to a saved fit: save one with --out fit.nc, and give it for {logs}"
        )
    _refuse_files({"--out": (out, ".nc")}, overwrite=overwrite)
    if resamples and not point:
        raise RequestError("--resamples belongs to --point: a posterior has its intervals without resampling")
    if point and out is not None:
        raise RequestError("--out saves a posterior: leave out --point, or keep what --point --json prints")
    if law is not None and law not in (*POINT_LAW, MIXED_MODAL):
        raise unknown_name("loss law", law, (*POINT_LAW, MIXED_MODAL))
    mixed_modal = law == MIXED_MODAL or (logs == MIXED_MODAL and law is None)
    _refuse_what_is_not_read(logs, {option for option, value in given.items() if value is not None},
                             mixed_modal=mixed_modal)  # fmt: skip
    if _is_packaged(logs, "openclip") and law == "chinchilla":
        raise RequestError(
            "openclip: its four training sets have a law each; --law chinchilla would pool them"
        )
    if mixed_modal:
        if compare:
            raise RequestError("--compare sets capability against compute laws: it has no mixed-modal law")
        _mixed_modal(
            logs, point=point, resamples=resamples, seed=seed, prob=prob, out=out, overwrite=overwrite,
            as_json=as_json,
        )  # fmt: skip
        return
    if compare and (point or out is not None or law is not None):
        raise RequestError(
            "--compare fits the laws that it compares and saves none: leave out --point, --out, --law"
        )
    study = _loss_study(
        logs, runs, text_scores, _titles(column or []), 1000 if first_step is None else first_step,
        5 if window is None else window,
    )  # fmt: skip
    stated = _titles(scope or [], option="--scope")
    study = replace(study, scope=_stated(study.scope, stated, packaged=_is_packaged(logs, *PACKAGED)))
    chosen = law or _usual_law(logs, study)
    if compare:
        from bayescdm.loss.compare import compare_loss_laws

        comparison = compare_loss_laws(study, seed=seed)
        if as_json:
            print_json(comparison.to_dict())
        else:
            typer.echo(f"{comparison}\n\n{study.scope}")
        if not comparison.converged:
            raise typer.Exit(NOT_CONVERGED)
        return
    if point:
        _point_fits(study, chosen, seed=seed, resamples=resamples, prob=prob, as_json=as_json)
        return
    from bayescdm.loss.fit import fit_loss

    fit = fit_loss(study, chosen, seed=seed, progress=sys.stderr.isatty())
    if out is not None:
        fit.save(out, overwrite=overwrite)
    if as_json:
        print_json(fit.to_dict(prob=prob))
    else:
        typer.echo(fit.describe(prob=prob))
        if out is not None:
            typer.echo(f"\nsaved to {out}{_what_reads(fit, out)}")
    if not fit.diagnose().converged:
        raise typer.Exit(NOT_CONVERGED)


@app.command()
def allocate(
    flops: Annotated[str, typer.Option(help="Budget in FLOPs, such as 1e21.")],
    preset: Annotated[
        str | None,
        typer.Option(help="Published constants: chinchilla. Without it, the posterior of the points."),
    ] = None,
    fit: Annotated[Path | None, typer.Option(help="A fit saved by `bayescdm loss --out`.")] = None,
    family: Annotated[str | None, typer.Option(help="With --fit: whose constants.")] = None,
    size: Annotated[
        list[str] | None, typer.Option(help="Model size to compare, absolute (7B); repeat for several.")
    ] = None,
    tokens_served: Annotated[
        str, typer.Option(help="Tokens that will be served; 0 leaves serving out.")
    ] = "0",
    metric: Annotated[
        str | None, typer.Option(help="What you ask about; refused unless the law was fitted to it.")
    ] = None,
    prob: Prob = 0.9,
    seed: Seed = 1,
    page: Annotated[
        Path | None, typer.Option(help="Write the interactive explorer to this file (.html).")
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(help="Write the plots of loss, equal compute and equal loss into this folder."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the loss curve to this file (.csv).")] = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Find the model size and tokens of least loss at a budget, with what the law is about and its limits."""
    from bayescdm.loss.allocate import allocate as find
    from bayescdm.loss.study import SMALLEST_PARAMS

    # Everything that can be refused is refused before the sampler runs.
    pictures = () if plots is None else tuple(plots / f"{name}.png" for name in PICTURES)
    _refuse_files({"--page": (page, ".html"), "--out": (out, ".csv")}, *pictures, overwrite=overwrite)
    if family is not None and fit is None:
        raise RequestError(
            "--family belongs to --fit: neither the preset nor the packaged points have families"
        )
    for asked in size or []:
        _check_count("--size", asked, SMALLEST_PARAMS)
    if tokens_served.strip(" 0.") != "":
        _check_count("--tokens-served", tokens_served, 1e3)
    checked = find(flops, preset or "chinchilla", tokens_served=tokens_served, sizes=list(size or []) or None,
                   metric=None if fit else metric, prob=prob)  # fmt: skip
    laws = _laws(preset, fit, family, seed)
    result = find(
        flops, laws[0], tokens_served=tokens_served, sizes=list(size or []) or None, metric=metric, prob=prob
    )
    if page is not None:
        from bayescdm.loss.page import write_explorer

        chosen = None if result.sizes.empty else float(result.sizes["params"].iloc[0])
        write_explorer(
            page, laws, flops=result.flops, tokens_served=result.tokens_served, params=chosen, prob=prob,
            overwrite=overwrite,
        )  # fmt: skip
    if out is not None:
        with replacing(out, overwrite=overwrite) as unfinished:
            result.curve.to_csv(unfinished, index=False)
    for picture in pictures:
        _draw(picture, result, overwrite=overwrite)
    if as_json:
        print_json(result.to_dict())
    else:
        published = checked if preset is None and fit is None else None
        _print_allocation(result, published, written=(page, out, *pictures))
    if not result.converged:
        raise typer.Exit(NOT_CONVERGED)


def _print_allocation(
    result: Allocation, published: Allocation | None, *, written: tuple[Path | None, ...]
) -> None:
    """Print an allocation, what published constants would say in its place, and the files written."""
    typer.echo(str(result))
    if not result.sizes.empty:
        typer.echo("\n" + result.sizes.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    if published is not None:
        best = published.optimum["value"]
        typer.echo(
            f"\nThe published constants (--preset chinchilla) would say N* {best['params']:.3g}, "
            f"D* {best['tokens']:.3g}, text loss {best['loss']:.3f}."
        )
    for path in filter(None, written):
        typer.echo(f"written: {path}")


def _draw(path: Path, result: Allocation, *, overwrite: bool) -> None:
    """Write one of `PICTURES`, named by the file."""
    import matplotlib.pyplot as plt

    from bayescdm.loss.plots import plot_iso_flop, plot_iso_loss, plot_loss_curve
    from bayescdm.plots import theme

    with theme("light"):
        if path.stem == "loss_curve":
            ax = plot_loss_curve(result)
        elif path.stem == "iso_flop":
            ax = plot_iso_flop(result.law, [result.flops * 10.0**power for power in (-2, -1, 0, 1)])
        else:
            ax = plot_iso_loss(result.law)
        path.parent.mkdir(parents=True, exist_ok=True)
        figure = ax.get_figure(root=True)
        assert figure is not None
        with replacing(path, overwrite=overwrite) as unfinished:
            figure.savefig(unfinished, dpi=160)
        plt.close(figure)


def _refuse_files(named: dict[str, tuple[Path | None, str]], *pictures: Path, overwrite: bool) -> None:
    """Refuse before the work what would be refused after it: other endings and what exists."""
    files = {option: path for option, (path, _) in named.items() if path is not None}
    for option, path in files.items():
        ending = named[option][1]
        if path.suffix.casefold() != ending:
            raise RequestError(
                f"{option} {path}: give a name that ends in {ending}, which is what is written"
            )
    for path in (*files.values(), *pictures):
        if path.exists() and not overwrite:
            raise RequestError(f"{path}: exists already; choose another name or give --overwrite")


def _check_count(option: str, text: str, least: float) -> None:
    """Refuse a count under the name that the user gave it by."""
    from bayescdm.loss.allocate import absolute_count

    absolute_count(text, option, least)


def _is_packaged(logs: str, *names: str) -> bool:
    """Whether one of the packaged names is meant, and no file or folder of that name."""
    return logs in names and not Path(logs).exists()


def _refuse_what_is_not_read(logs: str, options: set[str], *, mixed_modal: bool) -> None:
    """Refuse options that would be ignored: packaged points and mixed-modal runs are read as they are."""
    ignored: tuple[str, ...] = ()
    if mixed_modal:
        ignored = ("--runs", "--column", "--text-scores", "--first-step", "--window", "--scope")
    elif _is_packaged(logs, *POINTS):
        ignored = ("--runs", "--column", "--text-scores", "--first-step", "--window")
    elif _is_packaged(logs, "simulated"):
        ignored = ("--runs", "--column")
    wrong = [option for option in ignored if option in options]
    if wrong:
        what = "a table of mixed-modal runs" if mixed_modal else f"the packaged '{logs}'"
        does = "belongs" if len(wrong) == 1 else "belong"
        raise RequestError(
            f"{', '.join(wrong)} {does} to training logs of your own and would do nothing to {what}"
        )


def _loss_study(
    logs: str,
    runs: Path | None,
    text_scores: str | None,
    columns: dict[str, str],
    first_step: int,
    window: int,
) -> LossStudy:
    """Read logs or take packaged points, prepare them, and add capability where text scores are given."""
    from bayescdm.loss.logs import prepare_logs, read_loss_logs
    from bayescdm.loss.packaged import chinchilla_points, openclip_points
    from bayescdm.loss.simulate import simulate_losses

    packaged: dict[str, Any] = {"chinchilla": chinchilla_points, "openclip": openclip_points}
    if _is_packaged(logs, *POINTS):
        return packaged[logs]()
    simulated = _is_packaged(logs, "simulated")
    study = simulate_losses() if simulated else read_loss_logs(logs, runs=runs, columns=columns)
    study = prepare_logs(study, first_step=first_step or None, window=window or None)
    if text_scores is None:
        return study
    from bayescdm.loss.components import with_capability
    from bayescdm.reading import load_study, read_text_scores

    file = Path(text_scores)
    table = read_text_scores(file)[0] if file.is_file() else load_study(text_scores).text_scores
    return with_capability(study, table)


def _stated(scope: Scope, fields: dict[str, Any], *, packaged: bool) -> Scope:
    """Scope with the fields that the user states; of packaged runs what is known cannot be restated."""
    known = ("metric", "objective", "data_distribution", "architecture", "source")
    for name in fields:
        if name not in known:
            raise unknown_name("field of --scope", name, known)
        if packaged and scope.states(name):
            raise RequestError(
                f"--scope {name}={fields[name]}: of these packaged runs it is known "
                f"({getattr(scope, name)}); --scope fills in what is not stated"
            )
    return replace(scope, **fields) if fields else scope


def _titles(pairs: list[str], option: str = "--column") -> dict[str, str]:
    """Values by name, from ``name=value``."""
    for pair in pairs:
        if "=" not in pair:
            raise RequestError(
                f"{option} {pair}: write NAME=TITLE, such as "
                f"{'loss=nll' if option == '--column' else 'metric=...'}"
            )
    return dict(pair.split("=", 1) for pair in pairs)


def _what_reads(fit: LossFit | MixedModalFit, out: Path) -> str:
    """Name the command that goes on with a fit, as it can be pasted into a shell."""
    from bayescdm.loss.allocate import families_of_law
    from bayescdm.loss.fit import LossFit
    from bayescdm.loss.questions import columns_asked

    file = shlex.quote(str(out))
    at = f"`bayescdm loss {file} --at POINTS.csv` predicts (columns {','.join(columns_asked(fit))})"
    try:
        families = families_of_law(fit) if isinstance(fit, LossFit) else None
    except RequestError:
        families = None
    if families is None:
        return f"; {at}"
    family = f" --family {shlex.quote(families[0])}" if families else ""
    return f"; `bayescdm allocate --flops 1e21 --fit {file}{family}` allocates by it, {at}"


def _is_saved(logs: str) -> bool:
    """Whether a fit is meant, which is told by the ending that fits are saved with."""
    return Path(logs).suffix.casefold() == ".nc"


def _saved_law(
    path: Path,
    refused: list[str],
    *,
    at: Path | None,
    kind: Interval | None,
    prob: float,
    seed: int,
    as_json: bool,
) -> None:
    """Describe a saved fit, or predict at the points of a table, with the scope of the fit."""
    from bayescdm.loss.mixed_modal import MixedModalFit
    from bayescdm.loss.questions import load_saved_law, read_questions

    if refused:
        does = "belongs" if len(refused) == 1 else "belong"
        raise RequestError(f"{', '.join(refused)} {does} to fitting, and {path} is fitted already")
    if kind is not None and at is None:
        raise RequestError("--kind belongs to --at: say at which points to predict")
    fit = load_saved_law(path)
    if at is None:
        print_json(fit.to_dict(prob=prob)) if as_json else typer.echo(fit.describe(prob=prob))
    else:
        if isinstance(fit, MixedModalFit) and kind is Interval.run:
            raise RequestError("--kind run: the interaction of a pair has intervals of the law alone")
        table = read_questions(at, fit)
        if isinstance(fit, MixedModalFit):
            told = fit.interaction(table, prob=prob)
        else:
            told = fit.predict(table, kind="law" if kind is None else kind.value, prob=prob, seed=seed)
        print_json(told.to_dict()) if as_json else typer.echo(str(told))
    if not fit.diagnose().converged:
        raise typer.Exit(NOT_CONVERGED)


def _usual_law(logs: str, study: LossStudy) -> str:
    """Law that suits what was given."""
    packaged = {"chinchilla": "chinchilla", "openclip": "contrastive"}
    return packaged.get(logs, "compute" if study.components is None else "capability")


def _point_fits(study: LossStudy, law: str, *, seed: int, resamples: int, prob: float, as_json: bool) -> None:
    """Point fit of all runs, or one for each family where the law has constants of its own for every one."""
    from bayescdm.loss.pointfit import fit_loss_points

    point_law = POINT_LAW[law]
    groups = {"all runs": study}
    if len(study.families) == 1 or law in ("compute", "compute-pooled", "contrastive"):
        groups = {f: study.select_runs(study.runs.index[study.runs["family"] == f]) for f in study.families}
    fits = {}
    for name, group in groups.items():
        if sys.stderr.isatty():
            typer.echo(f"fitting {name}", err=True)
        fits[name] = fit_loss_points(
            group, point_law, seed=seed, resamples=resamples, progress=sys.stderr.isatty()
        )
    if as_json:
        print_json({name: fit.to_dict(prob=prob) for name, fit in fits.items()})
        return
    for name, fit in fits.items():
        typer.echo(f"{name}\n{fit.constants()}")
        if fit.bootstrap is not None:
            typer.echo(fit.intervals(prob).to_string(float_format=lambda value: f"{value:.5g}"))
        own = [str(note) for note in fit.notes if note not in study.notes]
        typer.echo("\n".join([*own, ""]))
    # What the runs were is the same for all groups.
    typer.echo("\n".join([str(study.scope), *map(str, study.notes)]))


def _mixed_modal(
    logs: str,
    *,
    point: bool,
    resamples: int,
    seed: int,
    prob: float,
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Fit the laws of modalities and pairs, and say of each pair whether it competes or helps."""
    from bayescdm.loss import mixed_modal

    simulated = _is_packaged(logs, MIXED_MODAL)
    study = mixed_modal.simulate_mixed_modal() if simulated else mixed_modal.read_mixed_modal(logs)
    if not study.pairs:
        raise RequestError(f"{logs}: no run on two modalities, so that there is no pair to speak of")
    if point:
        from bayescdm.loss.mixed_modal_point import fit_mixed_modal_points

        points = fit_mixed_modal_points(study, seed=seed, resamples=resamples, progress=sys.stderr.isatty())
        if as_json:
            print_json(points.to_dict(prob=prob))
        else:
            typer.echo(points.describe(prob=prob))
        return
    fit = mixed_modal.fit_mixed_modal(study, seed=seed, progress=sys.stderr.isatty())
    if out is not None:
        fit.save(out, overwrite=overwrite)
    if as_json:
        print_json(fit.to_dict(prob=prob))
    else:
        typer.echo(fit.describe(prob=prob))
        if out is not None:
            typer.echo(f"\nsaved to {out}{_what_reads(fit, out)}")
    if not fit.diagnose().converged:
        raise typer.Exit(NOT_CONVERGED)


def _laws(preset: str | None, fit: Path | None, family: str | None, seed: int) -> list[Any]:
    """Laws to allocate by, the one asked for first; all of one scope."""
    from bayescdm.loss.allocate import ComputeLaw
    from bayescdm.loss.allocate import preset as published

    if preset is not None and fit is not None:
        raise RequestError("give --preset or --fit, not both")
    if preset is not None:
        return [published(preset)]
    from bayescdm.loss.fit import fit_loss, load_loss_fit

    if fit is not None:
        return [ComputeLaw.from_fit(load_loss_fit(fit), family=family)]
    from bayescdm.loss.packaged import chinchilla_points

    posterior = fit_loss(chinchilla_points(), "chinchilla", seed=seed, progress=sys.stderr.isatty())
    return [ComputeLaw.from_fit(posterior), published("chinchilla")]
