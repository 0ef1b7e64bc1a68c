"""How long an operation that is placed here waits for its start."""

from typing import Final

from landbridge.domain.candidate import Candidate
from landbridge.domain.preferences.base import Measure, Measurement, Observed
from landbridge.domain.requirements import Requirements

ENOUGH_STARTS: Final = 3


class QueueDelay(Measure):
    """Seconds from decision to start: as observed lately; else as the owner aims at; else unknown."""

    name = "queue-delay"
    observes = True

    def measure(self, requirements: Requirements, candidate: Candidate, observed: Observed) -> Measurement:  # noqa: ARG002
        if observed.starts >= ENOUGH_STARTS:
            return Measurement(observed.start_delay_s, "s", f"mean of the last {observed.starts} starts")
        aimed = candidate.contract.start_within_ms
        if aimed is not None:
            return Measurement(aimed / 1000, "s", f"objective of contract version {candidate.contract_version}")
        return Measurement(None, "s", "no starts observed and no objective stated")
