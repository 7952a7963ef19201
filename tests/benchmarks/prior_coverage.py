"""Coverage of the intervals of held_out_coverage.py where the truth is drawn from the model's own prior.

    python tests/benchmarks/prior_coverage.py [--studies 100] [--work FOLDER]

Intervals of a Bayesian model are nominal on average over its prior, wherever its draws are right. In
held_out_coverage.py the truth comes from the paper's rates instead, which lie near the centre of the prior:
there an interval that rests on the prior, such as one beyond the largest model seen, covers too often. This
script tells that apart from an error: the same roster, volumes and folds, with rates, direction, intercepts,
residuals and so accuracies drawn from the prior, components as given.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import numpy as np
import pandas as pd
from held_out_coverage import (
    COMPONENTS,
    MODEL,
    SETTINGS,
    Refits,
    coverage_table,
    folds_of,
    rows_of_studies,
    study_of,
)

from bayescdm.capability import fit_capability
from bayescdm.fit import Fit, constant_data
from bayescdm.modelfiles import load_model
from bayescdm.modeling import model_data
from bayescdm.sampling import prior_draws
from bayescdm.validate.judge import score_fold

RESULTS = Path(__file__).parent / "results" / "prior_coverage.json"


def rows_of(refits: Refits, seed: int) -> pd.DataFrame:
    """Held-out runs of one study whose truth is a draw of the prior, with their intervals, all kinds."""
    study = study_of(seed)
    capability = fit_capability(study, components=COMPONENTS)
    data = model_data(study, capability)
    truth = prior_draws(load_model(MODEL).build(data), 1, seed)["accuracy"].to_numpy().reshape(-1)
    parts = []
    for kind, fold in folds_of(study, seed).items():
        compiled = refits.compiled.refit(
            components=data.components, accuracy=truth, weight=np.where(fold.held_out, 0.0, 1.0)
        )
        tree = compiled.sample(seed=seed, settings=SETTINGS)
        tree["constant_data"] = constant_data(compiled.data)
        fit = Fit(tree, study, capability, MODEL)
        rows, _ = score_fold(fit, fold, by="holdout", seed=seed)
        diagnosis = fit.diagnose()
        parts.append(
            # The study's own accuracies were not those fitted; a draw of the prior may leave [0, 1].
            rows.assign(
                accuracy=truth[fold.held_out],
                kind=kind,
                study=seed,
                divergences=diagnosis.divergences,
                max_r_hat=diagnosis.max_r_hat,
            )
        )
    return pd.concat(parts, ignore_index=True)


def main() -> None:
    """Run the studies, tabulate coverage, and keep it."""
    rows = rows_of_studies(__doc__, "prior", rows_of)
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
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print("\n" + pd.DataFrame(result["table"]).to_string(index=False))


if __name__ == "__main__":
    main()
