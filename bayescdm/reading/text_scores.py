"""``text_scores``: one row a backbone, with what it is and its text-benchmark scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pandas as pd

from bayescdm.reading.averages import drop_computed_averages
from bayescdm.reading.candidates import UNKNOWN, match_to_study
from bayescdm.reading.cells import (
    CellError,
    Dots,
    ProductError,
    is_missing,
    is_placeholder,
    is_unnamed,
    read_count,
)
from bayescdm.reading.columns import drop_columns_of_words, drop_other_columns, name_columns, require_columns
from bayescdm.reading.counts import dots_of
from bayescdm.reading.findings import shown
from bayescdm.reading.labels import Labels, clean_label, clean_title, fold, likely_typos, spelled_differently
from bayescdm.reading.scores import find_decimal_mark, flag_suspects, read_scores, to_fractions
from bayescdm.reading.settings import Settings
from bayescdm.reading.sheets import Sheet
from bayescdm.study import Study
from bayescdm.wording import and_more, counted

__all__ = [
    "TextTable",
    "clean_labels",
    "refuse_incomplete",
    "refuse_two_spellings",
    "text_table",
]

REQUIRED = ("backbone", "family", "variant")
SIZES = ("params_b", "params", "active_params_b", "active_params")
OPTIONAL = (*SIZES, "text_tokens", "licence", "source")
KNOWN = (*REQUIRED, *OPTIONAL)
#: More parameters, active parameters and text tokens than any known model has.
_LARGEST = {"params": 5 * 10**12, "active_params": 5 * 10**12, "text_tokens": 10**15}
#: Columns for which the nearest benchmarks of the study are named.
NEAREST = 3
_VARIANTS = {
    "base": "base pretrained pre-trained pretrain pt foundation",
    "instruct": "instruct instruction instruction-tuned instruct-tuned chat it sft tuned fine-tuned",
}
_VARIANT_OF = {word: variant for variant, words in _VARIANTS.items() for word in words.split()}


@dataclass(frozen=True)
class TextTable:
    """Text scores as fractions, what the backbones are, and the row that each stands in."""

    text_scores: pd.DataFrame
    backbones: pd.DataFrame
    rows: list[int]
    unit: str


def text_table(sheet: Sheet, settings: Settings, like: Study | None = None) -> TextTable | None:
    """Read a sheet of text scores.

    Parameters
    ----------
    sheet : Sheet
        Takes problems, notes and repairs.
    settings : Settings
    like : Study, optional
        Makes it a table of candidates for this study: benchmarks and names are matched to its own, and its
        scores help to tell units; family and variant may be empty, and names may repeat: every row is kept,
        in order.

    Returns
    -------
    TextTable or None
        None when the columns are not those of such a table.
    """
    _accept_american_spelling(sheet)
    name_columns(sheet, KNOWN, settings)
    if not require_columns(sheet, REQUIRED if like is None else REQUIRED[:1], OPTIONAL):
        return None
    drop_other_columns(sheet, KNOWN)
    clean_labels(sheet, ("backbone", "family", "variant"))
    if like is not None:
        _fill_unknown(sheet)
    refuse_incomplete(sheet, REQUIRED)
    _read_variants(sheet, (UNKNOWN,) if like is not None else ())
    if like is not None:
        match_to_study(sheet, like)
    known = None if like is None else like.text_scores
    titles = [str(title) for title in sheet.table.columns]
    benchmarks = _benchmark_columns(sheet, known)
    if not benchmarks:
        sheet.findings.refuse(sheet.place(sheet.header_row), _no_scores(sheet, titles, known))
        return None
    find_decimal_mark(sheet, [*benchmarks, *(c for c in SIZES if c in sheet.table)])
    if like is None:
        benchmarks = drop_computed_averages(sheet, benchmarks)
    scores = read_scores(sheet, benchmarks, lambda row, title: title)
    context = None if known is None else {c: known[c].dropna().to_numpy() * 100 for c in known}
    scores, unit = to_fractions(sheet, scores, settings.text_unit, settings, context=context)
    sizes = _sizes(sheet)
    if like is None:
        _merge_duplicates(sheet, scores, sizes)
        refuse_two_spellings(sheet, "family", "families")
        refuse_two_spellings(sheet, "backbone", "backbones")
        _flag_typos(sheet)
    kept = scores[scores["row"].isin(sheet.table.index)]
    flag_suspects(sheet, kept)
    return _assembled(sheet, kept, sizes, benchmarks, unit)


def _accept_american_spelling(sheet: Sheet) -> None:
    """Rename a column ``license`` to ours."""
    for title in list(sheet.table.columns):
        if fold(title) == "license" and "licence" not in sheet.table:
            sheet.rename_column("column-matched", title, "licence", "the same word")


def clean_labels(sheet: Sheet, columns: tuple[str, ...]) -> None:
    """Rewrite labels with plain hyphens and spaces and without marks, and say so.

    Parameters
    ----------
    sheet : Sheet
    columns : tuple of str
        Those that the sheet lacks are passed over.
    """
    for column in columns:
        for row, text in list(sheet.cells(column)) if column in sheet.table else []:
            label, why = clean_label(text)
            if column == "benchmark" and (title := clean_title(label)) != label:
                label, why = title, "; ".join(filter(None, [why, "marks removed"]))
            if why:
                code = "odd-character-replaced" if why.startswith("odd") else "decoration-removed"
                sheet.repair(code, row, column, label, why)


def _fill_unknown(sheet: Sheet) -> None:
    """Write ``unknown`` for families and variants that a table of candidates does not state."""
    for column in ("family", "variant"):
        if column not in sheet.table:
            sheet.table[column] = ""
        rows = [row for row, text in sheet.cells(column) if is_unnamed(text)]
        for row in rows:
            sheet.rewrite(row, column, UNKNOWN, f"no {column} is stated")
        if rows:
            listed = ", ".join(map(str, rows[:10])) + (" …" if len(rows) > 10 else "")
            message = (
                f"{counted(len(rows), 'candidate')} without a {column} (rows {listed}): taken as '{UNKNOWN}'"
            )
            sheet.findings.note(f"{column}-unknown", sheet.place(0, column), message, "warning")


def refuse_incomplete(sheet: Sheet, required: Sequence[str]) -> None:
    """Refuse rows that lack a label, as a merged cell leaves them; nothing is filled in from above.

    Parameters
    ----------
    sheet : Sheet
    required : sequence of str
    """
    for row, cells in zip(sheet.table.index, sheet.table[list(required)].to_numpy().tolist()):
        named = {name: text for name, text in zip(required, cells) if text is not None}
        gaps = [name for name, text in named.items() if is_missing(text)]
        if gaps:
            columns = ", ".join(f"'{sheet.titles.get(name, name)}'" for name in gaps)
            what = f"empty in column{'s' if len(gaps) > 1 else ''} {columns} (a merged cell?): fill it in"
            sheet.findings.refuse(sheet.place(int(row)), what)
            sheet.table.loc[row, gaps] = None
        for name, text in named.items():
            if name not in gaps and is_unnamed(text) and text != UNKNOWN:
                sheet.refuse(int(row), name, "is a placeholder, not a name: fill it in")
            elif name not in gaps and not any(letter.isalnum() for letter in text):
                sheet.refuse(int(row), name, "is no name, as it has neither letter nor digit: fill it in")


def _read_variants(sheet: Sheet, unstated: tuple[str, ...]) -> None:
    """Rewrite the usual words for base and instruct models; `unstated` are words that may stay."""
    for row, text in list(sheet.cells("variant")):
        variant = text if text in unstated else _VARIANT_OF.get(text.casefold().replace(" ", "-"))
        if variant is None:
            sheet.refuse(row, "variant", "is neither 'base' nor 'instruct': write one of them")
        elif variant != text:
            sheet.repair("variant-matched", row, "variant", variant, "the usual word for it")


def _benchmark_columns(sheet: Sheet, like: pd.DataFrame | None) -> list[str]:
    """Columns that hold scores; columns of words are left out with a note, and a study's names are taken."""
    drop_columns_of_words(sheet, KNOWN)
    titles = [title for title in sheet.table.columns if title not in KNOWN]
    if like is None:
        return titles
    known = Labels(like.columns)
    for title in titles:
        meant, how = known.match(title)
        if len(meant) == 1 and how and meant[0] not in sheet.table:
            sheet.rename_column("name-matched", title, meant[0], how)
        elif title not in like:
            sheet.drop_column(
                "benchmark-ignored", title, "not among the text benchmarks of the study: left out"
            )
    missing = [name for name in like.columns if name not in sheet.table]
    if missing and len(missing) < like.shape[1]:
        message = f"no column for {', '.join(missing)}: taken as not measured"
        sheet.findings.note("benchmark-missing", sheet.file, message, "warning")
    return [name for name in like.columns if name in sheet.table]


def _no_scores(sheet: Sheet, titles: list[str], like: pd.DataFrame | None) -> str:
    """Why a table holds no usable score: no column of figures, or none that is the study's."""
    others = [title for title in titles if title not in KNOWN]
    if like is None or not others:
        listed = ", ".join(f"'{title}'" for title in (titles if like is None else sheet.table.columns))
        return f"there is no column of scores; there are {listed}"
    known = Labels(like.columns)
    hints = [f"'{title}' ({known.nearest(title)})" for title in others[:NEAREST]]
    return (
        f"none of its columns is a text benchmark of the study: {and_more(hints, NEAREST)}; rename those "
        "that are meant"
    )


def _sizes(sheet: Sheet) -> dict[str, dict[int, float]]:
    """Absolute counts of parameters and text tokens by row; unclear ones are left empty with a notice."""
    found: dict[str, dict[int, float]] = {"params": {}, "active_params": {}, "text_tokens": {}}
    columns = [(name, name.removesuffix("_b"), 9 if name.endswith("_b") else 0) for name in SIZES]
    for title, name, power in [*columns, ("text_tokens", "text_tokens", 0)]:
        impossible = []
        dots: Dots = "decimal" if power or title not in sheet.table else dots_of(sheet, title)
        for row, text in list(sheet.cells(title)) if title in sheet.table else []:
            if is_missing(text) or is_placeholder(text):
                if text:
                    sheet.repair("placeholder-missing", row, title, "", "read as missing")
                continue
            try:
                count = read_count(
                    text, sheet.decimal, whole=not power, dots=dots, size=name != "text_tokens"
                )
            except ProductError as error:
                sheet.repair("size-unclear", row, title, "", f"{error}; left empty")
                continue
            except CellError as error:
                sheet.refuse(row, title, str(error))
                continue
            value = count.value.scaleb(power) if count.bare else count.value
            if not 10**6 <= value <= 10**16:
                impossible.append((row, _impossible_size(value, power, name, bare=count.bare)))
                continue
            found[name][row] = float(value)
            if value > _LARGEST[name]:
                size = f"{float(value):g} {name.replace('_', ' ')}"
                message = f"{shown(text)} would be {size}, more than of any known model; please check"
                sheet.findings.note("size-suspect", sheet.place(row, title), message, "warning")
            why = count.why
            if count.active is not None:
                _take_active(sheet, row, title, count.active, found)
                why = f"total written out; {found['active_params'][row] / 1e9:g}B of it are active"
            if why:
                written = f"{value.scaleb(-power).normalize():f}"
                sheet.repair("count-converted", row, title, written, why)
        many = len(impossible) > len(found[name])
        hint = f": give the column its unit ({name}, or {name}_b in billions)" if many else ""
        for row, (what, correct) in impossible[:1] if many else impossible:
            sheet.refuse(row, title, f"{what}{hint or correct}")
    return found


def _impossible_size(value: Decimal, power: int, name: str, *, bare: bool) -> tuple[str, str]:
    """What is wrong with a size, and what to do about a single one."""
    what = f"would be {float(value):g} {name.replace('_', ' ')}"
    if power and bare and value > 10**16:
        return what, f": if it is an absolute count, write {value.scaleb(-2 * power).normalize():f}"
    return what, f": write one such as {'15T' if name == 'text_tokens' else '7B'}"


def _take_active(
    sheet: Sheet, row: int, title: str, active: Decimal, found: dict[str, dict[int, float]]
) -> None:
    """Keep the active part of a size such as ``30B-A3B``."""
    found["active_params"].setdefault(row, float(active))
    column = next((c for c in ("active_params_b", "active_params") if c in sheet.table), "active_params_b")
    if column not in sheet.table:
        sheet.table[column] = ""
    if not sheet.table.at[row, column]:
        power = -9 if column.endswith("_b") else 0
        why = f"the part of {shown(sheet.table.at[row, title])} behind the A"
        sheet.rewrite(row, column, f"{active.scaleb(power).normalize():f}", why)


def _merge_duplicates(sheet: Sheet, scores: pd.DataFrame, sizes: Mapping[str, Mapping[int, float]]) -> None:
    """Keep one of several equal rows of a backbone; refuse rows that differ."""
    values = {row: dict(zip(rows["column"], rows["value"])) for row, rows in scores.groupby("row")}
    first: dict[str, int] = {}
    for row, label in list(sheet.cells("backbone")):
        if label not in first:
            first[label] = row
            continue
        here, there = (_content(sheet, r, values.get(r, {}), sizes) for r in (row, first[label]))
        differing = [name for name in here if here[name] != there.get(name)] + [
            n for n in there if n not in here
        ]
        if not differing:
            sheet.drop_row("duplicate-merged", row, f"the same as row {first[label]}: kept once")
            continue
        name = differing[0]
        written = {r: _as_written(sheet, r, name) or "empty" for r in (first[label], row)}
        values_shown = f"{name}: {written[first[label]]} there, {written[row]} here"
        what = f"stands in row {first[label]} as well, with other values ({values_shown}): keep one of them"
        sheet.findings.refuse(sheet.place(row, "backbone"), what, label)


def _content(
    sheet: Sheet, row: int, scores: Mapping[str, float], sizes: Mapping[str, Mapping[int, float]]
) -> dict[str, object]:
    """What a row says of its backbone."""
    labels = {name: sheet.table.at[row, name] for name in ("family", "variant")}
    return {**labels, **scores, **{name: rows[row] for name, rows in sizes.items() if row in rows}}


def _as_written(sheet: Sheet, row: int, name: str) -> str:
    """What the file says of a label, a benchmark or a size; sizes stand in one of two columns."""
    title = next((title for title in (f"{name}_b", name) if title in sheet.table), "")
    return sheet.as_written(row, title) if title else ""


def refuse_two_spellings(sheet: Sheet, column: str, noun: str) -> None:
    """Refuse labels that differ in case or hyphens only: they would count as two.

    Parameters
    ----------
    sheet : Sheet
    column : str
    noun : str
        What the labels name, in the plural.
    """
    cells = dict(sheet.cells(column))
    usual = spelled_differently(cells.values())
    for row, label in cells.items():
        if label in usual:
            first = next(r for r, text in cells.items() if text == usual[label])
            what = f"and '{usual[label]}' (row {first}) would be two {noun}: spell both in one way"
            sheet.findings.refuse(sheet.place(row, column), what, label)


def _flag_typos(sheet: Sheet) -> None:
    """Warn of families that differ as a slip of the pen does; they stay two."""
    rows: dict[str, int] = {}
    for row, label in sheet.cells("family"):
        rows.setdefault(label, row)
    for first, second in likely_typos(rows):
        message = (
            f"'{second}' and '{first}' (row {rows[first]}) are two families here; please check the spelling"
        )
        sheet.findings.note("similar-families", sheet.place(rows[second], "family"), message, "warning")


def _assembled(
    sheet: Sheet,
    scores: pd.DataFrame,
    sizes: Mapping[str, Mapping[int, float]],
    benchmarks: list[str],
    unit: str,
) -> TextTable:
    """The two tables of a study, in the order of the file."""
    rows = [int(row) for row in sheet.table.index]
    index = pd.Index([label or "" for label in sheet.table["backbone"]], name="backbone", dtype="str")
    values = scores.pivot(index="row", columns="column", values="value")
    values = values.reindex(index=rows, columns=benchmarks).astype(float)
    text_scores = values.set_axis(index).rename_axis(columns="benchmark")
    backbones = pd.DataFrame(
        {
            "family": [label or "" for label in sheet.table["family"]],
            "variant": [label or "" for label in sheet.table["variant"]],
            **{name: [found.get(row, np.nan) for row in rows] for name, found in sizes.items()},
            "source": list(sheet.table["source"]) if "source" in sheet.table else "",
        },
        index=index,
    )
    if "licence" in sheet.table:
        backbones.insert(len(backbones.columns) - 1, "licence", list(sheet.table["licence"]))
    return TextTable(text_scores, backbones, rows, unit)
