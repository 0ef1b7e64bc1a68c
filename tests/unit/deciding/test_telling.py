"""Who waits is told anew when the reason changes, and when another limit has come to stand behind it."""

from datetime import timedelta

from landbridge.domain.ledger import Limit, ScopeKind
from landbridge.domain.queues import Wait, WaitReason
from landbridge_ranking.telling import STANDS_FOR, TELL_AGAIN_AFTER, Told, due
from support.deciding import NOW

QUEUE, PROJECT = Limit(ScopeKind.QUEUE, "training", "running"), Limit(ScopeKind.PROJECT, "retail-eu", "running")
LATER = NOW + timedelta(minutes=1)


def waits(limit: Limit | None = QUEUE, reason: WaitReason = WaitReason.CONCURRENCY) -> Wait:
    return Wait(reason, "as it is", limit)


def test_who_was_told_nothing_is_told_at_once() -> None:
    assert due(None, waits(), NOW) == (None, NOW)


def test_another_code_is_told_soon() -> None:
    told = Told(WaitReason.QUOTA, NOW, QUEUE)
    assert due(told, waits(), NOW)[1] == NOW + TELL_AGAIN_AFTER


def test_the_same_limit_is_not_told_again() -> None:
    told = Told(WaitReason.CONCURRENCY, NOW, QUEUE)
    assert due(told, waits(), LATER) == (told, None)


def test_another_limit_under_the_same_code_is_told_once_it_has_stood_for_a_while() -> None:
    told, at = due(Told(WaitReason.CONCURRENCY, NOW, QUEUE), waits(PROJECT), LATER)
    assert at == LATER + STANDS_FOR
    told, at = due(told, waits(PROJECT), LATER + STANDS_FOR)
    assert at is not None
    assert at <= LATER + STANDS_FOR


def test_limits_that_change_with_every_turn_are_never_told() -> None:
    """A million may wait behind them."""
    told: Told | None = Told(WaitReason.CONCURRENCY, NOW, QUEUE)
    for second in range(0, 600, 3):
        now = NOW + timedelta(seconds=second)
        told, at = due(told, waits(QUEUE if second % 2 else PROJECT), now)
        assert at is None or at > now


def test_after_a_restart_the_limit_that_stands_there_counts_as_told() -> None:
    """The table keeps the code only; telling everybody again would be an event for each that waits."""
    told, at = due(Told(WaitReason.CONCURRENCY, NOW), waits(PROJECT), LATER)
    assert (told, at) == (Told(WaitReason.CONCURRENCY, NOW, PROJECT), None)
    assert due(told, waits(QUEUE), LATER)[1] == LATER + STANDS_FOR
