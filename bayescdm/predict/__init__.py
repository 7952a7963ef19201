"""Predictions read off the posterior draws: accuracy of any backbone at any volume under a recipe.

Three kinds, each the one before with more spread added:

``law``
    what is not known of the law itself: w, S, rates, baseline, recipe; of a backbone with runs, its own
    intercept too.
``backbone``
    adds the intercept that a backbone without runs will turn out to have, N(0, τ): the accuracy that many
    runs of that backbone would average to. Same as ``law`` for backbones with runs.
``run``
    adds the Student-t residual: what one training run would measure (evaluation error of a small
    benchmark comes on top).

Three modes, after what the fit's runs say about a backbone:

``known backbone``
    has runs: its family's rates, its own S and intercept.
``new backbone of known family``
    its family's rates of its variant, from the partial pooling alone if no run has that cell; intercept
    from N(0, τ).
``new family``
    log rates drawn from the population, once a family, so that all rows of one new family share their
    draw. A missing family makes each row a family of its own; a missing variant is either variant with
    probability ½ in each draw.

Rows of one name are one backbone: equal rows get equal draws, rows that differ are refused.

A backbone or family whose runs all have weight 0 (held out) counts as new.
"""

from bayescdm.predict.candidates import (
    Candidates,
    CandidateTable,
    candidate_table,
    check_once,
    missing_benchmarks,
)
from bayescdm.predict.law import LawDraws
from bayescdm.predict.predictions import predict, predict_draws, prediction_table

__all__ = [
    "CandidateTable",
    "Candidates",
    "LawDraws",
    "candidate_table",
    "check_once",
    "missing_benchmarks",
    "predict",
    "predict_draws",
    "prediction_table",
]
