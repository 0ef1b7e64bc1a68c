"""Random arrivals, releases, crashes and changes: no limit is exceeded, and nobody sleeps through a turn."""

from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from landbridge.domain.admission import Admission
from landbridge.domain.ledger import Amounts, Ledger
from landbridge.domain.limits import Limits
from landbridge.domain.tickets import Ticket
from support.deciding import NOW, a_catalogue
from unit.domain.admission_world import (
    AMOUNTS,
    CAPACITY,
    PROJECTS,
    QUEUES,
    a_plan,
    broken_limits,
)


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
