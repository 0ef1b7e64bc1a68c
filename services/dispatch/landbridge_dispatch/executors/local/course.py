"""When a running workload is asked to checkpoint, asked to end and made to end. Pure: time is an argument.

All moments are nanoseconds on the boot clock. Bounds of a self-stop count from the end of the lease, never from when
the guardian noticed, so that a late wake-up shortens the grace and never moves the end.
"""

from dataclasses import dataclass
from enum import StrEnum

from landbridge_dispatch.executors.local.order import Disconnection

MS = 1_000_000
LEASE_POLL_NS = 1000 * MS
MOVED = "moved"
SEALING = frozenset({MOVED, "preempted"})  # reasons of stops that want a checkpoint first; as in the rules of ownership


class Stage(StrEnum):
    """Each stage follows the one before; only a lease that comes back leads from CHECKPOINTING to RUNNING."""

    RUNNING = "running"
    CHECKPOINTING = "checkpointing"
    TERMINATING = "terminating"
    KILLING = "killing"


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Someone asked for the end: the dispatcher, the site's operator, or the end of a gang's member."""

    reason: str
    grace_ms: int
    force: bool = False


class Course:
    """The stages of one attempt."""

    def __init__(
        self,
        disconnection: Disconnection,
        *,
        started_ns: int,
        timeout_ms: int,
        grace_ms: int,
        checkpoints: bool = False,
    ) -> None:
        """`checkpoints`: the work declares where it seals them."""
        self.stage = Stage.RUNNING
        self.cause = ""
        self._disconnection = disconnection
        self._timeout_at = started_ns + timeout_ms * MS if timeout_ms else None
        self._grace_ns = grace_ms * MS
        self._lease_until = started_ns
        self._kill_at = 0
        self._checkpoints = checkpoints
        self._asked_at: int | None = None
        self._seal_until = 0

    def advance(self, now_ns: int, *, lease_until_ns: int, stop: StopRequest | None, sealed: bool) -> Stage:
        """Return the stage at `now_ns`. `sealed`: a checkpoint was sealed since one was asked for."""
        if self.stage in (Stage.RUNNING, Stage.CHECKPOINTING):
            self._lease_until = lease_until_ns
            self._leave_running(now_ns, stop, sealed=sealed)
        elif self.stage is Stage.TERMINATING and stop is not None:
            self._kill_at = min(self._kill_at, now_ns if stop.force else now_ns + stop.grace_ms * MS)
        if self.stage is Stage.TERMINATING and now_ns >= self._kill_at:
            self.stage = Stage.KILLING
        return self.stage

    def exceed_memory(self) -> None:
        """End a workload that holds more memory than it may, without grace, or the machine pays for it."""
        self.stage, self.cause = Stage.KILLING, self.cause or "out-of-memory"

    def end_gang(self, now_ns: int) -> None:
        """End the others once a member has failed. Not a cause: the member's own ending is what is told."""
        if self.stage in (Stage.RUNNING, Stage.CHECKPOINTING):
            self._terminate("", now_ns + self._grace_ns)

    def next_wake_ns(self, now_ns: int) -> int | None:
        """When `advance` has to be called again at the latest; None: not before something happens."""
        if self.stage is Stage.TERMINATING:
            return self._kill_at
        moments = [] if self._timeout_at is None else [self._timeout_at]
        if self._disconnection.stops_itself:
            lost = now_ns >= self._lease_until
            end = self._lease_until + self._disconnection.within_ms * MS
            moments += (end, now_ns + LEASE_POLL_NS) if lost else (self._lease_until,)
        if self._asked_at is not None:
            moments.append(self._seal_until)
        return min(moments, default=None)

    def _leave_running(self, now_ns: int, stop: StopRequest | None, *, sealed: bool) -> None:
        if stop is not None and stop.reason in SEALING and self._checkpoints and not stop.force:
            self._leave_by_move(now_ns, stop, sealed=sealed)
        elif stop is not None:
            self._terminate(stop.reason, now_ns if stop.force else now_ns + stop.grace_ms * MS)
        elif self._timeout_at is not None and now_ns >= self._timeout_at:
            self._terminate("timeout", now_ns + self._grace_ns)
        elif self._disconnection.stops_itself:
            self._leave_by_loss(now_ns, sealed=sealed)

    def _leave_by_move(self, now_ns: int, stop: StopRequest, *, sealed: bool) -> None:
        """Ask for a checkpoint, then end. The time to seal it is the policy's, else the grace; never past a loss."""
        if self._asked_at is None:
            self._asked_at = now_ns
            self._seal_until = now_ns + max(self._disconnection.within_ms, stop.grace_ms) * MS
        if self._disconnection.stops_itself and now_ns >= self._lease_until:
            self._seal_until = min(self._seal_until, self._lease_until + self._disconnection.within_ms * MS)
        if now_ns >= self._seal_until or (self.stage is Stage.CHECKPOINTING and sealed):
            self._terminate(stop.reason, min(now_ns, self._seal_until) + stop.grace_ms * MS)
        else:
            self.stage = Stage.CHECKPOINTING

    def _leave_by_loss(self, now_ns: int, *, sealed: bool) -> None:
        if now_ns < self._lease_until:
            self.stage = Stage.RUNNING
            return
        end = self._lease_until + self._disconnection.within_ms * MS
        checkpointing = self._disconnection.policy == "checkpoint-then-stop"
        if now_ns >= end or (checkpointing and self.stage is Stage.CHECKPOINTING and sealed):
            grace_ns = self._disconnection.grace_ms * MS
            self._terminate("self-stopped", min(now_ns, end) + grace_ns)
        elif checkpointing:
            self.stage = Stage.CHECKPOINTING

    def _terminate(self, cause: str, kill_at_ns: int) -> None:
        self.stage = Stage.TERMINATING
        self.cause = cause
        self._kill_at = kill_at_ns
