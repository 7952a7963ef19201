"""Backbones without text scores: left out, or placed by size with the spread that this leaves."""

import numpy as np
import pandas as pd
import pytest

import bayescdm as cdm
from bayescdm.capability import fit_capability, place_by_size
from bayescdm.identify import identifiability
from bayescdm.modeling import model_data
from bayescdm.study import Study


def backbones(n, seed=0):
    rng = np.random.default_rng(seed)
    labels = [f"b{i}" for i in range(n)]
    return pd.DataFrame(
        {"params": np.exp(rng.uniform(20, 25, n)), "variant": rng.choice(["base", "instruct"], n)},
        index=labels,
    )


def test_placed_where_a_line_in_log_size_says():
    known = backbones(30)
    line = pd.DataFrame({"PC1": 0.1 * np.log(known["params"]) + 0.2 * (known["variant"] == "instruct")})
    mean, covariance, _ = place_by_size(line.iloc[:29], known, known.index[29:])
    assert mean.iloc[0, 0] == pytest.approx(line.iloc[29, 0], abs=1e-10)
    assert covariance[0, 0, 0] < 1e-18


def test_stated_spread_covers_what_was_hidden():
    """Hide the components of 300 backbones, ten times: squared errors are what the covariance says."""
    known = backbones(500)
    slopes = np.outer(np.log(known["params"].to_numpy()), [0.1, -0.05])
    chi2 = []
    for seed in range(10):
        spread = np.random.default_rng(seed).multivariate_normal([0, 0], [[0.04, 0.01], [0.01, 0.02]], 500)
        truth = pd.DataFrame(slopes + spread, index=known.index, columns=["PC1", "PC2"])
        mean, covariance, note = place_by_size(truth.iloc[:200], known, known.index[200:])
        error = (truth.iloc[200:] - mean).to_numpy()
        chi2.append(np.einsum("mi,mij,mj->m", error, np.linalg.inv(covariance), error).mean())
    assert np.mean(chi2) == pytest.approx(2, rel=0.1)
    assert note.code == "placed-by-size" and note.message.startswith("300 backbones")


def test_open_vlm_keeps_every_run_when_asked():
    left_out = cdm.load_study("open-vlm")
    placed = left_out.with_unscored("by_size")
    assert len(left_out.fitted_runs) == 71 and len(placed.fitted_runs) == 88
    capability = fit_capability(placed)
    data = model_data(placed, capability)
    assert len(data.accuracy) == 88
    assert set(data.coords["backbone_incomplete"]) == set(placed.placed_by_size) & set(
        data.coords["backbone"]
    )
    # The components themselves are those of the scored backbones.
    assert np.array_equal(capability.loadings, fit_capability(left_out).loadings)
    codes = {note.code for note in identifiability(placed)}
    assert "no-text-scores" not in codes
    assert "placed-by-size" in {note.code for note in capability.notes}


def test_a_backbone_of_unknown_size_stays_out():
    study = cdm.load_study("open-vlm")
    unscored = study.text_scores.index.difference(study.scored)[0]
    table = study.backbones.copy()
    table.loc[unscored, "params"] = np.nan
    placed = Study(
        study.name, study.text_scores, table, study.runs, study.scores, notes=study.notes, unscored="by_size"
    )
    assert unscored not in placed.placed_by_size
    assert unscored not in fit_capability(placed).scores.index
