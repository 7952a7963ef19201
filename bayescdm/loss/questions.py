"""Points that a user asks a saved loss law about: a CSV, read with absolute counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from bayescdm.errors import InputError
from bayescdm.fitfile import MIXED_MODAL_PROGRAM, program_of
from bayescdm.loss.allocate import absolute_count
from bayescdm.loss.fit import LossFit, load_loss_fit
from bayescdm.loss.logs import read_cells
from bayescdm.loss.mixed_modal import MixedModalFit, load_mixed_modal_fit
from bayescdm.loss.study import SMALLEST_PARAMS, SMALLEST_VOLUME

__all__ = ["columns_asked", "load_saved_law", "read_questions"]

#: What a count is at least; compute has the unit of its scope, in which 7 is a number like another.
LEAST = {
    "params": SMALLEST_PARAMS,
    "volume": SMALLEST_VOLUME,
    "volume_first": SMALLEST_VOLUME,
    "volume_second": SMALLEST_VOLUME,
}
#: What a column of volumes is called in logs.
VOLUMES = ("tokens", "samples")
#: What predictions are written into.
ANSWERS = ("loss", "extrapolation", "interaction", "p_synergy")


def load_saved_law(path: str | Path) -> LossFit | MixedModalFit:
    """Load a fit of any loss law, whichever of both kinds of file it is.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    LossFit or MixedModalFit

    Raises
    ------
    FitError
        If the file is missing, is not a fit of a loss law, or is damaged.
    """
    return load_mixed_modal_fit(path) if program_of(path) == MIXED_MODAL_PROGRAM else load_loss_fit(path)


def columns_asked(fit: LossFit | MixedModalFit) -> list[str]:
    """Columns that a table of questions to a fit needs.

    Parameters
    ----------
    fit : LossFit or MixedModalFit

    Returns
    -------
    list of str
        The capability law takes ``backbone``, of one that was fitted, or its components in place of it.
    """
    if isinstance(fit, MixedModalFit):
        return ["first", "second", "params", "volume_first", "volume_second"]
    predictors = {"loss_capability": ["backbone", "volume"], "contrastive_power": ["compute"]}
    return ["family"] * fit.by_family + predictors.get(fit.model, ["params", "volume"])


def read_questions(path: str | Path, fit: LossFit | MixedModalFit) -> pd.DataFrame:
    """Read the points at which a loss law is asked for its prediction.

    Parameters
    ----------
    path : str or Path
        CSV with the columns of `columns_asked`, a row a point; ``tokens`` or ``samples`` is read as
        ``volume``, ``7B`` as 7e9. Further columns stay as labels.
    fit : LossFit or MixedModalFit

    Returns
    -------
    DataFrame, one row a point
        As `LossFit.predict` or `MixedModalFit.interaction` takes it.

    Raises
    ------
    NotFoundError
        There is no such file.
    InputError
        All problems at once, each with its line and column: a column that is missing or would be written
        over, a count that is not absolute, a backbone that was not fitted.
    """
    path = Path(path)
    table = read_cells(path)
    table.columns = pd.Index([str(title).strip() for title in table])
    if "volume" not in table:
        table = table.rename(columns={name: "volume" for name in VOLUMES if name in table})
    components = _components(fit)
    needed = columns_asked(fit)
    if len(components.columns) and set(components.columns) <= set(table):
        needed = [*components.columns, "volume"]
    missing = [name for name in needed if name not in table]
    if missing:
        raise InputError(f"{path.name}: no column {', '.join(missing)}; needed are {', '.join(needed)}")
    written = [name for name in table if name in ANSWERS]
    if written:
        raise InputError(f"{path.name}: column {', '.join(written)} is what is predicted; leave it out")
    if table.empty:
        raise InputError(f"{path.name}: no row below the titles; there is nothing to predict")
    problems: list[str] = []
    numbers = {*LEAST, "compute", *components.columns}
    for name in [name for name in table if name in numbers]:
        table[name] = [
            _number(cell, name, f"{path.name}, row {line + 2}, column '{name}'", problems)
            for line, cell in table[name].items()
        ]
    for name in [name for name in needed if name not in numbers]:
        table[name] = table[name].fillna("").str.strip().astype(object)
        known = list(components.index) if name == "backbone" else _fitted(fit)
        other = f"; of another give the columns {', '.join(components)}" if name == "backbone" else ""
        for line, label in table[name].items():
            if label not in known:
                where = f"{path.name}, row {line + 2}, column '{name}'"
                problems.append(f"{where}: '{label}' was not fitted (fitted: {', '.join(known)}){other}")
    if problems:
        raise InputError(problems)
    if "backbone" in needed:
        table[components.columns] = components.loc[table["backbone"]].to_numpy()
    return table.reset_index(drop=True)


def _components(fit: LossFit | MixedModalFit) -> pd.DataFrame:
    """Components of the fitted backbones, (backbone, component); without columns where a law has none."""
    if isinstance(fit, MixedModalFit) or fit.model != "loss_capability" or fit.study.components is None:
        return pd.DataFrame()
    runs = fit.study.runs
    backbones = runs["backbone"] if "backbone" in runs else pd.Series(runs.index, index=runs.index)
    components = fit.study.components.loc[runs.index].set_axis(pd.Index(backbones.astype(str)))
    return components[~components.index.duplicated()]


def _fitted(fit: LossFit | MixedModalFit) -> list[str]:
    """Labels that a fit has constants of its own for."""
    return fit.study.modalities if isinstance(fit, MixedModalFit) else fit.study.families


def _number(cell: object, name: str, where: str, problems: list[str]) -> float:
    """Read a count or a number; what cannot be read is a problem."""
    text = "" if pd.isna(cell) else str(cell).strip()
    try:
        if name in LEAST:
            return absolute_count(text, name, LEAST[name])
        number = float(text)
        if np.isfinite(number) and (number > 0 or name != "compute"):
            return number
        problems.append(f"{where}: '{text}' is not a number above 0")
    except InputError as error:
        problems.append(f"{where}: {str(error).removeprefix(f'{name}: ')}")
    except ValueError:
        problems.append(f"{where}: '{text}' is not a number")
    return np.nan
