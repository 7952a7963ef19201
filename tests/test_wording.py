"""Numbers in sentences: none reads as the threshold that it misses, nor as less than the one it reaches."""

import re

import numpy as np
import pandas as pd
from hypothesis import assume, example, given
from hypothesis import strategies as st

from bayescdm.decide.words import _equality, _likelier, _reason
from bayescdm.report.answers import _likelier as _likelier_of_answer
from bayescdm.report.answers import _told_apart
from bayescdm.wording import more_than, reaching, short_of, undecided

THRESHOLDS = st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.954, 0.99, 0.995]) | st.integers(501, 999).map(
    lambda n: n / 1000
)
#: Distances from a threshold, down to one draw of very many.
OFF = st.floats(0, 0.02) | st.floats(0, 1e-4) | st.just(0.0)
FIGURE = r"[<>≥]?\.\d+(?:e-\d+)?"


def read(figure):
    """Least and greatest value that a figure may be read as."""
    value = float(figure.lstrip("<>≥"))
    return {"<": (0.0, np.nextafter(value, 0)), ">": (np.nextafter(value, 1), 1.0), "≥": (value, 1.0)}.get(
        figure[0], (value, value)
    )


@given(THRESHOLDS, OFF)
@example(0.9, 1e-5)
@example(0.99, 1e-5)
def test_what_misses_a_threshold_reads_as_less(threshold, off):
    p = threshold - off
    assume(p < threshold)
    assert read(short_of(p, threshold))[1] < threshold
    least = round(1 - threshold, 9)
    if p >= 0.5:
        assert read(undecided(p, threshold))[1] < threshold
    if least < 1 - p < 0.5:
        assert read(undecided(1 - p, threshold))[0] > least


@given(THRESHOLDS, OFF)
@example(0.954, 1e-5)
@example(0.995, 0.00499)
def test_what_reaches_a_threshold_reads_as_no_less(threshold, off):
    p = min(1.0, threshold + off)
    figure = reaching(p, threshold)
    assert read(figure)[0] >= min(threshold, 0.99 if figure == ">.99" and threshold <= 0.99 else threshold)
    assert "1." not in figure


@given(st.floats(0, 0.5), OFF)
def test_the_greater_of_two_reads_as_greater(q, off):
    p = q + off
    assume(p > q)
    words = more_than(p, q)
    figures = re.findall(FIGURE, words)
    if "against" in words:
        assert read(figures[0])[0] > read(figures[1])[1]
    elif words.startswith("by less"):
        assert p - q < 2e-4
    else:
        assert round(p, 2) > round(q, 2) or p < 0.01 or q < 0.01


@given(THRESHOLDS, OFF, OFF)
def test_a_sentence_on_practical_equality_does_not_contradict_itself(threshold, below, above):
    question = {"equivalent": 0.01, "reference": "a", "probability": threshold}
    names = {"a": "A", "b": "B", "c": "C"}
    p = pd.Series({"a": 1.0, "b": min(1.0, threshold + above), "c": threshold - below})

    def said(p):
        verdict = np.where(p >= threshold, "practically equal", "")
        table = pd.DataFrame({"p_equivalent": p, "verdict": verdict})
        return [
            read(figure) for figure in re.findall(rf"\(({FIGURE})\)", _equality(table, question, names)[0])
        ]

    assert said(p) and all(low >= min(threshold, 0.99) for low, _ in said(p))
    assume(below > 0 and p["c"] < threshold)
    ((_, high),) = said(p.drop("b"))
    assert high < threshold


@given(THRESHOLDS, OFF, OFF)
@example(0.855, 0.015625, 0.0)
def test_sentences_on_who_is_told_apart_do_not_contradict_themselves(threshold, below, above):
    better, worse = min(1.0, threshold + above), threshold - below
    assume(worse < threshold)
    p = np.array([np.nan, better, worse])
    ranking = pd.DataFrame({"p_first_better": p, "tied": p < threshold})
    names = ["A", "B", "C"]
    told, untold = re.findall(
        rf"B with probability ({FIGURE})|C \(({FIGURE})\)", _reason(ranking, names, threshold)
    )
    assert read(told[0])[0] >= min(threshold, 0.99)
    assert read(untold[1])[1] < threshold
    cannot, tells = _told_apart(ranking, names, threshold)
    assert read(re.search(rf"C \(({FIGURE})\)", cannot)[1])[1] < threshold
    assert read(re.search(rf"B \(({FIGURE})\)", tells)[1])[0] >= min(threshold, 0.99)


@given(st.floats(0.02, 0.49), st.floats(1e-3, 0.01))
def test_the_likelier_candidate_is_never_given_the_probability_of_the_first(q, off):
    ranking = pd.DataFrame({"p_best": [q, q + off]})
    for words in (_likelier, _likelier_of_answer):
        (sentence,) = words(ranking, ["A", "B"])
        figures = re.findall(FIGURE, sentence)
        shown = [float(figure) for figure in figures]
        assert shown[0] > (shown[1] if len(shown) > 1 else round(q, 2))
