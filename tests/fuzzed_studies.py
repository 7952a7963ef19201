"""Valid studies with random faults in the text of their files, and what may never happen to them.

`check_outcome` reads the mutated files a second time with nothing but the csv module, and compares: every
outcome is a BayesCDMError, or a study in which each plainly written number stands unchanged unless a note
names its cell, its row or its column.
"""

from __future__ import annotations

import csv
import io
import re
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st
from studies import CLEAN, table, text

from bayescdm.describe import describe
from bayescdm.errors import BayesCDMError
from bayescdm.reading import load_study
from bayescdm.reading.load import read_files

#: Cells that tables of results really hold, and some that only an adversary writes.
CELLS = [
    *(
        "",
        "-",
        "--",
        "NA",
        "n/a",
        "nan",
        "TODO",
        "UNK.",
        "xxx",
        "In progress",
        "?",
        "0",
        "100",
        "101",
        "612",
        "-3",
    ),
    *(
        "56.9%",
        "56,9",
        "1,234",
        "1.234,5",
        "**56.9**",
        "56.9*",
        "56.9†",
        "56.9²",
        "57.6<sup>2</sup>",
        "(58.2)",
    ),
    *(
        "60.9/56.8",
        "64.1 / 60.2",
        "60.9 (+1.1)",
        "↑ 63.3",
        "56.9 ± 0.3",
        "0.569",
        "5.69",
        "569",
        "5.69e1",
        "+3",
    ),
    *("1,200,000", "1 200 000", "558K+665K", "1.8M", "2.600.000", "2-a", "7B", "30.85B-A3B", "1.6B×4-Top2"),
    *(
        "=1+1",
        "inf",
        "1e999",
        "٥٦",
        "５６",
        "5_6",
        "0x38",
        "\u00a056.9",
        "56.9\u200b",
        "\x1b[31m56.9",
        "56.9\n57",
        "4" * 5000,
    ),
    *(
        "Average",
        "base",
        "Chat",
        "Larkspur-2",
        "larkspur_2",
        "larkspur-2-1b",
        "Larkspur‑2‑1B",
        "x/larkspur-2-1b",
    ),
    *(
        "recipe",
        "GQA",
        "gqa",
        "'56.9",
        "$56.9$",
        "[56.9](http://x.org)",
        "🏆 56.9",
        "\ufeff",
        '"',
        "a,b",
        "true",
    ),
]
TITLES = [
    *(
        "",
        "Average",
        "backbone",
        "Backbone",
        "model",
        "score",
        "accuracy",
        "samples",
        "tokens",
        "benchmark",
        "GQA",
    ),
    *(
        "🏆 BBH",
        "[BBH](http://x.org)",
        "BBH (%)",
        "rank",
        "vision encoder",
        "recipe",
        "famly",
        "params",
        "source",
    ),
]
#: Cells that mean "not measured" and need no note of their own.
MARKERS = {
    "",
    "-",
    "--",
    "---",
    "–",
    "—",
    "―",
    "−",
    ".",
    "/",
    "\\",
    "na",
    "n/a",
    "n.a.",
    "nan",
    "null",
    "none",
    "#n/a",
}
LETTERS = re.compile(r"[\W_]")
PLAIN = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@dataclass
class MutatedStudy:
    """Files of a study with random faults, and how a plain reader has to split them."""

    contents: dict[str, bytes]
    separators: dict[str, str]
    encodings: dict[str, str]
    faults: list[str]


def _wide_runs() -> list[list[str]]:
    """The clean runs with two benchmarks side by side."""
    rows = table("runs")
    header = [*rows[0][:5], "GQA", "TextVQA", "source"]
    return [header, *([*row[:5], row[6], f"{float(row[6]) - 9:.1f}", row[7]] for row in rows[1:])]


def _fractions(rows: list[list[str]], first: int) -> list[list[str]]:
    """The rows with scores as fractions, from column `first` on."""
    scaled = [[f"{float(c) / 100:.5f}" if PLAIN.fullmatch(c) else c for c in row[first:]] for row in rows[1:]]
    return [rows[0], *([*row[:first], *cells] for row, cells in zip(rows[1:], scaled))]


BASES = {
    "text_scores": [table("text_scores"), _fractions(table("text_scores"), 4)],
    "runs": [table("runs"), _wide_runs(), _fractions(table("runs"), 6)],
}


@st.composite
def mutated_studies(draw: st.DrawFn) -> MutatedStudy:
    """Studies with up to two faults of cells, rows or columns a file, and one of characters."""
    study = MutatedStudy({}, {}, {}, [])
    faulty = draw(st.sampled_from([("text_scores",), ("runs",), ("text_scores", "runs")]))
    for name in ("text_scores", "runs"):
        rows = [list(row) for row in draw(st.sampled_from(BASES[name]))]
        for _ in range(draw(st.integers(1, 2)) if name in faulty else 0):
            fault = draw(st.sampled_from(sorted(_TABLE_FAULTS)))
            _TABLE_FAULTS[fault](draw, rows)
            study.faults.append(fault)
        separator = draw(st.sampled_from([",", ",", ",", ";", "\t"]))
        content = text(rows, separator)
        if name in faulty and draw(st.integers(0, 4)) == 0:
            fault = draw(st.sampled_from(["insert", "delete", "double"]))
            content = _with_character(draw, content, fault)
            study.faults.append(fault)
        if draw(st.integers(0, 7)) == 0:
            content = content.replace("\n", "\r\n")
        encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16"]))
        study.contents[name] = content.encode(encoding, errors="surrogatepass")
        study.separators[name], study.encodings[name] = separator, encoding
    return study


def _any_cell(draw: st.DrawFn, rows: list[list[str]]) -> tuple[int, int]:
    row = draw(st.integers(0, len(rows) - 1))
    return row, draw(st.integers(0, len(rows[row]) - 1)) if rows[row] else 0


def _replace_cell(draw: st.DrawFn, rows: list[list[str]]) -> None:
    row, column = _any_cell(draw, rows)
    if rows[row]:
        rows[row][column] = draw(st.one_of(st.sampled_from(CELLS), st.text(max_size=8)))


def _write_otherwise(draw: st.DrawFn, rows: list[list[str]]) -> None:
    """Write a figure in a notation that tables of results use."""
    figures = [(i, j) for i, row in enumerate(rows) for j, cell in enumerate(row) if PLAIN.fullmatch(cell)]
    if not figures:
        return
    row, column = draw(st.sampled_from(figures))
    cell = rows[row][column]
    value = float(cell)
    notations = [
        "**{}**",
        "{}*",
        "{}†",
        "{}²",
        "{}%",
        "({})",
        "{} (+0.4)",
        "{}/41.2",
        "🥇 {}",
        "↑ {}",
        "{}\u00a0",
        "'{}",
    ]
    written = [notation.format(cell) for notation in notations]
    written += [
        cell.replace(".", ","),
        f"{value:e}",
        f"{value:,.0f}",
        f"{value:,.1f}",
        f"{value / 1e6:g}M",
        "TODO",
        "?",
    ]
    rows[row][column] = draw(st.sampled_from(written))


def _scale_cell(draw: st.DrawFn, rows: list[list[str]]) -> None:
    row, column = _any_cell(draw, rows)
    if rows[row] and PLAIN.fullmatch(rows[row][column]):
        factor = draw(st.sampled_from([0.01, 0.1, 10, 100]))
        rows[row][column] = f"{float(rows[row][column]) * factor:.6g}"


def _scale_line(draw: st.DrawFn, rows: list[list[str]]) -> None:
    row, column = _any_cell(draw, rows)
    by_row = draw(st.booleans())
    cells = [(row, i) for i in range(len(rows[row]))] if by_row else [(i, column) for i in range(len(rows))]
    for i, j in cells:
        if j < len(rows[i]) and PLAIN.fullmatch(rows[i][j]):
            rows[i][j] = f"{float(rows[i][j]) / 100:.6g}"


def _swap_cells(draw: st.DrawFn, rows: list[list[str]]) -> None:
    (a, b), (c, d) = _any_cell(draw, rows), _any_cell(draw, rows)
    if rows[a] and rows[c]:
        rows[a][b], rows[c][d] = rows[c][d], rows[a][b]


def _swap_columns(draw: st.DrawFn, rows: list[list[str]]) -> None:
    a, b = (draw(st.integers(0, len(rows[0]) - 1)) for _ in range(2))
    for row in rows[draw(st.integers(0, 1)) :]:
        if max(a, b) < len(row):
            row[a], row[b] = row[b], row[a]


def _double_row(draw: st.DrawFn, rows: list[list[str]]) -> None:
    row = draw(st.integers(0, len(rows) - 1))
    rows.insert(draw(st.integers(1, len(rows))), list(rows[row]))


def _delete_row(draw: st.DrawFn, rows: list[list[str]]) -> None:
    if len(rows) > 1:
        del rows[draw(st.integers(0, len(rows) - 1))]


def _blank_row(draw: st.DrawFn, rows: list[list[str]]) -> None:
    title = draw(st.sampled_from(["", "Base LLM: Larkspur", "Table 3"]))
    rows.insert(draw(st.integers(0, len(rows))), [title, *[""] * (len(rows[0]) - 1)])


def _retitle(draw: st.DrawFn, rows: list[list[str]]) -> None:
    rows[0][draw(st.integers(0, len(rows[0]) - 1))] = draw(
        st.one_of(st.sampled_from(TITLES), st.text(max_size=6))
    )


def _delete_column(draw: st.DrawFn, rows: list[list[str]]) -> None:
    column = draw(st.integers(0, len(rows[0]) - 1))
    if len(rows[0]) > 1:
        for row in rows:
            del row[column : column + 1]


def _clear_below(draw: st.DrawFn, rows: list[list[str]]) -> None:
    row, column = _any_cell(draw, rows)
    for cells in rows[row + 1 : row + 3]:
        if column < len(cells):
            cells[column] = ""


_TABLE_FAULTS = {
    "replace cell": _replace_cell,
    "write otherwise": _write_otherwise,
    "write another figure otherwise": _write_otherwise,
    "scale cell": _scale_cell,
    "scale row or column": _scale_line,
    "swap cells": _swap_cells,
    "swap columns": _swap_columns,
    "double row": _double_row,
    "delete row": _delete_row,
    "blank or title row": _blank_row,
    "retitle column": _retitle,
    "delete column": _delete_column,
    "clear cells below": _clear_below,
}


def _with_character(draw: st.DrawFn, content: str, fault: str) -> str:
    """The text with one character more or less."""
    at = draw(st.integers(0, len(content) - 1))
    if fault == "delete":
        return content[:at] + content[at + 1 :]
    if fault == "double":
        return content[:at] + content[at] + content[at:]
    extra = draw(st.one_of(st.sampled_from(list(',;."\n\t0-%*/ \u00a0')), st.characters(codec="utf-8")))
    return content[:at] + extra + content[at:]


def check_outcome(study: MutatedStudy) -> str:
    """Load a mutated study; return ``read`` or ``refused``, and fail on anything else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        for name, content in study.contents.items():
            (path / f"{name}.csv").write_bytes(content)
        try:
            with warnings.catch_warnings(action="error"):
                loaded = load_study(path)
        except BayesCDMError as error:
            assert str(error).strip()
            assert all(line.isprintable() for line in str(error).split("\n"))
            return "refused"
        files = read_files(path)
    assert describe(loaded)
    assert files.text is not None and files.runs is not None
    said = {note.where for note in loaded.notes}
    messages = " ".join(note.message for note in loaded.notes)
    _check_text_scores(study, files.text, said)
    _check_runs(study, files.runs, said, messages)
    return "read"


def _plain_rows(study: MutatedStudy, name: str) -> list[tuple[int, list[str]]]:
    """Line numbers and cells, by the csv module alone."""
    content = study.contents[name].decode(study.encodings[name])
    reader = csv.reader(io.StringIO(content, newline=""), delimiter=study.separators[name])
    rows, start = [], 1
    for cells in reader:
        rows.append((start, [cell.strip() for cell in cells]))
        start = reader.line_num + 1
    return rows


def _header_and_body(study: MutatedStudy, name: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Titles, and the rows below them: the header is the first row that names the backbone."""
    rows = _plain_rows(study, name)
    at = next(
        i for i, (_, cells) in enumerate(rows) if any(LETTERS.sub("", c).lower() == "backbone" for c in cells)
    )
    return rows[at][1], rows[at + 1 :]


def _expected(cell: str, unit: str) -> float:
    return float(cell) / 100 if unit == "percent" else float(cell)


def _check_text_scores(study: MutatedStudy, found, said: set[str]) -> None:
    """Every plainly written score of the file is in the table, or a note names it."""
    by_row = dict(zip(found.rows, found.text_scores.to_numpy()))
    columns = {name: i for i, name in enumerate(found.text_scores.columns)}
    header, body = _header_and_body(study, "text_scores")
    for number, cells in body:
        for title, cell in zip(header, cells):
            where = {f"text_scores.csv:{number}:{title}", f"text_scores.csv:{number}"}
            if where & said or title not in columns:
                continue
            if PLAIN.fullmatch(cell):
                value = by_row[number][columns[title]]
                assert np.isclose(value, _expected(cell, found.unit), rtol=1e-12), (
                    number,
                    title,
                    cell,
                    value,
                )
            elif number in by_row:
                assert cell.casefold() in MARKERS, f"row {number}, {title}: nothing is said of {cell!r}"
                assert np.isnan(by_row[number][columns[title]])


def _check_runs(study: MutatedStudy, found, said: set[str], messages: str) -> None:
    """Every plainly written score of the file stands among the scores with its volume, or a note names it."""
    scores = found.scores
    pairs = list(zip(scores["benchmark"], scores["volume"], scores["score"]))
    header, body = _header_and_body(study, "runs")
    for number, cells in body:
        row = dict(zip(header, cells))
        volume = row.get(found.columns.volume, "")
        if not ({f"runs.csv:{number}:{found.columns.volume}", f"runs.csv:{number}"} & said):
            assert PLAIN.fullmatch(volume) or volume.casefold() in MARKERS, (number, volume)
        for title in found.columns.scores:
            cell = row.get(title, "")
            named = {
                f"runs.csv:{number}:{title}",
                f"runs.csv:{number}",
            } & said or f"row {number} (" in messages
            if not PLAIN.fullmatch(cell) or named:
                continue
            benchmark = row.get("benchmark") if found.columns.layout == "long" else title
            fits = [
                (name == benchmark or f"runs.csv:{number}:benchmark" in said)
                and np.isclose(score, _expected(cell, found.unit), rtol=1e-12)
                and (not PLAIN.fullmatch(volume) or np.isclose(known, float(volume), rtol=1e-12))
                for name, known, score in pairs
            ]
            assert any(fits), (number, title, cell, volume)


def examples_of_clean_studies() -> list[MutatedStudy]:
    """The clean study itself: whatever the mutations do, the starting point is read."""
    contents = {name: content.encode() for name, content in CLEAN.items()}
    return [MutatedStudy(contents, dict.fromkeys(contents, ","), dict.fromkeys(contents, "utf-8"), [])]
