"""What every decision of the centre is checked for, against the ground truth."""

from collections import Counter
from typing import Any

from msgspec.structs import replace

from landbridge.domain.lifecycle import TERMINAL, may_move
from landbridge.domain.ownership import centre_model as centre
from landbridge.domain.ownership.centre_model import OWNED, OperationState
from landbridge.domain.ownership.environment_work import MOVED
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.policy import OnDisconnect

_BY_ENVIRONMENT = (centre.ReportRelinquished, centre.ReportFailedToStart, centre.ReportFinished)
_BY_INVENTORY = (centre.InventoryItem, centre.InventoryMissing, centre.GenerationRaised)


class Violated(AssertionError):  # noqa: N818 - the invariant is, not the code
    """An invariant does not hold."""


class CentreTruth:
    """Checks of the centre's decisions; the state is in `Truth`."""

    running: dict[str, set[tuple[str, Epoch]]]
    granted: dict[tuple[str, Epoch], str]
    grants: set[tuple[str, Epoch, int]]
    issued: dict[str, Epoch]
    orphans: set[tuple[str, str, Epoch]]
    unrecorded: set[tuple[str, str, Epoch]]
    overlap_allowed: set[str]
    untrusted: set[str]
    events: dict[str, list[centre.Lifecycle]]
    alarms: Counter[str]

    def fail(self, invariant: str, text: str) -> None:
        raise Violated(f"{invariant}: {text}")

    def decision(self, before: OperationState, message: Any, decision: centre.Decision, source: str) -> None:
        """Check one committed decision."""
        after = decision.state
        self._events(before, decision)
        if after.epoch < before.epoch:
            self._epoch_back(before, after, message)
        raised = any(isinstance(effect, centre.RaiseTerm) for effect in decision.effects)
        left = before.placement in OWNED and after.placement not in OWNED
        if left and after.epoch == before.epoch:
            self._leaving(before, message, raised)
        for effect in decision.effects:
            self._effect(before, after, effect, message)
        if isinstance(message, centre.Reported) and source:
            self._report(before, after, message, source)
        if after.phase in TERMINAL and before.phase not in TERMINAL:
            alive = {pair for pair in self.running.get(after.operation, ()) if pair[0] not in self.untrusted}
            if alive and after.operation not in self.overlap_allowed:
                self.fail("I8", f"{after.operation} becomes {after.phase} while {sorted(map(str, alive))} runs")

    def twice(self, once: OperationState, again: OperationState, message: Any) -> None:
        """Handling a message a second time must leave the state as it is (numbers of records aside)."""
        if again is not once and replace(again, op_seq=once.op_seq) != once:
            self.fail("I9", f"{once.operation}: {type(message).__name__} applied twice differs: {once} / {again}")

    def _effect(self, before: OperationState, after: OperationState, effect: centre.Effect, message: Any) -> None:
        if isinstance(effect, centre.Grant):
            self._grant(before, after, effect, message)
        elif isinstance(effect, centre.SendOffer):
            self._offer(before, effect)
        elif isinstance(effect, centre.SendStop):
            self._stopping(before, effect)
        elif isinstance(effect, centre.Alarm):
            self.alarms[effect.kind] += 1

    def _offer(self, before: OperationState, offer: centre.SendOffer) -> None:
        name, known = before.operation, self.issued.get(before.operation)
        if known is not None and offer.epoch <= known:
            self.fail("I1", f"{name}: epoch {offer.epoch} issued after {known}")
        if before.pinned and before.pinned != offer.environment:
            self.fail("D7", f"{name}: a person wants it in {before.pinned}, it is offered to {offer.environment}")
        self.issued[name] = offer.epoch

    def _epoch_back(self, before: OperationState, after: OperationState, message: Any) -> None:
        """After a restore of the centre the highest epoch found counts: what was issued above it must not run."""
        running = self.running.get(after.operation, set())
        above = sorted(str(pair) for pair in running if pair[1] > after.epoch and pair[0] not in self.untrusted)
        if not isinstance(message, centre.Recovered) or (above and after.operation not in self.overlap_allowed):
            self.fail("I1", f"{after.operation}: epoch went back from {before.epoch} to {after.epoch}; {above} runs")

    def _events(self, before: OperationState, decision: centre.Decision) -> None:
        after, name = decision.state, decision.state.operation
        phase, op_seq = before.phase, before.op_seq
        for effect in decision.effects:
            if not isinstance(effect, centre.Lifecycle):
                continue
            history = self.events.setdefault(name, [])
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
        kind, name = type(message).__name__, before.operation
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
        elif isinstance(message, _BY_ENVIRONMENT):
            if message.term < before.grant_term:
                self.fail("I6", f"{name}: left by {kind} of term {message.term}, granted in {before.grant_term}")
        elif not isinstance(message, _BY_INVENTORY):
            self.fail("I6", f"{name}: left by {kind}")

    def _grant(self, before: OperationState, after: OperationState, grant: centre.Grant, message: Any) -> None:
        key = (after.operation, grant.epoch)
        owner = self.granted.setdefault(key, message.environment)
        if owner != message.environment:
            self.fail("I1", f"{after.operation}: epoch {grant.epoch} granted to {message.environment} and {owner}")
        if before.cancel:
            self.fail("I8", f"{after.operation}: granted {grant.epoch} after the cancel intent")
        anew = (after.operation, grant.epoch, grant.term) not in self.grants
        unrecorded = (message.environment, after.operation, grant.epoch) in self.unrecorded
        if anew and unrecorded and (message.environment, grant.epoch) in self.running.get(after.operation, ()):
            self.fail("D3", f"{after.operation}: {grant.epoch} granted again while its unrecorded work runs")
        self.grants.add((after.operation, grant.epoch, grant.term))

    def _stopping(self, before: OperationState, stop: centre.SendStop) -> None:
        """What goes on without the centre is not killed because its record was lost, nor moved: a person decides."""
        name, policy = before.operation, before.policy
        alive = (stop.environment, stop.epoch) in self.running.get(name, set())
        orphan = (stop.environment, name, stop.epoch) in self.orphans
        unasked = stop.reason == "missing" and not before.cancel and not policy.self_stopping
        if alive and orphan and unasked:
            self.fail("D3", f"{name}: {policy.policy} work stopped because its record was lost")
        if stop.reason == MOVED and policy.policy is OnDisconnect.MUST_FINISH:
            self.fail("D7", f"{name}: must-finish work is stopped for a move")

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
