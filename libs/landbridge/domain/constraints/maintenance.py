"""No maintenance window is open, and none opens before the work is expected to be finished."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations, moment
from landbridge.domain.maintenance import next_opening
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class Maintenance(Rule):
    """Codes: `in-maintenance`, `maintenance-ahead`. Without an expected duration only an open window counts."""

    name = "maintenance"
    fields = ("expected_ms",)
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        windows = candidate.contract.maintenance
        ahead = next_opening(windows, now) if windows else None
        if ahead is None:
            return OK
        start, end = ahead
        if start > now and start >= now + timedelta(milliseconds=requirements.expected_ms):
            return OK
        code = "in-maintenance" if start <= now else "maintenance-ahead"
        found = f"a window from {moment(start)} until {moment(end)}"
        return (Violation(self.name, code, Kind.NOT_NOW, "no maintenance while it runs", found),)

    def check_all(self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime) -> list[Violations]:
        """Look only where there are windows."""
        check = self.check
        return [check(requirements, each, now) if each.contract.maintenance else OK for each in candidates]

    def hold_all(
        self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime
    ) -> list[datetime | None]:
        """Look only where there are windows."""
        holds_until = self.holds_until
        return [holds_until(requirements, each, now) if each.contract.maintenance else None for each in candidates]

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        windows = candidate.contract.maintenance
        if not windows:
            return None
        ahead = next_opening(windows, now)
        if ahead is None:
            # Beyond what is expanded: look again when the next day is.
            return (now.astimezone(UTC) + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        start, end = ahead
        expected = timedelta(milliseconds=requirements.expected_ms)
        if start < now + expected or start <= now:
            return start if now < start else end
        # The first moment at which the work would run into the window.
        return start - expected + timedelta(microseconds=1 if expected else 0)
