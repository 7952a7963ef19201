"""Read some thousand studies with random faults and print how many were read and how many refused.

Run: ``python tests/benchmarks/fuzz_reading.py [examples] [seed]`` (2,000 examples by default).
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, seed, settings

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzzed_studies import MutatedStudy, check_outcome, mutated_studies


def main(examples: int = 2000, first_seed: int = 0) -> None:
    """Run the property and print the counts."""
    outcomes: Counter[str] = Counter()
    faults: Counter[str] = Counter()

    @seed(first_seed)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(mutated_studies())
    def property_holds(study: MutatedStudy) -> None:
        outcomes[check_outcome(study)] += 1
        faults.update(study.faults)

    start = time.monotonic()
    property_holds()
    print(
        f"{outcomes.total()} studies in {time.monotonic() - start:.0f} s: {dict(outcomes)}, no other outcome"
    )
    for fault, count in faults.most_common():
        print(f"  {count:5d} × {fault}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
