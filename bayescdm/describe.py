"""What was understood of a study: units, volumes, recipes, families, what was left out and what limits it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from bayescdm.errors import Note
from bayescdm.identify import identifiability
from bayescdm.study import VARIANTS, Study
from bayescdm.wording import counted, short_count, study_name

__all__ = ["describe", "family_table", "recipe_table", "recipes_left_out", "summarise"]

#: Notes of one code that are printed one by one; of more, the first and the number.
_PRINTED_NOTES = 20


def summarise(study: Study) -> dict[str, Any]:
    """Return what was understood of a study as plain values, for JSON.

    Parameters
    ----------
    study : Study

    Returns
    -------
    dict
        ``name``, ``simulated``, ``counts``, ``units``, ``volume`` (unit, minimum, maximum, reference, number
        of runs with an unknown one), ``benchmarks`` (what a run's accuracy is, and the text benchmarks with
        their share of missing scores), ``recipes`` and ``families`` (lists of records), ``notes`` (those of
        the study and of `identifiability`).
    """
    runs = study.runs
    known = runs["volume"].dropna()
    missing = study.text_scores.loc[study.scored].isna().mean()
    return {
        "name": study.name,
        "simulated": study.simulated,
        "counts": {
            "backbones": len(study.backbones),
            "backbones_scored": len(study.scored),
            "backbones_with_runs": int(runs["backbone"].nunique()),
            "candidates": len(study.candidates),
            "families": len(study.families),
            "recipes": len(study.recipes),
            "runs": len(runs),
            "runs_fitted": len(study.fitted_runs),
        },
        "units": study.settings.get("units", {}),
        "volume": {
            "unit": study.volume_unit,
            "minimum": float(known.min()) if len(known) else None,
            "maximum": float(known.max()) if len(known) else None,
            "reference": study.volume_ref,
            "unknown_runs": int(runs["volume"].isna().sum()),
        },
        "benchmarks": {
            "accuracy": study.settings.get("benchmarks", "average"),
            "text": [{"benchmark": str(name), "missing": float(share)} for name, share in missing.items()],
        },
        "recipes": recipe_table(study).reset_index().to_dict("records"),
        "families": family_table(study).reset_index().to_dict("records"),
        "notes": [note.to_dict() for note in all_notes(study)],
    }


def recipe_table(study: Study) -> pd.DataFrame:
    """Return what each recipe brings.

    Parameters
    ----------
    study : Study

    Returns
    -------
    DataFrame, one row a recipe
        ``runs``, ``fitted_runs`` (with text scores), ``backbones``, ``benchmarks`` (in its average),
        ``volume_min`` and ``volume_max`` (in the study's unit, NaN where unknown).
    """
    runs = study.runs.assign(fitted=study.runs["backbone"].isin(study.scored))
    by_recipe = runs.groupby("recipe")
    table = pd.DataFrame(
        {
            "runs": by_recipe.size(),
            "fitted_runs": by_recipe["fitted"].sum(),
            "backbones": by_recipe["backbone"].nunique(),
            "volume_min": by_recipe["volume"].min(),
            "volume_max": by_recipe["volume"].max(),
        }
    )
    benchmarks = by_recipe["n_benchmarks"].max() if "n_benchmarks" in runs else 1
    table.insert(3, "benchmarks", benchmarks)
    return table


def family_table(study: Study) -> pd.DataFrame:
    """Return how many backbones of each family and variant the study holds.

    Parameters
    ----------
    study : Study

    Returns
    -------
    DataFrame, one row a family
        ``base``, ``instruct`` (backbones with text scores), ``base_with_runs``, ``instruct_with_runs``, and
        ``runs`` (fitted ones).
    """
    fitted = study.fitted_runs
    backbones = study.backbones.loc[study.scored]
    used = backbones[backbones.index.isin(fitted["backbone"])]
    parts = [
        table.groupby(["family", "variant"])
        .size()
        .unstack(fill_value=0)
        .reindex(columns=VARIANTS, fill_value=0)
        for table in (backbones, used)
    ]
    table = parts[0].join(parts[1].add_suffix("_with_runs")).fillna(0).astype(int)
    table["runs"] = fitted["backbone"].map(study.backbones["family"]).value_counts()
    table = table.fillna({"runs": 0}).astype(int).rename_axis(columns=None)
    return table.sort_values(["runs", "base"], ascending=False, kind="stable")


def recipes_left_out(study: Study) -> list[str]:
    """Say which recipes have no run that informs the law, so that nobody wonders about two numbers.

    Parameters
    ----------
    study : Study

    Returns
    -------
    list of str
        One sentence, or none.
    """
    out = sorted(set(study.recipes) - set(study.fitted_runs["recipe"]))
    if not out:
        return []
    whose = "its runs stand" if len(out) == 1 else "their runs stand"
    return [
        f"{len(out)} of the study's {counted(len(study.recipes), 'recipe')} cannot inform the law, since "
        f"{whose} on backbones without text scores: {', '.join(out)}."
    ]


def all_notes(study: Study) -> list[Note]:
    """Notes of a study and of what it cannot tell, each once."""
    return list(dict.fromkeys([*study.notes, *identifiability(study)]))


def describe(study: Study) -> str:
    """Return what was understood of a study, as text for a terminal.

    Parameters
    ----------
    study : Study

    Returns
    -------
    str

    Examples
    --------
    >>> from bayescdm.datasets import load_dataset
    >>> print(describe(load_dataset("open-vlm")).splitlines()[0])
    open-vlm: 88 runs of 34 recipes on 44 of 152 backbones, 38 families
    """
    summary = summarise(study)
    counts = summary["counts"]
    lines = [
        f"{study_name(study.name, simulated=study.simulated)}: {counted(counts['runs'], 'run')} of "
        f"{counted(counts['recipes'], 'recipe')} on {counts['backbones_with_runs']} of "
        f"{counted(counts['backbones'], 'backbone')}, {counted(counts['families'], 'family')}",
        f"  {counted(counts['runs_fitted'], 'run')} of "
        f"{counted(study.fitted_runs['recipe'].nunique(), 'recipe')} inform the law; "
        f"{counted(counts['backbones_scored'], 'backbone')} have text scores, {counts['candidates']} of them "
        "no run (candidates)",
        *(f"  {sentence}" for sentence in recipes_left_out(study)),
        *_unit_lines(summary),
        "",
        "Recipes",
        *_table_lines(_readable_recipes(study)),
        "",
        "Families (backbones with text scores; of these, with runs)",
        *_table_lines(_readable_families(study)),
    ]
    for severity, title in (("note", "What was done, and what to know"), ("warning", "Warnings")):
        notes = [note for note in all_notes(study) if note.severity == severity]
        if notes:
            lines += ["", title, *_note_lines(notes)]
    return "\n".join(lines)


def _unit_lines(summary: dict[str, Any]) -> list[str]:
    """Units, volumes and benchmarks, a line each."""
    units, volume = summary["units"], summary["volume"]
    lines = []
    if units:
        lines.append(
            f"  units: text scores in {units['text_scores']}, runs in {units['runs']}; fractions inside"
        )
    if volume["minimum"] is None:
        lines.append(f"  volumes in {volume['unit']}: none is known")
    else:
        unknown = f"; unknown for {counted(volume['unknown_runs'], 'run')}" if volume["unknown_runs"] else ""
        lines.append(
            f"  volumes in {volume['unit']}: {volume['minimum']:,.0f} to {volume['maximum']:,.0f}, "
            f"D_ref {volume['reference']:,.0f}{unknown}"
        )
    text = [
        entry["benchmark"] + (f" ({entry['missing']:.0%} missing)" if entry["missing"] else "")
        for entry in summary["benchmarks"]["text"]
    ]
    lines.append(f"  text benchmarks: {', '.join(text)}")
    asked = summary["benchmarks"]["accuracy"]
    asked = asked if isinstance(asked, str) else ", ".join(asked)
    meaning = {
        "average": "average over the benchmarks that the runs of a recipe share",
        "accuracy": "as the column accuracy gives it",
    }
    lines.append(f"  accuracy of a run: {meaning.get(asked, asked)}")
    return lines


def _readable_recipes(study: Study) -> pd.DataFrame:
    """The table of recipes with volumes in words."""
    table = recipe_table(study)
    table["volume"] = [
        "unknown"
        if np.isnan(low)
        else short_count(low)
        if low == high
        else f"{short_count(low)}–{short_count(high)}"
        for low, high in zip(table.pop("volume_min"), table.pop("volume_max"))
    ]
    return table.rename(columns={"fitted_runs": "informing"})


def _readable_families(study: Study) -> pd.DataFrame:
    """The table of families with both counts in one column a variant."""
    table = family_table(study)
    columns = {v: [f"{n} ({used})" for n, used in zip(table[v], table[f"{v}_with_runs"])] for v in VARIANTS}
    return pd.DataFrame({**columns, "runs": table["runs"]}, index=table.index)


def _table_lines(table: pd.DataFrame) -> list[str]:
    """A frame as indented lines, its index as the first column."""
    columns = [[str(label) for label in table.index], *(table[name].astype(str).tolist() for name in table)]
    titles = ["", *table.columns]
    widths = [max(map(len, [title, *cells]), default=0) for title, cells in zip(titles, columns)]
    rows = [titles, *zip(*columns)]
    return [
        (
            "  " + row[0].ljust(widths[0]) + "".join("  " + c.rjust(w) for c, w in zip(row[1:], widths[1:]))
        ).rstrip()
        for row in rows
    ]


def _note_lines(notes: list[Note]) -> list[str]:
    """Notes by code; many of one code are cut to the first ones and their number."""
    by_code: dict[str, list[Note]] = {}
    for note in notes:
        by_code.setdefault(note.code, []).append(note)
    lines = []
    for code, same in by_code.items():
        for note in same[:_PRINTED_NOTES]:
            where = f"{note.where}: " if note.where else ""
            lines.append(f"  [{code}] {where}{note.message}")
        if len(same) > _PRINTED_NOTES:
            lines.append(f"  [{code}] … and {len(same) - _PRINTED_NOTES} more (all with --json)")
    return lines
