"""Patches of a slot's Job, each made from the Job as it stands; None where nothing is to be changed. Pure."""

from typing import Any

from landbridge.domain.ownership.environment_model import FINAL, FinalReport, SlotPhase
from landbridge.domain.ownership.policy import KILL_MARGIN_MS
from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.settings import KubernetesSettings
from landbridge_dispatch.executors.kubernetes.views import phase_of, view_of
from landbridge_dispatch.executors.local.course import SEALING
from landbridge_dispatch.executors.local.store import implies
from landbridge_dispatch.executors.protocol import StopOrder

Object = dict[str, Any]


def regranted(job: Object, term: int) -> Object | None:
    """Write a newer grant's term."""
    return _noted({names.TERM: str(term)}) if records.integer(job, names.TERM) < term else None


def begun(job: Object, settings: KubernetesSettings, now: float) -> Object | None:
    """Start it: let the Job controller make its pods, or, where a queue decides about that, put it into the queue."""
    noted = records.annotations(job)
    if phase_of(job) is not SlotPhase.CREATED or names.BEGUN in noted or names.STOP in noted:
        return None
    record = records.record_of(job)
    patch = _noted({names.BEGUN: records.encode(now)})
    if record is not None and (record.type == "service" or record.operator):
        # Its pods are not this Job's: what makes them is there already.
        return patch
    if settings.local_queue:
        patch["metadata"]["labels"] = {names.QUEUE_NAME: settings.local_queue}
        return patch
    return patch | {"spec": {"suspend": False}}


def stopped(job: Object, order: StopOrder, now: float) -> Object | None:
    """Order the end of what runs; keep from starting what has not."""
    phase, record = phase_of(job), records.record_of(job)
    if phase in FINAL or record is None:
        return None
    if phase is SlotPhase.CREATED:
        return closed(job, records.Grave(order.reason, now, "stopped before it had started", denied=True))
    seals = order.reason in SEALING and record.checkpoint is not None and not order.force
    grace_ms = 0 if order.force else order.grace_ms
    patience_ms = max(record.within_ms, grace_ms) + grace_ms + KILL_MARGIN_MS
    known = records.read(job, names.STOP, records.Stop)
    # What was ordered first is what is told; a later order may only hasten it.
    reason = order.reason if known is None else known.reason
    until = now + patience_ms / 1000 if seals else 0.0
    if known is not None and known.grace_ms <= grace_ms and (not known.seals or seals):
        return None
    return _noted({names.STOP: records.encode(records.Stop(reason, grace_ms, now, seals=seals, until=until))})


def closed(job: Object, grave: records.Grave) -> Object | None:
    """See to it that nothing starts there; the Job stays suspended, out of any queue."""
    if phase_of(job) in FINAL:
        return None
    patch = _noted({names.GRAVE: records.encode(grave)}) | {"spec": {"suspend": True}}
    if names.QUEUE_NAME in (job["metadata"].get("labels") or {}):
        patch["metadata"]["labels"] = {names.QUEUE_NAME: None}
    return patch


def buried(job: Object, grave: records.Grave, report: FinalReport) -> Object:
    """Close it for ever, with the answer that stands for it; what has ended keeps what it says."""
    patch = closed(job, grave) or _noted({})
    patch["metadata"]["annotations"][names.ANSWER] = answer(report)
    return patch


def answered(job: Object, report: FinalReport) -> Object | None:
    """Keep the dispatcher's answer, unless the slot's own record says the same."""
    record = records.record_of(job)
    if record is None or implies(view_of(job, record), report):
        return None
    return _noted({names.ANSWER: answer(report)})


def settled(job: Object, term: int) -> Object | None:
    """Note that the centre knows the end."""
    return _noted({names.SETTLED: str(term)}) if records.integer(job, names.SETTLED) != term else None


def answer(report: FinalReport) -> str:
    """Return the annotation for an answer."""
    return records.encode(records.Answer(report.state, report.outcome, report.reason))


def _noted(annotations: dict[str, str]) -> Object:
    return {"metadata": {"annotations": annotations}}
