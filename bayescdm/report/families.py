"""The reports of all families of a fit, on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bayescdm.compare.families import stated_volume
from bayescdm.compare.positions import EQUIVALENT
from bayescdm.predict import LawDraws
from bayescdm.report.document import Document, Documented
from bayescdm.report.family import FamilyReport, family_report

if TYPE_CHECKING:
    from bayescdm.fit import Fit

__all__ = ["FamilyReports", "family_reports"]


@dataclass(frozen=True)
class FamilyReports(Documented):
    """Reports of several families of one fit.

    Parameters
    ----------
    reports : sequence of FamilyReport
        Those with most runs first.
    """

    reports: Sequence[FamilyReport]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the first section says."""
        return tuple(self.document().sections[0].sentences)

    def document(self) -> Document:
        """Return the reports as sections, an overview first."""
        from bayescdm.report.family_sections import families_document

        return families_document(self.reports)


def family_reports(
    fit: Fit,
    *,
    recipe: str | None = None,
    volume: float | None = None,
    prob: float = 0.9,
    equivalent: float = EQUIVALENT,
    seed: int = 0,
) -> FamilyReports:
    """Work out what the draws say of every family that the law can place.

    Parameters
    ----------
    fit, recipe, volume, prob, equivalent, seed
        As for `bayescdm.report.family_report`; without a recipe each family is asked under its own, and
        without a volume at its own recipe's. Transfer rates are stated at one volume for all families: the
        asked one, or the study's D_ref.

    Returns
    -------
    FamilyReports

    Raises
    ------
    NotFoundError, RequestError, ModelError
        As for `bayescdm.report.family_report`.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> cdm.family_reports(cdm.fit("open-vlm")).write("families.html")  # doctest: +SKIP
    """
    study = fit.study
    placed = study.backbones.loc[study.placed, "family"]
    runs = study.fitted_runs["backbone"].map(study.backbones["family"]).value_counts()
    known = set(LawDraws.of(fit, 1).families)
    families = sorted(placed.unique(), key=lambda f: (f not in known, -int(runs.get(f, 0)), f))
    asked = {"recipe": recipe, "volume": volume, "prob": prob, "equivalent": equivalent, "seed": seed}
    # Rates at each family's own volume would not compare.
    asked["rates_at"] = stated_volume(fit, volume)
    return FamilyReports(tuple(family_report(fit, family, **asked) for family in families))  # type: ignore[arg-type]
