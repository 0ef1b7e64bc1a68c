"""Patches of a slot: what starts, stops and closes it, from each state that it can be in."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain.ownership.environment_model import FinalReport, ReportState, SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge_dispatch.executors.kubernetes import names, orders, records
from landbridge_dispatch.executors.kubernetes.remains import read_remains
from landbridge_dispatch.executors.kubernetes.settings import KubernetesSettings
from landbridge_dispatch.executors.kubernetes.variables import literal
from landbridge_dispatch.executors.kubernetes.views import phase_of, view_of
from landbridge_dispatch.executors.protocol import SlotKey, StopOrder
from unit.dispatch.kubernetes.things import OPERATION, a_job

NOW = 2000.0
KEY = SlotKey(OPERATION, Epoch(1, 1))
CHECKPOINTS: dict[str, Any] = {"checkpoints": {"connection": "checkpoints"}}


def merged(job: dict[str, Any], patch: dict[str, Any] | None) -> dict[str, Any]:
    """The Job as it is after a merge patch."""
    assert patch is not None
    result = {**job}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(result.get(key) or {}, value)
        else:
            result[key] = value
    return result


def stop_of(job: dict[str, Any], order: StopOrder) -> records.Stop:
    found = records.read(merged(job, orders.stopped(job, order, NOW)), names.STOP, records.Stop)
    assert found is not None
    return found


def test_a_start_takes_the_suspension_away_once() -> None:
    job = a_job()
    begun = merged(job, orders.begun(job, KubernetesSettings(), NOW))
    assert begun["spec"]["suspend"] is False
    assert orders.begun(begun, KubernetesSettings(), NOW) is None


def test_with_a_queue_it_is_the_queue_that_takes_the_suspension_away() -> None:
    job = a_job()
    begun = merged(job, orders.begun(job, KubernetesSettings(local_queue="team"), NOW))
    assert begun["spec"]["suspend"] is True
    assert begun["metadata"]["labels"][names.QUEUE_NAME] == "team"
    closed = merged(begun, orders.closed(begun, records.Grave("cancelled", NOW)))
    assert names.QUEUE_NAME not in closed["metadata"]["labels"]
    assert closed["spec"]["suspend"] is True


def test_stopping_what_has_not_started_closes_the_slot() -> None:
    job = a_job()
    stopped = merged(job, orders.stopped(job, StopOrder(KEY, "cancelled"), NOW))
    assert phase_of(stopped) is SlotPhase.TOMBSTONE
    record = records.record_of(stopped)
    assert record is not None
    view = view_of(stopped, record)
    assert (view.reason, view.denied, view.ended) == ("cancelled", True, True)
    assert orders.begun(stopped, KubernetesSettings(), NOW) is None


@pytest.mark.parametrize("reason", ["moved", "preempted"])
def test_moving_and_making_room_ask_for_a_checkpoint_first(reason: str) -> None:
    job = a_job(claims={"0": "pod"}, **CHECKPOINTS)
    stop = stop_of(job, StopOrder(KEY, reason, grace_ms=10_000))
    assert stop.seals
    assert stop.until == NOW + 10 + 10 + 5


def test_any_other_stop_and_any_by_force_asks_for_none() -> None:
    job = a_job(claims={"0": "pod"}, **CHECKPOINTS)
    assert not stop_of(job, StopOrder(KEY, "cancelled")).seals
    assert not stop_of(job, StopOrder(KEY, "moved", force=True)).seals
    assert not stop_of(a_job(claims={"0": "pod"}), StopOrder(KEY, "moved")).seals


def test_a_second_order_hastens_and_never_changes_why() -> None:
    job = a_job(claims={"0": "pod"})
    first = merged(job, orders.stopped(job, StopOrder(KEY, "cancelled", grace_ms=30_000), NOW))
    assert orders.stopped(first, StopOrder(KEY, "superseded", grace_ms=60_000), NOW) is None
    hastened = stop_of(first, StopOrder(KEY, "superseded", force=True))
    assert (hastened.reason, hastened.grace_ms) == ("cancelled", 0)


def test_what_has_ended_is_not_stopped_and_keeps_what_it_says_when_it_is_buried() -> None:
    job = a_job(claims={"0": "pod"})
    job["metadata"]["annotations"][names.END] = records.encode(records.End(outcome="completed"))
    assert orders.stopped(job, StopOrder(KEY, "cancelled"), NOW) is None
    report = FinalReport(ReportState.RELINQUISHED, "", "not-here")
    buried = merged(job, orders.buried(job, records.Grave("not-here", NOW, buried=True), report))
    record = records.record_of(buried)
    assert record is not None
    view = view_of(buried, record)
    assert (view.phase, view.final) == (SlotPhase.FINISHED, report)
    assert view.report is not None
    assert view.report.outcome == "completed"


def test_terms_only_grow_and_answers_that_say_the_same_are_not_written() -> None:
    job = a_job(claims={"0": "pod"})
    assert orders.regranted(job, 3) is None
    assert records.integer(merged(job, orders.regranted(job, 4)), names.TERM) == 4
    job["metadata"]["annotations"][names.END] = records.encode(records.End(outcome="failed", reason="exit-code"))
    assert orders.answered(job, FinalReport(ReportState.FINISHED, "failed", "exit-code")) is None
    assert orders.answered(job, FinalReport(ReportState.FINISHED, "failed", "vanished")) is not None


@given(st.text())
def test_no_termination_message_does_harm(message: str) -> None:
    found = read_remains(message)
    assert len(found.metrics) <= 1000


@given(st.text(alphabet="$()aB{} ", max_size=30))
def test_the_kubelet_gives_back_what_was_meant(text: str) -> None:
    """Its rule: two dollars are one, one before a bracket begins a name, any other stays."""
    written, result, at = literal(text), "", 0
    while at < len(written):
        assert not written.startswith("$(", at), "nothing is left for it to expand"
        result += written[at]
        at += 2 if written.startswith("$$", at) else 1
    assert result == text
