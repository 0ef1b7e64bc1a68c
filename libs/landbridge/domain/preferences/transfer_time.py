"""How long the operation's inputs take to reach the environment."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from landbridge.domain.candidate import Candidate
from landbridge.domain.preferences.base import Measure, Measurement, Observed
from landbridge.domain.requirements import Requirements
from landbridge.domain.staging import AT_HAND, moves_data, staging


class Way(NamedTuple):
    """An environment, and how fast its connections are as its probes have measured, in bits per second."""

    candidate: Candidate
    bandwidths: Mapping[str, float]


class TransferTime(Measure[Way]):
    """Seconds to stage all inputs; 0 where they are at hand; unknown if a size or a bandwidth is.

    A bandwidth that the environment's probes have measured lately counts for more than what a contract states.
    """

    name = "transfer-time"
    fields = ("connections",)
    observes = True

    def profile(self, candidate: Candidate, observed: Observed) -> Way:
        return Way(candidate, observed.bandwidths)

    def asking(self, requirements: Requirements) -> Callable[[Sequence[Way]], list[Measurement]]:
        if not moves_data(requirements):
            at_hand = Measurement(AT_HAND.seconds, "s", AT_HAND.source)
            return lambda profiles: [at_hand] * len(profiles)

        def ask(profiles: Sequence[Way]) -> list[Measurement]:
            stages = [staging(requirements, way.candidate, way.bandwidths) for way in profiles]
            return [Measurement(stage.seconds, "s", stage.source) for stage in stages]

        return ask
