"""Reading the packaged CSV tables, each row with its source."""

from __future__ import annotations

from importlib.resources import files

import pandas as pd

__all__ = ["read_sources", "read_table"]


def read_table(folder: str, name: str) -> pd.DataFrame:
    """Read one packaged table; its column ``source`` holds ids of the folder's list of sources.

    Parameters
    ----------
    folder : str
        ``open_vlm``, ``loss`` or ``paper``.
    name : str
        Table name without ``.csv``.

    Returns
    -------
    DataFrame
        Only empty cells are missing values, so that a label such as "NA" survives.
    """
    with (files("bayescdm.datasets") / folder / f"{name}.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, keep_default_na=False, na_values=[""])


def read_sources(folder: str) -> pd.DataFrame:
    """Read a folder's list of sources.

    Parameters
    ----------
    folder : str

    Returns
    -------
    DataFrame, indexed by source id
        ``source`` (repository and file at a commit, paper and table, or model card) and ``licence``.
    """
    return read_table(folder, "sources").set_index("id")
