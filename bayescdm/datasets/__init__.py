"""Packaged figures: studies, loss points and the tables of the paper, each row with its source."""

from bayescdm.datasets.points import load_chinchilla_points, load_openclip
from bayescdm.datasets.published import PAPER_TABLES, paper_table, paper_tables
from bayescdm.datasets.studies import list_datasets, load_dataset

__all__ = [
    "PAPER_TABLES",
    "list_datasets",
    "load_chinchilla_points",
    "load_dataset",
    "load_openclip",
    "paper_table",
    "paper_tables",
]
