"""The rules of ownership, one switch each.

Production always runs with all of them. Tests switch one off at a time and demand that the simulation goes red:
a rule whose absence nobody notices is either dead or untested.
"""

import msgspec


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """Each field is one safety rule; False removes it."""

    two_phase: bool = True
    """An offer gives no right to start; only a granted claim does."""
    true_start_check: bool = True
    """Lease and term are checked again at the true start, inside the workload's guardian."""
    lease_from_send: bool = True
    """A lease runs from the moment its request was sent, not from the reply's arrival."""
    expiry_waits_drift: bool = True
    """The centre waits for clock drift and the stopping time on top of the time to live."""
    term_bump_on_release: bool = True
    """Releasing by expiry, by declaration or by override raises the environment's term in the same transaction."""
    continue_never_expires: bool = True
    """Work that goes on without the centre is never placed again because time passed."""
    self_stop_verified: bool = True
    """Expiry frees work only where the environment's self-stop was measured."""
    tombstone_before_relinquish: bool = True
    """'Not here', 'failed to start' and 'relinquished' occupy the slot first."""
    keep_slot_until_term_advances: bool = True
    """A slot is removed only when the term that was current at its settlement is over."""
    terminal_needs_current_epoch: bool = True
    """A terminal report counts for the current epoch only."""
    terminal_needs_term: bool = True
    """A terminal report counts for the term of the latest grant only."""
    relinquish_needs_term: bool = True
    """A relinquish counts for the term of the latest grant only."""
    no_grant_after_cancel: bool = True
    """A cancel intent stops grants at once."""
    stop_lower_first: bool = True
    """A higher epoch starts only after the lower one is gone from the same environment."""
    detect_environment_restore: bool = True
    """A broken lease chain means restored or cloned: what is absent then counts as running."""
    no_grant_while_record_lost: bool = True
    """What a restored environment has no record of counts as running: a repeated offer does not start it again."""
    hello_raises_term: bool = True
    """Every hello starts a new term, so that nothing granted before it can still start."""
    new_generation_on_restore: bool = True
    """A restored centre issues epochs and terms above all that it may have issued before."""
    reconcile_after_restore: bool = True
    """A restored centre places nothing before it has seen what the environments hold."""


PRODUCTION = Rules()
