"""What becomes of a published claim under the posterior."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["verdicts"]


def verdicts(p_claim: ArrayLike, prob: float) -> np.ndarray:
    """Say of claims whether they survive their uncertainty.

    Parameters
    ----------
    p_claim : array_like
        Posterior probability of each claim.
    prob : float
        From which on a claim survives; it is refuted when its contrary is as probable.

    Returns
    -------
    ndarray of str, of the shape of `p_claim`
        ``survives``, ``undecided`` or ``refuted``.

    Examples
    --------
    >>> verdicts([0.95, 0.5, 0.02], 0.9).tolist()
    ['survives', 'undecided', 'refuted']
    """
    p = np.asarray(p_claim)
    return np.select([p >= prob, p <= 1 - prob], ["survives", "refuted"], "undecided")
