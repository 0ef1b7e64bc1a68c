"""The folded state of one operation, as it is stored, listed and compared byte for byte.

It holds what lists show. Attempts, with all that they ran on, are folded from the facts when somebody asks for them.
"""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from landbridge.domain.ownership.leases import GANG_INCOMPLETE
from landbridge.schema.wire.event_v1 import Phase

OPEN_PHASES = (Phase.ACCEPTED, Phase.QUEUED, Phase.PENDING, Phase.RUNNING, Phase.RETRYING)
WAITING_PHASES = frozenset({Phase.ACCEPTED, Phase.QUEUED, Phase.RETRYING})
TERMINAL_PHASES = frozenset({Phase.COMPLETED, Phase.FAILED, Phase.CANCELLED})


class Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Base of all parts of the state: immutable, camelCase in JSON, defaults left out."""


class Holding(Part, frozen=True, kw_only=True):
    """A condition that holds, and since when."""

    since: datetime
    reason: str = ""
    message: str = ""


class Waiting(Part, frozen=True, kw_only=True):
    """The latest reason to wait, by round and by the time at which it was told (`id` is a UUIDv7)."""

    round: int
    id: str
    at: datetime
    by: str = ""
    reason: str = ""
    message: str = ""
    assessment_id: str = ""
    condition: str = ""


class State(Part, frozen=True, kw_only=True):
    """One operation. `seq` is the last event folded; later events that came too early wait in `parked`, by number."""

    operation: str
    project: str
    name: str = ""
    queue: str = ""
    type: str = ""
    priority: str = ""
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    submitted_by: str = ""
    retry_of: str = ""
    idempotency_key: str = ""
    spec_sha256: str = ""
    effective_sha256: str = ""
    seq: int = 0
    phase: Phase = Phase.UNSPECIFIED
    round: int = 0
    attempt: int = 0
    epoch: str = ""
    environment: str = ""
    decision_id: str = ""
    reason: str = ""
    message: str = ""
    accepted_at: datetime | None = None
    changed_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    conditions: Mapping[str, Holding] = msgspec.field(default_factory=dict)
    superseded: int = 0  # reports that came too late and changed nothing
    waiting: Waiting | None = None
    parked: Mapping[str, bytes] = msgspec.field(default_factory=dict)

    @property
    def waits(self) -> Waiting | None:
        """The reason to wait, if the operation waits now."""
        current = self.waiting is not None and self.waiting.round >= self.round
        return self.waiting if current and self.phase in WAITING_PHASES else None

    @property
    def held_back(self) -> Waiting | None:
        """The reason for which an operation that is claimed is not granted: others of its gang are not claimed yet."""
        if self.phase is not Phase.PENDING or self.reason != GANG_INCOMPLETE or self.changed_at is None:
            return None
        return Waiting(
            round=self.round, id="", at=self.changed_at, by="dispatch", reason=self.reason, message=self.message
        )


_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(State)


def encode(state: State) -> bytes:
    """Return the one JSON text of a state: equal states give equal bytes."""
    return _ENCODER.encode(state)


def decode(text: bytes) -> State:
    """Read what `encode` wrote. Raises msgspec.ValidationError for anything else."""
    return _DECODER.decode(text)
