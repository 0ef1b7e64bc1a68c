"""What a constraint is, and the few phrases that all of them share."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import lru_cache
from typing import ClassVar, Protocol

from landbridge.domain.candidate import Candidate, Source
from landbridge.domain.requirements import Requirements, field_reader
from landbridge.domain.violation import Violation, Violations

OK: Violations = ()


class Constraint(Protocol):
    """One hard rule. Reads nothing but the requirement fields and the candidate's sources that it declares.

    `check` returns everything that violates the rule, or nothing. A rule that depends on time is `timed`, and then
    `holds_until` says when its answer may change although no input does; None means that it will not.
    """

    @property
    def name(self) -> str: ...
    @property
    def fields(self) -> tuple[str, ...]: ...
    @property
    def reads(self) -> frozenset[Source]: ...
    @property
    def timed(self) -> bool: ...

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations: ...

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None: ...

    def asks(self, requirements: Requirements) -> object:
        """Return what it reads of an operation: operations with equal values get equal answers everywhere."""
        ...

    def check_all(self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime) -> list[Violations]:
        """Return what `check` returns for each candidate, with what is the same for all done once."""
        ...

    def hold_all(
        self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime
    ) -> list[datetime | None]:
        """Return what `holds_until` returns for each candidate."""
        ...


class Rule:
    """Defaults of a constraint that does not depend on time and reads the contract only."""

    name: ClassVar[str] = ""
    fields: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[frozenset[Source]] = frozenset({Source.CONTRACT})
    timed: ClassVar[bool] = False

    def check(self, requirements: Requirements, candidate: Candidate, now: datetime) -> Violations:
        """Return what violates the rule; each rule has its own."""
        raise NotImplementedError

    def holds_until(self, requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:  # noqa: ARG002
        return None

    def asks(self, requirements: Requirements) -> object:
        """Return the fields that it declares; a rule that looks at fewer in some cases says so itself."""
        return field_reader(self.fields)(requirements)

    def check_all(self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime) -> list[Violations]:
        """Check one after the other; a rule that differs from operation to operation knows a shorter way."""
        check = self.check
        return [check(requirements, candidate, now) for candidate in candidates]

    def hold_all(
        self, requirements: Requirements, candidates: Sequence[Candidate], now: datetime
    ) -> list[datetime | None]:
        """Ask one after the other, likewise."""
        holds_until = self.holds_until
        return [holds_until(requirements, candidate, now) for candidate in candidates]


def listed(names: Iterable[str], nothing: str = "none") -> str:
    """Name things in order: `a, b, c`."""
    return ", ".join(sorted(names)) or nothing


@lru_cache(maxsize=4096)
def moment(at: datetime) -> str:
    """Write a moment as RFC 3339 in UTC, to the second."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=1024)
def nearest(name: str, known: frozenset[str]) -> str:
    """Return the known name that was probably meant, or an empty text."""
    near = get_close_matches(name, sorted(known), n=1)
    return near[0] if near else ""


def earliest(moments: Iterable[datetime | None]) -> datetime | None:
    """Return the first of the moments that are stated."""
    return min((at for at in moments if at is not None), default=None)


__all__ = ["OK", "Constraint", "Rule", "Violation", "Violations", "earliest", "listed", "moment", "nearest"]
