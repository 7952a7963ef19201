"""Coverage of the intervals of families' rates where families differ as much as in the paper's Table 3.

    python tests/benchmarks/family_coverage.py [--studies 20] [--work FOLDER]

Partial pooling pulls a family that lies far from the others towards them. Intervals are nominal on average
over the prior (sbc.py); the paper's families differ more than that prior expects of most, in B0 and Bm: the
sds of their logarithms are 0.93 and 0.60. Each study has the paper's roster and rates, and is simulated.
"""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import numpy as np
import pandas as pd
from held_out_coverage import MODEL, SETTINGS, Refits, rows_of_studies

from bayescdm.compare import compare_families
from bayescdm.modelfiles import load_model
from bayescdm.simulate import simulate
from bayescdm.study import Study
from bayescdm.validate.folds import Fold
from bayescdm.validate.scores import clustered_share

RESULTS = Path(__file__).parent / "results" / "family_coverage.json"
RATES = ("A", "B0", "Bm")
PROB = 0.9


def study_of(seed: int) -> Study:
    """A simulated study with the families' rates of the paper, without missing cells, so that shapes stay."""
    return simulate(seed=seed, missing_runs=0, missing_text=0)


def rows_of(refits: Refits, seed: int) -> pd.DataFrame:
    """Every family's rates in one study with their intervals and their truth."""
    study = study_of(seed)
    nothing = Fold("all", np.zeros(len(study.fitted_runs), dtype=bool), ())
    fit = refits.without(study, nothing, seed)
    table = compare_families(fit, prob=PROB)
    table = table[table["quantity"].isin(RATES)]
    truth = [
        float(np.sqrt(np.prod(list(study.truth[rate][family].values()))))
        for family, rate in zip(table["family"], table["quantity"])
    ]
    return table.assign(true=truth, study=seed, max_r_hat=fit.diagnose().max_r_hat)


def main() -> None:
    """Fit the studies, tabulate coverage by rate, and keep it."""
    rows = rows_of_studies(__doc__, "families", rows_of, study_of=study_of, studies=20)
    rows["covered"] = rows["true"].between(rows["posterior_90_lower"], rows["posterior_90_upper"])
    table = []
    for rate, own in rows.groupby("quantity", sort=False):
        share, error = clustered_share(own["covered"].to_numpy(), own["study"].to_numpy())
        entry = {
            "rate": rate,
            "nominal": PROB,
            "coverage": round(share, 4),
            "standard_error": round(error, 4),
        }
        table.append({**entry, "families": len(own), "studies": int(own["study"].nunique())})
    result = {
        "model": MODEL,
        "table": table,
        "largest_r_hat": round(float(rows["max_r_hat"].max()), 4),
        "settings": repr(SETTINGS),
        "source_hash": load_model(MODEL).source_hash,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print("\n" + pd.DataFrame(table).to_string(index=False))


if __name__ == "__main__":
    main()
