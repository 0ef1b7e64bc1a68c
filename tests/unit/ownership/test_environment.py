"""The environment's side: what is done, in which order, and what is never done twice."""

from typing import Any

from landbridge.domain.ownership.environment import decide
from landbridge.domain.ownership.environment_model import (
    AllowStart,
    Checkpointed,
    Claim,
    ClaimRefused,
    DenyStart,
    Effect,
    Exited,
    FoundOccupied,
    Granted,
    HeldOperation,
    LeaseGranted,
    LeaseLost,
    MarkSettled,
    Message,
    Occupied,
    OccupySlot,
    Offer,
    Outcome,
    RecordFinished,
    RegrantSlot,
    RemoveSlot,
    Report,
    ReportState,
    Restarted,
    Settled,
    Slot,
    SlotPhase,
    Started,
    StartFailed,
    StartWork,
    Stop,
    StopWork,
    Tombstone,
    TrueStartCheck,
    Withdraw,
)
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases import HeldLease
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect

ONE, TWO = Epoch(1, 1), Epoch(1, 2)
GOES_ON = Disconnection()


class Environment:
    """One operation in one environment, told one message after the other."""

    def __init__(self, term: int = 3) -> None:
        self.state = HeldOperation(operation="o")
        self.lease = HeldLease(term=term, n=1, valid_until=30_000, may_start=True)
        self.now = 1_000

    def tell(self, message: Message) -> tuple[Effect, ...]:
        decision = decide(self.state, message, self.lease, self.now)
        self.state = decision.state
        return decision.effects

    def kinds(self, message: Message) -> list[str]:
        return [type(effect).__name__ for effect in self.tell(message)]

    def running(self, epoch: Epoch = ONE, policy: Disconnection = GOES_ON) -> "Environment":
        for message in (
            Offer(epoch, policy=policy),
            Granted(epoch, self.lease.term),
            Occupied(epoch, self.lease.term),
            Started(epoch),
        ):
            self.tell(message)
        return self

    def new_term(self) -> None:
        self.lease = HeldLease(term=self.lease.term + 1, n=1, valid_until=90_000, may_start=True)

    def slot(self, epoch: Epoch = ONE) -> Slot:
        found = self.state.slot(epoch)
        assert found is not None
        return found


def test_a_placement_is_claimed_occupied_started_and_reported_in_that_order() -> None:
    environment = Environment()

    assert environment.tell(Offer(ONE)) == (Claim(ONE, 3),)
    assert environment.tell(Granted(ONE, 3)) == (OccupySlot(ONE, 3),)
    assert environment.tell(Occupied(ONE, 3)) == (StartWork(ONE),)
    assert environment.tell(TrueStartCheck(ONE)) == (AllowStart(ONE),)
    assert environment.tell(Started(ONE)) == (Report(ONE, ReportState.STARTED, 3),)
    assert environment.kinds(Exited(ONE, Outcome.COMPLETED)) == ["RecordFinished", "Report"]
    assert environment.tell(Settled(ONE)) == (MarkSettled(ONE, 3),)
    environment.new_term()
    assert environment.tell(LeaseGranted()) == (RemoveSlot(ONE),)
    assert environment.state.forgettable


def test_repeated_messages_repeat_the_answer_and_nothing_else() -> None:
    environment = Environment().running()

    assert environment.tell(Offer(ONE)) == (Report(ONE, ReportState.STARTED, 3),)
    assert environment.tell(Granted(ONE, 3)) == ()
    assert environment.tell(Occupied(ONE, 3)) == ()
    assert environment.tell(Started(ONE)) == ()
    (recorded, report) = environment.tell(Exited(ONE, Outcome.FAILED, "exit-code", {"code": 3}))
    assert isinstance(recorded, RecordFinished)
    assert environment.tell(Exited(ONE, Outcome.COMPLETED)) == ()
    assert environment.tell(Offer(ONE)) == (report,)
    assert environment.tell(Stop(ONE)) == (report,)


def test_commands_below_the_highest_epoch_are_refused_without_effect() -> None:
    environment = Environment()
    environment.tell(Offer(TWO))

    for message in (Offer(ONE), Stop(ONE)):
        (refused,) = environment.tell(message)
        assert refused == Report(ONE, ReportState.REFUSED, 3, reason="stale-epoch")


def test_what_the_dispatcher_cannot_take_is_refused_and_not_claimed() -> None:
    environment = Environment()

    assert environment.tell(Offer(ONE, refuse="dispatcher-too-old")) == (
        Report(ONE, ReportState.REFUSED, 3, reason="dispatcher-too-old"),
    )


def test_a_slot_is_occupied_for_ever_before_anyone_is_told_that_nothing_runs_there() -> None:
    for message in (Stop(ONE), StartFailed(ONE, "image-not-found")):
        assert Environment().kinds(message) == ["Tombstone", "Report"]
    created = Environment()
    created.tell(Offer(ONE))
    created.tell(Granted(ONE, 3))
    created.tell(Occupied(ONE, 3))
    (tombstone, report) = created.tell(StartFailed(ONE, "image-not-found"))

    assert isinstance(tombstone, Tombstone)
    assert isinstance(report, Report)
    assert report.state is ReportState.FAILED_TO_START
    assert created.tell(TrueStartCheck(ONE)) == (DenyStart(ONE, wait=False, reason="slot-tombstone"),)


def test_a_stop_that_overtakes_the_slot_wins() -> None:
    environment = Environment()
    environment.tell(Offer(ONE))
    environment.tell(Granted(ONE, 3))
    environment.tell(Stop(ONE))

    assert environment.tell(Occupied(ONE, 3)) == ()
    assert environment.slot().phase is SlotPhase.TOMBSTONE


def test_a_higher_epoch_waits_until_the_lower_one_is_gone() -> None:
    environment = Environment().running()
    stopping = environment.tell(Offer(TWO))
    assert [type(effect) for effect in stopping] == [StopWork, Claim]
    assert environment.tell(Granted(TWO, 3)) == ()
    assert environment.tell(TrueStartCheck(TWO)) == (DenyStart(TWO, wait=False, reason="no-slot"),)
    effects = environment.tell(Exited(ONE, Outcome.CANCELLED))

    assert [type(effect) for effect in effects] == [Tombstone, Report, OccupySlot]


def test_a_granted_placement_that_nobody_expects_is_given_back() -> None:
    environment = Environment()

    assert environment.kinds(Granted(ONE, 3)) == ["Tombstone", "Report"]
    assert Environment().tell(Granted(ONE, 2)) == ()


def test_a_grant_of_an_older_term_is_asked_for_again() -> None:
    environment = Environment()
    environment.tell(Offer(ONE))
    environment.new_term()

    assert environment.tell(Granted(ONE, 3)) == (Claim(ONE, 4),)


def test_a_created_slot_starts_in_a_newer_term_only_after_a_newer_grant() -> None:
    environment = Environment()
    for message in (Offer(ONE), Granted(ONE, 3), Occupied(ONE, 3)):
        environment.tell(message)
    environment.new_term()
    assert environment.tell(TrueStartCheck(ONE)) == (DenyStart(ONE, wait=True, reason="lease"),)
    assert environment.tell(LeaseGranted()) == (Claim(ONE, 4),)

    assert environment.tell(Granted(ONE, 4)) == (RegrantSlot(ONE, 4), StartWork(ONE))
    assert environment.tell(TrueStartCheck(ONE)) == (AllowStart(ONE),)


def test_a_created_slot_that_is_not_granted_again_is_cleared() -> None:
    environment = Environment()
    for message in (Offer(ONE), Granted(ONE, 3), Occupied(ONE, 3)):
        environment.tell(message)
    environment.new_term()
    assert environment.tell(ClaimRefused(ONE, "reconciling", retry=True)) == ()
    assert environment.tell(ClaimRefused(ONE, "superseded")) == (StopWork(ONE, "not-granted", 0),)

    (_, report) = environment.tell(StartFailed(ONE, "denied", denied=True))
    assert isinstance(report, Report)
    assert report.state is ReportState.RELINQUISHED


def test_a_slot_that_was_taken_by_one_that_then_heard_of_no_lease_is_given_back() -> None:
    """In a cluster the slot is taken before the answer that allows the start arrives; nothing has run."""
    for denied, state in ((True, ReportState.RELINQUISHED), (False, ReportState.FINISHED)):
        environment = Environment()
        for message in (Offer(ONE), Granted(ONE, 3), Occupied(ONE, 3), Started(ONE)):
            environment.tell(message)
        (_, report) = environment.tell(StartFailed(ONE, "no-lease", denied=denied))
        assert isinstance(report, Report)
        assert (report.state, report.reason) == (state, "no-lease")
        assert isinstance(environment.tell(TrueStartCheck(ONE))[0], DenyStart), "the slot stays taken"


def test_a_slot_found_occupied_is_adopted_if_it_is_ours() -> None:
    running = Slot(epoch=ONE, phase=SlotPhase.RUNNING, term=3)
    ours, foreign = Environment(), Environment()
    for environment in (ours, foreign):
        environment.tell(Offer(ONE))
        environment.tell(Granted(ONE, 3))

    assert ours.tell(FoundOccupied(running)) == (Report(ONE, ReportState.STARTED, 3),)
    assert foreign.kinds(FoundOccupied(running, ours=False)) == ["Report", "Alarm"]


def test_an_unsettled_end_is_reported_again_in_every_new_term() -> None:
    environment = Environment().running()
    environment.tell(Exited(ONE, Outcome.COMPLETED))
    assert environment.tell(LeaseGranted()) == ()
    environment.new_term()
    (again,) = environment.tell(LeaseGranted())

    assert again == Report(ONE, ReportState.FINISHED, 4, "completed")
    environment.tell(Settled(ONE))
    assert environment.tell(Settled(ONE)) == ()
    assert environment.slot().settled_term == 4


def test_a_withdrawn_offer_is_forgotten_and_a_withdrawal_never_touches_what_was_granted() -> None:
    environment = Environment()
    environment.tell(Offer(ONE))
    environment.tell(Withdraw(ONE))
    assert environment.state.offered is None
    running = Environment().running()

    assert running.tell(Withdraw(ONE)) == ()


def test_nothing_is_claimed_without_the_right_to_start() -> None:
    environment = Environment()
    environment.lease = HeldLease(term=3, valid_until=30_000, may_start=False)
    assert environment.tell(Offer(ONE, claim_by=20_000)) == ()
    environment.lease = HeldLease(term=3, valid_until=30_000, may_start=True)
    assert environment.tell(LeaseGranted()) == (Claim(ONE, 3),)


def test_an_offer_that_has_lapsed_is_not_claimed_for_the_first_time() -> None:
    environment = Environment()
    environment.lease = HeldLease(term=3, valid_until=30_000, may_start=False)
    environment.tell(Offer(ONE, claim_by=20_000))
    environment.lease = HeldLease(term=3, valid_until=30_000, may_start=True)
    environment.now = 20_001

    assert environment.tell(LeaseGranted()) == ()


def test_what_was_claimed_is_claimed_again_until_it_is_answered_however_late() -> None:
    environment = Environment()
    assert environment.tell(Offer(ONE, claim_by=20_000)) == (Claim(ONE, 3),)
    environment.now = 25_000  # the grant is lost: the centre counts it as ours, and nobody else asks

    assert environment.tell(LeaseGranted()) == (Claim(ONE, 3),)
    assert environment.tell(ClaimRefused(ONE, "superseded")) == ()
    assert environment.tell(LeaseGranted()) == ()


def test_must_finish_work_is_cancelled_by_force_only() -> None:
    environment = Environment().running(policy=Disconnection(OnDisconnect.MUST_FINISH))
    (refused,) = environment.tell(Stop(ONE))

    assert refused == Report(ONE, ReportState.REFUSED, 3, reason="must-finish")
    assert environment.kinds(Stop(ONE, force=True)) == ["StopWork"]


def test_a_cancelled_workload_finishes_as_cancelled_and_any_other_stop_gives_it_back() -> None:
    cancelled, moved, beaten = (Environment().running() for _ in range(3))
    cancelled.tell(Stop(ONE, "cancelled"))
    moved.tell(Stop(ONE, "drained"))
    beaten.tell(Stop(ONE, "cancelled"))

    assert _reported(cancelled.tell(Exited(ONE, Outcome.CANCELLED))) == ("finished", "cancelled")
    assert _reported(moved.tell(Exited(ONE, Outcome.CANCELLED))) == ("relinquished", "")
    assert _reported(beaten.tell(Exited(ONE, Outcome.COMPLETED))) == ("finished", "completed")


def _reported(effects: tuple[Effect, ...]) -> tuple[str, str]:
    (report,) = (effect for effect in effects if isinstance(effect, Report))
    return report.state.value, report.outcome


def test_self_stopping_work_is_stopped_when_its_time_is_over_and_given_back() -> None:
    environment = Environment().running(policy=Disconnection(OnDisconnect.STOP_AFTER_GRACE, 2_000, 3_000))
    environment.now = 31_999
    assert environment.tell(LeaseLost()) == ()
    environment.now = 32_000
    assert environment.tell(LeaseLost()) == (StopWork(ONE, "lease-lost", 3_000),)
    assert environment.tell(LeaseLost()) == ()

    assert _reported(environment.tell(Exited(ONE, Outcome.CANCELLED, self_stopped=True))) == ("relinquished", "")
    going_on = Environment().running()
    going_on.now = 10_000_000
    assert going_on.tell(LeaseLost()) == ()


def test_a_restarted_dispatcher_knows_what_its_slots_say() -> None:
    slots = (
        Slot(epoch=TWO, phase=SlotPhase.RUNNING, term=3),
        Slot(epoch=ONE, phase=SlotPhase.TOMBSTONE, term=2),
    )
    environment = Environment()

    assert environment.tell(Restarted(slots)) == ()
    assert environment.state.highest == TWO
    assert environment.tell(Checkpointed(TWO, "m1")) == (Report(TWO, ReportState.CHECKPOINTED, 3, detail="m1"),)
    lost: Any = Environment()
    assert lost.kinds(Restarted(slots, lost=(TWO,))) == ["RecordFinished", "Report"]
    created = (Slot(epoch=ONE, phase=SlotPhase.CREATED, term=3),)
    assert Environment().kinds(Restarted(created, lost=(ONE,))) == ["Tombstone", "Report"]


def test_work_that_starts_without_a_slot_raises_an_alarm_and_is_stopped() -> None:
    assert Environment().kinds(Started(ONE)) == ["StopWork", "Alarm"]
