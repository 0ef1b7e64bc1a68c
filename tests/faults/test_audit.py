"""The auditor finds what it is there for: each kind of harm, planted, is named, and a clean history is not."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from landbridge.bus.envelope import Inbound

from .audit import CANARY_S, Committed, Findings, Frozen, audit
from .load import Acknowledged
from .plan import rounds
from .recovery import Healed, recoveries
from .truth import Run, Truth, said_by_workloads

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


def test_a_canary_may_be_at_work_but_not_for_long() -> None:
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    for started, stuck in ((now - 1, False), (now - 10 * CANARY_S, True)):
        committed, truth = Committed(), Truth()
        for event in GOOD:
            committed.take(event)
        truth.add(a_run())
        truth.add(Run("sim-a", "probe-0123", "0.0", started, wall=started, stop=None))
        findings = audit(Acknowledged({"key": OPERATION}), truth, committed, ())
        assert bool(findings.never_stopped) is stuck
        assert findings.good is not stuck


def test_only_simulated_work_in_a_frozen_dispatcher_may_seem_to_overlap() -> None:
    second = a_run("sim-b", "1.2", start=5.0, stop=6.0)
    frozen = (Frozen("sim-a", 1.5, 9.0),)
    for simulated, unexplained in ((True, 0), (False, 1)):
        first = a_run(stop=9.1, simulated=simulated)
        findings = found(GOOD, [first, second], frozen)
        assert len(findings.unexplained_overlap) == unexplained
        assert findings.explained_overlaps == 1 - unexplained


def test_a_workload_that_ran_unrecorded_and_a_dead_letter_are_named() -> None:
    told, truth, committed = Acknowledged({"key": OPERATION}), Truth(), Committed()
    for event in GOOD:
        committed.take(event)
    truth.add(a_run())
    assert audit(told, truth, committed, (), {OPERATION: 1}).good
    assert audit(told, truth, committed, (), {OPERATION: 2}).unrecorded_starts
    committed.dead_letters.append("reports/coordinator lb.v1.report.sim-a.events id-1 ValueError: no")
    assert not audit(told, truth, committed, ()).good


def test_what_workloads_said_is_counted_by_operation(tmp_path: Path) -> None:
    file = tmp_path / "processes.txt"
    assert not said_by_workloads(file)
    file.write_text("start op-1 1\nstart op-2 1\nstart op-1 2\nstart op-3")
    assert said_by_workloads(file) == {"op-1": 2, "op-2": 1}


def a_fault(number: int, over: float, done: float, site: str = "", **more: Any) -> Healed:
    return Healed(number, site, more.pop("begun", over), over, ready=over, moved=done, **more)


def test_recovery_counts_from_the_end_of_the_fault_itself() -> None:
    assert recoveries([a_fault(1, 10.0, 12.5)]) == {1: 2.5}
    assert recoveries([Healed(1, "", 9.0, 10.0, ready=14.0, moved=12.0)]) == {1: 4.0}


def test_recovery_counts_from_the_end_of_what_was_in_the_way_and_ends_no_sooner_than_its() -> None:
    first, second = a_fault(1, 10.0, 16.0), a_fault(2, 15.0, 19.0)
    assert recoveries([first, second]) == {1: 4.0, 2: 4.0}
    assert recoveries([a_fault(1, 10.0, 24.0), second]) == {1: 9.0, 2: 4.0}


def test_nothing_else_moves_the_beginning_of_a_recovery() -> None:
    first = a_fault(1, 10.0, 16.0)
    for other in (
        a_fault(2, 15.0, 19.0, site="sim-a"),  # another site's, for what hit the centre
        a_fault(2, 15.0, 19.0, blocks=False),  # nobody's way
        a_fault(2, 16.5, 19.0, begun=11.0),  # over after the first had recovered
        a_fault(2, 9.0, 19.0),  # over before the first was
    ):
        assert recoveries([first, other])[1] == 6.0
    assert recoveries([a_fault(1, 10.0, 16.0, site="sim-a"), a_fault(2, 15.0, 17.0, site="sim-a")])[1] == 2.0


def test_a_seed_gives_the_same_faults_and_every_kind_comes_up() -> None:
    assert rounds(7, 500, 4.0) == rounds(7, 500, 4.0)
    assert rounds(7, 500, 4.0) != rounds(8, 500, 4.0)
    faults = [fault for part in rounds(7, 500, 4.0) for fault in part]
    assert len(faults) == 500
    kinds = {fault.kind for fault in faults}
    assert len(kinds) == 12
    for kind in kinds:
        assert sum(fault.kind == kind for fault in faults) >= 8, kind
