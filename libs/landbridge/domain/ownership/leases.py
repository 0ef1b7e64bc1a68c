"""The environment's lease: a chain (term, n) that gives the right to START work; only continuing may outlive it.

Both sides. All times are integer milliseconds on the side's own boot clock (one that runs on in suspend); durations
are compared, clocks of two machines never.
"""

from enum import StrEnum

import msgspec
from msgspec.structs import replace

from landbridge.domain.ownership.policy import DEFAULT_TIMING, Disconnection, OnDisconnect, Timing
from landbridge.domain.ownership.rules import PRODUCTION, Rules

GANG_INCOMPLETE = "gang-incomplete"
"""Reason for which a claim is withheld: not all members of the operation's gang are claimed yet."""
PASSING_REFUSALS = frozenset({"stale-term", "reconciling", "recovering", GANG_INCOMPLETE})
"""Reasons for which a claim is refused only for now: claim again, in the term then held."""
DISPLACED = "displaced"
"""Reason for which a dispatcher must end: another one has taken its place."""

# -- the environment's side -------------------------------------------------------------------------------------------


class HeldLease(msgspec.Struct, frozen=True, kw_only=True):
    """The lease as its environment holds it. (term, n) is durable there; validity is not and dies with the process."""

    term: int = 0
    n: int = 0
    valid_until: int = 0
    """Boot-clock milliseconds; 0 = void."""
    may_start: bool = False
    """False until the centre has reconciled this environment in this term."""

    def is_valid(self, now: int) -> bool:
        """Whether the lease still runs at boot-clock `now`."""
        return now < self.valid_until

    def allows_start(self, now: int) -> bool:
        """Whether new work may begin: valid and reconciled."""
        return self.may_start and now < self.valid_until


NO_LEASE = HeldLease()


def lease_granted(
    held: HeldLease,
    *,
    term: int,
    n: int,
    ttl_ms: int,
    may_start: bool,
    sent_at: int,
    received_at: int,
    rules: Rules = PRODUCTION,
) -> HeldLease:
    """Return the lease after a grant arrived. It runs from the moment the request was SENT.

    A reply that is older than what is held (reordered, repeated) changes nothing.
    """
    if (term, n) < (held.term, held.n):
        return held
    start = sent_at if rules.lease_from_send else received_at
    until = start + ttl_ms
    if (term, n) == (held.term, held.n):
        until = max(until, held.valid_until)
    return HeldLease(term=term, n=n, valid_until=until, may_start=may_start)


def lease_voided(held: HeldLease) -> HeldLease:
    """Take away the right to start (clock jump, long gap of the loop, refusal) until the next grant.

    `valid_until` stays: running work counts its own stop from the real end of the lease, not from a hiccup.
    """
    return replace(held, may_start=False)


class ClockReading(msgspec.Struct, frozen=True):
    """Both clocks of one machine, read together (milliseconds)."""

    boot: int
    wall: int


def clock_jumped(before: ClockReading, now: ClockReading, timing: Timing = DEFAULT_TIMING) -> str:
    """Say why the own lease must be voided between two readings of the loop; empty = it need not be.

    The wall clock decides nothing by itself; it only betrays that one of the two clocks cannot be trusted.
    """
    gap = now.boot - before.boot
    drift = (now.wall - before.wall) - gap
    if gap < 0:
        return f"boot clock went back by {-gap} ms"
    if gap > timing.renewal_ms:
        return f"loop stood still for {gap} ms (at most {timing.renewal_ms} ms)"
    if abs(drift) > timing.clock_jump_ms:
        return f"wall clock jumped by {drift} ms (at most {timing.clock_jump_ms} ms)"
    return ""


class StartVerdict(StrEnum):
    """Answer at the true start."""

    START = "start"
    WAIT = "wait"
    NEVER = "never"


def start_verdict(slot_term: int, lease: HeldLease, now: int, rules: Rules = PRODUCTION) -> StartVerdict:
    """Tell whether work granted in `slot_term` may start now: the check the guardian makes at the true start.

    WAIT: the lease has moved on to a newer term, and a newer grant for this slot may follow (or the lease is not
    valid just now, or none was granted yet to a dispatcher that has just begun); the guardian asks again for a bounded
    time and then exits, not started.
    """
    if not rules.true_start_check:
        return StartVerdict.START
    if 0 < lease.term < slot_term:
        return StartVerdict.NEVER
    if lease.term == slot_term and lease.allows_start(now):
        return StartVerdict.START
    return StartVerdict.WAIT


class SelfStop(msgspec.Struct, frozen=True):
    """When the guardian acts by itself, boot-clock milliseconds."""

    checkpoint_at: int
    """0 = no checkpoint is asked for."""
    terminate_at: int
    kill_at: int


def self_stop_schedule(policy: Disconnection, valid_until: int) -> SelfStop | None:
    """Return when work stops by itself if the lease is not renewed past `valid_until`; None = it runs on."""
    if not policy.self_stopping:
        return None
    terminate_at = valid_until + policy.within_ms
    checkpointing = policy.policy is OnDisconnect.CHECKPOINT_THEN_STOP
    return SelfStop(valid_until if checkpointing else 0, terminate_at, terminate_at + policy.grace_ms)
