"""``study.toml``: what the files of a study do not say themselves."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from bayescdm.reading.findings import Findings, Place
from bayescdm.reading.labels import clean_title, nearest

__all__ = ["Settings", "check_names", "read_settings"]

UNITS = ("percent", "fraction")
#: Names that a title can be mapped to, in either file.
OUR_COLUMNS = (
    *(
        "backbone",
        "family",
        "variant",
        "params_b",
        "params",
        "active_params_b",
        "active_params",
        "text_tokens",
    ),
    *("recipe", "vision_encoder", "vlm", "samples", "tokens", "volume", "benchmark", "score", "accuracy"),
    *("standard_error", "source"),
)
_SCALES = {"": 1, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_table(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


#: Key → what its value must be, as a test and in words.
_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("name", "recipe", "benchmark"), (_is_text, "a text")),
    **dict.fromkeys(("recipe_columns", "ignore"), (_are_texts, "a list of texts")),
    **dict.fromkeys(("columns", "units", "column_units"), (_is_table, "a table of texts")),
    "groups": (
        lambda x: isinstance(x, dict) and all(map(_are_texts, x.values())),
        "a table of lists of texts",
    ),
    "volume_ref": (_is_number, "a number above 0"),
    "simulated": (lambda x: isinstance(x, bool), "true or false"),
}


@dataclass(frozen=True)
class Settings:
    """How to read the files of a study.

    Parameters
    ----------
    name : str, optional
        Name of the study; the folder's name when not given.
    recipe : str, optional
        The one recipe of all runs, when the file has no column for it.
    recipe_columns : tuple of str
        Columns of the runs file that together name a recipe.
    ignore : tuple of str
        Columns that are neither benchmarks nor anything else.
    columns : mapping of str to str
        Our column name → title in the files.
    text_unit, run_unit : str, optional
        ``percent`` or ``fraction``; found from the figures when not given.
    column_units : mapping of str to str
        Benchmark → its unit, where it differs.
    volume_unit : str, optional
        What data volumes count, such as ``samples``.
    volume_scale : Decimal
        What a bare figure in the volume column is multiplied by.
    benchmark : str, optional
        ``average``, a benchmark or a group: what a run's accuracy is.
    groups : mapping of str to list of str
        Named groups of benchmarks.
    volume_ref : float, optional
        D_ref, an absolute count.
    simulated : bool
        Whether the figures were drawn from known parameters, those in ``truth.json``.
    """

    name: str | None = None
    recipe: str | None = None
    recipe_columns: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    text_unit: str | None = None
    run_unit: str | None = None
    column_units: Mapping[str, str] = field(default_factory=dict)
    volume_unit: str | None = None
    volume_scale: Decimal = Decimal(1)
    benchmark: str | None = None
    groups: Mapping[str, list[str]] = field(default_factory=dict)
    volume_ref: float | None = None
    simulated: bool = False


def read_settings(path: Path, findings: Findings) -> Settings:
    """Read ``study.toml``; the defaults where there is none.

    Parameters
    ----------
    path : Path
        Need not exist.
    findings : Findings
        Takes problems.

    Returns
    -------
    Settings
    """
    if not path.exists():
        return Settings()
    place = Place(path.name)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        findings.refuse(place, "is not UTF-8: save it as UTF-8")
        return Settings()
    except tomllib.TOMLDecodeError as error:
        findings.refuse(place, f"is not valid TOML: {error}")
        return Settings()
    given = {key: value for key, value in found.items() if _is_valid(key, value, place, findings)}
    units = _choices(given.get("units", {}), ("text_scores", "runs", "volume"), "units", place, findings)
    for key in ("text_scores", "runs"):
        _check_choice(units.get(key), UNITS, f"units.{key}", place, findings)
    for column, unit in given.get("column_units", {}).items():
        _check_choice(unit, UNITS, f"column_units.{column}", place, findings)
    scale, noun = _volume_unit(units.get("volume"), place, findings)
    return Settings(
        name=given.get("name"),
        recipe=given.get("recipe"),
        recipe_columns=tuple(given.get("recipe_columns", ())),
        ignore=tuple(given.get("ignore", ())),
        columns=given.get("columns", {}),
        text_unit=units.get("text_scores"),
        run_unit=units.get("runs"),
        column_units=given.get("column_units", {}),
        volume_unit=noun,
        volume_scale=scale,
        benchmark=given.get("benchmark"),
        groups=given.get("groups", {}),
        volume_ref=given.get("volume_ref"),
        simulated=given.get("simulated", False),
    )


def check_names(
    settings: Settings, titles: Collection[str], benchmarks: Collection[str], place: Place, findings: Findings
) -> None:
    """Record a problem for each title and benchmark in study.toml that the files do not have.

    Parameters
    ----------
    settings : Settings
    titles : collection of str
        All titles of both files, cleaned.
    benchmarks : collection of str
        Text benchmarks and multimodal ones.
    place : Place
        Of ``study.toml``.
    findings : Findings
        Takes problems; benchmarks of a group that no run has are a note.
    """
    for key, named in (("columns", settings.columns.values()), ("ignore", settings.ignore)):
        for title in named:
            if clean_title(title) not in titles:
                findings.refuse(
                    place, f"is under '{key}', but no column of the files; {nearest(title, titles)}", title
                )
    for name in settings.columns:
        if name not in OUR_COLUMNS and name not in settings.recipe_columns:
            what = f"is under 'columns', but no column that we know; {nearest(name, OUR_COLUMNS)}"
            findings.refuse(place, what, name)
    for name in settings.column_units:
        if name not in benchmarks:
            what = f"is under 'column_units', but no benchmark of the files; {nearest(name, benchmarks)}"
            findings.refuse(place, what, name)
    for group, names in settings.groups.items():
        if absent := [name for name in names if name not in benchmarks]:
            message = f"group '{group}' holds {', '.join(absent)}, which no run has"
            findings.note("group-without-benchmark", place, message, "warning")


def _is_valid(key: str, value: Any, place: Place, findings: Findings) -> bool:
    """Whether a key is known and its value of the right kind; otherwise a problem."""
    if key not in _KEYS:
        findings.refuse(place, f"does not know the key '{key}'; {nearest(key, _KEYS)}")
        return False
    test, words = _KEYS[key]
    if not test(value):
        findings.refuse(place, f"is not what '{key}' needs: {words}", str(value))
    return test(value)


def _choices(
    table: dict[str, str], keys: tuple[str, ...], name: str, place: Place, findings: Findings
) -> dict[str, str]:
    """The table, without keys that it does not know; those are problems."""
    for key in table:
        if key not in keys:
            findings.refuse(place, f"does not know the key '{name}.{key}'; {nearest(key, keys)}")
    return {key: value for key, value in table.items() if key in keys}


def _check_choice(
    value: str | None, choices: tuple[str, ...], key: str, place: Place, findings: Findings
) -> None:
    """Record a problem when a given value is none of the choices."""
    if value is not None and value not in choices:
        findings.refuse(place, f"is no value for '{key}': write {' or '.join(map(repr, choices))}", value)


def _volume_unit(text: str | None, place: Place, findings: Findings) -> tuple[Decimal, str | None]:
    """Scale and noun of a unit such as ``million samples``."""
    if text is None:
        return Decimal(1), None
    match = re.fullmatch(r"(?:(thousand|million|billion|trillion) )?([a-z][a-z -]*)", text.strip().casefold())
    if match is None:
        findings.refuse(place, "is no unit of volume: write 'samples', 'million samples' or the like", text)
        return Decimal(1), None
    return Decimal(_SCALES[match[1] or ""]), match[2]
