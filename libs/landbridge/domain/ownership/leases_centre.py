"""The centre's side of environment leases: the chain, hello and renewal, the link, and the term.

A link of the chain is (term, n). Each request names the link it asks for, one after the link it holds. A request that
asks for the same link again is a retry after a lost reply and gets the same answer; anything else is a clone or a
rollback. Every hello starts a new term: whatever was granted before it can no longer start.
"""

from enum import StrEnum

import msgspec
from msgspec.structs import replace

from landbridge.domain.ownership.epochs import first_term
from landbridge.domain.ownership.policy import DEFAULT_TIMING, Timing
from landbridge.domain.ownership.rules import PRODUCTION, Rules


class Link(StrEnum):
    """Whether the centre hears an environment (wire values)."""

    NEVER = "never"
    CONNECTED = "connected"
    LOST = "lost"
    RECONCILING = "reconciling"


class EnvironmentLease(msgspec.Struct, frozen=True, kw_only=True):
    """One row per environment. `now` in its handlers is the coordinator's wall clock, for display and term periods."""

    environment: str
    generation: int = 1
    incarnation: str = ""
    displaced: str = ""
    """The incarnation that the present one replaced: it must not come back."""
    term: int = 0
    """The term in force. Above `held_term` if it was raised since the last grant."""
    held_term: int = 0
    held_n: int = 0
    """The last link granted."""
    asked_term: int = 0
    asked_n: int = 0
    """The link that the last granted request asked for: the same again is a retry."""
    previous_term: int = 0
    previous_n: int = 0
    """The link before an unconfirmed hello: a new process may know only this one."""
    grants: int = 0
    """Counts every grant, repeated ones too: a repeated grant runs from when the repeated request was sent."""
    term_since: int = 0
    link: Link = Link.NEVER
    link_since: int = 0
    reconciled_term: int = 0
    """The term whose full inventory was compared; starting is allowed while it is the held one."""
    restored: bool = False
    """The chain was broken at the last hello: the environment has lost or repeated its records."""
    features: tuple[str, ...] = ()
    executor: str = ""
    quarantined: int = 0
    """Slots of unknown work in its inventories that nobody has decided about."""


class LeaseReply(msgspec.Struct, frozen=True):
    """What goes back. `refused`: say-hello, displaced or centre-behind; empty = granted."""

    term: int
    n: int
    may_start: bool
    want_inventory: bool
    refused: str = ""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """First contact of an incarnation, or contact after a loss. (term, n): the link asked for; term 0 = holds none."""

    incarnation: str
    term: int
    n: int
    features: tuple[str, ...] = ()
    executor: str = ""


class Renew(msgspec.Struct, frozen=True):
    """Ask for the next link of the chain. `features`: what the dispatcher understands now; empty: as it said before."""

    incarnation: str
    term: int
    n: int
    features: tuple[str, ...] = ()


class Reconciled(msgspec.Struct, frozen=True):
    """The full inventory of this incarnation in this term has been compared."""

    incarnation: str
    term: int
    quarantined: int = 0


class Silent(msgspec.Struct, frozen=True):
    """Nothing was granted since this grant, for longer than the time to live."""

    grants: int


class RaiseTerm(msgspec.Struct, frozen=True):
    """Void all grants of the present term."""


class BeginGeneration(msgspec.Struct, frozen=True):
    """The centre was restored."""

    generation: int


LeaseMessage = Hello | Renew | Reconciled | Silent | RaiseTerm | BeginGeneration


class LinkChanged(msgspec.Struct, frozen=True):
    """Publish the environment's link."""

    link: Link


class Regrant(msgspec.Struct, frozen=True):
    """Move the grants of this environment's claimed and running placements to this term, in the same transaction."""

    term: int


class LeaseAlarm(msgspec.Struct, frozen=True):
    """Something that a person must see."""

    kind: str
    message: str


LeaseEffect = LinkChanged | Regrant | LeaseAlarm


class LeaseDecision(msgspec.Struct, frozen=True):
    """The next row, what to do, and the reply if the message was a request."""

    state: EnvironmentLease
    effects: tuple[LeaseEffect, ...] = ()
    reply: LeaseReply | None = None


def decide_lease(
    state: EnvironmentLease,
    message: LeaseMessage,
    now: int,
    rules: Rules = PRODUCTION,
    timing: Timing = DEFAULT_TIMING,
) -> LeaseDecision:
    """Decide what one message changes in an environment's row."""
    if isinstance(message, Renew):
        return _renew(state, message, now, timing)
    if isinstance(message, Hello):
        return _hello(state, message, now, rules)
    if isinstance(message, Reconciled):
        return _reconciled(state, message, now)
    if isinstance(message, Silent):
        if message.grants != state.grants or state.link not in (Link.CONNECTED, Link.RECONCILING):
            return LeaseDecision(state)
        return LeaseDecision(replace(state, link=Link.LOST, link_since=now), (LinkChanged(Link.LOST),))
    if isinstance(message, RaiseTerm):
        return LeaseDecision(replace(state, term=max(state.term, state.held_term) + 1))
    return _begin_generation(state, message, now, rules)


def _begin_generation(state: EnvironmentLease, begin: BeginGeneration, now: int, rules: Rules) -> LeaseDecision:
    """Rise above every term that can have been issued; nobody may start before an inventory in it was compared.

    What the restored row says of the chain is out of date, so the next hello cannot be judged by it.
    """
    if begin.generation <= state.generation:
        return LeaseDecision(state)
    if rules.new_generation_on_restore:
        term = max(first_term(begin.generation), state.term + 1)
        state = replace(state, generation=begin.generation, term=term)
    state = replace(state, held_term=0, held_n=0, asked_term=0, asked_n=0, previous_term=0, reconciled_term=0)
    state = replace(state, incarnation="", displaced="", restored=False, link=Link.LOST, link_since=now)
    return LeaseDecision(state, (LinkChanged(Link.LOST),))


def _refuse(state: EnvironmentLease, reason: str, *alarms: LeaseAlarm) -> LeaseDecision:
    return LeaseDecision(state, alarms, LeaseReply(state.term, 0, False, False, reason))


def _grant(state: EnvironmentLease, *effects: LeaseEffect) -> LeaseDecision:
    state = replace(state, grants=state.grants + 1)
    may_start = state.reconciled_term == state.held_term
    reply = LeaseReply(state.held_term, state.held_n, may_start, not may_start)
    return LeaseDecision(state, effects, reply)


def _hello(state: EnvironmentLease, hello: Hello, now: int, rules: Rules) -> LeaseDecision:
    if hello.incarnation == state.displaced:
        text = f"environment {state.environment}: dispatcher {hello.incarnation} was displaced and still speaks"
        return _refuse(state, "displaced", LeaseAlarm("two-dispatchers", text))
    if _granted_later(state, hello):
        text = (
            f"environment {state.environment} holds link {hello.term}/{hello.n - 1}, "
            f"the centre knows only {state.term} and {state.held_term}/{state.held_n}: "
            "the centre was restored; begin a new generation"
        )
        return _refuse(state, "centre-behind", LeaseAlarm("centre-behind", text))
    retry = (hello.incarnation, hello.term, hello.n) == (state.incarnation, state.asked_term, state.asked_n)
    if retry and state.held_n == 1 and state.link is not Link.LOST:
        return _grant(state)
    broken = rules.detect_environment_restore and not chain_intact(state, hello)
    term = max(state.term, first_term(state.generation))
    if state.held_term and term == state.held_term and (rules.hello_raises_term or broken):
        term += 1
    new = hello.incarnation != state.incarnation
    effects: tuple[LeaseEffect, ...] = (LinkChanged(Link.RECONCILING),)
    if broken:
        text = f"environment {state.environment} broke its lease chain: restored from a backup, or copied"
        effects += (LeaseAlarm("environment-restored", text),)
    state = replace(
        state,
        incarnation=hello.incarnation,
        displaced=state.incarnation if new else state.displaced,
        term=term,
        held_term=term,
        held_n=1,
        asked_term=hello.term,
        asked_n=hello.n,
        previous_term=hello.term if not broken else 0,
        previous_n=hello.n - 1,
        term_since=now,
        link=Link.RECONCILING,
        link_since=now,
        reconciled_term=0,
        restored=broken or state.restored,
        features=hello.features,
        executor=hello.executor,
    )
    return _grant(state, *effects)


def _granted_later(state: EnvironmentLease, hello: Hello) -> bool:
    """Whether an environment holds a link that this row has never granted: a later one of its term, or a later term.

    No copy and no rollback of the environment can: links come from the centre only.
    """
    if hello.term == state.held_term:
        return hello.n > state.held_n + 1
    return hello.term > max(state.term, state.held_term, first_term(state.generation) - 1)


def chain_intact(state: EnvironmentLease, hello: Hello) -> bool:
    """Whether a hello continues the chain: one after the last link, or that link's reply was lost on the way."""
    if state.held_term == 0:
        return True
    if hello.term == state.held_term and hello.n in (state.held_n, state.held_n + 1):
        return True
    if (hello.term, hello.n) == (state.asked_term, state.asked_n):
        return True
    unconfirmed = state.held_n == 1 and state.previous_term > 0
    return unconfirmed and (hello.term, hello.n - 1) == (state.previous_term, state.previous_n)


def _renew(state: EnvironmentLease, renew: Renew, now: int, timing: Timing) -> LeaseDecision:
    if renew.incarnation != state.incarnation:
        return _refuse(state, "displaced" if renew.incarnation == state.displaced else "say-hello")
    if state.link is Link.LOST:
        return _refuse(state, "say-hello")
    asked = (renew.term, renew.n)
    if asked == (state.asked_term, state.asked_n):
        return _grant(*_understanding(state, renew))
    if asked != (state.held_term, state.held_n + 1):
        text = (
            f"environment {state.environment} asks for link {renew.term}/{renew.n}, "
            f"expected {state.held_term}/{state.held_n + 1}: a copy or a rollback"
        )
        return _refuse(state, "say-hello", LeaseAlarm("broken-chain", text))
    state, *changed = _understanding(state, renew)
    term = max(state.term, state.held_term)
    settled = state.reconciled_term == state.held_term
    if term == state.held_term and settled and now - state.term_since >= timing.term_period_ms:
        term += 1
    if term == state.held_term:
        return _grant(replace(state, held_n=renew.n, asked_term=renew.term, asked_n=renew.n), *changed)
    state = replace(
        state,
        term=term,
        held_term=term,
        held_n=1,
        asked_term=renew.term,
        asked_n=renew.n,
        previous_term=0,
        term_since=now,
        reconciled_term=term if settled else 0,
    )
    return _grant(state, *changed, *((Regrant(term),) if settled else ()))


def _understanding(state: EnvironmentLease, renew: Renew) -> tuple[EnvironmentLease, *tuple[LinkChanged, ...]]:
    """Take note of what the environment has come, or ceased, to understand: placing reads it from its link."""
    if not renew.features or renew.features == state.features:
        return (state,)
    return replace(state, features=renew.features), LinkChanged(state.link)


def _reconciled(state: EnvironmentLease, reconciled: Reconciled, now: int) -> LeaseDecision:
    if reconciled.incarnation != state.incarnation or reconciled.term != state.held_term:
        return LeaseDecision(state)
    if state.reconciled_term == state.held_term:
        return LeaseDecision(state)
    connected = state.link is Link.RECONCILING
    state = replace(state, reconciled_term=state.held_term, restored=False, quarantined=reconciled.quarantined)
    if not connected:
        return LeaseDecision(state)
    return LeaseDecision(replace(state, link=Link.CONNECTED, link_since=now), (LinkChanged(Link.CONNECTED),))


def claim_refusal(state: EnvironmentLease, incarnation: str, term: int) -> str:
    """Name what forbids every claim of this environment just now; empty = nothing."""
    if incarnation != state.incarnation:
        return "displaced"
    if term != state.held_term or state.term != state.held_term:
        return "stale-term"
    if state.reconciled_term != state.held_term:
        return "reconciling"
    return ""
