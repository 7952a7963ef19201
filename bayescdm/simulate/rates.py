"""Simulated rates: drawn from populations, near the paper's tables, or given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bayescdm.errors import RequestError, unknown_name
from bayescdm.laws import absorption_rate
from bayescdm.simulate.labels import labelled
from bayescdm.study import VARIANTS

__all__ = ["DEFAULT_RATES", "RATES", "RatePopulation", "draw_rates"]

RATES = ("A", "B0", "Bm")
#: Draws of rates tried until no backbone has a negative absorption rate.
MAX_TRIES = 1000


@dataclass(frozen=True)
class RatePopulation:
    """How a rate varies over families and variants.

    Parameters
    ----------
    median : float
        Population median; 0 makes the rate 0 everywhere.
    family_scale : float
        Standard deviation of the families' deviations of the log rate.
    contrast : float
        Instruct − base on the log scale.
    contrast_scale : float
        Standard deviation of the families' deviations of that contrast.
    """

    median: float
    family_scale: float = 0.25
    contrast: float = 0.0
    contrast_scale: float = 0.0

    def draw(self, families: Sequence[str], rng: np.random.Generator) -> np.ndarray:
        """Draw the rate of each cell.

        Parameters
        ----------
        families : sequence of str
        rng : Generator

        Returns
        -------
        ndarray, (family, variant)
            median · exp(family deviation ± ½·contrast), + for instruct.
        """
        family = self.family_scale * rng.standard_normal(len(families))
        contrast = self.contrast + self.contrast_scale * rng.standard_normal(len(families))
        return self.median * np.exp(family[:, None] + contrast[:, None] * np.array([-0.5, 0.5]))


#: Rates of the order of the paper's Tables 2 and 3: medians near those of its fits to all families,
#: contrasts near log(instruct / base) of its Table 2.
DEFAULT_RATES: Mapping[str, RatePopulation] = {
    "A": RatePopulation(0.25, 0.25, 0.18, 0.10),
    "B0": RatePopulation(0.0155, 0.25, -0.07, 0.10),
    "Bm": RatePopulation(0.0120, 0.30, 0.29, 0.10),
}


def draw_rates(
    backbones: pd.DataFrame,
    S: dict[str, float],
    rates: Mapping[str, RatePopulation] | pd.DataFrame,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """A, B0 and Bm by family and variant, B by backbone, and the populations they were drawn from."""
    families = sorted(backbones["family"].unique())
    cells = pd.MultiIndex.from_product([families, VARIANTS], names=["family", "variant"])
    of_backbone = cells.get_indexer(pd.MultiIndex.from_frame(backbones[["family", "variant"]]))
    capability = np.array([S[label] for label in backbones.index])
    populations: dict[str, Any] = {}
    if isinstance(rates, pd.DataFrame):
        table = _given_rates(rates, cells, of_backbone)
        B = _absorption(table, of_backbone, capability)
    else:
        for name in rates:
            if name not in RATES:
                raise unknown_name("rate", name, RATES)
        chosen = {**DEFAULT_RATES, **rates}
        for _ in range(MAX_TRIES):
            draws = {name: chosen[name].draw(families, rng).ravel() for name in RATES}
            table = pd.DataFrame(draws, index=cells)
            B = _absorption(table, of_backbone, capability)
            if (B >= 0).all():
                break
        else:
            raise RequestError(
                f"some backbone had a negative absorption rate B0 − Bm·S in all of {MAX_TRIES} draws; "
                "use a larger B0 or a smaller Bm"
            )
        for name in RATES:
            population = chosen[name]
            populations |= {
                f"{name}_population": population.median,
                f"{name}_family_scale": population.family_scale,
                f"{name}_contrast": population.contrast,
                f"{name}_contrast_scale": population.contrast_scale,
            }
    by_cell = {name: {family: table.loc[family, name].to_dict() for family in families} for name in RATES}
    return by_cell | {"B": labelled(backbones.index, B)} | populations


def _given_rates(rates: pd.DataFrame, cells: pd.MultiIndex, used: np.ndarray) -> pd.DataFrame:
    """Rates as given, on all cells; those of cells without a backbone may be missing."""
    table = rates.reindex(index=cells, columns=list(RATES))
    for family, variant in cells[np.unique(used)]:
        values = table.loc[(family, variant)]
        if not (values >= 0).all():
            raise RequestError(
                f"rates of {family}, {variant}: A, B0 and Bm must be given and not negative, not "
                f"{', '.join(f'{value:g}' for value in values)}"
            )
    return table


def _absorption(table: pd.DataFrame, of_backbone: np.ndarray, S: np.ndarray) -> np.ndarray:
    """Absorption rate of each backbone."""
    return absorption_rate(S, table["B0"].to_numpy()[of_backbone], table["Bm"].to_numpy()[of_backbone])
