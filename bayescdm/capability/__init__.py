"""Text scores to components: probabilistic PCA that equals plain PCA when no score is missing.

The law of SPEC section 2 sees a backbone only through its component scores Z. A backbone with every text
score has exact ones. Where scores are missing, Z is known up to what the unseen benchmarks could still
say, and that uncertainty is kept as a covariance.
"""

from bayescdm.capability.components import (
    Capability,
    Population,
    component_labels,
    fit_capability,
    fit_components,
)
from bayescdm.capability.placement import place_by_size

__all__ = [
    "Capability",
    "Population",
    "component_labels",
    "fit_capability",
    "fit_components",
    "place_by_size",
]
