"""Seeds and the random numbers that belong to them: the one place where a seed is checked."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from bayescdm.errors import RequestError

__all__ = ["LARGEST_SEED", "checked_seed", "generator"]

#: Largest seed that every generator of ours takes, the sampler's included.
LARGEST_SEED = 2**63 - 1


def checked_seed(seed: int) -> int:
    """Return a seed as a plain integer, or refuse it.

    Parameters
    ----------
    seed : int
        From 0 to 2⁶³ − 1.

    Returns
    -------
    int

    Raises
    ------
    RequestError
        When it is none.

    Examples
    --------
    >>> checked_seed(np.int64(3))
    3
    """
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= seed <= LARGEST_SEED:
        raise RequestError(f"seed {seed!r}: give a whole number from 0 to {LARGEST_SEED}")
    return int(seed)


def generator(seed: int, *stream: int) -> np.random.Generator:
    """Return the random numbers of a seed, or of one stream of it.

    Parameters
    ----------
    seed : int
        From 0 on.
    stream : int
        Numbers that tell the stream from others of the same seed.

    Returns
    -------
    Generator

    Raises
    ------
    RequestError
        When the seed is none.
    """
    start = checked_seed(seed)
    return np.random.default_rng([start, *stream] if stream else start)
