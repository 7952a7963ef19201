"""What training a backbone on a volume costs, and which volumes a budget allows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bayescdm.errors import Note, RequestError
from bayescdm.reading.cells import IF_UNKNOWN, CellError, Dots, is_missing, read_count
from bayescdm.reading.columns import name_columns
from bayescdm.reading.counts import dots_of
from bayescdm.reading.findings import Findings
from bayescdm.reading.scores import find_decimal_mark
from bayescdm.reading.settings import Settings
from bayescdm.reading.sheets import Sheet, read_sheet
from bayescdm.study import Study

__all__ = [
    "CostTable",
    "FlopCost",
    "SizeCost",
    "TrainingCost",
    "on_front",
    "price",
    "read_cost_table",
    "training_flops",
]

#: FLOPs a parameter and token: forward 2, backward 4, of which 2 for the weights' own gradients.
FULL, FROZEN = 6.0, 4.0
#: Volumes that are tried where a budget allows a range of them.
VOLUMES_TRIED = 7


def training_flops(
    active_params: float, volume: float, *, tokens_per_sample: float = 1.0, projector_volume: float = 0.0
) -> float:
    """Floating-point operations of training a VLM: 6·N_active·D, D in tokens.

    Parameters
    ----------
    active_params : float
        N_active of the backbone, an absolute count. Vision encoder and projector are not counted.
    volume : float
        All data, in samples or tokens.
    tokens_per_sample : float
        1 where the volume is in tokens.
    projector_volume : float
        The part of `volume` of a first stage that trains the projector alone. The backbone is frozen there:
        gradients pass through it and are not taken for its weights, 4·N_active a token.

    Returns
    -------
    float

    Notes
    -----
    C ≈ 6·N·D (Kaplan et al. 2020; Hoffmann et al. 2022), with N the parameters that a token meets.

    Examples
    --------
    >>> training_flops(7e9, 1e9)
    4.2e+19
    >>> training_flops(7e9, 1e9, projector_volume=5e8)
    3.5e+19
    """
    first = min(projector_volume, volume)
    return active_params * tokens_per_sample * (FULL * (volume - first) + FROZEN * first)


class TrainingCost:
    """What a backbone costs at a volume, and what a budget allows; one subclass a way of counting."""

    unit = ""
    #: Whether a candidate must state its number of parameters.
    needs_params = True
    #: Whether costs of different volumes can be compared.
    counts_volume = True

    def amount(self, cost: float) -> str:
        """Write a cost with its unit, of four digits."""
        figure = f"{cost:.4g}"
        return f"{figure} {self.unit.replace('units', 'unit') if figure == '1' else self.unit}"

    def cost(self, backbone: str, active_params: float, volume: float) -> float:
        """Return the cost of training on a volume; NaN where it is not known."""
        raise NotImplementedError

    def volumes(
        self, backbone: str, active_params: float, budget: float, span: tuple[float, float]
    ) -> np.ndarray:
        """Return volumes to try within a budget and a span; none if even the smallest costs too much."""
        raise NotImplementedError


@dataclass(frozen=True)
class FlopCost(TrainingCost):
    """Training cost in FLOPs; see `training_flops`."""

    tokens_per_sample: float = 1.0
    projector_volume: float = 0.0

    unit = "FLOPs"

    def cost(self, backbone: str, active_params: float, volume: float) -> float:
        """Return the FLOPs of a volume."""
        return training_flops(
            active_params,
            volume,
            tokens_per_sample=self.tokens_per_sample,
            projector_volume=self.projector_volume,
        )

    def volumes(
        self, backbone: str, active_params: float, budget: float, span: tuple[float, float]
    ) -> np.ndarray:
        """Return volumes from the smallest of the span to the largest that the budget allows."""
        first = self.cost(backbone, active_params, self.projector_volume)
        beyond = (budget - first) / (FULL * active_params * self.tokens_per_sample)
        low = max(span[0], self.projector_volume)
        high = min(self.projector_volume + beyond, span[1])
        return np.unique(np.geomspace(low, high, VOLUMES_TRIED)) if high >= low else np.empty(0)


@dataclass(frozen=True)
class SizeCost(TrainingCost):
    """Active parameters: at one volume, training cost is proportional to them."""

    unit = "active parameters"
    needs_params = False
    counts_volume = False

    def cost(self, backbone: str, active_params: float, volume: float) -> float:
        """Return the active parameters, whatever the volume."""
        return active_params

    def volumes(
        self, backbone: str, active_params: float, budget: float, span: tuple[float, float]
    ) -> np.ndarray:
        """Refuse: at different volumes the cost is not proportional to size."""
        raise RequestError("a budget needs a cost; give FLOPs or a cost table")


@dataclass(frozen=True)
class CostTable(TrainingCost):
    """Costs as the user states them, in a unit of the user's own.

    Parameters
    ----------
    rows : DataFrame
        ``backbone``, ``volume`` (in the study's unit; NaN where the cost is that of the asked volume),
        ``cost``; one row a backbone and volume.
    notes : tuple of Note
        What was done to the file that they were read from.
    """

    rows: pd.DataFrame
    notes: tuple[Note, ...] = ()

    unit = "units of cost"
    needs_params = False

    @property
    def has_volumes(self) -> bool:
        """Whether the table says at which volume each cost is."""
        return bool(self.rows["volume"].notna().all())

    def cost(self, backbone: str, active_params: float, volume: float) -> float:
        """Return the cost of a volume that the table lists; NaN of another."""
        rows = self.rows[self.rows["backbone"] == backbone]
        at = rows["volume"].isna() | np.isclose(rows["volume"], volume, rtol=1e-9)
        return float(rows.loc[at, "cost"].min()) if at.any() else np.nan

    def volumes(
        self, backbone: str, active_params: float, budget: float, span: tuple[float, float]
    ) -> np.ndarray:
        """Return the listed volumes that the span and the budget allow."""
        rows = self.within(backbone, span)
        return np.unique(rows.loc[rows["cost"] <= budget, "volume"].to_numpy())

    def within(self, backbone: str, span: tuple[float, float]) -> pd.DataFrame:
        """Return the rows of a backbone whose volume lies within a span, but for rounding."""
        inside = self.rows["volume"].between(span[0] * (1 - 1e-9), span[1] * (1 + 1e-9))
        return self.rows[(self.rows["backbone"] == backbone) & inside]


def read_cost_table(path: str | Path) -> CostTable:
    """Read a table of costs.

    Parameters
    ----------
    path : str or Path
        Table (CSV, TSV, Excel or Parquet) with columns ``backbone``, ``cost`` and, where costs are at several
        volumes, ``volume``; other columns are left out with a note. Equal rows are merged with a note.

    Returns
    -------
    CostTable

    Raises
    ------
    InputError
        All problems of the file, a line each; two costs of one backbone at one volume among them.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "costs.csv"
    >>> _ = path.write_text("backbone,volume,cost\\nmine/7b,1.2M,850\\n")
    >>> read_cost_table(path).cost("mine/7b", 7e9, 1.2e6)
    850.0
    """
    findings = Findings()
    sheet = read_sheet(Path(path), ["backbone", "cost"], findings)
    rows = _costs(sheet) if sheet else None
    findings.raise_problems()
    assert rows is not None
    return CostTable(rows, findings.told())


def _costs(sheet: Sheet) -> pd.DataFrame | None:
    """The rows of a sheet as numbers; None where a column is missing."""
    name_columns(sheet, ("backbone", "volume", "cost"), Settings())
    titles = list(sheet.table.columns)
    for name in ("backbone", "cost"):
        if name not in titles:
            listed = ", ".join(map(repr, titles))
            what = f"there is no column '{name}'; the columns are {listed}"
            sheet.findings.refuse(sheet.place(sheet.header_row), what)
    if not {"backbone", "cost"} <= set(titles):
        return None
    for title in titles:
        if title not in ("backbone", "volume", "cost"):
            sheet.drop_column("column-ignored", title, "not needed: left out")
    find_decimal_mark(sheet, [title for title in ("volume", "cost") if title in titles])
    for row, name in list(sheet.cells("backbone")):
        if is_missing(name):
            sheet.refuse(row, "backbone", "names no backbone: write its name")
    volume = pd.Series(np.nan, index=sheet.table.index)
    if "volume" in titles:
        dots = dots_of(sheet, "volume")
        volume = _numbers(sheet, "volume", lambda text: _volume(text, sheet.decimal, dots))
    cost = _numbers(sheet, "cost", lambda text: _cost(text, sheet.decimal))
    rows = pd.DataFrame({"backbone": sheet.table["backbone"], "volume": volume, "cost": cost})
    # Of a row whose backbone or volume is refused, nobody knows which cost it is.
    known = rows["backbone"].notna() & (volume.notna() if "volume" in titles else True)
    return _each_once(sheet, rows[known])


def _each_once(sheet: Sheet, rows: pd.DataFrame) -> pd.DataFrame:
    """Keep one of several equal rows of a backbone and volume; rows that differ are a problem."""
    first: dict[tuple[str, str], tuple[int, float]] = {}
    for row, backbone, volume, cost in rows.itertuples():
        there, known = first.setdefault((backbone, repr(volume)), (row, cost))
        if there == row:
            continue
        if cost == known:
            message = f"'{backbone}' is the same as in row {there}: kept once"
            sheet.findings.note("duplicate-merged", sheet.place(row), message)
            continue
        figures = f" ({known:g} there, {cost:g} here)" if np.isfinite([known, cost]).all() else ""
        what = f"'{backbone}' stands in row {there} as well, with another cost{figures}: keep one of them"
        sheet.findings.refuse(sheet.place(row), what)
    return rows.drop_duplicates(["backbone", "volume"], ignore_index=True)


def _volume(text: str, decimal: str, dots: Dots) -> float:
    """Read a volume, which no row may lack."""
    try:
        return float(read_count(text, decimal, whole=decimal == ".", dots=dots).value)
    except CellError as error:
        raise CellError(str(error).removesuffix(IF_UNKNOWN)) from None


def _cost(text: str, decimal: str) -> float:
    """Read a cost, of any size."""
    value = np.nan
    with suppress(CellError):
        value = float(read_count(text, decimal, whole=decimal == ".").value)
    if decimal == ".":
        with suppress(ValueError):
            value = float(text)
    if not 0 < value < np.inf:
        raise CellError("is no cost: write a number above 0, such as 850")
    return value


def _numbers(sheet: Sheet, column: str, read: Callable[[str], float]) -> pd.Series:
    """Numbers of a column, NaN where a cell is refused."""
    values = pd.Series(np.nan, index=sheet.table.index)
    for row, text in list(sheet.cells(column)):
        try:
            values[row] = read(text)
        except CellError as error:
            sheet.refuse(row, column, str(error))
    return values


def on_front(cost: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Whether no other option costs as little or less and is worth as much or more, one of the two strictly.

    Parameters
    ----------
    cost, value : ndarray, (option,)
        An option of unknown cost is on no front.

    Returns
    -------
    ndarray of bool, (option,)

    Examples
    --------
    >>> on_front(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.7, 0.6])).tolist()
    [True, True, False]
    """
    cheaper, better = cost[:, None] <= cost, value[:, None] >= value
    strictly = (cost[:, None] < cost) | (value[:, None] > value)
    return np.isfinite(cost) & ~(cheaper & better & strictly).any(0)


def price(
    study: Study,
    *,
    flops: float | None = None,
    tokens_per_sample: float | None = None,
    projector_volume: float = 0.0,
    costs: CostTable | None = None,
    budget: float | None = None,
) -> tuple[float | None, TrainingCost]:
    """Decide how costs are counted, and in which unit the budget is, before any draw is needed.

    Parameters
    ----------
    study : Study
    flops, tokens_per_sample, projector_volume, costs, budget
        As for `bayescdm.decide.choose`.

    Returns
    -------
    limit : float or None
        The budget in the unit of the costs.
    counting : TrainingCost
        The user's table, FLOPs where tokens are known, or size.

    Raises
    ------
    RequestError
        The request contradicts itself.
    """
    if flops is not None and costs is not None:
        raise RequestError("a budget is in FLOPs or in the unit of the cost table; give one of the two")
    if budget is not None and costs is None:
        raise RequestError("a budget without a cost table means nothing; give costs, or a budget of FLOPs")
    limit = flops if flops is not None else budget
    if limit is not None and not 0 < limit < np.inf:
        raise RequestError(f"budget {limit:g} is not a positive number")
    if costs is not None:
        if tokens_per_sample is not None or projector_volume:
            raise RequestError("a cost table holds the costs; leave out tokens a sample and projector volume")
        return limit, costs
    if not 0 <= projector_volume < np.inf:
        raise RequestError(f"projector volume {projector_volume:g} is not a count")
    if tokens_per_sample is not None and not 0 < tokens_per_sample < np.inf:
        raise RequestError(f"tokens a sample {tokens_per_sample:g} is not a positive number")
    in_tokens = study.volume_unit == "tokens"
    if in_tokens and tokens_per_sample not in (None, 1):
        raise RequestError("volumes of this study are in tokens; leave out tokens a sample")
    if in_tokens or tokens_per_sample is not None:
        return limit, FlopCost(tokens_per_sample or 1.0, projector_volume)
    if flops is not None or projector_volume:
        raise RequestError(
            f"volumes of this study are in {study.volume_unit}: FLOPs need the tokens of a sample, image "
            "tokens included; give tokens_per_sample (--tokens-per-sample)"
        )
    return limit, SizeCost()
