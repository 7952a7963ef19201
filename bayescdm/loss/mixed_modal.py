"""Mixed-modal token losses: each modality alone, pairs together, and whether a pair competes or helps."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from bayescdm import __version__
from bayescdm.errors import FitError, InputError, Note, RequestError, unknown_name
from bayescdm.fit import Diagnosis, diagnose, summarise
from bayescdm.fitfile import MIXED_MODAL_PROGRAM, parsing, read_fit_file, write_fit_file
from bayescdm.intervals import check_probability, interval_columns
from bayescdm.laws import compute_loss, mixed_modal_loss, mixed_modal_pair_loss
from bayescdm.loss.fit import LOSS_DEFAULTS, PRIOR_DRAWS
from bayescdm.loss.logs import read_cells
from bayescdm.loss.modeling import MixedModalData, pair_label
from bayescdm.loss.prediction import LossPrediction
from bayescdm.loss.scope import Scope
from bayescdm.loss.study import SMALLEST_PARAMS, SMALLEST_VOLUME
from bayescdm.modelfiles import load_model
from bayescdm.reading import parse_count
from bayescdm.sampling import SamplerSettings, compile_model, prior_draws
from bayescdm.seeds import checked_seed, generator
from bayescdm.study import decode_table, encode_table
from bayescdm.wording import study_name

__all__ = [
    "CAUTIONS",
    "CONSTANTS",
    "MEANING",
    "MixedModalFit",
    "MixedModalStudy",
    "extrapolations",
    "fit_mixed_modal",
    "largest_of_pairs",
    "load_mixed_modal_fit",
    "pair_interactions",
    "read_mixed_modal",
    "simulate_mixed_modal",
    "titled",
]

#: Version of a saved fit's record.
FORMAT = 1
#: Constants for absolute counts, and what each is there for.
CONSTANTS = {name: "modality" for name in ("A", "B", "E", "alpha", "beta")} | {
    name: "pair" for name in ("C", "pair_A", "pair_B", "pair_alpha", "pair_beta")
}
COLUMNS = ("first", "second", "params", "volume_first", "volume_second", "loss")

CAUTIONS = (
    Note(
        "speech-text-caution",
        "competition and synergy belong to the pair, the data and the tokenisers that were fitted: the "
        "published speech–text experiment establishes no ratio of vision to language data",
        "warning",
    ),
    Note(
        "tokens-of-different-kinds",
        "tokens of different modalities are different units, which the law adds up as the source does",
    ),
)
MEANING = "interaction below 0: the modalities help each other (synergy); above 0: they compete"
SIZES = (8e6, 125e6, 350e6, 760e6, 1.3e9, 2.7e9, 6.7e9)
VOLUMES = (5e9, 20e9, 100e9)
TRUTH: dict[str, Any] = {
    "modalities": {
        "text": {"A": 130.0, "B": 480.0, "E": 1.9, "alpha": 0.28, "beta": 0.30},
        "speech": {"A": 60.0, "B": 300.0, "E": 2.6, "alpha": 0.25, "beta": 0.28},
        "image": {"A": 25.0, "B": 90.0, "E": 3.3, "alpha": 0.20, "beta": 0.22},
    },
    "pairs": {
        "text + speech": {"C": 0.30, "A": 20.0, "B": 30.0, "alpha": 0.27, "beta": 0.25},
        "text + image": {"C": 0.02, "A": 20.0, "B": 30.0, "alpha": 0.27, "beta": 0.25},
    },
}


@dataclass(frozen=True)
class MixedModalStudy:
    """Training runs on one modality or on two.

    Parameters
    ----------
    name : str
    table : DataFrame, one row a run
        ``first`` and ``second`` (modalities; ``second`` empty for runs on one), ``params``, ``volume_first``
        and ``volume_second`` (tokens, absolute counts; 0 for no second), ``loss`` (mean over the modalities).
    scope : Scope
    simulated : bool
    truth : dict
        The known constants of a simulated study.

    Raises
    ------
    InputError
        Listing every count that is not absolute, every loss that is not positive, and every modality that
        occurs in a pair but never alone: its own law must be known first.
    """

    name: str
    table: pd.DataFrame
    scope: Scope
    simulated: bool = False
    truth: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check counts and labels; collect all problems before raising."""
        problems = []
        alone = set(self.table.loc[self.table["second"] == "", "first"])
        for row, run in self.table.iterrows():
            if run["params"] < SMALLEST_PARAMS:
                problems.append(f"row {row}: params {run['params']:g} is not an absolute count")
            volumes = ["volume_first", *(["volume_second"] if run["second"] else [])]
            problems += [
                f"row {row}: {name} {run[name]:g} is not an absolute count of tokens"
                for name in volumes
                if not run[name] >= SMALLEST_VOLUME
            ]
            if not 0 < run["loss"] < np.inf:
                problems.append(f"row {row}: loss {run['loss']:g} is not positive")
        for modality in sorted({*self.table["first"], *self.table["second"]} - alone - {""}):
            problems.append(f"modality '{modality}' has no run of its own: its law alone must be known first")
        if problems:
            raise InputError(problems)

    @property
    def modalities(self) -> list[str]:
        """Modalities in order of appearance."""
        return list(dict.fromkeys(self.table.loc[self.table["second"] == "", "first"]))

    @property
    def pairs(self) -> list[str]:
        """Pairs in order of appearance, ``first + second`` in the order of `modalities`."""
        both = self.table[self.table["second"] != ""]
        modalities = self.modalities
        return list(
            dict.fromkeys(pair_label(a, b, modalities) for a, b in zip(both["first"], both["second"]))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the study as JSON-able values; see :meth:`from_dict`."""
        return {
            "name": self.name,
            "table": encode_table(self.table),
            "scope": self.scope.to_dict(),
            "simulated": self.simulated,
            "truth": self.truth,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MixedModalStudy:
        """Restore a study from :meth:`to_dict`.

        Parameters
        ----------
        data : dict

        Raises
        ------
        InputError
            If the table breaks the study's contract.
        """
        table = decode_table(data["table"])
        table.index = table.index.astype(int)
        scope = Scope.from_dict(data["scope"])
        return cls(data["name"], table, scope, simulated=data["simulated"], truth=data["truth"])


@dataclass(frozen=True)
class MixedModalFit:
    """Posterior draws of the mixed-modal laws.

    Parameters
    ----------
    draws : DataTree
        Groups ``posterior``, ``sample_stats`` and ``prior``.
    study : MixedModalStudy
    settings : dict
        Seed, sampler, source hash of the model file, version.
    """

    draws: xr.DataTree
    study: MixedModalStudy
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def posterior(self) -> xr.Dataset:
        """Posterior draws, dims chain, draw, modality and pair."""
        return self.draws["posterior"].to_dataset()

    def diagnose(self) -> Diagnosis:
        """Check convergence of every quantity of the posterior.

        Returns
        -------
        Diagnosis
        """
        return self._diagnosis

    @cached_property
    def _diagnosis(self) -> Diagnosis:
        return diagnose(self.posterior, self.draws["sample_stats"].to_dataset())

    def summary(self, *, prob: float = 0.9) -> pd.DataFrame:
        """Summarise the constants; ``interaction`` is that of each pair at the centre of the data.

        Parameters
        ----------
        prob : float

        Returns
        -------
        DataFrame
            Columns as `bayescdm.fit.Fit.summary`.
        """
        wanted = ["reference_loss", "E", "alpha", "beta", "interaction", "C", "sigma"]
        return summarise(self.posterior[wanted], self.draws["prior"].to_dataset(), prob=prob)

    def __str__(self) -> str:
        """Return constants, convergence, and each pair at its largest."""
        return self.describe()

    def describe(self, *, prob: float = 0.9) -> str:
        """Return constants, convergence, and each pair's interaction at its largest runs as text.

        Parameters
        ----------
        prob : float
            Probability of the intervals.

        Returns
        -------
        str
        """
        table = self.summary(prob=prob).to_string(float_format=lambda value: f"{value:.4g}")
        pairs = self.pairs_at_largest(prob=prob)
        return f"mixed_modal, {titled(self.study)}\n{table}\n{self.diagnose()}\n\n{MEANING}\n{pairs}"

    def to_dict(self, *, prob: float = 0.9) -> dict[str, Any]:
        """Return constants, convergence, interactions, scope and notes as plain values, for JSON.

        Parameters
        ----------
        prob : float
            Probability of the intervals.

        Returns
        -------
        dict
        """
        pairs = self.pairs_at_largest(prob=prob)
        return {
            "study": self.study.name,
            "simulated": self.study.simulated,
            "parameters": self.summary(prob=prob).to_dict("index"),
            "pairs": pairs.table.to_dict("records"),
            "converged": self.diagnose().converged,
            "scope": self.study.scope.to_dict(),
            "notes": [note.to_dict() for note in pairs.notes],
        }

    def pairs_at_largest(self, *, prob: float = 0.9) -> LossPrediction:
        """Return the interaction of each pair at its own largest model size and volumes.

        Parameters
        ----------
        prob : float

        Returns
        -------
        LossPrediction
            As of :meth:`interaction`, a row a pair.
        """
        return self.interaction(largest_of_pairs(self.study), prob=prob)

    def interaction(self, table: pd.DataFrame, *, prob: float = 0.9) -> LossPrediction:
        """How much a pair loses or gains against its modalities alone, and how sure that is.

        Parameters
        ----------
        table : DataFrame, one row a question
            ``first``, ``second``, ``params``, ``volume_first``, ``volume_second``, absolute counts.
        prob : float
            Probability of the equal-tailed interval.

        Returns
        -------
        LossPrediction
            The table with ``loss`` of the pair, ``interaction`` (nats per token, posterior mean; below 0 the
            modalities help each other), its interval, ``p_synergy``, ``extrapolation``; the cautions.

        Raises
        ------
        NotFoundError
            A pair without runs: no pair predicts another.
        RequestError
            A count that is not positive.
        """
        lower, upper = interval_columns("law", check_probability(prob))
        draws = {str(name): _stacked(self.posterior[name]) for name in CONSTANTS}
        together, interaction = pair_interactions(self.study, draws, table)
        low, high = np.quantile(interaction, [(1 - prob) / 2, (1 + prob) / 2], axis=0)
        flags = extrapolations(self.study, table)
        answer = table.assign(
            loss=together.mean(axis=0),
            interaction=interaction.mean(axis=0),
            **{lower: low, upper: high},
            p_synergy=(interaction < 0).mean(axis=0),
            extrapolation=flags,
        )
        notes = (*self.diagnose().notes, *self.study.scope.extrapolation_note(flags), *CAUTIONS)
        return LossPrediction(answer, self.study.scope, notes)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the fit to one NetCDF file, atomically.

        Parameters
        ----------
        path : str or Path
        overwrite : bool
            Replace an existing file.

        Returns
        -------
        Path

        Raises
        ------
        RequestError
            If the file exists and `overwrite` is false, or its folder does not.
        """
        record = {"format": FORMAT, "settings": self.settings, "study": self.study.to_dict()}
        groups = {name: self.draws[name].to_dataset() for name in self.draws.children}
        return write_fit_file(path, groups, record, program=MIXED_MODAL_PROGRAM, overwrite=overwrite)


def load_mixed_modal_fit(path: str | Path) -> MixedModalFit:
    """Load a fit that `MixedModalFit.save` wrote; it predicts to the bit as before.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    MixedModalFit

    Raises
    ------
    FitError
        If the file is missing, is not a fit of the mixed-modal laws, or is damaged.
    """
    path = Path(path)
    draws, record = read_fit_file(path, program=MIXED_MODAL_PROGRAM, version=FORMAT)
    with parsing(path, "its record is damaged"):
        study = MixedModalStudy.from_dict(record["study"])
        fit = MixedModalFit(draws, study, dict(record["settings"]))
        _check_labels(fit)
        return fit


def _check_labels(fit: MixedModalFit) -> None:
    """Refuse draws of other modalities or pairs than the study's: constants are read by position."""
    known = {"modality": fit.study.modalities, "pair": fit.study.pairs}
    for name, dim in CONSTANTS.items():
        draws = fit.posterior[name]
        labels = [str(label) for label in fit.posterior[dim].to_numpy()]
        if draws.dims != ("chain", "draw", dim) or labels != known[dim]:
            raise FitError(f"posterior: '{name}' is not there for each {dim} of the study, in its order")


def titled(study: MixedModalStudy) -> str:
    """Return the name of a study, which says of simulated runs that they are."""
    return study_name(study.name, simulated=study.simulated)


def largest_of_pairs(study: MixedModalStudy) -> pd.DataFrame:
    """Ask of each pair at its own largest model size and volumes.

    Parameters
    ----------
    study : MixedModalStudy

    Returns
    -------
    DataFrame, one row a pair
        As `MixedModalFit.interaction` takes it.
    """
    both = study.table[study.table["second"] != ""]
    modalities = study.modalities
    labels = [pair_label(a, b, modalities) for a, b in zip(both["first"], both["second"])]
    sizes = both.drop(columns="loss").sort_values(["params", "volume_first", "volume_second"])
    last = sizes.groupby(pd.Series(labels, index=both.index), sort=False).tail(1)
    return last.reset_index(drop=True)


def extrapolations(study: MixedModalStudy, table: pd.DataFrame) -> np.ndarray:
    """Tell which questions lie outside the runs of a study.

    Parameters
    ----------
    study : MixedModalStudy
    table : DataFrame, one row a question
        As `MixedModalFit.interaction` takes it.

    Returns
    -------
    ndarray of bool, shape (question,)
    """
    flags = study.scope.extrapolates(params=table["params"], volume=table["volume_first"])
    return flags | study.scope.extrapolates(volume=table["volume_second"])


def pair_interactions(
    study: MixedModalStudy, constants: dict[str, np.ndarray], table: pd.DataFrame
) -> tuple[np.ndarray, np.ndarray]:
    """Loss of pairs and what it is above or below that of their modalities alone, for draws of the constants.

    Parameters
    ----------
    study : MixedModalStudy
    constants : dict of str to ndarray
        Each of `CONSTANTS`, shape (draw, modality) or (draw, pair), for absolute counts.
    table : DataFrame, one row a question
        As `MixedModalFit.interaction` takes it.

    Returns
    -------
    together, interaction : ndarray, shape (draw, question)

    Raises
    ------
    NotFoundError
        A pair without runs.
    RequestError
        A count that is not positive.
    """
    N, D_first, D_second = (table[c].to_numpy(float) for c in ("params", "volume_first", "volume_second"))
    if min(N.min(), D_first.min(), D_second.min()) <= 0:
        raise RequestError("params and both volumes must be positive, absolute counts")
    modalities, pairs = study.modalities, study.pairs
    labels = [pair_label(a, b, modalities) for a, b in zip(table["first"], table["second"])]
    for label in labels:
        if label not in pairs:
            raise unknown_name("pair", label, pairs)
    pair = [pairs.index(label) for label in labels]
    alone = []
    for column, D in (("first", D_first), ("second", D_second)):
        which = [modalities.index(label) for label in table[column]]
        own = (constants[name][:, which] for name in ("A", "B", "E", "alpha", "beta"))
        alone.append(mixed_modal_loss(N, D, *own))
    first, second = alone
    own = (constants[name][:, pair] for name in ("C", "pair_A", "pair_B", "pair_alpha", "pair_beta"))
    together = mixed_modal_pair_loss(first, second, N, D_first, D_second, *own)
    return together, together - (first + second) / 2


def _stacked(draws: xr.DataArray) -> np.ndarray:
    """Draws of a constant with chains joined, shape (draw, label)."""
    values = draws.to_numpy()
    return values.reshape(-1, values.shape[-1])


def mixed_modal_data(study: MixedModalStudy) -> MixedModalData:
    """Turn a study of modalities and pairs into the labelled arrays of its model.

    Parameters
    ----------
    study : MixedModalStudy

    Returns
    -------
    MixedModalData
    """
    table, modalities, pairs = study.table, study.modalities, study.pairs
    both = (table["second"] != "").to_numpy()
    second = table["second"].where(both, table["first"])
    labels = [pair_label(a, b, modalities) if a != b else "" for a, b in zip(table["first"], second)]
    first_D = table["volume_first"].to_numpy(float)
    second_D = np.where(both, table["volume_second"].to_numpy(float), first_D)
    N = table["params"].to_numpy(float)
    params_ref, volume_ref = np.exp(np.log(N).mean()), np.exp(np.log(first_D).mean())
    return MixedModalData(
        coords={"modality": modalities, "pair": pairs, "point": list(range(len(table)))},
        first=pd.Index(modalities).get_indexer(table["first"]),
        second=pd.Index(modalities).get_indexer(second),
        pair=pd.Index(pairs, dtype="str").get_indexer(labels),
        log_params=np.log(N / params_ref),
        log_volume_first=np.log(first_D / volume_ref),
        log_volume_second=np.log(second_D / volume_ref),
        log_loss=np.log(table["loss"].to_numpy(float)),
        weight=np.ones(len(table)),
        params_ref=float(params_ref),
        volume_ref=float(volume_ref),
    )


def fit_mixed_modal(
    study: MixedModalStudy,
    *,
    seed: int = 1,
    settings: SamplerSettings = LOSS_DEFAULTS,
    progress: bool = False,
) -> MixedModalFit:
    """Draw from the posterior of the laws of all modalities and pairs of a study.

    Parameters
    ----------
    study : MixedModalStudy
    seed : int
    settings : SamplerSettings
    progress : bool
        Show a progress bar on standard error.

    Returns
    -------
    MixedModalFit

    Notes
    -----
    Aghajanyan et al. (arXiv 2301.03728); priors in ``models/mixed_modal.py``.
    """
    checked_seed(seed)
    file = load_model("mixed_modal")
    compiled = compile_model(file.build, mixed_modal_data(study))
    tree = compiled.sample(seed=seed, settings=settings, progress=progress)
    observed = [rv.name for rv in compiled.model.observed_RVs]
    tree["prior"] = xr.DataTree(prior_draws(compiled.model, PRIOR_DRAWS, seed).drop_vars(observed))
    sampler = {name: getattr(settings, name) for name in ("draws", "tune", "chains", "target_accept")}
    record = {"seed": seed, "sampler": sampler, "source_hash": file.source_hash, "version": __version__}
    return MixedModalFit(tree, study, record)


def read_mixed_modal(path: str | Path) -> MixedModalStudy:
    """Read runs on one modality or on two.

    Parameters
    ----------
    path : str or Path
        CSV with `COLUMNS`, a row a run; ``second`` and ``volume_second`` are empty for one modality. Counts
        are absolute (``7B`` is read).

    Returns
    -------
    MixedModalStudy

    Raises
    ------
    NotFoundError
        There is no such file.
    InputError
        All problems at once, with the lines of the file.
    """
    path = Path(path)
    table = read_cells(path).fillna("")
    missing = [name for name in COLUMNS if name not in table]
    if missing:
        raise InputError(f"{path.name}: no column {', '.join(missing)}; needed are {', '.join(COLUMNS)}")
    if table.empty:
        raise InputError(f"{path.name}: no row below the titles; there is nothing to fit")
    table.index = table.index + 2
    problems: list[str] = []
    numbers = {}
    for name in COLUMNS[2:]:
        numbers[name] = [
            _number(cell, f"{path.name}, row {row}, {name}", problems) for row, cell in table[name].items()
        ]
    if problems:
        raise InputError(problems)
    labels = {name: table[name].str.strip().astype(object) for name in COLUMNS[:2]}
    runs = pd.DataFrame({**labels, **numbers}, index=table.index)
    volumes = np.concatenate([runs["volume_first"], runs.loc[runs["second"] != "", "volume_second"]])
    scope = Scope(
        metric="mean token loss of the modalities",
        ranges={
            "params": (float(runs["params"].min()), float(runs["params"].max())),
            "volume": (float(volumes.min()), float(volumes.max())),
        },
        units={"metric": "as logged", "params": "parameters", "volume": "tokens"},
        source=path.name,
    )
    try:
        return MixedModalStudy(path.stem, runs, scope)
    except InputError as error:
        of_row = re.compile(r"row \d")
        raise InputError(
            [f"{path.name}{', ' if of_row.match(text) else ': '}{text}" for text in error.problems]
        ) from None


def _number(cell: str, where: str, problems: list[str]) -> float:
    """Read a count or a loss; nought where the cell is empty, which the study refuses where it matters."""
    if not cell.strip():
        return 0.0
    try:
        return float(parse_count(cell))
    except InputError as error:
        problems.append(f"{where}: {error}")
        return 0.0


def simulate_mixed_modal(*, seed: int = 0, noise: float = 0.005) -> MixedModalStudy:
    """Draw runs on text, speech and image tokens, alone and in pairs, from known laws.

    Parameters
    ----------
    seed : int
    noise : float
        Relative spread of one run.

    Returns
    -------
    MixedModalStudy
        Called simulated. Text and speech help each other in large models, text and image compete.

    Examples
    --------
    >>> study = simulate_mixed_modal()
    >>> study.pairs
    ['text + speech', 'text + image']
    """
    rng = generator(seed)
    alone = {
        (name, N, D): compute_loss(N, D, **law)
        for name, law in TRUTH["modalities"].items()
        for N in SIZES
        for D in VOLUMES
    }
    rows = [(name, "", N, D, 0.0, loss) for (name, N, D), loss in alone.items()]
    for label, law in TRUTH["pairs"].items():
        first, second = label.split(" + ")
        for N in SIZES:
            for D in VOLUMES:
                losses = alone[first, N, D], alone[second, N, D]
                rows.append((first, second, N, D, D, mixed_modal_pair_loss(*losses, N, D, D, **law)))
    columns = ["first", "second", "params", "volume_first", "volume_second", "loss"]
    table = pd.DataFrame(rows, columns=columns)
    table["loss"] *= np.exp(rng.normal(0, noise, len(table)))
    scope = Scope(
        metric="token loss, mean over the modalities",
        objective="next-token loss on discrete tokens of one or two modalities",
        data_distribution="simulated",
        architecture="simulated",
        ranges={"params": (min(SIZES), max(SIZES)), "volume": (min(VOLUMES), max(VOLUMES))},
        units={"metric": "nats per token", "params": "parameters", "volume": "tokens of a modality"},
        source=f"simulated with seed {seed}, laws of Aghajanyan et al. 2023 (arXiv 2301.03728)",
    )
    return MixedModalStudy("simulated mixed-modal runs", table, scope, simulated=True, truth=TRUTH)
