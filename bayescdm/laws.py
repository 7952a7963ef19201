"""Every law of the package as a pure function of arrays; numpy arrays and PyTensor variables alike."""

from __future__ import annotations

from typing import Any

__all__ = ["absorption_rate", "transfer_absorption"]


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
