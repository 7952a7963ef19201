"""The paper's analyses on a simulated study: tables that agree with the draws, the data and the truth."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.stats import spearmanr

import bayescdm as cdm
from bayescdm.compare.benchmarks import coefficient_draws
from bayescdm.errors import ModelError, RequestError
from bayescdm.paper.benchmarks import merged_coefficients
from bayescdm.paper.compute import COMMON
from bayescdm.paper.correlation import score_pairs, weighted_spearman
from bayescdm.paper.variants import true_rates

LAW = ("law_90_lower", "law_90_upper")
POSTERIOR = ("posterior_90_lower", "posterior_90_upper")


def test_every_table_says_what_it_is_of(simulated_fit):
    tables = [
        cdm.fit_error(simulated_fit),
        cdm.coefficients_by_category(simulated_fit),
        cdm.coefficient_claims(simulated_fit),
        cdm.variant_claims(simulated_fit),
        cdm.overtaking_volume(simulated_fit),
        cdm.family_estimates(simulated_fit),
        cdm.capability_on_compute(simulated_fit),
        cdm.text_against_multimodal(simulated_fit.study, draws=200),
    ]
    for table in tables:
        assert table.attrs["study"] == simulated_fit.study.name
        assert table.attrs["simulated"] == 1
        assert table.attrs["converged"] == 1
        assert table.attrs["prob"] == 0.9
        assert any(column.endswith("_90_lower") for column in table)


# --- error of the fit -----------------------------------------------------------------------------------


def test_error_of_the_fit_is_the_law_without_intercepts(simulated_fit):
    table = cdm.fit_error(simulated_fit).set_index("group")
    runs = simulated_fit.study.fitted_runs
    names = list(runs["backbone"].unique())
    law = cdm.predict_draws(simulated_fit, names, volumes=sorted(runs["volume"].unique()), kind="law").mean(
        "sample"
    )
    intercept = simulated_fit.posterior["backbone_effect"].mean(("chain", "draw"))
    errors = [
        float(law.sel(backbone=b, volume=v)) - float(intercept.sel(backbone=b)) - a
        for b, v, a in zip(runs["backbone"], runs["volume"], runs["accuracy"])
    ]
    assert table.at["all", "mae"] == pytest.approx(np.abs(errors).mean(), rel=1e-6)
    assert table.at["all", "mae_with_intercepts"] < table.at["all", "mae"] < table.at["all", "point_mae"]
    assert (table[LAW[0]] <= table[LAW[1]]).all()
    parts = table.drop(["all", "base", "instruct"])
    assert parts["runs"].sum() == table.loc[["base", "instruct"], "runs"].sum() == table.at["all", "runs"]


# --- transfer coefficients ------------------------------------------------------------------------------


def test_subsets_are_merged_to_their_mean_in_every_draw(simulated_fit):
    values, labels = merged_coefficients(simulated_fit)
    one = labels.set_index("benchmark")
    assert one.at["MMLU", "subsets"] == 3
    assert one.at["proofwriter", "subsets"] == 2
    assert labels["subsets"].sum() == 40
    single = pd.DataFrame(coefficient_draws(simulated_fit), columns=simulated_fit.capability.benchmarks)
    mmlu = single[["mmlu_stem", "mmlu_humanities", "mmlu_other"]].mean(axis=1).to_numpy()
    assert values[:, labels.index[labels["benchmark"] == "MMLU"][0]] == pytest.approx(mmlu)
    assert one.at["MMLU", "published"] == pytest.approx((0.057 + 0.046 + 0.016) / 3)


def test_loadings_that_few_backbones_leave_open_widen_the_coefficients(simulated_fit):
    """Means are those of fixed components; the true λ lie in their intervals, which fixed ones miss."""
    capability = simulated_fit.capability
    w = simulated_fit.posterior["w"].stack(sample=("chain", "draw")).transpose("sample", "component")
    fixed = pd.DataFrame(w.to_numpy() @ capability.loadings.T, columns=capability.benchmarks)
    table = cdm.coefficient_claims(simulated_fit).set_index("benchmark")
    fixed = fixed[table.index]
    bounds = fixed.quantile([0.05, 0.95]).to_numpy()
    width = table[POSTERIOR[1]] - table[POSTERIOR[0]]
    assert np.abs(table["mean"] - fixed.mean()).max() < 0.02
    assert (width.to_numpy() > bounds[1] - bounds[0]).mean() > 0.95

    def covered(lower, upper):
        return ((lower < table["true"]) & (table["true"] < upper)).mean()

    ours = covered(table[POSTERIOR[0]], table[POSTERIOR[1]])
    assert ours > 0.75
    assert ours > covered(*bounds)


def test_every_table_of_coefficients_has_the_same_intervals(simulated_fit):
    """One λ, one interval: the comparison, the claims, and the contributions of a family's scores."""
    one = cdm.transfer_coefficients(simulated_fit).set_index("benchmark")
    claims = cdm.coefficient_claims(simulated_fit).set_index("benchmark")
    columns = ["mean", *POSTERIOR, "p_tax"]
    assert claims[columns].to_numpy() == pytest.approx(one.loc[claims.index, columns].to_numpy())
    added = cdm.text_contributions(simulated_fit, "Falcon3").drop_duplicates("benchmark")
    added = added.set_index("benchmark")
    assert added["p_tax"].to_numpy() == pytest.approx(one.loc[added.index, "p_tax"].to_numpy())


def test_published_coefficients_compare_at_our_length(simulated_fit):
    for table in (cdm.coefficient_claims(simulated_fit), cdm.coefficients_by_category(simulated_fit)):
        scale = table["published_at_our_length"] / table["published"]
        assert scale.dropna().to_numpy() == pytest.approx(scale.dropna().iloc[0])
    claims = cdm.coefficient_claims(simulated_fit)
    assert np.linalg.norm(claims["published_at_our_length"]) == pytest.approx(np.linalg.norm(claims["mean"]))
    assert np.abs(claims["published_at_our_length"] - claims["mean"]).max() < 0.06


def test_residual_variance_of_a_regression_gives_the_spread_of_a_loading():
    """With w known, λ of a benchmark is a coefficient of a regression, with its standard error."""
    study = cdm.simulate(seed=6, missing_text=0)
    capability = cdm.fit_capability(study)
    Z = capability.scores.loc[capability.fitted_on].to_numpy()
    w = np.array([0.6, 0.0, 0.8])
    draws = {"w": np.tile(w, (2, 3000, 1))}
    posterior = xr.Dataset({"w": (("chain", "draw", "component"), draws["w"])})
    found = coefficient_draws(_of_direction(study, capability, posterior))
    X = study.text_scores.loc[capability.fitted_on].to_numpy()
    for i in (0, 13, 39):
        design = np.column_stack([np.ones(len(Z)), Z])
        beta, squares = np.linalg.lstsq(design, X[:, i], rcond=None)[:2]
        covariance = squares[0] / (len(Z) - 4) * np.linalg.inv(design.T @ design)
        assert found[:, i].mean() == pytest.approx(w @ beta[1:], abs=0.01)
        assert found[:, i].std() == pytest.approx(np.sqrt(w @ covariance[1:, 1:] @ w), rel=0.05)


def _of_direction(study, capability, posterior):
    """A fit whose draws of the direction are given, all else being of no interest here."""
    names = list(study.backbones.index)
    families, cells = study.families, ("chain", "draw", "family", "variant")
    shape = (*posterior["w"].shape[:2], len(families), 2)
    posterior = posterior.assign({rate: (cells, np.ones(shape)) for rate in ("A", "B0", "Bm")})
    posterior = posterior.assign({name: (("chain", "draw"), np.ones(shape[:2])) for name in ("P0", "sigma")})
    posterior["S"] = (("chain", "draw", "backbone"), np.zeros((*shape[:2], len(names))))
    labels = {
        "component": capability.components, "family": families, "variant": ["base", "instruct"],
        "backbone": names, "recipe": ["r"],
    }  # fmt: skip
    constant = xr.Dataset(
        {
            "family_of_backbone": ("backbone", np.zeros(len(names), int)),
            "log_params": ("backbone", np.zeros(len(names))),
            "log_params_ref": 0.0,
            "backbone_of_run": ("run", [0]),
            "log_volume": ("run", [0.0]),
            "volume_known": ("run", [1]),
            "weight": ("run", [1.0]),
        },
        {name: labels[name] for name in ("family", "backbone", "recipe")},
    )
    groups = {"posterior": posterior.assign_coords({k: labels[k] for k in posterior.dims if k in labels})}
    return cdm.Fit(xr.DataTree.from_dict({**groups, "constant_data": constant}), study, capability, "known")


def test_categories_stand_together_largest_first(simulated_fit):
    table = cdm.coefficients_by_category(simulated_fit)
    categories = list(dict.fromkeys(table["category"]))
    assert len(categories) == table["category"].ne(table["category"].shift()).sum() == 6
    means = table.groupby("category", sort=False)["mean"].mean()
    assert means.is_monotonic_decreasing
    assert all(own["mean"].is_monotonic_decreasing for _, own in table.groupby("category"))


def test_claims_of_table_7_are_true_of_this_simulation_and_survive(simulated_fit):
    table = cdm.coefficient_claims(simulated_fit)
    assert len(table) == 40
    assert (table["p_claim"].where(table["claim"] == "tax") - table["p_tax"]).dropna().eq(0).all()
    assert table["holds"].dropna().eq(1).all()
    clear = table["published"].abs() > 0.03
    assert (table.loc[clear, "verdict"] == "survives").all()
    assert "refuted" not in set(table["verdict"])


# --- families -------------------------------------------------------------------------------------------


def test_partially_pooled_estimates_lie_nearer_the_truth_than_separate_ones(simulated_fit):
    table = cdm.family_estimates(simulated_fit)
    known = table[table["separate"].notna() & (table["quantity"] == "Bm")]
    pooled_error = (known["mean"] - known["true"]).abs().mean()
    assert pooled_error < (known["separate"] - known["true"]).abs().mean()
    covered = (table[POSTERIOR[0]] <= table["true"]) & (table["true"] <= table[POSTERIOR[1]])
    assert covered.mean() > 0.6  # cells of one study depend on each other


def test_shrinkage_runs_from_separate_to_pooled(simulated_fit):
    table = cdm.family_estimates(simulated_fit)
    known = table.dropna(subset=["shrinkage"])
    rebuilt = known["separate"] + known["shrinkage"] * (known["pooled"] - known["separate"])
    assert rebuilt.to_numpy() == pytest.approx(known["mean"].to_numpy())
    assert known["shrinkage"].median() == pytest.approx(0.3, abs=0.35)


def test_families_whose_capability_hardly_varies_have_no_separate_slope(simulated_fit):
    """Two Mistral models of one size: their A and Bm by least squares were a hundredfold of the truth."""
    table = cdm.family_estimates(simulated_fit).set_index(["family", "quantity"])
    separate = cdm.separate_rates(simulated_fit).set_index(["family", "quantity"])
    assert separate.at[("Mistral", "Bm"), "why_code"] == "narrow-capability"
    assert "S of its backbones spans 0.0" in table.at[("Mistral", "Bm"), "why_none"]
    assert table.loc["Mistral", ["separate", "point"]].drop("mean_B").isna().all(axis=None)
    assert np.isfinite(table.at[("Mistral", "mean_B"), "separate"])
    assert separate.at[("Falcon3", "Bm"), "why_code"] == ""
    known = table["separate"].dropna()
    assert known.abs().max() < 1


def test_published_rates_stand_beside_their_family(simulated_fit):
    table = cdm.family_estimates(simulated_fit).set_index(["family", "quantity"])
    assert table.at[("Llama-3.2", "A"), "published"] == 0.361
    assert table.at[("Gemma-2", "mean_B"), "published"] == 0.0213
    assert np.isnan(table.at[("Mistral", "A"), "published"])


# --- capability against compute -------------------------------------------------------------------------


def test_slopes_that_the_backbones_do_not_determine_are_refused(known_fit):
    with pytest.raises(RequestError, match="do not determine"):
        cdm.capability_on_compute(known_fit(200), on="params")
    with pytest.raises(RequestError, match="text tokens"):
        cdm.capability_on_compute(known_fit(200))


def test_slopes_of_the_simulation_are_recovered(simulated_fit):
    table = cdm.capability_on_compute(simulated_fit).set_index("family")
    truth = 0.23
    assert table.at[COMMON, POSTERIOR[0]] < truth < table.at[COMMON, POSTERIOR[1]]
    assert (table["p_positive"] > 0.95).all()
    study = simulated_fit.study
    names = [n for n in study.backbones.index if study.backbones.at[n, "family"] == "Falcon3"]
    S = simulated_fit.posterior["S"].mean(("chain", "draw")).sel(backbone=names).to_numpy()
    log_compute = np.log(study.backbones.loc[names, "active_params"].to_numpy(float))
    assert table.at["Falcon3", "mean"] == pytest.approx(np.polyfit(log_compute, S, 1)[0], abs=0.01)
    by_size = cdm.capability_on_compute(simulated_fit, on="params").set_index("family")
    assert by_size.loc["Falcon3", "mean"] == pytest.approx(table.loc["Falcon3", "mean"])


def test_scatter_follows_the_known_posterior_of_a_regression():
    """Marginal of a slope is Student's t with the residual degrees of freedom."""
    from scipy.stats import kstest
    from scipy.stats import t as student_t

    from bayescdm.paper.compute import _lines

    x = np.linspace(-1, 1, 7)
    y = 0.4 * x + np.array([0.1, -0.2, 0.05, 0.1, -0.1, 0.15, -0.1])
    members = np.ones((7, 1), bool)
    X = np.column_stack([x, np.ones(7)])
    draws, _, explained = _lines(X, np.tile(y, (4000, 1)), members, np.random.default_rng(0))
    mean, residual = np.polyfit(x, y, 1)[0], y - np.polyval(np.polyfit(x, y, 1), x)
    scale = np.sqrt((residual**2).sum() / 5 / (x**2).sum())
    assert kstest((draws[:, 0] - mean) / scale, student_t(5).cdf).pvalue > 0.01
    assert explained[0] == pytest.approx(np.corrcoef(x, y)[0, 1] ** 2)


# --- text against multimodal ----------------------------------------------------------------------------


def test_weighted_rank_correlation_is_spearmans_with_equal_weights():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 6, (2, 30)).astype(float)
    assert weighted_spearman(x, y, np.full(30, 1 / 30)) == pytest.approx(spearmanr(x, y).statistic)
    doubled = np.concatenate([x, x[:5]]), np.concatenate([y, y[:5]])
    weights = np.where(np.arange(30) < 5, 2.0, 1.0)
    assert weighted_spearman(x, y, weights) == pytest.approx(spearmanr(*doubled).statistic)
    assert np.isnan(weighted_spearman(np.ones(5), np.arange(5.0), np.ones(5)))


def test_pairs_are_the_largest_runs_of_each_backbone():
    study = cdm.simulate(seed=4)
    pairs = score_pairs(study).set_index("backbone")
    assert (pairs["volume"] == study.runs.groupby("backbone")["volume"].max()).all()
    table = cdm.text_against_multimodal(study, draws=500).set_index("quantity")
    assert table.at["spearman", "value"] == pytest.approx(
        spearmanr(pairs["text_score"], pairs["accuracy"]).statistic
    )
    assert table["unweighted"].to_numpy() == pytest.approx(table["value"].to_numpy())
    line = np.polyfit(pairs["text_score"], pairs["accuracy"], 1)
    assert table.loc[["slope", "intercept"], "value"].to_numpy() == pytest.approx(line)
    assert (table[POSTERIOR[0]] < table["mean"]).all()
    assert (table["mean"] < table[POSTERIOR[1]]).all()


def test_text_scores_that_say_nothing_of_accuracy_are_recognised():
    study = cdm.simulate(seed=4)
    rng = np.random.default_rng(2)
    runs = study.runs.assign(accuracy=rng.permutation(study.runs["accuracy"].to_numpy()))
    shuffled = cdm.Study(study.name, study.text_scores, study.backbones, runs, simulated=True)
    true = cdm.text_against_multimodal(study, draws=500).set_index("quantity")
    none = cdm.text_against_multimodal(shuffled, draws=500).set_index("quantity")
    assert true.at["spearman", POSTERIOR[0]] > 0.3
    assert none.at["spearman", POSTERIOR[0]] < 0 < none.at["spearman", POSTERIOR[1]]


def test_open_vlm_can_carry_a_correlation_and_no_compute():
    study = cdm.load_study("open-vlm")
    table = cdm.text_against_multimodal(study, draws=300).set_index("quantity")
    assert table.at["spearman", "p_positive"] > 0.95
    assert table.at["spearman", "vlms"] > table.at["spearman", "backbones"]
    pairs = score_pairs(study)
    plain = spearmanr(pairs["text_score"], pairs["accuracy"]).statistic
    assert table.at["spearman", "unweighted"] == pytest.approx(plain)
    assert table.at["spearman", "unweighted"] == pytest.approx(0.69, abs=0.005)
    with pytest.raises(RequestError, match="no run"):
        cdm.text_against_multimodal(study, recipe="no such recipe")
    few = study.select_runs(study.runs.index[study.runs["backbone"].isin(study.scored)][:2])
    with pytest.raises(RequestError, match="four at least"):
        cdm.text_against_multimodal(few)


# --- base against instruct ------------------------------------------------------------------------------


def test_probabilities_of_claims_are_shares_of_draws(known_fit):
    fit = known_fit(500, A_contrast=((), np.full((2, 500), 0.3)), Bm_contrast=((), np.full((2, 500), -0.2)))
    table = cdm.variant_claims(fit).set_index("quantity")
    assert table.loc[["A", "Bm"], "p_claim"].tolist() == [1.0, 0.0]
    assert table.loc[["A", "Bm"], "verdict"].tolist() == ["survives", "refuted"]
    assert table["holds"].isna().all()
    ratio = np.log(table.at["A", "instruct"] / table.at["A", "base"])
    assert ratio == pytest.approx(0.3)


def constant_rates(known_fit, **rates):
    """A fit whose population rates are known: rate → (median, log contrast)."""

    def constant(value):
        return ((), np.full((2, 200), value))

    changed = {f"{rate}_population": constant(median) for rate, (median, _) in rates.items()}
    changed |= {f"{rate}_contrast": constant(contrast) for rate, (_, contrast) in rates.items()}
    return known_fit(200, **changed)


def test_base_overtakes_where_the_lines_cross(known_fit):
    """Constant draws: ΔA·S + (ΔB0 − ΔBm·S)·x = 0 is solved by hand; outside the runs no volume is stated."""
    rates = {"A": (0.25, 0.2), "B0": (0.02, -0.1), "Bm": (0.01, 0.0)}
    fit = constant_rates(known_fit, **rates)
    S = [0.05, -0.05, 0.2, -0.2]
    table = cdm.overtaking_volume(fit, capabilities=S)
    delta = {rate: median * 2 * np.sinh(contrast / 2) for rate, (median, contrast) in rates.items()}
    crossing = fit.study.volume_ref * np.exp(-delta["A"] * np.array(S) / delta["B0"])
    assert (table["p_gains"] == 1.0).all()
    inside = (crossing > 1e5) & (crossing < 1e7)
    assert inside.tolist() == [True, True, False, False]
    assert table["p_overtakes"].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert table["median"].to_numpy()[inside] == pytest.approx(crossing[inside])
    assert table.loc[~inside, ["median", *POSTERIOR]].isna().all(axis=None)
    assert table["p_ahead_at_smallest"].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert table["p_ahead_at_largest"].tolist() == [1.0, 1.0, 0.0, 1.0]
    assert table["true_volume"].isna().all()
    assert table.attrs["volumes"] == pytest.approx([1e5, 1e7])


def test_base_that_falls_behind_does_not_overtake(known_fit):
    fit = constant_rates(known_fit, A=(0.25, 0.0), B0=(0.02, 0.5), Bm=(0.01, 0.0))
    row = cdm.overtaking_volume(fit, capabilities=[0.0]).iloc[0]
    assert row[["p_gains", "p_overtakes", "p_ahead_at_largest"]].eq(0.0).all()
    assert row[["p_ahead_at_smallest", "p_falls_behind"]].eq(1.0).all()
    assert np.isnan(row["median"])


@pytest.mark.parametrize("capabilities", [[], [float("nan")], [0.1, float("inf")]])
def test_capabilities_that_are_no_numbers_are_refused(known_fit, capabilities):
    with pytest.raises(RequestError, match="one finite value of S"):
        cdm.overtaking_volume(known_fit(50), capabilities=capabilities)


@pytest.mark.parametrize("name", ["variant_claims", "overtaking_volume"])
def test_one_law_for_both_variants_has_nothing_to_say_of_claims_on_them(one_law, name):
    with pytest.raises(ModelError, match="the same rates for base and instruct"):
        getattr(cdm, name)(one_law)


def test_one_law_for_all_families_has_no_table_of_families(one_law):
    with pytest.raises(ModelError, match="one set of rates for all families"):
        cdm.family_estimates(one_law)


def test_truth_of_the_overtaking_stands_beside_it(simulated_fit):
    study = simulated_fit.study
    names = [n for n in study.backbones.index if n in simulated_fit.posterior["backbone"]]
    truth = true_rates(study, names)
    S = 0.05
    row = cdm.overtaking_volume(simulated_fit, capabilities=[S]).iloc[0]
    A, B0, Bm = (truth[rate][1] - truth[rate][0] for rate in ("A", "B0", "Bm"))
    smallest, largest = cdm.overtaking_volume(simulated_fit).attrs["volumes"]
    lead = [A * S + (B0 - Bm * S) * np.log(v / study.volume_ref) for v in (smallest, largest)]
    assert row["true_ahead_at_smallest"] == (lead[0] < 0)
    assert row["true_ahead_at_largest"] == (lead[1] < 0)


def test_true_contrasts_of_given_rates_are_those_of_their_cells():
    """Simulated rates may be a table: what is true of the population is the geometric mean over families."""
    study = cdm.simulate(seed=1)
    names = list(study.backbones.index)
    base, instruct = true_rates(study, names)["A"]
    published = np.log(0.254 / 0.212)
    assert np.log(instruct / base) == pytest.approx(published, abs=1e-9)
    B = pd.Series(study.truth["B"])
    own = study.backbones["variant"] == "base"
    assert true_rates(study, names)["mean_B"][0] == pytest.approx(B[own[own].index].mean())
