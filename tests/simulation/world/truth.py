"""The ground truth that no control plane reads, and the invariants that are checked against it at every step."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from landbridge.domain.lifecycle import TERMINAL, Phase
from landbridge.domain.ownership import centre_model as centre
from landbridge.domain.ownership.centre_model import OperationState, Verdict
from landbridge.domain.ownership.environment_model import FINAL, HeldOperation, SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases_centre import EnvironmentLease
from landbridge.domain.ownership.policy import DEFAULT_TIMING
from simulation.world.truth_centre import CentreTruth

# A clock that runs 1 % slow makes a lease that much longer in true time.
_LONGEST_LEASE_MS = DEFAULT_TIMING.ttl_ms * (1000 + DEFAULT_TIMING.rho_permille) // 1000 + 10


@dataclass(frozen=True, kw_only=True)
class Start:
    """A workload's true start. `lease_age`: true milliseconds since the request behind the lease was sent."""

    environment: str
    operation: str
    epoch: Epoch
    term: int
    slot: SlotPhase | None
    phase: Phase | None
    lease_age: int

    def __str__(self) -> str:
        return f"{self.operation} starts as {self.environment}/{self.epoch} in term {self.term}"


@dataclass
class Truth(CentreTruth):
    running: dict[str, set[tuple[str, Epoch]]] = field(default_factory=dict)
    granted: dict[tuple[str, Epoch], str] = field(default_factory=dict)
    grants: set[tuple[str, Epoch, int]] = field(default_factory=set)
    issued: dict[str, Epoch] = field(default_factory=dict)
    orphans: set[tuple[str, str, Epoch]] = field(default_factory=set)
    """(environment, operation, epoch) running on after a restore that the lease chain must have betrayed."""
    unrecorded: set[tuple[str, str, Epoch]] = field(default_factory=set)
    """The same after any restore, whether the chain betrays it or not."""
    overlap_allowed: set[str] = field(default_factory=set)
    """Operations that a person moved by emergency override."""
    untrusted: set[str] = field(default_factory=set)
    """Environments whose clocks broke every promise: what runs there may overlap, and nothing else may go wrong."""
    checkpoints: dict[str, dict[str, Epoch]] = field(default_factory=dict)
    events: dict[str, list[centre.Lifecycle]] = field(default_factory=dict)
    alarms: Counter[str] = field(default_factory=Counter)
    covered: Counter[tuple[str, str]] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)

    def note(self, now: int, text: str) -> None:
        self.trace.append(f"{now / 1000:10.3f} {text}")

    # -- in the environments ------------------------------------------------------------------------------------------

    def start(self, start: Start) -> None:
        operation, here = start.operation, self.running.setdefault(start.operation, set())
        others = {pair for pair in here if pair[0] != start.environment}
        excused = operation in self.overlap_allowed or start.environment in self.untrusted
        clashing = {pair for pair in others if pair[0] not in self.untrusted}
        if clashing and not excused:
            self.fail("I2", f"{start} while {sorted(map(str, clashing))} runs")
        if here - others:
            self.fail("I2", f"{start} twice inside its environment: {here - others}")
        if start.slot is None or start.slot in FINAL:
            self.fail("I3", f"{start} in slot {start.slot}")
        key = (operation, start.epoch)
        if (*key, start.term) not in self.grants or self.granted.get(key) != start.environment:
            self.fail("I3", f"{start} without a grant")
        if start.lease_age > _LONGEST_LEASE_MS and start.environment not in self.untrusted:
            self.fail("I3", f"{start} on a lease that was asked for {start.lease_age} ms ago")
        if start.phase in TERMINAL and not excused:
            self.fail("I8", f"{start} although it is {start.phase}")
        here.add((start.environment, start.epoch))

    def stop(self, environment: str, operation: str, epoch: Epoch) -> None:
        self.running.setdefault(operation, set()).discard((environment, epoch))

    def sealed(self, operation: str, epoch: Epoch) -> str:
        """Take note of a sealed checkpoint; return its manifest."""
        sealed = self.checkpoints.setdefault(operation, {})
        manifest = f"{operation}/{epoch}/{len(sealed)}"
        sealed[manifest] = epoch
        return manifest

    def twice_away(self, once: HeldOperation, again: HeldOperation, message: Any) -> None:
        """Handling a message a second time must leave an environment's state as it is."""
        if again != once:
            self.fail("I9", f"{once.operation}: {type(message).__name__} applied twice differs: {once} / {again}")

    # -- around the centre --------------------------------------------------------------------------------------------

    def lease(self, before: EnvironmentLease, after: EnvironmentLease) -> None:
        """Check one decision about an environment's lease."""
        if after.term < before.term or after.held_term > after.term:
            self.fail("I1", f"{after.environment}: term {after.term} (held {after.held_term}) after {before.term}")

    def offered(self, state: OperationState, resume_from: str) -> None:
        """Work resumes from a checkpoint that an earlier epoch of it has sealed, or from the start."""
        sealed = self.checkpoints.get(state.operation, {}).get(resume_from)
        if resume_from and (sealed is None or sealed >= state.epoch):
            self.fail("D2", f"{state.operation}: epoch {state.epoch} resumes from {resume_from}, sealed by {sealed}")

    def recorded(self, environment: str, items: tuple[tuple[str, centre.InventoryItem], ...]) -> None:
        """Work that an inventory shows is no orphan any more."""
        shown = {(environment, operation, item.epoch) for operation, item in items}
        self.orphans -= shown
        self.unrecorded -= shown

    def rolled_back(self, states: dict[str, OperationState]) -> None:
        """The centre lost its latest past: events of that past are not events any more."""
        for name in sorted(self.events):
            state = states.get(name)
            kept = 1 if state is None else state.op_seq
            self.events[name] = [event for event in self.events[name] if event.op_seq <= kept]

    # -- the end ------------------------------------------------------------------------------------------------------

    def settled(self, states: dict[str, OperationState], submitted: set[str]) -> None:
        """I5, I10 and I14, at the end: all that was accepted is over, as its events tell, and nothing runs."""
        lost = sorted(submitted.difference(states))
        if lost:
            self.fail("I5", f"acknowledged and lost: {lost}")
        stuck = sorted(name for name, state in states.items() if state.phase not in TERMINAL)
        if stuck:
            self.fail("I14", f"{len(stuck)} operations never ended, first {states[stuck[0]]}")
        for name, state in sorted(states.items()):
            self._replayed(name, state)
        alive = {name: pairs for name, pairs in self.running.items() if pairs and name not in self.overlap_allowed}
        if alive:
            self.fail("I14", f"still running after everything ended: {alive}")

    def _replayed(self, name: str, state: OperationState) -> None:
        """Replay all events of one operation and compare with its live state."""
        phase, op_seq, attempts = Phase.ACCEPTED, 1, 0
        for event in self.events.get(name, []):
            if event.op_seq != op_seq + 1:
                self.fail("I10", f"{name}: event {event.op_seq} follows {op_seq}")
            if event.verdict is Verdict.SUPERSEDED:
                # It tells of an attempt that was left, and moves nothing.
                if event.attempt > attempts or event.phase is not phase:
                    self.fail("I10", f"{name}: late report {event.op_seq} moved it from {phase}, attempt {attempts}")
                op_seq = event.op_seq
                continue
            phase, op_seq, attempts = event.phase, event.op_seq, event.attempt
        if (phase, op_seq) != (state.phase, state.op_seq) or attempts != state.attempts:
            self.fail("I10", f"{name}: replay gives {phase}/{op_seq}, attempt {attempts}; live is {state}")
