"""The centre's side: what counts, what is only a record, and that order and repetition do not matter."""

import itertools
from typing import Any

import pytest

from landbridge.domain.lifecycle import Phase, may_move
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.centre import accept, decide
from landbridge.domain.ownership.centre_model import OperationState, PlacementState, Timer
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect, Retries
from landbridge.domain.ownership.reconcile import compare, highest_slots

ONE, TWO = Epoch(1, 1), Epoch(1, 2)
SELF_STOPPING = Disconnection(OnDisconnect.STOP_AFTER_GRACE, 1_000, 1_000)


class Centre:
    """One operation, told one message after the other."""

    def __init__(self, **declared: Any) -> None:
        self.now = 1_000
        self.state: OperationState = accept(model.Accepted(operation="o", project="p", **declared), self.now)
        self.effects: list[model.Effect] = []

    def tell(self, *messages: model.Message) -> "Centre":
        for message in messages:
            decision = decide(self.state, message, self.now)
            self.state = decision.state
            self.effects += decision.effects
        return self

    def events(self) -> list[str]:
        return [effect.event for effect in self.effects if isinstance(effect, model.Lifecycle)]

    def of(self, kind: type[Any]) -> list[Any]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def running(self, environment: str = "a") -> "Centre":
        return self.tell(
            model.Decided(self.state.round, environment, "d"),
            model.Claim(environment, self.state.epoch.following(1), 1),
            started(environment, self.state.epoch.following(1)),
        )


def started(environment: str = "a", epoch: Epoch = ONE, term: int = 1) -> model.ReportStarted:
    return model.ReportStarted(environment=environment, epoch=epoch, term=term, environment_term=term)


def finished(outcome: str = "completed", environment: str = "a", epoch: Epoch = ONE, **more: Any) -> Any:
    values = {"term": 1, "environment_term": 1, **more}
    return model.ReportFinished(environment=environment, epoch=epoch, outcome=outcome, **values)


def relinquished(environment: str = "a", epoch: Epoch = ONE, **more: Any) -> Any:
    values = {"term": 1, "environment_term": 1, **more}
    return model.ReportRelinquished(environment=environment, epoch=epoch, **values)


def test_one_life_is_told_in_order_without_gaps() -> None:
    centre = Centre().running().tell(finished())
    events = centre.of(model.Lifecycle)

    assert centre.events() == ["pending", "running", "completed"]
    assert [event.op_seq for event in events] == [2, 3, 4]
    assert centre.state.placement is PlacementState.DONE
    assert centre.of(model.SendSettle) == [model.SendSettle("a", ONE)]


def test_work_that_ends_before_it_was_seen_running_is_told_as_having_run() -> None:
    centre = Centre().tell(model.Decided(1, "a"), model.Claim("a", ONE, 1), finished())

    assert centre.events() == ["pending", "running", "completed"]
    assert centre.state.attempts == 1


def test_all_orders_and_repetitions_of_an_attempts_reports_end_alike() -> None:
    reports = [
        started(),
        finished(),
        finished(),
        relinquished("b", ONE),
        model.ReportCheckpointed(environment="a", epoch=ONE, term=1, environment_term=1, checkpoint="m"),
        model.ReportRefused(environment="a", epoch=ONE, term=1, environment_term=1, reason="stale-epoch"),
    ]
    ends = set()
    for order in itertools.permutations(reports):
        centre = Centre().tell(model.Decided(1, "a"), model.Claim("a", ONE, 1)).tell(*order)
        terminal = [event for event in centre.events() if event in {"completed", "failed", "cancelled"}]
        assert terminal == ["completed"]
        ends.add((centre.state.phase, centre.state.placement, centre.state.epoch, centre.state.attempts))

    assert ends == {(Phase.COMPLETED, PlacementState.DONE, ONE, 1)}


def test_refusing_an_offer_that_was_taken_back_is_no_alarm_and_anything_else_about_it_is() -> None:
    centre = Centre().tell(model.Decided(1, "a"), model.LinkLost("a"))
    centre.tell(model.Decided(centre.state.round, "b"), model.Claim("b", TWO, 1))
    late = model.ReportRefused(environment="a", epoch=ONE, term=1, environment_term=1, reason="stale-epoch")

    assert centre.tell(late).of(model.Alarm) == []
    assert [alarm.kind for alarm in centre.tell(finished()).of(model.Alarm)] == ["foreign-report"]
    assert (centre.state.environment, centre.state.placement) == ("b", PlacementState.CLAIMED)


@pytest.mark.parametrize(
    ("exit_code", "reason", "phase"),
    [
        (1, "exit-code", Phase.RETRYING),
        (2, "exit-code", Phase.FAILED),
        (None, "signal", Phase.RETRYING),
        (0, "acceptance-not-met", Phase.FAILED),
    ],
)
def test_a_failure_is_tried_again_as_declared(exit_code: int | None, reason: str, phase: Phase) -> None:
    centre = Centre(retries=Retries(1, 5_000, (2,))).running()
    centre.tell(finished("failed", exit_code=exit_code, reason=reason))

    assert centre.state.phase is phase
    if phase is Phase.RETRYING:
        assert (centre.state.timer, centre.state.due_at) == (Timer.RETRY, 6_000)
        assert centre.of(model.Free) == [model.Free(1, "a")]
        assert centre.of(model.Requeue) == []
        centre.now = 6_000
        centre.tell(model.RetryDue(), model.RetryDue())
        assert [requeue.round for requeue in centre.of(model.Requeue)] == [2]


def test_retries_are_counted_and_their_pauses_grow() -> None:
    retries = Retries(3, 1_000, (), 3_000)
    assert [retries.wait_ms(count) for count in (1, 2, 3, 9)] == [1_000, 2_000, 3_000, 3_000]
    centre = Centre(retries=Retries(1, 0)).running()
    centre.tell(finished("failed")).running("b").tell(finished("failed", "b", TWO))

    assert centre.state.phase is Phase.FAILED
    assert centre.state.attempts == 2


def test_an_interruption_by_the_environment_costs_no_retry() -> None:
    centre = Centre().running().tell(relinquished(checkpoint="m7", reason="drained"))
    centre.running("b")

    assert centre.state.phase is Phase.RUNNING
    assert centre.of(model.SendOffer)[-1].resume_from == "m7"
    assert centre.state.failures == 0


def test_final_reports_count_for_the_term_of_the_latest_grant_only() -> None:
    centre = Centre().tell(model.Decided(1, "a"), model.Claim("a", ONE, 1), model.Claim("a", ONE, 3))
    centre.tell(finished(term=1, environment_term=3), relinquished(term=2, environment_term=3))
    assert centre.state.placement is PlacementState.CLAIMED
    centre.tell(finished(term=4, environment_term=3))
    assert centre.state.placement is PlacementState.CLAIMED

    assert centre.tell(finished(term=4, environment_term=4)).state.phase is Phase.COMPLETED


def test_work_thought_lost_that_had_finished_stays_finished() -> None:
    centre = Centre(policy=SELF_STOPPING).running()
    centre.tell(_expired(self_stop_verified=True))
    assert centre.state.phase is Phase.RETRYING
    centre.tell(finished())

    assert centre.events()[-1] == "completed"
    centre.tell(model.Decided(2, "b"))
    assert centre.of(model.SendOffer)[1:] == []
    assert centre.of(model.Free)[-1] == model.Free(2, "b")


def _expired(**more: Any) -> model.EnvironmentExpired:
    values = {"environment": "a", "silent_ms": 50_000, "wait_ms": 40_000, **more}
    return model.EnvironmentExpired(**values)


@pytest.mark.parametrize(
    ("policy", "more"),
    [
        (Disconnection(), {"self_stop_verified": True}),
        (Disconnection(OnDisconnect.MUST_FINISH), {"self_stop_verified": True}),
        (SELF_STOPPING, {"self_stop_verified": False}),
        (SELF_STOPPING, {"self_stop_verified": True, "held": True}),
        (SELF_STOPPING, {"self_stop_verified": True, "silent_ms": 39_999}),
        (SELF_STOPPING, {"self_stop_verified": True, "environment": "b"}),
    ],
)
def test_silence_frees_only_what_surely_stopped(policy: Disconnection, more: dict[str, Any]) -> None:
    centre = Centre(policy=policy).running()

    assert centre.tell(_expired(**more)).state.placement is PlacementState.RUNNING


def test_a_release_by_silence_raises_the_term_and_orders_the_stop() -> None:
    centre = Centre(policy=SELF_STOPPING).running().tell(_expired(self_stop_verified=True))

    assert centre.of(model.RaiseTerm) == [model.RaiseTerm("a")]
    assert [stop.epoch for stop in centre.of(model.SendStop)] == [ONE]
    assert centre.of(model.Requeue)[-1].failed_over


def test_a_cancel_is_final_at_once_only_where_nothing_can_run() -> None:
    cancel = model.CancelRequested("ann", "no longer needed")
    idle = Centre().tell(cancel)
    offered = Centre().tell(model.Decided(1, "a"), cancel)
    owned = Centre().tell(model.Decided(1, "a"), model.Claim("a", ONE, 1), cancel, cancel)

    assert idle.state.phase is Phase.CANCELLED
    assert offered.state.phase is Phase.CANCELLED
    assert offered.of(model.SendWithdraw) == [model.SendWithdraw("a", ONE)]
    assert owned.state.phase is Phase.PENDING
    assert owned.events() == ["pending", "condition"]
    owned.tell(model.Claim("a", ONE, 1))
    assert owned.of(model.RefuseClaim)[-1].reason == "cancelled"
    assert owned.tell(relinquished()).state.phase is Phase.CANCELLED


def test_a_completion_beats_a_cancel_and_a_failure_with_retries_left_does_not_go_on() -> None:
    cancel = model.CancelRequested("ann")
    won = Centre().running().tell(cancel, finished())
    failed = Centre(retries=Retries(2, 0)).running().tell(cancel, finished("failed"))

    assert (won.state.phase, won.of(model.Lifecycle)[-1].reason) == (Phase.COMPLETED, "cancel-lost")
    assert failed.state.phase is Phase.CANCELLED


def test_an_offer_is_taken_back_without_anybodys_consent() -> None:
    centre = Centre().tell(model.Decided(1, "a"))
    centre.tell(model.OfferTimeout())
    assert centre.state.placement is PlacementState.OFFERED
    centre.now += 30_000
    centre.tell(model.OfferTimeout(), model.OfferTimeout())

    assert centre.events() == ["pending", "queued"]
    assert centre.of(model.SendWithdraw) == [model.SendWithdraw("a", ONE)]
    centre.tell(model.Claim("a", ONE, 1))
    assert centre.of(model.RefuseClaim)[-1].reason == "withdrawn"


def test_placements_that_keep_coming_back_are_slowed_down() -> None:
    centre = Centre()
    waits = []
    for round_ in range(1, 6):
        centre.tell(model.Decided(round_, "a"))
        centre.tell(
            model.ReportRefused(
                environment="a", epoch=centre.state.epoch, term=1, environment_term=1, reason="no-capacity"
            )
        )
        waits.append(centre.state.due_at - centre.now if centre.state.timer is Timer.RETRY else 0)
        centre.now = max(centre.now, centre.state.due_at if centre.state.timer is Timer.RETRY else 0)
        centre.tell(model.RetryDue())

    assert waits == [0, 1_000, 2_000, 4_000, 8_000]


def test_reports_about_what_the_sender_never_held_change_nothing() -> None:
    centre = Centre().running()
    before = centre.state
    centre.tell(finished(environment="b"), finished(epoch=TWO), relinquished("b"))

    assert centre.state == before
    assert [alarm.kind for alarm in centre.of(model.Alarm)] == ["foreign-report", "epoch-ahead", "foreign-report"]


def test_late_reports_of_a_superseded_epoch_are_records() -> None:
    centre = Centre(retries=Retries(1, 0)).running().tell(finished("failed")).running("b")
    before = centre.state
    centre.tell(started(), finished())

    told = model.Former(ONE, "a", 1, model.KnownEnd.COMPLETED)
    assert centre.state == _with(before, op_seq=before.op_seq + 2, former=(told,))
    assert [event.verdict for event in centre.of(model.Lifecycle)[-2:]] == [model.Verdict.SUPERSEDED] * 2
    assert centre.of(model.SendSettle)[-1] == model.SendSettle("a", ONE)


def test_a_late_report_is_told_once_and_as_one_of_its_own_attempt() -> None:
    """An environment that returns tells the same end in its buffered reports, its inventory and its new term."""
    centre = Centre(policy=SELF_STOPPING).running().tell(_expired(self_stop_verified=True))
    centre.running("b")
    before = centre.state
    assert (before.epoch, before.attempts) == (TWO, 2)

    last = model.InventoryItem(environment="a", epoch=ONE, slot=SlotPhase.TOMBSTONE, term=1, environment_term=2)
    for report in (relinquished(), last, relinquished(environment_term=2, term=2), finished("cancelled")):
        centre.tell(report)

    [told] = [event for event in centre.of(model.Lifecycle) if event.verdict is model.Verdict.SUPERSEDED]
    assert (told.environment, told.epoch, told.attempt, told.decision_id) == ("a", ONE, 1, "")
    assert (told.op_seq, told.phase) == (before.op_seq + 1, Phase.RUNNING)
    assert centre.of(model.SendSettle) == [model.SendSettle("a", ONE)] * 4
    kept = (before.placement, before.epoch, before.environment, before.attempts)
    assert kept == (centre.state.placement, centre.state.epoch, centre.state.environment, centre.state.attempts)


def test_an_end_that_was_judged_is_no_late_report() -> None:
    centre = Centre(retries=Retries(1, 0)).running().tell(finished("failed", report=b"{}")).running("b")
    before = centre.state

    centre.tell(finished("failed", report=b"{}"), relinquished())

    assert centre.state == before
    assert centre.of(model.SendSettle)[-1] == model.SendSettle("a", ONE)


def _with(state: OperationState, **more: Any) -> OperationState:
    from msgspec.structs import replace

    return replace(state, **more)


def test_every_move_of_a_phase_is_declared() -> None:
    assert may_move(Phase.ACCEPTED, Phase.PENDING)
    assert not any(may_move(Phase.COMPLETED, phase) for phase in Phase)
    assert not may_move(Phase.ACCEPTED, Phase.RUNNING)


def _item(slot: SlotPhase, epoch: Epoch = ONE, environment: str = "a", **more: Any) -> model.InventoryItem:
    values = {"term": 2, "environment_term": 2, **more}
    return model.InventoryItem(environment=environment, epoch=epoch, slot=slot, **values)


def test_an_inventory_adopts_ends_stops_and_asks() -> None:
    states = {
        "adopted": Centre().running().state,
        "ended": Centre().running().state,
        "moved": Centre(retries=Retries(1, 0)).running().tell(finished("failed")).running("b").state,
        "absent": Centre().running().state,
    }
    states = {name: _with(state, operation=name) for name, state in states.items()}
    items = [
        ("adopted", _item(SlotPhase.RUNNING)),
        ("ended", _item(SlotPhase.FINISHED, outcome="completed")),
        ("moved", _item(SlotPhase.RUNNING)),
        ("stranger", _item(SlotPhase.RUNNING)),
    ]
    result = compare("a", 2, False, states, items)
    after = {}
    for operation, message in result.messages:
        after[operation] = decide(states[operation], message, 0)

    assert result.quarantined == (("stranger", ONE),)
    assert after["adopted"].state.grant_term == 2
    assert after["ended"].state.phase is Phase.COMPLETED
    assert [type(effect) for effect in after["moved"].effects] == [model.SendStop]
    assert after["absent"].state.placement is PlacementState.RUNNING
    assert [effect.reason for effect in after["absent"].effects if isinstance(effect, model.SendStop)] == ["missing"]


def test_absent_work_of_a_restored_environment_that_goes_on_alone_is_left_to_a_person() -> None:
    centre = Centre().running().tell(model.InventoryMissing("a", 2, restored=True))

    assert centre.of(model.SendStop) == []
    assert [alarm.kind for alarm in centre.of(model.Alarm)] == ["needs-operator"]
    centre.tell(started(), model.InventoryMissing("a", 3))
    assert centre.of(model.SendStop) == []


def test_what_a_restored_environment_has_no_record_of_is_not_granted_again_to_a_repeated_offer() -> None:
    centre = Centre().running().tell(model.InventoryMissing("a", 2, restored=True), model.Claim("a", ONE, 2))

    assert centre.of(model.Grant) == [model.Grant(ONE, 1)]
    assert [(refused.reason, refused.retry) for refused in centre.of(model.RefuseClaim)] == [("record-lost", False)]

    centre.tell(_item(SlotPhase.RUNNING, term=3, environment_term=3))
    centre.tell(model.Claim("a", ONE, 3))
    assert centre.of(model.Grant) == [model.Grant(ONE, 1), model.Grant(ONE, 3)]


def test_after_a_restore_of_the_centre_the_highest_slot_decides() -> None:
    ends: dict[SlotPhase | None, Centre] = {}
    for slot in (SlotPhase.FINISHED, SlotPhase.RUNNING, SlotPhase.TOMBSTONE, None):
        centre = Centre().tell(model.GenerationRaised(2), model.Decided(1, "b"))
        assert centre.state.placement is PlacementState.RECOVERING
        items = [("o", _item(SlotPhase.TOMBSTONE)), *([("o", _item(slot, TWO, outcome="completed"))] if slot else [])]
        best = highest_slots(items if slot else [])
        ends[slot] = centre.tell(model.Recovered(best.get("o")))

    assert ends[SlotPhase.FINISHED].state.phase is Phase.COMPLETED
    assert (ends[SlotPhase.RUNNING].state.phase, ends[SlotPhase.RUNNING].state.epoch) == (Phase.RUNNING, TWO)
    for slot in (SlotPhase.TOMBSTONE, None):
        anew = ends[slot].tell(model.Decided(2, "b"))
        assert anew.state.epoch > TWO
        assert anew.state.epoch.generation == 2


def test_a_move_that_is_wished_again_begins_no_further_round() -> None:
    centre = Centre().tell(model.MoveRequested("b", "someone"))
    once = centre.state
    centre.tell(model.MoveRequested("b", "someone"))

    assert (centre.state.round, centre.state.pinned) == (once.round, "b") == (2, "b")
    assert [requeue.only for requeue in centre.of(model.Requeue)] == ["b"]


def test_what_is_offered_where_a_person_wants_it_stays_offered() -> None:
    centre = Centre().tell(model.Decided(1, "b"), model.MoveRequested("b", "someone"))

    assert (centre.state.placement, centre.state.pinned) == (PlacementState.OFFERED, "b")
    assert centre.of(model.SendWithdraw) == []
    assert centre.tell(model.MoveRequested("a", "someone")).of(model.SendWithdraw) == [model.SendWithdraw("b", ONE)]


def test_a_found_slot_that_a_later_epoch_supersedes_is_not_adopted() -> None:
    back = Centre().tell(model.Decided(1, "a"), model.OfferTimeout())
    back.now += 60_000
    back.tell(model.OfferTimeout())
    before = back.state
    back.tell(model.AdoptFound(_item(SlotPhase.RUNNING), "someone"))
    assert back.state == before

    back.tell(model.AdoptFound(_item(SlotPhase.RUNNING, TWO), "someone"))
    assert (back.state.placement, back.state.epoch) == (PlacementState.RUNNING, TWO)


def test_what_an_inventory_lacks_is_not_granted_again_while_its_slot_is_being_occupied() -> None:
    centre = Centre().running().tell(model.InventoryMissing("a", 2), model.Claim("a", ONE, 2))
    assert [refused.reason for refused in centre.of(model.RefuseClaim)] == ["record-lost"]

    centre.tell(relinquished(term=2, environment_term=2, reason="not-here"))
    assert (centre.state.placement, centre.state.phase) == (PlacementState.DONE, Phase.FAILED)


def test_what_an_inventory_lacked_and_a_later_one_shows_is_adopted() -> None:
    centre = Centre().running().tell(model.InventoryMissing("a", 2), _item(SlotPhase.RUNNING, term=3))

    assert (centre.state.placement, centre.state.stopping) == (PlacementState.RUNNING, "")
    assert [stop.reason for stop in centre.of(model.SendStop)] == ["missing"]
