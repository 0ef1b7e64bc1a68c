"""The auditor finds what it is there for: each kind of harm, planted, is named, and a clean history is not."""

import json
from typing import Any

import pytest

from landbridge.bus.envelope import Inbound

from .audit import Committed, Findings, Frozen, audit
from .load import Acknowledged
from .plan import rounds
from .truth import Run, Truth

OPERATION = "op-1"


def message(number: int, event: str, **more: Any) -> Inbound:
    body = {"operation": OPERATION, "opSeq": number, "at": "2026-11-30T10:00:10Z", **more}
    return Inbound(f"lb.v1.operation.{event}.faults", f"id-{number}-{event}", "", "", "", "", json.dumps(body).encode())


def placed(number: int, event: str, counter: int = 1, site: str = "sim-a") -> Inbound:
    return message(number, event, epoch={"generation": 1, "counter": counter}, environment=site, verdict="accepted")


def a_run(site: str = "sim-a", epoch: str = "1.1", start: float = 1.0, stop: float | None = 2.0, **more: Any) -> Run:
    return Run(site, OPERATION, epoch, start, wall=0.0, stop=stop, **more)


GOOD = (message(1, "accepted"), placed(2, "pending"), placed(3, "running"), placed(4, "completed"))


def found(events: tuple[Inbound, ...], runs: list[Run], frozen: tuple[Frozen, ...] = ()) -> Findings:
    committed, truth, told = Committed(), Truth(), Acknowledged({"key": OPERATION})
    for event in events:
        committed.take(event)
    for run in runs:
        truth.add(run)
    return audit(told, truth, committed, frozen)


def test_a_clean_history_has_no_findings() -> None:
    assert found(GOOD, [a_run()]).good
    assert found((*GOOD, *GOOD), [a_run()]).good, "a repeated message is no second event"


@pytest.mark.parametrize(
    ("kind", "events", "runs"),
    [
        ("lost", GOOD[:3], [a_run()]),
        ("lost", (), []),
        ("double_committed", (*GOOD, placed(5, "failed")), [a_run()]),
        ("double_owned", GOOD, [a_run(), a_run("sim-b")]),
        ("double_owned", GOOD, [a_run(), a_run(start=3.0, stop=4.0)]),
        ("unexplained_overlap", GOOD, [a_run(), a_run("sim-b", "1.2", start=1.5, stop=3.0)]),
        ("out_of_order", (GOOD[0], GOOD[1], GOOD[3]), [a_run()]),
        ("out_of_order", (*GOOD[:2], placed(3, "running", counter=0), GOOD[3]), [a_run()]),
        ("committed_without_run", GOOD, []),
        ("committed_without_run", GOOD, [a_run("sim-b")]),
        ("never_stopped", GOOD, [a_run(stop=None)]),
        ("started_after_end", GOOD, [Run("sim-a", OPERATION, "1.1", 1.0, wall=1.9e9, stop=2.0)]),
    ],
)
def test_each_kind_of_harm_is_named(kind: str, events: tuple[Inbound, ...], runs: list[Run]) -> None:
    findings = found(events, runs)
    assert getattr(findings, kind), findings.to_json()
    assert not findings.good


def test_only_simulated_work_in_a_frozen_dispatcher_may_seem_to_overlap() -> None:
    second = a_run("sim-b", "1.2", start=5.0, stop=6.0)
    frozen = (Frozen("sim-a", 1.5, 9.0),)
    for simulated, unexplained in ((True, 0), (False, 1)):
        first = a_run(stop=9.1, simulated=simulated)
        findings = found(GOOD, [first, second], frozen)
        assert len(findings.unexplained_overlap) == unexplained
        assert findings.explained_overlaps == 1 - unexplained


def test_a_seed_gives_the_same_faults_and_every_kind_comes_up() -> None:
    assert rounds(7, 500, 4.0) == rounds(7, 500, 4.0)
    assert rounds(7, 500, 4.0) != rounds(8, 500, 4.0)
    faults = [fault for part in rounds(7, 500, 4.0) for fault in part]
    assert len(faults) == 500
    kinds = {fault.kind for fault in faults}
    assert len(kinds) == 10
    for kind in kinds:
        assert sum(fault.kind == kind for fault in faults) >= 8, kind
