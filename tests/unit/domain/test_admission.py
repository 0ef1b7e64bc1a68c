"""Admission goes by priority, share and age, tells why anybody waits, and lets nobody starve."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.domain.admission import Admission
from landbridge.domain.ledger import Amounts
from landbridge.domain.limits import Limits
from landbridge.domain.placement import Route
from landbridge.domain.queues import Plan, WaitReason, turn
from landbridge.domain.tickets import Ticket
from support.deciding import NOW, a_catalogue
from unit.domain.admission_world import (
    AMOUNTS,
    CAPACITY,
    PROJECTS,
    QUEUES,
    a_plan,
    an_admission,
    arrive,
    names_of,
    wait_of,
)


def naive(admission: Admission) -> list[str]:
    """Admit by looking at every bucket before every single step: the rule, word for word."""
    order_: list[str] = []
    blocked: set[str] = set()
    while True:
        ready = [b for b in admission.buckets.values() if b.tickets and b.key not in blocked]
        if not ready:
            return order_
        best = min(
            ready, key=lambda bucket: turn(bucket, admission.promises.planned_for(bucket.key), admission.limits, NOW)
        )
        best.full = {}
        found = admission._try(best, NOW)
        if found is None:
            blocked.add(best.key)
        else:
            order_.append(found.ticket.operation)


@given(
    arrivals=st.lists(
        st.tuples(
            st.sampled_from(("training", "batch", "rest")),
            st.sampled_from(("a", "b", "c")),
            st.sampled_from(AMOUNTS),
            st.sampled_from((0, 0, 5)),
        ),
        max_size=30,
    )
)
@settings(max_examples=100, deadline=None)
def test_a_pass_admits_in_exactly_the_order_of_the_rule(arrivals: list[tuple[str, str, Amounts, int]]) -> None:
    twins = [an_admission(QUEUES, CAPACITY, PROJECTS) for _ in range(2)]
    for number, (queue, project, amounts, priority) in enumerate(arrivals):
        key = f"{queue}-{project}-{sorted(amounts.items())}-{priority}"
        for admission in twins:
            if key not in admission.buckets:
                weight = 2.0 if project == "a" else 1.0
                admission.set_plan(key, a_plan(queue, project, amounts, priority=priority, weight=weight))
            admission.arrive(key, [Ticket(f"op{number}", 1, number, NOW)])
    assert names_of(twins[0].admit(NOW)) == naive(twins[1])


def test_many_shapes_of_one_project_cost_no_more_than_one() -> None:
    admission = an_admission(capacity={"x": {}})
    for number in range(300):
        admission.set_plan(f"k{number:03}", a_plan("default", environments={"x": 1.0}))
        admission.arrive(f"k{number:03}", [Ticket(f"op{number}-{i}", 1, i * 300 + number, NOW) for i in range(10)])
    turns = 0
    count = admission._turn

    def counted(line: Any, now: Any) -> Any:
        nonlocal turns
        turns += 1
        return count(line, now)

    admission._turn = counted  # type: ignore[method-assign]
    assert len(admission.admit(NOW, most=3000)) == 3000
    assert turns < 10_000


def test_priority_goes_first_then_the_smaller_share_then_age() -> None:
    admission = an_admission({"q": {}}, {"x": {"running": 10}})
    everywhere = {"x": 1.0}
    admission.set_plan("late-but-urgent", a_plan("q", "a", priority=9, environments=everywhere))
    admission.set_plan("greedy", a_plan("q", "a", environments=everywhere))
    admission.set_plan("modest", a_plan("q", "b", environments=everywhere))
    arrive(admission, "greedy", "g1", "g2", "g3")
    arrive(admission, "modest", "m1", "m2")
    arrive(admission, "late-but-urgent", "u1")
    assert names_of(admission.admit(NOW)) == ["u1", "m1", "g1", "m2", "g2", "g3"]


def test_a_project_of_twice_the_weight_gets_twice_the_share() -> None:
    admission = an_admission({"q": {}}, {"x": {"cpu": 9000}})
    for project, weight in (("a", 2.0), ("b", 1.0)):
        plan = a_plan("q", project, {"running": 1, "cpu": 1000}, environments={"x": 1.0}, weight=weight)
        admission.set_plan(project, plan)
        arrive(admission, project, *(f"{project}{i}" for i in range(20)))
    shares = [name[0] for name in names_of(admission.admit(NOW))]
    assert (shares.count("a"), shares.count("b")) == (6, 3)


def test_the_resource_that_a_project_holds_most_of_is_its_share() -> None:
    admission = an_admission({"q": {}}, {"x": {"cpu": 10_000, "gpu": 4}})
    admission.set_plan("gpu", a_plan("q", "a", {"running": 1, "gpu": 1}, environments={"x": 1.0}))
    admission.set_plan("cpu", a_plan("q", "b", {"running": 1, "cpu": 1000}, environments={"x": 1.0}))
    arrive(admission, "gpu", "g1", "g2", "g3")
    arrive(admission, "cpu", "c1", "c2", "c3", "c4", "c5")
    # One of four devices weighs as much as two and a half of ten processors.
    assert names_of(admission.admit(NOW)) == ["g1", "c1", "c2", "c3", "g2", "c4", "c5", "g3"]


def test_releases_and_charges_done_twice_count_once() -> None:
    admission = an_admission({"q": {"concurrency": 1}}, {"x": {}})
    admission.set_plan("k", a_plan("q", environments={"x": 1.0}))
    arrive(admission, "k", "op1", "op2")
    [first] = admission.admit(NOW)
    admission.ledger.charge(first.charge)
    assert admission.release("op1") == first.charge
    assert admission.release("op1") is None
    assert names_of(admission.admit(NOW)) == ["op2"]


def test_a_late_release_of_an_earlier_round_frees_nothing() -> None:
    admission = an_admission(capacity={"x": {}})
    admission.set_plan("k", a_plan("default", environments={"x": 1.0}))
    admission.arrive("k", [Ticket("op1", 2, 1, NOW)])
    admission.admit(NOW)
    assert admission.release("op1", last_round=1) is None
    assert admission.release("op1", last_round=2) is not None


def test_a_round_that_was_admitted_is_not_let_in_again() -> None:
    admission = an_admission(capacity={"x": {}})
    admission.set_plan("k", a_plan("default", environments={"x": 1.0}))
    admission.arrive("k", [Ticket("op1", 1, 1, NOW)])
    admission.admit(NOW)
    assert admission.arrive("k", [Ticket("op1", 1, 2, NOW)]) == []
    assert admission.admit(NOW) == []
    assert [ticket.round for ticket in admission.arrive("k", [Ticket("op1", 2, 3, NOW)])] == [2]


def test_each_cause_of_waiting_has_its_own_code_and_the_code_follows_the_cause() -> None:
    queues = {"q": {"concurrency": 1, "quota": {"gpu": "2"}}}
    admission = an_admission(queues, {"x": {"gpu": 3}})
    admission.set_plan("k", a_plan("q", amounts={"running": 1, "gpu": 2}, environments={"x": 1.0}))
    arrive(admission, "k", "op1", "op2")
    causes: list[tuple[dict[str, Any], Mapping[str, Amounts], WaitReason]] = [
        ({"concurrency": 1}, {"x": {"gpu": 3}}, WaitReason.CONCURRENCY),
        ({"quota": {"gpu": "3"}}, {"x": {"gpu": 3}}, WaitReason.QUOTA),
        ({"quota": {"gpu": "1"}}, {"x": {"gpu": 3}}, WaitReason.EXCEEDS_QUOTA),
        ({}, {"x": {"gpu": 3}}, WaitReason.AT_CAPACITY),
        ({"paused": True}, {"x": {"gpu": 3}}, WaitReason.QUEUE_PAUSED),
    ]
    assert names_of(admission.admit(NOW)) == ["op1"]
    for queue, capacity, reason in causes:
        admission.set_limits(Limits(a_catalogue(queues={"q": queue}), capacity))
        assert admission.admit(NOW) == []
        assert wait_of(admission, "k") is reason
    admission.set_plan("k", Plan("q", "a", 0, 1.0, None, {}))
    admission.set_limits(Limits(a_catalogue(queues={"q": {}}), {}))
    assert admission.admit(NOW) == []
    assert wait_of(admission, "k") is WaitReason.NO_ELIGIBLE_ENVIRONMENT


def test_a_wait_names_the_limit_what_is_held_and_what_is_missing() -> None:
    admission = an_admission(capacity={"x": {"memory": 8 * 2**30}})
    admission.set_plan("k", a_plan("default", amounts={"running": 1, "memory": 5 * 2**30}, environments={"x": 1.0}))
    arrive(admission, "k", "op1", "op2")
    admission.admit(NOW)
    wait = admission.buckets["k"].wait
    assert wait is not None
    assert wait.message == "x holds 5Gi of 8Gi memory, 5Gi more are needed"


@pytest.mark.parametrize(("sites", "told"), [
    ("x", "x holds 1 of 1 running, 1 more are needed"),
    ("xy", "x holds 1 of 1 running, 1 more are needed; y is full as well"),
    ("vwxy", "v holds 1 of 1 running, 1 more are needed; w, x and y are full as well"),
    ("uvwxyz", "u holds 1 of 1 running, 1 more are needed; v, w, x and 2 more are full as well"),
])  # fmt: skip
def test_a_wait_names_the_environments_that_are_full_as_well(sites: str, told: str) -> None:
    admission = an_admission(capacity={site: {"running": 1} for site in sites})
    totals = {site: 1.0 - number / 10 for number, site in enumerate(sites)}
    admission.set_plan("k", a_plan("default", environments=totals))
    arrive(admission, "k", *(f"op{number}" for number in range(len(sites) + 1)))
    assert len(admission.admit(NOW)) == len(sites)
    wait = admission.buckets["k"].wait
    assert wait is not None
    assert wait.message == told


def test_when_the_best_environment_is_full_the_next_one_is_an_overflow() -> None:
    admission = an_admission(capacity={"x": {"running": 1}, "y": {}})
    admission.set_plan("k", a_plan("default"))
    arrive(admission, "k", "op1", "op2")
    first, second = admission.admit(NOW)
    assert (first.choice.environment, first.choice.route) == ("x", Route.PREFERRED)
    assert (second.choice.environment, second.choice.route, second.choice.full) == ("y", Route.OVERFLOW, ("x",))


def test_an_operation_holds_out_for_the_best_environment_as_long_as_its_policy_says() -> None:
    admission = an_admission(capacity={"x": {"running": 0}, "y": {}})
    admission.set_plan("k", a_plan("default", overflow_after=timedelta(minutes=2)))
    arrive(admission, "k", "op1")
    assert admission.admit(NOW) == []
    assert wait_of(admission, "k") is WaitReason.AT_CAPACITY
    assert admission.next_timer == NOW + timedelta(minutes=2)
    assert admission.admit(NOW + timedelta(seconds=119)) == []
    assert names_of(admission.admit(NOW + timedelta(seconds=120))) == ["op1"]


def test_small_work_does_not_pass_by_large_work_for_ever() -> None:
    admission = an_admission(capacity={"x": {"gpu": 4}})
    large, small = {"running": 1, "gpu": 4}, {"running": 1, "gpu": 1}
    admission.set_plan("small", a_plan("default", "s", small, environments={"x": 1.0}))
    admission.set_plan("large", a_plan("default", "l", large, environments={"x": 1.0}))
    arrive(admission, "small", *(f"s{i}" for i in range(4)))
    admission.admit(NOW)
    arrive(admission, "large", "big")
    arrive(admission, "small", "s4", "s5", "s6", "s7", "s8")
    now = NOW
    for i in range(4):
        now += timedelta(minutes=2)
        admission.release(f"s{i}")
        admitted = names_of(admission.admit(now))
        assert admitted == ([f"s{i + 4}"] if i < 2 else [])
    assert wait_of(admission, "small") is WaitReason.RESERVED
    for i in (4, 5):
        admission.release(f"s{i}")
    assert names_of(admission.admit(now)) == ["big"]


def test_an_environment_whose_verdict_has_run_out_is_not_used() -> None:
    admission = an_admission(capacity={"x": {}, "y": {}})
    plan = a_plan("default")
    admission.set_plan(
        "k", Plan(plan.queue, plan.project, 0, 1.0, plan.order, plan.amounts, {"x": NOW, "y": NOW + timedelta(hours=1)})
    )
    arrive(admission, "k", "op1")
    [found] = admission.admit(NOW)
    assert found.choice.environment == "y"


def test_a_pass_stops_at_its_size_and_the_next_goes_on() -> None:
    admission = an_admission(capacity={"x": {}})
    admission.set_plan("k", a_plan("default", environments={"x": 1.0}))
    arrive(admission, "k", *(f"op{i}" for i in range(5)))
    assert names_of(admission.admit(NOW, most=3)) == ["op0", "op1", "op2"]
    assert admission.has_more
    assert names_of(admission.admit(NOW, most=3)) == ["op3", "op4"]
    assert not admission.has_more


def test_what_comes_late_goes_before_those_that_came_after_it_and_has_waited_as_long() -> None:
    """Its message had been in the hands of somebody who died."""
    queues = {"training": {"concurrency": 1, "ageing": "1m"}}
    admission = an_admission(queues=queues)
    admission.set_plan("k", a_plan())
    admission.arrive("k", [Ticket("runs", 1, 0, NOW)])
    assert names_of(admission.admit(NOW)) == ["runs"]
    admission.arrive("k", [Ticket("b", 1, 2, NOW), Ticket("d", 1, 4, NOW)])
    assert admission.admit(NOW) == []
    later = NOW + timedelta(seconds=10)
    late = admission.arrive("k", [Ticket("c", 1, 3, later), Ticket("a", 1, 1, later), Ticket("e", 1, 5, later)])
    assert [(ticket.operation, ticket.since) for ticket in late] == [("c", NOW), ("a", NOW), ("e", later)]
    order_: list[str] = []
    for _ in range(5):
        admission.release((order_ or ["runs"])[-1])
        order_ += names_of(admission.admit(later))
    assert order_ == ["a", "b", "c", "d", "e"]
