"""Admission never exceeds a limit, goes by priority, share and age, and sleeps without missing a turn."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from landbridge.domain.admission import Admission, Admitted
from landbridge.domain.catalogue import Catalogue
from landbridge.domain.ledger import Amounts, Ledger, Limit, Limits, ScopeKind
from landbridge.domain.placement import Ranking, Route, ScoreCard, order
from landbridge.domain.queues import Plan, Ticket, WaitReason, turn
from support.deciding import NOW, a_catalogue

QUEUES: dict[str, Any] = {
    "training": {"concurrency": 5, "quota": {"gpu": "6"}, "priority": 50},
    "batch": {"concurrency": 4, "parent": "company", "quota": {"cpu": "3"}, "borrow": {"cpu": "2"}},
    "rest": {"parent": "company", "priority": 10},
    "company": {"concurrency": 6, "quota": {"cpu": "6"}},
}
PROJECTS: dict[str, Any] = {"a": {"weight": 2, "limits": {"running": 6}}, "b": {"limits": {"quota": {"gpu": "4"}}}}
CAPACITY = {"x": {"running": 4, "cpu": 8000, "gpu": 4}, "y": {"running": 6, "cpu": 6000, "gpu": 8}}
AMOUNTS = ({"running": 1}, {"running": 1, "cpu": 1000}, {"running": 1, "gpu": 1}, {"running": 1, "cpu": 2000, "gpu": 4})


def a_plan(
    queue: str = "training",
    project: str = "a",
    amounts: Amounts = AMOUNTS[0],
    *,
    environments: Mapping[str, float] | None = None,
    priority: int = 0,
    overflow_after: timedelta = timedelta(0),
    weight: float = 1.0,
) -> Plan:
    totals = {"x": 0.7, "y": 0.4} if environments is None else environments
    cards = tuple(sorted((ScoreCard(e, t, ()) for e, t in totals.items()), key=lambda c: (-c.total, c.environment)))
    return Plan(
        queue=queue,
        project=project,
        priority=priority,
        weight=weight,
        order=order(Ranking("r", cards)),
        amounts=dict.fromkeys(totals, amounts),
        overflow_after=overflow_after,
    )


def an_admission(
    queues: Mapping[str, Any] | None = None,
    capacity: Mapping[str, Amounts] | None = None,
    projects: Mapping[str, Any] | None = None,
) -> Admission:
    catalogue = a_catalogue(queues=queues or {}, projects=projects or {})
    return Admission(Ledger(), Limits(catalogue, capacity if capacity is not None else {"x": {}, "y": {}}))


def arrive(admission: Admission, key: str, *names: str, at: datetime = NOW) -> None:
    start = sum(len(bucket.tickets) for bucket in admission.buckets.values()) + len(admission.ledger)
    admission.arrive(key, [Ticket(name, 1, start + i, at) for i, name in enumerate(names)])


def names_of(admitted: list[Admitted]) -> list[str]:
    return [found.ticket.operation for found in admitted]


def wait_of(admission: Admission, key: str) -> WaitReason:
    wait = admission.buckets[key].wait
    assert wait is not None
    return wait.reason


def broken_limits(admission: Admission, catalogue: Catalogue) -> list[Limit]:
    """Every limit that is exceeded, counted anew from the charges."""
    limits, charges = admission.limits, admission.ledger.charges()
    found = []
    for limit in _every_limit(catalogue, limits.capacity):
        most = limits.most(limit)
        held = sum(
            charge.amounts.get(limit.resource, 0)
            for charge in charges
            if (limit.scope is ScopeKind.ENVIRONMENT and charge.environment == limit.name)
            or (limit.scope is ScopeKind.PROJECT and charge.project == limit.name)
            or (limit.scope is ScopeKind.QUEUE and limit.name in limits.chain(charge.queue))
        )
        assert held == limits.held(admission.ledger, limit)
        if most is not None and held > most:
            found.append(limit)
    return found


def _every_limit(catalogue: Catalogue, capacity: Mapping[str, Amounts]) -> list[Limit]:
    resources = ("running", "cpu", "gpu")
    names = {ScopeKind.ENVIRONMENT: capacity, ScopeKind.QUEUE: catalogue.queues, ScopeKind.PROJECT: catalogue.projects}
    return [Limit(scope, name, resource) for scope, known in names.items() for name in known for resource in resources]


class Queues(RuleBasedStateMachine):
    """Random arrivals, releases, cancellations, crashes, changes. Beside it runs one that lets nobody sleep."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.catalogue = a_catalogue(queues=QUEUES, projects=PROJECTS)
        self.capacity: dict[str, Amounts] = dict(CAPACITY)
        self.admission = Admission(Ledger(), Limits(self.catalogue, self.capacity))
        self.sleepless = Admission(Ledger(), Limits(self.catalogue, self.capacity))
        self.number = 0
        self.rounds: dict[str, int] = {}
        self.limits_changed = False

    @rule(
        queue=st.sampled_from(("training", "batch", "rest", "default")),
        project=st.sampled_from(("a", "b", "c")),
        amounts=st.sampled_from(AMOUNTS),
        only=st.sampled_from((("x",), ("x", "y"))),
        priority=st.sampled_from((0, 0, 5)),
        overflow=st.sampled_from((timedelta(0), timedelta(minutes=2))),
        count=st.integers(1, 4),
    )
    def operations_arrive(
        self,
        queue: str,
        project: str,
        amounts: Amounts,
        only: tuple[str, ...],
        priority: int,
        overflow: timedelta,
        count: int,
    ) -> None:
        key = f"{queue}-{project}-{sorted(amounts.items())}-{only}-{priority}-{overflow}"
        totals = {name: {"x": 0.7, "y": 0.4}[name] for name in only}
        plan = a_plan(queue, project, amounts, environments=totals, priority=priority, overflow_after=overflow)
        tickets = []
        for _ in range(count):
            self.number += 1
            self.rounds[f"op{self.number}"] = 1
            tickets.append(Ticket(f"op{self.number}", 1, self.number, self.now))
        for admission in (self.admission, self.sleepless):
            if key not in admission.buckets:
                admission.set_plan(key, plan)
            admission.arrive(key, tickets)

    @rule()
    def a_pass(self) -> None:
        self.sleepless.set_limits(self.sleepless.limits)
        fast, plain = self.admission.admit(self.now), self.sleepless.admit(self.now)
        assert fast == plain
        assert not self.admission.has_more or not self.admission.admit(self.now)

    @precondition(lambda self: len(self.admission.ledger) > 0)
    @rule(data=st.data())
    def operations_end(self, data: st.DataObject) -> None:
        held = [charge.operation for charge in self.admission.ledger.charges()]
        for operation in data.draw(st.lists(st.sampled_from(held), min_size=1, max_size=3)):
            assert self.admission.release(operation) == self.sleepless.release(operation)

    @rule(data=st.data())
    def operations_are_cancelled(self, data: st.DataObject) -> None:
        waiting = [t.operation for bucket in self.admission.buckets.values() for t in bucket.tickets]
        if waiting:
            gone = set(data.draw(st.lists(st.sampled_from(waiting), max_size=3)))
            assert self.admission.forget(gone) == self.sleepless.forget(gone) == gone

    @rule(minutes=st.integers(1, 4))
    def time_passes(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(paused=st.booleans(), concurrency=st.integers(5, 9))
    def a_queue_changes(self, paused: bool, concurrency: int) -> None:
        queues = {**QUEUES, "training": {**QUEUES["training"], "paused": paused, "concurrency": concurrency}}
        self.catalogue = a_catalogue(queues=queues, projects=PROJECTS)
        self.limits_changed = True
        for admission in (self.admission, self.sleepless):
            admission.set_limits(Limits(self.catalogue, self.capacity))

    @rule()
    def the_admitter_crashes(self) -> None:
        """A successor rebuilds everything from the charges and tickets that were committed."""
        buckets = {key: (b.plan, list(b.tickets)) for key, b in self.admission.buckets.items()}
        charges = self.admission.ledger.charges()
        for name in ("admission", "sleepless"):
            successor = Admission(Ledger(reversed(charges)), Limits(self.catalogue, self.capacity))
            for key, (plan, tickets) in buckets.items():
                successor.set_plan(key, plan)
                successor.arrive(key, tickets)
            assert successor.ledger.charges() == charges
            setattr(self, name, successor)

    @rule()
    def empty_buckets_are_dropped(self) -> None:
        assert self.admission.drop_empty() == self.sleepless.drop_empty()

    @invariant()
    def no_limit_is_exceeded(self) -> None:
        broken = broken_limits(self.admission, self.catalogue)
        # Lowering a limit ends nothing that runs; it only holds back what is new.
        assert not broken or self.limits_changed

    @invariant()
    def nothing_waits_and_holds_at_once(self) -> None:
        waiting = {t.operation for bucket in self.admission.buckets.values() for t in bucket.tickets}
        assert waiting.isdisjoint(charge.operation for charge in self.admission.ledger.charges())


Queues.TestCase.settings = settings(max_examples=120, stateful_step_count=30, deadline=None)
TestQueues = Queues.TestCase


def naive(admission: Admission) -> list[str]:
    """Admit by looking at every bucket before every single step: the rule, word for word."""
    order_: list[str] = []
    blocked: set[str] = set()
    while True:
        ready = [b for b in admission.buckets.values() if b.tickets and b.key not in blocked]
        if not ready:
            return order_
        best = min(ready, key=lambda bucket: turn(bucket, admission.ledger, admission.limits))
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

    def counted(line: Any) -> Any:
        nonlocal turns
        turns += 1
        return count(line)

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
