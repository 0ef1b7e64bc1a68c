"""The operation can be finished by its deadline: staging its data and running take time."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.constraints.base import OK, Rule, Violations, moment
from landbridge.domain.requirements import Requirements
from landbridge.domain.staging import moves_data, staging
from landbridge.domain.violation import Kind, Violation


class Deadline(Rule):
    """Codes: `deadline-passed`, `deadline-too-close`, `staging-time-unknown`.

    Without an expected duration only what is certain counts: that the deadline has not passed, and the staging time.
    """

    name = "deadline"
    fields = ("deadline", "expected_ms", "connections")
    reads = frozenset({Source.CONTRACT, Source.CATALOGUE})
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        deadline = requirements.deadline
        if deadline is None:
            return OK
        if now >= deadline:
            return (self._violation("deadline-passed", Kind.NEVER, deadline, "that moment has passed"),)
        needed, source = _needed(requirements, candidate)
        if needed is None:
            return (self._violation("staging-time-unknown", Kind.MISCONFIGURED, deadline, source),)
        if now + needed > deadline:
            found = f"{needed.total_seconds():.0f} s needed to stage and run ({source})"
            return (self._violation("deadline-too-close", Kind.NEVER, deadline, found),)
        return OK

    def check_all(self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime) -> list[Violations]:
        """Look once where nothing is to be staged: then every environment needs the same time."""
        if requirements.deadline is not None and moves_data(requirements):
            return super().check_all(requirements, candidates, now)
        return [self.check(requirements, candidates[0], now)] * len(candidates) if candidates else []

    def hold_all(
        self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime
    ) -> list[datetime | None]:
        """Look once, likewise."""
        if requirements.deadline is not None and moves_data(requirements):
            return super().hold_all(requirements, candidates, now)
        return [self.holds_until(requirements, candidates[0], now)] * len(candidates) if candidates else []

    def asks(self, requirements: Requirements) -> object:
        """Ask for nothing else where there is no deadline."""
        return super().asks(requirements) if requirements.deadline is not None else None

    def _violation(self, code: str, kind: Kind, deadline: datetime, found: str) -> Violation:
        return Violation(self.name, code, kind, f"to be finished by {moment(deadline)}", found)

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        deadline = requirements.deadline
        if deadline is None or now >= deadline:
            return None
        needed, _ = _needed(requirements, candidate)
        if needed is None or now + needed > deadline:
            return deadline
        # The first moment at which it is too late, not the last at which it is not.
        return deadline - needed + timedelta(microseconds=1)


def _needed(requirements: Requirements, candidate: Candidate) -> tuple[timedelta | None, str]:
    stage = staging(requirements, candidate)
    if stage.seconds is None:
        return None, stage.source
    return timedelta(seconds=stage.seconds, milliseconds=requirements.expected_ms), stage.source
