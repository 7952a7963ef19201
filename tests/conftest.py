"""Fits that several test modules share: real ones, sampled once a session, and one whose draws are known."""

import signal
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayescdm as cdm
from bayescdm.capability import fit_capability
from bayescdm.fit import Fit, fit_compiled
from bayescdm.modelfiles import load_model
from bayescdm.modeling import model_data
from bayescdm.sampling import compile_model
from bayescdm.study import VARIANTS, Study


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard():
    """Shells start jobs in the background with Ctrl-C ignored; tests of it would then sample for hours."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def open_vlm_compiled():
    """The default model compiled for the packaged published figures: study, capability, compiled model."""
    study = cdm.load_study("open-vlm")
    capability = fit_capability(study)
    build = load_model("transfer_hierarchical").build
    return study, capability, compile_model(build, model_data(study, capability))


@pytest.fixture(scope="session")
def open_vlm_fit(open_vlm_compiled) -> Fit:
    """The default model on the packaged published figures, default settings: what ``cdm.fit`` returns."""
    study, capability, compiled = open_vlm_compiled
    return fit_compiled(compiled, study, capability, model="transfer_hierarchical", seed=1)


@pytest.fixture(scope="session")
def simulated_fit() -> Fit:
    """The default model on a simulated study of the paper's roster; its truth is in ``.study.truth``."""
    return cdm.fit(cdm.simulate(seed=1), seed=1)


RECIPES = ("narrow", "wide")
VOLUME_REF = 1e6
#: Backbones with runs; the rest of the study are candidates.
FITTED = {"f-base": ("F", "base"), "f-instruct": ("F", "instruct"), "g-base": ("G", "base")}
CANDIDATES = {"f-other": ("F", "base"), "g-instruct": ("G", "instruct"), "n-base": ("N", "base")}


def known_study(recipes=RECIPES) -> Study:
    """Six scored backbones, one unscored, runs at 1e5 to 1e7 samples under each recipe."""
    labels = {**FITTED, **CANDIDATES, "unscored": ("F", "base")}
    backbones = pd.DataFrame(labels.values(), index=list(labels), columns=["family", "variant"])
    backbones["params"] = [1e9, 2e9, 4e9, 7e9, 8e9, 9e9, 1e9]
    rng = np.random.default_rng(5)
    text_scores = pd.DataFrame(rng.uniform(0.3, 0.6, (7, 3)), index=backbones.index, columns=["x", "y", "z"])
    text_scores.loc["unscored"] = np.nan
    runs = pd.DataFrame(
        [(r, b, v, 0.5) for r in recipes for b in FITTED for v in (1e5, 1e7)],
        columns=["recipe", "backbone", "volume", "accuracy"],
    )
    runs.index = [f"run {i}" for i in range(len(runs))]
    return Study("made by hand", text_scores, backbones, runs, volume_ref=VOLUME_REF)


def known_draws(draws: int, recipes=RECIPES, seed: int = 0) -> dict:
    """Two chains of draws for every quantity of the models' contract, by name: (dims, values)."""
    rng = np.random.default_rng(seed)
    shape = (2, draws)
    angle = rng.normal(0.3, 0.1, shape)
    rates = {"A": 0.25, "B0": 0.02, "Bm": 0.01}
    quantities = {
        "w": (("component",), np.stack([np.cos(angle), np.sin(angle)], axis=-1)),
        "S": (("backbone",), rng.normal([-0.1, 0.0, 0.1], 0.01, (*shape, len(FITTED)))),
        "P0": ((), rng.normal(0.5, 0.01, shape)),
        "recipe_effect": (("recipe",), rng.normal(0, 0.05, (*shape, 1)) * [1, -1]),
        "recipe_scale": ((), rng.uniform(0.04, 0.06, shape)),
        "tau": ((), rng.uniform(0.01, 0.02, shape)),
        "backbone_effect": (("backbone",), rng.normal(0, 0.02, (*shape, len(FITTED)))),
        "sigma": ((), rng.uniform(0.01, 0.02, shape)),
        "nu": ((), rng.uniform(5, 10, shape)),
    }
    if len(recipes) == 1:
        del quantities["recipe_effect"], quantities["recipe_scale"]
    for name, median in rates.items():
        quantities |= {
            name: (("family", "variant"), median * np.exp(rng.normal(0, 0.2, (*shape, 2, 2)))),
            f"{name}_population": ((), median * np.exp(rng.normal(0, 0.1, shape))),
            f"{name}_family_scale": ((), rng.uniform(0.2, 0.4, shape)),
            f"{name}_contrast": ((), rng.normal(0.2, 0.1, shape)),
            f"{name}_contrast_scale": ((), rng.uniform(0.1, 0.2, shape)),
        }
    return quantities


@pytest.fixture(scope="session")
def known_fit():
    """Maker of fits whose posterior draws are known: ``known_fit(draws=…, without=…, **changed_draws)``."""

    def make(draws=200, *, without=(), weights=None, recipes=RECIPES, study=None, **changed) -> Fit:
        study = study or known_study(recipes)
        quantities = {k: v for k, v in known_draws(draws, recipes).items() if k not in without}
        quantities |= changed
        coords = {
            "component": ["PC1", "PC2"],
            "family": ["F", "G"],
            "variant": list(VARIANTS),
            "backbone": list(FITTED),
            "recipe": list(recipes),
            "run": list(study.runs.index),
        }
        posterior = xr.Dataset(
            {name: (("chain", "draw", *dims), values) for name, (dims, values) in quantities.items()}, coords
        )
        runs, families = study.runs, [study.backbones.at[name, "family"] for name in FITTED]
        log_params = np.log(study.backbones.loc[list(FITTED), "params"].to_numpy())
        constant = xr.Dataset(
            {
                "family_of_backbone": ("backbone", pd.Index(coords["family"]).get_indexer(families)),
                "log_params": ("backbone", log_params - log_params.mean()),
                "log_params_ref": log_params.mean(),
                "backbone_of_run": ("run", pd.Index(list(FITTED)).get_indexer(runs["backbone"])),
                "log_volume": ("run", np.log(runs["volume"] / VOLUME_REF).to_numpy()),
                "volume_known": ("run", np.ones(len(runs), int)),
                "weight": ("run", np.ones(len(runs)) if weights is None else np.asarray(weights, float)),
            },
            coords,
        )
        diverging = xr.Dataset({"diverging": (("chain", "draw"), np.zeros((2, draws), bool))})
        # A prior with all rates doubled, and so their spread.
        rates = [name for name in posterior if str(name).split("_")[0] in ("A", "B0", "Bm")]
        rates = [name for name in rates if not str(name).endswith(("_scale", "_contrast"))]
        prior = posterior.assign({name: 2 * posterior[name] for name in rates})
        groups = {
            "posterior": posterior,
            "sample_stats": diverging,
            "constant_data": constant,
            "prior": prior,
        }
        tree = xr.DataTree.from_dict(groups)
        return Fit(tree, study, fit_capability(study, components=2), "transfer_hierarchical")

    return make


@pytest.fixture(scope="session")
def one_law(known_fit) -> Fit:
    """Known draws of the paper's law: one A, B0 and Bm for all families and both variants."""
    shape = (2, 200)
    rng = np.random.default_rng(3)
    medians = {"A": 0.25, "B0": 0.02, "Bm": 0.01}
    drawn = {rate: median * np.exp(rng.normal(0, 0.1, shape)) for rate, median in medians.items()}
    cells = {
        rate: (("family", "variant"), np.broadcast_to(values[..., None, None], (*shape, 2, 2)))
        for rate, values in drawn.items()
    }
    population = {f"{rate}_population": ((), values) for rate, values in drawn.items()}
    parts = ("family_scale", "contrast", "contrast_scale")
    absent = [f"{rate}_{part}" for rate in medians for part in parts]
    return replace(known_fit(200, without=absent, **cells, **population), model="transfer_pooled")
