"""What one replica knows in memory: its view of the world, the verdicts that follow, and the classes it has met.

Everything here can be derived again: the view from the streams, the classes from the table.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from landbridge.domain.eligibility_index import EligibilityIndex
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.verdict import Assessment
from landbridge.domain.view import View

# A class that has had no operation for so long is looked at now and then only: its next operation is assessed anyway.
ACTIVE_FOR = timedelta(minutes=15)
# An operation that nobody ended by then has been forgotten by everybody else: it cannot still be waiting.
KEEP_FOR = timedelta(days=30)


@dataclass(slots=True)
class KnownClass:
    """A requirement class with what was last announced of it, and when an operation last came."""

    requirement_class: RequirementClass
    announced: str
    keep_until: datetime
    used_at: datetime
    last: Assessment | None = None

    @property
    def key(self) -> str:
        return self.requirement_class.key

    @property
    def project(self) -> str:
        return self.requirement_class.requirements.project


class Deciding:
    """View, index and known classes of one replica."""

    def __init__(self) -> None:
        self.view = View()
        self.index = EligibilityIndex()
        self.known: dict[str, KnownClass] = {}

    def settle(self) -> bool:
        """Bring the index up to date with the view; tell whether anything changed."""
        if not self.view.unsettled:
            return False
        changes = self.view.settle()
        for name in sorted(changes.environments):
            self.index.set_environment(name, self.view.candidates.get(name, ()))
        return bool(changes)

    def assess(self, requirement_class: RequirementClass, now: datetime) -> Assessment:
        """Return the verdict about a class by the newest view."""
        self.settle()
        return self.index.assess(requirement_class, now, self.view.inputs())

    def learn(self, classes: Iterable[KnownClass]) -> None:
        """Take on classes that are new here; keep what is newer of those that are not."""
        for found in classes:
            known = self.known.get(found.key)
            if known is None:
                self.known[found.key] = found
            else:
                known.keep_until = max(known.keep_until, found.keep_until)
                known.used_at = max(known.used_at, found.used_at)

    def forget(self, now: datetime) -> None:
        """Drop classes that no operation can belong to any more."""
        for key in [key for key, known in self.known.items() if known.keep_until <= now]:
            del self.known[key]
