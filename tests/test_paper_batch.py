"""Optimal batch sizes: from losses to optima, a law in the composite, forecasts, and rivals."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import bayescdm as cdm
from bayescdm.cli import app
from bayescdm.errors import InputError, NotFoundError, RequestError
from bayescdm.paper.batch import SHARES, TUNED, composite_draws


@pytest.fixture(scope="module")
def losses(simulated_fit):
    return cdm.simulate_batch_losses(simulated_fit.study)


@pytest.fixture(scope="module")
def batch(simulated_fit, losses):
    return cdm.fit_batch_size(simulated_fit, losses)


def parabola(vertex, sizes=(128, 256, 512, 1024, 2048), curvature=0.004):
    x = np.log2(sizes)
    loss = 2 + curvature * (x - vertex) ** 2
    return pd.DataFrame({"backbone": "m", "volume": 1e9, "batch_size": sizes, "loss": loss})


def test_the_vertex_of_a_parabola_is_found_whatever_the_grid():
    for vertex in (7.4, 9.0, 10.77):
        row = cdm.optimal_batches(parabola(vertex)).iloc[0]
        assert row["log2_batch"] == pytest.approx(vertex)
        assert row["log2_grid"] == round(vertex)
        assert row["at_edge"] == 0


@pytest.mark.parametrize(
    ("vertex", "curvature", "edge"), [(5.0, 0.004, 7), (13.0, 0.004, 11), (10.0, -0.004, 7)]
)
def test_an_optimum_outside_the_tested_sizes_is_a_bound(vertex, curvature, edge):
    row = cdm.optimal_batches(parabola(vertex, curvature=curvature)).iloc[0]
    assert row["at_edge"] == 1
    assert row["log2_batch"] == edge


def test_standard_errors_of_optima_are_their_spread(simulated_fit):
    """Simulated again and again, the optima scatter as their standard errors say."""
    study, found = simulated_fit.study, []
    for seed in range(30):
        losses = cdm.simulate_batch_losses(study, seed, backbone_scale=0.0, volumes=(16e9, 50e9))
        truth = pd.DataFrame(losses.attrs["optimum"]).rename(columns={"log2_batch": "true"})
        found.append(cdm.optimal_batches(losses).merge(truth))
    table = pd.concat(found).query("at_edge == 0")
    z = (table["log2_batch"] - table["true"]) / table["log2_batch_se"]
    assert abs(z.mean()) < 0.25
    assert z.std() == pytest.approx(1, abs=0.25)


def test_losses_that_cannot_be_read_are_told_row_by_row():
    losses = parabola(9.0)
    with pytest.raises(InputError, match="column 'loss' is missing"):
        cdm.optimal_batches(losses.drop(columns="loss"))
    bad = losses.assign(loss=losses["loss"].where(losses.index != 1), batch_size=[128, 128, -1, 1024, 2048])
    with pytest.raises(InputError, match="row 2: loss 'nan'") as error:
        cdm.optimal_batches(bad)
    assert "row 3: batch_size '-1'" in str(error.value)
    assert "row 2: batch size 128 of m" in str(error.value)
    with pytest.raises(RequestError, match="three batch sizes"):
        cdm.optimal_batches(losses.iloc[:2])


def test_the_composite_is_the_law_without_its_baseline(simulated_fit):
    names = ["Qwen3-8B", "Falcon3-3B-Base"]
    composite = composite_draws(simulated_fit, names, volumes=[5e9, 5e10])
    law = cdm.predict_draws(simulated_fit, names, volumes=[5e9, 5e10], kind="law")
    posterior = simulated_fit.posterior
    flat = {
        name: posterior[name]
        .transpose("chain", "draw", ...)
        .to_numpy()
        .reshape(-1, *posterior[name].shape[2:])
        for name in ("P0", "backbone_effect")
    }
    at = pd.Index(posterior["backbone"].to_numpy()).get_indexer(names)
    baseline = flat["P0"][:, None] + flat["backbone_effect"][:, at]
    assert composite.to_numpy() == pytest.approx(law.to_numpy() - baseline[:, :, None])


def test_slope_of_the_simulation_is_recovered(batch, losses):
    row = batch.summary().set_index("quantity").loc["beta"]
    assert row["posterior_90_lower"] < losses.attrs["slope"] < row["posterior_90_upper"]
    assert row["p_positive"] > 0.99
    assert batch.summary().attrs["simulated"] == 1


def test_posterior_is_exact_for_a_composite_that_is_certain(simulated_fit, losses):
    """One x for all draws: slope and share of variance agree with quadrature over both variances."""
    from bayescdm.paper.batch import _posterior

    points = cdm.optimal_batches(losses).query("at_edge == 0").reset_index(drop=True)
    x = composite_draws(simulated_fit, list(TUNED), volumes=list(points["volume"].unique())).mean("sample")
    x = np.array([float(x.sel(backbone=b, volume=v)) for b, v in zip(points["backbone"], points["volume"])])
    found = _posterior(simulated_fit, points, np.tile(x, (6000, 1)), "composite", 0, simulated=True)
    y, codes = points["log2_batch"].to_numpy(), pd.factorize(points["backbone"])[0]
    same = codes[:, None] == codes
    X = np.column_stack([np.ones_like(x), x - x.mean()])
    totals = np.geomspace(0.03, 3, 400)
    density, slopes = np.zeros((len(SHARES), len(totals))), np.zeros(len(SHARES))
    for i, share in enumerate(SHARES):
        V = (1 - share) * np.eye(len(y)) + share * same
        inverse = np.linalg.inv(V)
        precision = X.T @ inverse @ X
        mean = np.linalg.solve(precision, X.T @ inverse @ y)
        squares = (y - X @ mean) @ inverse @ (y - X @ mean)
        slopes[i] = mean[1]
        # p(σ) ∝ 1/σ on a grid that is even in ln σ; α and β integrated out.
        density[i] = (
            -0.5 * np.linalg.slogdet(V)[1]
            - 0.5 * np.linalg.slogdet(precision)[1]
            - (len(y) - 2) * np.log(totals)
            - 0.5 * squares / totals**2
        )
    weight = np.exp(density - density.max())
    weight /= weight.sum()
    error = found.beta.std() / np.sqrt(6000)
    assert found.beta.mean() == pytest.approx(weight.sum(1) @ slopes, abs=5 * error)
    total = np.sqrt(found.tau**2 + found.sigma**2)
    assert total.mean() == pytest.approx(weight.sum(0) @ totals, rel=0.03)
    assert (found.tau**2 / total**2).mean() == pytest.approx(weight.sum(1) @ SHARES, abs=0.02)


def test_an_unseen_large_backbone_is_forecast_with_its_uncertainty(batch, simulated_fit, losses):
    table = batch.predict(["Qwen2.5-72B", "Qwen3-8B-Base"], volumes=50e9, kind="backbone").set_index(
        "backbone"
    )
    lower, upper = "log2_batch_backbone_90_lower", "log2_batch_backbone_90_upper"
    assert table["tuned"].tolist() == [0, 1]
    width = table[upper] - table[lower]
    assert width["Qwen2.5-72B"] > 2 * width["Qwen3-8B-Base"]
    assert table.at["Qwen2.5-72B", "extrapolation"] == "beyond the tuned points in composite"
    truth = simulated_fit.study.truth
    A, B0, Bm = (truth[rate]["Qwen2.5"]["base"] for rate in ("A", "B0", "Bm"))
    S = truth["S"]["Qwen2.5-72B"]
    composite = A * S + (B0 - Bm * S) * np.log(50e9 / truth["volume_ref"])
    optimum = pd.DataFrame(losses.attrs["optimum"]).set_index(["backbone", "volume"])["log2_batch"]
    # All tuned points lie around one line of known slope, up to a backbone's deviation.
    anchor = []
    for name in TUNED:
        family, variant = simulated_fit.study.backbones.loc[name, ["family", "variant"]]
        a, b0, bm = (truth[rate][family][variant] for rate in ("A", "B0", "Bm"))
        own = truth["S"][name]
        anchor.append(
            optimum[name, 50e9] - 15 * (a * own + (b0 - bm * own) * np.log(50e9 / truth["volume_ref"]))
        )
    true = np.mean(anchor) + 15 * composite
    assert table.at["Qwen2.5-72B", lower] < true < table.at["Qwen2.5-72B", upper]
    assert table.at["Qwen2.5-72B", "batch_size"] == pytest.approx(
        2 ** table.at["Qwen2.5-72B", "log2_batch"], rel=0.1
    )


@pytest.mark.parametrize(("predictor", "of_x"), [("composite", "composite"), ("params", "size")])
def test_volumes_beyond_the_tuned_points_and_beyond_the_study_are_told(
    simulated_fit, losses, predictor, of_x
):
    batch = cdm.fit_batch_size(simulated_fit, losses, predictor=predictor)
    table = batch.predict(["Qwen2.5-72B", "Qwen3-4B-Base"], volumes=[16e9, 12e9, 40e12])
    said = table.set_index(["backbone", "volume"])["extrapolation"]
    tuned, study = "beyond the tuned points in", "extrapolation in volume"
    assert said["Qwen2.5-72B", 16e9] == f"{tuned} {of_x}"
    assert said["Qwen2.5-72B", 12e9] == f"{tuned} {of_x}, volume"
    assert said["Qwen3-4B-Base", 16e9] == ""
    assert said["Qwen3-4B-Base", 12e9] == f"{tuned} volume"
    assert said["Qwen3-4B-Base", 40e12].startswith(f"{study}; {tuned} ")
    assert said["Qwen3-4B-Base", 40e12].endswith("volume")


@pytest.mark.parametrize(("truth", "other"), [("composite", "params"), ("params", "composite")])
def test_the_predictor_that_is_true_wins_whichever_it_is(simulated_fit, truth, other):
    losses = cdm.simulate_batch_losses(simulated_fit.study, predictor=truth)
    table = cdm.compare_batch_predictors(simulated_fit, losses, draws=300).set_index("predictor")
    assert table.at[truth, "elpd"] > table.at[other, "elpd"] + 5
    assert table.at[truth, "mae_log2"] < table.at[other, "mae_log2"]


def test_requests_that_cannot_be_met_are_one_line(simulated_fit, losses):
    with pytest.raises(RequestError, match="neither 'composite' nor 'params'"):
        cdm.fit_batch_size(simulated_fit, losses, predictor="N")
    with pytest.raises(NotFoundError, match="backbone with text scores"):
        cdm.fit_batch_size(simulated_fit, losses.replace({"backbone": {"Qwen3-4B-Base": "Qwen3-4B-Basis"}}))
    two = losses[losses["backbone"].isin(TUNED[:2])]
    with pytest.raises(RequestError, match="five of three at least"):
        cdm.fit_batch_size(simulated_fit, two)
    with pytest.raises(RequestError, match="four at least"):
        cdm.compare_batch_predictors(simulated_fit, losses[losses["backbone"].isin(TUNED[:3])])
    exact = losses.assign(loss=2 + 0.01 * np.log2(losses["batch_size"] / 1024) ** 2)
    with pytest.raises(RequestError, match="every optimum is 1024 exactly"):
        cdm.fit_batch_size(simulated_fit, exact)
    with pytest.raises(RequestError, match="not simulated"):
        cdm.simulate_batch_losses(cdm.load_study("open-vlm"))


# --- a table of losses, and the command ---------------------------------------------------------------


@pytest.fixture
def table(losses, tmp_path):
    path = tmp_path / "losses.csv"
    losses.rename(columns={"volume": "tokens"}).to_csv(path, index=False, sep=";")
    return path


def test_a_table_of_losses_is_read_as_it_was_written(losses, table, simulated_fit):
    read, notes = cdm.read_batch_losses(table, simulated_fit.study)
    pd.testing.assert_frame_equal(read, pd.DataFrame(losses), check_dtype=False)
    assert [note.code for note in notes] == ["separator"]


def test_repairs_of_a_table_of_losses_are_told(tmp_path, simulated_fit):
    path = tmp_path / "losses.csv"
    path.write_text("backbone,Tokens,batch_size,loss,seed\nfalcon3-3b-base,16B,1K,2.31,7\n"
                    "Falcon3-3B-Base,16B,512,-,7\nFalcon3-3B-Base,,,-,7\n")  # fmt: skip
    read, notes = cdm.read_batch_losses(path, simulated_fit.study)
    assert read.to_numpy().tolist() == [["Falcon3-3B-Base", 16e9, 1000.0, 2.31]]
    codes = {note.code for note in notes}
    assert codes == {"column-matched", "column-ignored", "name-matched", "count-converted", "loss-missing"}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("backbone,samples,batch_size,loss\nFalcon3-3B-Base,16B,512,2.3\n", ["samples", "tokens"]),
        ("backbone,tokens,batch_size\nFalcon3-3B-Base,16B,512\n", ["no column 'loss'"]),
        ("backbone,tokens,batch_size,loss\nFalcon,16B,512,2.3\n", ["row 2", "'Falcon'", "no backbone"]),
        ("backbone,tokens,batch_size,loss\nFalcon3-3B-Base,16B,512,2%\n", ["row 2", "'2%'"]),
        ("backbone,tokens,batch_size,loss\nFalcon3-3B-Base,16B,-1,2.2\n", ["batch_size", "'-1'"]),
        ("backbone,tokens,batch_size,loss\nFalcon3-3B-Base,16B,512,high\n", ["column 'loss'", "'high'"]),
        ("backbone,tokens,batch_size,loss\nFalcon3-3B-Base,16B,512,2.3\nFalcon3-3B-Base,16B,512,2.4\n",
         ["row 3", "of row 2"]),
        ("backbone,tokens,batch_size,loss\nFalcon3-3B-Base,16B,512,\n", ["no row with a loss"]),
        ("backbone,tokens,batch_size,loss\nnobody,16B,512,2.3\nFalcon3-3B-Base,-3,512,x\n"
         "Falcon3-3B-Base,16B,zz,2.1\n",
         ["'nobody'", "row 3 (header is row 1), column 'tokens': value '-3' is not above 0: write the number",
          "'zz'"]),
    ],
)  # fmt: skip
def test_faults_of_a_table_of_losses_are_lines(tmp_path, simulated_fit, text, lines):
    path = tmp_path / "losses.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        cdm.read_batch_losses(path, simulated_fit.study)
    for part in lines:
        assert part in str(caught.value)
    assert "empty if it is unknown" not in str(caught.value)
    with pytest.raises(NotFoundError, match="no such file"):
        cdm.read_batch_losses(tmp_path / "none.csv", simulated_fit.study)


def test_command_predicts_what_the_function_does(simulated_fit, losses, table, tmp_path):
    simulated_fit.save(tmp_path / "fit.nc")
    command = ["batch", str(tmp_path / "fit.nc"), str(table)]
    asked = ["--volume", "50B", "--backbone", "Qwen2.5-72B"]
    result = CliRunner().invoke(app, [*command, *asked, "--json"])
    printed = json.loads(result.stdout)
    ours = cdm.fit_batch_size(simulated_fit, losses).predict(["Qwen2.5-72B"], volumes=50e9)
    assert printed["rows"][0]["batch_size"] == pytest.approx(ours["batch_size"].iloc[0])
    assert printed["facts"]["simulated"]
    text = CliRunner().invoke(app, [*command, *asked]).stdout
    assert "beyond the tuned points" in text
    assert "P(larger with it) = >.99" in text
    far = CliRunner().invoke(app, [*command, "--volume", "40000B", "--backbone", "Qwen3-8B-Base", "--json"])
    assert "40T was read as tokens, the study's unit; its largest volume is " in far.stderr
    assert [note["code"] for note in json.loads(far.stdout)["notes"]][-1] == "volume-far-beyond"
    assert "volume" in json.loads(far.stdout)["rows"][0]["extrapolation"]
    compared = CliRunner().invoke(app, [*command, "--compare", "--json"])
    assert [row["predictor"] for row in json.loads(compared.stdout)["rows"]] == ["composite", "params"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "--volume is missing"),
        (["--compare", "--volume", "50B"], "--volume means nothing beside --compare"),
        (["--volume", "50B", "--backbone", "a", "--candidates", "b.csv"], "--backbone or --candidates"),
        (["--volume", "50B"], "no such file"),
    ],
)
def test_command_refuses_in_one_line(options, said, tmp_path):
    result = CliRunner().invoke(app, ["batch", str(tmp_path / "none.nc"), "losses.csv", *options])
    assert result.exit_code == 1
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
