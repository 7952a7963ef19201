"""Studies drawn from known parameters, always called simulated, with the truth beside them.

Text scores have a few components plus noise. Capability is S = λ·(X − mean) of the *measured* scores, as in
the law, so that the truth holds exactly whatever the noise. Accuracy is the transfer–absorption law plus a
backbone intercept, a recipe effect and a heavy-tailed residual.
"""

from bayescdm.simulate.folder import write_study
from bayescdm.simulate.paper import simulate
from bayescdm.simulate.rates import DEFAULT_RATES, RatePopulation
from bayescdm.simulate.studies import simulate_from, true_accuracy

__all__ = ["DEFAULT_RATES", "RatePopulation", "simulate", "simulate_from", "true_accuracy", "write_study"]
