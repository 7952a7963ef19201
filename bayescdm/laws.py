"""Every law of the package as a pure function of arrays; numpy arrays and PyTensor variables alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "OptimalAllocation",
    "absorption_rate",
    "capability_loss",
    "compute_loss",
    "contrastive_error",
    "mixed_modal_loss",
    "mixed_modal_pair_loss",
    "optimal_allocation",
    "transfer_absorption",
]


def absorption_rate(S: Any, B0: Any, Bm: Any) -> Any:
    """Absorption rate B = B0 − Bm·S, per unit of ln D.

    Parameters
    ----------
    S : array
        Capability, in units of the text scores (fractions).
    B0, Bm : array
        Base absorption and its decay; broadcast against `S`.

    Returns
    -------
    array
        Same shape as the broadcast inputs.

    Notes
    -----
    Eq. 8 of *What Transfers from Text to Vision?* (arXiv 2608.00013).

    Examples
    --------
    >>> absorption_rate(0.5, 0.02, 0.01)
    0.015
    """
    return B0 - Bm * S


def transfer_absorption(S: Any, log_volume: Any, A: Any, B0: Any, Bm: Any, P0: Any) -> Any:
    """Accuracy P = A·S + (B0 − Bm·S)·ln(D/D_ref) + P0.

    Parameters
    ----------
    S : array
        Capability of each run's backbone.
    log_volume : array
        ln(D / D_ref), dimensionless.
    A, B0, Bm : array
        Transfer rate, base absorption, absorption decay.
    P0 : array
        Baseline: accuracy at S = 0 and D = D_ref, a fraction.

    Returns
    -------
    array
        Accuracy, a fraction.

    Notes
    -----
    Eqs. 7 and 8 of *What Transfers from Text to Vision?*, with the reference volume explicit.

    Examples
    --------
    >>> round(transfer_absorption(0.2, 1.0, 0.25, 0.02, 0.01, 0.5), 4)
    0.568
    """
    return A * S + absorption_rate(S, B0, Bm) * log_volume + P0


def compute_loss(N: Any, D: Any, A: Any, B: Any, E: Any, alpha: Any, beta: Any) -> Any:
    """Loss L = A/N^α + B/D^β + E of a model of N parameters on D tokens.

    Parameters
    ----------
    N : array
        Parameters, an absolute count (7e9, not 7).
    D : array
        Training tokens (multimodal tokens for eqs. 2 and 10), an absolute count.
    A, B : array
        Sizes of the parameter and the data term, in loss × count^exponent.
    E : array
        Irreducible loss.
    alpha, beta : array
        Exponents, dimensionless.

    Returns
    -------
    array
        Loss, in nats per token for token losses; broadcast over the inputs.

    Notes
    -----
    Hoffmann et al. (arXiv 2203.15556), eq. 10 of their appendix D.2; eqs. 1, 2 and 10 of *What Transfers
    from Text to Vision?*.

    Examples
    --------
    >>> round(compute_loss(70e9, 1.4e12, A=406.4, B=410.7, E=1.69, alpha=0.34, beta=0.28), 4)
    1.9366
    """
    return A / N**alpha + B / D**beta + E


def capability_loss(S: Any, D: Any, A: Any, B: Any, E: Any, alpha: Any, beta: Any) -> Any:
    """Loss L = A·exp(−α·S) + B/D^β + E of a backbone of capability S on D tokens.

    Parameters
    ----------
    S : array
        Capability of the backbone, in units of the text scores (fractions).
    D : array
        Multimodal training tokens, an absolute count.
    A : array
        Size of the backbone term at S = 0.
    B : array
        Size of the data term, in loss × count^β.
    E : array
        Irreducible loss.
    alpha : array
        Decay of the backbone term, per unit of S.
    beta : array
        Exponent of the data term.

    Returns
    -------
    array
        Loss, broadcast over the inputs.

    Notes
    -----
    Eq. 6 of *What Transfers from Text to Vision?*: S is linear in ln C, so a power of the compute becomes
    an exponential of S.

    Examples
    --------
    >>> float(round(capability_loss(0.0, 1e9, A=0.4, B=20.0, E=0.8, alpha=1.5, beta=0.2), 4))
    1.517
    """
    return A * np.exp(-alpha * S) + B / D**beta + E


def contrastive_error(C: Any, beta: Any, alpha: Any, floor: Any = 0.0) -> Any:
    """Downstream error β·C^α + floor of a contrastive image–text model trained with compute C.

    Parameters
    ----------
    C : array
        Compute, in the unit of the study (OpenCLIP: giga multiply-accumulates × samples seen).
    beta : array
        Error above the floor at C = 1.
    alpha : array
        Exponent; negative where the error falls with compute.
    floor : array, default 0
        Error that remains however large C is, a fraction.

    Returns
    -------
    array
        Error, a fraction.

    Notes
    -----
    Cherti et al. (arXiv 2212.07143): one law for each metric and each training set. The contrastive
    training loss is another quantity.

    Examples
    --------
    >>> round(contrastive_error(1e11, beta=4.0, alpha=-0.1), 4)
    0.3177
    """
    return beta * C**alpha + floor


def mixed_modal_loss(N: Any, D: Any, A: Any, B: Any, E: Any, alpha: Any, beta: Any) -> Any:
    """Token loss L_j = E_j + A_j/N^α_j + B_j/D_j^β_j of one modality j trained alone.

    Parameters
    ----------
    N : array
        Parameters, an absolute count.
    D : array
        Tokens of modality j, an absolute count. Tokens of two modalities are different units.
    A, B, E, alpha, beta : array
        The modality's own constants, as in `compute_loss`.

    Returns
    -------
    array
        Loss of modality j, in nats per token.

    Notes
    -----
    Aghajanyan et al. (arXiv 2301.03728), the unimodal law.

    Examples
    --------
    >>> round(mixed_modal_loss(1e9, 1e11, A=200.0, B=300.0, E=2.0, alpha=0.3, beta=0.27), 4)
    2.7205
    """
    return compute_loss(N, D, A, B, E, alpha, beta)


def mixed_modal_pair_loss(
    L_i: Any, L_j: Any, N: Any, D_i: Any, D_j: Any, C: Any, A: Any, B: Any, alpha: Any, beta: Any
) -> Any:
    """Loss ½(L_i + L_j) − C + A/N^α + B/(D_i + D_j)^β of one model trained on two modalities.

    Parameters
    ----------
    L_i, L_j : array
        Losses of the two modalities trained alone (`mixed_modal_loss`) at the same N and at D_i, D_j.
    N : array
        Parameters, an absolute count.
    D_i, D_j : array
        Tokens of either modality, absolute counts.
    C : array
        Greatest synergy of the pair, in nats per token.
    A, B, alpha, beta : array
        Competition of the pair: it shrinks with N and with the tokens of both.

    Returns
    -------
    array
        Mean loss of the two modalities; below ½(L_i + L_j) the pair helps each other (synergy), above it
        they compete.

    Notes
    -----
    Aghajanyan et al. (arXiv 2301.03728), the bimodal law.

    Examples
    --------
    >>> pair = {"C": 0.1, "A": 50.0, "B": 60.0, "alpha": 0.3, "beta": 0.25}
    >>> round(mixed_modal_pair_loss(2.5, 3.5, 1e9, 1e11, 1e11, **pair), 4)
    3.0895
    """
    return (L_i + L_j) / 2 - C + A / N**alpha + B / (D_i + D_j) ** beta


class OptimalAllocation(NamedTuple):
    """Parameters N*, tokens D* and how each grows with compute: N* ∝ C^exponent_N, D* ∝ C^exponent_D."""

    N: Any
    D: Any
    exponent_N: Any
    exponent_D: Any


def optimal_allocation(C: Any, A: Any, B: Any, alpha: Any, beta: Any) -> OptimalAllocation:
    """Split of a training budget C ≈ 6·N·D that minimises `compute_loss`.

    Parameters
    ----------
    C : array
        Training compute, in FLOPs.
    A, B, alpha, beta : array
        Constants of `compute_loss`; E does not matter.

    Returns
    -------
    OptimalAllocation
        N* = [αA/(βB)·(C/6)^β]^(1/(α+β)), D* = C/(6·N*) and the exponents β/(α+β), α/(α+β).

    Notes
    -----
    At the optimum the marginal gains balance: α·A/N*^α = β·B/D*^β. Hoffmann et al. (arXiv 2203.15556),
    approach 3.

    Examples
    --------
    >>> best = optimal_allocation(1e21, A=406.4, B=410.7, alpha=0.34, beta=0.28)
    >>> round(best.exponent_N, 3), round(best.exponent_D, 3)
    (0.452, 0.548)
    >>> round(6 * best.N * best.D / 1e21, 9)
    1.0
    """
    balance = alpha * A / (beta * B)
    N = balance ** (1 / (alpha + beta)) * (C / 6) ** (beta / (alpha + beta))
    return OptimalAllocation(N, C / (6 * N), beta / (alpha + beta), alpha / (alpha + beta))
