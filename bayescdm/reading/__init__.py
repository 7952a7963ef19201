"""Files to a Study: what users really bring, read without guessing and without losing anything silently."""

from bayescdm.reading.candidates import UNKNOWN
from bayescdm.reading.cells import parse_count, parse_flops
from bayescdm.reading.fix import fix_study
from bayescdm.reading.load import load_study, read_candidates, read_runs, read_text_scores
from bayescdm.reading.settings import Settings

__all__ = [
    "UNKNOWN",
    "Settings",
    "fix_study",
    "load_study",
    "parse_count",
    "parse_flops",
    "read_candidates",
    "read_runs",
    "read_text_scores",
]
