"""One best-fitting law: variable projection over the sphere, and the paper's Algorithm 1.

Both minimise the objective of appendix E of *What Transfers from Text to Vision?* (arXiv 2608.00013; SPEC
section 3),

    Σ_runs Huber_δ(P_pred − P) + λ Σ_backbones min(0, B0 − Bm·S)²,   S = Z·w, ‖w‖ = 1, A, B0, Bm > 0.

At fixed w the law is linear in everything else and the objective convex, so it has one minimum, found
exactly; only w, on a sphere of few dimensions, has to be searched. The array functions also start the
sampler; `point_fit` is the labelled surface.
"""

from bayescdm.pointfit.evolution import algorithm1
from bayescdm.pointfit.fit import PointFit, point_fit
from bayescdm.pointfit.objective import Solution
from bayescdm.pointfit.varpro import variable_projection

__all__ = ["PointFit", "Solution", "algorithm1", "point_fit", "variable_projection"]
