"""Members of a gang are granted together or not at all, and what becomes of one concerns the others as declared."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from landbridge.domain.lifecycle import TERMINAL, Phase, may_move
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre_model import PlacementState
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.domain.ownership.gang import members_left
from landbridge.domain.ownership.policy import Retries
from unit.ownership.gang_world import GangWorld

NO_RETRIES = Retries()


def test_nothing_is_granted_before_all_are_claimed_and_then_everything() -> None:
    world = GangWorld().accept().place()
    world.claim("a")
    world.claim("b")
    world.claim("a")
    assert world.of(model.Grant) == []
    assert {(r.reason, r.retry) for r in world.of(model.RefuseClaim)} == {("gang-incomplete", True)}
    world.claim("c")
    assert [who for who, effect in world.effects if isinstance(effect, model.Grant)] == ["c"]
    world.claim("a")
    world.claim("b")
    assert len(world.of(model.Grant)) == 3
    for name in "abc":
        world.start(name)
    assert world.phases() == ["running"] * 3


def test_who_is_claimed_is_told_which_members_are_not_and_where_they_are() -> None:
    world = GangWorld().accept("a", "b")
    world.tell("a", model.Decided(1, "x", "d"))
    world.tell("b", model.Decided(1, "y", "d"))
    world.claim("a")
    [told] = [e for e in world.of(model.Lifecycle, "a") if e.reason == "gang-incomplete"]
    expected = "claimed by x; gang train has 1 of 3 members claimed, not b (offered to y); 1 not accepted"
    assert told.message == expected


@pytest.mark.parametrize("reason", ["refused", "unclaimed", "lost", "stale"])
def test_what_takes_one_place_away_gives_all_back_and_they_are_judged_again(reason: str) -> None:
    world = GangWorld().accept().place()
    world.claim("a")
    world.claim("b")
    state = world.states["c"]
    if reason == "refused":
        world.report(model.ReportRefused, "c", reason="no-capacity")
    elif reason == "unclaimed":
        world.now += 30_000
        world.tell("c", model.OfferTimeout())
    elif reason == "lost":
        world.tell("c", model.LinkLost(state.environment))
    else:
        world.tell("c", model.Claim(state.environment, state.epoch, 1, "verdict-replaced"))
    assert [s.placement for s in world.states.values()] == [PlacementState.IDLE] * 3
    assert len(world.of(model.Free)) == 3
    assert world.tickets == {"a": 2, "b": 2, "c": 2}
    assert world.of(model.Grant) == []
    world.come_to_an_end()
    assert world.phases() == ["completed"] * 3


def test_the_deadline_takes_back_what_was_claimed_and_the_next_tries_are_further_apart() -> None:
    world = GangWorld().accept("a", "b")
    waits = []
    for round_ in range(1, 5):
        for name in ("a", "b"):
            world.tell(name, model.Decided(round_, "x", "d"))
            world.claim(name)
        world.now += 60_000
        world.tell("a", model.OfferTimeout())
        state = world.states["a"]
        waits.append(state.due_at - world.now if state.timer is model.Timer.RETRY else 0)
        for name in ("a", "b"):
            if world.states[name].timer is model.Timer.RETRY:
                world.now = max(world.now, world.states[name].due_at)
                world.tell(name, model.RetryDue())
    assert waits == [0, 1_000, 2_000, 4_000]
    told = [e.message for e in world.of(model.Lifecycle, "a") if e.event == "queued" and e.reason == "gang-incomplete"]
    assert set(told) == {"not all members of gang train were claimed within 60 s"}


def test_a_decision_for_a_round_that_another_member_has_ended_places_nothing() -> None:
    world = GangWorld().accept()
    world.admit()
    world.tell("a", model.QueueChanged("ann", "urgent", queue="fast"))
    while world.decisions:
        world.hear()
    assert [s.placement for s in world.states.values()] == [PlacementState.IDLE] * 3
    assert len(world.of(model.Free)) == 3
    assert world.tickets == {"a": 2, "b": 2, "c": 2}


def test_a_claim_of_an_environment_that_has_begun_anew_does_not_count() -> None:
    world = GangWorld().accept().place()
    world.claim("a")
    world.tell("a", model.InventoryMissing(world.states["a"].environment, 2))
    world.claim("b")
    world.claim("c")
    assert world.of(model.Grant) == []
    assert world.states["a"].due_at == world.now + 30_000, "it has an offer's time to claim again"
    world.tell("a", model.Claim(world.states["a"].environment, world.states["a"].epoch, 2))
    assert len(world.of(model.Grant)) == 1


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("stand", ["waiting", "offered", "claimed"])
def test_cancelling_one_before_the_start_ends_all(stand: str, apart: bool) -> None:
    world = GangWorld(apart=apart).accept()
    if stand != "waiting":
        world.place()
    if stand == "claimed":
        world.claim("a")
        world.claim("b")
    world.tell("a", model.CancelRequested("ann", "over"))
    assert world.phases() == ["cancelled"] * 3
    [told] = [e for e in world.of(model.Lifecycle, "b") if e.event == "cancelled"]
    assert told.reason == "gang-member-lost"
    assert told.message == "cancelled by gang train: its member a has ended as cancelled"
    assert len(world.of(model.SendWithdraw)) == (0 if stand == "waiting" else 3)


def test_who_is_accepted_into_a_gang_that_has_ended_ends_with_it() -> None:
    world = GangWorld().accept("a", "b")
    world.tell("b", model.CancelRequested("ann", "over"))
    world.accept("c")
    assert world.phases() == ["cancelled"] * 3


def test_a_queue_timeout_of_one_ends_all_and_says_that_the_gang_was_not_complete() -> None:
    world = GangWorld(queue_timeout_ms=9_000).accept("a", "b")
    world.now = 10_000
    world.tell("a", model.QueueTimeout())
    assert world.phases() == ["failed", "cancelled"]
    [told] = [e for e in world.of(model.Lifecycle, "a") if e.event == "failed"]
    assert told.reason == "gang-incomplete"


def test_a_failure_cancels_the_others_if_they_stay_together() -> None:
    world = GangWorld(retries=NO_RETRIES).accept().begin()
    world.finish("b", "failed", exit_code=3)
    assert [s.reason for s in world.of(model.SendStop)] == ["cancelled", "cancelled"]
    world.obey("a")
    world.obey("c")
    assert world.phases() == ["cancelled", "failed", "cancelled"]


def test_a_failure_of_one_concerns_nobody_if_they_go_on_apart() -> None:
    world = GangWorld(apart=True, retries=NO_RETRIES).accept().begin()
    world.finish("b", "failed", exit_code=3)
    world.finish("a")
    assert world.of(model.SendStop) == []
    assert world.phases() == ["completed", "failed", "running"]


def test_apart_a_retry_is_placed_and_granted_by_itself() -> None:
    world = GangWorld(apart=True).accept().begin()
    world.finish("b", "failed")
    world.tick(2_000)
    assert world.tickets == {"b": 2}
    world.place()
    world.claim("b")
    world.start("b")
    assert world.phases() == ["running"] * 3
    assert world.of(model.SendStop) == []


def test_a_retry_of_one_has_all_start_again_together() -> None:
    world = GangWorld().accept().begin()
    world.finish("b", "failed")
    assert [s.reason for s in world.of(model.SendStop)] == ["gang-broken", "gang-broken"]
    assert world.states["a"].placement is PlacementState.RUNNING, "until it is given back its environment owns it"
    world.obey("a")
    world.obey("c")
    assert world.phases() == ["retrying"] * 3
    assert [s.failures for s in world.states.values()] == [0, 1, 0]
    world.tick(2_000)
    world.begin()
    assert world.phases() == ["running"] * 3
    assert {s.round for s in world.states.values()} == {2}
    assert world.opened == 6


def test_a_lost_environment_after_the_grants_brings_all_back() -> None:
    world = GangWorld().accept().begin()
    lost = world.states["a"].environment
    for name in [n for n in world.names if world.states[n].environment == lost]:
        del world.running[name]
        world.tell(name, model.DeclaredDead(lost, "ann"))
        world.stopping.pop(name, None)
    for name in list(world.stopping):
        world.obey(name)
    assert {s.placement for s in world.states.values()} == {PlacementState.IDLE}
    world.come_to_an_end()
    assert world.phases() == ["completed"] * 3


def test_a_place_lost_between_the_last_claim_and_a_grant_stops_who_was_granted() -> None:
    world = GangWorld().accept().place()
    for name in "abc":
        world.claim(name)
    world.start("c")
    assert world.phases() == ["pending", "pending", "running"]
    world.now += 30_000
    world.tell("a", model.OfferTimeout())
    assert [s.placement for s in world.states.values()][:2] == [PlacementState.IDLE] * 2
    assert world.stopping == {"c": "gang-broken"}
    world.come_to_an_end()
    assert world.phases() == ["completed"] * 3


def test_those_that_have_completed_are_not_waited_for() -> None:
    world = GangWorld().accept().begin()
    world.finish("b", "failed")
    world.finish("a")  # before its stop was carried out
    world.obey("c")
    world.tick(2_000)
    world.begin()
    assert world.phases() == ["completed", "running", "running"]


def test_those_that_wait_are_judged_again_without_one_that_has_completed() -> None:
    world = GangWorld().accept().begin()
    world.tell("b", model.Preempted(1, "room"))
    world.obey("b")
    assert world.tickets == {"b": 2}
    world.finish("a")
    assert world.tickets == {"b": 3}
    assert members_left(world.states) == 2


def test_after_a_restore_what_was_found_running_is_left_alone_where_all_was_found() -> None:
    world = GangWorld().accept().begin()
    rewound = {n: s.epoch for n, s in world.states.items()}
    for name in world.names:  # the restored rows are those from before the last claim
        world.states[name] = model_rewound(world.states[name])
    for name in world.names:
        world.tell(name, model.GenerationRaised(2))
    for name in world.names:
        world.tell(name, model.Recovered(an_item(world.states[name].environment, rewound[name])))
    assert world.phases() == ["running"] * 3
    assert all(s.together for s in world.states.values())
    assert world.stopping == {}


def test_after_a_restore_a_member_that_was_found_alone_is_stopped() -> None:
    world = GangWorld().accept().begin()
    rewound = {n: s.epoch for n, s in world.states.items()}
    for name in world.names:
        world.states[name] = model_rewound(world.states[name])
        world.tell(name, model.GenerationRaised(2))
    world.tell("b", model.Recovered())
    world.tell("a", model.Recovered(an_item(world.states["a"].environment, rewound["a"])))
    assert world.stopping == {}, "nothing is judged before all inventories are in"
    world.tell("c", model.Recovered(an_item(world.states["c"].environment, rewound["c"])))
    assert world.stopping == {"a": "gang-broken", "c": "gang-broken"}


def model_rewound(state: model.OperationState) -> model.OperationState:
    return replace(state, placement=PlacementState.OFFERED, phase=Phase.PENDING, together=False, grant_term=0)


def an_item(environment: str, epoch: Any) -> model.InventoryItem:
    return model.InventoryItem(environment=environment, epoch=epoch, term=9, environment_term=9, slot=SlotPhase.RUNNING)


# -- whatever happens --------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**9), members=st.integers(2, 5), apart=st.booleans(), steps=st.integers(0, 120))
@settings(max_examples=300, deadline=None)
def test_whatever_happens_nobody_is_granted_alone_and_it_comes_to_an_end(
    seed: int, members: int, apart: bool, steps: int
) -> None:
    world = GangWorld(members, apart=apart, seed=seed).accept()
    for _ in range(steps):
        before = {n: s.phase for n, s in world.states.items()}
        world.fault()
        for name, phase in before.items():
            after = world.states[name].phase
            assert phase is after or phase not in TERMINAL
    for name in world.names:
        told = world.of(model.Lifecycle, name)
        assert [e.op_seq for e in told] == list(range(2, 2 + len(told)))
        phases = [Phase.ACCEPTED, *(e.phase for e in told)]
        assert all(a is b or may_move(a, b) for a, b in pairwise(phases))
    world.come_to_an_end()
