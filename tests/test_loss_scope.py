"""A scope says what a fit is about, and refuses what it is not about."""

import json

import numpy as np
import pytest

from bayescdm.errors import RequestError
from bayescdm.loss.packaged import chinchilla_points, openclip_points
from bayescdm.loss.scope import CHINCHILLA_SCOPE, Scope
from bayescdm.loss.simulate import simulate_losses
from bayescdm.loss.study import LossStudy


def test_edges_of_the_range_are_inside_and_every_predictor_counts():
    flags = CHINCHILLA_SCOPE.extrapolates(
        params=np.array([70e6, 69e6, 1e9, 1e9]), volume=[5e9, 1e10, 500e9, 501e9]
    )
    assert flags.tolist() == [False, True, False, True]


def test_note_counts_the_flagged_points_and_is_silent_without_any():
    assert CHINCHILLA_SCOPE.extrapolation_note(np.array([False])) == ()
    (note,) = CHINCHILLA_SCOPE.extrapolation_note(np.array([True, False, True]))
    assert note.code == "extrapolation"
    assert note.message.startswith("2 of 3 points")


def test_every_field_is_printed():
    text = str(CHINCHILLA_SCOPE)
    for part in (
        "text loss",
        "next-token",
        "MassiveText",
        "dense decoder-only",
        "7e+07",
        "5e+11 tokens",
        "Hoffmann",
    ):
        assert part in text


def test_other_metrics_are_refused_with_the_way_to_fit_them():
    CHINCHILLA_SCOPE.require(" Text Loss ")
    with pytest.raises(RequestError, match="`bayescdm fit` for the accuracy of a VLM"):
        CHINCHILLA_SCOPE.require("LLaVA accuracy")


@pytest.mark.parametrize("study", [chinchilla_points(), openclip_points(), simulate_losses(log_every=2000)])
def test_studies_and_their_scopes_survive_json(study):
    restored = LossStudy.from_dict(json.loads(json.dumps(study.to_dict())))
    assert restored.scope == study.scope
    assert restored.notes == study.notes
    np.testing.assert_array_equal(restored.loss, study.loss)
    np.testing.assert_array_equal(restored.params, study.params)


def test_a_refusal_does_not_speak_of_what_is_not_known():
    with pytest.raises(RequestError, match=r"a law of my loss\. Fit that metric itself"):
        Scope("my loss").require("accuracy")


def test_what_is_not_known_is_said():
    assert "not stated" in str(Scope("loss"))
