"""What the environment side of ownership knows, hears and wants done: state, messages and effects.

One `HeldOperation` per operation that this environment has ever been offered and not yet forgotten. Its slots are
durable (an exclusive directory, a Kubernetes Job, a Slurm job name); everything else may be lost with the process
and is rebuilt from the slots by `Restarted`.

Effects are carried out **in order**, each durably before the next one begins: `Tombstone` before `Report` is the
rule that keeps a relinquished epoch from ever starting.
"""

from enum import StrEnum

import msgspec

from landbridge.domain.ownership.epochs import NEVER_PLACED, Epoch
from landbridge.domain.ownership.policy import Disconnection


class SlotPhase(StrEnum):
    """EMPTY is never stored. FINISHED and TOMBSTONE are final: nothing starts there again."""

    EMPTY = "empty"
    CREATED = "created"
    RUNNING = "running"
    FINISHED = "finished"
    TOMBSTONE = "tombstone"


FINAL = frozenset({SlotPhase.FINISHED, SlotPhase.TOMBSTONE})


class ReportState(StrEnum):
    """What a report says of one placement (wire values)."""

    STARTED = "started"
    FINISHED = "finished"
    RELINQUISHED = "relinquished"
    FAILED_TO_START = "failed-to-start"
    CHECKPOINTED = "checkpointed"
    REFUSED = "refused"


class Outcome(StrEnum):
    """How a finished attempt ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class FinalReport(msgspec.Struct, frozen=True):
    """The recorded answer of a final slot, repeated unchanged (but for the term) until it is settled."""

    state: ReportState
    outcome: str = ""
    reason: str = ""
    detail: object = None
    """Opaque to ownership: the dispatcher's full report (exit code, outputs, resolved context)."""


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """The environment's test-and-set place for one epoch. Durable: phase, term, report, settled_term."""

    epoch: Epoch
    phase: SlotPhase
    term: int
    """The lease term of the grant under which this slot may start."""
    report: FinalReport | None = None
    reported_term: int = 0
    """The highest term in which the final report was handed to the outbox."""
    settled_term: int = 0
    """The term that was current when the centre acknowledged the final report; 0 = not settled."""
    stopping: str = ""
    """Why the work is being stopped; empty = it is not."""


class HeldOperation(msgspec.Struct, frozen=True, kw_only=True):
    """All that this environment knows of one operation."""

    operation: str
    highest: Epoch = NEVER_PLACED
    """The highest epoch ever seen here: commands below it are stale."""
    slots: tuple[Slot, ...] = ()
    """Ascending by epoch."""
    offered: Epoch | None = None
    claim_by: int = 0
    """Boot-clock time after which an unclaimed offer is forgotten; 0 = no limit."""
    claimed: Epoch | None = None
    """Claimed at least once: the centre may have granted it, and the answer may be lost, until an answer is here."""
    granted: Epoch | None = None
    """Granted, but waiting until a lower epoch is gone or the slot is occupied."""
    granted_term: int = 0
    policy: Disconnection = Disconnection()

    def slot(self, epoch: Epoch) -> Slot | None:
        """Return the slot of an epoch, None while it is empty."""
        for slot in self.slots:
            if slot.epoch == epoch:
                return slot
        return None

    @property
    def forgettable(self) -> bool:
        """Whether nothing is left to remember: no slot, no offer, no grant."""
        return not self.slots and self.offered is None and self.granted is None


# -- messages ---------------------------------------------------------------------------------------------------------


class Offer(msgspec.Struct, frozen=True):
    """The centre offers a placement. `refuse`: why the dispatcher cannot take it (too old, policy); empty = it can."""

    epoch: Epoch
    claim_by: int = 0
    policy: Disconnection = Disconnection()
    refuse: str = ""


class Granted(msgspec.Struct, frozen=True):
    """The claim reply names this placement, in this term."""

    epoch: Epoch
    term: int


class ClaimRefused(msgspec.Struct, frozen=True):
    """The claim reply refuses this placement. `retry`: only for now (stale term, not reconciled yet)."""

    epoch: Epoch
    reason: str = ""
    retry: bool = False


class Withdraw(msgspec.Struct, frozen=True):
    """The centre takes an unclaimed offer back."""

    epoch: Epoch


class Stop(msgspec.Struct, frozen=True):
    """The centre, or a person on site, wants this placement ended. `force` is needed for `must-finish` work."""

    epoch: Epoch
    reason: str = "cancelled"
    grace_ms: int = 30_000
    force: bool = False


class Settled(msgspec.Struct, frozen=True):
    """The centre has acknowledged this placement's final report."""

    epoch: Epoch


class Occupied(msgspec.Struct, frozen=True):
    """The test-and-set of `OccupySlot` succeeded."""

    epoch: Epoch
    term: int


class FoundOccupied(msgspec.Struct, frozen=True):
    """The test-and-set failed: the slot already exists, as read back. `ours`: its labels and specification match."""

    slot: Slot
    ours: bool = True

    @property
    def epoch(self) -> Epoch:
        return self.slot.epoch


class TrueStartCheck(msgspec.Struct, frozen=True):
    """The guardian stands at the true start and asks."""

    epoch: Epoch


class Started(msgspec.Struct, frozen=True):
    """The workload runs."""

    epoch: Epoch
    detail: object = None


class StartFailed(msgspec.Struct, frozen=True):
    """The workload never ran. `denied`: its guardian got `DenyStart`, so it is given back, not failed."""

    epoch: Epoch
    reason: str
    detail: object = None
    denied: bool = False


class Exited(msgspec.Struct, frozen=True):
    """The workload is gone. `self_stopped`: ended by the disconnection policy, not by itself and not by a command."""

    epoch: Epoch
    outcome: Outcome
    reason: str = ""
    detail: object = None
    self_stopped: bool = False


class Checkpointed(msgspec.Struct, frozen=True):
    """The workload sealed a checkpoint."""

    epoch: Epoch
    detail: object = None


class LeaseGranted(msgspec.Struct, frozen=True):
    """The environment's lease has a new term, or may start again: re-claim, report again, remove what is over."""


class LeaseLost(msgspec.Struct, frozen=True):
    """The lease has ended locally (also as a periodic tick while it is lost)."""


class Restarted(msgspec.Struct, frozen=True):
    """A new dispatcher process read the durable slots of this operation.

    `lost`: epochs in CREATED or RUNNING of which surely nothing runs and no exit was recorded. Where an exit was
    recorded, feed `Exited` afterwards instead.
    """

    slots: tuple[Slot, ...]
    lost: tuple[Epoch, ...] = ()
    policy: Disconnection = Disconnection()


class Disappeared(msgspec.Struct, frozen=True):
    """The workload's object was removed behind our back; it surely does not run."""

    epoch: Epoch
    reason: str = "removed-externally"


Message = (
    Offer | Granted | ClaimRefused | Withdraw | Stop | Settled | Occupied | FoundOccupied | TrueStartCheck | Started
    | StartFailed | Exited | Checkpointed | LeaseGranted | LeaseLost | Restarted | Disappeared
)  # fmt: skip


# -- effects ----------------------------------------------------------------------------------------------------------


class Claim(msgspec.Struct, frozen=True):
    """Ask the centre for this placement (batched with others into one claim request)."""

    epoch: Epoch
    term: int


class OccupySlot(msgspec.Struct, frozen=True):
    """Create the slot under its fixed name, atomically; answer with `Occupied` or `FoundOccupied`."""

    epoch: Epoch
    term: int


class RegrantSlot(msgspec.Struct, frozen=True):
    """Write a newer grant's term into a slot that was created and has not started."""

    epoch: Epoch
    term: int


class StartWork(msgspec.Struct, frozen=True):
    """Start the workload of an occupied slot, unless that is under way; its guardian asks `TrueStartCheck` first."""

    epoch: Epoch


class AllowStart(msgspec.Struct, frozen=True):
    """Answer to `TrueStartCheck`: go."""

    epoch: Epoch


class DenyStart(msgspec.Struct, frozen=True):
    """Answer to `TrueStartCheck`: not now (`wait`: ask again, a newer grant is on its way) or never."""

    epoch: Epoch
    wait: bool
    reason: str


class StopWork(msgspec.Struct, frozen=True):
    """Stop a running workload: checkpoint if asked to, TERM, grace, KILL; then feed `Exited`."""

    epoch: Epoch
    reason: str
    grace_ms: int
    checkpoint: bool = False


class Tombstone(msgspec.Struct, frozen=True):
    """Occupy the slot for ever, creating it if empty, and make sure that nothing of it runs."""

    epoch: Epoch
    report: FinalReport


class RecordFinished(msgspec.Struct, frozen=True):
    """Write the final report into the slot."""

    epoch: Epoch
    report: FinalReport


class Report(msgspec.Struct, frozen=True):
    """Hand a report to the durable outbox."""

    epoch: Epoch
    state: ReportState
    term: int
    outcome: str = ""
    reason: str = ""
    detail: object = None


class MarkSettled(msgspec.Struct, frozen=True):
    """Write into the slot that the centre has acknowledged it, and in which term."""

    epoch: Epoch
    term: int


class RemoveSlot(msgspec.Struct, frozen=True):
    """Delete the slot: its operation's report is settled and the term is over."""

    epoch: Epoch


class Alarm(msgspec.Struct, frozen=True):
    """Something that a person must see."""

    kind: str
    message: str


Effect = (
    Claim | OccupySlot | RegrantSlot | StartWork | AllowStart | DenyStart | StopWork | Tombstone | RecordFinished
    | Report | MarkSettled | RemoveSlot | Alarm
)  # fmt: skip


class Decision(msgspec.Struct, frozen=True):
    """The next state and what to do, in order."""

    state: HeldOperation
    effects: tuple[Effect, ...] = ()
