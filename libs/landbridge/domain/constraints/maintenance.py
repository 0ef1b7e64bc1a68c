"""No maintenance window is open, and none opens before the work is expected to be finished."""

from datetime import datetime, timedelta

from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import OK, Rule, Violations, moment
from landbridge.domain.maintenance import openings
from landbridge.domain.requirements import Requirements
from landbridge.domain.violation import Kind, Violation


class Maintenance(Rule):
    """Codes: `in-maintenance`, `maintenance-ahead`. Without an expected duration only an open window counts."""

    name = "maintenance"
    fields = ("expected_ms",)
    timed = True

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        windows = candidate.contract.maintenance
        if not windows:
            return OK
        wanted = "no maintenance while it runs"
        end = now + timedelta(milliseconds=requirements.expected_ms)
        for opening in openings(windows, now):
            found = f"a window from {moment(opening.start)} until {moment(opening.end)}"
            if opening.start <= now:
                return (Violation(self.name, "in-maintenance", Kind.NOT_NOW, wanted, found),)
            if opening.start < end:
                return (Violation(self.name, "maintenance-ahead", Kind.NOT_NOW, wanted, found),)
        return OK

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
        windows = candidate.contract.maintenance
        if not windows:
            return None
        ahead = openings(windows, now)
        if not ahead:
            return now + timedelta(days=1)  # beyond the expanded horizon; look again tomorrow
        start, end = ahead[0]
        expected = timedelta(milliseconds=requirements.expected_ms)
        if start < now + expected or start <= now:
            return start if now < start else end
        # The first moment at which the work would run into the window.
        return start - expected + timedelta(microseconds=1 if expected else 0)
