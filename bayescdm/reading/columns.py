"""Which column is which: our names for the user's titles, and what is no benchmark."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher

from bayescdm.reading.cells import is_missing, is_placeholder
from bayescdm.reading.findings import shown
from bayescdm.reading.labels import clean_title, fold
from bayescdm.reading.settings import Settings
from bayescdm.reading.sheets import Sheet

__all__ = [
    "drop_columns_of_words",
    "drop_other_columns",
    "is_average",
    "name_columns",
    "require_columns",
]

#: Titles that often stand for one of ours; suggested, never assumed.
_SYNONYMS = {
    "backbone": ("model", "llm", "languagemodel", "basellm", "basemodel", "modelname", "modelid", "name"),
    "family": ("series", "modelfamily", "group"),
    "variant": ("type", "tuning", "stage", "kind"),
    "recipe": ("method", "training", "setup", "pipeline", "framework"),
    "samples": ("data", "datasize", "nsamples", "numsamples", "d", "size", "trainingsamples", "images"),
    "benchmark": ("task", "dataset", "eval", "metric", "test"),
    "score": ("accuracy", "acc", "value", "result", "performance"),
}
_AVERAGE = re.compile(
    r"(macro|micro|grand|overall|total|text|benchmark|score|acc|accuracy)?"
    r"(avg|average|mean|overall|total|sum|durchschnitt|mittelwert|moyenne|平均|σ)(score|acc|accuracy|rank|all|of)?\d*"
)
#: Columns of public tables that look like scores to a program and are none.
_NO_BENCHMARK = re.compile(
    r"rank|no|id|index|year|date|likes|downloads|precision|architecture|licen[sc]e|n?layers|hiddensize|context(length)?"
    r"|vocabsize|url|link|notes?|comments?|released?|co2(costkg)?|sha|revision"
)


def is_average(title: str) -> bool:
    """Whether a title names an average over benchmarks rather than a benchmark."""
    return _AVERAGE.fullmatch(fold(title)) is not None


def name_columns(sheet: Sheet, known: Sequence[str], settings: Settings) -> None:
    """Leave out columns that the user ignores; rename others where user or spelling say which is which.

    Parameters
    ----------
    sheet : Sheet
    known : sequence of str
        Our names for this kind of file.
    settings : Settings
        `columns` maps our names to titles, `ignore` lists titles.
    """
    ignored = {clean_title(title) for title in settings.ignore}
    for title in [title for title in sheet.table.columns if title in ignored]:
        sheet.drop_column("column-ignored", title, "ignored, as study.toml says")
    for name, title in settings.columns.items():
        wanted = clean_title(title)
        if name in known and wanted in sheet.table and name != wanted:
            if name in sheet.table:
                place = sheet.place(sheet.header_row, wanted)
                sheet.findings.refuse(place, f"is to be '{name}', but there is a column '{name}' as well")
            else:
                sheet.table = sheet.table.rename(columns={wanted: name})
                sheet.titles[name] = wanted
    by_fold = {fold(name): name for name in known}
    for title in list(sheet.table.columns):
        ours = by_fold.get(fold(title))
        if ours is None or title in known:
            continue
        if ours in sheet.table:
            place = sheet.place(sheet.header_row, title)
            sheet.findings.refuse(place, f"and column '{ours}' are spelled alike: rename one")
        else:
            sheet.rename_column("column-matched", title, ours, "same but for case and spaces")


def require_columns(sheet: Sheet, required: Sequence[str], optional: Sequence[str]) -> bool:
    """Record a problem for each column that is missing or misspelt.

    Parameters
    ----------
    sheet : Sheet
    required : sequence of str
        ``"a|b"`` where one of several will do.
    optional : sequence of str
        Known columns that may be missing, unless another title looks much like one of them.

    Returns
    -------
    bool
        Whether all required columns are there.
    """
    missing = [names for names in required if not any(name in sheet.table for name in names.split("|"))]
    known = {*optional, *(name for names in required for name in names.split("|"))}
    others = [title for title in sheet.table.columns if title not in known]
    taken = set()
    for names in missing:
        name = names.split("|")[0]
        title = _likeliest(name, others)
        taken.add(title)
        hint = "add it; the columns are " + ", ".join(f"'{title}'" for title in sheet.table.columns[:12])
        if title:
            hint = f"'{title}' may be it: rename it, or write in study.toml [columns] {name} = \"{title}\""
        listed = " or ".join(f"'{name}'" for name in names.split("|"))
        sheet.findings.refuse(sheet.place(sheet.header_row), f"there is no column {listed}; {hint}")
    for name in optional:
        title = _likeliest(name, [title for title in others if title not in taken], synonyms=False)
        if title and name not in sheet.table:
            hint = f"looks like '{name}': rename it, or list it in study.toml under ignore"
            sheet.findings.refuse(sheet.place(sheet.header_row, title), hint)
    return not missing


def drop_other_columns(sheet: Sheet, known: Sequence[str]) -> None:
    """Leave out, with notes, averages and columns known to be no benchmark."""
    for title in [title for title in sheet.table.columns if title not in known]:
        if is_average(title):
            sheet.drop_column("average-skipped", title, "an average is no benchmark: left out")
        elif _NO_BENCHMARK.fullmatch(fold(title)):
            sheet.drop_column("column-ignored", title, "not a benchmark: left out")


def drop_columns_of_words(sheet: Sheet, known: Collection[str]) -> None:
    """Leave out, with a warning, columns without any figure: they are no benchmarks.

    Parameters
    ----------
    sheet : Sheet
    known : collection of str
        Our columns, which stay.
    """
    for title in [title for title in sheet.table.columns if title not in known]:
        texts = [text for _, text in sheet.cells(title) if not is_missing(text) and not is_placeholder(text)]
        if texts and not any(character.isdigit() for text in texts for character in text):
            what = f"holds no figure (such as {shown(texts[0])}), so it is no benchmark: left out"
            sheet.drop_column("column-ignored", title, what, severity="warning")


def _likeliest(name: str, titles: Sequence[str], *, synonyms: bool = True) -> str:
    """The title that most probably stands for our name; empty when none does."""
    if synonyms:
        for title in titles:
            if fold(title) in _SYNONYMS.get(name, ()):
                return title
    ratios = [(SequenceMatcher(None, fold(name), fold(title)).ratio(), title) for title in titles]
    ratio, title = max(ratios, default=(0.0, ""))
    return title if ratio >= (0.7 if synonyms else 0.85) else ""
