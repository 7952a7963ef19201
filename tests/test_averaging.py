"""One accuracy a run: averages compare equal benchmark sets, and say what they leave out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescdm.averaging import average_runs, shared_set
from bayescdm.errors import InputError, NotFoundError
from bayescdm.study import RUN_COLUMNS, Study


def long_scores(table: dict[str, dict[str, float]], recipe: str = "R | E") -> pd.DataFrame:
    """Scores of runs given as run → benchmark → score."""
    rows = [
        (run, recipe, "E", f"vlm {run}", f"backbone {run}", 1e6, benchmark, score, f"table of {benchmark}")
        for run, scores in table.items()
        for benchmark, score in scores.items()
    ]
    columns = ["run", "recipe", "encoder", "vlm", "backbone", "volume", "benchmark", "score", "source"]
    return pd.DataFrame(rows, columns=columns)


COMPLETE = {"a": {"GQA": 0.6, "POPE": 0.8}, "b": {"GQA": 0.4, "POPE": 0.9}}


def test_complete_scores_give_plain_means_and_no_note():
    runs, notes = average_runs(long_scores(COMPLETE))
    assert runs["accuracy"].to_dict() == pytest.approx({"a": 0.7, "b": 0.65})
    assert set(runs["benchmark"]) == {"average of 2"}
    assert notes == ()


def test_result_is_laid_out_as_the_runs_of_a_study():
    runs, notes = average_runs(long_scores(COMPLETE))
    assert tuple(runs.columns) == RUN_COLUMNS
    backbones = pd.DataFrame(
        {"family": "F", "variant": "base", "params": 1e9}, index=["backbone a", "backbone b"]
    )
    texts = pd.DataFrame({"BBH": [0.3, 0.4]}, index=backbones.index)
    assert Study("s", texts, backbones, runs, notes=notes).recipes == ["R | E"]


def test_sources_of_a_run_are_kept_once_each():
    scores = long_scores(COMPLETE)
    scores["source"] = ["one", "two", "one", "one"]
    assert list(average_runs(scores)[0]["source"]) == ["one; two", "one"]


def test_different_sets_are_averaged_over_their_intersection_and_reported():
    table = {"a": {"GQA": 0.6, "POPE": 0.8, "SEED": 0.1}, "b": {"GQA": 0.4, "POPE": 0.9}}
    runs, notes = average_runs(long_scores(table))
    assert runs.loc["a", "accuracy"] == pytest.approx(0.7)
    assert [(n.code, n.severity) for n in notes] == [("incomplete-benchmarks", "note")]
    assert "SEED (1 of 2 runs)" in notes[0].message


def test_a_straggler_with_few_benchmarks_is_left_out_and_named():
    full = {name: 0.5 for name in "ABCDEFGH"}
    table = {"a": full, "b": full, "c": full, "straggler": {"A": 0.5}}
    runs, notes = average_runs(long_scores(table))
    assert list(runs.index) == ["a", "b", "c"]
    assert set(runs["n_benchmarks"]) == {8}
    assert [n.severity for n in notes] == ["warning"]
    assert "'straggler' is left out: it has 1 of the 8 benchmarks" in notes[0].message


def test_a_run_is_kept_where_dropping_it_would_keep_fewer_scores():
    nine = {f"b{i}": 0.5 for i in range(9)}
    seventeen = {f"b{i}": 0.5 for i in range(17)}
    runs, _ = average_runs(long_scores({"a": seventeen, "b": seventeen, "c": nine, "d": nine}))
    assert len(runs) == 4
    assert set(runs["n_benchmarks"]) == {9}


def test_two_stragglers_that_hide_each_other_are_both_found():
    full = {f"b{i}": 0.5 for i in range(20)}
    table = {"a": full, "b": full, "c": full, "x": {"b0": 0.5}, "y": {"b0": 0.5, "b1": 0.5}}
    assert list(average_runs(long_scores(table))[0].index) == ["a", "b", "c"]


def test_each_recipe_has_its_own_set():
    one = long_scores({"a": {"GQA": 0.6, "POPE": 0.8}}, "R1 | E")
    two = long_scores({"b": {"GQA": 0.4}}, "R2 | E")
    runs, notes = average_runs(pd.concat([one, two]))
    assert list(runs["n_benchmarks"]) == [2, 1]
    assert notes == ()


def test_one_named_benchmark_leaves_out_recipes_without_it():
    one = long_scores({"a": {"GQA": 0.6, "POPE": 0.8}}, "R1 | E")
    two = long_scores({"b": {"GQA": 0.4}}, "R2 | E")
    runs, notes = average_runs(pd.concat([one, two]), "POPE")
    assert runs[["benchmark", "n_benchmarks", "accuracy"]].to_numpy().tolist() == [["POPE", 1, 0.8]]
    assert "none of its 1 run has POPE" in notes[0].message


def test_a_group_and_its_list_average_alike_and_report_what_no_run_has():
    scores = long_scores(COMPLETE | {"c": {"GQA": 0.1, "POPE": 0.1, "SEED": 0.9}})
    groups = {"hallucination": ["POPE", "HallusionBench"]}
    named, notes = average_runs(scores, "hallucination", groups=groups)
    listed, _ = average_runs(scores, ["POPE"])
    assert named["accuracy"].equals(listed["accuracy"])
    assert set(named["benchmark"]) == {"hallucination: average of 1"}
    assert "HallusionBench (0 of 3 runs)" in notes[0].message


def test_unknown_benchmark_names_the_nearest():
    with pytest.raises(NotFoundError, match="did you mean 'POPE'"):
        average_runs(long_scores(COMPLETE), "pop")


def test_all_problems_are_collected():
    scores = long_scores(COMPLETE)
    scores = pd.concat([scores, scores.iloc[:1]], ignore_index=True)
    scores.loc[3, "volume"] = 2e6
    with pytest.raises(InputError) as error:
        average_runs(scores)
    assert len(error.value.problems) == 2
    assert "run 'a': benchmark 'GQA' stands more than once" in error.value.problems[0]
    assert "run 'b': column 'volume'" in error.value.problems[1]


def test_missing_columns_are_named():
    with pytest.raises(InputError, match="column 'benchmark' is missing"):
        average_runs(long_scores(COMPLETE).drop(columns="benchmark"))


def test_a_score_without_a_recipe_is_refused_not_dropped():
    scores = long_scores(COMPLETE)
    scores.loc[2, "recipe"] = None
    with pytest.raises(InputError, match="row 2: column 'recipe' is empty"):
        average_runs(scores)


def test_no_scores_give_no_runs():
    runs, notes = average_runs(long_scores({}))
    assert runs.empty and notes == ()
    assert tuple(runs.columns) == RUN_COLUMNS


def test_unknown_volume_is_kept():
    scores = long_scores(COMPLETE)
    scores["volume"] = np.nan
    assert average_runs(scores)[0]["volume"].isna().all()


def test_standard_errors_combine_as_of_independent_scores():
    scores = long_scores(COMPLETE)
    scores["standard_error"] = [0.03, 0.04, 0.03, np.nan]
    errors = average_runs(scores)[0]["standard_error"]
    assert errors["a"] == pytest.approx(0.025)
    assert np.isnan(errors["b"])


@settings(deadline=None)
@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=6))
def test_chosen_runs_have_every_chosen_benchmark_and_no_fewer_scores_than_plain_choices(rows):
    measured = pd.DataFrame(rows)
    runs, benchmarks = shared_set(measured)
    assert measured.loc[runs, benchmarks].to_numpy().all()
    complete = measured[measured.any(axis=1)]
    kept = len(runs) * len(benchmarks)
    assert kept >= len(complete) * complete.all().sum()
    assert (kept == 0) == (not measured.to_numpy().any())


@settings(deadline=None)
@given(st.permutations(range(7)))
def test_order_of_rows_changes_nothing_but_the_order_of_runs(order):
    table = {"a": {"X": 0.1, "Y": 0.5, "Z": 0.3}, "b": {"X": 0.2, "Y": 0.4}, "c": {"X": 1, "Y": 0}}
    scores = long_scores(table)
    expected = average_runs(scores)[0].drop(columns="source").sort_index()
    shuffled = average_runs(scores.iloc[list(order)])[0].drop(columns="source").sort_index()
    pd.testing.assert_frame_equal(shuffled, expected)
