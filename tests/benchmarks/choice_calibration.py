"""Calibration of choices: stated P(best) against how often a candidate is the best, over simulated studies.

    python tests/benchmarks/choice_calibration.py [--studies 100] [--work FOLDER]

Each study is drawn anew, as for held_out_coverage.py. A random half of the backbones has no runs, so that
candidates of every kind are compared: known ones, new ones of known families, and now and then new families.
Two questions are asked of each: which backbone of at most 3B parameters, and which of 4B to 10B. The best
is known, since the truth of a simulated study is: the highest accuracy that runs of a backbone average to.

The calibration error is the mean over candidates of |stated − observed| of their class of probabilities. Of
perfectly calibrated statements it is not zero, because 100 studies are few: its size is simulated, by drawing
the best of every question from the stated probabilities themselves.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from held_out_coverage import MODEL, SETTINGS, Refits, rows_of_studies, study_of

from bayescdm.compare import rank_backbones
from bayescdm.modelfiles import load_model
from bayescdm.simulate import true_accuracy
from bayescdm.study import Study
from bayescdm.validate.folds import Fold

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results" / "choice.json"
PLOT = ROOT / "docs" / "choice-calibration.png"
#: Sizes that each question is about, in parameters.
QUESTIONS = {"at most 3B": (0.0, 3.5e9), "4B to 10B": (3.5e9, 10.5e9)}
VOLUME = 12.5e9
#: Lower ends of the classes of stated probabilities; the first is where most candidates are.
CLASSES = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
REPLICATES = 4000


def without_runs(study: Study, seed: int) -> Fold:
    """Half of the backbones, at random, as a fold that is held out."""
    rng = np.random.default_rng([seed, 11])
    names = tuple(rng.choice(study.backbones.index, len(study.backbones) // 2, replace=False))
    held_out = study.fitted_runs["backbone"].isin(names).to_numpy()
    return Fold("without runs", held_out, names)


def rows_of(refits: Refits, seed: int) -> pd.DataFrame:
    """Stated P(best) of every candidate of one study, and which is the best in truth."""
    study = study_of(seed)
    fit = refits.without(study, without_runs(study, seed), seed)
    diagnosis, parts = fit.diagnose(), []
    for question, (low, high) in QUESTIONS.items():
        names = list(study.backbones.index[study.backbones["params"].between(low, high)])
        ranking = rank_backbones(fit, names, volume=VOLUME, seed=seed)
        truth = true_accuracy(study, ranking["backbone"], VOLUME)
        parts.append(
            ranking[["backbone", "mode", "p_best", "expected_regret"]].assign(
                best=truth == truth.max(), regret=truth.max() - truth, question=question
            )
        )
    rows = pd.concat(parts, ignore_index=True)
    return rows.assign(study=seed, divergences=diagnosis.divergences, max_r_hat=diagnosis.max_r_hat)


def reliability(rows: pd.DataFrame) -> pd.DataFrame:
    """Stated and observed frequency of each class of probabilities; the error is over studies."""
    stated = rows["p_best"].to_numpy()
    place = np.searchsorted(CLASSES, stated, side="right") - 1
    table = []
    for number in np.unique(place):
        held = rows[place == number]
        off = (held["best"] - held["p_best"]).groupby(held["study"]).sum().to_numpy()
        table.append(
            {
                "from": CLASSES[number],
                "candidates": len(held),
                "stated": round(float(held["p_best"].mean()), 4),
                "observed": round(float(held["best"].mean()), 4),
                "standard_error": round(float(np.sqrt((off**2).sum())) / len(held), 4),
            }
        )
    return pd.DataFrame(table)


def calibration_error(stated: np.ndarray, best: np.ndarray) -> np.ndarray:
    """Mean over candidates of |stated − observed| of their class.

    Parameters
    ----------
    stated : ndarray, (candidate,)
    best : ndarray, (replicate, candidate)

    Returns
    -------
    ndarray, (replicate,)
    """
    place = np.searchsorted(CLASSES, stated, side="right") - 1
    member = np.equal.outer(np.unique(place), place).astype(float)
    return np.abs((best - stated) @ member.T).sum(1) / len(stated)


def perfectly_calibrated(rows: pd.DataFrame, seed: int = 0) -> np.ndarray:
    """Calibration errors if the best of each question were drawn from the stated probabilities."""
    rng = np.random.default_rng(seed)
    best = np.zeros((REPLICATES, len(rows)))
    for places in rows.groupby(["study", "question"]).indices.values():
        stated = rows["p_best"].to_numpy()[places]
        drawn = rng.choice(places, REPLICATES, p=stated / stated.sum())
        best[np.arange(REPLICATES), drawn] = 1
    return calibration_error(rows["p_best"].to_numpy(), best)


def plot(table: pd.DataFrame, result: dict[str, Any], path: Path) -> None:
    """Draw stated against observed frequencies with their standard errors."""
    import matplotlib.pyplot as plt

    from bayescdm.plots import theme

    with theme("light") as colours:
        figure, ax = plt.subplots(figsize=(5.6, 4.6), layout="constrained")
        ax.plot(
            [0, 1], [0, 1], color=colours.muted, linewidth=1, linestyle="--", label="perfectly calibrated"
        )
        ax.errorbar(
            table["stated"],
            table["observed"],
            yerr=2 * table["standard_error"],
            fmt="o",
            markersize=4.5,
            linewidth=1.2,
            color=colours.series[0],
            label="classes of candidates, ± 2 standard errors",
        )
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), aspect="equal")
        ax.set_xlabel("stated P(best)")
        ax.set_ylabel("share that is the best in truth")
        error, (low, high) = result["calibration_error"], result["if_perfectly_calibrated_90"]
        ax.set_title(
            f"{result['studies']} simulated studies, {result['questions']} questions: calibration error "
            f"{error:.4f}\n(perfectly calibrated: {low:.4f} to {high:.4f} in 90 %)",
            fontsize=8.5,
        )
        ax.legend(loc="upper left", frameon=False, fontsize=8)
        figure.savefig(path, dpi=110, metadata={"Software": None})
        plt.close(figure)


def main() -> None:
    """Run the studies, weigh what was stated against what is true, and keep it."""
    rows = rows_of_studies(__doc__, "choice", rows_of)
    stated, best = rows["p_best"].to_numpy(), rows["best"].to_numpy(float)
    table, perfect = reliability(rows), perfectly_calibrated(rows)
    error = float(calibration_error(stated, best[None])[0])
    first = rows.groupby(["study", "question"]).first()
    result = {
        "model": MODEL,
        "studies": int(rows["study"].nunique()),
        "questions": len(first),
        "calibration_error": round(error, 5),
        "if_perfectly_calibrated_mean": round(float(perfect.mean()), 5),
        "if_perfectly_calibrated_90": [round(float(q), 5) for q in np.quantile(perfect, [0.05, 0.95])],
        "p_value": round(float((perfect >= error).mean()), 3),
        "recommended": {
            "stated_p_best": round(float(first["p_best"].mean()), 4),
            "observed": round(float(first["best"].mean()), 4),
            "stated_regret": round(float(first["expected_regret"].mean()), 5),
            "observed_regret": round(float(first["regret"].mean()), 5),
        },
        "table": table.to_dict("records"),
        "divergences": int(rows.groupby("study")["divergences"].first().sum()),
        "refits_with_r_hat_above_1.05": int((rows.groupby("study")["max_r_hat"].first() > 1.05).sum()),
        "settings": repr(SETTINGS),
        "source_hash": load_model(MODEL).source_hash,
        "versions": {name: importlib.metadata.version(name) for name in ("pymc", "nutpie", "numpy")},
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")
    plot(table, result, PLOT)
    print("\n" + table.to_string(index=False))


if __name__ == "__main__":
    main()
