"""What an operation declares about disconnection and retries, and the times that ownership is built on.

All durations are milliseconds.
"""

from enum import StrEnum

import msgspec

KILL_MARGIN_MS = 5_000
"""Added to every declared stopping time: what a forced kill may take."""
RETRY_BACKOFF_MAX_MS = 3_600_000
FAILED_START_LIMIT = 3
"""Placements that may fail before their start without costing the operation one of its retries."""


class OnDisconnect(StrEnum):
    """What running work does when its environment loses the centre."""

    CONTINUE = "continue"
    MUST_FINISH = "must-finish"
    CHECKPOINT_THEN_STOP = "checkpoint-then-stop"
    STOP_AFTER_GRACE = "stop-after-grace"


class Disconnection(msgspec.Struct, frozen=True):
    """A declared policy. `within_ms`: time to seal a checkpoint, or to run on; `grace_ms`: between TERM and KILL."""

    policy: OnDisconnect = OnDisconnect.CONTINUE
    within_ms: int = 0
    grace_ms: int = 0

    @property
    def self_stopping(self) -> bool:
        """Whether work ends by itself without the centre, so that time may free it."""
        return self.policy in _SELF_STOPPING

    @property
    def stop_ms(self) -> int:
        """T_stop: from the local end of the lease until the work is surely dead."""
        return self.within_ms + self.grace_ms + KILL_MARGIN_MS


_SELF_STOPPING = frozenset({OnDisconnect.CHECKPOINT_THEN_STOP, OnDisconnect.STOP_AFTER_GRACE})


class Retries(msgspec.Struct, frozen=True):
    """How often a failed attempt is tried again, how long to wait before, and which exit codes end it at once."""

    limit: int = 0
    backoff_ms: int = 60_000
    except_exit_codes: tuple[int, ...] = ()
    max_backoff_ms: int = RETRY_BACKOFF_MAX_MS

    def wait_ms(self, failures: int) -> int:
        """Wait before the next attempt, doubled after each failure up to the longest pause."""
        doubled: int = self.backoff_ms << min(max(failures - 1, 0), 20)
        return min(doubled, max(self.max_backoff_ms, self.backoff_ms))


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """The times of leases and offers. `rho_permille`: clock-rate error; `delta_ms`: longest unnoticed pause."""

    ttl_ms: int = 30_000
    renewal_ms: int = 10_000
    rho_permille: int = 10
    delta_ms: int = 2_000
    offer_ms: int = 30_000
    term_period_ms: int = 3_600_000
    """A connected environment's term advances this often, so that slots of settled work can be removed."""
    clock_jump_ms: int = 1_000


DEFAULT_TIMING = Timing()
