"""Simulation-based calibration of every model file at full size; the results are kept beside this script.

    python tests/benchmarks/sbc.py [MODEL …] [--simulations 300] [--work FOLDER]

Without names: every packaged model, the sphere in two coordinate systems, and the two sabotaged models,
which must fail. With --work, finished simulations are kept there and an interrupted run goes on.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from bayescdm.modelfiles import load_model, model_names  # noqa: E402
from bayescdm.sampling import SamplerSettings  # noqa: E402
from bayescdm.validate.designs import design, transfer_design  # noqa: E402
from bayescdm.validate.sbc import Calibration, calibrate  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "sbc.json"
OWN_MODELS = Path(__file__).parents[1] / "models"
#: Models of the tests, and the model that draws their truths.
GENERATORS = {
    "sphere_by_angles": OWN_MODELS / "sphere.py",
    "sabotaged_jacobian": OWN_MODELS / "sphere.py",
    "sabotaged_no_intercept": "transfer_pooled",
}
MUST_FAIL = ("sabotaged_jacobian", "sabotaged_no_intercept")
LEVEL = 0.01
DRAWS = 49
SETTINGS = SamplerSettings(draws=500, tune=600, chains=2, target_accept=0.9, cores=1)


def data_of(name: str) -> Any:
    """Design of a model; the sphere's leaves little data, so that its prior is what is tested."""
    if name not in ("sphere_by_angles", "sabotaged_jacobian"):
        return design(name)
    data = transfer_design(components=8)
    return data.swap(weight=(np.arange(len(data.accuracy)) % 9 == 0).astype(float))


def run(name: str, simulations: int, work: Path | None) -> dict[str, Any]:
    """Calibrate one model and return its entry of the results."""
    started = time.process_time()
    file = load_model(OWN_MODELS / f"{name}.py" if name in GENERATORS else name)
    generator = load_model(GENERATORS[name]).build if name in GENERATORS else None
    calibration = calibrate(
        file.build,
        data_of(name),
        name=name,
        simulations=simulations,
        draws=DRAWS,
        settings=SETTINGS,
        generator=generator,
        store=None if work is None else work / f"{name}-{file.source_hash[:12]}.json",
        report=lambda done: print(f"\r{name}: {done}", end="", file=sys.stderr, flush=True),
    )
    print(f"\r{calibration}", flush=True)
    return entry(calibration, file.source_hash, time.process_time() - started)


def entry(calibration: Calibration, source_hash: str, seconds: float) -> dict[str, Any]:
    """Counts, p values, date and versions."""
    table = calibration.table()
    packages = ("pymc", "pytensor", "nutpie", "numpy")
    return {
        "simulations": len(calibration.ranks),
        "failed_to_sample": calibration.failed,
        "draws": calibration.draws,
        "quantities": len(table),
        "p_value": calibration.p_value,
        "passes": calibration.p_value > LEVEL,
        "must_pass": calibration.model not in MUST_FAIL,
        "least_uniform": table.head(5).round(5).to_dict("records"),
        "smallest_ess": {
            "median": round(float(calibration.min_ess.median()), 1),
            "least": round(float(calibration.min_ess.min()), 1),
        },
        "divergences": calibration.divergences,
        "cpu_seconds": round(seconds),
        "source_hash": source_hash,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {name: importlib.metadata.version(name) for name in packages},
    }


def main() -> None:
    """Run the models asked for and keep their results with those of the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--simulations", type=int, default=300)
    parser.add_argument("--work", type=Path)
    asked = parser.parse_args()
    if asked.work is not None:
        asked.work.mkdir(parents=True, exist_ok=True)
    for name in asked.models or [*model_names(), *GENERATORS]:
        result = run(name, asked.simulations, asked.work)
        kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(dict(sorted({**kept, name: result}.items())), indent=2) + "\n")


if __name__ == "__main__":
    main()
