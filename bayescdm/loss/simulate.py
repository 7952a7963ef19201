"""Simulated loss logs of the paper's two families, with known constants of either law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bayescdm.errors import NotFoundError
from bayescdm.laws import capability_loss, compute_loss
from bayescdm.loss.scope import Scope
from bayescdm.loss.study import LossStudy
from bayescdm.seeds import generator

__all__ = ["simulate_losses", "true_losses"]

#: Backbones of the paper's Figure 1 and their instruct versions: name, family, parameters.
ROSTER = tuple(
    (f"{family}-{size:g}B{suffix}", family, size * 1e9)
    for family, sizes in (("Falcon3", (1, 3, 7, 10)), ("Llama-3.2", (1, 3)))
    for size in sizes
    for suffix in ("-Base", "-Instruct")
)
#: Losses near one nat, and rates of decay that spread the backbones by some tenths of a nat.
CAPABILITY_TRUTH: dict[str, Any] = {
    "A": 0.35, "b": 0.22, "E": 0.55, "alpha": 1.4, "beta": 0.3, "w": (0.85, 0.45, -0.27),
}  # fmt: skip
COMPUTE_TRUTH: dict[str, dict[str, float]] = {
    "Falcon3": {"a": 0.38, "b": 0.22, "E": 0.55, "alpha": 0.30, "beta": 0.30},
    "Llama-3.2": {"a": 0.45, "b": 0.19, "E": 0.62, "alpha": 0.45, "beta": 0.26},
}
VOLUME_REF = 4e9
LAST_VOLUME = 12.5e9
STEPS = 12_000


def simulate_losses(
    truth: str = "capability", *, seed: int = 0, log_every: int = 10, noise: float = 0.02
) -> LossStudy:
    """Draw training-loss logs of 12 vision-language runs from a known law.

    Parameters
    ----------
    truth : {"capability", "compute"}
        The law that the losses follow. Capability grows with size in both, but not by size alone.
    seed : int
    log_every : int
        Steps between two logged losses.
    noise : float
        Relative spread of one logged loss around its run; a run is itself off the law by 0.3 %.

    Returns
    -------
    LossStudy
        Unprepared logs from step `log_every` on, called simulated, with its constants in ``truth``.

    Raises
    ------
    NotFoundError
        When `truth` is neither law.

    Examples
    --------
    >>> study = simulate_losses(log_every=1000)
    >>> len(study.runs), len(study.points), study.simulated
    (12, 144, True)
    """
    if truth not in ("capability", "compute"):
        raise NotFoundError(f"no loss law '{truth}': the laws are capability, compute")
    rng = generator(seed)
    runs = pd.DataFrame(ROSTER, columns=["backbone", "family", "params"])
    runs.index = pd.Index(runs["backbone"], name="run")
    components = _components(runs, rng)
    steps = np.arange(log_every, STEPS + 1, log_every)
    volume = steps / STEPS * LAST_VOLUME
    w = np.asarray(CAPABILITY_TRUTH["w"]) / np.linalg.norm(CAPABILITY_TRUTH["w"])
    known = {**CAPABILITY_TRUTH, "w": w.tolist()} if truth == "capability" else COMPUTE_TRUTH
    tables = []
    for (run, row), Z in zip(runs.iterrows(), components.to_numpy()):
        loss = _law_loss(truth, known, row, Z, volume / VOLUME_REF)
        spread = rng.normal(0, 0.003) + noise * rng.standard_t(8, len(steps)) * (1 + 5 * np.exp(-steps / 300))
        tables.append(
            pd.DataFrame({"run": run, "step": steps, "volume": volume, "loss": loss * np.exp(spread)})
        )
    return LossStudy(
        name=f"simulated loss logs ({truth} law)",
        runs=runs,
        points=pd.concat(tables, ignore_index=True),
        scope=Scope(
            metric="multimodal training loss",
            objective="next-token loss of a vision-language model",
            data_distribution="simulated",
            architecture="simulated, roster of Falcon3 and Llama-3.2",
            ranges={
                "params": (float(runs["params"].min()), float(runs["params"].max())),
                "volume": (float(volume.min()), float(volume.max())),
            },
            units={"metric": "nats per token", "params": "parameters", "volume": "multimodal tokens"},
            source=f"simulated with seed {seed}",
        ),
        components=components,
        simulated=True,
        truth={"law": truth, "volume_ref": VOLUME_REF, "constants": known},
    )


def true_losses(study: LossStudy) -> np.ndarray:
    """Loss that the known law of simulated logs gives at their points, without what strays from it.

    Parameters
    ----------
    study : LossStudy
        From `simulate_losses`, also prepared or thinned.

    Returns
    -------
    ndarray, (point,)

    Examples
    --------
    >>> study = simulate_losses(log_every=1000)
    >>> bool(np.abs(study.loss / true_losses(study) - 1).mean() < 0.05)
    True
    """
    law, known, D = study.truth["law"], study.truth["constants"], study.volume / study.truth["volume_ref"]
    loss = np.empty(len(D))
    for place, (_, row) in enumerate(study.runs.iterrows()):
        own = study.run_of_point == place
        loss[own] = _law_loss(law, known, row, study.component_scores[place], D[own])
    return loss


def _law_loss(law: str, known: dict[str, Any], row: pd.Series, Z: np.ndarray, D: np.ndarray) -> np.ndarray:
    """Loss of one run under a law with known constants, at volumes over the reference."""
    loss: np.ndarray
    if law == "capability":
        S = Z @ np.asarray(known["w"])
        loss = capability_loss(S, D, known["A"], known["b"], known["E"], known["alpha"], known["beta"])
    else:
        own = known[row["family"]]
        loss = compute_loss(row["params"] / 3e9, D, own["a"], own["b"], own["E"], own["alpha"], own["beta"])
    return loss


def _components(runs: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Capability components: the first follows ln N with a family offset, all scatter by pre-training."""
    size = np.log(runs["params"] / 3e9).to_numpy()
    family = np.where(runs["family"] == "Falcon3", 0.08, -0.12)
    instruct = np.where(runs["backbone"].str.endswith("Instruct"), 0.06, -0.06)
    Z = np.column_stack([0.16 * size + family, instruct, 0 * size]) + rng.normal(
        0, [0.07, 0.08, 0.06], (12, 3)
    )
    return pd.DataFrame(Z - Z.mean(axis=0), index=runs.index, columns=["PC1", "PC2", "PC3"])
