"""Self-contained reports: the answer first, then what it stands on; and the same of one family or of all."""

from bayescdm.report.answers import Answer, answer
from bayescdm.report.document import Document
from bayescdm.report.families import family_reports
from bayescdm.report.family import FamilyReport, family_report
from bayescdm.report.make import report

__all__ = ["Answer", "Document", "FamilyReport", "answer", "family_report", "family_reports", "report"]
