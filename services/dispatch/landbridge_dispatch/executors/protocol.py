"""What every executor offers to the dispatcher. One contract suite (`tests/contract/executors`) holds for all.

A *slot* is the environment's durable test-and-set place for one epoch of an operation. An executor creates it under a
fixed name, starts at most one workload in it, tells what became of it, and keeps it until it is removed. All calls are
idempotent; batches are lists, because one message or one disk synchronisation per operation would be too slow.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from landbridge.domain.contract import Contract
from landbridge.domain.ownership.environment_model import FinalReport, SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases import HeldLease
from landbridge.domain.ownership.policy import Disconnection
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import AttemptReport, EvidenceResult
from landbridge_dispatch.specification import Operation


class SlotKey(NamedTuple):
    """Names a slot."""

    operation: str
    epoch: Epoch


class Work(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A placement to occupy a slot for. `term` is the grant's."""

    operation: str
    epoch: Epoch
    project: str
    attempt: int
    term: int
    spec: bytes
    spec_sha256: str
    view: Operation
    policy: Disconnection
    resume_from: str = ""
    traceparent: str = ""
    contract_version: int = 0
    cost_per_hour: float | None = None
    """By the contract in force when it was offered; None: unknown, never zero."""
    currency: str = ""

    @property
    def key(self) -> SlotKey:
        return SlotKey(self.operation, self.epoch)


class SlotView(msgspec.Struct, frozen=True, kw_only=True):
    """A slot as it stands in the environment.

    `phase` is what the executor itself knows to have happened; `ended` whether an end of the workload (or its failure
    to start, for a tombstone) was recorded; `final` the dispatcher's own record of the answer, if it wrote one.
    """

    operation: str
    epoch: Epoch
    phase: SlotPhase
    term: int
    spec_sha256: str = ""
    project: str = ""
    policy: Disconnection = Disconnection()
    ended: bool = False
    denied: bool = False
    """A tombstone because it was not allowed to start, not because starting failed."""
    reason: str = ""
    stopping: str = ""
    """Why it is being stopped; empty = it is not."""
    settled_term: int = 0
    final: FinalReport | None = None
    report: AttemptReport | None = None
    """All that is known of the attempt; its `term` is not set."""

    @property
    def key(self) -> SlotKey:
        return SlotKey(self.operation, self.epoch)

    @property
    def told(self) -> bool:
        """Whether `report` tells what happened to a workload; of a buried slot there is nothing to tell."""
        return self.ended or self.phase is SlotPhase.RUNNING


class RefusalCode(StrEnum):
    """Why an environment does not accept an operation, before anything starts."""

    UNREADABLE = "unreadable-specification"
    DISPATCHER_TOO_OLD = "dispatcher-too-old"
    PROJECT = "project-not-accepted"
    CONNECTION_MISSING = "connection-not-bound"
    CONNECTION_FORBIDDEN = "connection-not-accepted"
    CONNECTION_UNAVAILABLE = "connection-unavailable"
    CONNECTION_READ_ONLY = "connection-read-only"
    PATH = "path-not-allowed"
    SECRET = "secret-unavailable"  # noqa: S105 - a code
    IDENTITY = "identity-not-mapped"
    WORKLOAD = "workload-not-supported"
    IMAGE = "image-not-accepted"
    COMMAND = "command-missing"
    CLASS = "class-not-reached"
    OPERATOR = "operator-absent"
    RESUME = "checkpoint-unreadable"


class RefusedError(Exception):
    """The site does not accept the operation. `code` is stable, the text is for people and holds no physical names."""

    def __init__(self, code: RefusalCode, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the executor can hold; `free` counts slots, `cpu_millicores` and `memory_bytes` the whole."""

    slots: int
    used: int
    cpu_millicores: int
    memory_bytes: int

    @property
    def free(self) -> int:
        return max(0, self.slots - self.used)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a log or an output. `end`: nothing follows, and the workload will write no more."""

    data: bytes
    next_offset: int
    end: bool


@dataclass(frozen=True, slots=True)
class OutputFile:
    """One file of an output, by its path below it."""

    path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Finding:
    """What a probe saw. `subject`: what exactly was probed; another subject voids older evidence.

    `at` is when it was seen, if that was not now: it is then proven for that much less longer.
    """

    result: EvidenceResult
    subject: str
    detail: str = ""
    proven: float | None = None
    claimed: float | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StopOrder:
    """A workload to stop: TERM now, KILL after `grace_ms`; `force` means KILL at once."""

    key: SlotKey
    reason: str
    grace_ms: int = 30_000
    force: bool = False


@dataclass(frozen=True, slots=True)
class Burial:
    """A slot in which nothing may ever start, and the answer that stands for it."""

    key: SlotKey
    report: FinalReport
    term: int
    project: str = ""


@runtime_checkable
class Voiding(Protocol):
    """An executor that sees when what was proven no longer holds: a machine that started anew, another driver."""

    def voided(self) -> AsyncIterator[list[str]]:
        """Yield claims whose evidence is void; their probes are run at once."""


class Executor(Protocol):
    """One way to run work. Names of executors are those of the contract's `runtime.executor`."""

    name: str

    @property
    def features(self) -> tuple[str, ...]:
        """Return what operations may need of it (`landbridge.domain.features`), complete once it is open.

        What its system comes to offer, or ceases to, changes it later; the centre hears of it with the next link.
        """

    async def open(self) -> None:
        """Take over what an earlier process has left. Nothing is started."""

    async def close(self) -> None:
        """Let go of everything; workloads go on."""

    def hold_lease(self, lease: HeldLease) -> None:
        """Publish the lease to whoever checks it at the true start, and stops self-stopping work when it is lost."""

    async def check(self, works: Sequence[Work]) -> "list[RefusedError | None]":
        """Say of each whether this site accepts it, and why not. Nothing is occupied or written."""

    async def occupy(self, works: Sequence[Work]) -> "list[SlotView | RefusedError | None]":
        """Create the slots, durably. None: created now; a view: occupied before; an error: refused, nothing created."""

    async def regrant(self, key: SlotKey, term: int) -> None:
        """Write a newer grant's term into a slot that has not started."""

    async def start(self, keys: Sequence[SlotKey]) -> None:
        """Start what is occupied and not started. Failures appear as observed tombstones, never as exceptions."""

    def observe(self) -> AsyncIterator[list[SlotView]]:
        """Yield slots that changed, each as it stands now; EMPTY if removed by others."""

    async def inventory(self) -> list[SlotView]:
        """Read all slots, uncached, the settled ones included."""

    async def look(self, key: SlotKey) -> SlotView | None:
        """Read one slot; None for an empty one."""

    async def stop(self, orders: Sequence[StopOrder]) -> None:
        """Ask for the end of running workloads, and keep what has not started from starting."""

    async def bury(self, burials: Sequence[Burial]) -> None:
        """Occupy slots for ever, creating empty ones, durably; a finished slot keeps what it says beside it."""

    async def record(self, answers: Sequence[tuple[SlotKey, FinalReport]]) -> None:
        """Keep the dispatcher's final answers in the slots, where the executor's own record does not imply them."""

    async def settle(self, settled: Sequence[tuple[SlotKey, int]]) -> None:
        """Note that the centre knows these ends, and in which term that was."""

    async def remove(self, keys: Sequence[SlotKey]) -> None:
        """Remove settled slots; logs are kept as long as the site allows."""

    async def logs(self, key: SlotKey, *, offset: int = 0, limit: int = 65_536, tail: int = 0) -> Chunk | None:
        """Return a piece of the log; `tail` > 0: the last so many bytes. None where nothing is kept of the slot."""

    async def outputs(self, key: SlotKey) -> dict[str, list[OutputFile]] | None:
        """Return the files of each output, also while the workload runs."""

    async def output_chunk(self, key: SlotKey, name: str, *, offset: int = 0, limit: int = 65_536) -> Chunk | None:
        """Return a piece of `<output>` or `<output>/<path>`; None where there is no such file."""

    def know(self, contract: Contract) -> None:
        """Take note of the contract in force: its roles and, for simulated work, its declared model."""

    def capacity(self) -> Capacity:
        """Return what can be held and what is."""

    async def probe(self, probe: Probe) -> Finding | None:
        """Run a probe that only the executor can; None: not one of its own."""
