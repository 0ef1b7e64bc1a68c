"""What the rules look at: plain facts, collected by the service, with the moment they stand for. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Waiting:
    """Operations of one project and queue that wait for one reason. `eligible`: some environment could run them."""

    project: str
    queue: str
    reason: str
    eligible: bool
    oldest: datetime
    count: int


@dataclass(frozen=True, slots=True)
class Link:
    """Whether the centre hears an environment: connected, lost, reconciling or never."""

    state: str
    since: datetime | None
    quarantined: int = 0
    """Slots of unknown work that nobody has decided about."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The latest evidence for one claim."""

    claim: str
    result: str
    expires: datetime
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Starts:
    """What became of the placements in one environment within the window of failed dispatch."""

    placed: int
    failed: int
    reasons: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Messages that a service could not handle, within the window of dead letters."""

    count: int
    last_error: str


@dataclass(frozen=True, slots=True)
class Unowned:
    """A charge that no placement holds. `released`: it was given back."""

    operation: str
    reason: str
    released: bool


@dataclass(frozen=True, slots=True)
class World:
    """Everything at one moment. Only environments that have a contract are in it."""

    waiting: tuple[Waiting, ...] = ()
    links: Mapping[str, Link] = field(default_factory=dict)
    proofs: Mapping[str, tuple[Proof, ...]] = field(default_factory=dict)
    starts: Mapping[str, Starts] = field(default_factory=dict)
    dead_letters: Mapping[str, DeadLetters] = field(default_factory=dict)
    advisories: Mapping[str, str] = field(default_factory=dict)
    drifts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By environment: how many differences of each kind between what runs there and what is recorded."""
    unowned: Mapping[str, tuple[Unowned, ...]] = field(default_factory=dict)
    late_servers: frozenset[str] = frozenset()
    """Servers of the broker that acknowledge before data is on disk."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a fact becomes an alert."""

    queue_age: timedelta = timedelta(minutes=10)
    unplaced_age: timedelta = timedelta(minutes=10)
    lost_for: timedelta = timedelta(seconds=30)
    reconciling_for: timedelta = timedelta(minutes=5)
    failed_starts: int = 3
    failed_share: float = 0.2
    evidence_grace: timedelta = timedelta(seconds=60)
    quota_age: timedelta = timedelta(minutes=10)
