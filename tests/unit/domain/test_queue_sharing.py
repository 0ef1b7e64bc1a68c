"""Borrowing, reclaim, preemption, weights of queues, ageing, drain: each rule by itself."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from landbridge.domain.admission import Admission
from landbridge.domain.catalogue import Reclaim
from landbridge.domain.ledger import Ledger
from landbridge.domain.limits import Limits
from landbridge.domain.queues import Plan, WaitReason
from landbridge.domain.tickets import Ticket
from support.deciding import NOW, a_catalogue
from unit.domain.admission_world import a_plan, an_admission, arrive, names_of, wait_of

GPU: Mapping[str, int] = {"running": 1, "gpu": 1}
LENDING: dict[str, Any] = {
    "company": {"quota": {"gpu": "8"}},
    "owner": {"parent": "company", "quota": {"gpu": "4"}, "borrow": {"gpu": "4"}},
    "other": {"parent": "company", "quota": {"gpu": "4"}, "borrow": {"gpu": "4"}},
}


def a_sharing(queue: str, project: str = "p", amounts: Mapping[str, int] = GPU, **more: Any) -> Plan:
    plan = a_plan(queue, project, amounts, environments={"x": 1.0}, priority=more.pop("priority", 0))
    return Plan(**{**{f: getattr(plan, f) for f in plan.__dataclass_fields__}, "evictable": True, **more})


def asked(admission: Admission) -> list[str]:
    found, admission.evicted = admission.evicted, []
    return [item.charge.operation for item in found]


def test_what_is_released_goes_to_the_owner_first_and_nobody_borrows_what_it_waits_for() -> None:
    admission = an_admission(LENDING, {"x": {}})
    admission.set_plan("borrower", a_sharing("other", priority=50))
    admission.set_plan("owner", a_sharing("owner", amounts={"running": 1, "gpu": 2}))
    arrive(admission, "borrower", *(f"b{i}" for i in range(12)))
    assert len(admission.admit(NOW)) == 8
    arrive(admission, "owner", "o0", "o1", "o2")
    assert admission.admit(NOW) == []
    assert wait_of(admission, "owner") is WaitReason.QUOTA
    admission.release("b0")
    assert admission.admit(NOW) == []
    assert wait_of(admission, "borrower") is WaitReason.RESERVED
    admission.release("b1")
    assert names_of(admission.admit(NOW)) == ["o0"]


@pytest.mark.parametrize(
    ("reclaim", "priority", "leave"),
    [(Reclaim.ANY, 0, ["b7", "b6"]), (Reclaim.LOWER_PRIORITY, 0, []), (Reclaim.LOWER_PRIORITY, 60, ["b7", "b6"])],
)
def test_reclaim_makes_the_latest_borrowers_leave_and_promises_what_they_leave(
    reclaim: Reclaim, priority: int, leave: list[str]
) -> None:
    admission = an_admission(LENDING, {"x": {}})
    admission.set_plan("borrower", a_sharing("other", priority=50))
    for second in range(8):
        arrive(admission, "borrower", f"b{second}")
        assert len(admission.admit(NOW + timedelta(seconds=second))) == 1
    plan = a_sharing("owner", amounts={"running": 1, "gpu": 2}, reclaim=reclaim, priority=priority)
    admission.set_plan("owner", plan)
    now = NOW + timedelta(seconds=10)
    arrive(admission, "owner", "o0", at=now)
    arrive(admission, "borrower", "b8", at=now)
    assert admission.admit(now) == []
    assert asked(admission) == leave
    assert wait_of(admission, "owner") is (WaitReason.MAKING_ROOM if leave else WaitReason.QUOTA)
    for number, operation in enumerate(leave, 1):
        admission.release(operation)
        assert names_of(admission.admit(now)) == (["o0"] if number == len(leave) else [])
    assert asked(admission) == []


def test_work_within_its_quota_is_never_reclaimed() -> None:
    admission = an_admission(LENDING, {"x": {"gpu": 4}})
    admission.set_plan("other", a_sharing("other"))
    admission.set_plan("owner", a_sharing("owner", reclaim=Reclaim.ANY, priority=99))
    arrive(admission, "other", "b0", "b1", "b2", "b3")
    admission.admit(NOW)
    arrive(admission, "owner", "o0")
    assert admission.admit(NOW) == []
    assert asked(admission) == []
    assert wait_of(admission, "owner") is WaitReason.AT_CAPACITY


def test_a_higher_priority_displaces_the_fewest_of_the_lower_ones_and_only_where_the_queue_says_so() -> None:
    for preempts in (False, True):
        admission = an_admission({"q": {"quota": {"gpu": "4"}}}, {"x": {}})
        admission.set_plan("low", a_sharing("q", amounts={"running": 1, "gpu": 1}))
        admission.set_plan("middle", a_sharing("q", amounts={"running": 1, "gpu": 3}, priority=5))
        admission.set_plan("high", a_sharing("q", amounts={"running": 1, "gpu": 3}, priority=9, preempts=preempts))
        arrive(admission, "middle", "m")
        arrive(admission, "low", "l")
        assert len(admission.admit(NOW)) == 2
        arrive(admission, "high", "h")
        assert admission.admit(NOW) == []
        assert asked(admission) == (["m"] if preempts else [])


def test_what_may_not_be_interrupted_is_not_displaced() -> None:
    admission = an_admission({"q": {"concurrency": 1}}, {"x": {}})
    admission.set_plan("low", a_sharing("q", evictable=False))
    admission.set_plan("high", a_sharing("q", priority=9, preempts=True))
    arrive(admission, "low", "l")
    admission.admit(NOW)
    arrive(admission, "high", "h")
    assert admission.admit(NOW) == []
    assert asked(admission) == []


def test_a_promise_is_kept_from_others_and_given_back_when_nobody_wants_it_any_more() -> None:
    admission = an_admission({"q": {"concurrency": 1}, "r": {}}, {"x": {"running": 1}})
    admission.set_plan("low", a_sharing("q"))
    admission.set_plan("high", a_sharing("q", priority=9, preempts=True))
    admission.set_plan("third", a_sharing("r", "other"))
    arrive(admission, "low", "l")
    admission.admit(NOW)
    arrive(admission, "high", "h")
    admission.admit(NOW)
    assert asked(admission) == ["l"]
    arrive(admission, "third", "t")
    admission.release("l")
    admission.forget({"h"})
    assert names_of(admission.admit(NOW)) == ["t"]


def test_a_successor_knows_who_was_asked_and_asks_nobody_else() -> None:
    admission = an_admission({"q": {"concurrency": 2}}, {"x": {}})
    admission.set_plan("low", a_sharing("q"))
    admission.set_plan("high", a_sharing("q", priority=9, preempts=True))
    arrive(admission, "low", "l0", "l1")
    admission.admit(NOW)
    arrive(admission, "high", "h")
    admission.admit(NOW)
    [leaving] = asked(admission)
    successor = Admission(Ledger(admission.ledger.charges()), admission.limits)
    successor.asked_to_leave(leaving)
    successor.set_plan("high", admission.buckets["high"].plan)
    successor.arrive("high", [Ticket("h", 1, 9, NOW)])
    assert successor.admit(NOW) == []
    assert asked(successor) == []
    assert wait_of(successor, "high") is WaitReason.MAKING_ROOM
    successor.release(leaving)
    assert names_of(successor.admit(NOW)) == ["h"]


def test_sibling_queues_share_by_their_weights_and_projects_within_them() -> None:
    queues = {"root": {}, "one": {"parent": "root", "weight": 3}, "two": {"parent": "root"}}
    admission = an_admission(queues, {"x": {"gpu": 40}})
    for queue, project in (("one", "a"), ("one", "b"), ("two", "a"), ("two", "c")):
        admission.set_plan(f"{queue}{project}", a_sharing(queue, project))
        arrive(admission, f"{queue}{project}", *(f"{queue}-{project}-{i}" for i in range(40)))
    got = [name.rsplit("-", 1)[0] for name in names_of(admission.admit(NOW))]
    assert {name: got.count(name) for name in sorted(set(got))} == {
        "one-a": 10,
        "one-b": 20,
        "two-a": 0,
        "two-c": 10,
    } or (got.count("one-a") + got.count("one-b"), got.count("two-a") + got.count("two-c")) == (30, 10)


def test_waiting_raises_priority_where_the_queue_says_so() -> None:
    for ageing, first in ((timedelta(0), "urgent"), (timedelta(minutes=10), "old")):
        admission = an_admission({"q": {}}, {"x": {"running": 1}})
        admission.set_plan("low", a_sharing("q", ageing=ageing))
        admission.set_plan("high", a_sharing("q", priority=5, ageing=ageing))
        arrive(admission, "low", "old")
        later = NOW + timedelta(hours=1)
        arrive(admission, "high", "urgent", at=later)
        assert names_of(admission.admit(later)) == [first]


def test_a_drained_queue_lets_out_what_is_in_it_and_takes_nothing_new() -> None:
    later = NOW + timedelta(minutes=1)
    admission = an_admission({"q": {}}, {"x": {"running": 1}})
    admission.set_plan("k", a_sharing("q"))
    arrive(admission, "k", "before0", "before1")
    queue = admission.limits.catalogue.queues["q"]
    drained = Limits(a_catalogue(queues={"q": {}}), {"x": {"running": 1}})
    object.__setattr__(drained.catalogue.queues["q"], "draining", later)
    assert queue.draining is None
    admission.set_limits(drained)
    arrive(admission, "k", "after", at=later)
    admission.arrive("k", [Ticket("again", 2, 50, later)])
    order = []
    for _ in range(3):
        order += names_of(admission.admit(later))
        admission.release(order[-1])
    assert order == ["before0", "before1", "again"]
    assert admission.admit(later) == []
    assert wait_of(admission, "k") is WaitReason.QUEUE_DRAINING
    admission.arrive("k", [Ticket("late", 2, 60, later)])  # while others of its class wait
    assert names_of(admission.admit(later)) == ["late"]
