"""Loss logs as users export them, read into a LossStudy and prepared as the paper does.

Three layouts: *long* (a row a logged loss, with a run column), *wide* (a column a run, as W&B exports a
panel), and a folder of *one file a run* (as TensorBoard exports). What a run is (family, parameters, tokens a
step) stands in the log itself or in a table ``runs.csv``.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd

from bayescdm.errors import InputError, Note, NotFoundError, RequestError
from bayescdm.loss.scope import Scope, architecture_not_stated
from bayescdm.loss.study import SMALLEST_PARAMS, SMALLEST_VOLUME, LossStudy
from bayescdm.reading import parse_count

__all__ = ["prepare_logs", "read_cells", "read_loss_logs", "thin_logs"]

#: Titles that a column is known by, lower case, every run of other characters than letters and digits as "_".
TITLES = {
    "run": ("run", "run_name", "run_id", "name", "experiment", "model"),
    "step": ("step", "global_step", "trainer_global_step", "train_global_step", "iteration", "iter", "steps"),
    "loss": ("loss", "train_loss", "training_loss", "lm_loss", "train_lm_loss", "value"),
    "volume": (
        "volume", "tokens", "tokens_seen", "num_tokens", "train_tokens", "train_tokens_seen",
        "consumed_tokens", "num_input_tokens_seen", "train_num_input_tokens_seen", "samples", "samples_seen",
        "consumed_samples",
    ),
    "family": ("family",),
    "backbone": ("backbone", "llm"),
    "params": ("params", "parameters", "n_params", "num_params", "size", "model_size"),
    "volume_per_step": ("volume_per_step", "tokens_per_step", "samples_per_step", "batch_tokens"),
}  # fmt: skip
#: What W&B adds to a panel beside each run's own column.
EXTREMES = ("__MIN", "__MAX")
#: What loggers write for no value, and for the loss of a run that diverged.
EMPTY = ("", "null", "none", "na", "n/a", "<na>")
NOT_FINITE = ("nan", "-nan", "inf", "+inf", "-inf", "infinity", "-infinity")
#: Columns that reading adds: the run that a file's name tells, and the title that a panel's loss stood under.
RUN_OF_FILE = "run of file"
TITLE_OF_LOSS = "title of loss"
#: What users call our columns; the titles that files are known by are in `TITLES`.
OTHER_NAMES = {
    "tokens": "volume",
    "samples": "volume",
    "tokens_per_step": "volume_per_step",
    "samples_per_step": "volume_per_step",
}
RUN_COLUMNS = ("family", "backbone", "params", "volume_per_step")


def read_loss_logs(
    path: str | Path,
    *,
    runs: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    scope: Scope | None = None,
) -> LossStudy:
    """Read training-loss logs.

    Parameters
    ----------
    path : str or Path
        A CSV in long or wide layout, or a folder of CSVs, one a run. A long table has a run, a loss and a
        step or volume column; a wide one has a step column and a column a run.
    runs : str or Path, optional
        CSV with ``run``, ``family``, ``params`` (absolute, ``7B`` is read), and where they are known
        ``backbone`` and ``tokens_per_step``. By default ``runs.csv`` beside the logs, if there is one.
    columns : mapping, optional
        Title in the file by our name (``step``, ``loss``, ``run``, ``volume`` or ``tokens``, …) where they
        differ from the usual ones.
    scope : Scope, optional
        What the runs were; by default a multimodal training loss with the ranges of these runs.

    Returns
    -------
    LossStudy
        Unprepared: see `prepare_logs`.

    Raises
    ------
    NotFoundError
        When there is no such file.
    InputError
        All problems at once: columns that are missing or named twice, cells that are no number, runs without
        family or parameters, counts that are not absolute, losses without tokens.
    """
    path = Path(path)
    if not path.exists():
        raise NotFoundError(f"{path}: there is no such file or folder")
    runs_path = Path(runs) if runs else (path if path.is_dir() else path.parent) / "runs.csv"
    table = read_cells(runs_path) if runs or runs_path.is_file() else None
    given = _our_names(columns or {})
    logs = _Logs()
    logs.samples = {title for name, title in (columns or {}).items() if name.startswith("samples")}
    if path.is_dir():
        files = sorted(file for file in path.glob("*.csv") if file.resolve() != runs_path.resolve())
        if not files:
            raise NotFoundError(f"{path}: the folder has no CSV of a run")
        for file in files:
            logs.add(read_cells(file), file.name, given, run=_run_of_file(file))
    else:
        logs.add(read_cells(path), path.name, given)
    if logs.problems:
        raise InputError(_once(logs.problems, logs.files))
    points = pd.concat(logs.tables, ignore_index=True)
    described = _describe_runs(points, table, runs_path, given, logs)
    points = _without_untrained(_with_volume(points, described, logs), logs)
    logs.problems += _out_of_range(points)
    unit = logs.unit()
    if logs.problems:
        raise InputError(logs.problems)
    points = _in_order(points, logs)
    return LossStudy(
        name=path.stem,
        runs=described.drop(columns="volume_per_step", errors="ignore"),
        points=points[[c for c in ("run", "step", "volume", "loss") if c in points]],
        scope=scope or _scope_of(described, points, unit, path.name),
        notes=tuple(logs.notes),
    )


def _once(problems: list[str], files: list[str]) -> list[str]:
    """Say once what is wrong with several files alike, as with those of one logger."""
    same: dict[str, list[str]] = {}
    for problem in problems:
        file = next((file for file in files if problem.startswith(f"{file}: ")), "")
        same.setdefault(problem.removeprefix(f"{file}: "), []).append(file)
    told = []
    for what, where in same.items():
        rest = "" if len(where) == 1 else f" and {len(where) - 1} more file{'s' * (len(where) > 2)}"
        told.append(f"{where[0]}{rest}: {what}" if where[0] else what)
    return told


def _our_names(columns: Mapping[str, str]) -> dict[str, str]:
    """Titles by our names of the columns; one that is named twice is refused."""
    given: dict[str, str] = {}
    for name, title in columns.items():
        ours = OTHER_NAMES.get(name, name)
        if ours in given:
            raise RequestError(f"column '{ours}' is named twice: '{given[ours]}' and '{title}'")
        given[ours] = title
    return given


def _option(name: str, title: str) -> str:
    """Option of the command that names a column, as it can be pasted into a shell."""
    return f"--column {shlex.quote(f'{name}={title}')}"


@dataclass
class _Logs:
    """What was gathered while reading: tables in long layout, problems and notes."""

    def __post_init__(self) -> None:
        self.tables: list[pd.DataFrame] = []
        self.problems: list[str] = []
        self.notes: list[Note] = []
        self.files: list[str] = []
        #: Columns that were taken for a run each.
        self.panel: list[str] = []
        #: Titles that are no column of ours; asked for when one is missing.
        self.free: list[str] = []
        #: Titles that the user says count samples, and what says tokens and what says samples.
        self.samples: set[str] = set()
        self.units: dict[str, str] = {}
        #: Runs whose description is refused: what follows from that is no second fault.
        self.faulty: set[str] = set()

    def counts(self, found: Mapping[str, str], file: str) -> None:
        """Note whether columns of a file count tokens or samples; no unit is the other."""
        for title in (found[name] for name in ("volume", "volume_per_step") if name in found):
            unit = "samples" if title in self.samples or "sample" in _plain(title) else "tokens"
            self.units.setdefault(unit, f"{file}, column '{title}'")

    def unit(self) -> str:
        """Unit of the volume; a problem where two columns disagree."""
        if len(self.units) > 1:
            said = " and ".join(f"{where} counts {unit}" for unit, where in self.units.items())
            self.problems.append(f"{said}: which are different units; leave one of the columns out")
        return next(iter(self.units), "tokens")

    def add(self, table: pd.DataFrame, file: str, given: Mapping[str, str], run: str | None = None) -> None:
        """Take one file, in whichever layout it is."""
        self.files.append(file)
        try:
            found = _find_columns(table, file, given)
        except InputError as error:
            self.problems += error.problems
            return
        if run is not None and "run" not in found and not _is_panel(table, found):
            table, found = table.assign(**{RUN_OF_FILE: run}), {**found, "run": RUN_OF_FILE}
        if "loss" not in found and "run" not in found and "step" in found:
            table, found = self._long_from_wide(table, found, file)
        missing = [name for name in ("run", "loss") if name not in found]
        if "step" not in found and "volume" not in found:
            missing.append("step")
        if missing:
            titles = [str(c) for c in table if c != RUN_OF_FILE]
            free = [title for title in titles if title not in found.values()]
            self.problems += [
                f"{file}: no column for {name}; the columns are {', '.join(titles)}; "
                f"name yours with columns={{'{name}': '{near}'}} ({_option(name, near)})"
                for name in missing
                for near in [_nearest_title(name, free) or "TITLE"]
            ]
            return
        self.free += [str(c) for c in table if str(c) not in (*found.values(), *self.free)]
        out = pd.DataFrame(
            {"run": table[found["run"]].astype(str).str.strip(), "row": table.index + 2, "file": file}
        )
        titles_of_loss = table.get(TITLE_OF_LOSS, pd.Series(found["loss"], index=table.index))
        for name in ("step", "volume"):
            if name in found:
                titles_of_it = pd.Series(found[name], index=table.index)
                counts = name == "volume"
                out[name] = self._numbers(table[found[name]], file, titles_of_it, counts=counts)
        self.counts(found, file)
        if "volume" in found:
            out["title_of_volume"] = found["volume"]
        out["loss"] = self._numbers(table[found["loss"]], file, titles_of_loss)
        # A run that diverged logs its losses as NaN; a row of another metric leaves the cell empty.
        out["diverged"] = table[found["loss"]].str.strip().str.casefold().isin(NOT_FINITE).fillna(False)
        for name in RUN_COLUMNS:
            if name in found:
                out[name] = table[found[name]]
        self.tables.append(self._without_blanks(out, file))

    def _long_from_wide(
        self, table: pd.DataFrame, found: dict[str, str], file: str
    ) -> tuple[pd.DataFrame, dict[str, str]]:
        """Melt a column a run; W&B's extremes and step columns are left out."""
        dropped = [c for c in table if str(c).endswith(EXTREMES)]
        if dropped:
            message = f"{len(dropped)} columns of smallest and largest values were left out"
            self.notes.append(Note("extremes-left-out", message, where=file))
        own = [c for c in table if c not in dropped and c not in found.values()]
        own = [c for c in own if not str(c).endswith((" - _step", " - step"))]
        metrics = {str(c).rsplit(" - ", 1)[1] for c in own if " - " in str(c)}
        if len(metrics) > 1:
            names = ", ".join(sorted(metrics))
            self.problems.append(f"{file}: several metrics ({names}); export the loss alone")
        keep = [found[name] for name in ("step", "volume") if name in found]
        self.panel += map(str, own)
        rows = table.melt(id_vars=keep, value_vars=own, var_name=TITLE_OF_LOSS, value_name="loss")
        rows["run"] = rows[TITLE_OF_LOSS].astype(str).str.rsplit(" - ", n=1).str[0]
        rows.index = pd.Index(np.tile(table.index, len(own)))
        return rows, {**{n: found[n] for n in ("step", "volume") if n in found}, "run": "run", "loss": "loss"}

    def _numbers(self, column: pd.Series, file: str, titles: pd.Series, *, counts: bool = False) -> pd.Series:
        """Numbers of a column, or counts such as 10M; NaN where empty; a problem for each other cell."""
        text = column.astype("string").str.strip()
        values = pd.to_numeric(text, errors="coerce")
        blank = text.isna() | text.str.casefold().isin([*EMPTY, *NOT_FINITE])
        wrong = (values.isna() & ~blank).to_numpy()
        values = values.astype(float)
        if counts and wrong.any():
            values[wrong] = [_count_or_nan(cell) for cell in text[wrong]]
            wrong = (values.isna() & ~blank).to_numpy()
        cells = pd.DataFrame({"line": text.index[wrong] + 2, "cell": text[wrong], "title": titles[wrong]})
        for title, rows in cells.groupby("title", sort=False):
            line, cell = rows.iloc[0][["line", "cell"]]
            more = "" if len(rows) == 1 else f", and so are {len(rows) - 1} more of its cells"
            what = "a count such as 10M or 1e7" if counts else "a number"
            self.problems.append(f"{file}, row {line}, column '{title}': '{cell}' is not {what}{more}")
        return values

    def _without_blanks(self, table: pd.DataFrame, file: str) -> pd.DataFrame:
        """Rows that logged another metric have no loss; losses that are not finite are told."""
        diverged = table["diverged"].to_numpy(bool) | np.isinf(table["loss"].to_numpy())
        if diverged.any():
            where = _runs_and_steps(table[diverged])
            subject = "1 loss is" if diverged.sum() == 1 else f"{diverged.sum()} losses are"
            left = "was" if diverged.sum() == 1 else "were"
            message = f"{subject} not finite ({where}) and {left} left out: did the run diverge?"
            self.notes.append(Note("loss-not-finite", message, "warning", file))
        empty = table["loss"].isna().to_numpy() & ~diverged
        if empty.any():
            subject = "1 row has" if empty.sum() == 1 else f"{empty.sum()} rows have"
            self.notes.append(Note("rows-without-loss", f"{subject} no loss", where=file))
        return table[~empty & ~diverged].drop(columns="diverged")


def _runs_and_steps(rows: pd.DataFrame, most: int = 3) -> str:
    """Write which runs at which steps or lines, a few of each."""
    by = "step" if "step" in rows and rows["step"].notna().all() else "row"
    parts = []
    for run, at in rows.groupby("run", sort=False)[by]:
        named = ", ".join(f"{value:g}" for value in at.iloc[:most])
        more = f" and {len(at) - most} more" if len(at) > most else ""
        parts.append(f"run '{run}' at {by}{'s' if len(at) > 1 else ''} {named}{more}")
    rest = f"; and {len(parts) - most} more runs" if len(parts) > most else ""
    return "; ".join(parts[:most]) + rest


def _nearest_title(name: str, titles: list[str]) -> str | None:
    """Column that is most likely meant, or None."""
    plain = {_plain(title): title for title in titles}
    near = [match for known in TITLES[name] for match in get_close_matches(known, plain, n=1, cutoff=0.7)]
    near += [title for title in plain if name in title]
    return plain[near[0]] if near else None


def read_cells(path: Path) -> pd.DataFrame:
    """Read a CSV with all cells as text, so that nothing is guessed.

    Parameters
    ----------
    path : Path

    Returns
    -------
    DataFrame
        Without empty lines; row r stands in line r + 2 of the file.

    Raises
    ------
    NotFoundError
        There is no such file.
    InputError
        It is no CSV with commas.
    """
    if not path.is_file():
        raise NotFoundError(f"{path}: there is no such file")
    try:
        text = path.read_text(encoding="utf-8-sig")
        above = len(text) - len(text.lstrip("\r\n"))
        blank = len(text[:above].splitlines())
        _check_shape(text[above:], blank, path.name)
        table = pd.read_csv(
            StringIO(text),
            dtype="string",
            skipinitialspace=True,
            skiprows=blank,
            skip_blank_lines=False,
            keep_default_na=False,
            na_values=[""],
        )
        # Lines without a cell go, and the others keep the number of theirs: row r stands in line r + 2.
        table.index = table.index + blank
        return table.dropna(how="all")
    except UnicodeDecodeError as error:
        byte = f"0x{error.object[error.start]:02X}"
        raise InputError(
            f"{path.name}: holds the byte {byte}, which is not UTF-8: save it as CSV UTF-8"
        ) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, csv.Error) as error:
        why = " ".join(str(error).removeprefix("Error tokenizing data. C error: ").split())
        raise InputError(f"{path.name}: cannot be read as a CSV ({why})") from None


def _check_shape(text: str, above: int, file: str) -> None:
    """Refuse other separators, titles that stand twice and rows with more cells than there are titles."""
    rows = csv.reader(StringIO(text), skipinitialspace=True)
    titles = next(rows, [])
    for mark, called in ((";", "semicolons"), ("\t", "tabs")):
        if len(titles) == 1 and mark in titles[0]:
            raise InputError(f"{file}: its columns are separated by {called}; export it with commas")
    twice = [f"'{title}'" for title, times in Counter(titles).items() if times > 1 and title]
    if twice:
        raise InputError(f"{file}: column {', '.join(twice)} stands there more than once")
    for cells in rows:
        if len(cells) > len(titles):
            raise InputError(
                f"{file}, row {rows.line_num + above}: {len(cells)} cells under {len(titles)} titles; the "
                f"first without one is '{cells[len(titles)]}'"
            )


def _plain(title: str) -> str:
    """Lower case, with one underscore for whatever stands between words."""
    return re.sub(r"[^a-z0-9]+", "_", str(title).casefold()).strip("_")


def _find_columns(table: pd.DataFrame, file: str, given: Mapping[str, str]) -> dict[str, str]:
    """Title of each known column in the file; one that could be two things is refused."""
    found: dict[str, str] = {}
    problems = []
    for name, titles in TITLES.items():
        if name in given:
            if given[name] in table:
                found[name] = given[name]
            elif name not in RUN_COLUMNS:
                problems.append(f"{file}: there is no column '{given[name]}' for {name}")
            continue
        matches = [str(c) for c in table.columns if _plain(str(c)) in titles]
        if len(matches) > 1:
            names = "' and '".join(matches)
            each = " or ".join(_option(name, title) for title in matches)
            problems.append(f"{file}: columns '{names}' could each be the {name}; say which it is: {each}")
        elif matches:
            found[name] = matches[0]
    for name in given:
        if name not in TITLES:
            problems.append(f"'{name}' is no column of a log; known are {', '.join(TITLES)}")
    if problems:
        raise InputError(problems)
    return found


def _is_panel(table: pd.DataFrame, found: Mapping[str, str]) -> bool:
    """Whether a file in a folder is a panel of several runs, as W&B titles them, and no log of one run."""
    return "loss" not in found and "step" in found and any(" - " in str(title) for title in table)


def _run_of_file(file: Path) -> str:
    """Name of the run in a TensorBoard export such as ``run-falcon-1b_train-tag-loss.csv``."""
    return re.sub(r"^run-", "", re.sub(r"-tag-.*$", "", file.stem))


def _describe_runs(
    points: pd.DataFrame, table: pd.DataFrame | None, path: Path, given: Mapping[str, str], logs: _Logs
) -> pd.DataFrame:
    """Family, parameters and tokens a step of each run, from its own log or from the table of runs."""
    labels = pd.Index(points["run"].unique(), name="run")
    if not len(labels):
        why = "".join(f"; {note.message}" for note in logs.notes if note.code == "loss-not-finite")
        raise InputError(f"{' and '.join(logs.files)}: no row with a loss; there is nothing to fit{why}")
    told: set[tuple[str, str]] = set()
    inside = [c for c in RUN_COLUMNS if c in points]
    described = points.groupby("run", sort=False)[inside].agg(_only) if inside else pd.DataFrame(index=labels)
    if table is None and not {"family", "params"} <= set(inside):
        raise InputError(_no_table(points, labels, path, logs))
    for name in inside:
        for run in described.index[[isinstance(v, list) for v in described[name]]]:
            values = ", ".join(map(str, described[name][run]))
            logs.problems.append(f"run '{run}': {name} differs between its rows ({values}); a run has one")
            described.loc[run, name] = pd.NA
            told.add((run, name))
    if table is not None:
        found = _find_columns(
            table, path.name, {k: v for k, v in given.items() if k in (*RUN_COLUMNS, "run")}
        )
        if "run" not in found:
            raise InputError(f"{path.name}: no column 'run' that names the runs")
        logs.counts(found, path.name)
        of_run = table.set_index(table[found["run"]].str.strip())
        if logs.panel and not labels.isin(of_run.index).any():
            raise InputError(_no_run_of_panel(path.name, logs))
        for run in of_run.index[of_run.index.duplicated()].unique():
            logs.problems.append(f"{path.name}: run '{run}' occurs more than once")
        of_run = of_run[~of_run.index.duplicated()]
        silent = of_run.index.dropna().difference(labels, sort=False)
        if len(silent):
            named = ", ".join(f"'{run}'" for run in silent[:5]) + (", …" if len(silent) > 5 else "")
            subject = (
                "1 run has a row and no loss"
                if len(silent) == 1
                else f"{len(silent)} runs have a row and no loss"
            )
            logs.notes.append(Note("runs-without-log", f"{subject}: {named}", "warning", path.name))
        unknown = labels.difference(of_run.index, sort=False)
        for run in unknown:
            logs.problems.append(f"{path.name}: run '{run}' has losses but no row here")
            logs.faulty.add(run)
        for name in RUN_COLUMNS:
            if name in found:
                described[name] = of_run[found[name]].reindex(labels)
    else:
        unknown, found = labels[:0], {}
    described = described.reindex(labels)
    where = {name: f"{path.name}, column '{title}'" for name, title in found.items()}
    for name in ("family", "params"):
        if name not in described:
            logs.problems.append(f"{path.name}: no column '{name}', which every run needs")
            continue
        for run in labels[described[name].isna()].difference(unknown, sort=False):
            if (run, name) in told:
                continue
            logs.problems.append(f"run '{run}': its {name} is not stated; add it to {path.name}")
    for name in ("params", "volume_per_step"):
        if name in described:
            cells = described[name].items()
            described[name] = [_count(cell, name, run, where.get(name, name), logs) for run, cell in cells]
    return described


def _no_table(points: pd.DataFrame, labels: pd.Index, path: Path, logs: _Logs) -> str:
    """Say in one line which table is missing, what belongs into it, and what else may be wrong."""
    columns = ["run", "family", "params"] + ["tokens_per_step"] * ("volume" not in points)
    runs = ", ".join(f"'{run}'" for run in labels[:3]) + (", …" if len(labels) > 3 else "")
    hint = _hint_of_panel(logs)
    rows = "a row for the one run" if len(labels) == 1 else f"a row for each of the {len(labels)} runs"
    return (
        f"{path}: there is no such table, and the logs do not say what their runs are; write it with the "
        f"columns {','.join(columns)} and {rows} ({runs}), or name another with --runs{hint}"
    )


def _no_run_of_panel(file: str, logs: _Logs) -> str:
    """Say that columns taken for runs are none of the runs described."""
    named = ", ".join(f"'{title}'" for title in logs.panel[:3]) + (", …" if len(logs.panel) > 3 else "")
    return f"{file}: none of the columns that were read as a run each ({named}) has a row here" + (
        _hint_of_panel(logs) or "; name the runs there as the columns are titled"
    )


def _hint_of_panel(logs: _Logs) -> str:
    """What to do when a column taken for a run is the loss itself."""
    near = _nearest_title("loss", [title for title in logs.panel if " - " not in title])
    return f"; if '{near}' is the loss and no run, say {_option('loss', near)}" if near else ""


def _only(values: pd.Series) -> object:
    """The one value of a column within a run; a list of them where they differ."""
    known = values.dropna().unique()
    return pd.NA if len(known) == 0 else known[0] if len(known) == 1 else list(known)


def _count(cell: object, name: str, run: str, where: str, logs: _Logs) -> float:
    """An absolute count such as 7B; NaN where the cell is empty."""
    if pd.isna(cell) or not str(cell).strip():
        return float("nan")
    try:
        count = parse_count(str(cell))
        if name != "params" or count >= SMALLEST_PARAMS:
            return count
        hint = f"; write {count:g}B or {count:g}e9 for {count:g} billion" if count < 1000 else ""
        logs.problems.append(f"{where}, run '{run}': {count:g} is not an absolute count{hint}")
    except InputError as error:
        logs.problems.append(f"{where}, run '{run}': {error}")
    logs.faulty.add(run)
    return float("nan")


def _count_or_nan(cell: str) -> float:
    """A count with a suffix; NaN where it is none. Nothing seen yet is a count here."""
    if re.fullmatch(r"0+(\.0*)?\s*[KMBT]?", cell, re.IGNORECASE):
        return 0.0
    try:
        return parse_count(cell)
    except InputError:
        return float("nan")


def _with_volume(points: pd.DataFrame, described: pd.DataFrame, logs: _Logs) -> pd.DataFrame:
    """Tokens seen at each point: as logged, or step × tokens a step."""
    volume = points["volume"] if "volume" in points else pd.Series(np.nan, index=points.index)
    unknown = volume.isna()
    if unknown.any() and "volume_per_step" in described and "step" in points:
        volume = volume.fillna(points["step"] * points["run"].map(described["volume_per_step"]).astype(float))
        filled = unknown & volume.notna()
        unit = next(iter(logs.units), "tokens")
        message = f"{unit} of {filled.sum()} points are step × {unit} per step"
        logs.notes.append(Note("volume-from-steps", message))
    untold = points["run"][volume.isna()].unique()
    if "volume" not in points and "volume_per_step" not in described:
        near = _nearest_title("volume", logs.free)
        hint = f"; if '{near}' counts them, say {_option('tokens', near)}" if near else ""
        logs.problems.append(
            f"tokens seen are not logged and no run states its tokens_per_step; add either{hint}"
        )
        untold = []
    for run in [run for run in untold if run not in logs.faulty]:
        logs.problems.append(
            f"run '{run}': tokens seen are neither logged nor known; log them, or state its tokens_per_step"
        )
    return points.assign(volume=volume)


def _losses_were(n: int) -> str:
    return "1 loss was" if n == 1 else f"{n} losses were"


def _without_untrained(points: pd.DataFrame, logs: _Logs) -> pd.DataFrame:
    """Leave out what was logged before any token was seen: no law speaks of D = 0."""
    untrained = (points["volume"] == 0).to_numpy()
    if untrained.any():
        message = f"{_losses_were(untrained.sum())} logged before any token was seen (step 0) and left out"
        logs.notes.append(Note("untrained-left-out", message))
    return points[~untrained]


def _out_of_range(points: pd.DataFrame) -> list[str]:
    """One line a run and fault, with the first line of the file that has it."""
    found = []
    steps = points["step"] if "step" in points else pd.Series(np.nan, index=points.index)
    for run, rows in points[steps < 0].groupby("run", sort=False):
        first = rows.iloc[0]
        more = "" if len(rows) == 1 else f", and so are {len(rows) - 1} more of its rows"
        found.append(
            f"{first['file']}, row {first['row']} (run '{run}'): step {first['step']:g} is negative{more}"
        )
    for name, least in (("volume", SMALLEST_VOLUME), ("loss", 0.0)):
        # Tokens that follow from a negative step are no second fault.
        wrong = points[(points[name] <= least) & ~((steps < 0) & (name == "volume"))]
        for run, rows in wrong.groupby("run", sort=False):
            first = rows.iloc[0]
            more = "" if len(rows) == 1 else f", and so in {len(rows) - 1} more of its rows"
            title, hint = name, ""
            if name == "volume":
                own = first.get("title_of_volume")
                title = name if own is None or pd.isna(own) else f"column '{own}':"
                hint = "; counts are absolute"
                if first[name] > 0:
                    hint += f": write {first[name]:g} million as {first[name]:g}M or {first[name]:g}e6"
            found.append(
                f"{first['file']}, row {first['row']} (run '{run}'): {title} {first[name]:g} is not above "
                f"{least:g}{more}{hint}"
            )
    return found


def _in_order(points: pd.DataFrame, logs: _Logs) -> pd.DataFrame:
    """Points by run and step; of a step logged twice, as after a resumption, the later one counts."""
    by = "step" if "step" in points and points["step"].notna().all() else "volume"
    twice = points.duplicated(["run", by], keep="last")
    if twice.any():
        message = f"{_losses_were(twice.sum())} logged again at the same {by}; the later ones are kept"
        logs.notes.append(Note("logged-twice", message, "warning"))
    runs = pd.Categorical(points["run"], categories=points["run"].unique())
    ordered = points[~twice].assign(_run=runs[~twice]).sort_values(["_run", by], kind="stable")
    return ordered.drop(columns="_run").reset_index(drop=True)


def _scope_of(described: pd.DataFrame, points: pd.DataFrame, unit: str, source: str) -> Scope:
    """Record what is known of users' runs: their ranges."""
    return Scope(
        metric="multimodal training loss",
        architecture=architecture_not_stated(list(dict.fromkeys(described["family"].astype(str)))),
        ranges={
            "params": (float(described["params"].min()), float(described["params"].max())),
            "volume": (float(points["volume"].min()), float(points["volume"].max())),
        },
        units={"metric": "as logged", "params": "parameters", "volume": unit},
        source=source,
    )


def prepare_logs(study: LossStudy, *, first_step: int | None = 1000, window: int | None = 5) -> LossStudy:
    """Drop the early steps and smooth each run, as the paper does; every step of it is told.

    Parameters
    ----------
    study : LossStudy
        With a ``step`` at every point when `first_step` is given.
    first_step : int or None
        Losses logged before this step are dropped; not negative.
    window : int or None
        Logged losses in the centred rolling mean, 1 or more; shorter at the ends of a run.

    Returns
    -------
    LossStudy

    Raises
    ------
    RequestError
        When a first step is asked for and the logs have no steps, or either number means nothing.

    Notes
    -----
    Appendix D, eq. 12, of *What Transfers from Text to Vision?*: early steps go first, then the smoothing.
    """
    if first_step is not None and first_step < 0:
        raise RequestError(f"first step {first_step} is negative: give the first step to keep, or 0 for all")
    if window is not None and window < 1:
        raise RequestError(f"window {window} is no number of losses: give 1 or more to average over")
    if first_step is not None:
        if "step" not in study.points or study.points["step"].isna().any():
            raise RequestError(f"{study.name}: the logs have no steps; keep all points with first_step=None")
        keep = (study.points["step"] >= first_step).to_numpy()
        if not keep.any():
            last = study.points["step"].max()
            raise RequestError(
                f"{study.name}: every loss was logged before step {first_step}, the last at step {last:g}; "
                "first_step=None (--first-step 0) keeps them"
            )
        message = f"{np.sum(~keep)} of {len(keep)} losses logged before step {first_step} were dropped"
        study = study.select_points(keep, Note("early-steps-dropped", message))
        # What was dropped was not fitted: a prediction there is an extrapolation.
        seen = (float(study.volume.min()), float(study.volume.max()))
        scope = replace(study.scope, ranges={**study.scope.ranges, "volume": seen})
        study = replace(study, scope=scope)
    if window is not None:
        order = ["run", "step"] if "step" in study.points else ["run", "volume"]
        points = study.points.sort_values(order, kind="stable")
        rolling = points.groupby("run", sort=False)["loss"].rolling(window, center=True, min_periods=1).mean()
        points = points.assign(loss=rolling.to_numpy())
        message = f"losses are centred rolling means of {window} logged values, fewer at the ends of a run"
        study = replace(study, points=points, notes=(*study.notes, Note("smoothed", message)))
    return study


def thin_logs(study: LossStudy, points_per_run: int = 30) -> LossStudy:
    """Keep a number of points a run, evenly spaced in ln D: neighbouring losses say the same thing.

    Parameters
    ----------
    study : LossStudy
    points_per_run : int
        Points kept of each run; shorter runs stay whole.

    Returns
    -------
    LossStudy
    """
    keep = np.zeros(len(study.points), dtype=bool)
    for rows in study.points.reset_index(drop=True).groupby("run").indices.values():
        log_volume = np.log(study.volume[rows])
        wanted = np.linspace(log_volume.min(), log_volume.max(), points_per_run)
        keep[rows[np.unique(np.abs(log_volume[:, None] - wanted).argmin(axis=0))]] = True
    if keep.all():
        return study
    message = f"{keep.sum()} of {len(keep)} losses are used, up to {points_per_run} a run, even in ln D"
    return study.select_points(keep, Note("thinned", message))
