"""Seven exact family refits of the paper's roster cost less than twice one cold fit, measured in one run.

    python tests/benchmarks/refit.py

A cold fit compiles and samples with the default settings. The refits are those of `bayescdm.validate`:
components fitted anew, weights and components swapped, sampled with its settings. Both are also measured with
equal settings. Seconds of CPU, which do not depend on what else the machine does, and of the clock.
"""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import nutpie  # noqa: E402, F401  (imported before the clock starts)

import bayescdm as cdm  # noqa: E402
from bayescdm.modelfiles import load_model  # noqa: E402
from bayescdm.modeling import model_data  # noqa: E402
from bayescdm.sampling import DEFAULTS, compile_model  # noqa: E402
from bayescdm.validate import REFIT_SETTINGS, Refitter, components_without, make_folds  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "refit.json"
MODEL = "transfer_hierarchical"


def timed(action: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Result of an action and the seconds that it took."""
    clock, cpu = time.perf_counter(), time.process_time()
    result = action()
    return result, {
        "clock": round(time.perf_counter() - clock, 1),
        "cpu": round(time.process_time() - cpu, 1),
    }


def main() -> None:
    """Measure, print the ratios and keep them."""
    study = cdm.simulate(seed=0)
    file, components = load_model(MODEL), components_without(study)
    compiled, compiling = timed(lambda: compile_model(file.build, model_data(study, components(()))))
    _, cold = timed(lambda: compiled.sample(seed=1))
    _, short = timed(lambda: compiled.sample(seed=1, settings=REFIT_SETTINGS))
    folds = make_folds(study, "family")
    refitter = Refitter(study, components, compiled, MODEL, file.source_hash, REFIT_SETTINGS, 1)
    _, refits = timed(lambda: [refitter.refit(fold) for fold in folds])
    result: dict[str, Any] = {
        "study": study.name,
        "runs": len(study.fitted_runs),
        "refits": len(folds),
        "settings_of_cold_fit": repr(DEFAULTS),
        "settings_of_refits": repr(REFIT_SETTINGS),
        "seconds": {"compile": compiling, "sample": cold, "sample_as_refits": short, "all_refits": refits},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    for unit in ("clock", "cpu"):
        result[f"ratio_{unit}"] = round(refits[unit] / (compiling[unit] + cold[unit]), 2)
        result[f"ratio_{unit}_equal_settings"] = round(refits[unit] / (compiling[unit] + short[unit]), 2)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    print(f"{len(folds)} refits cost {result['ratio_cpu']} cold fits")


if __name__ == "__main__":
    main()
