"""Folders of small invented studies for the tests of reading."""

from __future__ import annotations

import csv
import io
from pathlib import Path

MESSY = Path(__file__).parent / "data" / "messy"
CLEAN = {name: (MESSY / f"clean_{name}.csv").read_text(encoding="utf-8") for name in ("text_scores", "runs")}


def table(name: str) -> list[list[str]]:
    """Rows of a clean file, the header first."""
    return list(csv.reader(io.StringIO(CLEAN[name])))


def text(rows: list[list[str]], separator: str = ",") -> str:
    """Rows as CSV text."""
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=separator, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def edited(name: str, *edits: tuple[int, str, str]) -> str:
    """A clean file with some cells replaced: (row, column, text), the header being row 1."""
    rows = table(name)
    for row, column, cell in edits:
        rows[row - 1][rows[0].index(column)] = cell
    return text(rows)


def folder(
    path: Path,
    *,
    text_scores: str | bytes | None = None,
    runs: str | bytes | None = None,
    settings: str | None = None,
    suffix: str = ".csv",
) -> Path:
    """Write a study into a folder: clean files where none is given."""
    path.mkdir(parents=True, exist_ok=True)
    for name, content in (("text_scores", text_scores), ("runs", runs)):
        content = CLEAN[name] if content is None else content
        content = content.encode() if isinstance(content, str) else content
        (path / f"{name}{suffix}").write_bytes(content)
    if settings is not None:
        (path / "study.toml").write_text(settings, encoding="utf-8")
    return path
