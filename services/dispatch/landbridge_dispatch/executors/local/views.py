"""Reading a slot's files as the view that the dispatcher works with."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from landbridge.domain.ownership.environment_model import FinalReport, ReportState, SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect
from landbridge.schema.wire import report_v1 as wire
from landbridge_dispatch.executors.local import files, slots
from landbridge_dispatch.executors.local.order import ORDER_FILE
from landbridge_dispatch.executors.protocol import SlotView

FINAL_FILE, SETTLED_FILE = "final.json", "settled.json"


def read_view(slot: Path) -> SlotView | None:
    """Return the slot as it stands; None where there is none."""
    order = files.read_json(slot / ORDER_FILE)
    state = slots.state_of(slot)
    if order is None or state is None:
        return None
    epoch = Epoch(order["generation"], order["counter"])
    final = files.read_json(slot / FINAL_FILE)
    settled = files.read_json(slot / SETTLED_FILE)
    stop = slots.stop_requested(slot)
    phase = SlotPhase(state["state"])
    policy = order.get("disconnection", {})
    return SlotView(
        operation=order["operation"],
        epoch=epoch,
        phase=phase,
        term=slots.grant_term(slot, order.get("grant_term", 0)),
        spec_sha256=order.get("spec_sha256", ""),
        project=order.get("project", ""),
        policy=Disconnection(
            OnDisconnect(policy.get("policy", "continue")), policy.get("within_ms", 0), policy.get("grace_ms", 0)
        ),
        ended=phase is SlotPhase.FINISHED or (phase is SlotPhase.TOMBSTONE and not state.get("buried", False)),
        denied=bool(state.get("denied", False)),
        reason=state.get("reason", ""),
        stopping=stop.reason if stop is not None else "",
        settled_term=0 if settled is None else int(settled["term"]),
        final=None if final is None else FinalReport(ReportState(final["state"]), final["outcome"], final["reason"]),
        report=_report(order, epoch, phase, state),
    )


def _report(order: dict[str, Any], epoch: Epoch, phase: SlotPhase, state: dict[str, Any]) -> wire.AttemptReport:
    """Return all that the slot's files tell about the attempt."""
    wire_epoch = wire.Epoch(generation=epoch.generation, counter=epoch.counter)
    started, finished = _moment(state.get("startedAt")), _moment(state.get("finishedAt"))
    at = finished or _moment(state.get("sealedAt")) or started or _moment(state.get("at")) or datetime.now(UTC)
    workload = {"workload": f"pid {state['pid']}"} if "pid" in state else {}
    manifest = state.get("checkpoint", "")
    return wire.AttemptReport(
        operation=order["operation"],
        epoch=wire_epoch,
        state=_STATES.get(phase, wire.AttemptState.UNSPECIFIED),
        at=at,
        started_at=started,
        finished_at=finished,
        outcome=wire.AttemptOutcome(state.get("outcome", "")),
        reason=state.get("reason", ""),
        exit_code=state.get("exitCode"),
        signal=state.get("signal"),
        message=state.get("message", ""),
        outputs=msgspec.convert(state.get("outputs", {}), dict[str, wire.OutputRef]),
        metrics=state.get("metrics", {}),
        acceptance=msgspec.convert(state.get("acceptance", []), tuple[wire.AcceptanceResult, ...]),
        checkpoint=wire.CheckpointRef(epoch=wire_epoch, manifest=manifest) if manifest else None,
        resolved=_resolved({**order.get("resolved", {}), **workload}),
    )


def _resolved(value: dict[str, Any]) -> wire.Resolved | None:
    return msgspec.convert(value, wire.Resolved) if value else None


_STATES = {
    SlotPhase.RUNNING: wire.AttemptState.STARTED,
    SlotPhase.FINISHED: wire.AttemptState.FINISHED,
    SlotPhase.TOMBSTONE: wire.AttemptState.RELINQUISHED,
}


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
