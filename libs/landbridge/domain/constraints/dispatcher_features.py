"""The environment's dispatcher understands everything that the operation needs of it."""

from datetime import datetime

from landbridge.domain.candidate import Candidate, LinkState, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, listed
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class DispatcherFeatures(Rule):
    """Codes: `feature-missing` (the dispatcher is too old, or its executor cannot do it)."""

    name = "features"
    fields = ("features",)
    reads = frozenset({Source.LINK})

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:  # noqa: ARG002
        link = candidate.link
        missing = [feature for feature in requirements.features if feature not in link.features]
        # Where nothing is known of the dispatcher, the link itself says so.
        if not missing or (not link.features and link.state is not LinkState.CONNECTED):
            return OK
        wanted, found = (
            f"a dispatcher that understands {listed(missing)}",
            f"one that understands {listed(link.features)}",
        )
        return (Violation(self.name, "feature-missing", Kind.MISCONFIGURED, wanted, found),)
