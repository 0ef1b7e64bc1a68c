"""How likely the environment is to let an attempt down."""

from collections.abc import Callable, Sequence
from typing import Final

from landbridge.domain.candidate import Candidate
from landbridge.domain.preferences.base import Measure, Measurement, Observed, as_they_stand
from landbridge.domain.requirements import Requirements

# How many observed attempts weigh as much as the owner's objective.
OBJECTIVE_WEIGHT: Final = 20
ENOUGH_ATTEMPTS: Final = 5


class Reliability(Measure[Measurement]):
    """Share of attempts that the environment lets down: its objective, corrected by what was observed lately."""

    name = "reliability"
    observes = True

    def asking(self, requirements: Requirements) -> Callable[[Sequence[Measurement]], list[Measurement]]:  # noqa: ARG002
        return as_they_stand

    def profile(self, candidate: Candidate, observed: Observed) -> Measurement:
        unit = "share of attempts"
        attempts, failures = observed.attempts, observed.failures
        availability = candidate.contract.availability
        if availability is None:
            if attempts < ENOUGH_ATTEMPTS:
                return Measurement(None, unit, "too few attempts observed and no objective stated")
            return Measurement(failures / attempts, unit, f"{failures} of the last {attempts} attempts")
        share = (failures + OBJECTIVE_WEIGHT * (1 - availability)) / (attempts + OBJECTIVE_WEIGHT)
        source = f"objective of contract version {candidate.contract_version}"
        if attempts:
            source += f" and {failures} of the last {attempts} attempts"
        return Measurement(share, unit, source)
