"""What lists and pages show of an operation. Pure: state and facts in, JSON-ready dictionaries out."""

from collections.abc import Sequence
from typing import Any

import msgspec

from landbridge.schema.wire.event_v1 import OperationRefused
from landbridge_lineage.attempts import Placement
from landbridge_lineage.explain import plain
from landbridge_lineage.facts import moment_of
from landbridge_lineage.fold import ASSESSED, DECIDED, LIFECYCLE, Fact
from landbridge_lineage.reads import Round
from landbridge_lineage.state import State


def summary(state: State) -> dict[str, Any]:
    """Return one row of a list."""
    return {
        "operation": state.operation,
        "project": state.project,
        "name": state.name,
        "type": state.type,
        "queue": state.queue,
        "priority": state.priority,
        "labels": dict(state.labels),
        "phase": state.phase,
        "environment": state.environment,
        "round": state.round,
        "attempt": state.attempt,
        "epoch": state.epoch,
        "reason": state.reason,
        "message": state.message,
        "conditions": [{"type": name, **plain(held)} for name, held in sorted(state.conditions.items())],
        "waiting": plain(state.waits or state.held_back),
        "acceptedAt": state.accepted_at,
        "changedAt": state.changed_at,
        "startedAt": state.started_at,
        "endedAt": state.ended_at,
        "submittedBy": state.submitted_by,
        "retryOf": state.retry_of,
    }


def detail(
    state: State, facts: Sequence[Fact], rounds: Sequence[Round], placements: Sequence[Placement]
) -> dict[str, Any]:
    """Return everything about one operation but its timeline."""
    started = [each for each in placements if each.started_at is not None]
    return {
        **summary(state),
        "opSeq": state.seq,
        "missingEvents": bool(state.parked),
        "supersededReports": state.superseded,
        "idempotencyKey": state.idempotency_key,
        "decisionId": state.decision_id,
        "specSha256": state.spec_sha256,
        "effectiveSha256": state.effective_sha256,
        "effective": effective(facts),
        "attempts": [plain(each) for each in started],
        "placements": [plain(each) for each in placements],
        "rounds": [each.shown() for each in rounds],
    }


def effective(facts: Sequence[Fact]) -> dict[str, Any]:
    """Return the rendered operation as it was accepted, or an empty one before that is known."""
    for fact in facts:
        if fact.lane == LIFECYCLE and fact.number == 1:
            body = msgspec.json.decode(fact.body, type=_Accepted).effective
            try:
                found = msgspec.json.decode(body)
            except msgspec.MsgspecError:
                return {}
            return found if isinstance(found, dict) else {}
    return {}


class _Accepted(msgspec.Struct):
    effective: bytes = b""


def timeline(facts: Sequence[Fact], after: int = 0) -> list[dict[str, Any]]:
    """Return what happened, as it was told; of lifecycle events only those with a number above `after`.

    The specification is left out: the page of the operation has it.
    """
    return [_happened(fact) for fact in facts if fact.lane != LIFECYCLE or fact.number > after]


def _happened(fact: Fact) -> dict[str, Any]:
    data = msgspec.json.decode(fact.body) if fact.body else {}
    data.pop("effective", None)
    lifecycle = fact.lane == LIFECYCLE
    accepted = lifecycle and fact.number == 1
    return {
        "id": fact.id,
        "at": data.get("at") or moment_of(fact.id),
        "event": fact.event,
        "opSeq": fact.number if lifecycle else 0,
        "round": data.get("round", 1 if accepted else 0) if lifecycle else fact.number,
        "phase": "accepted" if accepted else data.get("phase", ""),
        "environment": data.get("environment", ""),
        "attempt": data.get("attempt", 0),
        "reason": data.get("reason", ""),
        "message": data.get("message", ""),
        "assessmentId": fact.ref if fact.lane == ASSESSED else data.get("assessmentId", ""),
        "decisionId": fact.ref if fact.lane == DECIDED else data.get("decisionId", ""),
        "data": data,
    }


def refusal(refusal_id: str, project: str, told: OperationRefused) -> dict[str, Any]:
    """Return one refused submission."""
    return {**plain(told), "id": refusal_id, "project": project}
