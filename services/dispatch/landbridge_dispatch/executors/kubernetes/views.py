"""A slot's Job as the view that the dispatcher works with. Pure: all that counts stands in the Job's annotations."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from landbridge.domain.ownership.environment_model import FinalReport, ReportState, SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect
from landbridge.schema.wire import report_v1 as wire
from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.facts import moment
from landbridge_dispatch.executors.protocol import SlotKey, SlotView


def key_of(record: records.Record) -> SlotKey:
    """Return the key of the slot that a record is about."""
    return SlotKey(record.operation, Epoch(record.generation, record.counter))


def phase_of(job: Mapping[str, Any]) -> SlotPhase:
    """Return what the slot's own record says has happened."""
    noted = records.annotations(job)
    if names.END in noted:
        return SlotPhase.FINISHED
    if names.GRAVE in noted:
        return SlotPhase.TOMBSTONE
    return SlotPhase.RUNNING if names.CLAIMS in noted else SlotPhase.CREATED


def view_of(job: Mapping[str, Any], record: records.Record, *, provider: str = "") -> SlotView:
    """Return the view of a slot. `provider`: how it stands in the cluster's words; of a final slot it changes nothing.

    What is final is told by what was written once into the Job: its pods may be gone at the next look.
    """
    key, phase = key_of(record), phase_of(job)
    grave = records.read(job, names.GRAVE, records.Grave)
    end = records.read(job, names.END, records.End)
    stop = records.read(job, names.STOP, records.Stop)
    answer = records.read(job, names.ANSWER, records.Answer)
    return SlotView(
        operation=key.operation,
        epoch=key.epoch,
        phase=phase,
        term=records.integer(job, names.TERM),
        spec_sha256=records.annotations(job).get(names.SPEC_HASH, ""),
        project=record.project,
        policy=Disconnection(OnDisconnect(record.policy), record.within_ms, record.loss_grace_ms),
        ended=end is not None or (grave is not None and not grave.buried),
        denied=grave is not None and grave.denied,
        reason=end.reason if end is not None else grave.reason if grave is not None else "",
        stopping="" if stop is None else stop.reason,
        settled_term=records.integer(job, names.SETTLED),
        final=None if answer is None else FinalReport(ReportState(answer.state), answer.outcome, answer.reason),
        report=_report(job, record, phase, end, grave, provider),
    )


def _report(
    job: Mapping[str, Any],
    record: records.Record,
    phase: SlotPhase,
    end: records.End | None,
    grave: records.Grave | None,
    provider: str,
) -> wire.AttemptReport:
    key = key_of(record)
    epoch = wire.Epoch(generation=key.epoch.generation, counter=key.epoch.counter)
    claims = records.claims_of(job)
    started = _moment(min((claim.at for claim in claims.values()), default=0.0))
    # Two clocks tell of one attempt: an end is never told before its start.
    finished = None if end is None else max(filter(None, (_moment(end.at), started)), default=None)
    buried = None if grave is None else _moment(grave.at)
    created = _moment(moment(job["metadata"].get("creationTimestamp")))
    sealed = records.annotations(job).get(names.CHECKPOINT, "")
    own = {"workload": f"{job['metadata'].get('namespace', '')}/{job['metadata']['name']}"}
    own |= {"host": host} if (host := _host(claims)) else {}
    report = wire.AttemptReport(
        operation=key.operation,
        epoch=epoch,
        state=_STATES.get(phase, wire.AttemptState.UNSPECIFIED),
        at=finished or buried or started or created or datetime.now(UTC),
        started_at=started,
        finished_at=finished,
        reason=grave.reason if grave is not None and end is None else "",
        message=(grave.message if grave is not None else provider) if end is None else "",
        checkpoint=wire.CheckpointRef(epoch=epoch, manifest=sealed) if sealed else None,
        resolved=msgspec.convert({**record.resolved, **own}, wire.Resolved) if record.resolved else None,
    )
    return report if end is None else _with_end(report, end)


def _host(claims: Mapping[str, records.Claim]) -> str:
    """Return the node of the lowest rank that has taken its place; empty where that is not known."""
    return claims[min(claims, key=lambda rank: (len(rank), rank))].node if claims else ""


def _with_end(report: wire.AttemptReport, end: records.End) -> wire.AttemptReport:
    return msgspec.structs.replace(
        report,
        outcome=wire.AttemptOutcome(end.outcome),
        reason=end.reason,
        exit_code=end.exit_code,
        signal=end.signal,
        message=end.message,
        outputs=msgspec.convert(end.outputs, dict[str, wire.OutputRef]),
        metrics=dict(end.metrics),
        acceptance=msgspec.convert(end.acceptance, tuple[wire.AcceptanceResult, ...]),
    )


_STATES = {
    SlotPhase.RUNNING: wire.AttemptState.STARTED,
    SlotPhase.FINISHED: wire.AttemptState.FINISHED,
    SlotPhase.TOMBSTONE: wire.AttemptState.RELINQUISHED,
}


def _moment(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None
