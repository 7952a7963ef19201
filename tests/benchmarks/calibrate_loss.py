"""Simulation-based calibration of the loss model files, on the designs of the packaged and simulated data.

    python tests/benchmarks/calibrate_loss.py [--simulations 100] [--models chinchilla …] [--store FOLDER]

Prints a line and a table a model; exits 1 if any p value of the whole is below 0.01. Finished simulations in
``--store`` are not repeated. Takes one to ten minutes a model and 40 simulations, on two cores.
"""

import argparse
import sys
from pathlib import Path

from bayescdm.loss.logs import prepare_logs, thin_logs
from bayescdm.loss.mixed_modal import mixed_modal_data, simulate_mixed_modal
from bayescdm.loss.modeling import LossModelData, MixedModalData, loss_model_data
from bayescdm.loss.packaged import chinchilla_points, openclip_points
from bayescdm.loss.simulate import simulate_losses
from bayescdm.modelfiles import load_model
from bayescdm.sampling import SamplerSettings
from bayescdm.validate.sbc import calibrate

MODELS = (
    "chinchilla",
    "contrastive_power",
    "loss_capability",
    "loss_compute",
    "loss_compute_pooled",
    "mixed_modal",
)
SETTINGS = SamplerSettings(draws=300, tune=500, chains=2)
POINTS_PER_RUN = 8


def design(model: str) -> LossModelData | MixedModalData:
    """Predictors that the model is calibrated on; its losses are simulated anew."""
    if model == "chinchilla":
        return loss_model_data(chinchilla_points())
    if model == "contrastive_power":
        return loss_model_data(openclip_points())
    if model == "mixed_modal":
        return mixed_modal_data(simulate_mixed_modal())
    return loss_model_data(thin_logs(prepare_logs(simulate_losses()), POINTS_PER_RUN))


def main() -> int:
    """Calibrate each model and say whether all are calibrated."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=100)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=MODELS)
    parser.add_argument("--store", type=Path)
    options = parser.parse_args()
    p_values = []
    for model in options.models:
        result = calibrate(
            load_model(model).build,
            design(model),
            name=model,
            simulations=options.simulations,
            settings=SETTINGS,
            seed=1,
            store=None if options.store is None else options.store / f"{model}.json",
        )
        print(result, f"{result.divergences} divergences", result.table().to_string(index=False), sep="\n")
        p_values.append(result.p_value)
    return int(min(p_values) < 0.01)


if __name__ == "__main__":
    sys.exit(main())
