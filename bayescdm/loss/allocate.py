"""Allocation of a compute budget between parameters and tokens, read off a compute law or its draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from bayescdm.errors import InputError, Note, RequestError, unknown_name
from bayescdm.intervals import check_probability, interval_columns
from bayescdm.laws import compute_loss, optimal_allocation
from bayescdm.loss.fit import LossFit
from bayescdm.loss.pointfit import LossPointFit
from bayescdm.loss.scope import CHINCHILLA_SCOPE, Scope, architecture_not_stated
from bayescdm.loss.study import SMALLEST_PARAMS
from bayescdm.reading import parse_count, parse_flops

__all__ = ["PRESETS", "Allocation", "ComputeLaw", "absolute_count", "allocate", "preset"]

#: How far the loss curve reaches on either side of the optimum, as a factor of N.
REACH = 30.0

#: What the loss curve consists of, for the note that some of it extrapolates.
WHAT_OF_CURVE = "model sizes of the loss curve (N*/30 to 30·N*, around N* = {N:.3g}), with their tokens,"

WHAT_OF_SIZES = "model sizes asked for, with their tokens,"

OTHER_APPROACHES = Note(
    "other-approaches",
    "the same study's approaches 1 (lowest points of training curves) and 2 (profiles at fixed compute) do "
    "not assume this formula and give N* ∝ C^0.50 and C^0.49; the formula (approach 3) was published with "
    "0.46, and its rounded constants give 0.452",
)
SERVING = Note(
    "serving-not-counted",
    "the cost of serving the model is not in this optimum; give the tokens that will be served to count it",
)

SERVED = Note(
    "serving-counted",
    "no exponents are given: N* and D* are no powers of a budget that also serves a fixed number of tokens; "
    "leave serving out for the exponents of training alone",
)


#: Constants of the law, as posteriors and point fits name them.
CONSTANTS = ("A", "B", "E", "alpha", "beta")


@dataclass(frozen=True)
class ComputeLaw:
    """L = A/N^α + B/D^β + E with one set of constants, or with draws of them.

    Parameters
    ----------
    name : str
        Shown in tables, legends and pages.
    A, B, E, alpha, beta : ndarray, shape (draw,)
        Constants for absolute counts; one draw when they are known without uncertainty.
    scope : Scope
    notes : tuple of Note
    """

    name: str
    A: np.ndarray
    B: np.ndarray
    E: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    scope: Scope
    notes: tuple[Note, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the fit that the law was taken from can be trusted; published constants are."""
        return all(note.code != "not-converged" for note in self.notes)

    @property
    def has_draws(self) -> bool:
        """Whether there is uncertainty to show."""
        return len(self.A) > 1

    @classmethod
    def from_fit(cls, fit: LossFit | LossPointFit, *, family: str | None = None) -> ComputeLaw:
        """Take the law from a fit.

        Parameters
        ----------
        fit : LossFit or LossPointFit
            Of a law in N and D.
        family : str, optional
            Needed where every family has its own constants.

        Returns
        -------
        ComputeLaw

        Raises
        ------
        RequestError
            The fit is of another law, a family must be named, or is where the law has none.
        NotFoundError
            The family is not one of the fit's.
        """
        if isinstance(fit, LossPointFit):
            if family is not None:
                raise RequestError("family belongs to a law that differs by family: a point fit has one law")
            if fit.law != "compute":
                raise RequestError(f"parameters and tokens cannot be allocated by the {fit.law} law")
            constants = {name: np.atleast_1d(fit.parameters[name]) for name in CONSTANTS}
            _require_tokens(fit.scope)
            return cls("point fit", **constants, scope=fit.scope, notes=(*fit.notes, *_own_notes(fit.scope)))
        families, posterior = families_of_law(fit), fit.posterior
        if families:
            if family is None:
                raise RequestError(f"this law differs by family: name one of {', '.join(families)}")
            if family not in families:
                raise unknown_name("family", family, families)
            posterior = posterior.sel(family=family)
        elif family is not None:
            raise RequestError("family belongs to a law that differs by family: this one does not")
        constants = {name: posterior[name].to_numpy().ravel() for name in CONSTANTS}
        notes = (*fit.diagnose().notes, *fit.notes, *fit.study.notes, *_own_notes(fit.scope))
        name, scope = f"posterior of {fit.study.name}", fit.scope
        if family is not None:
            name, scope = f"{name}, family {family}", _scope_of_family(fit, family)
        return cls(name, **constants, scope=scope, notes=notes)

    def loss(self, params: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        """Loss at given N and D under every draw.

        Parameters
        ----------
        params, tokens : ndarray, shape (point,) or (draw, point)

        Returns
        -------
        ndarray, shape (draw, point)
        """
        constants = (getattr(self, name)[:, None] for name in ("A", "B", "E", "alpha", "beta"))
        return compute_loss(params, tokens, *constants)

    def optimum(self, flops: float, tokens_served: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Parameters and tokens of least loss at a budget, under every draw.

        Parameters
        ----------
        flops : float
            Training and serving together: 6·N·D + 2·N·(tokens served).
        tokens_served : float

        Returns
        -------
        N, D : ndarray, shape (draw,)
        """
        free = optimal_allocation(flops, self.A, self.B, self.alpha, self.beta)
        if not tokens_served:
            return free.N, free.D
        # Serving takes tokens from larger models, so the optimum lies below the free one; there the gain of
        # size falls and the price of lost tokens rises with N: one sign change to bisect.
        low, high = np.log(free.N) - 60.0, np.minimum(np.log(free.N), np.log(flops / (2 * tokens_served)))
        for _ in range(200):
            middle = (low + high) / 2
            N = np.exp(middle)
            D = tokens_left(flops, N, tokens_served)
            with np.errstate(divide="ignore", invalid="ignore"):
                gain = self.alpha * self.A / N**self.alpha
                price = self.beta * self.B / D**self.beta * flops / (6 * N * D)
                grow = (D > 0) & (gain > price)
            low, high = np.where(grow, middle, low), np.where(grow, high, middle)
        N = np.exp(low)
        return N, tokens_left(flops, N, tokens_served)


def families_of_law(fit: LossFit) -> list[str]:
    """Return the families that have constants of their own; none where one law in N and D holds for all.

    Parameters
    ----------
    fit : LossFit

    Returns
    -------
    list of str

    Raises
    ------
    RequestError
        The fit is of another law, which allocates nothing.
    """
    _require_tokens(fit.scope)
    posterior = fit.posterior
    if not set(CONSTANTS) <= set(posterior) or "component" in posterior.dims:
        raise RequestError(f"parameters and tokens cannot be allocated by the law of {fit.model}")
    if "family" not in posterior["E"].dims:
        return []
    return [str(label) for label in posterior["family"].to_numpy()]


def _scope_of_family(fit: LossFit, family: str) -> Scope:
    """Scope of one family's law: only its own runs speak about it."""
    seen = fit.study.points.join(fit.study.runs[["family", "params"]], on="run")
    own = seen[seen["family"] == family]
    ranges = {name: (float(own[name].min()), float(own[name].max())) for name in ("params", "volume")}
    scope = replace(fit.scope, ranges={**fit.scope.ranges, **ranges})
    # Where all that is known of the architecture is the families' names, it is this family's.
    if scope.architecture == architecture_not_stated(fit.study.families):
        scope = replace(scope, architecture=architecture_not_stated([family]))
    return scope


def _own_notes(scope: Scope) -> tuple[Note, ...]:
    """What must be said of the Chinchilla study wherever its formula allocates compute."""
    return (OTHER_APPROACHES,) if scope.is_of_the_same_study(CHINCHILLA_SCOPE) else ()


def _require_tokens(scope: Scope) -> None:
    """Refuse laws whose data are not tokens: 6·N·D is then no count of FLOPs."""
    unit = scope.units.get("volume", "")
    if "token" not in unit:
        raise RequestError(
            f"C ≈ 6·N·D counts tokens, and the data of this law are {unit or 'of unknown unit'}"
        )


def tokens_left(flops: float, params: np.ndarray, tokens_served: float) -> np.ndarray:
    """Tokens that the budget leaves for training N parameters; negative when serving exceeds it."""
    return flops / (6 * params) - tokens_served / 3


PRESETS = {
    "chinchilla": ComputeLaw(
        "preset chinchilla (published constants)",
        A=np.array([406.4]),
        B=np.array([410.7]),
        E=np.array([1.69]),
        alpha=np.array([0.34]),
        beta=np.array([0.28]),
        scope=CHINCHILLA_SCOPE,
        notes=(OTHER_APPROACHES,),
    )
}


def preset(name: str = "chinchilla") -> ComputeLaw:
    """Return a law by its published constants.

    Parameters
    ----------
    name : str
        ``chinchilla``: Hoffmann et al., approach 3, eq. 10, as printed (rounded).

    Returns
    -------
    ComputeLaw

    Raises
    ------
    NotFoundError
        When there is no such preset.

    Examples
    --------
    >>> law = preset("chinchilla")
    >>> round(float(law.loss(np.array([70e9]), np.array([1.4e12]))[0, 0]), 3)
    1.937
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    return PRESETS[name]


@dataclass(frozen=True)
class Allocation:
    """Least loss at one budget, and the loss along all splits of it.

    Attributes
    ----------
    flops, tokens_served : float
        The budget, and the tokens whose serving it also pays for.
    prob : float
        Probability of the intervals.
    law : ComputeLaw
    optimum : DataFrame, (quantity,)
        Rows ``params``, ``tokens``, ``loss``, ``tokens_per_parameter``, and ``exponent_params`` and
        ``exponent_tokens``, or with serving ``training_flops`` and ``serving_flops`` in their place; column
        ``value`` and, where there are draws, of which it is the median, ``law_90_lower`` and
        ``law_90_upper``.
    curve : DataFrame, one row a model size
        81 sizes around the optimum (with serving: those that it leaves room for, and some close to the
        largest), and those asked for: ``params``, ``tokens``, ``tokens_per_parameter``,
        ``loss`` (median over draws, with its interval), ``excess`` over the least loss of the same draw
        (median), ``extrapolation``.
    sizes : DataFrame, one row a model size
        The rows of `curve` that were asked for, in that order; empty where none were.
    extrapolates : bool
        Whether the optimum lies outside the fitted range.
    notes : tuple of Note
    """

    flops: float
    tokens_served: float
    prob: float
    law: ComputeLaw
    optimum: pd.DataFrame
    curve: pd.DataFrame
    sizes: pd.DataFrame
    extrapolates: bool
    notes: tuple[Note, ...]

    @property
    def scope(self) -> Scope:
        """What the runs behind the law were."""
        return self.law.scope

    @property
    def converged(self) -> bool:
        """Whether the fit that the law was taken from can be trusted; published constants are."""
        return self.law.converged

    def __str__(self) -> str:
        """Return the optimum, the scope and the notes as text."""
        names = {"params": "parameters N*", "tokens": "tokens D*", "loss": self.scope.metric}
        names |= {"tokens_per_parameter": "tokens per parameter"}
        names |= {"exponent_params": "N* grows as C^", "exponent_tokens": "D* grows as C^"}
        names |= {"training_flops": "training FLOPs", "serving_flops": "serving FLOPs"}
        widest = max(22, len(self.scope.metric))
        kind = "median" if self.law.has_draws else "value"
        lines = [
            f"{self.flops:.3g} FLOPs for {self._spent()}, {self.law.name}",
            "EXTRAPOLATION: the optimum lies outside the fitted range" if self.extrapolates else "",
            "",
        ]
        for name, row in self.optimum.iterrows():
            interval = f"   [{row.iloc[1]:.4g}, {row.iloc[2]:.4g}]" if self.law.has_draws else ""
            lines.append(f"{names[str(name)]:<{widest}}{row['value']:>11.4g}{interval}")
        if self.law.has_draws:
            lines.append(f"({kind} and interval {self.optimum.columns[1].removesuffix('_lower')})")
        text = "\n".join([*lines, "", str(self.scope), *map(str, self.notes)])
        return text.replace("\n\n\n", "\n\n")

    def _spent(self) -> str:
        """What the budget pays for, and with serving how the optimum splits it."""
        if not self.tokens_served:
            return "training"
        training, serving = self.optimum.loc[["training_flops", "serving_flops"], "value"]
        return (
            f"training and serving (at the optimum {training:.3g} for training, {serving:.3g} for serving "
            f"{self.tokens_served:.3g} tokens)"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return {
            "flops": self.flops,
            "tokens_served": self.tokens_served,
            "law": self.law.name,
            "converged": self.converged,
            "extrapolation": self.extrapolates,
            "optimum": self.optimum.to_dict("index"),
            "curve": self.curve.to_dict("records"),
            "sizes": self.sizes.to_dict("records"),
            "scope": self.scope.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }


def _law_of(law: ComputeLaw | LossFit | LossPointFit | str, family: str | None) -> ComputeLaw:
    """The law itself, or that of a fit or preset."""
    if isinstance(law, LossFit | LossPointFit):
        return ComputeLaw.from_fit(law, family=family)
    if family is not None:
        raise RequestError("family belongs to a fit: this law has one set of constants")
    return preset(law) if isinstance(law, str) else law


def allocate(
    flops: float | str,
    law: ComputeLaw | LossFit | LossPointFit | str = "chinchilla",
    *,
    family: str | None = None,
    tokens_served: float | str = 0.0,
    sizes: list[float | str] | None = None,
    metric: str | None = None,
    prob: float = 0.9,
) -> Allocation:
    """Find the model size and token count of least loss at a compute budget.

    Parameters
    ----------
    flops : float or str
        Budget in FLOPs, such as ``1e21``: 6·N·D, and 2·N for each token served.
    law : ComputeLaw, LossFit, LossPointFit or str
        A law; a fit of one, whose draws give every answer its interval; or the name of a preset, published
        constants without uncertainty.
    family : str, optional
        For a fit whose law differs by family.
    tokens_served : float or str
        Tokens that the model will serve; 0 leaves serving out of the cost.
    sizes : list of float or str, optional
        Model sizes to compare, absolute (``"7B"``), beside the 81 around the optimum.
    metric : str, optional
        What is asked about; refused unless it is what the law was fitted to.
    prob : float
        Probability of the equal-tailed intervals.

    Returns
    -------
    Allocation

    Raises
    ------
    RequestError
        The metric is another one, the budget is not absolute or does not pay for serving; a family is
        missing, or named where there is none.
    InputError
        A count cannot be read or is not absolute: "7" parameters is refused, "7B" read.
    NotFoundError
        No such preset, or family.

    Notes
    -----
    Hoffmann et al. (arXiv 2203.15556), approach 3. With draws, N* and D* are found for every draw.

    Examples
    --------
    >>> result = allocate(1e21)
    >>> f"{result.optimum.loc['params', 'value']:.3g}"
    '1.82e+09'
    >>> import bayescdm as cdm
    >>> posterior = cdm.fit_loss(cdm.chinchilla_points(), "chinchilla")  # doctest: +SKIP
    >>> cdm.allocate(1e21, posterior)  # doctest: +SKIP
    """
    law = _law_of(law, family)
    if metric is not None:
        law.scope.require(metric)
    budget, served = parse_flops(flops), _served(tokens_served)
    lower, upper = interval_columns("law", check_probability(prob))
    N, D = law.optimum(budget, served)
    least = law.loss(N[:, None], D[:, None])
    share = law.alpha + law.beta
    quantities = {
        "params": N,
        "tokens": D,
        "loss": least[:, 0],
        "tokens_per_parameter": D / N,
    }
    if served:
        quantities |= {"training_flops": 6 * N * D, "serving_flops": 2 * N * served}
    else:
        quantities |= {"exponent_params": law.beta / share, "exponent_tokens": law.alpha / share}
    bounds = {name: _centre(draws[:, None], prob)[:, 0] for name, draws in quantities.items()}
    optimum = pd.DataFrame.from_dict(bounds, orient="index", columns=["value", lower, upper])
    asked = np.array([absolute_count(size, "params", SMALLEST_PARAMS) for size in sizes or []])
    affordable = asked[tokens_left(budget, asked, served) > 0]
    if len(asked) and not len(affordable):
        raise RequestError(_unaffordable(budget, served, asked))
    around = _sizes_around(optimum.loc["params", "value"], affordable)
    if served:
        # Towards the size whose serving takes the whole budget the loss rises ever faster.
        around = np.union1d(around, budget / (2 * served) * (1 - 0.5 ** np.arange(2, 7)))
    curve = _curve(law, budget, served, np.union1d(around, affordable), least, prob)
    if not law.has_draws:
        optimum, curve = optimum[["value"]], curve.drop(columns=[lower, upper])
    compared = curve.set_index("params", drop=False).loc[affordable].reset_index(drop=True)
    best_N, best_D = optimum.loc[["params", "tokens"], "value"]
    outside = law.scope.extrapolates(params=best_N, volume=best_D)
    notes = list(law.notes)
    for what, told in ((WHAT_OF_SIZES, compared), (WHAT_OF_CURVE.format(N=best_N), curve)):
        notes += law.scope.extrapolation_note(told["extrapolation"].to_numpy(), what=what)
    if len(affordable) < len(asked):
        message = _unaffordable(budget, served, asked[tokens_left(budget, asked, served) <= 0])
        notes.append(Note("serving-exceeds-budget", message, "warning"))
    if not served:
        notes.append(SERVING)
    else:
        notes.append(SERVED)
    return Allocation(budget, served, prob, law, optimum, curve, compared, bool(outside), tuple(notes))


def _sizes_around(best: float, asked: np.ndarray) -> np.ndarray:
    """Sizes of the loss curve, as dense out to the sizes asked for as around the optimum."""
    apart = 2 * np.log(REACH) / 80
    low = min([best / REACH, *asked])
    high = max([best * REACH, *asked])
    below, above = (np.ceil(np.log(reach) / apart) for reach in (best / low, high / best))
    return best * np.exp(apart * np.arange(-max(below, 40), max(above, 40) + 1))


def _unaffordable(flops: float, served: float, params: np.ndarray) -> str:
    """Say which sizes cannot pay for their serving, with the figures."""
    costs = "; ".join(f"{N:.3g} parameters × {served:.3g} tokens × 2 = {2 * N * served:.3g}" for N in params)
    largest = flops / (2 * served)
    return (
        f"serving alone costs more than the budget of {flops:.3g} FLOPs ({costs} FLOPs): ask for a model "
        f"below {largest:.3g} parameters, for fewer tokens or for a larger budget"
    )


def _curve(
    law: ComputeLaw, flops: float, served: float, params: np.ndarray, least: np.ndarray, prob: float
) -> pd.DataFrame:
    """Loss along the splits of one budget; sizes whose serving alone exceeds it are left out."""
    tokens = tokens_left(flops, params, served)
    params, tokens = params[tokens > 0], tokens[tokens > 0]
    draws = law.loss(params, tokens)
    lower, upper = interval_columns("law", prob)
    middle, low, high = _centre(draws, prob)
    return pd.DataFrame(
        {
            "params": params,
            "tokens": tokens,
            "tokens_per_parameter": tokens / params,
            "loss": middle,
            lower: low,
            upper: high,
            "excess": np.median(draws - least, axis=0),
            "extrapolation": law.scope.extrapolates(params=params, volume=tokens),
        }
    )


def _centre(draws: np.ndarray, prob: float) -> np.ndarray:
    """Median, lower and upper bound over draws, shape (3, point)."""
    return np.quantile(draws, [0.5, (1 - prob) / 2, (1 + prob) / 2], axis=0)


def absolute_count(value: float | str, name: str, least: float) -> float:
    """Read a count and insist that it is absolute.

    Parameters
    ----------
    value : float or str
        ``"7B"``, ``7e9``.
    name : str
        What is counted, for the message.
    least : float
        Below this the user left out a letter or an exponent.

    Returns
    -------
    float

    Raises
    ------
    InputError
        The text is no count, or the count is below `least`.

    Examples
    --------
    >>> absolute_count("7B", "params", 1e5)
    7000000000.0
    """
    try:
        count = parse_count(value)
    except InputError as error:
        number = _number(value)
        if number is None:
            raise InputError(f"{name}: {error}") from None
        why = "not above 0" if number <= 0 else "beyond any count" if number >= 1 else "no absolute count"
        raise InputError(f"{name} {value} is {why}: write it as 7B or 7e9") from None
    if count < least:
        raise InputError(
            f"{name} {count:g} is not an absolute count: write {count:g}B or {count:g}e9 for "
            f"{count:g} billion"
        )
    return count


def _number(text: float | str) -> float | None:
    """Read a plain number, or return None."""
    try:
        return float(text)
    except ValueError:
        return None


def _served(tokens: float | str) -> float:
    """Read the tokens served; 0 for none."""
    if isinstance(tokens, str) and _number(tokens) == 0:
        return 0.0
    return absolute_count(tokens, "tokens served", 1e3) if tokens else 0.0
