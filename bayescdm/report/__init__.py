"""One self-contained page: the answer first, then what it stands on."""

from bayescdm.report.answers import Answer, answer
from bayescdm.report.make import report

__all__ = ["Answer", "answer", "report"]
