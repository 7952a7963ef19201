"""What reading has to say: problems that stop it, notes that travel with the study, and changes made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from bayescdm.errors import InputError, Note, Severity
from bayescdm.wording import counted

__all__ = ["Change", "Findings", "Place", "printable", "shown"]


@dataclass(frozen=True)
class Place:
    """A cell, a row (no column) or a whole file (row 0)."""

    file: str
    row: int = 0
    column: str = ""
    header_row: int = 1

    def __str__(self) -> str:
        """Return ``file:row:column``, as notes carry it."""
        parts = [self.file, str(self.row) if self.row else "", self.column]
        return ":".join(parts).rstrip(":")

    def words(self, more: list[int] | tuple[int, ...] = ()) -> str:
        """Return the place in words; `more` are further rows with the same fault."""
        text = self.file
        if self.row:
            text += f", row {self.row} (header is row {self.header_row}{_also(more)})"
        if self.column:
            text += f", column '{self.column}'"
        return text


@dataclass(frozen=True)
class Change:
    """One change to the files, a row of ``changes.csv``; row 0 concerns the whole file."""

    file: str
    row: int
    column: str
    before: str
    after: str
    why: str


@dataclass(frozen=True)
class Problem:
    """A fault that stops reading; `value` is None where no single cell is at fault."""

    place: Place
    value: str | None
    what: str


#: Codes of which one note a column says enough; every single change is in ``changes.csv``.
COLLAPSED = ("count-converted", "percent-sign-removed")


def _column_of(note: Note) -> str:
    """File and column of a note about a cell, without its row."""
    file, _, rest = note.where.partition(":")
    return f"{file}:{rest.partition(':')[2]}"


@dataclass
class Findings:
    """Everything found while reading the files of one study, collected before anything is raised."""

    problems: list[Problem] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    _of_cells: dict[tuple[str, int, str], int] = field(default_factory=dict)

    def refuse(self, place: Place, what: str, value: str | None = None) -> None:
        """Record a problem: `what` says what is wrong and what to do."""
        problem = Problem(place, value, what)
        if problem not in self.problems:
            self.problems.append(problem)

    def note(self, code: str, place: Place | str, message: str, severity: Severity = "note") -> None:
        """Record a note."""
        self.notes.append(Note(code, printable(message), severity, printable(str(place))))

    def repaired(self, code: str, place: Place, before: str, after: str, why: str) -> None:
        """Record a change to a cell, both as a note and as a line for ``changes.csv``."""
        self.note(
            code, place, f"{shown(before)} → {shown(after)}: {why}" if after else f"{shown(before)}: {why}"
        )
        self.changed(Change(place.file, place.row, place.column, before, after, why))

    def converted(self, code: str, file: str, before: str, after: str, why: str) -> None:
        """Record what was changed about a whole file, both as a note and as a line for ``changes.csv``."""
        self.note(code, file, why)
        self.changed(Change(file, 0, "", before, after, why))

    def changed(self, change: Change) -> None:
        """Record a change; a cell changed before keeps one line: what stood there, and what stands now."""
        cell = (change.file, change.row, change.column)
        position = self._of_cells.get(cell) if change.row and change.column else None
        if position is not None and self.changes[position].after == change.before:
            earlier = self.changes[position]
            why = "; ".join(dict.fromkeys([earlier.why, change.why]))
            self.changes[position] = replace(change, before=earlier.before, why=why)
            return
        self._of_cells[cell] = len(self.changes)
        self.changes.append(change)

    def told(self) -> tuple[Note, ...]:
        """Return the notes, with one for all cells of a column that were rewritten for the same reason."""
        columns: dict[tuple[str, str], list[Note]] = {}
        for note in self.notes:
            if note.code in COLLAPSED:
                columns.setdefault((note.code, _column_of(note)), []).append(note)
        told = []
        for note in self.notes:
            same = columns.get((note.code, _column_of(note)), [note]) if note.code in COLLAPSED else [note]
            if len(same) == 1:
                told.append(note)
            elif note is same[0]:
                more = counted(len(same) - 1, "more cell")
                told.append(replace(note, message=f"{note.message}; and {more} of this column"))
        return tuple(told)

    def raise_problems(self) -> None:
        """Raise one InputError with all problems, a line each; equal faults of several rows share a line."""
        if self.problems:
            raise InputError(self.lines())

    def lines(self) -> list[str]:
        """Problems as lines, by file and row in the order of first appearance of the file."""
        files = list(dict.fromkeys(problem.place.file for problem in self.problems))
        merged: dict[tuple[str, str, str | None, str], list[Place]] = {}
        for problem in sorted(self.problems, key=lambda p: (files.index(p.place.file), p.place.row)):
            key = (problem.place.file, problem.place.column, problem.value, problem.what)
            merged.setdefault(key, []).append(problem.place)
        lines = []
        for (_, _, value, what), places in merged.items():
            where = places[0].words([place.row for place in places[1:]])
            lines.append(f"{where}: {what}" if value is None else f"{where}: value {shown(value)} {what}")
        return [printable(line) for line in lines]


def shown(value: str, limit: int = 60) -> str:
    """Return a value in quotes on one line: long ones cut, what cannot be printed as its code point."""
    text = printable(value[:limit])
    return f"'{text}'" if len(value) <= limit else f"'{text}…' ({len(value)} characters)"


def printable(text: str) -> str:
    """Return the text with characters that cannot be printed as their code points."""
    return "".join(c if c.isprintable() else f"<U+{ord(c):04X}>" for c in text)


def _also(rows: list[int] | tuple[int, ...]) -> str:
    """Further rows, the first five by number."""
    if not rows:
        return ""
    listed = ", ".join(map(str, rows[:5]))
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f"; also row{'s' if len(rows) > 1 else ''} {listed}{more}"
