"""The ground truth that no control plane reads, and the invariants that are checked against it at every step."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from landbridge.domain.lifecycle import TERMINAL, may_move
from landbridge.domain.ownership import centre_model as centre
from landbridge.domain.ownership.centre_model import OWNED, OperationState
from landbridge.domain.ownership.environment_model import FINAL, SlotPhase
from landbridge.domain.ownership.epochs import Epoch


class Violated(AssertionError):  # noqa: N818 - the invariant is, not the code
    """An invariant does not hold."""


@dataclass
class Truth:
    running: dict[str, set[tuple[str, Epoch]]] = field(default_factory=dict)
    granted: dict[tuple[str, Epoch], str] = field(default_factory=dict)
    grants: set[tuple[str, Epoch, int]] = field(default_factory=set)
    issued: dict[str, Epoch] = field(default_factory=dict)
    orphans: set[tuple[str, str]] = field(default_factory=set)
    """(environment, operation) running on after a restore that the lease chain must have betrayed."""
    overlap_allowed: set[str] = field(default_factory=set)
    events: dict[str, list[centre.Lifecycle]] = field(default_factory=dict)
    alarms: list[str] = field(default_factory=list)
    covered: Counter[tuple[str, str]] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)

    def note(self, now: int, text: str) -> None:
        self.trace.append(f"{now / 1000:10.3f} {text}")

    def fail(self, invariant: str, text: str) -> None:
        raise Violated(f"{invariant}: {text}")

    # -- in the environments ------------------------------------------------------------------------------------------

    def start(
        self,
        environment: str,
        operation: str,
        epoch: Epoch,
        slot: SlotPhase | None,
        lease_term: int,
        state: OperationState,
    ) -> None:
        here = self.running.setdefault(operation, set())
        others = {pair for pair in here if pair[0] != environment}
        if others and operation not in self.overlap_allowed:
            self.fail("I2", f"{operation} starts as {environment}/{epoch} while {sorted(map(str, others))} runs")
        if here - others:
            self.fail("I2", f"{operation} starts as {environment}/{epoch} twice inside {environment}: {here - others}")
        if slot is None or slot in FINAL:
            self.fail("I3", f"{operation} starts {environment}/{epoch} in slot {slot}")
        if (operation, epoch, lease_term) not in self.grants or self.granted.get((operation, epoch)) != environment:
            self.fail("I3", f"{operation} starts {environment}/{epoch} in term {lease_term} without a grant")
        if state.phase in TERMINAL and operation not in self.overlap_allowed:
            self.fail("I8", f"{operation} starts {environment}/{epoch} although it is {state.phase}")
        here.add((environment, epoch))

    def stop(self, environment: str, operation: str, epoch: Epoch) -> None:
        self.running.setdefault(operation, set()).discard((environment, epoch))

    # -- in the centre ------------------------------------------------------------------------------------------------

    def decision(self, before: OperationState, message: Any, decision: centre.Decision, source: str) -> None:
        """Check one committed decision of the centre."""
        after = decision.state
        self._events(before, decision)
        raised = any(isinstance(effect, centre.RaiseTerm) for effect in decision.effects)
        left = before.placement in OWNED and after.placement not in OWNED
        if left and after.epoch == before.epoch:
            self._leaving(before, message, raised)
        for effect in decision.effects:
            self._effect(before, after, effect, message)
        if isinstance(message, centre.Reported) and source:
            self._report(before, after, message, source)
        if after.phase in TERMINAL and before.phase not in TERMINAL:
            alive = self.running.get(after.operation, set())
            if alive and after.operation not in self.overlap_allowed:
                self.fail("I8", f"{after.operation} becomes {after.phase} while {sorted(map(str, alive))} runs")

    def _effect(self, before: OperationState, after: OperationState, effect: centre.Effect, message: Any) -> None:
        if isinstance(effect, centre.Grant):
            self._grant(before, after, effect, message)
        elif isinstance(effect, centre.SendOffer):
            known = self.issued.get(after.operation)
            if known is not None and effect.epoch <= known:
                self.fail("I1", f"{after.operation}: epoch {effect.epoch} issued after {known}")
            self.issued[after.operation] = effect.epoch
        elif isinstance(effect, centre.SendStop):
            self._stopping(before, effect)
        elif isinstance(effect, centre.Alarm):
            self.alarms.append(effect.kind)

    def _events(self, before: OperationState, decision: centre.Decision) -> None:
        after, name = decision.state, decision.state.operation
        history = self.events.setdefault(name, [])
        phase, op_seq = before.phase, before.op_seq
        for effect in decision.effects:
            if not isinstance(effect, centre.Lifecycle):
                continue
            op_seq += 1
            if effect.op_seq != op_seq:
                self.fail("I10", f"{name}: event {effect.event} has number {effect.op_seq}, expected {op_seq}")
            if effect.phase is not phase and not may_move(phase, effect.phase):
                self.fail("I12", f"{name}: {phase} -> {effect.phase}")
            if effect.phase in TERMINAL and effect.phase is not phase:
                terminal = [e for e in history if e.event in TERMINAL]
                if terminal:
                    self.fail("I4", f"{name}: second terminal event {effect.event} after {terminal[0].event}")
                if effect.report is not None and effect.epoch != after.epoch:
                    self.fail("I4", f"{name}: terminal report of {effect.epoch}, current is {after.epoch}")
            phase = effect.phase
            history.append(effect)
        if (phase, op_seq) != (after.phase, after.op_seq):
            self.fail("I10", f"{name}: events fold to {phase}/{op_seq}, state is {after.phase}/{after.op_seq}")

    def _leaving(self, before: OperationState, message: Any, raised: bool) -> None:
        kind = type(message).__name__
        name = before.operation
        if isinstance(message, centre.EnvironmentExpired):
            if not before.policy.self_stopping:
                self.fail("I7", f"{name}: {before.policy.policy} left by expiry")
            if not raised:
                self.fail("I6", f"{name}: left by expiry, the term was not raised")
            if not message.self_stop_verified:
                self.fail("I6", f"{name}: left by expiry where self-stop was never measured")
        elif isinstance(message, centre.DeclaredDead | centre.Override):
            if not raised:
                self.fail("I6", f"{name}: left by {kind}, the term was not raised")
        elif isinstance(message, centre.ReportRelinquished | centre.ReportFailedToStart | centre.ReportFinished):
            if message.term < before.grant_term:
                self.fail("I6", f"{name}: left by {kind} of term {message.term}, granted in {before.grant_term}")
        elif not isinstance(message, centre.InventoryItem | centre.InventoryMissing | centre.GenerationRaised):
            self.fail("I6", f"{name}: left by {kind}")

    def _grant(self, before: OperationState, after: OperationState, grant: centre.Grant, message: Any) -> None:
        key = (after.operation, grant.epoch)
        owner = self.granted.setdefault(key, message.environment)
        if owner != message.environment:
            self.fail("I1", f"{after.operation}: epoch {grant.epoch} granted to {message.environment} and {owner}")
        if before.cancel:
            self.fail("I8", f"{after.operation}: granted {grant.epoch} after the cancel intent")
        self.grants.add((after.operation, grant.epoch, grant.term))

    def _stopping(self, before: OperationState, stop: centre.SendStop) -> None:
        """What goes on without the centre is not killed because an environment lost its records: a person decides."""
        alive = (stop.environment, stop.epoch) in self.running.get(before.operation, set())
        orphan = (stop.environment, before.operation) in self.orphans
        unasked = stop.reason == "missing" and not before.cancel and not before.policy.self_stopping
        if alive and orphan and unasked:
            self.fail("D3", f"{before.operation}: {before.policy.policy} work stopped because its record was lost")

    def _report(self, before: OperationState, after: OperationState, report: centre.Reported, source: str) -> None:
        name = after.operation
        theirs = source == before.environment or any(former.environment == source for former in before.former)
        if not theirs and after != before:
            self.fail("I13", f"{name}: a report on {source}'s subjects changed a placement of {before.environment}")
        if report.epoch < before.epoch:
            unchanged = (after.phase, after.placement, after.epoch, after.grant_term) == (
                before.phase, before.placement, before.epoch, before.grant_term)  # fmt: skip
            if not unchanged:
                self.fail("I11", f"{name}: a report of {report.epoch} moved it, current is {before.epoch}")

    def twice(self, once: OperationState, again: OperationState, message: Any) -> None:
        """Handling a message a second time must leave the state as it is (numbers of records aside)."""
        if replace(again, op_seq=once.op_seq) != once:
            self.fail("I9", f"{once.operation}: {type(message).__name__} applied twice differs: {once} / {again}")

    def rolled_back(self, states: dict[str, OperationState]) -> None:
        """The centre lost its latest past: events of that past are not events any more."""
        for name in sorted(self.events):
            state = states.get(name)
            kept = 1 if state is None else state.op_seq
            self.events[name] = [event for event in self.events[name] if event.op_seq <= kept]

    def settled(self, states: dict[str, OperationState]) -> None:
        """I5 and I14, at the end: everything accepted is over, or waits for an operator who was told."""
        stuck = sorted(name for name, state in states.items() if state.phase not in TERMINAL)
        if stuck:
            state = states[stuck[0]]
            self.fail("I14", f"{len(stuck)} operations never ended, first {state}")
        alive = {name: pairs for name, pairs in self.running.items() if pairs and name not in self.overlap_allowed}
        if alive:
            self.fail("I14", f"still running after everything ended: {alive}")
