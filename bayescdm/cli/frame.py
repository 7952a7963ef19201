"""What all commands share: how errors end, and options that mean the same everywhere."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from bayescdm.errors import BayesCDMError
from bayescdm.interrupts import STOPPED, command_begins

__all__ = ["Commands", "app"]


class Commands(TyperGroup):
    """Commands whose errors, when a user can mend them, are lines on stderr and exit status 1."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run the program; where a terminal knows no λ it gets a question mark, rather than no answer."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        return super().main(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; no traceback for a mistake in the input, a file that cannot be used, or Ctrl-C."""
        try:
            command_begins()
            return super().invoke(ctx)
        except BayesCDMError as error:
            typer.echo(str(error), err=True)
        except BrokenPipeError:
            raise
        except OSError as error:
            typer.echo(f"{error.filename or 'file'}: {error.strerror or error}", err=True)
        except KeyboardInterrupt as stop:
            typer.echo(f"stopped: {str(stop) or 'nothing was written'}", err=True)
            raise typer.Exit(STOPPED) from None
        raise typer.Exit(1)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Which LLM backbone for a vision-language model, and how sure: posteriors of the "
    "transfer–absorption law.",
    epilog="Exit status: 0; 1 input or a file cannot be used; 2 wrong usage; 3 did not converge; 130 stopped "
    "by Ctrl-C. Ctrl-C while draws are made keeps those that were made.",
)

AsJson = Annotated[bool, typer.Option("--json", help="Print valid JSON, and nothing else, on stdout.")]
StudyName = Annotated[str, typer.Argument(help="Folder of a study, or the name of a packaged one.")]
FitFile = Annotated[Path, typer.Argument(help="A fit that `bayescdm fit` wrote.")]
Model = Annotated[str, typer.Option(help="Name of a packaged model, or the path of your own file (.py).")]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same result.")]
SeedOfTwo = Annotated[
    int | None,
    typer.Option(
        min=0,
        help="Seed of the sampler (1 by default), and of what is drawn for new backbones (0 by default), "
        "which alone it sets with a saved fit.",
    ),
]
Components = Annotated[
    int | None,
    typer.Option(min=1, help="Text components; by default the fewest with 95 % of the variance."),
]
Population = Annotated[
    Literal["all", "with_runs"],
    typer.Option(help="Whose text scores define the components: all backbones, or those with runs."),
]
Benchmarks = Annotated[
    list[str] | None,
    typer.Option(
        "--benchmark",
        help="What a run's accuracy is: a benchmark, a group of them, or (repeated) a list; by default the "
        "average over what the runs of a recipe share.",
    ),
]
TreatOutliers = Annotated[
    bool, typer.Option("--treat-outliers-as-missing", help="Take flagged text scores as not measured.")
]
Unscored = Annotated[
    Literal["leave_out", "by_size"],
    typer.Option(
        help="Runs on backbones without text scores: left out, or kept and placed by size and variant "
        "(pays with a model that has a size term, such as transfer_size)."
    ),
]
Draws = Annotated[int | None, typer.Option(min=1, help="Draws kept of each chain.")]
Tune = Annotated[int | None, typer.Option(min=1, help="Draws of each chain that adapt the sampler.")]
Chains = Annotated[int | None, typer.Option(min=1, help="Chains.")]
CandidateFile = Annotated[
    Path | None,
    typer.Option(
        "--candidates", help="Table of candidates (CSV, TSV, Excel or Parquet): text scores, family, variant."
    ),
]
Recipe = Annotated[str | None, typer.Option(help="Recipe of the study, or `new` for one that no run used.")]
Kind = Annotated[
    Literal["law", "backbone", "run"],
    typer.Option(
        help="What the interval covers: the law's parameters, what runs of a backbone average to, or one run."
    ),
]
Prob = Annotated[float, typer.Option(help="Probability of intervals.")]
TableOut = Annotated[Path | None, typer.Option("--out", help="Write the table to this CSV file.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace a file that stands there.")]
