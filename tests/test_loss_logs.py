"""Loss logs are read in every layout users export, in absolute counts, and prepared step by step."""

import numpy as np
import pandas as pd
import pytest

from bayescdm.errors import InputError, NotFoundError, RequestError
from bayescdm.loss.logs import prepare_logs, read_loss_logs, thin_logs
from bayescdm.loss.simulate import simulate_losses

RUNS = "run,family,params,tokens_per_step\nsmall,Falcon3,1B,1M\nlarge,Falcon3,7.46B,1M\n"
STEPS = np.arange(10, 3001, 10)


def curve(size):
    return 0.6 + size + 5.0 / STEPS**0.5


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "runs.csv").write_text(RUNS)
    return tmp_path


def long_table():
    return pd.concat(
        pd.DataFrame({"Name": run, "global_step": STEPS, "train/loss": curve(size), "eval/loss": 9.0})
        for run, size in (("small", 0.5), ("large", 0.3))
    )


def write_long(folder):
    long_table().to_csv(folder / "log.csv", index=False)
    return folder / "log.csv"


def write_wide(folder):
    wide = {"Step": STEPS}
    for run, size in (("small", 0.5), ("large", 0.3)):
        wide[f"{run} - train/loss"] = curve(size)
        wide[f"{run} - train/loss__MIN"] = curve(size) - 0.1
        wide[f"{run} - train/loss__MAX"] = curve(size) + 0.1
    pd.DataFrame(wide).to_csv(folder / "panel.csv", index=False)
    return folder / "panel.csv"


def write_folder(folder):
    for run, size in (("small", 0.5), ("large", 0.3)):
        table = pd.DataFrame({"Wall time": 1.7e9 + STEPS, "Step": STEPS, "Value": curve(size)})
        table.to_csv(folder / f"run-{run}-tag-train_loss.csv", index=False)
    return folder


@pytest.mark.parametrize("write", [write_long, write_wide, write_folder])
def test_every_layout_gives_the_same_study(folder, write):
    study = read_loss_logs(write(folder))
    assert study.runs["params"].to_dict() == {"small": 1e9, "large": 7.46e9}
    of_small = study.points[study.points["run"] == "small"]
    np.testing.assert_allclose(of_small["loss"], curve(0.5))
    np.testing.assert_array_equal(of_small["volume"], STEPS * 1e6)
    assert len(study.points) == 2 * len(STEPS)


def test_description_may_stand_in_the_log_itself(tmp_path):
    table = long_table().assign(family="Falcon3", params="3B", tokens=lambda t: t["global_step"] * 2e6)
    table.to_csv(tmp_path / "log.csv", index=False)
    study = read_loss_logs(tmp_path / "log.csv")
    assert set(study.runs["params"]) == {3e9}
    assert study.volume.max() == 3000 * 2e6


def test_bare_seven_is_refused_with_a_hint_and_7B_is_read(folder):
    (folder / "runs.csv").write_text(RUNS.replace("7.46B", "7"))
    with pytest.raises(
        InputError, match=r"runs.csv, column 'params', run 'large': 7 is not an absolute count; write 7B"
    ):
        read_loss_logs(write_long(folder))
    (folder / "runs.csv").write_text(RUNS.replace("7.46B", "7B"))
    assert read_loss_logs(write_long(folder)).runs.loc["large", "params"] == 7e9


def test_all_problems_come_at_once_with_row_column_and_value(folder):
    (folder / "runs.csv").write_text("run,family,params,tokens_per_step\nsmall,Falcon3,1B x 3,1M\n")
    table = long_table().astype({"train/loss": object})
    table.iloc[3, 2] = "n.b."
    table.to_csv(folder / "log.csv", index=False)
    with pytest.raises(InputError) as caught:
        read_loss_logs(folder / "log.csv")
    assert "log.csv, row 5, column 'train/loss': 'n.b.' is not a number" in caught.value.problems
    (folder / "log.csv").write_text(long_table().to_csv(index=False))
    with pytest.raises(InputError) as caught:
        read_loss_logs(folder / "log.csv")
    text = str(caught.value)
    assert "run 'large' has losses but no row here" in text
    assert "runs.csv, column 'params', run 'small': value '1B x 3' is a product" in text
    # A run without a row, or with a count that cannot be read, is told once.
    assert "is not stated" not in text


def test_columns_of_other_names_are_named_by_the_user(folder):
    table = (
        long_table().rename(columns={"train/loss": "nll", "global_step": "when"}).drop(columns="eval/loss")
    )
    table.to_csv(folder / "log.csv", index=False)
    with pytest.raises(InputError, match="no column for loss; the columns are Name, when, nll"):
        read_loss_logs(folder / "log.csv")
    study = read_loss_logs(folder / "log.csv", columns={"loss": "nll", "step": "when"})
    assert len(study.points) == 2 * len(STEPS)


def test_two_columns_that_could_be_the_loss_are_refused(folder):
    long_table().assign(loss=1.0).to_csv(folder / "log.csv", index=False)
    with pytest.raises(InputError) as refused:
        read_loss_logs(folder / "log.csv")
    assert str(refused.value) == (
        "log.csv: columns 'train/loss' and 'loss' could each be the loss; say which it is: "
        "--column loss=train/loss or --column loss=loss"
    )
    assert (read_loss_logs(folder / "log.csv", columns={"loss": "loss"}).loss == 1).all()


def test_names_of_families_are_not_called_an_architecture(folder):
    long_table().to_csv(folder / "log.csv", index=False)
    study = read_loss_logs(folder / "log.csv")
    assert study.scope.architecture == "not stated (family: Falcon3)"


def test_blank_rows_diverged_losses_and_resumed_steps_are_told(folder):
    table = long_table().astype({"train/loss": object})
    table.iloc[0, 2], table.iloc[1, 2] = "", "inf"
    table = pd.concat([table, table.iloc[[7]].assign(**{"train/loss": 0.77})])
    table.to_csv(folder / "log.csv", index=False)
    study = read_loss_logs(folder / "log.csv")
    assert {n.code for n in study.notes} >= {"rows-without-loss", "loss-not-finite", "logged-twice"}
    assert study.points.set_index(["run", "step"]).loc[("small", 80), "loss"] == 0.77


def test_losses_logged_as_nan_are_a_run_that_diverged_and_empty_cells_are_not(folder):
    table = long_table().astype({"train/loss": object})
    table.iloc[[2, 5], 2] = "NaN"
    table.iloc[len(STEPS) + 4, 2] = "-inf"
    table.iloc[9, 2] = ""
    table.to_csv(folder / "log.csv", index=False)
    told = {note.code: note.message for note in read_loss_logs(folder / "log.csv").notes}
    assert told["loss-not-finite"] == (
        "3 losses are not finite (run 'small' at steps 30, 60; run 'large' at step 50) and were left out: "
        "did the run diverge?"
    )
    assert told["rows-without-loss"] == "1 row has no loss"
    table.iloc[[2, len(STEPS) + 4], 2] = 1.0
    table.to_csv(folder / "log.csv", index=False)
    told = {note.code: note.message for note in read_loss_logs(folder / "log.csv").notes}
    assert told["loss-not-finite"].startswith(
        "1 loss is not finite (run 'small' at step 60) and was left out"
    )


def test_rows_are_lines_of_the_file_blank_ones_counted(folder):
    lines = ["", "run,step,loss", "small,10,1.5", "", "small,20,-1", "small,30,-1", "large,10,n.b."]
    (folder / "log.csv").write_text("\n".join(lines))
    with pytest.raises(InputError) as caught:
        read_loss_logs(folder / "log.csv")
    assert caught.value.problems == ["log.csv, row 7, column 'loss': 'n.b.' is not a number"]
    (folder / "log.csv").write_text("\n".join(lines[:-1]))
    with pytest.raises(InputError) as caught:
        read_loss_logs(folder / "log.csv")
    assert caught.value.problems == [
        "log.csv, row 5 (run 'small'): loss -1 is not above 0, and so in 1 more of its rows"
    ]


def test_rows_of_a_panel_are_lines_of_the_file_and_its_columns_are_named(folder):
    lines = ["Step,small - train/loss,large - train/loss", "10,2.0,1.9", "20,2.0,oops", "30,1.8,0"]
    (folder / "panel.csv").write_text("\n".join(lines))
    with pytest.raises(InputError, match=r"panel\.csv, row 3, column 'large - train/loss': 'oops'"):
        read_loss_logs(folder / "panel.csv")
    (folder / "panel.csv").write_text("\n".join(lines).replace("oops", "1.8"))
    with pytest.raises(InputError, match=r"panel.csv, row 4 \(run 'large'\): loss 0 is not above 0"):
        read_loss_logs(folder / "panel.csv")


def test_step_nought_has_seen_no_token_and_hides_no_other_problem(folder):
    table = pd.concat(
        [pd.DataFrame({"Name": ["small"], "global_step": [0], "train/loss": [11.0]}), long_table()]
    )
    table.to_csv(folder / "log.csv", index=False)
    study = read_loss_logs(folder / "log.csv")
    assert study.volume.min() == 10e6
    (note,) = [note for note in study.notes if note.code == "untrained-left-out"]
    assert note.message.startswith("1 loss was logged before any token was seen")
    table.assign(**{"train/loss": -1.0}).to_csv(folder / "log.csv", index=False)
    with pytest.raises(InputError) as caught:
        read_loss_logs(folder / "log.csv")
    assert len(caught.value.problems) == 2
    assert "volume" not in str(caught.value)


def test_a_missing_loss_column_is_told_with_the_nearest_title(folder):
    table = long_table().rename(columns={"train/loss": "train_los"}).drop(columns="eval/loss")
    table.to_csv(folder / "log.csv", index=False)
    with pytest.raises(InputError, match=r"no column for loss.*--column loss=train_los") as caught:
        read_loss_logs(folder / "log.csv")
    assert len(caught.value.problems) == 1
    table[table["Name"] == "small"].drop(columns="Name").to_csv(folder / "panel.csv", index=False)
    with pytest.raises(
        InputError, match="if 'train_los' is the loss and no run, say --column loss=train_los"
    ):
        read_loss_logs(folder / "panel.csv")


def test_a_missing_table_of_runs_is_one_line_whatever_the_runs(folder):
    file = write_long(folder)
    (folder / "runs.csv").unlink()
    with pytest.raises(
        InputError, match="run,family,params,tokens_per_step and a row for each of the 2 runs"
    ) as caught:
        read_loss_logs(file)
    assert len(caught.value.problems) == 1
    (folder / "runs.csv").write_text("run,params\nsmall,1B\nlarge,3B\n")
    with pytest.raises(InputError) as caught:
        read_loss_logs(file)
    assert caught.value.problems == [
        "runs.csv: no column 'family', which every run needs",
        "tokens seen are not logged and no run states its tokens_per_step; add either",
    ]


def test_missing_file_is_an_error_of_one_line(tmp_path):
    with pytest.raises(NotFoundError, match="there is no such file or folder"):
        read_loss_logs(tmp_path / "nowhere.csv")


def test_preparation_drops_early_steps_then_smooths_each_run():
    raw = simulate_losses(seed=1)
    ready = prepare_logs(raw)
    assert ready.points["step"].min() == 1000
    assert [n.code for n in ready.notes] == ["early-steps-dropped", "smoothed"]
    # What was dropped is outside the range that the law has seen.
    assert ready.scope.extrapolates(volume=np.array([raw.volume.min(), ready.volume.min()])).tolist() == [
        True,
        False,
    ]
    for run in raw.runs.index[[0, 5]]:
        of_run = raw.points[(raw.points["run"] == run) & (raw.points["step"] >= 1000)]
        loss = of_run["loss"].to_numpy()
        smooth = ready.points.loc[ready.points["run"] == run, "loss"].to_numpy()
        assert smooth[7] == pytest.approx(loss[5:10].mean())
        # min_periods = 1: the first mean has only three losses, none of them from before step 1000.
        assert smooth[0] == pytest.approx(loss[:3].mean())


def test_each_step_of_the_preparation_is_optional():
    raw = simulate_losses(seed=1, log_every=100)
    assert len(prepare_logs(raw, first_step=None, window=None).points) == len(raw.points)
    smoothed = prepare_logs(raw, first_step=None)
    assert len(smoothed.points) == len(raw.points)
    assert [n.code for n in smoothed.notes] == ["smoothed"]
    assert [n.code for n in prepare_logs(raw, window=None).notes] == ["early-steps-dropped"]


def test_logs_without_steps_cannot_lose_their_early_ones():
    raw = simulate_losses(log_every=500)
    unstepped = type(raw)(raw.name, raw.runs, raw.points.drop(columns="step"), raw.scope)
    with pytest.raises(RequestError, match="first_step=None"):
        prepare_logs(unstepped)


def test_thinning_keeps_both_ends_of_every_run_and_says_so():
    raw = simulate_losses()
    thin = thin_logs(raw, 20)
    per_run = thin.points.groupby("run")["volume"]
    assert per_run.size().max() <= 20
    assert (per_run.max() == raw.points.groupby("run")["volume"].max()).all()
    assert (per_run.min() == raw.points.groupby("run")["volume"].min()).all()
    assert thin.notes[-1].code == "thinned"
    assert thin_logs(thin, 20).notes == thin.notes


def test_constants_of_the_units_are_not_guessed():
    raw = simulate_losses(log_every=1000)
    with pytest.raises(InputError, match="run 'Falcon3-1B-Base': params 1 is not an absolute count"):
        type(raw)(raw.name, raw.runs.assign(params=raw.runs["params"] / 1e9), raw.points, raw.scope)
    with pytest.raises(InputError, match="unknown' has losses but is not among the runs"):
        type(raw)(raw.name, raw.runs, raw.points.assign(run="unknown"), raw.scope)


@pytest.mark.parametrize(("numbers", "message"), [
    ({"window": -1}, "window -1 is no number"), ({"window": 0}, "window 0 is no number"),
    ({"first_step": -1}, "first step -1 is negative"),
])  # fmt: skip
def test_numbers_of_the_preparation_that_mean_nothing_are_refused(numbers, message):
    with pytest.raises(RequestError, match=message):
        prepare_logs(simulate_losses(log_every=2000), **numbers)


def tokens_table(cells, title="tokens"):
    table = long_table().drop(columns="eval/loss")
    return table.assign(**{title: np.tile(cells, 2)})


def two_points(folder, title):
    (folder / "log.csv").write_text(f"run,step,{title},loss\nsmall,1,1M,2\nsmall,2,2M,1.9\n")
    return folder / "log.csv"


@pytest.mark.parametrize(("title", "columns", "unit"), [
    ("consumed_samples", {}, "samples"), ("my count", {"samples": "my count"}, "samples"),
    ("my count", {"tokens": "my count"}, "tokens"), ("num_input_tokens_seen", {}, "tokens"),
])  # fmt: skip
def test_samples_are_not_called_tokens(folder, title, columns, unit):
    path = two_points(folder, title)
    (folder / "runs.csv").write_text("run,family,params\nsmall,Falcon3,1B\n")
    study = read_loss_logs(path, columns=columns)
    assert study.scope.units["volume"] == unit
    assert f"range of volume    1e+06 to 2e+06 {unit}" in str(study.scope)


def test_samples_a_step_are_not_tokens_either(folder):
    (folder / "runs.csv").write_text(RUNS.replace("tokens_per_step", "samples_per_step"))
    study = read_loss_logs(write_long(folder))
    assert study.scope.units["volume"] == "samples"
    assert any("samples of 600 points are step × samples per step" in note.message for note in study.notes)


def test_tokens_in_one_table_and_samples_in_another_are_refused(folder):
    path = two_points(folder, "consumed_samples")
    (folder / "runs.csv").write_text("run,family,params,tokens_per_step\nsmall,Falcon3,1B,1M\n")
    both = r"log.csv, column 'consumed_samples' counts samples and runs.csv, column 'tokens_per_step' counts"
    with pytest.raises(InputError, match=both):
        read_loss_logs(path)


def test_tokens_with_a_letter_are_read_as_parameters_are(folder):
    tokens_table([f"{step}M" for step in STEPS]).to_csv(folder / "log.csv", index=False)
    study = read_loss_logs(folder / "log.csv")
    assert study.volume[:3].tolist() == [1e7, 2e7, 3e7]
    tokens_table([0, *(f"{step}M" for step in STEPS[1:])]).to_csv(folder / "log.csv", index=False)
    assert "untrained-left-out" in {note.code for note in read_loss_logs(folder / "log.csv").notes}


def test_many_cells_that_are_no_count_are_one_line(folder):
    tokens_table([f"{step} many" for step in STEPS]).to_csv(folder / "log.csv", index=False)
    with pytest.raises(InputError) as caught:
        read_loss_logs(folder / "log.csv")
    assert caught.value.problems == [
        "log.csv, row 2, column 'tokens': '10 many' is not a count such as 10M or 1e7, and so are 599 more "
        "of its cells"
    ]


def test_tokens_in_millions_are_told_by_the_files_own_column(folder):
    (folder / "runs.csv").write_text(RUNS.replace(",tokens_per_step", "").replace(",1M", ""))
    tokens_table(STEPS, "tokens (M)").to_csv(folder / "log.csv", index=False)
    with pytest.raises(InputError, match=r"say --column 'tokens=tokens \(M\)'"):
        read_loss_logs(folder / "log.csv")
    for name in ("tokens", "volume"):
        with pytest.raises(
            InputError, match=r"column 'tokens \(M\)': 10 is not above 1000.*write 10 million as 10M"
        ):
            read_loss_logs(folder / "log.csv", columns={name: "tokens (M)"})
    with pytest.raises(RequestError, match="'volume' is named twice"):
        read_loss_logs(folder / "log.csv", columns={"tokens": "tokens (M)", "volume": "tokens (M)"})


def test_a_panel_in_a_folder_is_read_as_it_is_by_itself(folder):
    panel = pd.DataFrame({"Step": STEPS, "small - train/loss": curve(0.5), "large - train/loss": curve(0.3)})
    panel.to_csv(folder / "panel.csv", index=False)
    inside, alone = read_loss_logs(folder), read_loss_logs(folder / "panel.csv")
    pd.testing.assert_frame_equal(inside.points, alone.points)
    assert set(inside.runs.index) == {"small", "large"}


def test_titles_with_spaces_are_offered_as_they_can_be_pasted(folder):
    table = long_table().rename(columns={"train/loss": "train loss (nats)"}).drop(columns="eval/loss")
    table.to_csv(folder / "log.csv", index=False)
    with pytest.raises(InputError, match=r"\(--column 'loss=train loss \(nats\)'\)"):
        read_loss_logs(folder / "log.csv")


def test_runs_that_are_described_and_have_no_loss_are_named(folder):
    (folder / "runs.csv").write_text(RUNS + "lost,Falcon3,3B,1M\n")
    long_table().drop(columns="eval/loss").to_csv(folder / "log.csv", index=False)
    (note,) = [n for n in read_loss_logs(folder / "log.csv").notes if n.code == "runs-without-log"]
    assert note.message == "1 run has a row and no loss: 'lost'"
    assert note.where == "runs.csv"


@pytest.mark.parametrize(("text", "message"), [
    ("run,step,loss\n", "log.csv: no row with a loss; there is nothing to fit"),
    ("run,step,loss\nsmall,5,nan\n", "log.csv: no row with a loss; there is nothing to fit; 1 loss is not "
     "finite (run 'small' at step 5) and was left out: did the run diverge?"),
    ("run,step,step,loss\nsmall,5,6,2\n", "log.csv: column 'step' stands there more than once"),
    ("run,step,loss\nsmall,5,2,9\n", "log.csv, row 2: 4 cells under 3 titles; the first without one is '9'"),
    ("run,step,loss\nother,5,2\n", "runs.csv: run 'other' has losses but no row here"),
    ("run;step;loss\nsmall;1;2,01\n",
     "log.csv: its columns are separated by semicolons; export it with commas"),
    ("run,step,loss\nsmall,-5,2\nsmall,5,2\n", "log.csv, row 2 (run 'small'): step -5 is negative"),
    ("run,family,params,step,tokens,loss\nx,F,1B,1,1e9,2\nx,F,2B,2,2e9,2\n",
     "run 'x': params differs between its rows (1B, 2B); a run has one"),
])  # fmt: skip
def test_logs_that_cannot_be_fitted_say_why_in_one_line(tmp_path, text, message):
    (tmp_path / "log.csv").write_text(text)
    if "family" not in text:
        (tmp_path / "runs.csv").write_text(RUNS)
    with pytest.raises(InputError) as caught:
        read_loss_logs(tmp_path / "log.csv")
    assert caught.value.problems == [message] or "\nsmall,5,2\n" in text


def test_other_encodings_and_logs_of_early_steps_alone_are_told(folder):
    (folder / "log.csv").write_bytes(b"run,step,loss\n\xe9,5,2\n")
    with pytest.raises(InputError, match=r"log.csv: holds the byte 0xE9, which is not UTF-8: save it as CSV"):
        read_loss_logs(folder / "log.csv")
    (folder / "log.csv").write_text("run,step,loss\nsmall,5,2\nlarge,20,2\n")
    with pytest.raises(RequestError, match="before step 1000, the last at step 20; first_step=None"):
        prepare_logs(read_loss_logs(folder / "log.csv"))


def test_what_is_wrong_with_several_files_alike_is_said_once(folder):
    for run in ("small", "large"):
        (folder / f"{run}.csv").write_text("step,loss,train_loss\n5,2,\n")
    with pytest.raises(InputError) as caught:
        read_loss_logs(folder)
    (problem,) = caught.value.problems
    assert problem.startswith("large.csv and 1 more file: columns 'loss' and 'train_loss' could each be")


def test_a_count_that_cannot_be_read_is_told_by_file_and_column_and_once(folder):
    (folder / "runs.csv").write_text(RUNS.replace("7.46B,1M", "7.46B,lots"))
    with pytest.raises(InputError) as caught:
        read_loss_logs(write_long(folder))
    (problem,) = caught.value.problems
    assert problem.startswith("runs.csv, column 'tokens_per_step', run 'large': value 'lots' is not a count")
