"""Exceptions for a user's mistakes, and coded notes that travel with results.

Every message is one line that names file, row, column and value where they exist, and says what to do.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

__all__ = [
    "BayesCDMError",
    "FitError",
    "InputError",
    "ModelError",
    "NotFoundError",
    "Note",
    "RequestError",
]


class BayesCDMError(Exception):
    """Base of all errors that a user can cause and mend."""


class InputError(BayesCDMError):
    """A table cannot be read as what it claims to be.

    Parameters
    ----------
    problems : list of str
        One line each; all problems of a file are collected in one pass.
    """

    def __init__(self, problems: list[str] | str):
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class NotFoundError(BayesCDMError):
    """A name (study, file, backbone, family, recipe, benchmark, model) is not known; says which are."""


class ModelError(BayesCDMError):
    """A model file cannot be loaded or does not fit the study."""


class FitError(BayesCDMError):
    """Draws could not be made, or a saved fit cannot be read."""


class RequestError(BayesCDMError):
    """A question that the fit cannot answer as asked (a volume ≤ 0, an empty candidate table, …)."""


Severity = Literal["note", "warning"]


@dataclass(frozen=True, order=True)
class Note:
    """Something the reader must know, with a stable code.

    Parameters
    ----------
    code : str
        Stable identifier, such as ``single-volume`` or ``extrapolation``.
    message : str
        One sentence with the measured figure in it.
    severity : {"note", "warning"}
        ``note`` for what was done to the data, ``warning`` for what limits the answer.
    where : str
        File, row, parameter or table that it concerns; empty when it concerns the whole study.
    """

    code: str
    message: str
    severity: Severity = "note"
    where: str = ""

    def __str__(self) -> str:
        """Return ``severity [code] where: message``."""
        where = f" {self.where}:" if self.where else ""
        return f"{self.severity} [{self.code}]{where} {self.message}"

    def to_dict(self) -> dict[str, str]:
        """Return the four fields as plain strings, for JSON."""
        return asdict(self)
