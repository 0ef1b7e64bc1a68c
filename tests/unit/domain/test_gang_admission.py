"""Members of a gang are admitted in one pass or not at all, by the limits that hold for everybody."""

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from landbridge.domain.admission import Admission
from landbridge.domain.queues import Plan, WaitReason
from support.deciding import NOW
from unit.domain.admission_world import a_plan, an_admission, arrive, broken_limits, names_of, wait_of

ONE: dict[str, int] = {"running": 1}
LATER = NOW + timedelta(minutes=10)


def a_member(gang: str = "train", members: int = 2, *, spans: bool = True, **plan: Any) -> Plan:

    return replace(a_plan(**plan), gang=f"a/{gang}", members=members, spans=spans)


def said(admission: Admission, key: str) -> str:
    wait = admission.buckets[key].wait
    assert wait is not None
    return wait.message


def test_nobody_is_admitted_before_all_members_wait() -> None:
    admission = an_admission()
    admission.set_plan("k", a_member(members=3))
    arrive(admission, "k", "a", "b")
    assert admission.admit(NOW) == []
    assert wait_of(admission, "k") is WaitReason.GANG_INCOMPLETE
    assert said(admission, "k").startswith("gang train has 2 of 3 members waiting here; 1 more is not accepted yet")
    admission.set_plan("other", a_member(members=3, environments={"y": 1.0}))
    arrive(admission, "other", "c")
    assert {a.charge.environment for a in admission.admit(NOW)} == {"x", "y"}
    assert len(admission.ledger) == 3


def test_where_one_finds_no_room_nothing_is_held_for_the_others() -> None:
    admission = an_admission(capacity={"x": {"running": 2}, "y": {"running": 1}})
    admission.set_plan("single", a_plan())
    arrive(admission, "single", "s")
    assert names_of(admission.admit(NOW)) == ["s"]
    admission.set_plan("k", a_member(members=3))
    arrive(admission, "k", "a", "b", "c")
    assert admission.admit(NOW) == []
    assert len(admission.ledger) == 1
    assert [t.operation for t in admission.buckets["k"].tickets] == ["a", "b", "c"]
    assert "gang train starts together, and beside its others operation c has no place" in said(admission, "k")
    arrive(admission, "single", "t")
    assert names_of(admission.admit(NOW)) == ["t"]


def test_a_gang_that_fits_nowhere_says_so_and_has_nothing_kept() -> None:
    admission = an_admission(capacity={"x": {"running": 1}, "y": {"running": 1}})
    admission.set_plan("k", a_member(members=3))
    arrive(admission, "k", "a", "b", "c")
    assert admission.admit(NOW) == []
    assert wait_of(admission, "k") is WaitReason.EXCEEDS_CAPACITY
    admission.set_plan("single", a_plan())
    arrive(admission, "single", "s", at=NOW + timedelta(seconds=1))
    assert names_of(admission.admit(LATER)) == ["s"]


def test_the_quota_counts_the_whole_gang_and_says_when_it_can_never_hold_it() -> None:
    admission = an_admission({"training": {"concurrency": 2}})
    admission.set_plan("k", a_member(members=3))
    arrive(admission, "k", "a", "b", "c")
    assert admission.admit(NOW) == []
    assert wait_of(admission, "k") is WaitReason.EXCEEDS_QUOTA
    expected = "the 3 members of gang train ask for 3 running together, queue training may hold 2: raise it or ask"
    assert said(admission, "k").startswith(expected)


def test_a_gang_waits_for_quota_and_is_admitted_when_it_is_released() -> None:
    admission = an_admission({"training": {"concurrency": 3}})
    admission.set_plan("single", a_plan())
    arrive(admission, "single", "s", "t")
    assert names_of(admission.admit(NOW)) == ["s", "t"]
    admission.set_plan("k", a_member())
    arrive(admission, "k", "a", "b")
    assert admission.admit(NOW) == []
    assert wait_of(admission, "k") is WaitReason.CONCURRENCY
    admission.release("s")
    assert sorted(names_of(admission.admit(NOW))) == ["a", "b"]


def test_a_gang_that_may_not_span_environments_is_put_into_one_that_has_room_for_all() -> None:
    admission = an_admission(capacity={"x": {"running": 1}, "y": {"running": 2}})
    admission.set_plan("k", a_member(spans=False))
    arrive(admission, "k", "a", "b")
    assert {a.charge.environment for a in admission.admit(NOW)} == {"y"}


def test_a_gang_without_a_common_environment_is_told_what_would_help() -> None:
    admission = an_admission()
    admission.set_plan("k", a_member(spans=False, environments={"x": 1.0}))
    admission.set_plan("l", a_member(spans=False, environments={"y": 1.0}))
    arrive(admission, "k", "a")
    arrive(admission, "l", "b")
    assert admission.admit(NOW) == []
    assert "gang.spanEnvironments" in said(admission, "k")


def test_members_with_few_places_choose_first() -> None:
    """In the order of arrival the first would take the only place of the second."""
    admission = an_admission(capacity={"x": {"running": 1}, "y": {"running": 1}})
    admission.set_plan("k", a_member())
    admission.set_plan("l", a_member(environments={"x": 1.0}))
    arrive(admission, "k", "a")
    arrive(admission, "l", "b")
    assert {a.ticket.operation: a.charge.environment for a in admission.admit(NOW)} == {"a": "y", "b": "x"}


def test_a_member_that_found_no_room_goes_first_in_the_next_try() -> None:
    """All have two places, and only one order of choosing fits."""
    admission = an_admission(capacity={"x": {"running": 1}, "y": {"running": 2}, "z": {"running": 1}})
    admission.set_plan("k", a_member(members=4, environments={"x": 0.9, "y": 0.5}))
    admission.set_plan("l", a_member(members=4, environments={"x": 0.9, "z": 0.1}))
    arrive(admission, "k", "a", "b")
    arrive(admission, "l", "c", "d")
    assert len(admission.admit(NOW)) == 4


def test_of_two_gangs_over_scarce_places_the_older_goes_first_and_both_are_served() -> None:
    admission = an_admission(capacity={"x": {"running": 1}, "y": {"running": 1}})
    for gang in ("old", "new"):
        admission.set_plan(gang, a_member(gang))
    arrive(admission, "old", "a")
    arrive(admission, "new", "b", "c")
    arrive(admission, "old", "d")
    assert sorted(names_of(admission.admit(NOW))) == ["a", "d"]
    assert admission.admit(NOW) == []
    admission.release("a")
    assert admission.admit(NOW) == []
    admission.release("d")
    assert sorted(names_of(admission.admit(NOW))) == ["b", "c"]


def test_what_is_released_is_kept_for_a_gang_that_waits_for_long_in_every_environment() -> None:
    admission = an_admission(capacity={"x": {"running": 1}, "y": {"running": 1}})
    admission.set_plan("single", a_plan())
    arrive(admission, "single", "s", "t")
    assert len(admission.admit(NOW)) == 2
    admission.set_plan("k", a_member())
    arrive(admission, "k", "a", "b")
    arrive(admission, "single", "u", "v", at=NOW + timedelta(seconds=1))
    assert admission.admit(LATER) == []
    admission.release("s")
    assert admission.admit(LATER) == [], "s's place is kept"
    assert wait_of(admission, "single") in (WaitReason.RESERVED, WaitReason.AT_CAPACITY)
    admission.release("t")
    assert sorted(names_of(admission.admit(LATER))) == ["a", "b"]


def test_a_member_that_leaves_frees_what_was_kept_and_the_others_are_told() -> None:
    admission = an_admission(capacity={"x": {"running": 1}, "y": {"running": 1}})
    admission.set_plan("single", a_plan())
    arrive(admission, "single", "r")
    admission.admit(NOW)
    admission.set_plan("k", a_member())
    arrive(admission, "k", "a", "b")
    admission.admit(LATER)
    arrive(admission, "single", "q", at=LATER)
    assert admission.admit(LATER) == [], "the free place is kept"
    admission.forget({"a"})
    admission.release("r")
    arrive(admission, "single", "s", "t", at=LATER)
    assert sorted(names_of(admission.admit(LATER))) == ["q", "s"]
    assert said(admission, "k").startswith("gang train has 1 of 2 members waiting here")


def test_a_paused_queue_stops_a_gang_and_resuming_lets_it_go() -> None:
    admission = an_admission({"training": {"paused": True}})
    admission.set_plan("k", a_member())
    arrive(admission, "k", "a", "b")
    assert admission.admit(NOW) == []
    assert wait_of(admission, "k") is WaitReason.QUEUE_PAUSED


def test_a_member_without_an_eligible_environment_holds_back_the_others_and_both_say_so() -> None:
    admission = an_admission()
    admission.set_plan("k", a_member())
    admission.set_plan("l", a_member(environments={}))
    arrive(admission, "k", "a")
    arrive(admission, "l", "b")
    assert admission.admit(NOW) == []
    assert wait_of(admission, "l") is WaitReason.NO_ELIGIBLE_ENVIRONMENT
    assert said(admission, "k").endswith("no environment is eligible for operation b")


# -- whatever happens --------------------------------------------------------------------------------------------------

QUEUES: dict[str, Any] = {"training": {"concurrency": 4, "quota": {"gpu": "5"}}, "rest": {"parent": "training"}}
CAPACITY = {"x": {"running": 3, "gpu": 3}, "y": {"running": 2, "gpu": 2}, "z": {"running": 1, "gpu": 4}}
PLACES: tuple[dict[str, float], ...] = ({"x": 0.9, "y": 0.5}, {"y": 1.0}, {"x": 0.2, "y": 0.3, "z": 0.9}, {"z": 1.0})


class GangQueue:
    """Gangs and single operations that arrive, end and are forgotten in an order from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.admission = an_admission(QUEUES, CAPACITY)
        self.gangs: dict[str, list[str]] = {}
        self.now = NOW

    def submit(self) -> None:
        number = len(self.gangs)
        size = self.random.choice([1, 1, 2, 3])
        gang, queue = f"g{number}", self.random.choice(["training", "rest"])
        spans = self.random.random() < 0.7
        environments = [self.random.choice(PLACES) for _ in range(size)]
        if not spans:
            environments = [PLACES[2]] * size
        members = self.gangs[gang] = [f"{gang}-{i}" for i in range(size)]
        for i, name in enumerate(members):
            amounts = {"running": 1, "gpu": self.random.choice([1, 1, 2])}
            plan: dict[str, Any] = {"queue": queue, "amounts": amounts, "environments": environments[i]}
            key = f"{gang}-{i}"
            self.admission.set_plan(key, a_member(gang, size, spans=spans, **plan) if size > 1 else a_plan(**plan))
            arrive(self.admission, key, name, at=self.now)

    def admit(self) -> None:
        admitted = set(names_of(self.admission.admit(self.now)))
        assert broken_limits(self.admission, self.admission.limits.catalogue) == []
        for members in self.gangs.values():
            assert admitted.isdisjoint(members) or admitted.issuperset(members), "some of a gang were admitted"

    def rest(self) -> None:
        """Run passes until one more is not wanted."""
        self.admit()
        for _ in range(50):
            if not self.admission.has_more:
                return
            self.admit()
        raise AssertionError("passes went on and on")

    def end(self) -> None:
        held = self.admission.ledger.charges()
        if held:
            self.admission.release(self.random.choice(held).operation)

    def run(self, events: int) -> None:
        for _ in range(events):
            self.random.choice([self.submit, self.admit, self.admit, self.end])()
            self.now += timedelta(seconds=self.random.choice([1, 30, 200]))

    def waiting(self) -> list[str]:
        return [t.operation for bucket in self.admission.buckets.values() for t in bucket.tickets]

    def drain(self) -> None:
        """End everything that is held, again and again: all that may ever be admitted is."""
        for _ in range(200):
            self.admit()
            if not self.admission.ledger.charges():
                break
            self.end()
        stuck = {self.admission.bucket_of(name).wait.reason for name in self.waiting()}  # type: ignore[union-attr]
        assert stuck <= {WaitReason.EXCEEDS_QUOTA, WaitReason.EXCEEDS_CAPACITY}, self.waiting()


@given(seed=st.integers(0, 10**9), events=st.integers(1, 80))
@settings(max_examples=150, deadline=None)
def test_whatever_comes_and_goes_gangs_are_whole_limits_hold_and_nothing_starves(seed: int, events: int) -> None:
    queue = GangQueue(seed)
    queue.run(events)
    queue.drain()


@given(seed=st.integers(0, 10**9))
@example(seed=4134137)
@example(seed=584)  # room that others took in the same pass seemed to be missing, and nobody was woken
@example(seed=1081)
@example(seed=2444)
@settings(max_examples=60, deadline=None)
def test_a_try_that_comes_to_nothing_leaves_everything_as_it_was(seed: int) -> None:
    queue = GangQueue(seed)
    queue.run(30)
    queue.rest()
    before = queue.admission.ledger.charges(), sorted(queue.waiting())
    queue.admission.wake_hopeless()
    queue.admission.set_limits(queue.admission.limits)
    queue.rest()
    assert (queue.admission.ledger.charges(), sorted(queue.waiting())) == before
