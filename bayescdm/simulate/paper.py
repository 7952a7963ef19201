"""The simulated study of the paper: its roster, near its tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from bayescdm.datasets import paper_table
from bayescdm.seeds import generator
from bayescdm.simulate.rates import RATES, RatePopulation
from bayescdm.simulate.studies import PAPER_VOLUMES, line_in_size, simulate_from
from bayescdm.simulate.text import unit
from bayescdm.study import VARIANTS, Study

__all__ = ["simulate"]

#: Where families of the paper lie above (+) or below the common line of S in ln N: chosen, not published.
PAPER_OFFSETS = {
    "Qwen3": 0.13,
    "Qwen2.5": 0.05,
    "Falcon3": 0.03,
    "Gemma-2": 0.0,
    "Llama-3.2": 0.0,
    "Mistral": -0.06,
    "DeepSeek": -0.14,
}
#: Families of Table 3 → their names in the roster.
TABLE_3_FAMILIES = {"Llama": "Llama-3.2", "Gemma": "Gemma-2", "Falcon3": "Falcon3", "Qwen3": "Qwen3"}


def simulate(
    seed: int = 0,
    *,
    rates: Mapping[str, RatePopulation] | pd.DataFrame | None = None,
    missing_text: float = 0.02,
    missing_runs: float = 0.05,
    text_noise: float = 0.01,
    **options: Any,
) -> Study:
    """Simulate a study of the paper's roster: 34 backbones of 7 families, 2.5B to 50B tokens.

    Parameters
    ----------
    seed : int
        Same seed, same study.
    rates : mapping of str to RatePopulation, or DataFrame, optional
        As in `simulate_from`. By default drawn near the paper's tables: families of Table 3 around their
        fitted rates, the others around those of Table 2, with the Base/Instruct contrasts of Table 2.
    missing_text, missing_runs : float
        Shares of text scores and runs that are not measured.
    text_noise : float
        Small enough that three components have 95 % of the variance, as in the paper.
    **options
        Other parameters of `simulate_from`.

    Returns
    -------
    Study
        Text benchmarks are the 40 of Table 5, with λ proportional to Table 7. Capability lies in about
        [−0.4, 0.4] up to 8B and above 0.6 for 72B, as in the paper. Runs, scores and text tokens are
        simulated, and the study says so in name, notes and sources.

    Examples
    --------
    >>> study = simulate(seed=0)
    >>> study.name, study.simulated, len(study.backbones)
    ('simulated study of the paper, seed 0', True, 34)
    """
    rng = generator(seed, 1)
    roster = paper_table("roster").set_index("backbone").drop(columns="source")
    size_offset = roster["family"].map(PAPER_OFFSETS) + 0.02 * (roster["variant"] == "instruct")
    arguments: dict[str, Any] = {
        "name": "simulated study of the paper",
        "roster": roster,
        "S": line_in_size(roster, size_offset.to_numpy(), rng),
        "rates": _paper_rates(roster, rng) if rates is None else rates,
        "w": unit(np.array([0.45, 0.6, 0.55]) + 0.1 * rng.standard_normal(3)),
        "coefficients": paper_table("transfer_coefficients").set_index("benchmark")["lambda"],
        "volumes": PAPER_VOLUMES,
        "text_noise": text_noise,
        "missing_text": missing_text,
        "missing_runs": missing_runs,
    }
    return simulate_from(seed, **(arguments | options))


def _paper_rates(roster: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Rates drawn near the paper's tables, one a family and variant.

    Families of Table 3 have its rates, the others lie around those of Table 2; the deviation of a family
    is drawn around that (10 % for A and B0, 15 % for Bm), the contrast is that of Table 2.
    """
    by_variant = paper_table("rates_by_variant").set_index("variant")[list(RATES)]
    by_family = paper_table("rates_by_family").replace({"family": TABLE_3_FAMILIES}).set_index("family")
    middle = np.exp(np.log(by_variant).mean())
    half_contrast = 0.5 * np.log(by_variant.loc["instruct"] / by_variant.loc["base"])
    rows = {}
    for family in sorted(roster["family"].unique()):
        centre = by_family.loc[family, list(RATES)] if family in by_family.index else middle
        deviation = np.array([0.10, 0.10, 0.15]) * rng.standard_normal(3)
        for variant, sign in zip(VARIANTS, (-1, 1), strict=True):
            rows[family, variant] = centre.astype(float) * np.exp(deviation + sign * half_contrast)
    return pd.DataFrame(rows).T.rename_axis(["family", "variant"])
