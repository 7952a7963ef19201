"""Names of backbones, families, recipes and benchmarks: cleaning, and matching when unambiguous."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

from bayescdm.reading.cells import undecorated

__all__ = [
    "Labels",
    "clean_label",
    "clean_title",
    "fold",
    "label_key",
    "likely_typos",
    "nearest",
    "spelled_differently",
]

_HYPHENS = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe63\uff0d"), "-")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff\u200e\u200f"), "")
_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()]*\)")
_TAG = re.compile(r"<[^<>]+>")
_NO_LETTERS = ("So", "Sk", "Cs", "Co", "Cc")


def clean_label(text: str) -> tuple[str, str]:
    """Return a label with plain hyphens and spaces and without marks, and why it was changed.

    Parameters
    ----------
    text : str

    Returns
    -------
    label : str
    why : str
        Empty when nothing was changed; names odd characters by their code points.
    """
    odd = [c for c in text if ord(c) in _HYPHENS or ord(c) in _INVISIBLE or (c.isspace() and c != " ")]
    plain = text.translate(_HYPHENS).translate(_INVISIBLE)
    plain = unicodedata.normalize("NFC", " ".join(plain.split()))
    label = undecorated(plain)[0]
    reasons = []
    if odd:
        names = ", ".join(dict.fromkeys(f"U+{ord(c):04X}" for c in odd))
        reasons.append(f"odd characters ({names}) replaced by plain ones")
    if label != plain:
        reasons.append("marks removed")
    if not reasons and label != text.strip():
        reasons.append("spaces or accents written in one way")
    return label, "; ".join(reasons)


def clean_title(text: str) -> str:
    """Return a column title without links, tags, marks, pictures, arrows and percent signs.

    Examples
    --------
    >>> clean_title("🏆 **[GQA](https://x.org)** ↑ (%)")
    'GQA'
    """
    text = text.translate(_HYPHENS).translate(_INVISIBLE)
    text = _TAG.sub(" ", _LINK.sub(r"\1", text))
    text = re.sub(r"[(\[]\s*(%|percent|↑|↓)\s*[)\]]|[%↑↓⬆⬇▲▼]", " ", text)
    text = "".join(c for c in text if unicodedata.category(c) not in _NO_LETTERS and c not in "\ufe0f`")
    text = undecorated(" ".join(text.split()))[0]
    return unicodedata.normalize("NFC", text.replace("**", "").strip())


def fold(text: str) -> str:
    """Return the letters and digits of a text in lower case."""
    return re.sub(r"[\W_]", "", text.casefold())


def label_key(label: str) -> str:
    """Return what labels share that differ in case, spaces, hyphens or underscores only.

    A separator between two digits counts: ``x-2-1b`` and ``x-21b`` are different models.

    Examples
    --------
    >>> label_key("Qwen_2.5-7B Instruct") == label_key("qwen2.5-7b-instruct")
    True
    >>> label_key("x-2-1b") == label_key("x-21b")
    False
    """
    joined = re.sub(r"[\s_\-]+", "-", label.casefold()).strip("-")
    return re.sub(r"(?<!\d)-|-(?!\d)", "", joined)


class Labels:
    """Known labels, by which others are matched when exactly one of them can be meant.

    Parameters
    ----------
    known : iterable of str
    """

    def __init__(self, known: Iterable[str]):
        self.known = list(dict.fromkeys(known))
        self._exact = set(self.known)
        self._by_key: dict[str, list[str]] = {}
        self._by_model: dict[str, list[str]] = {}
        for label in self.known:
            self._by_key.setdefault(label_key(label), []).append(label)
            self._by_model.setdefault(_without_organisation(label), []).append(label)

    def match(self, label: str) -> tuple[list[str], str]:
        """Return the labels that may be meant, and in what they differ from the given one.

        Returns
        -------
        meant : list of str
            One label: matched. Several: ambiguous. None: unknown.
        how : str
            Empty for an exact match.
        """
        if label in self._exact:
            return [label], ""
        if same := self._by_key.get(label_key(label)):
            return same, "same but for case, spaces or hyphens"
        organised = "/" in label
        same = [x for x in self._by_model.get(_without_organisation(label), []) if ("/" in x) != organised]
        return same, "same but for the organisation before '/'"

    def nearest(self, label: str) -> str:
        """Return a hint that names the nearest labels."""
        return nearest(label, self.known)


def nearest(label: str, known: Iterable[str]) -> str:
    """Return a hint such as ``nearest: 'GQA'``, or the first of the known labels when none is near."""
    known = list(known)
    folded: dict[str, str] = {}
    for candidate in known:
        folded.setdefault(candidate.casefold(), candidate)
    if near := [folded[match] for match in get_close_matches(label.casefold(), folded, n=2, cutoff=0.6)]:
        return "nearest: " + " or ".join(f"'{name}'" for name in near)
    listed = ", ".join(f"'{name}'" for name in known[:5])
    return f"there are {listed}" + (f" and {len(known) - 5} more" if len(known) > 5 else "")


def spelled_differently(labels: Iterable[str]) -> dict[str, str]:
    """Return, for each label that differs from a more frequent one in case or hyphens only, that one.

    Parameters
    ----------
    labels : iterable of str
        With repetitions; ties go to the label that comes first.

    Returns
    -------
    dict of str to str
        Odd spelling → usual spelling.
    """
    counts: dict[str, dict[str, int]] = {}
    for label in labels:
        spellings = counts.setdefault(label_key(label), {})
        spellings[label] = spellings.get(label, 0) + 1
    usual: dict[str, str] = {}
    for spellings in counts.values():
        chosen = max(spellings, key=lambda name: spellings[name])
        usual |= {name: chosen for name in spellings if name != chosen}
    return usual


def likely_typos(labels: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of labels that differ by one letter left out or two exchanged, digits being the same.

    Parameters
    ----------
    labels : iterable of str

    Returns
    -------
    list of (str, str)
        The label that comes first stands first. A letter replaced by another is not taken for a typo:
        Mistral and Mixtral are two families.

    Examples
    --------
    >>> likely_typos(["Larkspur-2", "Larkspr-2", "Larkspur-3", "Mistral", "Mixtral"])
    [('Larkspur-2', 'Larkspr-2')]
    """
    known = list(dict.fromkeys(labels))
    return [(a, b) for i, a in enumerate(known) for b in known[i + 1 :] if _one_slip(fold(a), fold(b))]


def _one_slip(a: str, b: str) -> bool:
    """Whether one letter is missing in one of two words of some length, or two neighbours are exchanged."""
    short, long = sorted((a, b), key=len)
    if len(short) < 5 or re.findall(r"\d", a) != re.findall(r"\d", b) or short == long:
        return False
    if len(long) == len(short):
        differing = [i for i in range(len(long)) if long[i] != short[i]]
        exchanged = len(differing) == 2 and differing[1] == differing[0] + 1
        return exchanged and sorted(long) == sorted(short)
    return len(long) == len(short) + 1 and any(long[:i] + long[i + 1 :] == short for i in range(len(long)))


def _without_organisation(label: str) -> str:
    """The key of the part behind the last slash."""
    return label_key(label.rsplit("/", 1)[-1])
