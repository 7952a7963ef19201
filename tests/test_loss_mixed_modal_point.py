"""The mixed-modal point fit: known laws come back, from every start, and what stays open is told."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime
from typer.testing import CliRunner

from bayescdm import cli
from bayescdm.errors import NotFoundError
from bayescdm.laws import compute_loss, mixed_modal_pair_loss
from bayescdm.loss import mixed_modal_point
from bayescdm.loss.huber import DELTA, HuberObjective
from bayescdm.loss.mixed_modal import TRUTH, mixed_modal_data, simulate_mixed_modal
from bayescdm.loss.mixed_modal_point import _design, fit_mixed_modal_points


@pytest.fixture(scope="module")
def exact():
    return fit_mixed_modal_points(simulate_mixed_modal(noise=0), starts=3)


@pytest.fixture(scope="module")
def noisy():
    return fit_mixed_modal_points(simulate_mixed_modal(seed=5), starts=2, resamples=4)


def law_of(run, constants):
    """Loss of a run by the laws as they are printed, one run at a time."""
    own = {
        name: compute_loss(run["params"], D, **constants["modalities"][name])
        for name, D in ((run["first"], run["volume_first"]), (run["second"], run["volume_second"]))
        if name
    }
    if not run["second"]:
        return own[run["first"]]
    label = f"{run['first']} + {run['second']}"
    return mixed_modal_pair_loss(
        own[run["first"]], own[run["second"]], run["params"], run["volume_first"], run["volume_second"],
        **constants["pairs"][label],
    )  # fmt: skip


def huber_sum(study, constants):
    size = np.abs([np.log(law_of(run, constants) / run["loss"]) for _, run in study.table.iterrows()])
    return np.where(size <= DELTA, size**2 / 2, DELTA * (size - DELTA / 2)).sum()


def constants_of(fit):
    values = {name: draws[0] for name, draws in fit.constants.items()}
    alone = ("A", "B", "E", "alpha", "beta")
    return {
        "modalities": {
            label: {name: values[name][i] for name in alone} for i, label in enumerate(fit.study.modalities)
        },
        "pairs": {
            label: {
                "C": values["C"][i],
                **{name: values[f"pair_{name}"][i] for name in ("A", "B", "alpha", "beta")},
            }
            for i, label in enumerate(fit.study.pairs)
        },
    }


def test_noise_free_laws_come_back_from_every_start(exact):
    assert exact.reached == exact.starts
    assert exact.objective < 1e-15
    assert not exact.notes
    found = constants_of(exact)
    for kind in ("modalities", "pairs"):
        for label, truth in TRUTH[kind].items():
            assert found[kind][label] == pytest.approx(truth, rel=1e-3)


def test_interactions_of_noise_free_runs_are_the_true_ones(exact):
    both = exact.study.table[exact.study.table["second"] != ""]
    answer = exact.interaction(both).table
    truth = [
        mixed_modal_pair_loss(0, 0, run["params"], run["volume_first"], run["volume_second"],
                              **TRUTH["pairs"][f"{run['first']} + {run['second']}"])
        for _, run in both.iterrows()
    ]  # fmt: skip
    np.testing.assert_allclose(answer["interaction"], truth, atol=1e-6)
    np.testing.assert_allclose(answer["loss"], both["loss"], rtol=1e-6)


def test_objective_is_that_of_the_printed_laws_and_not_above_the_truths(noisy):
    assert noisy.objective == pytest.approx(huber_sum(noisy.study, constants_of(noisy)), rel=1e-6)
    assert noisy.objective < huber_sum(noisy.study, TRUTH)
    assert noisy.reached == noisy.starts


def test_gradient_of_what_is_subtracted_is_that_of_the_objective():
    data = mixed_modal_data(simulate_mixed_modal(seed=1))
    design = _design(data)
    objective = HuberObjective(design.terms, data.log_loss, data.weight, 0.1, design.factor)
    terms = np.log([1.0, 0.8, 2.0, 0.3, 0.2, 4.0])
    size = np.concatenate([np.tile(terms[:3], 3), np.tile(terms[3:], 2)])
    x = np.full(len(design.names), 0.4)
    x[~design.shape] = size
    np.testing.assert_allclose(
        objective(x)[1], approx_fprime(x, lambda y: objective(y)[0], 1e-7), rtol=1e-3, atol=1e-5
    )
    for i in (0, 3, -3, -1):
        numeric = approx_fprime(x, lambda y, i=i: objective(y)[1][i], 1e-6)
        np.testing.assert_allclose(objective.hessian(x)[i], numeric, rtol=1e-2, atol=1e-2)


def test_bootstrap_holds_synergy_and_competition_and_repeats(noisy):
    rows = noisy.pairs_at_largest(prob=0.8).table
    speech, image = rows.iloc[0], rows.iloc[1]
    assert speech["bootstrap_lower_80"] < speech["bootstrap_upper_80"] < 0
    assert 0 < image["bootstrap_lower_80"] < image["bootstrap_upper_80"]
    again = fit_mixed_modal_points(noisy.study, starts=2, resamples=1)
    for name, draws in again.bootstrap.items():
        np.testing.assert_array_equal(draws[0], noisy.bootstrap[name][0])


def test_a_pair_at_one_size_and_volume_is_told_to_be_undetermined():
    study = simulate_mixed_modal(noise=0)
    table = study.table
    kept = (table["second"] != "image") | ((table["params"] == 1.3e9) & (table["volume_first"] == 2e10))
    fit = fit_mixed_modal_points(replace(study, table=table[kept]), starts=2, resamples=2)
    notes = {note.code: note for note in fit.notes}
    assert "text + image: alpha" in notes["undetermined"].message
    assert "1 runs were resampled" in notes["few-runs"].message
    with pytest.raises(NotFoundError, match="speech"):
        fit.interaction(
            pd.DataFrame(
                [("speech", "image", 1e9, 1e10, 1e10)],
                columns=["first", "second", "params", "volume_first", "volume_second"],
            )
        )


def test_command_prints_and_gives_json(tmp_path, monkeypatch):
    table = simulate_mixed_modal(noise=0).table.replace({"volume_second": {0.0: ""}})
    table.to_csv(tmp_path / "runs.csv", index=False)
    asked = ["loss", str(tmp_path / "runs.csv"), "--law", "mixed-modal", "--point", "--resamples", "2"]
    fits = []

    def once(study, *, seed, resamples, progress):
        fits.append(fit_mixed_modal_points(study, starts=1, seed=seed, resamples=resamples))
        return fits[-1]

    monkeypatch.setattr(mixed_modal_point, "fit_mixed_modal_points", once)
    answer = json.loads(CliRunner().invoke(cli.app, [*asked, "--json"]).stdout)
    monkeypatch.setattr(mixed_modal_point, "fit_mixed_modal_points", lambda study, **_: fits[0])
    result = CliRunner().invoke(cli.app, asked)
    assert result.exit_code == 0, result.stderr
    for part in ("1 of 1 starts reached it", "bootstrap_lower_90", "below 0: the modalities help"):
        assert part in result.stdout
    assert answer["pairs"][0]["interaction"] == pytest.approx(-0.2107, abs=1e-4)
    assert answer["parameters"]["E[text]"]["estimate"] == pytest.approx(1.9, abs=1e-4)
    refused = CliRunner().invoke(cli.app, [*asked, "--out", str(tmp_path / "fit.nc")])
    assert refused.exit_code == 1
    assert refused.stderr.startswith("--out saves a posterior")
