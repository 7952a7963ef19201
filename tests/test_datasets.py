"""Packaged figures: complete, traceable, and equal to the published ones row by row."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayescdm import datasets

SHARED = Path(__file__).parents[2] / "shared" / "data"
needs_shared = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the published figures (../shared/data) are not beside this checkout"
)


# Loss points


@needs_shared
def test_chinchilla_points_equal_the_published_ones():
    published = pd.read_csv(SHARED / "loss" / "chinchilla_points.csv")
    ours = datasets.load_chinchilla_points(drop_highest=0)
    columns = ["params", "flops", "loss", "source"]
    pd.testing.assert_frame_equal(ours[columns], published[columns])
    np.testing.assert_allclose(ours["tokens"], published["tokens"], rtol=1e-6)


@needs_shared
def test_openclip_models_equal_the_published_ones():
    published = pd.read_csv(SHARED / "loss" / "openclip_zero_shot.csv").rename(
        columns={
            "samples_seen": "samples",
            "imagenet_zero_shot_acc": "accuracy",
            "imagenet_zero_shot_error": "error",
        }
    )
    pd.testing.assert_frame_equal(datasets.load_openclip()[published.columns], published)


def test_five_points_of_highest_loss_are_left_out_by_default():
    all_points = datasets.load_chinchilla_points(drop_highest=0)
    points = datasets.load_chinchilla_points()
    assert len(all_points) == 245
    assert points["loss"].max() < all_points["loss"].nlargest(5).min()
    assert len(points) == 240


@pytest.mark.parametrize("points", [datasets.load_chinchilla_points(), datasets.load_openclip()])
def test_loss_points_are_complete_positive_and_traceable(points):
    assert points.notna().all(axis=None)
    assert (points.select_dtypes("number") > 0).all(axis=None)
    assert points["source"].str.contains("arXiv:").all()
