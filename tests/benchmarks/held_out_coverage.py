"""Coverage of run intervals for held-out trajectories, over simulated studies of the paper's roster.

    python tests/benchmarks/held_out_coverage.py [--studies 100] [--work FOLDER]

Each study is drawn anew: families from the population of rates, direction, capabilities, text scores,
backbone intercepts and residuals. Three kinds of trajectories are held out by exact refits, compiled once:

new backbone
    one backbone of each family that has at least three, all at once;
new family
    one family, another in each study;
larger than any seen
    every model above 20B parameters.

Coverage is counted over runs; its error over studies, since the runs of one study are not independent.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bayescdm.capability import fit_capability  # noqa: E402
from bayescdm.datasets import paper_table  # noqa: E402
from bayescdm.fit import Fit, constant_data  # noqa: E402
from bayescdm.intervals import interval_columns  # noqa: E402
from bayescdm.modelfiles import load_model  # noqa: E402
from bayescdm.modeling import model_data  # noqa: E402
from bayescdm.sampling import CompiledModel, SamplerSettings, compile_model  # noqa: E402
from bayescdm.simulate import simulate_from  # noqa: E402
from bayescdm.study import Study  # noqa: E402
from bayescdm.validate.folds import Fold  # noqa: E402
from bayescdm.validate.judge import PROBABILITIES, score_fold  # noqa: E402
from bayescdm.validate.scores import clustered_share, covered  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "coverage.json"
MODEL = "transfer_hierarchical"
COMPONENTS = 3
SETTINGS = SamplerSettings(draws=500, tune=500, chains=4, target_accept=0.9)
LARGE = 20e9


def study_of(seed: int) -> Study:
    """A simulated study of the paper's roster: rates of families from their population, complete tables."""
    roster = paper_table("roster").set_index("backbone").drop(columns="source")
    return simulate_from(seed, name="simulated study for coverage", roster=roster, n_components=COMPONENTS)


def folds_of(study: Study, seed: int) -> dict[str, Fold]:
    """What is held out of a study, by kind."""
    rng = np.random.default_rng([seed, 7])
    backbones = study.backbones
    families = sorted(backbones["family"].unique())
    large = tuple(backbones.index[backbones["params"] > LARGE])
    one_each = tuple(
        str(rng.choice(names))
        for _, names in backbones.drop(index=list(large)).groupby("family").groups.items()
        if len(names) >= 3
    )
    family = families[seed % len(families)]
    unseen = {
        "new backbone of a known family": one_each,
        "new family": tuple(backbones.index[backbones["family"] == family]),
        "larger than any seen": large,
    }
    runs = study.fitted_runs["backbone"]
    return {kind: Fold(kind, runs.isin(names).to_numpy(), names) for kind, names in unseen.items()}


@dataclass
class Refits:
    """A model compiled once, under the data of one study after the other."""

    compiled: CompiledModel

    @classmethod
    def of(cls, study: Study) -> Refits:
        """Compile for the shapes of a study; all of them share roster and volumes."""
        data = model_data(study, fit_capability(study, components=COMPONENTS))
        return cls(compile_model(load_model(MODEL).build, data))

    def without(self, study: Study, fold: Fold, seed: int) -> Fit:
        """Fit a study without the runs of a fold, its text scores left out of the components."""
        capability = fit_capability(study, components=COMPONENTS, exclude=fold.unseen)
        data = model_data(study, capability)
        compiled = self.compiled.refit(
            components=data.components,
            accuracy=data.accuracy,
            weight=np.where(fold.held_out, 0.0, 1.0),
        )
        tree = compiled.sample(seed=seed, settings=SETTINGS)
        tree["constant_data"] = constant_data(compiled.data)
        return Fit(tree, study, capability, MODEL)


def rows_of(refits: Refits, seed: int) -> pd.DataFrame:
    """Held-out runs of one study with their intervals, all kinds."""
    study, parts = study_of(seed), []
    for kind, fold in folds_of(study, seed).items():
        fit = refits.without(study, fold, seed)
        rows, _ = score_fold(fit, fold, by="holdout", seed=seed)
        diagnosis = fit.diagnose()
        parts.append(
            rows.assign(
                kind=kind, study=seed, divergences=diagnosis.divergences, max_r_hat=diagnosis.max_r_hat
            )
        )
    return pd.concat(parts, ignore_index=True)


def coverage_table(rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Coverage by kind and probability, its error over studies, and how many errors it is off."""
    table = []
    for kind, held in rows.groupby("kind", sort=False):
        for prob in PROBABILITIES:
            lower, upper = (held[name].to_numpy() for name in interval_columns("run", prob))
            hits = covered(lower, upper, held["accuracy"].to_numpy())
            share, error = clustered_share(hits, held["study"].to_numpy())
            table.append(
                {
                    "kind": kind,
                    "nominal": prob,
                    "coverage": round(share, 4),
                    "standard_error": round(error, 4),
                    "z": round((share - prob) / error, 2) if error > 0 else None,
                    "runs": len(held),
                    "studies": int(held["study"].nunique()),
                    "mean_width": round(float(np.mean(upper - lower)), 4),
                }
            )
    return table


def rows_of_studies(
    description: str | None,
    name: str,
    rows_of: Callable[[Refits, int], pd.DataFrame],
    *,
    study_of: Callable[[int], Study] = study_of,
    studies: int = 100,
) -> pd.DataFrame:
    """Gather rows of every study that the command line asks for; those in the work folder are read."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--studies", type=int, default=studies)
    parser.add_argument("--work", type=Path)
    asked = parser.parse_args()
    if asked.work is not None:
        asked.work.mkdir(parents=True, exist_ok=True)
    refits, parts = None, []
    for seed in range(asked.studies):
        path = None if asked.work is None else asked.work / f"{name}-{seed:03d}.csv"
        if path is not None and path.exists():
            parts.append(pd.read_csv(path))
            continue
        refits = refits or Refits.of(study_of(seed))
        parts.append(rows_of(refits, seed))
        if path is not None:
            parts[-1].to_csv(path, index=False)
        print(f"\r{seed + 1} of {asked.studies}", end="", file=sys.stderr, flush=True)
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    """Run the studies, tabulate coverage, and keep it."""
    rows = rows_of_studies(__doc__, "study", rows_of)
    by_refit = rows.groupby(["study", "kind"])[["divergences", "max_r_hat"]].first()
    result = {
        "model": MODEL,
        "table": coverage_table(rows),
        "refits": len(by_refit),
        "refits_with_r_hat_above_1.05": int((by_refit["max_r_hat"] > 1.05).sum()),
        "divergences": int(by_refit["divergences"].sum()),
        "settings": repr(SETTINGS),
        "source_hash": load_model(MODEL).source_hash,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print("\n" + pd.DataFrame(result["table"]).to_string(index=False))


if __name__ == "__main__":
    main()
