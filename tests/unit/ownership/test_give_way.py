"""Work gives way to other work by the ordinary protocol; gangs that do not start are given back; queues are changed."""

from typing import Any

import pytest

from landbridge.domain.lifecycle import Phase
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import PlacementState, Timer
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect
from unit.ownership.test_centre import ONE, Centre, finished, relinquished, started

LEAVE = model.Preempted(1, "operation h has the higher priority 9")
ELSEWHERE = model.QueueChanged("ann", "it is urgent", queue="fast")


def test_running_work_is_asked_to_leave_and_is_the_owner_until_it_is_given_back() -> None:
    centre = Centre().running().tell(LEAVE, LEAVE)
    [stop] = centre.of(model.SendStop)
    assert (stop.reason, stop.force, centre.state.placement) == ("preempted", False, PlacementState.RUNNING)
    assert centre.of(model.Free) == centre.of(model.Requeue) == []
    assert [e.reason for e in centre.of(model.Lifecycle) if e.event == "observed"] == ["preempted"]
    centre.tell(relinquished(reason="preempted", checkpoint="ck/9"))
    assert (centre.state.phase, centre.state.round, centre.state.checkpoint) == (Phase.RETRYING, 2, "ck/9")
    assert (centre.state.stopping, centre.state.failures) == ("", 0)
    assert centre.of(model.Free) == [model.Free(1, "a")]
    assert [r.round for r in centre.of(model.Requeue)] == [2]


def test_an_offer_is_taken_back_at_once() -> None:
    centre = Centre().tell(model.Decided(1, "a", "d"), LEAVE)
    assert [type(e) for e in centre.effects[2:]] == [model.Lifecycle, model.SendWithdraw, model.Free, model.Requeue]


def test_asked_before_the_decision_is_heard_the_decision_is_for_a_round_that_is_over() -> None:
    centre = Centre().tell(LEAVE, model.Decided(1, "a", "d"))
    assert (centre.state.round, centre.state.placement) == (2, PlacementState.IDLE)
    assert centre.of(model.SendOffer) == []
    assert centre.of(model.Free) == [model.Free(1, "a")]


@pytest.mark.parametrize(
    "centre",
    [
        Centre().running().tell(finished()),
        Centre().running().tell(model.CancelRequested("ann", "over")),
        Centre(policy=Disconnection(OnDisconnect.MUST_FINISH)).running(),
        Centre().running().tell(relinquished()).tell(model.Decided(2, "b", "d")),
    ],
    ids=["ended", "cancelled", "must-finish", "another round"],
)
def test_it_changes_nothing_for(centre: Centre) -> None:
    before = centre.state
    assert centre.tell(LEAVE).state == before


def test_work_that_ends_by_itself_instead_has_ended() -> None:
    centre = Centre().running().tell(LEAVE, finished())
    assert centre.state.phase is Phase.COMPLETED


def test_the_wish_is_repeated_when_the_environment_shows_the_work_again() -> None:
    centre = Centre().running().tell(LEAVE)
    item = model.InventoryItem(environment="a", epoch=ONE, term=1, environment_term=1, slot=SlotPhase.RUNNING)
    assert [s.reason for s in centre.tell(item).of(model.SendStop)] == ["preempted", "preempted"]


# -- gangs -------------------------------------------------------------------------------------------------------------


def a_gang(**more: Any) -> Centre:
    return Centre(start_within_ms=60_000, **more).tell(model.Decided(1, "a", "d"), model.Claim("a", ONE, 1))


def test_a_gang_that_has_not_started_in_time_is_stopped_and_goes_elsewhere() -> None:
    centre = a_gang()
    assert (centre.state.timer, centre.state.due_at) == (Timer.START, 61_000)
    assert centre.tell(model.StartDue()).of(model.SendStop) == []
    centre.now = 61_000
    centre.tell(model.StartDue(), model.StartDue())
    assert [s.reason for s in centre.of(model.SendStop)] == ["gang-not-started"]
    assert centre.state.placement is PlacementState.CLAIMED
    centre.tell(relinquished(reason="gang-not-started"))
    [requeue] = centre.of(model.Requeue)
    assert (centre.state.phase, requeue.exclude, centre.state.failures) == (Phase.QUEUED, ("a",), 0)


def test_a_gang_that_has_started_in_time_is_left_alone() -> None:
    centre = a_gang().tell(started())
    assert centre.state.timer is Timer.NONE
    centre.now = 90_000
    assert centre.tell(model.StartDue()).of(model.SendStop) == []


# -- another queue -----------------------------------------------------------------------------------------------------


def test_what_waits_is_judged_again_for_the_other_queue_at_once() -> None:
    centre = Centre().tell(model.Waiting(1, "quota"), ELSEWHERE)
    assert (centre.state.queue, centre.state.round) == ("fast", 2)
    assert [(r.round, r.reason) for r in centre.of(model.Requeue)] == [(2, "queue-changed")]
    centre.tell(model.QueueChanged("ann", "more so", priority="urgent"))
    assert (centre.state.queue, centre.state.priority, centre.state.round) == ("fast", "urgent", 3)


def test_an_offer_is_withdrawn_for_it_and_what_runs_stays() -> None:
    offered = Centre().tell(model.Decided(1, "a", "d"), ELSEWHERE)
    assert len(offered.of(model.SendWithdraw)) == 1
    running = Centre().running()
    before = running.state
    assert running.tell(ELSEWHERE).state == before
