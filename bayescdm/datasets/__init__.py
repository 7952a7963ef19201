"""Packaged figures: studies, loss points and the tables of the paper, each row with its source."""

from bayescdm.datasets.points import load_chinchilla_points, load_openclip
from bayescdm.datasets.studies import datasets, load_dataset

__all__ = ["datasets", "load_chinchilla_points", "load_dataset", "load_openclip"]
