"""What the coordinator says: lifecycle events, requests to place again, commands by environment."""

from base64 import b64decode
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Raw

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound, event_type
from landbridge.domain.features import ASSIGNED_CLASS
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import OperationState
from landbridge.domain.ownership.epochs import NEVER_PLACED, Epoch
from landbridge.schema.wire import common_v1 as common
from landbridge_dispatch.coordinator import wire
from landbridge_dispatch.coordinator.declared import Specification

_CHANGED = event_type("operation", "OperationChanged")
_REQUEUED = event_type("operation", "OperationRequeued")
_FREED = event_type("operation", "OperationFreed")
_OFFERS = event_type("command", "Offers")
_WITHDRAWALS = event_type("command", "Withdrawals")
_STOPS = event_type("command", "Stops")
_SETTLEMENTS = event_type("command", "Settlements")
# A message on the bus holds a megabyte; offers carry whole specifications.
_OFFERS_BYTES = 600_000
_ITEMS = 4_000


def epoch_on_wire(epoch: Epoch) -> common.Epoch:
    return common.Epoch(generation=epoch.generation, counter=epoch.counter)


def moment(milliseconds: int) -> str:
    """Write milliseconds since 1970 as the wire does."""
    text = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def changed(state: OperationState, event: model.Lifecycle, at: str) -> Outbound:
    """Return one lifecycle event."""
    condition = None
    if event.condition is not None:
        condition = wire.Condition(event.condition.value, event.status, event.reason, event.message)
    report = event.report if isinstance(event.report, Raw) else None
    body = wire.Changed(
        operation=state.operation,
        project=state.project,
        op_seq=event.op_seq,
        phase=event.phase,
        at=at,
        round=event.round,
        attempt=event.attempt,
        epoch=None if event.epoch == NEVER_PLACED else epoch_on_wire(event.epoch),
        environment=event.environment,
        decision_id=event.decision_id,
        reason=event.reason,
        message=event.message,
        condition=condition,
        report=report,
        verdict=event.verdict,
    )
    return Outbound(subjects.operation(event.event, state.project), _CHANGED, wire.encode(body), state.operation)


def requeued(state: OperationState, requeue: model.Requeue, effective: Raw, members: int = 0) -> Outbound:
    """Return the request to judge and rank an operation again; as one of `members` of its gang, if it has one."""
    body = wire.Requeued(
        operation=state.operation,
        project=state.project,
        round=requeue.round,
        effective=_for_this_round(state, effective, requeue.only, members),
        reason=requeue.reason,
        exclude=requeue.exclude,
        failed_over=requeue.failed_over,
    )
    return Outbound(subjects.operation("requeued", state.project), _REQUEUED, wire.encode(body), state.operation)


def _for_this_round(state: OperationState, effective: Raw, environment: str, members: int) -> Raw:
    """Apply what a person decided to a specification, for this round's judgement: environment, queue, priority class.

    Of a gang, only those members count that have not completed; what goes on by itself is placed by itself. Every
    constraint stands. What is offered to the environment is the accepted specification, unchanged.
    """
    other_gang = bool(state.gang) and (state.together or members != state.gang.members)
    if not (environment or state.queue or state.priority or other_gang):
        return effective
    document = msgspec.json.decode(b64decode(msgspec.json.decode(effective, type=str)))
    chosen = (("queue", state.queue), ("priority", state.priority))
    document["spec"].update({name: value for name, value in chosen if value})
    if other_gang:
        document["spec"]["gang"]["members"] = 1 if state.together else members
    if environment:
        _only_in(document, environment)
    return Raw(msgspec.json.encode(msgspec.json.encode(document, order="deterministic")))


def _only_in(document: dict[str, Any], environment: str) -> None:
    """Narrow the allowed environments of a specification to one."""
    chosen = document["spec"].setdefault("constraints", {}).setdefault("environments", {})
    allowed = chosen.get("allow") or [environment]
    # Not allowed by its own specification: nothing is eligible, and the reason names the rule.
    chosen["allow"] = [environment] if environment in allowed else allowed
    if environment not in allowed:
        chosen["forbid"] = sorted({*chosen.get("forbid", ()), *allowed})


def freed(state: OperationState, free: model.Free) -> Outbound:
    """Tell that what a round held is free."""
    body = wire.Freed(operation=state.operation, project=state.project, round=free.round, environment=free.environment)
    return Outbound(subjects.operation("freed", state.project), _FREED, wire.encode(body), state.operation)


class Commands:
    """Commands of one transaction, one message per environment and kind unless it would grow too large."""

    def __init__(self) -> None:
        self._offers: dict[str, list[wire.Offer]] = {}
        self._withdrawals: dict[str, list[common.PlacementRef]] = {}
        self._stops: dict[str, list[wire.Stop]] = {}
        self._settlements: dict[str, list[common.PlacementRef]] = {}

    def offer(self, state: OperationState, offer: model.SendOffer, specification: Specification) -> None:
        declared, served_by = specification.declared, offer.served_by
        # Said only where it is another class than the specification's: no older dispatcher understands it.
        assigned = served_by if served_by != declared.accelerator_class else ""
        made = wire.Offer(
            operation=state.operation,
            project=state.project,
            epoch=epoch_on_wire(offer.epoch),
            attempt=offer.attempt,
            spec=specification.raw,
            spec_sha256=specification.sha256.hex(),
            features=(*declared.features, ASSIGNED_CLASS) if assigned else declared.features,
            resume_from=offer.resume_from,
            claim_by=moment(offer.claim_by),
            accelerator_class=assigned,
        )
        self._offers.setdefault(offer.environment, []).append(made)

    def add(self, operation: str, effect: model.Effect) -> None:
        """Take a command in; TypeError if it is none."""
        match effect:
            case model.SendWithdraw(environment, epoch):
                self._withdrawals.setdefault(environment, []).append(_placement(operation, epoch))
            case model.SendSettle(environment, epoch):
                self._settlements.setdefault(environment, []).append(_placement(operation, epoch))
            case model.SendStop(environment, epoch, reason, grace_ms, force):
                stop = wire.Stop(operation, epoch_on_wire(epoch), reason, -(-grace_ms // 1000), force)
                self._stops.setdefault(environment, []).append(stop)
            case _:
                raise TypeError(f"not a command: {effect!r}")

    def messages(self) -> list[Outbound]:
        """Return all commands; what ends placements goes before what begins them."""
        made: list[Outbound] = []
        for environment, refs in self._withdrawals.items():
            made += _placements(environment, "withdraw", _WITHDRAWALS, refs)
        for environment, stops in self._stops.items():
            for start in range(0, len(stops), _ITEMS):
                body = wire.encode(wire.Stops(stops[start : start + _ITEMS]))
                made.append(Outbound(subjects.command(environment, "stop"), _STOPS, body))
        for environment, refs in self._settlements.items():
            made += _placements(environment, "settle", _SETTLEMENTS, refs)
        for environment, offers in self._offers.items():
            for part in _by_size(offers):
                body = wire.encode(wire.Offers(part))
                made.append(Outbound(subjects.command(environment, "offer"), _OFFERS, body))
        return made


def _placement(operation: str, epoch: Epoch) -> common.PlacementRef:
    return common.PlacementRef(operation=operation, epoch=epoch_on_wire(epoch))


def _placements(environment: str, kind: str, type_: str, refs: list[common.PlacementRef]) -> list[Outbound]:
    subject = subjects.command(environment, kind)
    return [
        Outbound(subject, type_, wire.encode(wire.Placements(refs[start : start + _ITEMS])))
        for start in range(0, len(refs), _ITEMS)
    ]


def _by_size(offers: list[wire.Offer]) -> list[list[wire.Offer]]:
    parts: list[list[wire.Offer]] = [[]]
    size = 0
    for offer in offers:
        weight = len(bytes(offer.spec)) + 400
        if parts[-1] and size + weight > _OFFERS_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(offer)
        size += weight
    return parts
