"""What a study cannot tell is said with the figure that it was judged by, and nothing else is said."""

import numpy as np
import pandas as pd
import pytest

from bayescdm.identify import identifiability, recipe_groups
from bayescdm.study import Study


def study(
    volumes=(1e6, 4e6),
    recipes=("R1", "R2"),
    families=("F", "G", "H"),
    variants=("base", "instruct"),
    **options,
):
    """A study in which every backbone runs under every recipe at every volume: nothing is left open."""
    rng = np.random.default_rng(0)
    names = [f"{f}-{v}-{i}" for f in families for v in variants for i in range(2)]
    ability = rng.uniform(0.2, 0.6, len(names))
    scores = np.clip(ability[:, None] + rng.normal(0, 0.03, (len(names), 3)), 0, 1)
    text_scores = pd.DataFrame(scores, index=names, columns=["x", "y", "z"])
    backbones = pd.DataFrame(
        {
            "family": [n.split("-")[0] for n in names],
            "variant": [n.split("-")[1] for n in names],
            "params": 1e9,
        },
        index=names,
    )
    rows = [
        {
            "recipe": r,
            "backbone": n,
            "volume": d,
            "accuracy": 0.4 + 0.2 * a + 0.01 * np.log(d),
            "benchmark": "average",
        }
        for r in recipes
        for n, a in zip(names, ability)
        for d in volumes
    ]
    runs = pd.DataFrame(rows, index=[f"run {i}" for i in range(len(rows))])
    return Study("simulated", text_scores, backbones, runs, simulated=True, **options)


def found(study, **options):
    return {note.code: note for note in identifiability(study, **options)}


def test_a_balanced_study_leaves_nothing_open():
    assert set(found(study())) == {"mixed-recipes"}
    assert found(study(recipes=("R1",))) == {}


def test_one_volume_leaves_absorption_to_its_prior():
    note = found(study(volumes=(1e6,)))["single-volume"]
    assert note.severity == "warning" and "all 24 runs have one volume" in note.message


def test_volume_that_changes_with_the_recipe_only():
    mixed = study()
    first = (mixed.runs["recipe"] == "R1") == (mixed.runs["volume"] == 1e6)
    note = found(mixed.select_runs(first))["single-volume"]
    assert "constant within each of 2 recipes" in note.message


@pytest.mark.parametrize(("n_backbones", "severity"), [(12, "note"), (2, "warning")])
def test_recipes_with_one_volume_inform_transfer_only(n_backbones, severity):
    mixed = study()
    several = mixed.runs["backbone"].isin(mixed.text_scores.index[:n_backbones]) & (
        mixed.runs["recipe"] == "R1"
    )
    note = found(mixed.select_runs(several | (mixed.runs["volume"] == 1e6)))["single-volume"]
    assert note.severity == severity
    assert "1 of 2 recipes have one volume and inform A only; absorption rests on R1" in note.message
    assert f"with {n_backbones} backbones at several volumes" in note.message


def test_unknown_volumes_are_counted():
    mixed = study()
    mixed.runs.loc[mixed.runs["recipe"] == "R2", "volume"] = np.nan
    assert "24 runs of 1 recipe have an unknown volume" in found(mixed)["unknown-volume"].message


@pytest.mark.parametrize("sign", [1, -1])
def test_volume_given_by_ability_is_confounded_with_it(sign):
    mixed = study(volumes=(1e6,))
    ability = mixed.runs["backbone"].map(mixed.text_scores.mean(axis=1))
    mixed.runs["volume"] = 1e6 * np.exp(10 * sign * ability)
    messages = [n.message for n in identifiability(mixed) if n.code == "volume-capability-confounded"]
    assert len(messages) == 2
    assert "within recipes" in messages[0] and "over all runs" in messages[1]
    assert all(("-" in m.split(" ")[6]) == (sign < 0) for m in messages)


def test_one_backbone_a_cell():
    mixed = study()
    first_of_cell = mixed.runs["backbone"].str.endswith("0")
    note = found(mixed.select_runs(first_of_cell))["one-backbone-cell"]
    assert note.severity == "warning"
    assert "6 of 6" in note.message and "(100%)" in note.message and "w is not identified" in note.message
    one = mixed.runs["backbone"] != "F-base-1"
    assert found(mixed.select_runs(one))["one-backbone-cell"].severity == "note"


def test_one_family_and_one_variant():
    assert "family F" in found(study(families=("F",)))["one-family"].message
    note = found(study(variants=("base",)))["one-variant"]
    assert "stand on base models" in note.message and "instruct models do rests on the prior" in note.message


def test_recipes_without_a_shared_backbone():
    mixed = study(recipes=("R1", "R2", "R3"))
    family = mixed.runs["backbone"].str[0]
    keep = ((mixed.runs["recipe"] == "R3") & (family == "H")) | (
        (mixed.runs["recipe"] != "R3") & (family != "H")
    )
    note = found(mixed.select_runs(keep))["recipes-disconnected"]
    assert "2 groups" in note.message and "holds 2 of 3" in note.message


def test_recipes_connect_through_chains():
    runs = pd.DataFrame({"recipe": list("abcbcd"), "backbone": ["m1", "m2", "m3", "m1", "m2", "m4"]})
    assert sorted(map(sorted, recipe_groups(runs))) == [["a", "b", "c"], ["d"]]


def test_more_components_than_backbones_allow():
    few = study(families=("F",), variants=("base", "instruct"))
    two = few.select_runs(few.runs["backbone"].isin(["F-base-0", "F-base-1", "F-instruct-0"]))
    assert "3 components need at least 5 backbones" in found(two, components=3)["too-many-components"].message
    assert "too-many-components" not in found(two, components=1)


def test_runs_without_text_scores_are_named():
    mixed = study()
    mixed.text_scores.loc["F-base-0"] = np.nan
    note = found(mixed)["no-text-scores"]
    assert "4 of 48 runs" in note.message and "F-base-0" in note.message


def test_every_warning_has_a_figure():
    small = study(volumes=(1e6,), families=("F",), variants=("base",))
    assert all(
        any(c.isdigit() for c in n.message) or n.code in ("one-family", "one-variant")
        for n in identifiability(small)
    )
