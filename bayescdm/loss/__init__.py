"""Loss laws: reading logs, point fits, Bayesian fits, allocation of compute."""
