"""Rivals stand in for S as they claim, and the point fit is judged as a Normal prediction."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bayescdm.errors import InputError, NotFoundError
from bayescdm.pointfit import point_fit
from bayescdm.simulate import simulate_from
from bayescdm.validate import components_without, make_folds
from bayescdm.validate.rivals import (
    POINT_FIT,
    compare_predictors,
    mean_score_capability,
    predictor_names,
    size_capability,
)


@pytest.fixture(scope="module")
def study():
    """Simulated: 4 families, two recipes."""
    return simulate_from(5, n_families=4, backbones_per_cell=2, n_recipes=2, n_text_benchmarks=9)


def test_mean_text_score_is_the_mean_in_the_unit_of_a_component(study):
    capability = mean_score_capability(study)
    mean = study.text_scores.mean(axis=1)
    expected = 3 * (mean - mean.mean())  # √9 benchmarks
    assert np.allclose(capability.scores["PC1"], expected[capability.scores.index])
    assert not capability.covariance.any()


def test_missing_text_scores_leave_the_mean_score_uncertain(study):
    gaps = study.text_scores.copy()
    gaps.iloc[0, :4] = np.nan
    capability = mean_score_capability(replace(study, text_scores=gaps))
    assert (capability.covariance[:, 0, 0] > 0).tolist() == [True] + [False] * (len(gaps) - 1)
    error = capability.scores["PC1"].iloc[0] - mean_score_capability(study).scores["PC1"].iloc[0]
    assert abs(error) < 4 * np.sqrt(capability.covariance[0, 0, 0])


def test_size_is_centred_and_scaled_without_the_backbones_left_out(study):
    family = study.backbones.index[study.backbones["family"] == "F1"]
    capability = size_capability(study, list(family))
    inside = capability.scores.loc[capability.fitted_on, "PC1"]
    assert not set(capability.fitted_on) & set(family)
    assert inside.mean() == pytest.approx(0, abs=1e-12)
    mean_score = mean_score_capability(study, list(family)).scores.loc[inside.index, "PC1"]
    assert inside.std() == pytest.approx(mean_score.std())
    log_params = np.log(study.backbones["params"].loc[capability.scores.index])
    assert np.corrcoef(capability.scores["PC1"], log_params)[0, 1] == pytest.approx(1)


def test_size_needs_every_parameter_count(study):
    backbones = study.backbones.copy()
    backbones.loc["F1-10B-base", "params"] = np.nan
    with pytest.raises(InputError, match="F1-10B-base"):
        size_capability(replace(study, backbones=backbones))


def test_point_fit_is_a_normal_prediction_around_the_fit_to_the_other_runs(study):
    table = compare_predictors(study, predictors=[POINT_FIT], by=["family"]).iloc[0]
    errors, densities = [], []
    for fold in make_folds(study, "family"):
        kept = study.select_runs(study.runs.index[~fold.held_out])
        fit = point_fit(kept, components_without(study)(fold.unseen))
        for run in study.runs[fold.held_out].itertuples():
            mean = fit.predict(fit.S[[run.backbone]], run.volume, run.recipe)["accuracy"].item()
            errors.append(mean - run.accuracy)
            densities.append(stats.norm(mean, fit.residual_scale).logpdf(run.accuracy))
    assert table["evaluable"] == len(study.runs)
    assert table["mae"] == pytest.approx(np.mean(np.abs(errors)))
    assert table["elpd"] == pytest.approx(np.sum(densities))
    assert table["elpd_joint"] == pytest.approx(np.sum(densities))
    assert table["crps_difference"] == 0


def test_unknown_predictors_are_named_with_the_nearest():
    with pytest.raises(NotFoundError, match="transfer_pooled"):
        compare_predictors("open-vlm", predictors=["transfer_poold"])
    assert predictor_names()[0] == "transfer_hierarchical"
