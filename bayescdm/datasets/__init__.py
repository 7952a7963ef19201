"""Packaged figures: studies, loss points and the tables of the paper, each row with its source."""

from bayescdm.datasets.points import load_chinchilla_points, load_openclip

__all__ = ["load_chinchilla_points", "load_openclip"]
