"""Queue delay is predicted from what runs and waits, how long that is expected to last, and the capacity."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain.admission import Admission
from landbridge.domain.backlog import AT_ONCE, Backlog, Room, ready, room_after, room_within
from landbridge.domain.backlogs import MOST_CHARGES, MOST_STEPS, backlogs
from landbridge.domain.forecast import forecast, snapshot
from landbridge.domain.ledger import Charge
from landbridge.domain.placement import rank
from landbridge.domain.preferences import Observed
from landbridge.domain.preferences.queue_delay import QueueDelay
from landbridge.domain.tickets import Ticket
from landbridge.domain.units import two_digits
from support.deciding import NOW, a_catalogue, an_environment, an_operation
from unit.domain.admission_world import a_plan, an_admission, arrive
from unit.domain.observed import BACKLOGS

GPUS = 8
Work = tuple[int, int | None]  # devices, and minutes that it is expected to last; None: nothing tells


def held(admission: Admission, work: Sequence[Work]) -> None:
    for number, (gpus, minutes) in enumerate(work):
        ends = None if minutes is None else NOW + timedelta(minutes=minutes)
        amounts = {"running": 1, "gpu": gpus}
        admission.ledger.charge(Charge(f"held-{number}", 1, "x", "training", "a", amounts, at=NOW, ends=ends))


def waiting(admission: Admission, work: Sequence[Work], *, priority: int = 0, key: str = "w", **more: Any) -> None:
    for number, (gpus, minutes) in enumerate(work):
        name = f"{key}-{number}"
        expected = None if minutes is None else timedelta(minutes=minutes)
        plan = a_plan(amounts={"running": 1, "gpu": gpus}, environments={"x": 1.0}, priority=priority)
        admission.set_plan(name, replace(plan, expected=expected, **more))
        arrive(admission, name, name)


def taken(admission: Admission, gpus: int = GPUS, lasted: Any = None) -> Backlog:
    return backlogs(admission, {"x": {"gpu": gpus}}, lasted or {}, NOW)["x"]


def room(running: Sequence[Work], ahead: Sequence[Work], wanted: int, gpus: int = GPUS, priority: int = 0) -> Room:
    admission = an_admission(capacity={"x": {"gpu": gpus}})
    held(admission, running)
    waiting(admission, ahead)
    found = backlogs(admission, {"x": {"gpu": gpus}}, {}, NOW)
    return room_after(found["x"], {"running": 1, "gpu": wanted}, priority) if found else AT_ONCE


def test_where_there_is_room_it_is_there_at_once() -> None:
    assert room([(4, 60)], [], 4) == AT_ONCE
    assert room([], [], 8) == AT_ONCE


def test_room_comes_when_enough_of_what_runs_has_ended() -> None:
    running: list[Work] = [(4, 10), (2, 30), (2, 60)]
    assert [room(running, [], wanted).seconds for wanted in (1, 4, 5, 6, 7)] == [600.0, 600.0, 1800.0, 1800.0, 3600.0]


def test_what_waits_goes_first() -> None:
    assert room([(8, 10)], [(4, 60)], 4).seconds == 600.0
    # Of 12 wanted, 4 more than there is: half a turn of work that lasts an hour.
    assert room([(8, 10)], [(4, 60), (4, 60)], 4).seconds == 600.0 + 0.5 * 3600


def test_what_waits_with_a_lower_priority_does_not() -> None:
    admission = an_admission(capacity={"x": {"gpu": GPUS}})
    held(admission, [(8, 10)])
    waiting(admission, [(8, 60)], priority=5)
    found = taken(admission)
    assert room_after(found, {"gpu": 8}, 9).seconds == 600.0
    assert room_after(found, {"gpu": 8}, 5).seconds == 600.0 + 3600


def test_what_waits_for_its_own_queues_limit_takes_no_room() -> None:
    admission = an_admission({"training": {"concurrency": 1}}, capacity={"x": {"gpu": GPUS}})
    held(admission, [(8, 10)])
    waiting(admission, [(8, 60)])
    admission.admit(NOW)
    assert taken(admission).waiting == 0


def test_work_that_may_go_elsewhere_counts_in_part() -> None:
    admission = an_admission(capacity={"x": {"gpu": GPUS}, "y": {"gpu": GPUS}})
    held(admission, [(8, 10)])
    amounts = {"running": 1, "gpu": 8}
    plan = replace(a_plan(amounts=amounts, environments={"x": 1.0, "y": 1.0}), expected=timedelta(hours=1))
    admission.set_plan("w", plan)
    arrive(admission, "w", "one", "two")
    found = taken(admission)
    assert (found.held, found.waiting) == (1, 1)
    assert room_after(found, amounts, 0).seconds == 600.0 + 3600


def test_how_long_such_work_lasted_lately_counts_before_what_it_declares() -> None:
    admission = an_admission(capacity={"x": {"gpu": GPUS}})
    held(admission, [(8, 600)])
    found = taken(admission, lasted={("x", "training"): (60.0, 100.0, 140.0)})
    assert room_after(found, {"gpu": 1}, 0).seconds == 100.0


def test_room_that_depends_on_work_of_unknown_duration_is_unknown_with_a_lower_bound() -> None:
    running: list[Work] = [(4, 10), (4, None)]
    assert room(running, [], 4).seconds == 600.0
    assert room(running, [], 5) == Room(None, 600.0)
    assert room([(8, 10)], [(8, None)], 4) == Room(None, 600.0)
    assert room([(8, None)], [], 1) == Room(None, 0.0)


_WORK = st.tuples(st.integers(1, 4), st.integers(1, 600))
_ANY = st.tuples(st.integers(1, 4), st.none() | st.integers(1, 600))


def _fits(work: list[Any], most: int) -> list[Any]:
    found, used = [], 0
    for gpus, minutes in work:
        if used + gpus <= most:
            found.append((gpus, minutes))
            used += gpus
    return found


def _seconds(found: Room) -> float:
    return float("inf") if found.seconds is None else found.seconds


@given(running=st.lists(_WORK, max_size=8), wanted=st.integers(1, GPUS))
def test_where_nothing_waits_the_prediction_is_what_admission_itself_comes_to(running: list[Work], wanted: int) -> None:
    running = _fits(running, GPUS)
    admission = an_admission(capacity={"x": {"gpu": GPUS}})
    held(admission, running)
    joining = ("new", a_plan(amounts={"running": 1, "gpu": wanted}, environments={"x": 1.0}), Ticket("o", 1, 99, NOW))
    ahead = forecast(snapshot(admission, "o", joining), {}, NOW)
    assert ahead.middle_s is not None
    assert room(running, [], wanted).seconds == two_digits(ahead.middle_s)


@given(
    running=st.lists(_ANY, max_size=8),
    ahead=st.lists(_ANY, max_size=6),
    more=_ANY,
    wanted=st.integers(1, GPUS),
)
def test_more_work_more_wanted_or_less_capacity_never_brings_room_sooner(
    running: list[Work], ahead: list[Work], more: Work, wanted: int
) -> None:
    running = _fits(running, GPUS)
    base = _seconds(room(running, ahead, wanted))
    assert _seconds(room(running, [*ahead, more], wanted)) >= base - 0.02 * min(base, 1e9)
    if wanted < GPUS:
        assert _seconds(room(running, ahead, wanted + 1)) >= base
    assert _seconds(room(running, ahead, wanted, gpus=GPUS + 4)) <= base


@given(running=st.lists(_WORK, min_size=1, max_size=8), number=st.integers(0, 7), wanted=st.integers(1, GPUS))
def test_not_knowing_a_duration_never_brings_room_sooner(running: list[Work], number: int, wanted: int) -> None:
    running = _fits(running, GPUS)
    vague = list(running)
    vague[number % len(vague)] = (vague[number % len(vague)][0], None)
    assert _seconds(room(vague, [], wanted)) >= _seconds(room(running, [], wanted))


def test_of_very_much_a_sample_is_looked_at_and_the_answer_is_nearly_the_same() -> None:
    count = 3 * MOST_CHARGES
    admission = an_admission(capacity={"x": {"gpu": count}})
    held(admission, [(1, 1 + number * 7 % 1000) for number in range(count)])
    found = taken(admission, gpus=count)
    assert len(found.lines["gpu"].steps) <= MOST_STEPS + 1
    assert found.held == count
    half = room_after(found, {"gpu": count // 2}, 0).seconds
    assert half == pytest.approx(500 * 60, rel=0.06)


# -- the preference ----------------------------------------------------------------------------------------------------


def observed(running: Sequence[Work], ahead: Sequence[Work] = (), starts: int = 5) -> Observed:
    admission = an_admission(capacity={"x": {"cpu": 64_000}})
    amounts = [({"running": 1, "cpu": gpus * 8000}, minutes) for gpus, minutes in running]
    for number, (taken_, minutes) in enumerate(amounts):
        ends = None if minutes is None else NOW + timedelta(minutes=minutes)
        admission.ledger.charge(Charge(f"h{number}", 1, "x", "training", "a", taken_, at=NOW, ends=ends))
    for number, (gpus, minutes) in enumerate(ahead):
        plan = a_plan(amounts={"running": 1, "cpu": gpus * 8000}, environments={"x": 1.0}, priority=50)
        admission.set_plan(f"w{number}", replace(plan, expected=timedelta(minutes=minutes or 0)))
        arrive(admission, f"w{number}", f"w{number}")
    found = backlogs(admission, {"x": {"cpu": 64_000}}, {}, NOW)
    return Observed(starts=starts, start_delay_s=2.0, backlog=found.get("x"))


def test_the_preference_adds_waiting_for_room_to_starting_and_tells_both() -> None:
    operation = an_operation()
    found = QueueDelay().measure(operation.requirements, an_environment(), observed([(8, 10)], [(1, 5)]))
    assert (found.value, found.unit) == (602.0, "s")
    assert found.source == "room predicted in 600 s: 1 placed, 1 waiting; starts: mean of the last 5 starts"


def test_with_room_the_preference_is_how_soon_work_starts() -> None:
    found = QueueDelay().measure(an_operation().requirements, an_environment(), observed([(4, 10)]))
    assert found == (2.0, "s", "mean of the last 5 starts")


def test_where_starts_are_unknown_so_is_the_delay_however_long_the_line_is() -> None:
    silent = an_environment(objectives={"startWithin": None})
    assert QueueDelay().measure(an_operation().requirements, silent, observed([(8, 10)], starts=0)).value is None


def test_the_operations_own_priority_class_counts() -> None:
    catalogue = a_catalogue(queues={"training": {"priority": 10, "priorityClasses": {"urgent": 90}}})
    environment = an_environment(catalogue=catalogue)
    seen = observed([(8, 10)], [(8, 60)])
    urgent = QueueDelay().measure(an_operation(priority="urgent").requirements, environment, seen)
    usual = QueueDelay().measure(an_operation().requirements, environment, seen)
    assert urgent.value == 602.0
    assert usual.value is not None
    assert usual.value > 602.0


def test_a_line_of_unknown_length_never_wins() -> None:
    sites = [an_environment("known"), an_environment("vague")]
    seen = {"known": observed([(8, 600)]), "vague": observed([(8, None)])}
    ranking = rank(an_operation().requirements, sites, {"queue-delay": 1.0}, observed=seen)
    assert [card.environment for card in ranking.cards] == ["known", "vague"]
    [found] = [each for each in ranking.cards[1].measurements if each.preference == "queue-delay"]
    assert found.unknown
    assert found.source.startswith("when there is room is unknown: 1 placed, 0 waiting, 1 of unknown duration")


@given(backlog=BACKLOGS, cpu=st.integers(1, 20_000), priority=st.integers(0, 100))
def test_what_every_operation_takes_may_be_looked_at_beforehand(backlog: Backlog, cpu: int, priority: int) -> None:
    amounts = {"running": 1, "cpu": cpu}
    prepared = ready(backlog, priority, {"running": 1})
    assert all(front.resource != "running" for front in prepared.fronts)
    assert room_within(prepared, amounts) == room_after(backlog, amounts, priority)
