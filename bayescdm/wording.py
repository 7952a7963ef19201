"""Numbers, names and lists as they stand in sentences, tables and legends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bayescdm.intervals import Kind

__all__ = [
    "and_more",
    "counted",
    "first_of",
    "interval_label",
    "more_than",
    "percent",
    "points",
    "probability",
    "reaching",
    "short_by_name",
    "short_count",
    "short_names",
    "short_of",
    "signed_number",
    "signed_points",
    "study_name",
    "undecided",
]


def percent(fraction: float) -> str:
    """Write a fraction in percent with one digit after the point.

    Examples
    --------
    >>> percent(0.6974)
    '69.7 %'
    """
    return f"{100 * fraction:.1f} %"


def points(fraction: float) -> str:
    """Write a difference of fractions in accuracy points.

    Examples
    --------
    >>> points(0.0123)
    '1.2 points'
    """
    return f"{100 * fraction:.1f} points"


def probability(p: float) -> str:
    """Write a probability with two digits; draws cannot tell less than one in a hundred from never.

    Examples
    --------
    >>> [probability(p) for p in (0.417, 0.0, 0.999)]
    ['.42', '<.01', '>.99']
    """
    if p < 0.01:
        return "<.01"
    return ">.99" if p > 0.99 else f"{p:.2f}".removeprefix("0")


def short_of(p: float, threshold: float) -> str:
    """Write a probability below a threshold with as many digits as keep it from reading as the threshold.

    Examples
    --------
    >>> [short_of(p, 0.9) for p in (0.417, 0.8951, 0.899, 0.89999)]
    ['.42', '.895', '.899', '<.9']
    """
    return _on_its_side(p, lambda shown: shown < threshold) or f"<{_bare(threshold)}"


def reaching(p: float, threshold: float) -> str:
    """Write a probability of at least a threshold so that it reads as no less.

    Examples
    --------
    >>> [reaching(p, 0.9) for p in (0.9, 0.957, 0.999)], reaching(0.9541, 0.954), reaching(0.96, 0.956)
    (['.90', '.96', '>.99'], '.954', '.96')
    """
    return _on_its_side(p, lambda shown: shown >= threshold) or f"≥{_bare(threshold)}"


def undecided(p: float, threshold: float) -> str:
    """Write a probability that reaches neither a threshold nor one minus it so that it reads as neither.

    Examples
    --------
    >>> [undecided(p, 0.9) for p in (0.417, 0.8965, 0.1036, 0.10001)]
    ['.42', '.896', '.104', '>.1']
    """
    if p >= 0.5:
        return short_of(p, threshold)
    least = round(1 - threshold, 9)
    return _on_its_side(p, lambda shown: shown > least) or f">{_bare(least)}"


def more_than(p: float, q: float) -> str:
    """Write a probability above another, and both where two digits make them one.

    Examples
    --------
    >>> more_than(0.42, 0.31), more_than(0.4021, 0.398), more_than(0.40001, 0.4)
    ('.42', '.402 against .398', 'by less than .0001')
    """
    if probability(p) != probability(q):
        return probability(p)
    for digits in (3, 4):
        if _written(p, digits) > _written(q, digits):
            return f"{_bare(p, digits)} against {_bare(q, digits)}"
    return "by less than .0001"


def _on_its_side(p: float, holds: Callable[[float], bool]) -> str:
    """A probability with the fewest of 2 to 4 digits whose rounded value `holds`; empty where none does."""
    for digits in (2, 3, 4):
        shown = _written(p, digits)
        # Two digits are written as elsewhere, where what is below .01 or above .99 is an inequality.
        inequality = digits == 2 and not 0.01 <= p <= 0.99
        ends = (0.99, 1.0) if p > 0.5 else (0.0, 0.01)
        if all(map(holds, ends)) if inequality else holds(shown) and 0 < shown < 1:
            return probability(p) if digits == 2 else _bare(p, digits)
    return ""


def _written(p: float, digits: int) -> float:
    """The value of a number as written: NumPy rounds 0.855 up where its decimal form goes down."""
    return float(f"{p:.{digits}f}")


def _bare(p: float, digits: int | None = None) -> str:
    """A number below one without its leading zero."""
    return (f"{p:g}" if digits is None else f"{p:.{digits}f}").removeprefix("0")


def and_more(items: Sequence[str], listed: int) -> str:
    """List some items and count the rest.

    Examples
    --------
    >>> and_more(["a", "b", "c"], 3), and_more(["a", "b", "c"], 1)
    ('a, b and c', 'a and 2 more')
    """
    if len(items) > listed:
        return f"{', '.join(items[:listed])} and {len(items) - listed} more"
    return " and ".join(filter(None, [", ".join(items[:-1]), items[-1]]))


def counted(n: float, noun: str) -> str:
    """Write a number of things, in the singular where it is one.

    Examples
    --------
    >>> counted(1, "run"), counted(3, "run"), counted(2, "other family")
    ('1 run', '3 runs', '2 other families')
    """
    if n == 1:
        return f"1 {noun}"
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:.0f} {plural}"


def first_of(shown: int, every: int, noun: str) -> str:
    """Say how many of a list are shown; nothing is the first of itself.

    Examples
    --------
    >>> first_of(15, 90, "candidate"), first_of(12, 12, "candidate"), first_of(1, 1, "candidate")
    ('first 15 of 90 candidates', '12 candidates', '1 candidate')
    """
    return counted(every, noun) if shown == every else f"first {shown} of {counted(every, noun)}"


def short_names(labels: Iterable[object]) -> list[str]:
    """Names without their organisation where that leaves them distinct.

    Parameters
    ----------
    labels : iterable of str
        Such as ``Qwen/Qwen2.5-7B``.

    Returns
    -------
    list of str

    Examples
    --------
    >>> short_names(["Qwen/Qwen2-7B", "a/base", "b/base"])
    ['Qwen2-7B', 'a/base', 'b/base']
    """
    names = [str(label) for label in labels]
    short = [name.rsplit("/", 1)[-1] for name in names]
    return [brief if short.count(brief) == 1 else name for brief, name in zip(short, names)]


def interval_label(kind: Kind, prob: float) -> str:
    """What an interval is, for legends.

    Examples
    --------
    >>> interval_label("run", 0.9)
    'run, 90 % interval'
    """
    return f"{kind}, {100 * prob:g} % interval"


def study_name(name: str, *, simulated: bool) -> str:
    """Name a study; what is simulated is called so wherever it is named, once.

    Examples
    --------
    >>> study_name("mine", simulated=False), study_name("roster", simulated=True)
    ('mine', 'roster (simulated)')
    >>> study_name("simulated-paper", simulated=True)
    'simulated-paper'
    """
    return f"{name} (simulated)" if simulated and "simulated" not in name else name


def short_by_name(labels: Iterable[str]) -> dict[str, str]:
    """Look names up by what they are short for, as `short_names` shortens them together.

    Examples
    --------
    >>> short_by_name(["Qwen/Qwen2.5-7B", "microsoft/phi-2"])["microsoft/phi-2"]
    'phi-2'
    """
    labels = list(labels)
    return dict(zip(labels, short_names(labels)))


def short_count(volume: float) -> str:
    """Write a count with a letter and four digits at most, the way users write it.

    Examples
    --------
    >>> short_count(1_223_000)
    '1.223M'
    """
    for power, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")):
        if volume >= power:
            return f"{volume / power:.4g}{letter}"
    return f"{volume:.4g}"


def signed_number(value: float, digits: int = 3) -> str:
    """Write a number with its sign; what is rounded to zero has none.

    Examples
    --------
    >>> signed_number(-0.0512), signed_number(0.2, 2), signed_number(-0.0004, 2)
    ('−0.051', '+0.20', '0.00')
    """
    text = f"{value:+.{digits}f}"
    return text.replace("-", "−") if float(text) else text[1:]


def signed_points(fraction: float, *, unit: bool = True) -> str:
    """Write a difference of fractions in accuracy points, with its sign.

    Examples
    --------
    >>> signed_points(-0.0123), signed_points(0.02, unit=False)
    ('−1.2 points', '+2.0')
    """
    return signed_number(100 * fraction, 1) + (" points" if unit else "")
