"""How long the operation's inputs take to reach the environment."""

from landbridge.domain.candidate import Candidate
from landbridge.domain.preferences.base import Measure, Measurement, Observed
from landbridge.domain.requirements import Requirements
from landbridge.domain.staging import staging


class TransferTime(Measure):
    """Seconds to stage all inputs; 0 where they are at hand; unknown if a size or a bandwidth is."""

    name = "transfer-time"
    fields = ("connections",)

    def measure(self, requirements: Requirements, candidate: Candidate, observed: Observed) -> Measurement:  # noqa: ARG002
        stage = staging(requirements, candidate)
        return Measurement(stage.seconds, "s", stage.source)
