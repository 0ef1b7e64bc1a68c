"""How long the operation's inputs take to reach the environment."""

from collections.abc import Callable, Sequence

from landbridge.domain.candidate import Candidate
from landbridge.domain.preferences.base import Measure, Measurement, Observed
from landbridge.domain.requirements import Requirements
from landbridge.domain.staging import AT_HAND, moves_data, staging


class TransferTime(Measure[Candidate]):
    """Seconds to stage all inputs; 0 where they are at hand; unknown if a size or a bandwidth is."""

    name = "transfer-time"
    fields = ("connections",)

    def place(self, candidate: Candidate, observed: Observed) -> Candidate:  # noqa: ARG002
        return candidate

    def asking(self, requirements: Requirements) -> Callable[[Sequence[Candidate]], list[Measurement]]:
        if not moves_data(requirements):
            at_hand = Measurement(AT_HAND.seconds, "s", AT_HAND.source)
            return lambda places: [at_hand] * len(places)

        def ask(places: Sequence[Candidate]) -> list[Measurement]:
            stages = [staging(requirements, candidate) for candidate in places]
            return [Measurement(stage.seconds, "s", stage.source) for stage in stages]

        return ask
