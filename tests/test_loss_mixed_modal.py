"""Competition and synergy of simulated pairs are recovered, with their probability and the caution."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from bayescdm import cli
from bayescdm.cli.output import NOT_CONVERGED
from bayescdm.errors import FitError, InputError, NotFoundError, RequestError
from bayescdm.laws import mixed_modal_pair_loss
from bayescdm.loss import mixed_modal
from bayescdm.loss.mixed_modal import (
    TRUTH,
    fit_mixed_modal,
    load_mixed_modal_fit,
    read_mixed_modal,
    simulate_mixed_modal,
)
from bayescdm.sampling import SamplerSettings


@pytest.fixture(scope="module")
def fit():
    return fit_mixed_modal(simulate_mixed_modal(), settings=SamplerSettings(draws=500, tune=600, chains=2))


def asked(first, second, N, D=1e11):
    return pd.DataFrame(
        {"first": [first], "second": [second], "params": [N], "volume_first": [D], "volume_second": [D]}
    )


def truth(pair, N, D=1e11):
    return mixed_modal_pair_loss(0, 0, N, D, D, **TRUTH["pairs"][pair])


def test_draws_have_no_divergences_and_mix(fit):
    assert fit.diagnose().divergences == 0
    assert fit.diagnose().max_r_hat < 1.02


@pytest.mark.parametrize("N", [125e6, 1.3e9, 6.7e9])
@pytest.mark.parametrize("pair", list(TRUTH["pairs"]))
def test_interactions_are_recovered(fit, pair, N):
    row = fit.interaction(asked(*pair.split(" + "), N), prob=0.99).table.iloc[0]
    assert row["law_99_lower"] < truth(pair, N) < row["law_99_upper"]


def test_synergy_and_competition_are_told_apart_with_their_probability(fit):
    assert fit.interaction(asked("text", "speech", 6.7e9)).table["p_synergy"][0] > 0.99
    assert fit.interaction(asked("text", "image", 6.7e9)).table["p_synergy"][0] < 0.01
    # At 8M parameters the simulated pair of text and speech has an interaction near nought.
    assert 0.01 < fit.interaction(asked("text", "speech", 8e6)).table["p_synergy"][0] < 0.99


def test_a_pair_is_the_same_either_way_round(fit):
    one, other = (
        fit.interaction(asked(*pair, 1e9)).table for pair in (("text", "speech"), ("speech", "text"))
    )
    assert one["interaction"][0] == pytest.approx(other["interaction"][0])


def test_speech_and_text_say_nothing_of_vision_and_language(fit):
    answer = fit.interaction(asked("text", "speech", 1e12))
    assert "establishes no ratio of vision to language data" in str(answer)
    assert answer.table["extrapolation"][0]
    with pytest.raises(NotFoundError, match="speech"):
        fit.interaction(asked("speech", "image", 1e9))


def test_prior_of_a_pair_favours_neither_competition_nor_synergy(fit):
    prior = fit.draws["prior"].to_dataset()["interaction"]
    assert (prior < 0).mean() == pytest.approx(0.5, abs=0.05)


def test_counts_must_be_absolute_and_modalities_known_alone():
    study = simulate_mixed_modal()
    with pytest.raises(InputError, match=r"row 0: params 0\.008 is not an absolute count"):
        replace(study, table=study.table.assign(params=study.table["params"] / 1e9))
    only_pairs = study.table[(study.table["second"] != "") | (study.table["first"] != "image")]
    with pytest.raises(InputError, match="'image' has no run of its own"):
        replace(study, table=only_pairs)


def test_nonsense_volumes_are_refused(fit):
    with pytest.raises(RequestError, match="positive"):
        fit.interaction(asked("text", "speech", 1e9, D=0.0))


def test_simulated_runs_are_called_simulated():
    study = simulate_mixed_modal(seed=3)
    assert study.simulated
    assert "simulated" in study.name
    assert np.isfinite(study.table["loss"]).all()


def test_command_reads_runs_and_says_of_each_pair_whether_it_competes(fit, tmp_path, monkeypatch):
    study = simulate_mixed_modal()
    study.table.replace({"volume_second": {0.0: ""}}).to_csv(tmp_path / "runs.csv", index=False)
    seen = []
    monkeypatch.setattr(mixed_modal, "fit_mixed_modal", lambda study, **_: seen.append(study) or fit)
    result = CliRunner().invoke(cli.app, ["loss", str(tmp_path / "runs.csv"), "--law", "mixed-modal"])
    assert result.exit_code == (0 if fit.diagnose().converged else NOT_CONVERGED), result.stderr
    pd.testing.assert_frame_equal(
        seen[0].table.reset_index(drop=True), study.table.reset_index(drop=True), check_dtype=False
    )
    for part in ("p_synergy", ">0.999", "<0.001", "speech-text-caution", "below 0: the modalities help"):
        assert part in result.stdout
    answer = CliRunner().invoke(cli.app, ["loss", "mixed-modal", "--json"])
    assert [row["second"] for row in json.loads(answer.stdout)["pairs"]] == ["speech", "image"]


def test_faults_of_runs_are_told_by_line(tmp_path):
    (tmp_path / "r.csv").write_text(
        "first,second,params,volume_first,volume_second,loss\ntext,,7,1B,,2.0\ntext,,1B,many,,2.0\n"
    )
    with pytest.raises(InputError, match="row 3, volume_first"):
        read_mixed_modal(tmp_path / "r.csv")
    (tmp_path / "r.csv").write_text("first,second,params,volume_first,volume_second,loss\ntext,,7,1B,,2.0\n")
    with pytest.raises(InputError, match="row 2: params 7 is not an absolute count"):
        read_mixed_modal(tmp_path / "r.csv")


@pytest.mark.parametrize(("table", "message"), [
    (b"", "r.csv: cannot be read as a CSV (No columns"), (b"{titles}\n", "r.csv: no row below the titles"),
    (b"{titles}\nt\xe9xt,,1B,1B,,2\n", "r.csv: holds the byte 0xE9"),
    (b"{titles}\ntext,,1B,1B,,2,7\n", "r.csv, row 2: 7 cells under 6 titles; the first without one is '7'"),
    (b"{titles}\ntext,,7,1B,,2\n", "r.csv, row 2: params 7 is not an absolute count"),
    (b"{titles}\ntext,,1B,1B,,2\n\ntext,image,1B,1B,1B,2\n", "r.csv: modality 'image' has no run of its own"),
])  # fmt: skip
def test_a_table_that_cannot_be_fitted_is_one_line_of_the_command(tmp_path, table, message):
    titles = b"first,second,params,volume_first,volume_second,loss"
    (tmp_path / "r.csv").write_bytes(table.replace(b"{titles}", titles))
    result = CliRunner().invoke(cli.app, ["loss", str(tmp_path / "r.csv"), "--law", "mixed-modal"])
    assert result.exit_code == 1
    assert result.stderr.startswith(message)
    assert len(result.stderr.splitlines()) == 1


def test_a_saved_fit_answers_to_the_bit(fit, tmp_path):
    path = fit.save(tmp_path / "mixed.nc")
    restored = load_mixed_modal_fit(path)
    pd.testing.assert_frame_equal(restored.pairs_at_largest().table, fit.pairs_at_largest().table)
    pd.testing.assert_frame_equal(restored.summary(), fit.summary())
    pd.testing.assert_frame_equal(restored.study.table, fit.study.table)
    assert restored.study.scope == fit.study.scope
    assert restored.study.truth == fit.study.truth
    assert restored.settings == fit.settings
    with pytest.raises(RequestError, match="exists already"):
        fit.save(path)
    (tmp_path / "half.nc").write_bytes(path.read_bytes()[:2000])
    for name in ("half.nc", "nowhere.nc"):
        with pytest.raises(FitError, match=name):
            load_mixed_modal_fit(tmp_path / name)


def test_draws_of_other_pairs_than_the_studys_are_refused(fit, tmp_path):
    other = replace(fit.study, table=fit.study.table[fit.study.table["second"] != "image"])
    path = replace(fit, study=other).save(tmp_path / "mixed.nc")
    with pytest.raises(FitError, match="'C' is not there for each pair of the study"):
        load_mixed_modal_fit(path)


def test_command_saves_a_fit_that_allocation_refuses(fit, tmp_path, monkeypatch):
    monkeypatch.setattr(mixed_modal, "fit_mixed_modal", lambda study, **_: fit)
    path = tmp_path / "mixed.nc"
    told = CliRunner().invoke(cli.app, ["loss", "mixed-modal", "--out", str(path)])
    asked = "first,second,params,volume_first,volume_second"
    advice = f"saved to {path}; `bayescdm loss {path} --at POINTS.csv` predicts (columns {asked})"
    assert advice in told.stdout
    (tmp_path / "points.csv").write_text(f"{asked}\nimage,text,1.3B,20B,2e10\n")
    predicted = CliRunner().invoke(
        cli.app, ["loss", str(path), "--at", str(tmp_path / "points.csv"), "--json"]
    )
    answer = json.loads(predicted.stdout)
    asked_of_fit = pd.DataFrame([["image", "text", 1.3e9, 2e10, 2e10]], columns=asked.split(","))
    expected = fit.interaction(asked_of_fit).table.to_dict("records")
    assert answer["predictions"] == expected
    assert answer["scope"]["metric"] == fit.study.scope.metric
    (tmp_path / "points.csv").write_text(f"{asked}\nimage,text,1.3B,20B,\n")
    for arguments, fault in (
        (["--at", str(tmp_path / "points.csv")], "points.csv, row 2, column 'volume_second': value ''"),
        (["--at", str(tmp_path / "points.csv"), "--kind", "run"], "--kind run"),
    ):
        refused = CliRunner().invoke(cli.app, ["loss", str(path), *arguments])
        assert refused.exit_code == 1
        assert refused.stderr.startswith(fault)
        assert len(refused.stderr.splitlines()) == 1
    refused = CliRunner().invoke(cli.app, ["allocate", "--flops", "1e21", "--fit", str(path)])
    assert refused.exit_code == 1
    assert "is a fit of 'bayescdm loss mixed-modal'; a fit of 'bayescdm loss' is needed" in refused.stderr
    compared = CliRunner().invoke(cli.app, ["loss", "mixed-modal", "--compare"])
    assert compared.exit_code == 1
    assert "no mixed-modal law" in compared.stderr
