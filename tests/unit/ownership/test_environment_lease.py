"""The lease as its environment holds it."""

import pytest

from landbridge.domain.ownership.leases import (
    NO_LEASE,
    ClockReading,
    HeldLease,
    StartVerdict,
    clock_jumped,
    lease_granted,
    lease_voided,
    self_stop_schedule,
    start_verdict,
)
from landbridge.domain.ownership.policy import Disconnection, OnDisconnect


def granted(held: HeldLease = NO_LEASE, *, term: int = 1, n: int = 1, sent_at: int = 1_000) -> HeldLease:
    return lease_granted(
        held, term=term, n=n, ttl_ms=30_000, may_start=True, sent_at=sent_at, received_at=sent_at + 5_000
    )


def test_a_lease_runs_from_when_its_request_was_sent() -> None:
    lease = granted()

    assert lease.is_valid(30_999)
    assert not lease.is_valid(31_000)


def test_a_reply_from_the_past_changes_nothing() -> None:
    newer = granted(n=3, sent_at=20_000)

    assert granted(newer, n=2, sent_at=90_000) == newer


def test_the_same_link_granted_again_never_shortens_the_lease() -> None:
    lease = granted(sent_at=5_000)

    assert granted(lease, sent_at=1_000).valid_until == lease.valid_until
    assert granted(lease, sent_at=8_000).valid_until == 38_000


def test_a_voided_lease_starts_nothing_and_keeps_its_end_for_what_runs() -> None:
    lease = lease_voided(granted())

    assert not lease.allows_start(2_000)
    assert lease.valid_until == 31_000


@pytest.mark.parametrize(
    ("boot", "wall", "said"),
    [
        (1_000, 1_000, ""),
        (10_000, 10_900, ""),
        (10_001, 10_001, "loop stood still"),
        (1_000, 3_600_000, "wall clock jumped"),
        (1_000, -3_600_000, "wall clock jumped"),
        (-5, -5, "went back"),
    ],
)
def test_a_jump_or_a_long_gap_betrays_a_clock(boot: int, wall: int, said: str) -> None:
    found = clock_jumped(ClockReading(0, 0), ClockReading(boot, wall))

    assert said in found
    assert bool(found) is bool(said)


def test_work_starts_only_in_the_term_of_its_grant() -> None:
    lease = granted(term=5)

    assert start_verdict(5, lease, 2_000) is StartVerdict.START
    assert start_verdict(4, lease, 2_000) is StartVerdict.WAIT
    assert start_verdict(6, lease, 2_000) is StartVerdict.NEVER
    assert start_verdict(5, lease, 31_000) is StartVerdict.WAIT


def test_a_dispatcher_that_has_no_lease_yet_lets_work_wait() -> None:
    assert start_verdict(5, NO_LEASE, 2_000) is StartVerdict.WAIT


def test_only_self_stopping_work_has_a_schedule() -> None:
    checkpointing = Disconnection(OnDisconnect.CHECKPOINT_THEN_STOP, 10_000, 5_000)
    graceful = Disconnection(OnDisconnect.STOP_AFTER_GRACE, 2_000, 3_000)
    first, second = self_stop_schedule(checkpointing, 100_000), self_stop_schedule(graceful, 100_000)

    assert self_stop_schedule(Disconnection(), 100_000) is None
    assert self_stop_schedule(Disconnection(OnDisconnect.MUST_FINISH), 100_000) is None
    assert first is not None
    assert (first.checkpoint_at, first.terminate_at, first.kill_at) == (100_000, 110_000, 115_000)
    assert second is not None
    assert (second.checkpoint_at, second.terminate_at, second.kill_at) == (0, 102_000, 105_000)
    assert checkpointing.stop_ms == 10_000 + 5_000 + 5_000
