"""The laws say what the paper and the explorer say, for numpy and for PyTensor."""

import inspect

import numpy as np
import pytensor.tensor as pt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayescdm import laws

CHINCHILLA = {"A": 406.4, "B": 410.7, "alpha": 0.34, "beta": 0.28}

# One valid argument list a law: positional arrays of equal length.
COMPUTE = ([1e9, 7e9], [1e10, 1e11], [400.0, 500], [400.0, 300], [1.7, 1.8], [0.34, 0.3], [0.28, 0.3])
ARGUMENTS = {
    laws.absorption_rate: ([0.2, -0.1], [0.02, 0.03], [0.01, 0.02]),
    laws.transfer_absorption: ([0.2, -0.1], [1.0, -2.0], [0.2, 0.3], [0.02, 0.01], [0.01, 0.02], [0.5, 0.4]),
    laws.compute_loss: COMPUTE,
    laws.capability_loss: (
        [0.1, -0.2],
        [1e9, 1e10],
        [0.4, 0.5],
        [20.0, 30],
        [0.8, 0.9],
        [1.5, 2],
        [0.2, 0.3],
    ),
    laws.contrastive_error: ([1e10, 1e12], [4.0, 5], [-0.1, -0.2], [0.0, 0.1]),
    laws.mixed_modal_loss: COMPUTE,
    laws.mixed_modal_pair_loss: (
        [2.0, 3],
        [3.0, 4],
        [1e9, 7e9],
        [1e10, 1e11],
        [1e10, 1e9],
        *([[0.1, 0.2]] * 5),
    ),
    laws.optimal_allocation: ([1e20, 1e22], [400.0, 500], [400.0, 300], [0.34, 0.3], [0.28, 0.3]),
}

budgets = st.floats(17, 27).map(lambda exponent: 10.0**exponent)
sizes = st.floats(1, 1e4)
exponents = st.floats(0.05, 1.0)


def test_every_law_is_in_the_table_of_this_test():
    functions = {f for _, f in inspect.getmembers(laws, inspect.isfunction) if f.__module__ == laws.__name__}
    assert functions == set(ARGUMENTS)


@pytest.mark.parametrize("law", ARGUMENTS, ids=lambda law: law.__name__)
def test_numpy_and_pytensor_agree(law):
    arrays = [np.asarray(a, dtype=float) for a in ARGUMENTS[law]]
    ours, symbolic = law(*arrays), law(*[pt.as_tensor_variable(a) for a in arrays])
    if not isinstance(ours, tuple):
        ours, symbolic = (ours,), (symbolic,)
    for plain, graph in zip(ours, symbolic, strict=True):
        np.testing.assert_allclose(graph.eval(), plain, rtol=1e-13)


def test_absorption_falls_with_capability_and_is_the_slope_in_log_volume():
    at_reference, one_e_fold_later = laws.transfer_absorption(0.3, np.array([0.0, 1.0]), 0.2, 0.02, 0.01, 0.5)
    assert one_e_fold_later - at_reference == pytest.approx(laws.absorption_rate(0.3, 0.02, 0.01))
    assert laws.absorption_rate(0.4, 0.02, 0.01) < laws.absorption_rate(0.3, 0.02, 0.01)


@settings(deadline=None)
@given(S=st.floats(-1, 1), D=st.floats(1e3, 1e9), A=st.floats(0.01, 1), B0=st.floats(0, 0.05),
       Bm=st.floats(0, 0.05), P0=st.floats(0, 1), c=st.floats(1e-3, 1e3))  # fmt: skip
def test_another_unit_of_volume_moves_A_and_P0_only(S, D, A, B0, Bm, P0, c):
    """SPEC section 2: with D' = c·D, A' = A + Bm·ln c and P0' = P0 − B0·ln c."""
    before = laws.transfer_absorption(S, np.log(D), A, B0, Bm, P0)
    after = laws.transfer_absorption(S, np.log(c * D), A + Bm * np.log(c), B0, Bm, P0 - B0 * np.log(c))
    assert after == pytest.approx(before, abs=1e-12)


def test_preset_exponents_are_the_published_ones():
    best = laws.optimal_allocation(1e21, **CHINCHILLA)
    assert round(best.exponent_N, 3) == 0.452
    assert round(best.exponent_D, 3) == 0.548


@settings(deadline=None)
@given(C=budgets)
def test_marginal_gains_balance_at_the_preset_optimum(C):
    best = laws.optimal_allocation(C, **CHINCHILLA)
    parameter_side = CHINCHILLA["alpha"] * CHINCHILLA["A"] / best.N ** CHINCHILLA["alpha"]
    data_side = CHINCHILLA["beta"] * CHINCHILLA["B"] / best.D ** CHINCHILLA["beta"]
    assert parameter_side == pytest.approx(data_side, rel=1e-9, abs=0)
    assert pytest.approx(C, rel=1e-12) == 6 * best.N * best.D


@settings(deadline=None)
@given(C=budgets, A=sizes, B=sizes, alpha=exponents, beta=exponents, factor=st.floats(1.01, 100))
def test_no_other_split_of_the_budget_has_a_lower_loss(C, A, B, alpha, beta, factor):
    best = laws.optimal_allocation(C, A, B, alpha, beta)
    least = laws.compute_loss(best.N, best.D, A, B, 0.0, alpha, beta)
    for N in (best.N * factor, best.N / factor):
        assert laws.compute_loss(N, C / (6 * N), A, B, 0.0, alpha, beta) >= least * (1 - 1e-12)


@settings(deadline=None)
@given(C=budgets, growth=st.floats(1.1, 1e3))
def test_optimum_grows_with_compute_at_the_exponents(C, growth):
    small, large = (laws.optimal_allocation(c, **CHINCHILLA) for c in (C, C * growth))
    assert np.log(large.N / small.N) / np.log(growth) == pytest.approx(small.exponent_N, abs=1e-9)
    assert np.log(large.D / small.D) / np.log(growth) == pytest.approx(small.exponent_D, abs=1e-9)


@settings(deadline=None)
@given(S=st.floats(-1, 1), gain=st.floats(0.01, 1))
def test_better_backbones_have_lower_loss_down_to_the_floor(S, gain):
    constants = {"A": 0.4, "B": 20.0, "E": 0.8, "alpha": 1.5, "beta": 0.2}
    assert laws.capability_loss(S + gain, 1e9, **constants) < laws.capability_loss(S, 1e9, **constants)
    assert laws.capability_loss(1e3, 1e300, **constants) == pytest.approx(0.8, abs=1e-6)


def test_capability_linear_in_log_size_turns_one_law_into_the_other():
    """Paper eqs. 5 and 6: with S = θ·ln N + ν the capability law is a compute law with exponent α·θ."""
    N, theta, nu = np.geomspace(1e8, 1e11, 5), 0.1, -2.0
    by_capability = laws.capability_loss(theta * np.log(N) + nu, 1e10, 0.4, 20.0, 0.8, 1.5, 0.2)
    by_compute = laws.compute_loss(N, 1e10, 0.4 * np.exp(-1.5 * nu), 20.0, 0.8, 1.5 * theta, 0.2)
    np.testing.assert_allclose(by_capability, by_compute, rtol=1e-12)


def test_pair_without_interaction_is_the_mean_of_its_modalities():
    assert laws.mixed_modal_pair_loss(2.0, 3.0, 1e9, 1e10, 1e11, 0, 0, 0, 0.3, 0.3) == 2.5


@pytest.mark.parametrize(("C", "sign"), [(0.5, -1), (0.0, 1)])
def test_synergy_lowers_and_competition_raises_the_pair_loss(C, sign):
    pair = laws.mixed_modal_pair_loss(2.0, 3.0, 1e9, 1e10, 1e11, C, 50.0, 60.0, 0.3, 0.25)
    assert np.sign(pair - 2.5) == sign


def test_contrastive_error_is_a_straight_line_in_logs_above_its_floor():
    C = np.geomspace(1e9, 1e13, 9)
    slopes = np.diff(np.log(laws.contrastive_error(C, 4.0, -0.1, 0.05) - 0.05)) / np.diff(np.log(C))
    np.testing.assert_allclose(slopes, -0.1, rtol=1e-9)
