"""Studies drawn from known parameters: always called simulated, with the truth beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from bayescdm.errors import Note, RequestError
from bayescdm.laws import transfer_absorption
from bayescdm.seeds import generator
from bayescdm.simulate.labels import labelled, look_up
from bayescdm.simulate.rates import DEFAULT_RATES, RATES, RatePopulation, draw_rates
from bayescdm.simulate.text import draw_coefficients, draw_direction, draw_text_scores, unit
from bayescdm.study import RUN_COLUMNS, VARIANTS, Study
from bayescdm.wording import counted

__all__ = ["PAPER_VOLUMES", "simulate_from", "true_accuracy"]

#: Every part of a simulated study has its own random stream.
_STREAMS = (
    "tokens",
    "offsets",
    "size",
    "direction",
    "coefficients",
    "text",
    "rates",
    "recipes",
    "backbones",
    "residuals",
    "missing_text",
    "missing_runs",
)

#: Checkpoints of the paper's trajectories, 2.5B to 50B tokens; 12.5B is where it fixes D.
PAPER_VOLUMES = (2.5e9, 5e9, 12.5e9, 25e9, 50e9)
#: S per unit of ln N, and its scatter around the line of a family.
SIZE_SLOPE, SIZE_SCATTER = 0.23, 0.03


def simulate_from(
    seed: int = 0,
    *,
    name: str = "simulated study",
    roster: pd.DataFrame | None = None,
    n_families: int = 5,
    backbones_per_cell: int = 3,
    rates: Mapping[str, RatePopulation] | pd.DataFrame | None = None,
    S: np.ndarray | None = None,
    w: np.ndarray | None = None,
    n_components: int = 3,
    n_text_benchmarks: int = 40,
    coefficients: pd.Series | None = None,
    text_noise: float = 0.02,
    missing_text: float = 0.0,
    volumes: Sequence[float] = PAPER_VOLUMES,
    volume_unit: str = "tokens",
    missing_runs: float = 0.0,
    n_recipes: int = 1,
    recipe_scale: float = 0.03,
    P0: float = 0.55,
    tau: float = 0.012,
    sigma: float = 0.006,
    nu: float | None = 4.0,
    benchmark: str = "average of 35",
) -> Study:
    """Simulate a study from explicit parameters.

    Parameters
    ----------
    seed : int
        Same seed and parameters, same study. Each part has its own random stream, so that changing the
        noise, say, leaves the rates as they were.
    name : str
        The study is called so, with the seed; the word "simulated" is put in front where it is missing.
    roster : DataFrame, optional
        ``family``, ``variant``, ``params``, optionally ``active_params``; indexed by backbone. By default
        `n_families` families with `backbones_per_cell` base and instruct models each, 0.5B to 10B.
    rates : mapping of str to RatePopulation, or DataFrame, optional
        Population of ``A``, ``B0`` and ``Bm`` (default `DEFAULT_RATES`; those left out keep their
        default), drawn until no backbone has a negative absorption rate; or the rates themselves, columns
        ``A``, ``B0``, ``Bm``, indexed by (family, variant).
    S : array, shape (backbone,), optional
        Capability before text noise; a line in ln N for each family by default. Centred.
    w : array, shape (component,), optional
        Direction; normalised. Uniform on the half sphere w₁ > 0.3 by default.
    n_components, n_text_benchmarks : int
        Rank and number of text benchmarks, when `w` and `coefficients` do not say.
    coefficients : Series, (benchmark,), optional
        λ up to scale, with the names of the benchmarks.
    text_noise : float
        Standard deviation of what the components do not explain, a fraction.
    missing_text, missing_runs : float
        Shares not measured. Every backbone keeps at least one score, and a study at least one run.
    volumes : sequence of float
        D of every trajectory, in `volume_unit`.
    n_recipes, recipe_scale
        Number of recipes, each run by every backbone, and the spread of their effects, which sum to zero.
    P0, tau, sigma, nu
        Baseline; spread of backbone intercepts; scale and degrees of freedom of the residual (None for a
        Normal one). With tau = sigma = 0 the law holds exactly.
    benchmark : str
        What the accuracy of a run is called.

    Returns
    -------
    Study
        A note ``clipped`` says how many scores and accuracies had to be put at 0 or 1. `Study.truth` holds,
        JSON-able: ``w``, ``S``, ``components``, ``loadings``, ``mean``, ``lambda``; ``A``, ``B0``, ``Bm`` by
        family and variant, ``B`` by backbone, ``<rate>_population``, ``<rate>_family_scale``,
        ``<rate>_contrast``, ``<rate>_contrast_scale`` where drawn from a population; ``P0`` at
        ``volume_ref``, ``recipe_effect``, ``backbone_effect``, ``tau``, ``sigma``, ``nu``; ``seed``.

    Raises
    ------
    RequestError
        When the parameters leave no study: too few backbones for the components, counts below 1, volumes ≤ 0,
        shares outside [0, 1), negative spreads, absorption rates that stay negative.

    Notes
    -----
    P = A·S + (B0 − Bm·S)·ln(D/D_ref) + P0 + recipe effect + backbone intercept + residual, eqs. 7 and 8 of
    *What Transfers from Text to Vision?* with D_ref the geometric mean of `volumes`.

    Examples
    --------
    >>> study = simulate_from(seed=1, n_families=3, tau=0, sigma=0)
    >>> law = true_accuracy(study, study.runs["backbone"], study.runs["volume"])
    >>> bool(np.allclose(law, study.runs["accuracy"]))
    True
    """
    _check(volumes, missing_text, missing_runs, text_noise, recipe_scale, tau, sigma, nu)
    counts = {
        "n_families": n_families,
        "backbones_per_cell": backbones_per_cell,
        "n_components": n_components,
        "n_text_benchmarks": n_text_benchmarks,
        "n_recipes": n_recipes,
    }
    for count, number in counts.items():
        if number < 1:
            raise RequestError(f"{count} is {number}: give at least 1")
    streams = dict(zip(_STREAMS, generator(seed).spawn(len(_STREAMS)), strict=True))
    label = f"{name if 'simulated' in name else f'simulated {name}'}, seed {seed}"
    if roster is None:
        roster = _roster(n_families, backbones_per_cell)
    backbones = _backbones(roster, label, streams["tokens"])
    if w is None:
        w = draw_direction(n_components, streams["direction"])
    if coefficients is None:
        coefficients = draw_coefficients(n_text_benchmarks, streams["coefficients"])
    if S is None:
        S = line_in_size(backbones, _family_offsets(backbones["family"], streams["offsets"]), streams["size"])
    text_scores, truth = draw_text_scores(
        backbones.index, np.asarray(S, float), unit(w), coefficients, text_noise, streams["text"]
    )
    truth |= draw_rates(backbones, truth["S"], DEFAULT_RATES if rates is None else rates, streams["rates"])
    backbone_effect = tau * streams["backbones"].standard_normal(len(backbones))
    truth |= {
        "P0": float(P0),
        "volume_ref": float(np.exp(np.mean(np.log(volumes)))),
        "recipe_effect": _recipe_effects(n_recipes, recipe_scale, streams["recipes"]),
        "backbone_effect": labelled(backbones.index, backbone_effect),
        "tau": float(tau),
        "sigma": float(sigma),
        "nu": None if nu is None else float(nu),
        "seed": seed,
    }
    complete = Study(
        name=label,
        text_scores=text_scores,
        backbones=backbones,
        runs=pd.DataFrame(columns=list(RUN_COLUMNS)),
        volume_unit=volume_unit,
        volume_ref=truth["volume_ref"],
        notes=(Note("simulated", f"runs and text scores were drawn from known parameters, seed {seed}"),),
        simulated=True,
        truth=truth,
    )
    runs = _runs(complete, volumes, benchmark, streams["residuals"])
    clipped = {
        "text score": int(text_scores.isin([0.0, 1.0]).sum().sum()),
        "accuracy": int(runs["accuracy"].isin([0.0, 1.0]).sum()),
    }
    notes = [
        Note("clipped", f"{counted(number, what)} beyond 0 or 1 put there: the truth has no such bounds")
        for what, number in clipped.items()
        if number
    ]
    return replace(
        complete.with_notes(*notes),
        text_scores=_without_cells(text_scores, missing_text, streams["missing_text"]),
        runs=_without_rows(runs, missing_runs, streams["missing_runs"]),
    )


def true_accuracy(
    study: Study,
    backbone: Sequence[str] | pd.Series,
    volume: Sequence[float] | pd.Series | float,
    recipe: Sequence[str] | pd.Series | None = None,
    *,
    with_backbone_effect: bool = True,
) -> np.ndarray:
    """Accuracy that the truth of a simulated study gives, without residual.

    Parameters
    ----------
    study : Study
        Simulated.
    backbone : sequence of str, (run,)
    volume : float or sequence of float, (run,)
        In the study's unit.
    recipe : sequence of str, (run,), optional
        By default the mean of the recipes, whose effect is 0.
    with_backbone_effect : bool
        Whether the backbone's intercept is included.

    Returns
    -------
    ndarray, (run,)
        Fractions.

    Raises
    ------
    RequestError
        When the study is not simulated, or its truth is lost.
    NotFoundError
        When a backbone or recipe is unknown.
    """
    truth = study.truth
    if not study.simulated:
        raise RequestError(f"study '{study.name}' is not simulated: nobody knows its true accuracy")
    if not truth:
        raise RequestError(f"study '{study.name}' came without its truth.json: its true accuracy is lost")
    labels = pd.Index(backbone)
    S = look_up(truth["S"], labels, "backbone")
    cells = study.backbones.loc[labels, ["family", "variant"]].to_numpy()
    A, B0, Bm = (np.array([truth[rate][f][v] for f, v in cells]) for rate in RATES)
    log_volume = np.log(np.asarray(volume, float) / truth["volume_ref"])
    baseline = np.full(len(labels), truth["P0"])
    if recipe is not None:
        baseline += look_up(truth["recipe_effect"], pd.Index(recipe), "recipe")
    if with_backbone_effect:
        baseline += look_up(truth["backbone_effect"], labels, "backbone")
    return transfer_absorption(S, log_volume, A, B0, Bm, baseline)


def _check(
    volumes: Sequence[float],
    missing_text: float,
    missing_runs: float,
    text_noise: float,
    recipe_scale: float,
    tau: float,
    sigma: float,
    nu: float | None,
) -> None:
    """Raise a RequestError for parameters that describe no study."""
    if not len(volumes) or not all(0 < volume < np.inf for volume in volumes):
        raise RequestError(f"volumes must be positive numbers, not {list(volumes)}")
    for name, share in (("missing_text", missing_text), ("missing_runs", missing_runs)):
        if not 0 <= share < 1:
            raise RequestError(f"{name} is a share of at least 0 and below 1, not {share:g}")
    spreads = {"text_noise": text_noise, "recipe_scale": recipe_scale, "tau": tau, "sigma": sigma}
    for name, spread in spreads.items():
        if not 0 <= spread < np.inf:
            raise RequestError(f"{name} is a spread and cannot be {spread:g}")
    if nu is not None and not nu > 0:
        raise RequestError(f"nu must be positive, or None for a Normal residual, not {nu:g}")


def _roster(n_families: int, backbones_per_cell: int) -> pd.DataFrame:
    """Families F1, F2, … with base and instruct models of the same sizes, 0.5B to 10B."""
    sizes = np.geomspace(0.5e9, 10e9, backbones_per_cell) if backbones_per_cell > 1 else np.array([3e9])
    rows = [
        (f"F{family}-{size / 1e9:.3g}B-{variant}", f"F{family}", variant, float(round(size)))
        for family in range(1, n_families + 1)
        for size in sizes
        for variant in VARIANTS
    ]
    return pd.DataFrame(rows, columns=["backbone", "family", "variant", "params"]).set_index("backbone")


def _backbones(roster: pd.DataFrame, label: str, rng: np.random.Generator) -> pd.DataFrame:
    """Roster with active parameters, and text tokens between 2T and 36T that a family shares."""
    families = pd.Index(roster["family"].unique())
    log_tokens = rng.uniform(np.log(2e12), np.log(36e12), len(families))
    tokens = roster["family"].map(pd.Series(np.exp(log_tokens), index=families))
    backbones = roster.assign(text_tokens=tokens, source=label)
    if "active_params" not in roster:
        backbones.insert(backbones.columns.get_loc("params") + 1, "active_params", roster["params"])
    return backbones.rename_axis("backbone")


def _family_offsets(family: pd.Series, rng: np.random.Generator) -> np.ndarray:
    """Offset in S that the backbones of a family share."""
    families = pd.Index(family.unique())
    offsets = pd.Series(0.08 * rng.standard_normal(len(families)), index=families)
    return family.map(offsets).to_numpy()


def line_in_size(backbones: pd.DataFrame, offset: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Capability before text noise: a line in ln N, where a mixture of experts counts as the geometric mean.

    Log-linear in compute too (eqs. 3 and 5 of the paper), since a family shares its text tokens.
    """
    log_size = 0.5 * (np.log(backbones["params"]) + np.log(backbones["active_params"])).to_numpy(float)
    S = SIZE_SLOPE * log_size + offset + SIZE_SCATTER * rng.standard_normal(len(backbones))
    return S - S.mean()


def _recipe_effects(n_recipes: int, scale: float, rng: np.random.Generator) -> dict[str, float]:
    """Effects of the recipes, summing to zero."""
    effects = scale * rng.standard_normal(n_recipes)
    names = [f"simulated recipe {i}" for i in range(1, n_recipes + 1)]
    return labelled(pd.Index(names), effects - effects.mean())


def _runs(study: Study, volumes: Sequence[float], benchmark: str, rng: np.random.Generator) -> pd.DataFrame:
    """Every backbone under every recipe at every volume: law, intercepts and residual."""
    grid = pd.MultiIndex.from_product(
        [study.truth["recipe_effect"], study.backbones.index, volumes], names=["recipe", "backbone", "volume"]
    )
    runs = grid.to_frame(index=False)
    nu = study.truth["nu"]
    residual = rng.standard_normal(len(runs)) if nu is None else rng.standard_t(nu, len(runs))
    accuracy = true_accuracy(study, runs["backbone"], runs["volume"], runs["recipe"])
    runs["accuracy"] = np.clip(accuracy + study.truth["sigma"] * residual, 0, 1)
    runs["encoder"] = "simulated encoder"
    runs["vlm"] = "simulated VLM on " + runs["backbone"]
    runs["benchmark"] = benchmark
    count = benchmark.rpartition(" ")[2]
    runs["n_benchmarks"] = int(count) if count.isdigit() else 1
    runs["standard_error"] = np.nan
    runs["source"] = study.name
    recipe = "" if len(study.truth["recipe_effect"]) == 1 else ", " + runs["recipe"]
    runs.index = pd.Index(runs["backbone"] + recipe + runs["volume"].map(", D = {:.3g}".format), name="run")
    return runs[list(RUN_COLUMNS)]


def _without_cells(scores: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Text scores of which a share is missing at random; every backbone keeps one."""
    missing = rng.uniform(size=scores.shape) < share
    missing[np.arange(len(scores)), rng.integers(scores.shape[1], size=len(scores))] = False
    return scores.mask(missing)


def _without_rows(runs: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Runs of which a share is missing at random; one stays."""
    kept = rng.uniform(size=len(runs)) >= share
    kept[rng.integers(len(runs))] = True
    return runs[kept]
