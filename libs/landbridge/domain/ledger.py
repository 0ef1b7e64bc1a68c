"""What admitted operations hold.

A charge is held from admission to release, under three kinds of scopes at once: its environment, its queue with all the
queues that one is part of, its project. Resources are `running` (operations), `cpu` (millicores), `memory` and
`ephemeral-storage` (bytes) and accelerator classes (devices). `limits` says how much may be held.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from landbridge.domain.candidate import Candidate
from landbridge.domain.contract import CPU, MEMORY, RUNNING, SCRATCH
from landbridge.domain.hardware import match_accelerator
from landbridge.domain.requirements import Requirements

Amounts = Mapping[str, int]
NOTHING: Amounts = {}


class ScopeKind(StrEnum):
    """What a limit belongs to."""

    ENVIRONMENT = "environment"
    QUEUE = "queue"
    PROJECT = "project"


class Limit(NamedTuple):
    """One limited resource of one scope: what a blocked operation waits for, and what a release may give back."""

    scope: ScopeKind
    name: str
    resource: str


Scope = tuple[ScopeKind, str]
Chain = Callable[[str], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Charge:
    """What one placement of one operation holds.

    `priority` is that of its class at admission. `borrowed`: its queue went beyond a quota with it. `evictable`: it may
    be asked to leave for other work. `at` is when it was admitted, `ends` the earliest moment at which it is expected
    to end; None: at any time. `component` is what it is an instance of, with the version; empty: of none.
    """

    operation: str
    round: int
    environment: str
    queue: str
    project: str
    amounts: Amounts
    priority: int = 0
    borrowed: bool = False
    evictable: bool = False
    at: datetime | None = None
    ends: datetime | None = None
    component: str = ""


class Usage(Protocol):
    """What is held under a scope, by resource."""

    def used(self, scope: ScopeKind, name: str) -> Amounts: ...


def alone(queue: str) -> tuple[str, ...]:
    """Return the chain of a queue that is part of no other."""
    return (queue,)


def demand(requirements: Requirements, candidate: Candidate) -> dict[str, int]:
    """Return what an operation takes in an environment. Accelerators count as the class that serves them there."""
    amounts = _hosted(requirements)
    need = requirements.accelerator
    if need is not None:
        offer = match_accelerator(need, candidate).offer
        amounts[offer.name if offer is not None else need.name] = need.count * requirements.replicas
    return amounts


def demand_anywhere(requirements: Requirements) -> dict[str, int] | None:
    """Return what an operation takes wherever it runs; None: its accelerators have another name here and there."""
    return None if requirements.accelerator is not None else _hosted(requirements)


def _hosted(requirements: Requirements) -> dict[str, int]:
    amounts = {RUNNING: 1}
    for resource, amount in ((CPU, requirements.cpu), (MEMORY, requirements.memory), (SCRATCH, requirements.scratch)):
        if amount:
            amounts[resource] = amount * requirements.replicas
    return amounts


class Ledger:
    """All charges, summed up by scope; a queue's sum is that of all queues that are part of it.

    Charging and releasing are exact inverses; either done twice counts once.
    """

    def __init__(self, charges: Iterable[Charge] = (), chain: Chain = alone) -> None:
        self._charges: dict[str, Charge] = {}
        self._used: dict[Scope, dict[str, int]] = {}
        self._in: dict[Scope, dict[str, Charge]] = {}
        self.chain = chain
        for charge in charges:
            self.charge(charge)

    def __len__(self) -> int:
        return len(self._charges)

    def follow(self, chain: Chain) -> None:
        """Sum up again by another tree of queues: `chain` names a queue and all that it is part of."""
        charges = list(self._charges.values())
        self._charges, self._used, self._in, self.chain = {}, {}, {}, chain
        for charge in charges:
            self.charge(charge)

    def charges(self) -> list[Charge]:
        """Return all charges in the order of their operations' ids."""
        return [self._charges[operation] for operation in sorted(self._charges)]

    def held_by(self, operation: str) -> Charge | None:
        return self._charges.get(operation)

    def held_in(self, scope: ScopeKind, name: str) -> Iterable[Charge]:
        """Return the charges under a scope; under a queue's, with those of all queues that are part of it."""
        return self._in.get((scope, name), _NO_CHARGES).values()

    def charge(self, charge: Charge) -> None:
        """Add a charge; one that the operation already holds is replaced."""
        previous = self._charges.get(charge.operation)
        if previous is not None:
            self._remove(previous)
        self._charges[charge.operation] = charge
        for scope in scopes(charge, self.chain):
            used = self._used.get(scope)
            if used is None:
                used = self._used[scope] = {}
                self._in[scope] = {}
            add(used, charge.amounts, 1)
            self._in[scope][charge.operation] = charge

    def release(self, operation: str, last_round: int | None = None) -> Charge | None:
        """Give back what an operation holds; with `last_round`, only if it was admitted in that round or before."""
        charge = self._charges.get(operation)
        if charge is None or (last_round is not None and charge.round > last_round):
            return None
        self._remove(charge)
        return charge

    def used(self, scope: ScopeKind, name: str) -> Amounts:
        return self._used.get((scope, name), NOTHING)

    def _remove(self, charge: Charge) -> None:
        del self._charges[charge.operation]
        for scope in scopes(charge, self.chain):
            add(self._used[scope], charge.amounts, -1)
            del self._in[scope][charge.operation]


_NO_CHARGES: Mapping[str, Charge] = {}


def scopes(charge: Charge, chain: Chain) -> list[Scope]:
    """Return every scope that a charge counts in. Without an environment: those of queues and project."""
    found = [(ScopeKind.QUEUE, name) for name in chain(charge.queue)]
    found.append((ScopeKind.PROJECT, charge.project))
    if charge.environment:
        found.append((ScopeKind.ENVIRONMENT, charge.environment))
    return found


def add(sums: dict[str, int], amounts: Amounts, sign: int) -> None:
    """Add amounts to sums, or take them away."""
    for resource, amount in amounts.items():
        sums[resource] = sums.get(resource, 0) + sign * amount


class Shifted:
    """What would be held if some charges were there besides, or were gone. The ledger below stays as it is.

    With `only_more`, what would be gone is still counted: room for one's own is both what is free and what stays free.
    """

    def __init__(self, base: Usage, chain: Chain, *, only_more: bool = False) -> None:
        self._base = base
        self._chain = chain
        self._only_more = only_more
        self._shifts: dict[Scope, dict[str, int]] = {}

    def copy(self) -> "Shifted":
        """Return one of its own with the same shifts."""
        made = Shifted(self._base, self._chain, only_more=self._only_more)
        made._shifts = {scope: dict(shift) for scope, shift in self._shifts.items()}
        return made

    def add(self, charge: Charge, sign: int = 1) -> None:
        for scope in scopes(charge, self._chain):
            add(self._shifts.setdefault(scope, {}), charge.amounts, sign)

    def used(self, scope: ScopeKind, name: str) -> Amounts:
        used, shift = self._base.used(scope, name), self._shifts.get((scope, name))
        if shift is None:
            return used
        if self._only_more:
            return {r: used.get(r, 0) + max(shift.get(r, 0), 0) for r in {*used, *shift}}
        return {r: used.get(r, 0) + shift.get(r, 0) for r in {*used, *shift}}
