"""A fit holds what it says, converges on published figures, and comes back from disk to the bit."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import bayescdm as cdm
from bayescdm.errors import BayesCDMError, FitError, RequestError
from bayescdm.fit import _sampled, diagnose, fit_compiled, summarise
from bayescdm.sampling import DEFAULTS

GROUPS = {
    "posterior",
    "sample_stats",
    "prior",
    "prior_predictive",
    "posterior_predictive",
    "log_likelihood",
    "observed_data",
    "constant_data",
}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_open_vlm_converges_with_default_settings(open_vlm_compiled, open_vlm_fit, seed):
    if seed == 1:
        diagnosis = open_vlm_fit.diagnose()
    else:
        tree = open_vlm_compiled[2].sample(seed=seed)
        diagnosis = diagnose(tree["posterior"].to_dataset(), tree["sample_stats"].to_dataset())
    assert diagnosis.divergences == 0, str(diagnosis)
    assert diagnosis.max_r_hat < 1.01, str(diagnosis)
    assert min(diagnosis.min_ess_bulk, diagnosis.min_ess_tail) > 400, str(diagnosis)
    assert diagnosis.converged and not diagnosis.notes


class KnownSampler:
    """Draws that mix as asked where a compiled model would sample; remembers the settings."""

    def __init__(self, *mixed, divergences=0):
        self.mixed, self.divergences, self.asked = list(mixed), divergences, []

    def sample(self, *, settings, **_):
        self.asked.append(settings)
        shape = (settings.chains, settings.draws)
        mixed = self.mixed.pop(0)
        if mixed is None:
            raise FitError("interrupted after 12 draws")
        x = np.random.default_rng(0).normal(size=shape) + (0 if mixed else np.arange(4)[:, None])
        diverging = np.arange(shape[0] * shape[1]).reshape(shape) < self.divergences
        groups = {"posterior": {"x": x}, "sample_stats": {"diverging": diverging}}
        return xr.DataTree.from_dict(
            {
                name: xr.Dataset({key: (("chain", "draw"), value) for key, value in values.items()})
                for name, values in groups.items()
            }
        )


def test_chains_that_did_not_mix_are_sampled_longer_and_the_fit_says_so():
    sampler = KnownSampler(False, True)
    tree, settings, notes = _sampled(sampler, 1, DEFAULTS, progress=False)
    assert [asked.thin for asked in sampler.asked] == [1, 3] and settings.thin == 3
    assert tree["posterior"].sizes["draw"] == DEFAULTS.draws
    assert [note.code for note in notes] == ["sampled-longer"] and "every 3rd of 12000" in notes[0].message


@pytest.mark.parametrize(
    ("sampler", "settings"),
    [
        (KnownSampler(True), DEFAULTS),
        (KnownSampler(False, divergences=1), DEFAULTS),
        (KnownSampler(False), replace(DEFAULTS, draws=5000)),
        (KnownSampler(False, None), DEFAULTS),
    ],
    ids=["mixed", "diverging", "settings of the user's", "interrupted"],
)
def test_other_draws_are_kept_as_they_are(sampler, settings):
    tree, used, notes = _sampled(sampler, 1, settings, progress=False)
    assert not sampler.mixed and used == settings and not notes
    assert tree["posterior"].sizes["draw"] == settings.draws


def test_transfer_rate_agrees_with_least_squares(open_vlm_fit):
    """Independent estimate: scores on S, one intercept a recipe × benchmark, plain least squares."""
    fit = open_vlm_fit
    study, rows = fit.study, fit.study.fitted_runs
    scores = study.scores[study.scores["run"].isin(rows.index)]
    # The same rows: the benchmarks that the runs of each recipe share, which their averages are made of.
    runs_of = rows.groupby("recipe").size()
    count = scores.groupby(["recipe", "benchmark"]).size()
    shared = count[count == runs_of.loc[count.index.get_level_values("recipe")].to_numpy()].index
    scores = scores[pd.MultiIndex.from_frame(scores[["recipe", "benchmark"]]).isin(shared)]
    S = fit.posterior["S"].mean(("chain", "draw")).to_series()
    scores = scores.assign(S=S.loc[scores["backbone"]].to_numpy()).reset_index(drop=True)
    cells = scores.groupby(["recipe", "benchmark"])[["S", "score"]]
    x_within, y_within = (scores[["S", "score"]] - cells.transform("mean")).to_numpy().T
    slope = float((x_within * y_within).sum() / (x_within**2).sum())
    low, high = fit.posterior["A_population"].quantile([0.025, 0.975]).to_numpy()
    assert low < slope < high, f"least squares {slope:.3f}, posterior 95 % interval [{low:.3f}, {high:.3f}]"


def test_every_group_is_there_with_its_labels(open_vlm_fit):
    assert set(open_vlm_fit.draws.children) == GROUPS
    runs = list(open_vlm_fit.study.fitted_runs.index)
    for group in ("posterior_predictive", "log_likelihood", "observed_data"):
        data = open_vlm_fit.group(group)
        assert list(data["run"].to_numpy()) == runs
        assert np.isfinite(data["accuracy"]).all()
    assert np.array_equal(
        open_vlm_fit.group("observed_data")["accuracy"], open_vlm_fit.study.fitted_runs["accuracy"]
    )


def test_prior_keeps_accuracy_between_zero_and_one(open_vlm_fit):
    accuracy = open_vlm_fit.group("prior_predictive")["accuracy"]
    assert float(((accuracy < 0) | (accuracy > 1)).mean()) < 0.02


def test_prior_draws_meet_the_penalty(open_vlm_fit):
    """Rejection leaves no prior draw with an absorption rate far below zero."""
    assert float(open_vlm_fit.group("prior")["B"].min()) > -0.01


def test_summary_labels_hold_the_values_of_their_own_cell():
    """One call with dims that are a suffix of another's, which ArviZ mislabels."""
    rng = np.random.default_rng(0)
    mu, rate = np.array([1.0, 2.0]), np.array([[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]])
    coords = {"coef": ["A", "B0"], "family": ["a", "b", "c"]}
    posterior = xr.Dataset(
        {
            "mu": (("chain", "draw", "coef"), mu + 0.01 * rng.normal(size=(2, 100, 2))),
            "rate": (("chain", "draw", "family", "coef"), rate + 0.01 * rng.normal(size=(2, 100, 3, 2))),
        },
        coords=coords,
    )
    table = summarise(posterior, None, prob=0.9)
    assert table.loc["mu[B0]", "mean"] == pytest.approx(2, abs=0.01)
    for f, family in enumerate("abc"):
        for c, coef in enumerate(("A", "B0")):
            assert table.loc[f"rate[{family}, {coef}]", "mean"] == pytest.approx(rate[f, c], abs=0.01)
    assert {"posterior_90_lower", "posterior_90_upper"} <= set(table.columns)


def test_summary_says_where_the_prior_speaks(open_vlm_fit):
    ratio = open_vlm_fit.summary()["prior_sd_ratio"]
    # Two backbones have more than one volume: how variants differ in absorption stays near its prior.
    assert ratio["Bm_contrast"] > 0.8
    assert ratio["A_contrast"] < 0.5


def test_absorption_moves_from_its_prior_and_stays_as_uncertain_in_its_logarithm(open_vlm_fit):
    """What README and the notebook of the posterior say of the ratio of a positive rate."""
    prior, posterior = open_vlm_fit.group("prior"), open_vlm_fit.posterior
    ratio = open_vlm_fit.summary()["prior_sd_ratio"]
    for rate in ("B0_population", "Bm_population"):
        assert float(posterior[rate].median()) < 0.65 * float(prior[rate].median())
        assert ratio[rate] < 0.4
        assert 0.65 < float(np.log(posterior[rate]).std() / np.log(prior[rate]).std()) < 0.9
    A = "A_population"
    assert float(np.log(posterior[A]).std() / np.log(prior[A]).std()) < 0.45


def test_unconverged_draws_are_called_so(open_vlm_fit):
    few = open_vlm_fit.posterior.isel(draw=slice(0, 20))
    diagnosis = diagnose(few, open_vlm_fit.group("sample_stats").isel(draw=slice(0, 20)))
    assert not diagnosis.converged
    assert diagnosis.notes[0].code == "not-converged"


# --- one file ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(open_vlm_fit, tmp_path_factory):
    return open_vlm_fit.save(tmp_path_factory.mktemp("saved") / "fit.nc")


def test_a_fit_comes_back_to_the_bit(open_vlm_fit, saved):
    loaded = cdm.load_fit(saved)
    for group in GROUPS:
        assert loaded.group(group).identical(open_vlm_fit.group(group)), group
    pd.testing.assert_frame_equal(loaded.study.text_scores, open_vlm_fit.study.text_scores, check_exact=True)
    pd.testing.assert_frame_equal(loaded.study.runs, open_vlm_fit.study.runs, check_exact=True)
    pd.testing.assert_frame_equal(loaded.study.backbones, open_vlm_fit.study.backbones, check_exact=True)
    assert loaded.study.notes == open_vlm_fit.study.notes
    assert loaded.notes == open_vlm_fit.notes
    assert loaded.settings == json.loads(json.dumps(open_vlm_fit.settings))
    question = {"volumes": [1e6, 1e7], "kind": "run", "seed": 3}
    assert cdm.predict_draws(loaded, **question).identical(cdm.predict_draws(open_vlm_fit, **question))


def test_nothing_is_overwritten_unasked(open_vlm_fit, saved):
    with pytest.raises(RequestError, match="exists already"):
        open_vlm_fit.save(saved)


def test_a_study_without_scored_runs_is_refused_before_sampling():
    study = cdm.load_study("open-vlm")
    unscored = study.select_runs(~study.runs["backbone"].isin(study.scored))
    with pytest.raises(BayesCDMError, match="nothing to fit"):
        cdm.fit(unscored)


def test_fit_compiled_keeps_what_was_asked(open_vlm_fit):
    assert open_vlm_fit.settings["seed"] == 1
    assert open_vlm_fit.settings["sampler"]["target_accept"] == 0.98
    assert open_vlm_fit.settings["versions"]["pymc"].startswith("6.")
    assert fit_compiled.__doc__
