"""Exceptions for a user's mistakes, and coded notes that travel with results.

Every message is one line that names file, row, column and value where they exist, and says what to do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from difflib import get_close_matches
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


def unknown_name(kind: str, name: str, known: Iterable[str]) -> NotFoundError:
    """Return the error for a name that is not among the known ones, with the nearest of them.

    Parameters
    ----------
    kind : str
        What the name should have named, such as ``benchmark``.
    name : str
        The name as given.
    known : iterable of str
        All valid names; at most ten are listed when none is near.

    Returns
    -------
    NotFoundError
        To be raised by the caller.

    Examples
    --------
    >>> str(unknown_name("benchmark", "MMMU", ["GQA", "MMMU-val"]))
    "benchmark 'MMMU' is not known; did you mean 'MMMU-val'?"
    >>> str(unknown_name("recipe", "LLaVA-1.5", ["Imp-v1", "LLaVA-1.5 | CLIP-L/14-336"]))
    "recipe 'LLaVA-1.5' is not known; did you mean 'LLaVA-1.5 | CLIP-L/14-336'?"
    """
    known = sorted(map(str, known))
    folded = {label.casefold(): label for label in known}
    begun = [label for fold, label in folded.items() if name and fold.startswith(name.casefold())]
    near = begun[:3] or [folded[m] for m in get_close_matches(name.casefold(), folded, n=3, cutoff=0.6)]
    if near:
        hint = "did you mean " + " or ".join(f"'{label}'" for label in near) + "?"
    else:
        more = f" and {len(known) - 10} more" if len(known) > 10 else ""
        hint = "known: " + ", ".join(known[:10]) + more
    return NotFoundError(f"{kind} '{name}' is not known; {hint}")


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
