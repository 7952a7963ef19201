"""One cell: a score, a count (data volume, size), or what stands there instead of one."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from bayescdm.errors import InputError, RequestError
from bayescdm.reading.findings import shown

__all__ = [
    "IF_UNKNOWN",
    "UNMEASURED",
    "CellError",
    "Count",
    "Dots",
    "ProductError",
    "Score",
    "is_missing",
    "is_placeholder",
    "is_unnamed",
    "parse_count",
    "parse_flops",
    "read_count",
    "read_score",
    "shows_dotted_thousands",
    "undecorated",
]

#: What to do about a score that is none; not where an empty cell would be refused as well.
UNMEASURED = "leave the cell empty if it was not measured"

_MISSING = re.compile(
    r"[-–—―−]{1,3}|[-–—−] ?/ ?[-–—−]|[./\\]|#?n ?/? ?a|n\.a\.?|n/r|nan|null|none|nil|missing"
    r"|not[ -](available|reported)"
)
_PLACEHOLDER = re.compile(
    r"x+|\?+|\.{2,}|…|todo|tba|tbd|tbc|unk\.?|unknown|in progress|pending|running|ongoing|wip|(coming )?soon"
    r"|oom|fail(ed)?|error|err|crash(ed)?|n/?t|not (yet )?(tested|run|evaluated|measured|available)"
    r"|to be (added|announced|determined|done)"
)
_PLAIN = re.compile(r"-?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_SPACES = "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_ARROWS = "↑↓→←↗↘⇑⇓▲▼△▽▴▾⬆⬇🔺🔻🔼🔽Δ∆"

#: Marks around a number that say nothing about its value: bold, code, links, colours.
_WRAPPERS = [
    re.compile(pattern, re.DOTALL | re.IGNORECASE)
    for pattern in (
        r"\\(?:textbf|textit|underline|emph|mathbf|bf|bfseries|uline|textsc)\s*\{(.*)\}",
        r"\\(?:textcolor|colorbox|cellcolor)\s*\{[^{}]*\}\s*\{(.*)\}",
        r"<(?:b|i|u|em|strong|span|font|mark|code)(?:\s[^>]*)?>(.*)</\w+>",
        r"\*\*(.*)\*\*",
        r"__(.*)__",
        r"\*(.*)\*",
        r"_(.*)_",
        r"`(.*)`",
        r"\$(.*)\$",
        r"\[([^\[\]]*)\]\([^()]*\)",
    )
]
#: Footnotes behind a number. A superscript is never part of the figure: 57.6² is not 57.62.
_FOOTNOTE = re.compile(
    r"(?:<sup>[^<]*</sup>|<a\b[^>]*></a>|\[\^[^\]]*\]|\^\{[^{}]*\}|\$\^\{?[^{}$]*\}?\$|\^?(?:[*†‡]|\\d?dagger|\\ast|\\star)"
    r"|[§¶‖#∗✱⋆★☆⁺⁻⁰¹²³⁴⁵⁶⁷⁸⁹ᵃᵇᶜᵈᵉ])$"
)


#: Powers of ten that a letter or word behind a count stands for.
_POWERS = {"": 0, "k": 3, "thousand": 3, "m": 6, "mn": 6, "million": 6, "b": 9, "bn": 9, "billion": 9}
_POWERS |= {"t": 12, "trillion": 12}
_POWER = re.compile(r"[⁰¹²³⁴⁵⁶⁷⁸⁹^]|<su[pb]>")
_NO_COUNT = "is not a count: write a number such as 1200000, 1.2M or 558K+665K"
_NO_SIZE = "is not a size: write a number such as 7B or 938M, or leave the cell empty"
#: What a spreadsheet shows where a formula has failed.
_SHEET_ERROR = re.compile(r"#(div/0|ref|value|name|num|null)[!?]", re.IGNORECASE)
#: Three digits behind one dot: thousands or decimals.
_ONE_DOT = re.compile(r"[1-9]\d{0,2}\.\d{3}", re.ASCII)
_DOTTED_THOUSANDS = re.compile(r"[1-9]\d{0,2}(\.\d{3}){2,}", re.ASCII)
#: What can be done about a count in a table that may lack some.
IF_UNKNOWN = ", or leave the cell empty if it is unknown"
_NOT_POSITIVE = f"is not above 0: write the number{IF_UNKNOWN}"
#: Training runs of language models spend more; a smaller figure has lost its exponent.
SMALLEST_FLOPS = 1e12


#: How ``600.000`` is read in a column of counts.
Dots = Literal["decimal", "thousands", "unclear"]


class CellError(ValueError):
    """A cell that is refused; the message says what it looks like and what would be accepted."""


class ProductError(CellError):
    """A size such as ``1.6B×4-Top2``: clear to a reader, but not one number."""


@dataclass(frozen=True)
class Score:
    """A score as written: the figure, whether it bears a percent sign, and what was taken off."""

    value: Decimal
    percent: bool = False
    code: str = ""
    why: str = ""


@dataclass(frozen=True)
class Count:
    """A count as written: the figure, whether it was a bare number, and the active part of a size."""

    value: Decimal
    bare: bool = True
    active: Decimal | None = None
    why: str = ""


def is_missing(text: str) -> bool:
    """Whether a cell says that nothing was measured: empty, a dash, NA, and their like."""
    return not text or _MISSING.fullmatch(text.casefold()) is not None


def is_placeholder(text: str) -> bool:
    """Whether a cell holds a word in place of a figure still to come, such as ``TODO``."""
    return _PLACEHOLDER.fullmatch(text.casefold()) is not None


def is_unnamed(text: str) -> bool:
    """Whether a cell names nothing: missing, or a placeholder; a lone x may be a name."""
    return is_missing(text) or (is_placeholder(text) and text.casefold() not in ("x", "xx"))


def shows_dotted_thousands(text: str) -> bool:
    """Whether dots in a count can only separate thousands, as in ``1.200.000``."""
    return any(_DOTTED_THOUSANDS.fullmatch(part.strip()) for part in undecorated(text)[0].split("+"))


def parse_count(text: str | float) -> float:
    """Read a count such as a data volume or a model size.

    Parameters
    ----------
    text : str or number
        ``"1,200,000"``, ``"1 200 000"``, ``"2.600.000"``, ``"1.2e6"``, ``"1.8M"``, ``"558K+665K"``, ``"7B"``,
        ``"30.85B-A3B"`` (the total is meant), or a number.

    Returns
    -------
    float
        The absolute count, above 0.

    Raises
    ------
    InputError
        When the text is not one clear count (``"2-a"``, ``"1.6B×4-Top2"``, ``"1,223M"``) or not above 0.

    Examples
    --------
    >>> parse_count("558K+665K")
    1223000.0
    >>> parse_count("30.85B-A3B")
    30850000000.0
    """
    try:
        return float(read_count(str(text).strip()).value)
    except CellError as error:
        raise InputError(f"value {shown(str(text))} {str(error).removesuffix(IF_UNKNOWN)}") from None


def parse_flops(flops: str | float) -> float:
    """Read a budget of training.

    Parameters
    ----------
    flops : str or float
        The absolute number, such as ``"1e21"``.

    Returns
    -------
    float
        Floating-point operations.

    Raises
    ------
    RequestError
        When it is no number, or too small to be a budget.

    Examples
    --------
    >>> parse_flops("3e24")
    3e+24
    """
    try:
        value = float(flops)
    except ValueError:
        raise RequestError(f"'{flops}' is not a number of FLOPs: write it as 1e21") from None
    if not SMALLEST_FLOPS <= value < math.inf:
        raise RequestError(f"{value:g} FLOPs is no training budget: write the absolute number, such as 1e21")
    return value


def read_score(text: str, decimal: str = ".") -> Score:
    """Read a score cell that is neither missing nor a placeholder.

    Parameters
    ----------
    text : str
    decimal : {".", ","}
        Decimal mark of the file.

    Returns
    -------
    Score

    Raises
    ------
    CellError
        When the cell is not one clear figure.
    """
    if _PLAIN.fullmatch(text):
        return Score(_decimal(text))
    body, marks = undecorated(text)
    percent = body.endswith("%")
    body = body.removesuffix("%").rstrip()
    code = "decoration-removed" if marks else ""
    why = "marks removed; a mark often means another evaluation" if marks else ""
    if percent and not marks:
        code, why = "percent-sign-removed", "percent sign removed"
    if not _PLAIN.fullmatch(body):
        body = _with_decimal_point(body, decimal)
        if decimal == "." and not marks:
            code, why = "decimal-comma", "decimal comma read as a decimal point"
    if not _PLAIN.fullmatch(body):
        raise CellError(_why_no_score(text))
    return Score(_decimal(body), percent, code, why)


def read_count(
    text: str, decimal: str = ".", *, whole: bool = True, dots: Dots = "decimal", size: bool = False
) -> Count:
    """Read a count cell that is neither missing nor a placeholder.

    Parameters
    ----------
    text : str
    decimal : {".", ","}
        Decimal mark of the file.
    whole : bool
        Whether a bare number must be whole; then ``1,200`` can only be 1200.
    dots : {"decimal", "thousands", "unclear"}
        How a bare ``600.000`` is read in a file with decimal points; where unclear it is refused.
    size : bool
        Whether it is the size of a model, for what the message advises.

    Returns
    -------
    Count
        `bare` when the text is a number without a letter.

    Raises
    ------
    CellError
        When the cell is not one clear count above 0.
    """
    body, marks = undecorated(text)
    if _POWER.search(text):
        raise CellError("has a power or a footnote: write the number alone")
    if re.search(r"[×xX*]\s*\d", body):
        raise ProductError("is a product, not one number: write the total")
    active = None
    if moe := re.fullmatch(r"(.*\d\s*[KMBT])\s*[-_ ]\s*A(\d+\.?\d*[KMBT])", body, re.IGNORECASE):
        body, active = moe[1], _term(moe[2], decimal, whole=whole)[0]
    terms = [
        _term(part.strip(), decimal, whole=whole, dots=dots, hint=_NO_SIZE if size else _NO_COUNT)
        for part in body.split("+")
    ]
    value = sum((term[0] for term in terms), Decimal(0))
    bare = all(term[1] for term in terms)
    if not bare and any(term[1] for term in terms):
        raise CellError("adds figures with and without a letter: write the total")
    if value <= 0:
        raise CellError(_NOT_POSITIVE)
    if not 1e-9 < value < 1e20:
        raise CellError("is beyond any count of samples, tokens or parameters")
    if active is not None and active > value:
        raise CellError("has more active than total parameters")
    plain = bare and len(terms) == 1 and _PLAIN.fullmatch(text) and _decimal(text) == value
    why = "" if plain else "marks removed" if marks else "written out"
    return Count(value, bare, active, why)


def _term(
    text: str, decimal: str, *, whole: bool, dots: Dots = "decimal", hint: str = _NO_COUNT
) -> tuple[Decimal, bool]:
    """One summand of a count: its value, and whether it has no letter behind it."""
    if dots != "decimal" and decimal == "." and _ONE_DOT.fullmatch(text):
        joined = text.replace(".", "")
        if dots == "unclear":
            few = f"{Decimal(text).normalize():f}"
            raise CellError(f"may be {joined} or {few}: write one of them, without a dot before three digits")
        return _decimal(joined), True
    number, letter = text, ""
    if match := re.fullmatch(r"(.*\d\.?)\s*([a-z]+)", text, re.IGNORECASE | re.DOTALL):
        number, letter = match[1], match[2].casefold()
    if letter not in _POWERS:
        raise CellError(hint)
    number = _without_thousands(number, decimal, whole and not letter)
    if number.startswith("-"):
        raise CellError(_NOT_POSITIVE)
    if not _PLAIN.fullmatch(number):
        raise CellError(hint)
    return _decimal(number).scaleb(_POWERS[letter]), not letter


def _without_thousands(number: str, decimal: str, whole: bool) -> str:
    """The number without separators of thousands and with a decimal point; unclear ones are refused."""
    if re.fullmatch(rf"\d{{1,3}}(?:[ '’_{_SPACES}]\d{{3}})+", number, re.ASCII):
        return re.sub(r"\D", "", number)
    if re.fullmatch(r"\d{1,3}([,.])\d{3}(\1\d{3})+", number, re.ASCII):
        return re.sub(r"\D", "", number)
    if re.fullmatch(r"[1-9]\d{0,2}[,.]\d{3}", number, re.ASCII) and number.count(decimal) == 0 and whole:
        return re.sub(r"\D", "", number)
    if "," in number:
        return _with_decimal_point(number, decimal)
    if decimal == "," and "." in number:
        raise CellError("mixes decimal marks: write thousands without a separator")
    return number


def _with_decimal_point(number: str, decimal: str) -> str:
    """A number with a decimal comma, rewritten; in a file with points, three digits behind it are refused."""
    if not re.fullmatch(r"-?\d+,\d+", number, re.ASCII):
        return number
    if decimal == "." and re.fullmatch(r"-?[1-9]\d{0,2},\d{3}", number):
        raise CellError("may have a decimal comma or a separator of thousands: write it without a comma")
    return number.replace(",", ".")


def undecorated(text: str) -> tuple[str, bool]:
    """The cell without spaces, wrappers and footnotes, and whether any mark was taken off."""
    body = text.strip().strip(_SPACES).replace("−", "-")
    marks = False
    while True:
        bare = body
        for wrapper in _WRAPPERS:
            if match := wrapper.fullmatch(bare):
                bare = match[1]
        bare = _FOOTNOTE.sub("", bare).strip().strip(_SPACES)
        bare = _without_emoji(bare).removeprefix("'")
        if bare == body:
            return body, marks
        body, marks = bare, True


def _without_emoji(text: str) -> str:
    """The text without pictures before or behind it; arrows stay, since they may mean a difference."""
    while text and text[0] not in _ARROWS and unicodedata.category(text[0]) in ("So", "Mn", "Cf", "Sk"):
        text = text[1:].lstrip()
    while text and text[-1] not in _ARROWS and unicodedata.category(text[-1]) in ("So", "Mn", "Cf"):
        text = text[:-1].rstrip()
    return text


def _decimal(text: str) -> Decimal:
    """The exact figure; ``-0`` is 0."""
    return Decimal(text) + 0


def _why_no_score(text: str) -> str:
    """What a refused score looks like, and what would be accepted."""
    if _SHEET_ERROR.fullmatch(text):
        return f"is the error of a spreadsheet: write the score, or {UNMEASURED}"
    figures = len(re.findall(r"\d+(?:[.,]\d+)?", text))
    if "±" in text or "+/-" in text:
        return "holds a spread beside the score: put it in a column standard_error"
    if any(arrow in text for arrow in _ARROWS) or text.lstrip().startswith("+"):
        return "may be a difference rather than a score: write the score alone"
    if figures > 1 and ("/" in text or "|" in text or ";" in text or "\\" in text):
        return "holds two values: which is meant? Write one, or make two benchmarks of them"
    if "/" in text and figures:
        return "has room for two values: write the one that is meant"
    if "(" in text or "[" in text:
        return "has brackets, whose meaning differs from table to table: write the score alone"
    if re.search(r"\d{4}-\d\d-\d\d", text):
        return "is a date, into which spreadsheets turn some figures: write the score"
    if re.search("inf", text, re.IGNORECASE):
        return f"is not finite: write the score, or {UNMEASURED}"
    return f"is not a number: write the score alone, or {UNMEASURED}"
