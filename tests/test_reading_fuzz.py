"""Random faults in valid files: always a study whose reading is reported, or a BayesCDMError."""

from fuzzed_studies import check_outcome, examples_of_clean_studies, mutated_studies
from hypothesis import HealthCheck, example, given, settings


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@example(examples_of_clean_studies()[0])
@given(mutated_studies())
def test_every_outcome_is_reported_or_refused(study):
    assert check_outcome(study) in ("read", "refused")


def test_the_clean_study_is_read():
    assert check_outcome(examples_of_clean_studies()[0]) == "read"
