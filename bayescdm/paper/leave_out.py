"""Leave one family out: how the trajectories of a family that the law has never seen are met."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
from scipy.stats import beta

from bayescdm.datasets import paper_table
from bayescdm.intervals import interval_columns

if TYPE_CHECKING:
    from bayescdm.validate import Validation

__all__ = ["left_out_families"]


def left_out_families(validation: Validation) -> pd.DataFrame:
    """Tabulate exact refits without each family as the paper's section 3.5 has them.

    Parameters
    ----------
    validation : Validation
        From ``bayescdm.validate(study, by="family")``.

    Returns
    -------
    DataFrame, one row a family, and ``all``
        ``family``, ``backbones``, ``runs``, ``mae`` (a fraction), ``crps``, ``covered_run_95`` (share of runs
        in their own 95 % interval), ``covered_posterior_90_lower`` and ``…_upper`` (90 % interval of the
        share that the law would cover in the long run), ``all_within`` (1 when every run is in its interval,
        which even a calibrated law does not always reach), ``published_within_band`` (1 where the paper says
        that trajectories lie within the band, NaN where it is silent).

    Notes
    -----
    Runs of one backbone miss together, so the interval of the share is that of as many independent runs as
    there are backbones: Beta(½ + b·c, ½ + b·(1 − c)) with b backbones and share c, out to 0 or 1 where c is.
    It is wide. Runs whose recipe has no other run cannot be judged and are left out.

    Examples
    --------
    >>> import bayescdm as cdm
    >>> validation = cdm.validate("simulated-paper", model="transfer_pooled")  # doctest: +SKIP
    >>> cdm.left_out_families(validation)  # doctest: +SKIP
    """
    judged = validation.rows[validation.rows["evaluable"] == 1]
    figures = paper_table("published_figures").query("analysis == 'leave-one-family-out'")
    published = figures.set_index("subject")["value"]
    lower, upper = interval_columns("run", 0.95)
    rows = []
    for family, own in [*judged.groupby("family"), ("all", judged)]:
        inside = (own[lower] <= own["accuracy"]) & (own["accuracy"] <= own[upper])
        covered, backbones = float(inside.mean()), own["backbone"].nunique()
        low, high = beta(0.5 + backbones * covered, 0.5 + backbones * (1 - covered)).interval(0.9)
        # Where all or none are covered, that lies in the interval too.
        ends = (0.0 if covered == 0 else float(low), 1.0 if covered == 1 else float(high))
        rows.append(
            {
                "family": str(family),
                "backbones": backbones,
                "runs": len(own),
                "mae": float(own["error"].abs().mean()),
                "crps": float(own["crps"].mean()),
                "covered_run_95": covered,
                **dict(zip(interval_columns("posterior", 0.9, of="covered"), ends)),
                "all_within": int(inside.all()),
                "published_within_band": float(published.get(family, float("nan"))),
            }
        )
    table = pd.DataFrame(rows)
    table.attrs = {
        "model": validation.model,
        "study": validation.study,
        "volume_unit": validation.volume_unit,
        "simulated": int(validation.simulated),
        "converged": int(validation.converged),
        "kind": "run",
        "prob": 0.95,
    }
    return table
