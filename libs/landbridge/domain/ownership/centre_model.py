"""What the centre's side of ownership knows and hears: state and messages; see `centre_effects` for what it wants done.

One `OperationState` per operation: the row that the coordinator locks. Times are integer milliseconds on the
coordinator's clock for timers; how long a lease has been silent arrives as a duration, measured elsewhere.
"""

from enum import StrEnum

import msgspec

from landbridge.domain.lifecycle import Phase
from landbridge.domain.ownership.centre_asked import (
    CancelRequested,
    DeclaredDead,
    MoveRequested,
    Override,
    Preempted,
    QueueChanged,
)
from landbridge.domain.ownership.centre_effects import (
    Alarm,
    Effect,
    Free,
    Grant,
    Lifecycle,
    RaiseTerm,
    RefuseClaim,
    Requeue,
    SendOffer,
    SendSettle,
    SendStop,
    SendWithdraw,
    Verdict,
)
from landbridge.domain.ownership.centre_reported import (
    InventoryItem,
    InventoryMissing,
    ReportCheckpointed,
    Reported,
    ReportFailedToStart,
    ReportFinished,
    ReportRefused,
    ReportRelinquished,
    ReportStarted,
)
from landbridge.domain.ownership.epochs import NEVER_PLACED, Epoch
from landbridge.domain.ownership.gang_model import (
    NO_GANG,
    Gang,
    GangBroken,
    GangComplete,
    GangShrunk,
    GangWaits,
)
from landbridge.domain.ownership.policy import Disconnection, Retries

__all__ = [
    "OWNED",
    "Accepted",
    "AdoptFound",
    "Alarm",
    "CancelRequested",
    "Claim",
    "Decided",
    "Decision",
    "DeclaredDead",
    "Effect",
    "EnvironmentExpired",
    "Former",
    "Free",
    "Gang",
    "GangBroken",
    "GangComplete",
    "GangShrunk",
    "GangWaits",
    "GenerationRaised",
    "Grant",
    "InventoryItem",
    "InventoryMissing",
    "KnownEnd",
    "Lifecycle",
    "LinkLost",
    "Message",
    "MoveRequested",
    "OfferTimeout",
    "OperationState",
    "Override",
    "PlacementState",
    "Preempted",
    "QueueChanged",
    "QueueTimeout",
    "RaiseTerm",
    "Recovered",
    "RefuseClaim",
    "ReportCheckpointed",
    "ReportFailedToStart",
    "ReportFinished",
    "ReportRefused",
    "ReportRelinquished",
    "ReportStarted",
    "Reported",
    "Requeue",
    "RetryDue",
    "SendOffer",
    "SendSettle",
    "SendStop",
    "SendWithdraw",
    "StartDue",
    "Timer",
    "Verdict",
    "Waiting",
]


class PlacementState(StrEnum):
    """Where the current epoch stands between the centre and its environment."""

    IDLE = "idle"
    OFFERED = "offered"
    CLAIMED = "claimed"
    RUNNING = "running"
    DONE = "done"
    RECOVERING = "recovering"
    """The centre was restored: nothing is placed before the environments have shown what they hold."""


OWNED = frozenset({PlacementState.CLAIMED, PlacementState.RUNNING})


class Timer(StrEnum):
    """What `due_at` waits for."""

    NONE = ""
    OFFER = "offer"
    QUEUE = "queue"
    RETRY = "retry"
    START = "start"


class KnownEnd(StrEnum):
    """What was judged or recorded of an earlier placement's end. The same need not be told again."""

    NONE = ""
    ENDED = "ended"
    COMPLETED = "completed"


class Former(msgspec.Struct, frozen=True):
    """An earlier epoch that was granted, and to whom: only that environment may still speak of it.

    `attempt`: as its events told it.
    """

    epoch: Epoch
    environment: str
    attempt: int = 0
    told: KnownEnd = KnownEnd.NONE


class OperationState(msgspec.Struct, frozen=True, kw_only=True):
    """All that the centre knows about who owns an operation."""

    operation: str
    project: str
    phase: Phase = Phase.ACCEPTED
    op_seq: int = 1
    """Number of the last lifecycle event; intake wrote 1."""
    generation: int = 1
    round: int = 1
    epoch: Epoch = NEVER_PLACED
    """The highest epoch issued. It is the current one whatever the placement's state."""
    environment: str = ""
    """Where the current epoch was placed."""
    placement: PlacementState = PlacementState.IDLE
    grant_term: int = 0
    """Term of the latest grant of the current epoch; 0 = never granted."""
    former: tuple[Former, ...] = ()
    concluded: bool = False
    """Whether a final report of the current epoch was recorded."""
    missing: bool = False
    """Whether a restored environment has no record of it: it counts as running."""
    attempts: int = 0
    """Placements that started."""
    failures: int = 0
    failed_starts: int = 0
    returns: int = 0
    """Placements in a row that came back before starting; slows down the next."""
    policy: Disconnection = Disconnection()
    retries: Retries = Retries()
    queue_timeout_ms: int = 86_400_000
    timer: Timer = Timer.NONE
    due_at: int = 0
    queue_due: int = 0
    cancel: str = ""
    """Why a cancel is wanted; empty = it is not."""
    cancel_forced: bool = False
    control_lost: bool = False
    unplaceable: bool = False
    exclude: tuple[str, ...] = ()
    """Environments that the current round must not choose."""
    decision_id: str = ""
    contract_version: int = 0
    """Of the verdict behind the current offer; 0 = not known."""
    valid_until: int = 0
    """Until when that verdict holds; 0 = until something changes."""
    checkpoint: str = ""
    """Manifest of the latest sealed checkpoint."""
    pinned: str = ""
    """The one environment that a person wants it in; it holds until the operation runs there."""
    overlap: Epoch = NEVER_PLACED
    """An epoch left by emergency override whose end nobody has proven."""
    stopping: str = ""
    """Why its environment was asked to give it back, other than by a move; empty = it was not."""
    queue: str = ""
    """The queue that a person has it wait in; empty = the one that it names."""
    priority: str = ""
    """The priority class that a person gave it; empty = the one that it names."""
    start_within_ms: int = 0
    """How long a gang may take from its grant to its start; 0 = it is none."""
    gang: Gang = NO_GANG
    """The gang of operations that it is a member of."""
    claimed: int = 0
    """Term in which the environment claimed the current offer of a gang's member; 0 = it did not yet."""
    together: bool = False
    """Whether all members were claimed, so that claims are granted."""


# -- messages ---------------------------------------------------------------------------------------------------------


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """Intake has committed an operation.

    `recovering`: the centre was restored and has not seen all inventories yet. It may have known this operation
    before, and an environment may hold it.
    """

    operation: str
    project: str
    policy: Disconnection = Disconnection()
    retries: Retries = Retries()
    queue_timeout_ms: int = 86_400_000
    generation: int = 1
    recovering: bool = False
    start_within_ms: int = 0
    gang: Gang = NO_GANG


class Decided(msgspec.Struct, frozen=True):
    """Ranking has chosen an environment for this round; `served_by` is the class of its accelerators there."""

    round: int
    environment: str
    decision_id: str = ""
    contract_version: int = 0
    valid_until: int = 0
    served_by: str = ""


class Waiting(msgspec.Struct, frozen=True):
    """Eligibility or ranking makes this round wait."""

    round: int
    reason: str
    message: str = ""
    unplaceable: bool = False


class Claim(msgspec.Struct, frozen=True):
    """The environment claims, holding the lease of `term` (already compared with the environment's row).

    `stale_verdict`: why the verdict behind the offer no longer holds; empty = it holds.
    """

    environment: str
    epoch: Epoch
    term: int
    stale_verdict: str = ""


class OfferTimeout(msgspec.Struct, frozen=True):
    """The offer's time may be over."""


class QueueTimeout(msgspec.Struct, frozen=True):
    """The queue time may be over."""


class RetryDue(msgspec.Struct, frozen=True):
    """The wait before the next round may be over."""


class StartDue(msgspec.Struct, frozen=True):
    """The time in which a gang must have started may be over."""


class LinkLost(msgspec.Struct, frozen=True):
    """The centre has not heard the environment for a lease's time."""

    environment: str


class EnvironmentExpired(msgspec.Struct, frozen=True, kw_only=True):
    """The environment's lease has been silent for `silent_ms`, on the boot clock of the one active expirer.

    `self_stop_verified`: its verifier measured that work stops by itself there. `held`: the centre suspects itself.
    """

    environment: str
    silent_ms: int
    wait_ms: int
    """What the expiry rule demands for this operation's policy."""
    self_stop_verified: bool = False
    held: bool = False


class AdoptFound(msgspec.Struct, frozen=True):
    """A named person has the centre take over a slot that it did not know of."""

    found: InventoryItem
    by: str
    reason: str = ""


class GenerationRaised(msgspec.Struct, frozen=True):
    """The centre was restored from a backup and begins a new generation."""

    generation: int


class Recovered(msgspec.Struct, frozen=True):
    """All environments have shown what they hold; `best` is the slot with the highest epoch, None if there is none."""

    best: InventoryItem | None = None


Message = (
    Accepted | Decided | Waiting | Claim | ReportStarted | ReportFinished | ReportRelinquished | ReportFailedToStart
    | ReportCheckpointed | ReportRefused | CancelRequested | OfferTimeout | QueueTimeout | RetryDue | LinkLost
    | EnvironmentExpired | DeclaredDead | Override | MoveRequested | AdoptFound | StartDue | Preempted | QueueChanged
    | InventoryItem | InventoryMissing | GenerationRaised | Recovered | GangComplete | GangBroken | GangShrunk
    | GangWaits
)  # fmt: skip


class Decision(msgspec.Struct, frozen=True):
    """The next state and what to do."""

    state: OperationState
    effects: tuple[Effect, ...] = ()
