"""Leave one family out: how the trajectories of a family that the law has never seen are met."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

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
        in their own interval), ``within_band`` (1 when nine tenths or more are), ``published_within_band``
        (1 where the paper says so, NaN where it is silent).

    Notes
    -----
    Runs whose recipe has no other run cannot be judged and are left out.

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
        covered = float(((own[lower] <= own["accuracy"]) & (own["accuracy"] <= own[upper])).mean())
        rows.append(
            {
                "family": str(family),
                "backbones": own["backbone"].nunique(),
                "runs": len(own),
                "mae": float(own["error"].abs().mean()),
                "crps": float(own["crps"].mean()),
                "covered_run_95": covered,
                "within_band": int(covered >= 0.9),
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
