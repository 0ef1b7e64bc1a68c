"""A forecast is the admission itself, run ahead: who is before, what is held, how long such work lasts."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.domain.admission import Admission
from landbridge.domain.forecast import (
    LEAVES_WITHIN,
    Forecast,
    Joining,
    Lasted,
    forecast,
    forecast_together,
    quantile,
    snapshot,
    snapshot_together,
)
from landbridge.domain.queues import Plan, WaitReason
from landbridge.domain.tickets import Ticket
from support.deciding import NOW
from unit.domain.admission_world import a_plan, an_admission, arrive

ONE_AT_A_TIME = {"training": {"concurrency": 1}}
PLACE = ("x", "training")


def running(admission: Admission, count: int, *, ago_s: float = 0.0) -> None:
    """Have operations admitted some time ago."""
    at = NOW - timedelta(seconds=ago_s)
    admission.set_plan("held", a_plan(environments={"x": 1.0}))
    arrive(admission, "held", *[f"held-{i}" for i in range(count)], at=at)
    assert len(admission.admit(at)) == count


def waiting(admission: Admission, *names: str) -> None:
    admission.set_plan("w", a_plan(environments={"x": 1.0}))
    arrive(admission, "w", *names)
    admission.admit(NOW)


def asked(admission: Admission, operation: str, lasted: Lasted) -> Forecast:
    return forecast(snapshot(admission, operation), lasted, NOW)


def test_with_room_it_is_admitted_now() -> None:
    admission = an_admission()
    joining = ("new", a_plan(environments={"x": 1.0}), Ticket("plan", 1, 99, NOW))
    found = forecast(snapshot(admission, "plan", joining), {}, NOW)
    assert (found.low_s, found.high_s, found.environment) == (0.0, 0.0, "x")
    assert admission.buckets == {}, "nothing joins in truth"


def test_each_one_ahead_takes_as_long_as_such_work_lasted_lately() -> None:
    admission = an_admission(ONE_AT_A_TIME)
    running(admission, 1)
    waiting(admission, "first", "second", "third")
    lasted = {PLACE: (60.0, 100.0, 140.0)}
    for place, operation in enumerate(["first", "second", "third"], 1):
        found = asked(admission, operation, lasted)
        assert found.first.wait is not None
        assert found.first.wait.reason is WaitReason.CONCURRENCY
        assert found.middle_s == pytest.approx(100.0 * place)
        assert [found.low_s, found.high_s] == pytest.approx([80.0 * place, 120.0 * place])


def test_what_runs_already_has_that_much_less_to_run_and_what_outlasted_all_may_go_on_as_long_again() -> None:
    young, old = an_admission(ONE_AT_A_TIME), an_admission(ONE_AT_A_TIME)
    running(young, 1, ago_s=90)
    running(old, 1, ago_s=500)
    for admission in (young, old):
        waiting(admission, "first")
    lasted = {PLACE: (60.0, 100.0, 140.0)}
    assert asked(young, "first", lasted).middle_s == pytest.approx(30.0)  # of 100 and 140 the middle, less 90
    assert asked(old, "first", lasted).middle_s == pytest.approx(500.0)


def test_declared_durations_serve_where_nothing_was_seen_and_widely() -> None:
    admission = an_admission(ONE_AT_A_TIME)
    admission.set_plan("held", replace(a_plan(environments={"x": 1.0}), expected=timedelta(minutes=10)))
    arrive(admission, "held", "held")
    admission.admit(NOW)
    waiting(admission, "first")
    found = asked(admission, "first", {PLACE: (60.0, 100.0)})
    assert (found.low_s, found.middle_s, found.high_s) == (300.0, 600.0, 1200.0)


def test_where_nothing_is_known_nothing_is_told() -> None:
    admission = an_admission(ONE_AT_A_TIME)
    running(admission, 1)
    waiting(admission, "first")
    found = asked(admission, "first", {PLACE: (60.0, 100.0)})
    assert (found.low_s, found.middle_s, found.high_s) == (None, None, None)
    assert found.unknown == 1


def test_no_forecast_of_what_time_does_not_bring() -> None:
    admission = an_admission({"training": {"paused": True}})
    waiting(admission, "first")
    found = asked(admission, "first", {PLACE: (1.0, 1.0, 1.0)})
    assert found.middle_s is None
    assert found.first.wait is not None
    assert found.first.wait.reason is WaitReason.QUEUE_PAUSED


def test_others_of_higher_priority_go_first_also_in_a_forecast() -> None:
    admission = an_admission(ONE_AT_A_TIME)
    running(admission, 1)
    waiting(admission, "first")
    joining = ("urgent", a_plan(environments={"x": 1.0}, priority=9), Ticket("plan", 1, 99, NOW))
    lasted = {PLACE: (100.0, 100.0, 100.0)}
    assert forecast(snapshot(admission, "plan", joining), lasted, NOW).middle_s == pytest.approx(100.0)
    joining = ("later", a_plan(environments={"x": 1.0}), Ticket("plan", 1, 99, NOW))
    assert forecast(snapshot(admission, "plan", joining), lasted, NOW).middle_s == pytest.approx(200.0)


def test_a_forecast_leaves_the_admission_as_it_was() -> None:
    admission = an_admission(ONE_AT_A_TIME)
    running(admission, 1)
    waiting(admission, "first", "second")
    before = [ticket.operation for ticket in admission.buckets["w"].tickets], admission.ledger.charges()
    asked(admission, "second", {PLACE: (5.0, 6.0, 7.0)})
    assert ([ticket.operation for ticket in admission.buckets["w"].tickets], admission.ledger.charges()) == before
    admission.release("held-0")
    assert [found.ticket.operation for found in admission.admit(NOW)] == ["first"]


def test_the_forecast_comes_true_when_work_lasts_as_it_did() -> None:
    """Run the admission itself on: the operation is admitted when it was said to be."""
    admission = an_admission({"training": {"concurrency": 3}})
    running(admission, 3)
    waiting(admission, *[f"w{i}" for i in range(7)])
    told = asked(admission, "w6", {PLACE: (50.0, 50.0, 50.0)}).middle_s
    ends = {charge.operation: NOW + timedelta(seconds=50) for charge in admission.ledger.charges()}
    while True:
        at = min(ends.values())
        for operation in [name for name, end in ends.items() if end == at]:
            del ends[operation]
            admission.release(operation)
        admitted = {found.ticket.operation for found in admission.admit(at)}
        if "w6" in admitted:
            break
        ends |= dict.fromkeys(admitted, at + timedelta(seconds=50))
    assert told == (at - NOW).total_seconds()


def joined(admission: Admission, *plans: Plan, lasted: Lasted) -> list[Forecast]:
    """Look ahead for operations that would come one behind the other, each of a class of its own."""
    rows: list[Joining] = [(f"class-{n}", plan, Ticket(f"plan-{n}", 1, 90 + n, NOW)) for n, plan in enumerate(plans)]
    names = [ticket.operation for _, _, ticket in rows]
    found = forecast_together(snapshot_together(admission, names, rows), lasted, NOW)
    return [found[name] for name in names]


def test_what_would_come_together_takes_turns_as_admission_has_them() -> None:
    lasted, place = {PLACE: (100.0, 100.0, 100.0)}, {"x": 1.0}
    first, second, third = joined(
        an_admission(ONE_AT_A_TIME),
        a_plan(environments=place),
        a_plan(environments=place),
        a_plan(environments=place, priority=9),
        lasted=lasted,
    )
    assert (third.middle_s, third.environment) == (0.0, "x")  # the most urgent goes first, though it comes last
    assert [first.middle_s, second.middle_s] == pytest.approx([100.0, 200.0])
    assert first.first.wait is not None
    assert first.first.wait.reason is WaitReason.CONCURRENCY
    assert (first.seen, first.unknown) == (3, 0)


def test_how_long_what_goes_at_once_lasts_counts_for_those_behind_it() -> None:
    first, second = joined(
        an_admission(ONE_AT_A_TIME), a_plan(environments={"x": 1.0}), a_plan(environments={"x": 1.0}), lasted={}
    )
    assert first.middle_s == 0.0
    assert (second.middle_s, second.unknown) == (None, 1)


def test_a_gang_that_would_come_whole_is_placed_whole_and_each_member_alone_waits_for_the_others() -> None:
    members = [replace(a_plan(environments={name: 1.0}), gang="a/train", members=2, spans=True) for name in ("x", "y")]
    together = joined(an_admission(), *members, lasted={})
    assert [(found.middle_s, found.environment) for found in together] == [(0.0, "x"), (0.0, "y")]
    for member in members:
        [alone] = joined(an_admission(), member, lasted={})
        assert alone.first.wait is not None
        assert alone.first.wait.reason is WaitReason.GANG_INCOMPLETE


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["x", "y", "xy"])), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_what_is_followed_together_is_what_each_is_told_that_is_followed_alone(
    wanted: list[tuple[int, str]],
) -> None:
    admission = an_admission({"training": {"concurrency": 2}})
    running(admission, 1)
    lasted = {(name, "training"): (50.0, 100.0, 150.0) for name in "xy"}
    plans = [a_plan(environments=dict.fromkeys(places, 1.0), priority=urgent) for urgent, places in wanted]
    rows: list[Joining] = [(f"class-{n}", plan, Ticket(f"plan-{n}", 1, 90 + n, NOW)) for n, plan in enumerate(plans)]
    names = [ticket.operation for _, _, ticket in rows]
    together = forecast_together(snapshot_together(admission, names, rows), lasted, NOW)
    for name in names:
        alone = forecast(snapshot_together(admission, [name], rows), lasted, NOW)
        assert (alone.low_s, alone.middle_s, alone.high_s) == (
            together[name].low_s,
            together[name].middle_s,
            together[name].high_s,
        )
        assert alone.place == together[name].place


def test_quantiles_lie_between() -> None:
    assert quantile([1.0], 0.75) == 1.0
    assert quantile([1.0, 3.0], 0.5) == 2.0
    assert timedelta(0) < LEAVES_WITHIN
