"""Which candidates are out of the question, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from bayescdm.errors import NotFoundError, RequestError, unknown_name
from bayescdm.wording import short_count

__all__ = ["BYTES_PER_PARAM", "Constraints", "check_constraints", "refusals"]

#: Weights in 16 bits.
BYTES_PER_PARAM = 2.0


@dataclass(frozen=True)
class Constraints:
    """What a backbone must be, whatever its accuracy.

    Parameters
    ----------
    min_params, max_params : float, optional
        Stored parameters, an absolute count.
    max_memory : float, optional
        Bytes that the weights of the backbone may take.
    bytes_per_param : float
        2 by default, weights of 16 bits. Full training with Adam in mixed precision takes some 16.
    licences : tuple of str
        Licences that are allowed, compared without regard to case; any by default.
    exclude_families : tuple of str

    Raises
    ------
    RequestError
        A limit is not positive, or no size lies between the limits.

    Examples
    --------
    >>> Constraints(max_params=9e9, licences=("apache-2.0",)).max_params
    9000000000.0
    """

    min_params: float | None = None
    max_params: float | None = None
    max_memory: float | None = None
    bytes_per_param: float = BYTES_PER_PARAM
    licences: tuple[str, ...] = ()
    exclude_families: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse limits that are no positive number, and sizes between which there is none."""
        for name in ("min_params", "max_params", "max_memory", "bytes_per_param"):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                unit = " bytes" if name == "max_memory" else ""
                raise RequestError(f"{name} {limit:g}{unit} is not a positive number")
        least, most = self.min_params, self.max_params
        if least is not None and most is not None and least > most:
            raise RequestError(
                f"no size is at least {short_count(least)} and at most {short_count(most)} parameters; the "
                "smallest allowed exceeds the largest"
            )

    @property
    def need_params(self) -> bool:
        """Whether a candidate of unknown size cannot be judged."""
        return any(limit is not None for limit in (self.min_params, self.max_params, self.max_memory))


def check_constraints(constraints: Constraints, backbones: pd.DataFrame) -> None:
    """Refuse constraints that cannot be applied to the candidates.

    Parameters
    ----------
    constraints : Constraints
    backbones : DataFrame, (backbone, ...)

    Raises
    ------
    NotFoundError
        No candidate is of an excluded family, or has an allowed licence: a slip of the pen would let the
        family in, or keep everybody out.
    RequestError
        Licences are asked for and the candidates have no such column, or none in it.
    """
    families = backbones["family"].astype(str)
    for family in constraints.exclude_families:
        if family not in set(families):
            raise unknown_name("family", family, families.unique())
    if constraints.licences and "licence" not in backbones:
        raise RequestError(
            "licences are asked for, and the candidates have no column 'licence'; add it to their table"
        )
    if constraints.licences:
        _check_licences(constraints.licences, backbones["licence"])


def _check_licences(allowed: Sequence[str], column: pd.Series) -> None:
    """Refuse licences that no candidate has, a line each with the nearest that one has."""
    known = {licence for licence in column.dropna().astype(str).str.strip() if licence}
    if not known:
        raise RequestError("licences are asked for, and column 'licence' of the candidates is empty")
    folded = {licence.casefold() for licence in known}
    unknown = [licence for licence in allowed if licence.casefold() not in folded]
    if unknown:
        raise NotFoundError("\n".join(str(unknown_name("licence", name, known)) for name in unknown))


def refusals(backbones: pd.DataFrame, constraints: Constraints) -> dict[str, str]:
    """Say why candidates do not meet the constraints.

    Parameters
    ----------
    backbones : DataFrame, (backbone, ...)
        ``family``, ``params``; ``licence`` where licences are asked for.
    constraints : Constraints

    Returns
    -------
    dict of str to str
        The first reason of each candidate that is out of the question.

    Examples
    --------
    >>> table = pd.DataFrame({"family": ["F", "G"], "params": [7e9, 70e9]}, index=["f", "g"])
    >>> refusals(table, Constraints(max_params=9e9))
    {'g': 'too large: 70B parameters, allowed 9B'}
    """
    reasons = {name: _reason(row, constraints) for name, row in backbones.iterrows()}
    return {str(name): reason for name, reason in reasons.items() if reason}


def _reason(row: pd.Series, constraints: Constraints) -> str:
    params = float(row["params"]) if pd.notna(row.get("params")) else None
    if row["family"] in constraints.exclude_families:
        return f"family {row['family']} is excluded"
    if constraints.licences:
        licence = str(row["licence"]).strip() if pd.notna(row["licence"]) else ""
        if licence.casefold() not in {allowed.casefold() for allowed in constraints.licences}:
            return f"licence {licence} is not allowed" if licence else "no licence is stated"
    if params is None:
        return "no number of parameters, so its size cannot be judged" if constraints.need_params else ""
    if constraints.max_params is not None and params > constraints.max_params:
        return f"too large: {short_count(params)} parameters, allowed {short_count(constraints.max_params)}"
    if constraints.min_params is not None and params < constraints.min_params:
        return f"too small: {short_count(params)} parameters, wanted {short_count(constraints.min_params)}"
    needed = params * constraints.bytes_per_param
    if constraints.max_memory is not None and needed > constraints.max_memory:
        allowed = constraints.max_memory / 1e9
        return f"too much memory: {needed / 1e9:.4g} GB of weights, allowed {allowed:.4g} GB"
    return ""
