"""Batch size: from losses at several batch sizes to the optimum, its law in capability, and a forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import xarray as xr

from bayescdm.compare.tables import interval, single_interval
from bayescdm.errors import InputError, NotFoundError, RequestError, unknown_name
from bayescdm.intervals import check_probability
from bayescdm.predict.candidates import Candidates
from bayescdm.predict.law import LawDraws
from bayescdm.predict.question import Question, outside
from bayescdm.seeds import generator
from bayescdm.study import Study
from bayescdm.wording import counted

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = [
    "BATCH_SIZES",
    "TUNED",
    "BatchFit",
    "compare_batch_predictors",
    "composite_draws",
    "fit_batch_size",
    "optimal_batches",
    "simulate_batch_losses",
    "true_composite",
]

#: What section 4.4 of the paper tuned, and on what.
BATCH_SIZES = (128, 256, 512, 1024, 2048)
TUNED = ("Llama-3.2-1B", "Falcon3-3B-Base", "Qwen3-1.7B-Base", "Qwen3-4B-Base", "Qwen3-8B-Base")
TUNED_VOLUMES = (16e9, 20e9, 25e9, 32e9, 40e9, 50e9)
Predictor = Literal["composite", "params"]
#: Shares of the variance that lies between backbones, over which the posterior is summed.
SHARES = np.linspace(0.02, 0.98, 33)
#: Draws of the law that enter, evenly spaced.
DRAWS = 1000
#: What is said of a cell outside the tuned points, and what the predictor x is called there.
BEYOND_TUNED = "beyond the tuned points"
X_IN_WORDS = {"composite": "composite", "params": "size"}
#: Faults of a table of losses that are named one by one.
MOST_PROBLEMS = 10


def simulate_batch_losses(
    study: Study,
    seed: int = 0,
    *,
    backbones: Sequence[str] = TUNED,
    volumes: Sequence[float] = TUNED_VOLUMES,
    batch_sizes: Sequence[int] = BATCH_SIZES,
    predictor: Predictor = "composite",
    slope: float = 15.0,
    backbone_scale: float = 0.1,
    loss_scale: float = 0.001,
) -> pd.DataFrame:
    """Simulate training losses of a simulated study's backbones at several batch sizes.

    Parameters
    ----------
    study : Study
        Simulated; its truth gives the composite.
    seed : int
    backbones, volumes, batch_sizes
        What is run, by default as in the paper; volumes in the study's unit.
    predictor : {"composite", "params"}
        What the optimum follows in truth: A·S + (B0 − Bm·S)·ln(D/D_ref), or ln N alone.
    slope : float
        log2 of the optimal batch per unit of accuracy of the composite; for ``params`` the spread over the
        backbones is the same.
    backbone_scale : float
        Spread of the backbones' own deviations of log2 of the optimum.
    loss_scale : float
        Standard deviation of a loss.

    Returns
    -------
    DataFrame, one row a simulated training run at one volume
        ``backbone``, ``volume``, ``batch_size``, ``loss``. ``.attrs``: ``simulated`` 1, ``predictor``,
        ``slope``, ``intercept`` (log2 of the optimum at composite 0, of the law alone), ``optimum`` (log2, by
        backbone and volume, a list of records).

    Raises
    ------
    RequestError
        The study is not simulated.
    NotFoundError
        A backbone is not in the study.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> losses = simulate_batch_losses(cdm.simulate(seed=0))
    >>> len(losses), losses.attrs["simulated"]
    (150, 1)
    """
    if not study.truth:
        raise RequestError(f"study '{study.name}' is not simulated: nobody knows the composite's true values")
    for name in backbones:
        if name not in study.backbones.index:
            raise unknown_name("backbone", name, study.backbones.index)
    rng = generator(seed, 44)
    composite = true_composite(study, backbones, volumes)
    driver = composite - composite.mean()
    if predictor == "params":
        size = np.log(study.backbones.loc[list(backbones), "params"].to_numpy(float))
        along = (size - size.mean()) / size.std() * driver.mean(1).std()
        driver = np.repeat(along[:, None], len(volumes), axis=1)
    middle = float(np.mean(np.log2(batch_sizes)))
    optimum = middle + slope * driver + backbone_scale * rng.standard_normal(len(backbones))[:, None]
    grid = pd.MultiIndex.from_product(
        [backbones, volumes, batch_sizes], names=["backbone", "volume", "batch_size"]
    ).to_frame(index=False)
    best = np.repeat(optimum.ravel(), len(batch_sizes))
    level = np.repeat((2.2 - composite).ravel(), len(batch_sizes))
    loss = level + 0.004 * (np.log2(grid["batch_size"].to_numpy(float)) - best) ** 2
    losses = grid.assign(loss=loss + loss_scale * rng.standard_normal(len(grid)))
    losses.attrs = {
        "simulated": 1,
        "predictor": predictor,
        "slope": slope,
        "intercept": middle - slope * float(composite.mean()),
        "optimum": [
            {"backbone": name, "volume": float(volume), "log2_batch": float(optimum[i, j])}
            for i, name in enumerate(backbones)
            for j, volume in enumerate(volumes)
        ],
    }
    return losses


def true_composite(study: Study, backbones: Sequence[str], volumes: Sequence[float]) -> np.ndarray:
    """Compute A·S + (B0 − Bm·S)·ln(D/D_ref) of a simulated study's truth, (backbone, volume)."""
    truth, cells = study.truth, study.backbones.loc[list(backbones), ["family", "variant"]].to_numpy()
    A, B0, Bm = (np.array([truth[rate][f][v] for f, v in cells]) for rate in ("A", "B0", "Bm"))
    S = np.array([truth["S"][name] for name in backbones])
    log_volume = np.log(np.asarray(volumes, float) / truth["volume_ref"])
    composite: np.ndarray = (A * S)[:, None] + (B0 - Bm * S)[:, None] * log_volume
    return composite


def optimal_batches(losses: pd.DataFrame) -> pd.DataFrame:
    """Find the optimal batch size of each backbone at each volume.

    Parameters
    ----------
    losses : DataFrame, one row a training run at one volume
        ``backbone``, ``volume``, ``batch_size`` (samples) and ``loss``.

    Returns
    -------
    DataFrame, one row a backbone and volume with three or more batch sizes
        ``backbone``, ``volume``, ``batch_sizes`` (how many), ``log2_grid``, log2 of the tested batch of
        lowest loss, which is what the paper plots; ``log2_batch``, the vertex of the parabola in log2 of
        the batch through the losses, and ``log2_batch_se``; ``at_edge``, 1 where the vertex lies outside
        the tested sizes or the losses have no minimum: the optimum is then the edge, only a bound.

    Raises
    ------
    InputError
        A column is missing, a figure is no positive number, or one batch size stands twice at a point.
    RequestError
        No point has three batch sizes.

    Notes
    -----
    The standard error is that of the vertex by the delta method, with one residual variance for all
    parabolas.

    Examples
    --------
    >>> losses = pd.DataFrame({"backbone": "m", "volume": 1e9, "batch_size": [128, 512, 2048],
    ...                        "loss": [2.04, 2.0, 2.04]})
    >>> optimal_batches(losses)[["log2_grid", "log2_batch"]].iloc[0].round(6).tolist()
    [9.0, 9.0]
    """
    _check(losses)
    points, squares, freedom = [], 0.0, 0
    for (backbone, volume), rows in losses.groupby(["backbone", "volume"], sort=False):
        if len(rows) < 3:
            continue
        x, y = np.log2(rows["batch_size"].to_numpy(float)), rows["loss"].to_numpy(float)
        X = np.vander(x - x.mean(), 3)
        coefficients = np.linalg.lstsq(X, y, rcond=None)[0]
        squares += float(((y - X @ coefficients) ** 2).sum())
        freedom += len(rows) - 3
        points.append((backbone, float(volume), x, y, X, coefficients))
    if not points:
        raise RequestError(
            "no backbone has losses at three batch sizes at one volume: no optimum can be found"
        )
    variance = squares / freedom if freedom else 0.0
    return pd.DataFrame([_optimum(*point, variance) for point in points])


@dataclass(frozen=True)
class BatchFit:
    """Law of the optimal batch size: log2 b = α + β·x, a deviation a backbone and one a point.

    Parameters
    ----------
    fit : Fit
        Whose draws give the composite.
    predictor : {"composite", "params"}
    points : DataFrame
        From `optimal_batches`.
    alpha, beta, tau, sigma : ndarray, (sample,)
        Posterior draws; α at the mean of x; tau between backbones, sigma between points, in log2.
    centre : ndarray, (sample,)
        Mean of x in each draw.
    deviations : DataFrame, (sample, backbone)
        Each tuned backbone's own deviation.
    simulated : bool
        Whether the losses were simulated.
    """

    fit: Fit
    predictor: Predictor
    points: pd.DataFrame
    alpha: np.ndarray
    beta: np.ndarray
    tau: np.ndarray
    sigma: np.ndarray
    centre: np.ndarray
    deviations: pd.DataFrame
    simulated: bool

    def summary(self, *, prob: float = 0.9) -> pd.DataFrame:
        """Summarise slope and spreads.

        Parameters
        ----------
        prob : float
            Probability of the equal-tailed intervals.

        Returns
        -------
        DataFrame, one row a quantity
            ``quantity``, ``mean``, ``sd``, interval, ``p_positive``. The slope is in log2 of the batch per
            unit of accuracy (composite), or per unit of ln N.
        """
        draws = {"alpha": self.alpha, "beta": self.beta, "tau": self.tau, "sigma": self.sigma}
        rows = [
            {
                "quantity": name,
                "mean": float(values.mean()),
                "sd": float(values.std()),
                **single_interval(values, "posterior", prob),
                "p_positive": float((values > 0).mean()),
            }
            for name, values in draws.items()
        ]
        table = pd.DataFrame(rows)
        table.attrs = self._facts(prob)
        return table

    def draws(
        self,
        candidates: Candidates = None,
        *,
        volumes: float | Sequence[float],
        kind: Literal["law", "backbone", "run"] = "run",
        seed: int = 0,
    ) -> xr.DataArray:
        """Draw log2 of the optimal batch of backbones at data volumes.

        Parameters
        ----------
        candidates : list of str, or pair of DataFrames, optional
            As for `bayescdm.predict`.
        volumes : float or sequence of float
            In the study's unit.
        kind : {"law", "backbone", "run"}
            ``law``: α + β·x; ``backbone``: a backbone's deviation added, its own where it was tuned; ``run``:
            also the deviation of one point.
        seed : int

        Returns
        -------
        DataArray, (sample, backbone, volume)
        """
        return self._draws_at(self._predictor(candidates, volumes), kind, seed)

    def _predictor(self, candidates: Candidates, volumes: float | Sequence[float]) -> xr.DataArray:
        return _predictor_draws(self.fit, candidates, volumes, self.predictor, len(self.alpha))

    def _draws_at(self, x: xr.DataArray, kind: Literal["law", "backbone", "run"], seed: int) -> xr.DataArray:
        values = self.alpha[:, None, None] + self.beta[:, None, None] * (x - self.centre[:, None, None])
        rng = generator(seed, 4)
        if kind in ("backbone", "run"):
            for position, name in enumerate(x["backbone"].to_numpy()):
                own = self.tau * rng.standard_normal(len(self.tau))
                if name in self.deviations:
                    own = self.deviations[name].to_numpy()
                values[:, position] += own[:, None]
        if kind == "run":
            values = values + self.sigma[:, None, None] * rng.standard_normal(values.shape)
        return values.rename("log2_batch")

    def predict(
        self,
        candidates: Candidates = None,
        *,
        volumes: float | Sequence[float],
        kind: Literal["law", "backbone", "run"] = "run",
        prob: float = 0.9,
        seed: int = 0,
    ) -> pd.DataFrame:
        """Predict the optimal batch size of backbones at data volumes.

        Parameters
        ----------
        candidates, volumes, kind, seed
            As for `draws`.
        prob : float
            Probability of the equal-tailed interval.

        Returns
        -------
        DataFrame, one row a backbone and volume
            ``backbone``, ``volume``, ``log2_batch`` (mean) with its interval, ``batch_size`` (median,
            samples) with its interval, ``tuned`` (1 where the backbone was), ``extrapolation``: in words,
            what lies outside what the study observed, and outside the tuned points; empty where nothing does.
        """
        x = self._predictor(candidates, volumes)
        values = self._draws_at(x, kind, seed)
        flat = values.to_numpy().reshape(len(self.alpha), -1)
        names, at = values["backbone"].to_numpy(), values["volume"].to_numpy().astype(float)
        bounds = interval(flat, kind, prob)
        table = pd.DataFrame(
            {
                "backbone": np.repeat(names, len(at)),
                "volume": np.tile(at, len(names)),
                "log2_batch": flat.mean(0),
                **{f"log2_batch_{name}": bound for name, bound in bounds.items()},
                "batch_size": 2 ** np.median(flat, axis=0),
                **{f"batch_size_{name}": 2**bound for name, bound in bounds.items()},
                "tuned": np.repeat(np.isin(names, self.points["backbone"]), len(at)).astype(int),
                "extrapolation": self._extrapolation(x, candidates).ravel(),
            }
        )
        table.attrs = self._facts(prob) | {"kind": kind}
        return table

    def _extrapolation(self, x: xr.DataArray, candidates: Candidates) -> np.ndarray:
        """What each cell lies outside of, in words, (backbone, volume); empty where nothing."""
        volumes, law = x["volume"].to_numpy().astype(float), LawDraws.of(self.fit)
        if self.predictor == "composite":
            asked: dict[str, Any] = {"recipe": None, "kind": "law", "seed": 0, "draws": len(self.alpha)}
            observed = Question.of(self.fit, candidates, volumes=list(volumes), **asked).extrapolation()
        else:  # ln N alone: whatever the capability, only the volume may be one that no run has seen
            of_volume = np.where(outside(volumes, *law.volumes), "extrapolation in volume", "")
            observed = np.tile(of_volume.astype(object), (x.sizes["backbone"], 1))
        seen = _of_points(self.fit, self.points, self.predictor, len(self.alpha))
        # A tuned point is computed twice, and may differ from itself in the last bits.
        slack = 1e-9 * np.abs(seen).max(1)[:, None, None]
        beyond = (x < seen.min(1)[:, None, None] - slack) | (x > seen.max(1)[:, None, None] + slack)
        tuned = self.points["volume"]
        of_x, of_volume = (beyond.mean("sample") > 0.5).to_numpy(), outside(volumes, tuned.min(), tuned.max())
        words = np.full(observed.shape, "", dtype=object)
        for cell in np.ndindex(observed.shape):
            what = {X_IN_WORDS[self.predictor]: of_x[cell], "volume": of_volume[cell[1]]}
            listed = ", ".join(name for name, holds in what.items() if holds)
            words[cell] = "; ".join(
                filter(None, [str(observed[cell]), listed and f"{BEYOND_TUNED} in {listed}"])
            )
        return words

    def _facts(self, prob: float) -> dict[str, Any]:
        facts = self.fit.facts()
        simulated = int(self.simulated or bool(facts["simulated"]))
        return {**facts, "simulated": simulated, "predictor": self.predictor, "prob": check_probability(prob)}


def fit_batch_size(
    fit: Fit, losses: pd.DataFrame, *, predictor: Predictor = "composite", draws: int = DRAWS, seed: int = 0
) -> BatchFit:
    """Fit the law of the optimal batch size to losses at several batch sizes.

    Parameters
    ----------
    fit : Fit
        Posterior of the transfer–absorption law; its draws are propagated.
    losses : DataFrame
        As for `optimal_batches`; its backbones must be scored backbones of the study.
    predictor : {"composite", "params"}
        x is A·S + (B0 − Bm·S)·ln(D/D_ref), or ln N.
    draws : int
        Draws of the law that enter, evenly spaced.
    seed : int

    Returns
    -------
    BatchFit

    Raises
    ------
    InputError, NotFoundError, RequestError
        As for `optimal_batches`; a backbone is not known; fewer than three backbones or five optima that are
        no mere bounds; or all of these are one number, which leaves no spread to learn.

    Notes
    -----
    Section 4.4 of arXiv 2608.00013. log2 b = α + β·(x − mean x) + backbone + point, both deviations Normal,
    p(α, β, σ) ∝ 1/σ, and a uniform prior on the share of the variance that lies between backbones, which is
    summed over a grid; given x, the posterior is exact. x is uncertain: every draw of the law gives one. The
    tuning runs inform the batch size, and not the law itself.

    The paper's composite has ln D in place of ln(D/D_ref): with rates shared by all that is a constant, which
    α takes. Points whose optimum is a bound are left out; where many are, test a wider range of batch sizes.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("simulated-paper")  # doctest: +SKIP
    >>> batch = cdm.fit_batch_size(fit, cdm.simulate_batch_losses(fit.study))  # doctest: +SKIP
    >>> batch.predict(["Qwen2.5-72B"], volumes=50e9)  # doctest: +SKIP
    """
    if predictor not in ("composite", "params"):
        raise RequestError(f"predictor '{predictor}' is neither 'composite' nor 'params'")
    points = optimal_batches(losses)
    for name in points["backbone"].unique():
        if name not in fit.study.scored:
            raise unknown_name("backbone with text scores", str(name), fit.study.scored)
    used = points[points["at_edge"] == 0].reset_index(drop=True)
    if used["backbone"].nunique() < 3 or len(used) < 5:
        raise RequestError(
            f"{len(used)} optima inside the tested batch sizes, of {used['backbone'].nunique()} backbones: "
            "five of three at least are needed; test more batch sizes"
        )
    if np.ptp(used["log2_batch"]) < 1e-9:
        raise RequestError(
            f"every optimum is {2 ** used['log2_batch'].iloc[0]:.6g} exactly: figures without any spread "
            "do not say how far the next one may lie; give measured losses"
        )
    x = _of_points(fit, used, predictor, draws)
    return _posterior(fit, used, x, predictor, seed, simulated=bool(losses.attrs.get("simulated", 0)))


def compare_batch_predictors(
    fit: Fit, losses: pd.DataFrame, *, draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Compare composite and parameter count as predictors of the batch size, each tuned backbone left out.

    Parameters
    ----------
    fit, losses, draws, seed
        As for `fit_batch_size`.

    Returns
    -------
    DataFrame, one row a predictor
        ``predictor``, ``backbones``, ``points``; ``mae_log2``, mean absolute error of the predictive mean of
        left-out points; ``elpd``, the sum over left-out backbones' points of the log predictive density, and
        ``elpd_difference`` from the composite; ``covered_run_90``; ``p_larger_is_larger``: over pairs of
        backbones, how often the one predicted to need more does, half for ties.

    Raises
    ------
    InputError, NotFoundError, RequestError
        As for `fit_batch_size`; fewer than four backbones.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> fit = cdm.fit("simulated-paper")  # doctest: +SKIP
    >>> cdm.compare_batch_predictors(fit, cdm.simulate_batch_losses(fit.study))  # doctest: +SKIP
    """
    points = optimal_batches(losses)
    used = points[points["at_edge"] == 0]
    names = used["backbone"].unique()
    if len(names) < 4:
        raise RequestError(
            f"{len(names)} backbones with an optimum: four at least are needed to leave one out"
        )
    choices: tuple[Predictor, ...] = ("composite", "params")
    rows = []
    for predictor in choices:
        left_out = [_left_out(fit, losses, used, str(name), predictor, draws, seed) for name in names]
        means, densities, covered = zip(*left_out)
        observed = used.set_index("backbone").loc[names, "log2_batch"].to_numpy()
        of_backbone = pd.DataFrame(
            {"b": np.repeat(names, [len(m) for m in means]), "m": np.concatenate(means)}
        )
        predicted = of_backbone.groupby("b")["m"].mean().loc[names].to_numpy()
        actual = used.groupby("backbone")["log2_batch"].mean().loc[names].to_numpy()
        pairs = np.triu_indices(len(names), 1)
        sign = np.sign(predicted[:, None] - predicted)[pairs] * np.sign(actual[:, None] - actual)[pairs]
        rows.append(
            {
                "predictor": predictor,
                "backbones": len(names),
                "points": len(used),
                "mae_log2": float(np.abs(np.concatenate(means) - observed).mean()),
                "elpd": float(np.concatenate(densities).sum()),
                "covered_run_90": float(np.concatenate(covered).mean()),
                "p_larger_is_larger": float(((sign + 1) / 2).mean()),
            }
        )
    table = pd.DataFrame(rows)
    table.insert(5, "elpd_difference", table["elpd"] - table["elpd"].iloc[0])
    simulated = int(bool(losses.attrs.get("simulated", 0)) or fit.study.simulated)
    table.attrs = {**fit.facts(), "simulated": simulated}
    return table


def composite_draws(
    fit: Fit, candidates: Candidates = None, *, volumes: float | Sequence[float], draws: int | None = None
) -> xr.DataArray:
    """Draw the composite A·S + (B0 − Bm·S)·ln(D/D_ref) of backbones at data volumes.

    Parameters
    ----------
    fit : Fit
    candidates : list of str, or pair of DataFrames, optional
        As for `bayescdm.predict`.
    volumes : float or sequence of float
        In the study's unit.
    draws : int, optional
        Use at most this many posterior draws, evenly spaced.

    Returns
    -------
    DataArray, (sample, backbone, volume)
        Accuracy relative to the baseline, a fraction.
    """
    question = Question.of(fit, candidates, volumes=volumes, recipe=None, kind="law", seed=0, draws=draws)
    A, B0, Bm = question.rates()
    S = question.capability
    log_volume = np.log(question.volumes / float(fit.study.volume_ref or 1.0))
    values = (A * S)[:, None] + (B0 - Bm * S)[:, None] * log_volume[:, None]
    return xr.DataArray(
        values.transpose(2, 0, 1),
        dims=("sample", "backbone", "volume"),
        coords={"backbone": np.array(question.names, dtype=object), "volume": question.volumes},
    )


def _left_out(
    fit: Fit, losses: pd.DataFrame, used: pd.DataFrame, name: str, predictor: Predictor, draws: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictive mean, log density and whether covered at 90 %, of the points of a backbone left out."""
    batch = fit_batch_size(
        fit, losses[losses["backbone"] != name], predictor=predictor, draws=draws, seed=seed
    )
    own = used[used["backbone"] == name]
    volumes, observed = list(own["volume"]), own["log2_batch"].to_numpy()
    expected, values = (
        batch.draws([name], volumes=volumes, kind=kind, seed=seed).to_numpy()[:, 0]
        for kind in ("backbone", "run")
    )
    z = (observed - expected) / batch.sigma[:, None]
    density = np.exp(-0.5 * z**2) / (batch.sigma[:, None] * np.sqrt(2 * np.pi))
    low, high = np.quantile(values, [0.05, 0.95], axis=0)
    return values.mean(0), np.log(density.mean(0)), (low <= observed) & (observed <= high)


def _check(losses: pd.DataFrame) -> None:
    """Raise an InputError with every fault of a table of losses."""
    missing = [c for c in ("backbone", "volume", "batch_size", "loss") if c not in losses]
    if missing:
        raise InputError([f"losses: column '{name}' is missing" for name in missing])
    problems = []
    for column in ("volume", "batch_size", "loss"):
        values = pd.to_numeric(losses[column], errors="coerce").to_numpy(float)
        for row in np.flatnonzero(~(np.isfinite(values) & (values > 0))):
            problems.append(
                f"losses, row {row + 1}: {column} '{losses[column].iloc[row]}' is not a positive number"
            )
    key = ["backbone", "volume", "batch_size"]
    for row in np.flatnonzero(losses.duplicated(key)):
        name, volume, size = losses[key].iloc[row]
        problems.append(f"losses, row {row + 1}: batch size {size} of {name} at {volume:g} stands twice")
    if len(problems) > MOST_PROBLEMS:
        rest = len(problems) - MOST_PROBLEMS
        problems = [*problems[:MOST_PROBLEMS], f"losses: {counted(rest, 'more fault')} of these kinds"]
    if problems:
        raise InputError(problems)


def _optimum(
    backbone: object,
    volume: float,
    x: np.ndarray,
    y: np.ndarray,
    X: np.ndarray,
    coefficients: np.ndarray,
    variance: float,
) -> dict[str, Any]:
    """Vertex of one parabola; the edge where there is none inside."""
    a, b, _ = coefficients
    row: dict[str, Any] = {
        "backbone": str(backbone),
        "volume": volume,
        "batch_sizes": len(x),
        "log2_grid": float(x[y.argmin()]),
    }
    vertex = x.mean() - b / (2 * a) if a > 0 else np.nan
    if not x.min() <= vertex <= x.max():
        edge = x.max() if y[x.argmax()] < y[x.argmin()] else x.min()
        return row | {"log2_batch": float(edge), "log2_batch_se": np.nan, "at_edge": 1}
    gradient = np.array([b / (2 * a**2), -1 / (2 * a), 0.0])
    spread = gradient @ np.linalg.inv(X.T @ X) @ gradient * variance
    return row | {"log2_batch": float(vertex), "log2_batch_se": float(np.sqrt(spread)), "at_edge": 0}


def _predictor_draws(
    fit: Fit, candidates: Candidates, volumes: float | Sequence[float], predictor: Predictor, draws: int
) -> xr.DataArray:
    """x of backbones at volumes, (sample, backbone, volume)."""
    composite = composite_draws(fit, candidates, volumes=volumes, draws=draws)
    if predictor == "composite":
        return composite
    question = Question.of(fit, candidates, volumes=volumes, recipe=None, kind="law", seed=0, draws=1)
    log_params = question.log_params()
    if np.isnan(log_params).any():
        missing = ", ".join(name for name, x in zip(question.names, log_params) if np.isnan(x))
        raise NotFoundError(f"the number of parameters of {missing} is unknown: use the composite")
    return composite * 0 + log_params[None, :, None]


def _of_points(fit: Fit, points: pd.DataFrame, predictor: Predictor, draws: int) -> np.ndarray:
    """x of each point, (sample, point)."""
    names, volumes = points["backbone"].unique(), points["volume"].unique()
    x = _predictor_draws(fit, list(names), list(volumes), predictor, draws).to_numpy()
    row = pd.Index(names).get_indexer(points["backbone"])
    column = pd.Index(volumes).get_indexer(points["volume"])
    return x[:, row, column]


def _posterior(
    fit: Fit, points: pd.DataFrame, x: np.ndarray, predictor: Predictor, seed: int, *, simulated: bool
) -> BatchFit:
    """One posterior draw of the batch law for each draw of x."""
    y, (codes, names) = points["log2_batch"].to_numpy(), pd.factorize(points["backbone"])
    members = (codes[:, None] == np.arange(len(names))).astype(float)
    n, samples = len(y), len(x)
    centre = x.mean(1)
    X = np.stack([np.ones_like(x), x - centre[:, None]], axis=2)
    weights = np.empty((len(SHARES), samples))
    parts = []
    for position, share in enumerate(SHARES):
        V = (1 - share) * np.eye(n) + share * members @ members.T
        inverse = np.linalg.inv(V)
        XV = np.einsum("sni,nm->sim", X, inverse)
        precision = XV @ X
        mean = np.linalg.solve(precision, (XV @ y)[..., None])[..., 0]
        residual = y - np.einsum("sni,si->sn", X, mean)
        squares = np.einsum("sn,nm,sm->s", residual, inverse, residual)
        weights[position] = -0.5 * (
            np.linalg.slogdet(V)[1] + np.linalg.slogdet(precision)[1] + (n - 2) * np.log(squares)
        )
        parts.append((mean, precision, squares))
    rng = generator(seed, 4)
    chosen = (weights + rng.gumbel(size=weights.shape)).argmax(0)
    between = SHARES[chosen]
    means: np.ndarray = np.stack([part[0] for part in parts])[chosen, np.arange(samples)]
    precisions: np.ndarray = np.stack([part[1] for part in parts])[chosen, np.arange(samples)]
    sums: np.ndarray = np.stack([part[2] for part in parts])[chosen, np.arange(samples)]
    total = np.sqrt(sums / rng.chisquare(n - 2, samples))
    factor = np.linalg.cholesky(np.linalg.inv(precisions))
    noise = np.einsum("sij,sj->si", factor, rng.standard_normal((samples, 2)))
    coefficients = means + total[:, None] * noise
    tau, sigma = total * np.sqrt(between), total * np.sqrt(1 - between)
    left = y - np.einsum("sni,si->sn", X, coefficients)
    counts = members.sum(0)
    shrunk = tau[:, None] ** 2 / (tau[:, None] ** 2 + sigma[:, None] ** 2 / counts)
    spread = np.sqrt(shrunk * sigma[:, None] ** 2 / counts)
    own = shrunk * (left @ members / counts) + spread * rng.standard_normal((samples, len(names)))
    return BatchFit(
        fit, predictor, points, coefficients[:, 0], coefficients[:, 1], tau, sigma, centre,
        pd.DataFrame(own, columns=[str(name) for name in names]), simulated,
    )  # fmt: skip
