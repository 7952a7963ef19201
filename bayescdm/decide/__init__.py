"""From the posterior to a decision: which backbone, at which volume, at what cost, and what to try next."""

from bayescdm.decide.choice import Choice, choose
from bayescdm.decide.constraints import Constraints
from bayescdm.decide.costs import CostTable, read_cost_table, training_flops
from bayescdm.decide.value import evpi, evsi, preposterior_means

__all__ = [
    "Choice",
    "Constraints",
    "CostTable",
    "choose",
    "evpi",
    "evsi",
    "preposterior_means",
    "read_cost_table",
    "training_flops",
]
