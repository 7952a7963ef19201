"""Broken text scores are found by what the model can do elsewhere; weak models are left alone."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescdm.datasets import load_dataset
from bayescdm.errors import NotFoundError
from bayescdm.outliers import (
    base_siblings,
    flag_text_outliers,
    outlier_notes,
    repeated_median_line,
    treat_as_missing,
)
from bayescdm.study import RUN_COLUMNS, Study


def paired_study(n_pairs: int = 15, seed: int = 0) -> Study:
    """Pairs of base and instruct models whose scores follow one ability, without outliers."""
    rng = np.random.default_rng(seed)
    ability = np.repeat(np.linspace(-1.5, 1.5, n_pairs), 2) + rng.normal(0, 0.1, 2 * n_pairs)
    difficulty = np.array([0.0, 0.5, -0.5, 1.0, 2.0])
    logits = ability[:, None] - difficulty + rng.normal(0, 0.1, (2 * n_pairs, 5))
    labels = [f"m{i}-{variant}" for i in range(n_pairs) for variant in ("base", "instruct")]
    text_scores = pd.DataFrame(1 / (1 + np.exp(-logits)), index=labels, columns=list("ABCDE"))
    backbones = pd.DataFrame(
        {
            "family": [f"F{i}" for i in range(n_pairs) for _ in range(2)],
            "variant": ["base", "instruct"] * n_pairs,
            "params": np.repeat(np.linspace(1e9, 9e9, n_pairs), 2),
        },
        index=labels,
    )
    return Study("pairs", text_scores, backbones, pd.DataFrame(columns=RUN_COLUMNS))


@pytest.fixture(scope="module")
def open_vlm():
    return load_dataset("open-vlm")


@pytest.fixture(scope="module")
def flags(open_vlm):
    return flag_text_outliers(open_vlm)


def near_zero(study: Study) -> pd.Index:
    """Instruct models of which the MATH-Lvl-5 score is below half a point."""
    instruct = study.backbones["variant"] == "instruct"
    return study.text_scores.index[instruct & (study.text_scores["MATH-Lvl-5"] < 0.005)]


def test_near_zero_math_scores_are_found_where_the_model_should_score(open_vlm, flags):
    """Of 15 near-zero MATH-Lvl-5 scores 11 are flagged; of the other four less than a point is expected."""
    found = set(flags.loc[flags["benchmark"] == "MATH-Lvl-5", "backbone"])
    assert len(near_zero(open_vlm)) == 15
    assert set(near_zero(open_vlm)) - found == {
        "google/gemma-2b-it",
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        "Qwen/Qwen1.5-0.5B-Chat",
        "Qwen/Qwen2.5-0.5B-Instruct",
    }


def test_every_near_zero_score_is_found_where_the_base_model_has_five_points_or_more(open_vlm, flags):
    siblings = base_siblings(open_vlm.backbones).dropna()
    better = open_vlm.text_scores["MATH-Lvl-5"].loc[siblings] > 0.05
    broken = near_zero(open_vlm).intersection(siblings.index[better.to_numpy()])
    assert len(broken) == 7
    assert broken.isin(flags["backbone"]).all()


def test_broken_scores_above_half_a_point_are_found_too(open_vlm, flags):
    found = set(flags.loc[flags["benchmark"] == "MATH-Lvl-5", "backbone"])
    assert found - set(near_zero(open_vlm)) == {
        "google/gemma-2-27b-it",
        "microsoft/Phi-3-small-8k-instruct",
        "Qwen/Qwen2.5-72B-Instruct",
    }


def test_weak_models_and_other_benchmarks_are_left_alone(flags):
    other = flags[flags["benchmark"] != "MATH-Lvl-5"]
    assert other[["backbone", "benchmark"]].to_numpy().tolist() == [
        ["TinyLlama/TinyLlama-1.1B-Chat-v1.0", "IFEval"]
    ]
    assert not flags["backbone"].str.contains("Llama-2|falcon-7b|SmolLM2|RedPajama|OLMo").any()


def test_flags_are_sorted_by_how_far_the_score_lies_below(flags):
    assert (flags["expected"] - flags["score"]).is_monotonic_decreasing
    assert (flags["score"] < flags["expected"] / 3).all()


def test_a_score_broken_in_an_even_study_is_the_only_one_flagged():
    study = paired_study()
    assert flag_text_outliers(study).empty
    study.text_scores.loc["m9-instruct", "C"] = 0.01
    flags = flag_text_outliers(study)
    flagged = flags[["backbone", "benchmark", "sibling"]]
    assert flagged.to_numpy().tolist() == [["m9-instruct", "C", "m9-base"]]
    assert flags["expected"][0] == pytest.approx(study.text_scores.loc["m9-base", "C"], abs=0.1)


def test_a_model_that_lost_ability_all_round_is_not_flagged():
    study = paired_study()
    study.text_scores.loc["m14-instruct"] = study.text_scores.loc["m0-instruct"] / 2
    assert "m14-instruct" not in set(flag_text_outliers(study)["backbone"])


def test_many_broken_scores_do_not_hide_each_other():
    study = paired_study(30)
    broken = [f"m{i}-instruct" for i in range(18, 30)]
    study.text_scores.loc[broken, "A"] = 0.0
    assert set(flag_text_outliers(study)["backbone"]) == set(broken)


def test_base_models_are_never_flagged():
    study = paired_study()
    study.text_scores.loc["m9-base", "C"] = 0.0
    assert flag_text_outliers(study).empty


def test_missing_scores_and_few_models_give_flags_on_what_is_left():
    study = paired_study(3)
    study.text_scores.loc["m2-instruct", "A"] = 0.01
    study.text_scores.loc["m2-instruct", "B"] = np.nan
    flags = flag_text_outliers(study)
    assert flags[["backbone", "benchmark"]].to_numpy().tolist() == [["m2-instruct", "A"]]
    assert "suggest" not in flags["reason"][0]


def test_treating_as_missing_changes_the_flagged_scores_only_and_says_so(open_vlm, flags):
    treated = treat_as_missing(open_vlm, flags)
    changed = treated.text_scores.isna() & open_vlm.text_scores.notna()
    assert set(changed.stack().loc[lambda x: x].index) == set(
        flags[["backbone", "benchmark"]].itertuples(index=False, name=None)
    )
    restored = treated.text_scores.where(~changed, open_vlm.text_scores)
    pd.testing.assert_frame_equal(restored, open_vlm.text_scores)
    notes = [note for note in treated.notes if note.code == "treated-as-missing"]
    assert len(notes) == len(flags) == 15
    assert all(str(flag.backbone) in note.where for flag, note in zip(flags.itertuples(), notes, strict=True))
    assert not any(note.code == "text-outlier" for note in treated.notes)
    assert flag_text_outliers(treated).empty


def test_treating_unknown_scores_as_missing_is_refused(open_vlm, flags):
    with pytest.raises(NotFoundError, match="no text score nobody, MATH-Lvl-5"):
        treat_as_missing(open_vlm, flags[1:2].assign(backbone="nobody"))


def test_one_note_a_benchmark_names_the_models(flags):
    notes = outlier_notes(flags)
    assert [note.where for note in notes] == ["text benchmark IFEval", "text benchmark MATH-Lvl-5"]
    assert "14 instruct models" in notes[1].message


def test_siblings_share_family_and_size():
    backbones = pd.DataFrame(
        {
            "family": ["F", "F", "F", "G", "F"],
            "variant": ["base", "base", "instruct", "instruct", "instruct"],
            "params": [7e9, 7.2e9, 7.25e9, 7e9, 13e9],
        },
        index=["near", "nearer", "a", "b", "c"],
    )
    siblings = base_siblings(backbones)
    assert siblings["a"] == "nearer"
    assert siblings[["b", "c"]].isna().all()


@settings(deadline=None)
@given(st.integers(0, 4), st.floats(-3, 3), st.floats(-3, 3))
def test_repeated_median_line_is_exact_whatever_a_minority_says(n_bad, intercept, slope):
    x = np.arange(11.0)
    y = intercept + slope * x
    y[3 : 3 + n_bad] += 100.0
    assert repeated_median_line(x, y) == pytest.approx((intercept, slope), abs=1e-9)


def test_repeated_median_line_through_equal_positions_is_flat():
    assert repeated_median_line(np.ones(5), np.arange(5.0)) == (2.0, 0.0)
