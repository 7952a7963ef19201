"""Choices: what they are read off, what they refuse, and what information is worth to them."""

import dataclasses
import json
import re
import sys
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from typer.testing import CliRunner

from bayescdm import cli
from bayescdm.compare import rank_backbones
from bayescdm.decide import (
    Constraints,
    CostTable,
    choose,
    evpi,
    evsi,
    preposterior_means,
    read_cost_table,
    training_flops,
)
from bayescdm.decide.costs import on_front
from bayescdm.decide.words import next_run_in_words
from bayescdm.errors import InputError, NotFoundError, RequestError
from bayescdm.reading import read_candidates
from bayescdm.report import answer
from bayescdm.tables import written
from bayescdm.wording import probability, short_names

TWELVE = Path(__file__).parent / "data" / "choice" / "twelve.csv"
LLAVA = "LLaVA-1.5 (LLaVA-MORE) | CLIP-L/14-336"


# --- value of information ---------------------------------------------------------------------------


def gaussian(seed, options, draws=40_000):
    """Means, covariance, and joint draws of options and of a noisy measurement of the first."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(0, 0.01, options)
    root = rng.normal(0, 0.02, (options, options))
    values = mean + rng.standard_normal((draws, options)) @ root.T
    measured = values[:, 0] + rng.normal(0, 0.01, draws)
    covariance = root @ root.T
    # How far the posterior means move with one standard deviation of the measurement.
    slopes = covariance[:, 0] / np.sqrt(covariance[0, 0] + 0.01**2)
    return mean, covariance, slopes, values, measured


def expected_maximum(mean, slopes):
    """E[max_j (a_j + b_j·Z)] of a standard Normal Z, by its pieces (Frazier, Powell and Dayanik 2009)."""
    z = np.linspace(-9, 9, 400_001)
    return np.trapezoid((mean + slopes * z[:, None]).max(1) * norm.pdf(z), z)


@pytest.mark.parametrize("seed", range(4))
def test_evsi_of_two_normal_candidates_has_its_closed_form(seed):
    mean, covariance, slopes, values, measured = gaussian(seed, 2)
    margin = abs(mean[1] - mean[0])

    def gain(spread):
        return spread * norm.pdf(margin / spread) - margin * norm.cdf(-margin / spread)

    spread = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert evpi(values) == pytest.approx(gain(spread), rel=0.04, abs=5e-6)
    assert evsi(values, measured) == pytest.approx(gain(abs(slopes[1] - slopes[0])), rel=0.04, abs=2e-5)


@pytest.mark.parametrize("options", [3, 8])
def test_evsi_of_several_normal_candidates_has_its_closed_form(options):
    mean, _, slopes, values, measured = gaussian(options, options)
    expected = expected_maximum(mean, slopes) - mean.max()
    assert expected > 0
    assert evsi(values, measured) == pytest.approx(expected, rel=0.05)
    # Any monotone function of the measurement carries the same information.
    assert evsi(values, np.exp(50 * measured)) == pytest.approx(evsi(values, measured), rel=1e-9)


def test_a_measurement_that_says_all_or_nothing_is_worth_all_or_nothing():
    rng = np.random.default_rng(0)
    values = np.column_stack([np.zeros(40_000), rng.normal(-0.002, 0.01, 40_000)])
    assert evsi(values, values[:, 1]) == pytest.approx(evpi(values), rel=0.02)
    assert evsi(values, rng.standard_normal(40_000)) < 0.02 * evpi(values)
    assert evsi(values, np.ones(40_000)) == 0
    wild = values[:, 1] + 0.003 * rng.standard_t(1.0, 40_000)
    assert 0.3 * evpi(values) < evsi(values, wild) < evpi(values)


def test_what_evsi_promises_is_gained_on_draws_that_it_has_not_seen():
    """Skewed values, a Student-t residual: no closed form, but the promise can be cashed."""
    rng = np.random.default_rng(1)
    common = rng.gamma(2, 0.01, 40_000)
    values = np.column_stack([common, 0.02 + rng.normal(0, 0.01, 40_000), 0.3 * common + 0.014])
    measured = common + 0.005 * rng.standard_t(3, 40_000)
    known, unseen = slice(None, 20_000), slice(20_000, None)
    order = np.argsort(measured[known])
    # The best option by what was learnt from the draws whose measurement is nearest.
    after = preposterior_means(values[known], measured[known])[order].argmax(1)
    nearest = np.searchsorted(measured[known][order], measured[unseen]).clip(max=19_999)
    gained = values[unseen][np.arange(20_000), after[nearest]].mean() - values[unseen].mean(0).max()
    assert gained == pytest.approx(evsi(values[known], measured[known]), rel=0.1)
    assert gained > 0.3 * evpi(values)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(12, 60))
def test_evsi_is_never_negative_and_never_above_evpi(seed, options, draws):
    rng = np.random.default_rng(seed)
    values = rng.standard_t(2, (draws, options)) * rng.uniform(0, 1, options)
    measured = rng.choice([values[:, 0], rng.standard_t(1, draws), np.zeros(draws)])
    assert 0 <= evsi(values, measured) <= evpi(values)
    assert preposterior_means(values, measured).mean(0) == pytest.approx(values.mean(0))


# --- costs and constraints --------------------------------------------------------------------------


def test_flops_count_a_frozen_stage_less():
    assert training_flops(1e9, 1e6) == 6e15
    assert training_flops(1e9, 1e6, tokens_per_sample=700) == 700 * 6e15
    assert training_flops(1e9, 1e6, projector_volume=4e5) == 6e15 - 2e9 * 4e5
    assert training_flops(1e9, 1e5, projector_volume=4e5) == 4e14


def test_nothing_on_the_front_is_beaten_in_cost_and_accuracy():
    rng = np.random.default_rng(0)
    cost, value = rng.uniform(size=(2, 40))
    cost[3] = np.nan
    front = on_front(cost, value)
    assert not front[3]
    for i in range(40):
        beaten = any(cost[j] <= cost[i] and value[j] >= value[i] for j in range(40) if j != i)
        assert front[i] == (not beaten and i != 3)
    assert on_front(np.array([1.0, 1.0]), np.array([0.5, 0.5])).tolist() == [True, True]


CONSTRAINTS = {
    "too large": Constraints(max_params=4e9),
    "too small": Constraints(min_params=5e9),
    "too much memory": Constraints(max_memory=10e9),
    "family F is excluded": Constraints(exclude_families=("F",)),
}


@pytest.mark.parametrize("reason", CONSTRAINTS)
def test_what_does_not_meet_a_constraint_is_listed_with_the_reason(reason, known_fit):
    choice = choose(known_fit(100), volume=1e6, constraints=CONSTRAINTS[reason])
    assert len(choice.infeasible)
    assert choice.infeasible["reason"].str.startswith(reason).all()
    everybody = {*choice.ranking["backbone"], *choice.infeasible["backbone"]}
    assert everybody == set(known_fit(100).study.scored)
    assert not {*choice.ranking["backbone"]} & {*choice.infeasible["backbone"]}
    assert f"{len(choice.infeasible)} candidate" in choice.sentences[-1]


def candidates(fit, **columns):
    """The study's scored backbones as a table of candidates, with further columns."""
    names = fit.study.scored
    return fit.study.text_scores.loc[names], fit.study.backbones.loc[names].assign(**columns)


def test_licences_and_unknown_sizes(known_fit):
    fit = known_fit(100)
    licences = ["MIT", "mit", "", "own", "mit", "mit"]
    allowed = Constraints(licences=("mit",))
    choice = choose(fit, candidates(fit, licence=licences), volume=1e6, constraints=allowed)
    assert list(choice.infeasible["reason"]) == ["no licence is stated", "licence own is not allowed"]
    with pytest.raises(RequestError, match="no column 'licence'"):
        choose(fit, volume=1e6, constraints=allowed)
    for stated, told in (
        (licences, "licence 'apache' is not known; known: MIT, mit, own"),
        ([""] * 6, "empty"),
    ):
        with pytest.raises(RequestError if told == "empty" else NotFoundError, match=told):
            choose(
                fit,
                candidates(fit, licence=stated),
                volume=1e6,
                constraints=Constraints(licences=("apache",)),
            )
    with pytest.raises(NotFoundError, match="family 'H' is not known"):
        choose(fit, volume=1e6, constraints=Constraints(exclude_families=("H",)))
    text_scores, backbones = candidates(fit)
    text_scores = text_scores.rename(index={"n-base": "fresh"})
    backbones = backbones.rename(index={"n-base": "fresh"})
    backbones.loc["fresh", "params"] = np.nan
    unknown = choose(fit, (text_scores, backbones), volume=1e6, constraints=Constraints(max_params=1e10))
    assert list(unknown.infeasible["reason"]) == ["no number of parameters, so its size cannot be judged"]
    without = choose(fit, (text_scores, backbones), volume=1e6)
    assert np.isnan(without.ranking.set_index("backbone").at["fresh", "cost"])
    assert not without.ranking.set_index("backbone").at["fresh", "on_front"]


def test_a_backbone_without_text_scores_is_infeasible_not_an_error(known_fit):
    choice = choose(known_fit(100), ["f-base", "unscored"], volume=1e6)
    assert choice.infeasible.to_dict("records") == [
        {"backbone": "unscored", "reason": "no usable text score, so no capability"}
    ]
    assert choice.recommended == "f-base"


def test_cost_tables_are_read_with_all_problems_at_once(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("backbone,volume,cost\nf-base,1M,100\n,1M,x\nf-base,none,3\n")
    with pytest.raises(InputError) as refused:
        read_cost_table(path)
    lines = str(refused.value).splitlines()
    assert len(lines) == 3
    assert any("row 3 (header is row 1), column 'cost'" in line for line in lines)
    assert any("row 4 (header is row 1), column 'volume'" in line for line in lines)
    path.write_text("name,cost\na,1\n")
    with pytest.raises(InputError, match=r"costs\.csv, row 1 .*: there is no column 'backbone'"):
        read_cost_table(path)
    path.write_text("backbone,cost\na,1\na,2\nb,abc\nb,3\nc,-1\n,\n-,4\n")
    with pytest.raises(InputError) as refused:
        read_cost_table(path)
    told = [(problem.split(" (")[0], problem.split(": ", 1)[1]) for problem in refused.value.problems]
    assert [place for place, _ in told] == [f"costs.csv, row {row}" for row in (3, 4, 5, 6, 8)]
    assert told[0][1].startswith("'a' stands in row 2 as well, with another cost (1 there, 2 here)")
    assert told[2][1] == "'b' stands in row 4 as well, with another cost: keep one of them"


def test_a_cost_table_is_read_like_the_tables_of_a_study(tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("Backbone;Cost;remark\nf-base;1,5;x\ng-base;2,25;y\n")
    table = read_cost_table(path)
    assert table.rows["cost"].tolist() == [1.5, 2.25]
    assert {"separator", "column-ignored"} <= {note.code for note in table.notes}
    # What has a cell too many was read one column off: a backbone '1' that costs 200.
    path.write_text("backbone,cost\nf-base,1,200\n")
    with pytest.raises(InputError, match="has 3 cells, the header 2"):
        read_cost_table(path)


# --- the choice -------------------------------------------------------------------------------------


def test_at_one_volume_the_choice_is_the_ranking(known_fit):
    fit = known_fit(2000)
    choice = choose(fit, volume=1e6, recipe="wide", prob=0.8)
    ranking = rank_backbones(fit, volume=1e6, recipe="wide", prob=0.8)
    pd.testing.assert_frame_equal(choice.ranking[ranking.columns], ranking)
    assert choice.ranking["p_best"].sum() == pytest.approx(1)
    assert choice.evpi == pytest.approx(choice.ranking["expected_regret"].iloc[0])
    first = choice.recommended
    p = choice.ranking["p_first_better"]
    assert np.isnan(p[0]), "the first cannot be better than itself"
    np.testing.assert_allclose(p[1:], choice.pairs.loc[first].iloc[1:])
    assert (choice.ranking["tied"] == (choice.pairs.loc[first].to_numpy() < 0.8)).all()
    assert f"Take {first} with 1M samples under wide" in choice.sentences[0]
    assert probability(choice.ranking["p_best"].iloc[0]) in choice.sentences[0]


def test_differences_are_from_the_reference_and_say_what_is_practically_equal(known_fit):
    choice = choose(known_fit(2000), volume=1e6, reference="f-base", equivalent=0.02)
    table = choice.differences
    parts = table["p_equivalent"] + table["p_better"] + table["p_worse"]
    np.testing.assert_allclose(parts, 1)
    assert table.loc["f-base", ["mean", "sd"]].tolist() == [0, 0]
    all_equal = choose(known_fit(2000), volume=1e6, equivalent=0.9)
    assert set(all_equal.differences["verdict"]) == {"practically equal", "the reference"}
    assert any(sentence.startswith("Practically equal") for sentence in all_equal.sentences)
    with pytest.raises(NotFoundError, match="candidate 'g' is not known"):
        choose(known_fit(100), volume=1e6, reference="g")


def test_equal_candidates_are_reported_as_tied(known_fit):
    fit = known_fit(500, without=("tau", "backbone_effect"))
    scores = pd.DataFrame(0.6, index=["one", "two"], columns=["x", "y", "z"])
    backbones = pd.DataFrame({"family": "F", "variant": "base", "params": 1e9}, index=scores.index)
    choice = choose(fit, (scores, backbones), volume=1e6)
    assert choice.ranking["p_best"].tolist() == [0.5, 0.5]
    assert choice.ranking["expected_rank"].tolist() == [1.5, 1.5]
    assert "one ties with two exactly; the order says nothing." in choice.sentences
    assert choice.evpi == 0


def test_a_budget_buys_each_candidate_its_own_volume(known_fit):
    fit = known_fit(1000)
    flops = 6 * 2e9 * 1e6 * 700
    choice = choose(fit, flops=flops, tokens_per_sample=700, recipe="wide")
    rows = choice.ranking.set_index("backbone")
    np.testing.assert_allclose(rows["cost"], flops)
    np.testing.assert_allclose(rows["volume"] * rows["params"], 2e15)
    assert (choice.options["cost"] <= flops * (1 + 1e-9)).all()
    on_front = set(choice.options.loc[choice.options["on_front"], "backbone"])
    assert set(rows.index[rows["on_front"]]) == on_front
    best = choice.options.groupby("backbone")["mean"].max()
    np.testing.assert_allclose(rows["mean"], best[rows.index])
    # At each candidate's own volume the draws are those that predictions give.
    for name, row in rows.iterrows():
        alone = rank_backbones(fit, [name], volume=row["volume"], recipe="wide")
        assert alone["mean"].iloc[0] == pytest.approx(row["mean"])
    staged = choose(fit, flops=flops, tokens_per_sample=700, projector_volume=5e5).ranking
    assert (staged["volume"] > staged["backbone"].map(rows["volume"])).all()
    np.testing.assert_allclose(staged["cost"], flops)
    capped = choose(fit, flops=flops, tokens_per_sample=700, max_volume=5e5)
    assert (capped.ranking["volume"] <= 5e5).all()


def test_a_mixture_of_experts_costs_its_active_parameters_and_stores_them_all(known_fit):
    fit = known_fit(100)
    experts = candidates(fit, active_params=fit.study.backbones.loc[fit.study.scored, "params"] / 4)
    small = Constraints(max_memory=10e9)
    dense, sparse = (
        choose(fit, table, volume=1e6, tokens_per_sample=700, constraints=small)
        for table in (candidates(fit), experts)
    )
    assert list(dense.infeasible["backbone"]) == list(sparse.infeasible["backbone"])
    np.testing.assert_allclose(sparse.ranking["cost"], dense.ranking["cost"] / 4)


def test_where_data_do_harm_less_is_taken(known_fit):
    fit = known_fit(200)
    B0 = fit.posterior["B0"]
    harmful = known_fit(200, B0=(("family", "variant"), np.full(B0.shape, -0.02)))
    choice = choose(harmful, ["f-base", "g-base"], flops=6e16, tokens_per_sample=1)
    np.testing.assert_allclose(choice.ranking["volume"], 1e5)


def test_a_budget_that_nobody_can_meet_is_one_line(known_fit):
    with pytest.raises(RequestError) as refused:
        choose(known_fit(50), flops=1e9, tokens_per_sample=700)
    message = str(refused.value)
    assert message.startswith(
        "no candidate fits the budget of 1e+09 FLOPs: the cheapest, 'f-base', needs 4.2e+17"
    )
    assert "\n" not in message
    with pytest.raises(RequestError, match=r"none of 6 candidates is feasible, e\.g\. .* too large"):
        choose(known_fit(50), volume=1e6, constraints=Constraints(max_params=1e3))
    partly = choose(known_fit(50), volume=1e6, flops=6 * 3e15, tokens_per_sample=1)
    assert set(partly.ranking["backbone"]) == {"f-base", "f-instruct"}
    assert partly.infeasible["reason"].str.startswith("budget: costs").all()


def test_contradictory_requests_are_refused(known_fit):
    fit, table = (
        known_fit(50),
        CostTable(pd.DataFrame({"backbone": ["f-base"], "volume": [1e6], "cost": [1.0]})),
    )
    for asked, message in (
        ({"flops": 1e20}, "FLOPs need the tokens of a sample"),
        ({"budget": 5.0}, "a budget without a cost table"),
        ({"flops": 1e20, "costs": table}, "give one of the two"),
        ({"costs": table, "tokens_per_sample": 3}, "leave out tokens"),
        ({"flops": -1.0, "tokens_per_sample": 1}, "not a positive number"),
        ({"equivalent": -0.1}, "is negative"),
        (
            {"flops": 1e20, "tokens_per_sample": 1, "max_volume": 10.0},
            "no volume lies between 100K, the smallest of any run, and 10 samples",
        ),
        (
            {"volume": 1e6, "tokens_per_sample": 1, "projector_volume": 2e6},
            "less than the 2M for the projector",
        ),
    ):
        with pytest.raises(RequestError, match=message):
            choose(fit, **asked)


def test_volumes_and_sizes_that_contradict_each_other_are_named(known_fit):
    fit, within = known_fit(50), {"flops": 1e20, "tokens_per_sample": 1}
    for asked, message in (
        ({"volume": 1.2e6, "max_volume": 1e6}, r"volume 1\.2M is more than the largest volume allowed, 1M"),
        ({"volume": 1e6, "min_volume": 2e6}, "volume 1M is less than the smallest volume allowed, 2M"),
        ({"max_volume": 1e6}, "volume 10M is more than"),  # the one that is chosen where none is asked
        (
            {**within, "projector_volume": 5e6, "max_volume": 2e6},
            "the largest volume allowed is 2M, less than the 5M for the projector alone",
        ),
        ({**within, "max_volume": -1.0}, "max_volume -1 is not a positive number"),
    ):
        with pytest.raises(RequestError, match=message):
            choose(fit, **asked)
    with pytest.raises(RequestError, match="at least 9B and at most 3B parameters"):
        Constraints(min_params=9e9, max_params=3e9)
    with pytest.raises(RequestError, match=r"max_memory -1e\+09 bytes is not"):
        Constraints(max_memory=-1e9)


def test_a_refused_budget_names_a_volume_of_the_cost_table(known_fit):
    rows = [("f-base", 2e5, 30.0), ("f-base", 3e6, 90.0), ("g-base", 4e5, 20.0)]
    table = CostTable(pd.DataFrame(rows, columns=["backbone", "volume", "cost"]))
    with pytest.raises(RequestError, match="the cheapest, 'g-base', needs 20 for 400K samples; 4 others"):
        choose(known_fit(50), costs=table, budget=5.0)
    with pytest.raises(RequestError, match="the cheapest, 'f-base', needs 90 for 3M samples"):
        choose(known_fit(50), costs=table, budget=5.0, min_volume=1e6)
    cut = choose(known_fit(50), costs=table, budget=50.0, max_volume=3e5, next_run=True)
    assert cut.options[["backbone", "volume"]].to_numpy().tolist() == [["f-base", 2e5]]
    assert cut.next_runs["volume"].tolist() == [2e5]
    reasons = cut.infeasible.set_index("backbone")["reason"]
    assert reasons["g-base"] == "the cost table has no volume of it within those that are allowed"


def test_a_cost_table_states_each_cost_once(known_fit, tmp_path):
    path = tmp_path / "costs.csv"
    path.write_text("backbone,cost\nf-base,40\ng-base,50\nf-base,40.0\ntypo,1\n")
    table = read_cost_table(path)
    assert len(table.rows) == 3
    choice = choose(known_fit(50), costs=table)
    told = {note.code: note for note in choice.notes}
    assert told["duplicate-merged"].where == "costs.csv:4" and "row 2" in told["duplicate-merged"].message
    assert "typo, which is no candidate" in told["cost-without-candidate"].message
    path.write_text("backbone,volume,cost\nf-base,1M,40\nf-base,2M,50\nf-base,1.0M,45\n")
    with pytest.raises(
        InputError, match=r"row 4 .*: 'f-base' stands in row 2 as well, .* \(40 there, 45 here\)"
    ):
        read_cost_table(path)
    path.write_text("backbone,cost\na,1e24\nb,1.2M\n")
    assert read_cost_table(path).rows["cost"].tolist() == [1e24, 1.2e6]
    path.write_text("backbone,cost\na,-1\nb,inf\nc,cheap\n")
    with pytest.raises(InputError) as refused:
        read_cost_table(path)
    assert str(refused.value).count("is no cost: write a number above 0, such as 850") == 3


def test_a_reference_may_be_short_and_an_infeasible_one_is_called_so(known_fit):
    fit = known_fit(50)
    text_scores, backbones = candidates(fit)
    names = [f"org/{name}" for name in text_scores.index[:-1]] + ["other/f-base"]
    renamed = text_scores.set_axis(names), backbones.set_axis(names)
    assert choose(fit, renamed, volume=1e6, reference="g-base").question["reference"] == "org/g-base"
    with pytest.raises(RequestError, match="may be org/f-base or other/f-base; write one of them in full"):
        choose(fit, renamed, volume=1e6, reference="f-base")
    small = Constraints(max_params=4e9)
    for name in ("org/f-other", "f-other"):
        with pytest.raises(RequestError, match=f"reference '{name}' is infeasible: too large: 7B"):
            choose(fit, renamed, volume=1e6, reference=name, constraints=small)


def test_a_cost_table_offers_its_own_volumes(known_fit):
    rows = [("f-base", 1e5, 10.0), ("f-base", 1e6, 40.0), ("f-base", 1e7, 90.0), ("g-base", 1e6, 60.0)]
    table = CostTable(pd.DataFrame(rows, columns=["backbone", "volume", "cost"]))
    choice = choose(known_fit(500), costs=table, budget=50.0, next_run=True)
    assert choice.ranking[["backbone", "volume", "cost"]].to_numpy().tolist() == [["f-base", 1e6, 40.0]]
    reasons = choice.infeasible.set_index("backbone")["reason"]
    assert reasons["g-base"] == "budget: the smallest volume costs 60 units of cost"
    assert reasons["n-base"] == "not in the cost table"
    assert choice.next_runs["volume"].tolist() == [1e5, 1e6]
    assert len(choose(known_fit(500), costs=table).ranking) == 2
    at_one = CostTable(table.rows.drop(index=[0, 2]).assign(volume=np.nan))
    choice = choose(known_fit(500), costs=at_one, budget=50.0)
    assert choice.ranking[["backbone", "cost"]].to_numpy().tolist() == [["f-base", 40.0]]
    assert choice.infeasible.set_index("backbone").at["g-base", "reason"] == "budget: costs 60 units of cost"
    assert choice.question["chosen"][-1].startswith("volume")


def test_costs_of_a_table_are_told_in_words_that_can_be_read(run, saved):
    Path("costs.csv").write_text("backbone,cost\nf-base,1\ng-base,2\n")
    refused = run(saved, "--costs", "costs.csv", "--budget", "0.5")
    assert refused.stderr.startswith("no candidate fits the budget of 0.5 units of cost: the cheapest")
    told = run(saved, "--costs", "costs.csv", "--budget", "1", "--volume", "1M")
    assert told.stdout.splitlines()[0].strip() == "1 candidate"
    assert re.search(r"g-base +budget: costs 2 units of cost", told.stdout)
    ranked = run(saved, "--costs", "costs.csv", "--volume", "1M", "--prob", "0.999")
    assert "is f-base: 0.5 of the cost, " in ranked.stdout
    assert ranked.stdout.splitlines()[0].strip() == "2 candidates"


def test_of_candidates_that_cost_the_same_the_front_is_shown_as_well(run, saved):
    Path("costs.csv").write_text("backbone,cost\nf-base,3\ng-base,3\n")
    told = run(saved, "--costs", "costs.csv", "--volume", "1M")
    first, second = told.stdout.splitlines()[2:4]
    assert first.rstrip().endswith(" yes") and not second.rstrip().endswith(" yes")


def test_next_runs_stay_within_what_knowing_everything_is_worth(known_fit):
    fit = known_fit(2000)
    choice = choose(fit, volume=1e6, recipe="wide", next_run=True)
    runs = choice.next_runs
    assert runs["evsi"].is_monotonic_decreasing
    assert runs["evsi"].between(0, choice.evpi).all()
    assert runs["evsi"].iloc[0] > 0.05 * choice.evpi
    assert runs["volume"].between(1e5, 1e6).all()
    assert runs["evsi_per_cost"].isna().all()  # active parameters say nothing of volumes
    assert "Most informative next run" in str(choice)
    priced = choose(fit, flops=1e20, tokens_per_sample=700, max_volume=1e6, next_run=True).next_runs
    np.testing.assert_allclose(priced["evsi_per_cost"], priced["evsi"] / priced["cost"])
    # Residuals drown what a run would tell.
    dims, sigma = (), fit.posterior["sigma"].to_numpy()
    noisy = choose(known_fit(2000, sigma=(dims, 50 * sigma)), volume=1e6, recipe="wide", next_run=True)
    assert noisy.next_runs["evsi"].max() < 0.2 * runs["evsi"].max()


def next_sentence(rows, draws=10_000):
    """The sentence on the next run of runs made by hand: backbone, volume, evsi; EVPI is 0.01."""
    steps = pd.DataFrame(rows, columns=["backbone", "volume", "evsi"]).assign(
        cost=1.0, p_change=0.2, evsi_per_cost=np.nan
    )
    steps["share_of_evpi"] = steps["evsi"] / 0.01
    steps.attrs = {"draws": draws}
    return next_run_in_words(steps, {"a": "a", "b": "b"}, "samples", "FLOPs")


def test_the_least_volume_that_tells_as_much_is_the_run_that_is_recommended():
    said = next_sentence([("a", 1e6, 0.00200), ("a", 5e5, 0.00196), ("b", 1e6, 0.001), ("a", 1e5, 0.001)])
    assert said == (
        "Most informative next run: a with 500K samples, expected to gain 0.20 points (EVSI, 20 % of EVPI); "
        "it changes the choice with probability .20; more samples would gain at most 3 % more."
    )
    assert next_sentence([("a", 1e6, 0.002), ("a", 5e5, 0.001)]).endswith("with probability .20.")


@pytest.mark.parametrize(
    ("evsi", "draws"), [(0.00019, 10_000), (0.0003, 2_500), (0.00004, 10**8), (0.0, 100)]
)
def test_no_run_is_recommended_where_its_worth_cannot_be_told_from_nothing(evsi, draws):
    said = next_sentence([("a", 1e6, evsi), ("b", 1e6, 0.0)], draws)
    assert said.startswith("No single run is expected to be worth anything to the choice")
    assert f"{100 * evsi:.2f} points" in said


def test_page_and_text_say_at_the_table_of_runs_what_the_terminal_says(known_fit):
    choice = choose(known_fit(2000), volume=1e6, recipe="wide", next_run=True)

    def at_the_table(choice):
        return next(section for section in choice.document().sections if section.name == "next").sentences

    assert at_the_table(choice)[-1] in choice.sentences
    noise = choice.next_runs.assign(evsi=1e-6, share_of_evpi=1e-4)
    none = dataclasses.replace(choice, next_runs=noise)
    assert at_the_table(none)[-1].startswith("No single run is expected to be worth anything to the choice")
    said = "cannot be told from 0"
    assert said not in choice.document().to_md()
    assert said in none.document().to_md()
    assert said in none.document().to_html()


def test_of_many_candidates_those_that_may_win_are_weighed_as_next_runs(known_fit):
    n = 40
    random = np.random.default_rng(0)
    scores = pd.DataFrame(random.uniform(0.3, 0.6, (n, 3)), [f"c{i}" for i in range(n)], ["x", "y", "z"])
    backbones = pd.DataFrame({"family": "F", "variant": "base", "params": 1e9}, index=scores.index)
    choice = choose(known_fit(100), (scores, backbones), volume=1e6, next_run=True)
    weighed = choice.next_runs["backbone"].unique()
    assert len(weighed) == 30 and choice.recommended in weighed
    left_out = choice.ranking[~choice.ranking["backbone"].isin(weighed)]
    assert left_out["p_best"].max() <= choice.ranking["p_best"].nlargest(30).iloc[-1]


def test_what_is_certain_is_not_a_matter_of_draws(known_fit):
    alone = choose(known_fit(50), ["f-base"], volume=1e6)
    assert alone.sentences[1].endswith("the only candidate.")
    shown = dict(zip(html_columns(alone.to_html(), "ranking"), html_rows(alone.to_html(), "ranking")[0]))
    assert (shown["P(best)"], shown["P(top 3)"]) == ("1", "1")
    two = choose(known_fit(50), ["f-base", "g-base"], volume=1e6, reference="f-base").to_html()
    rows = {row[0]: row for row in html_rows(two, "differences")}
    assert rows["f-base"][4:] == ["1", "0", "0", "the reference"]


def test_the_sentence_on_practical_equality_says_of_whom_it_speaks(known_fit):
    fit = known_fit(500)
    first = choose(fit, volume=1e6, recipe="wide").recommended
    other = next(name for name in fit.study.scored if name != first)
    told = str(choose(fit, volume=1e6, recipe="wide", reference=other))
    assert f"The reference is {other}. No other candidate is practically equal to it, within" in told
    assert f"practically equal to {first}, within" in str(choose(fit, volume=1e6, recipe="wide"))
    assert "practically equal" not in str(choose(fit, volume=1e6, recipe="wide", equivalent=0.0))
    assert "samples under a new recipe: expected" in str(choose(fit, volume=1e6, recipe="new"))


def test_volumes_at_which_the_recipe_has_no_run_are_named(known_fit):
    study = known_fit(100).study
    runs = study.runs.copy()
    runs.loc[(runs["recipe"] == "wide") & (runs["volume"] == 1e7), "volume"] = 2e5
    choice = choose(known_fit(100, study=dataclasses.replace(study, runs=runs)), volume=1e6, recipe="wide")
    document = choice.document()
    sentence = next(s for s in document.sections[0].sentences if "the recipe has no run" in s)
    assert re.search(r"At 11 of these 13 volumes the recipe has no run \(231K to 10M\)\.$", sentence)
    slider = next(part for part in document.sections[0].parts if part.kind == "slider")
    labels = [step.label for step in slider.steps]
    beyond = "no run of this recipe at this volume (100K to 200K)"
    assert labels[0] == "100K samples" and labels[-1] == f"10M samples; {beyond}"
    assert labels[slider.start] == f"1M samples, as asked; {beyond}"
    assert document.to_md().count("- What the columns mean") == 1


def test_what_lies_outside_is_noted_by_code(known_fit):
    choice = choose(known_fit(200), volume=1e8, recipe="wide")
    notes = [note for note in choice.notes if note.code == "extrapolation"]
    assert any("larger than any run of this recipe (4B)" in note.message for note in notes)
    assert any("extrapolation in" in note.message and "volume" in note.message for note in notes)
    assert any(
        "lie outside what runs have seen (extrapolation); the notes say which" in sentence
        for sentence in choice.sentences
    )
    # Ranking, prediction and report say it in the same words.
    ranking = rank_backbones(known_fit(200), ["f-other", "g-base"], volume=1e6, recipe="wide")
    larger = "larger than any run of this recipe (4B)"
    assert ranking.set_index("backbone")["beyond_recipe"].to_dict() == {"f-other": larger, "g-base": ""}
    answered = answer(known_fit(200), candidates=["f-other"], volume=1e6, recipe="wide")
    assert f"f-other: {larger}. That the recipe carries over to it is an extrapolation." in answered.sentences


def test_missing_text_scores_widen_the_interval_and_are_named(known_fit):
    fit = known_fit(2000)
    text_scores, backbones = candidates(fit)
    twice = [*text_scores.index, "f-other"]
    text_scores, backbones = text_scores.loc[twice].copy(), backbones.loc[twice]
    text_scores.index = backbones.index = pd.Index([*twice[:-1], "half"], name="backbone")
    text_scores.loc["half", ["y", "z"]] = np.nan
    choice = choose(fit, (text_scores, backbones), volume=1e6)
    width = choice.ranking.set_index("backbone").eval("backbone_90_upper - backbone_90_lower")
    assert width["half"] > 1.02 * width["f-other"]
    note = next(note for note in choice.notes if note.code == "incomplete-text-scores")
    assert note.where == "half"
    assert "2 of 3 text benchmarks (y, z)" in note.message and "widens its interval" in note.message
    assert any("half lacks text scores (y, z), which widens" in sentence for sentence in choice.sentences)


def test_what_did_not_converge_says_so_first(known_fit):
    choice = choose(known_fit(50), volume=1e6)
    assert not choice.converged
    assert choice.sentences[0].startswith("NOT CONVERGED")
    assert choice.notes[0].code == "not-converged"
    page = choice.to_html()
    assert page.index("<strong>Not converged.</strong>") < page.index("<main")


# --- command ----------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    return lambda *arguments: CliRunner().invoke(cli.app, ["choose", *map(str, arguments)])


@pytest.fixture(scope="module")
def saved(known_fit, tmp_path_factory):
    return known_fit(2000).save(tmp_path_factory.mktemp("choices") / "fit.nc")


def html_rows(page, table):
    """Cells of one table of a page."""
    body = re.search(rf'<table id="{table}".*?<tbody>(.*?)</tbody>', page, re.DOTALL).group(1)
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
    return [[unescape(c) for c in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)] for row in rows]


def html_columns(page, table):
    """Titles of the columns of one table of a page."""
    head = re.search(rf'<table id="{table}".*?</thead>', page, re.DOTALL).group(0)
    return [unescape(title) for title in re.findall(r"<button[^>]*>(.*?)</button>", head, re.DOTALL)]


def agree(terminal, page, document):
    """Terminal, page and JSON show the same candidates with the same figures, sentences and next runs."""
    ranking = document["ranking"]
    shown = [[row[0], row[1], row[5]] for row in html_rows(page, "ranking")]
    expected = [
        [row["backbone"], written(row["mean"], "percent"), probability(row["p_best"])] for row in ranking
    ]
    assert shown == expected
    front = html_columns(page, "ranking").index("an option on the front")
    marks = [row[front] for row in html_rows(page, "ranking")]
    assert marks == ["yes" if row["on_front"] else "" for row in ranking]
    lines = terminal.splitlines()
    assert "an option on the front" in lines[1]
    printed = [
        next(line for line in lines if line.split()[:1] == [name])
        for name in short_names(row["backbone"] for row in ranking)
    ]
    assert ["yes" if line.rstrip().endswith(" yes") else "" for line in printed] == marks
    for name, (_, accuracy, p_best) in zip(short_names(row["backbone"] for row in ranking), expected):
        line = next(line for line in lines if line.split()[:1] == [name])
        assert line.split()[1] == accuracy
        assert p_best in line.split()
    for sentence in document["recommendation"]:
        assert sentence in terminal
        assert sentence in unescape(page).replace("\N{NO-BREAK SPACE}", " ")
    runs = document["next_runs"]
    assert html_rows(page, "next-runs")[0][2] == written(runs[0]["evsi"], "fine_points")
    same = [r for r in runs if r["backbone"] == runs[0]["backbone"] and r["evsi"] >= 0.95 * runs[0]["evsi"]]
    least = min(same, key=lambda r: r["volume"])
    assert f"expected to gain {written(least['evsi'], 'fine_points')} points" in terminal


def asked_three_ways(run, *arguments):
    terminal = run(*arguments, "--next", "--report", "page.html")
    assert terminal.exit_code == 0, terminal.stderr
    told = run(*arguments, "--next", "--json")
    assert told.exit_code == 0, told.stderr
    document = json.loads(told.stdout, parse_constant=lambda name: pytest.fail(name))
    return terminal.stdout, Path("page.html").read_text(encoding="utf-8"), document


def test_twelve_candidates_for_llava_at_1_2m_samples(run, open_vlm_fit, monkeypatch):
    monkeypatch.setattr(sys.modules["bayescdm.fit"], "fit", lambda *_, **__: open_vlm_fit)
    terminal, page, document = asked_three_ways(
        run, "open-vlm", "--candidates", TWELVE, "--recipe", LLAVA, "--volume", "1.2M"
    )
    agree(terminal, page, document)
    assert len(document["ranking"]) == 12
    names = [row["backbone"] for row in document["ranking"]]
    assert names.index("Qwen/Qwen2.5-7B-Instruct") < names.index("Qwen/Qwen2.5-1.5B-Instruct")
    assert terminal.index("Take ") < terminal.index("Most informative next run")


def test_half_of_the_text_scores_of_a_real_candidate(open_vlm_fit, tmp_path):
    table = pd.read_csv(TWELVE)
    half = table[table["backbone"] == "microsoft/Phi-3.5-mini-instruct"].assign(backbone="half")
    half[["BBH", "GPQA", "MMLU-PRO"]] = np.nan
    pd.concat([table, half]).to_csv(tmp_path / "mine.csv", index=False)
    text_scores, backbones, _ = read_candidates(tmp_path / "mine.csv", open_vlm_fit.study)
    choice = choose(open_vlm_fit, (text_scores, backbones), recipe=LLAVA, volume=1.2e6)
    width = choice.ranking.set_index("backbone").eval("backbone_90_upper - backbone_90_lower")
    assert width["half"] > width["microsoft/Phi-3.5-mini-instruct"]
    assert "half lacks text scores (BBH, GPQA, MMLU-PRO), which widens its interval." in choice.sentences
    page = choice.to_html()
    assert "3 of 6 text benchmarks (BBH, GPQA, MMLU-PRO)" in page


def test_within_a_budget_the_three_agree_as_well(run, saved):
    asked = ("--flops", "1e19", "--tokens-per-sample", "700", "--max-volume", "5M", "--max-size", "8B")
    terminal, page, document = asked_three_ways(run, saved, "--recipe", "wide", *asked)
    agree(terminal, page, document)
    fronts = [row["backbone"] for row in document["ranking"] if row["on_front"]]
    # Of the options that use up the budget only one is on the front, of smaller volumes others are.
    assert len(fronts) > 1
    assert f"{len(fronts)} of {len(document['ranking'])} candidates have an option on the front" in page
    assert [row["backbone"] for row in document["infeasible"]] == ["n-base"]
    assert html_rows(page, "out") == [["n-base", "too large: 9B parameters, allowed 8B"]]
    assert "too large: 9B parameters, allowed 8B" in terminal


def test_what_cannot_be_met_is_one_line_and_status_1(run, saved):
    refused = run(saved, "--flops", "1e13", "--tokens-per-sample", "700")
    assert refused.exit_code == 1
    assert refused.stdout == ""
    assert refused.stderr.count("\n") == 1
    assert refused.stderr.startswith("no candidate fits the budget")
    refused = run(saved, "--report", "page.txt")
    assert (refused.exit_code, refused.stderr) == (
        1,
        "--report page.txt: is a page; let its name end in .html\n",
    )
    for before in ("mine", '<meta name="generator" content="bayescdm 1">'):
        Path("page.html").write_text(before)
        refused = run(saved, "--report", "page.html")
        assert refused.exit_code == 1
        assert Path("page.html").read_text() == before


def test_budgets_of_flops_are_read_as_allocate_reads_them(run, saved):
    told = run(saved, "--flops", "3e24", "--tokens-per-sample", "700", "--max-volume", "5M", "--json")
    assert told.exit_code == 0, told.stderr
    assert json.loads(told.stdout)["question"]["budget"] == 3e24
    for text in ("1e9", "nan", "lots"):
        refused = run(saved, "--flops", text, "--tokens-per-sample", "700")
        assert refused.exit_code == 1
        assert "FLOPs" in refused.stderr and refused.stderr.count("\n") == 1


def test_with_a_saved_fit_the_seed_is_that_of_what_is_drawn_and_fitting_cannot_be_asked_for(run, saved):
    def told(*asked):
        return json.loads(run(saved, "--volume", "1M", *asked, "--json").stdout)

    default, again, other = told(), told("--seed", 0), told("--seed", 4)
    assert (default["question"]["seed"], other["question"]["seed"]) == (0, 4)
    assert default == again
    mean = {row["backbone"]: row["mean"] for row in default["ranking"]}
    moved = {row["backbone"]: row["mean"] for row in other["ranking"]}
    assert moved["f-base"] == mean["f-base"], "backbones of the fit are not drawn"
    assert moved["n-base"] != mean["n-base"]
    refused = run(saved, "--draws", 10, "--benchmark", "x", "--model", "transfer_size")
    assert refused.exit_code == 1
    assert refused.stderr.splitlines() == [
        f"--{name} belongs to fitting; {saved} is fitted already" for name in ("model", "draws", "benchmark")
    ]


def test_candidates_that_cannot_be_ranked_are_one_line(run, saved):
    Path("none.csv").write_text("backbone,family,variant,params_b,x,y,z\nf-base,F,base,1,,,\n")
    refused = run(saved, "--candidates", "none.csv")
    assert refused.exit_code == 1
    where, reason = refused.stderr.splitlines()
    assert "none.csv:2:backbone" in where and "nothing can be predicted of it" in where
    assert reason == "the only candidate, 'f-base', is infeasible: no usable text score, so no capability"
    Path("twice.csv").write_text(
        "backbone,family,variant,params_b,x,y,z\na,F,base,1,5,6,70\na,F,base,1,5,6,70\n"
    )
    refused = run(saved, "--candidates", "twice.csv")
    assert (refused.exit_code, refused.stderr) == (
        1,
        "asked for more than once: 'a'; compare each backbone once\n",
    )
    Path("one.csv").write_text("backbone,family,variant,params_b,x,y,z\na,F,base,1,45,56,70\nb,F,base,1,,,\n")
    told = run(saved, "--candidates", "one.csv", "--volume", "1M", "--json")
    assert told.exit_code == 0, told.stderr
    assert "forecast" not in told.stderr


def test_refused_options_are_not_told_of_cells(run, saved):
    for asked, message in (
        (("--volume", "-5"), "--volume: value '-5' is not above 0: write the number\n"),
        (("--volume", "1"), "--volume 1: 1 sample is less than"),
        (("--max-memory", "-1"), "--max-memory -1: write a number above 0\n"),
        (("--equivalent", "-1"), "--equivalent -1: write accuracy points, 0 or more\n"),
    ):
        refused = run(saved, *asked)
        assert refused.exit_code == 1
        assert refused.stderr.startswith(message)


@pytest.mark.parametrize("title", ["licence", "License"])
def test_a_licence_column_of_the_candidates_is_used(title, run, saved):
    table = f"backbone,family,variant,params_b,{title},x,y,z\n"
    table += "a,F,base,7,Apache-2.0,50,40,50\nb,G,base,7,own,55,50,60\nc,G,base,7,,55,50,60\n"
    Path("mine.csv").write_text(table)
    told = run(saved, "--candidates", "mine.csv", "--volume", "1M", "--licence", "apache-2.0", "--json")
    assert told.exit_code == 0, told.stderr
    document = json.loads(told.stdout)
    assert document["recommended"] == "a"
    assert [row["reason"] for row in document["infeasible"]] == [
        "licence own is not allowed",
        "no licence is stated",
    ]


def test_a_licence_or_a_size_that_cannot_be_meant_is_refused_before_sampling(run, monkeypatch):
    monkeypatch.setattr(sys.modules["bayescdm.fit"], "fit", lambda *_, **__: pytest.fail("sampled"))
    refused = run(
        *("open-vlm", "--candidates", TWELVE, "--licence", "apache"),
        *("--licence", "MIT", "--licence", "llama 3.1"),
    )
    assert refused.exit_code == 1
    assert [line for line in refused.stderr.splitlines() if "[" not in line] == [
        "licence 'apache' is not known; did you mean 'apache-2.0'?",
        "licence 'llama 3.1' is not known; did you mean 'llama3.1' or 'llama3.2' or 'llama2'?",
    ]
    for option in ("--max-size", "--min-size"):
        refused = run("open-vlm", option, "4")
        assert (refused.exit_code, refused.stderr) == (
            1,
            f"{option} 4 is not an absolute count: write 4B or 4e9 for 4 billion\n",
        )


def test_what_can_be_refused_is_refused_before_sampling(run, monkeypatch):
    def sampled(*_, **__):
        raise AssertionError("minutes of sampling for nothing")

    monkeypatch.setattr(sys.modules["bayescdm.fit"], "fit", sampled)
    Path("bad.csv").write_text("name,IFEval\na,50\n")
    for asked, message in (
        (("--flops", "3e19"), "FLOPs need the tokens of a sample"),
        (("--candidates", "bad.csv"), "there is no column 'backbone'"),
        (("--report", "nowhere/page.html"), "there is no folder nowhere"),
        (("--prob", "90"), "did you mean 0.9?"),
        (("--volume", "1.2"), "--volume 1.2: 1.2 samples is less than"),
        (("--max-volume", "12"), "did you mean 12M?"),
        (("--budget", "3"), "a budget without a cost table"),
    ):
        refused = run("open-vlm", *asked)
        assert refused.exit_code == 1, refused.stderr
        assert message in refused.stderr
