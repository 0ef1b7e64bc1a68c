"""What people decide about an environment or a part of it: pause, resume, drain.

It is shown before, and kept with name and reason. A preview runs the same transaction and rolls it back.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from landbridge.bus.envelope import Outbound
from landbridge.domain.candidate import Hold
from landbridge.domain.contract import Contract, OfferedClass, format_quantity
from landbridge.domain.contract_document import parse_contract
from landbridge.domain.documents.nearest import did_you_mean
from landbridge.runtime import logs, orders
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.event_v1 import ControlHold
from landbridge.store import Tx
from landbridge_contract_verifier import holds, messages, repository
from landbridge_contract_verifier.holds import State
from landbridge_contract_verifier.versions import LIVE

if TYPE_CHECKING:
    from landbridge_contract_verifier.service import ContractVerifierService

log = logs.get(__name__)

PAUSE: Final = "pause"
RESUME: Final = "resume"
DRAIN: Final = "drain"
ACTIONS: Final = (PAUSE, RESUME, DRAIN)


class Order(orders.Order, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Why, and which part is meant: a class, or the classes of nodes with a label `key=value`; neither: all of it."""

    capability_class: str = msgspec.field(name="class", default="")
    node_selector: str = ""

    @property
    def part(self) -> str:
        """Name the part as people do; empty for the whole environment."""
        return f"class {self.capability_class}" if self.capability_class else _nodes(self.node_selector)


async def act(
    service: "ContractVerifierService", action: str, name: str, order: Order, by: str, *, dry_run: bool
) -> dict[str, Any]:
    """Do it, and tell what follows; a dry run leaves no trace. Raises ProblemError 404, 409 or 422."""
    _check(action, order)
    outcome: dict[str, Any] = {}
    at = service.clock.wall()

    async def work(tx: Tx) -> Sequence[Outbound]:
        found = await repository.environment(tx, name)  # locks it
        if found is None or found.removed:
            raise ProblemError(404, "Not found", f"no environment {name!r} is registered")
        before = await holds.read(tx, name)
        contracts = [parse_contract(v.document) for v in await repository.versions(tx, name) if v.phase in LIVE]
        if order.part:
            hold = _hold(order, by, at)
            text = await (_pause if action == PAUSE else _resume)(tx, name, hold, before, contracts)
        else:
            text = await _whole(tx, action, name, before, by, order.reason)
        await holds.record(tx, action, name, order.part, by, order.reason, at)
        after = await holds.read(tx, name)
        outcome.clear()
        outcome.update(environment=name, part=order.part, state=state_of(after), text=text)
        return [messages.control(name, after, at)]

    if dry_run:
        await orders.preview(service.database, work)
        return {**outcome, "dryRun": True}
    await service.outbox.commit(work)
    log.warning("environment_controlled", action=action, environment=name, part=order.part, by=by, reason=order.reason)
    return {**outcome, "dryRun": False}


def state_of(state: State) -> str:
    """Say in a few words what holds."""
    whole = "draining" if state.draining else "paused" if state.paused else "open"
    parts = ", ".join(_name(hold) for hold in state.holds)
    return f"{whole}; paused: {parts}" if parts else whole


def _check(action: str, order: Order) -> None:
    if action not in ACTIONS:
        raise ProblemError(404, "Not found", f"expected {', '.join(ACTIONS)}, found {action!r}")
    if order.capability_class and order.node_selector:
        raise ProblemError(422, "Invalid request", "expected a class or a node selector, found both")
    key, _, value = order.node_selector.partition("=")
    if order.node_selector and not (key and value):
        detail = f"nodeSelector: expected KEY=VALUE, found {order.node_selector!r}"
        raise ProblemError(422, "Invalid request", detail)
    if order.part and action == DRAIN:
        raise ProblemError(422, "Invalid request", "only a whole environment can be drained; a part can be paused")


# -- the whole --------------------------------------------------------------------------------------------------------


async def _whole(tx: Tx, action: str, name: str, before: State, by: str, reason: str) -> list[str]:
    paused, draining = action != RESUME, action == DRAIN
    if (paused, draining) == (before.paused, before.draining):
        raise ProblemError(409, "Nothing to do", f"environment {name} is {state_of(before)} already")
    after = State(paused=paused, draining=draining, by=by, reason=reason) if paused else State()
    await holds.set_whole(tx, name, after)
    if action == PAUSE:
        return [f"Nothing new starts in {name} until it is resumed. What runs goes on."]
    if action == DRAIN:
        return [f"Nothing new starts in {name}. What runs goes on to its end, unless you move it: landbridge move."]
    return [f"{name} takes new work again.", *[f"Still paused: {_told(hold)}." for hold in before.holds]]


# -- a part -----------------------------------------------------------------------------------------------------------


async def _pause(tx: Tx, name: str, hold: ControlHold, before: State, contracts: Sequence[Contract]) -> list[str]:
    same = _same(hold, before)
    if same is not None:
        raise ProblemError(409, "Nothing to do", f"in {name}, {_told(same)} already")
    covered = _covered(hold, contracts)
    if not covered:
        raise ProblemError(404, "Not found", _nothing_covered(name, hold, contracts))
    await holds.add(tx, name, hold)
    offers = ", ".join(_offer(offer) for offer in covered)
    text = [f"Nothing new starts on {_name(hold)} of {name} until it is resumed: {offers}. What runs goes on."]
    if any(not offer.is_accelerator for offer in covered):
        text.append("Work on other classes that counts on these processors or this memory waits as well.")
    return text


async def _resume(tx: Tx, name: str, hold: ControlHold, before: State, contracts: Sequence[Contract]) -> list[str]:
    same, part = _same(hold, before), _name(hold)
    if same is None:
        paused = ", ".join(_name(held) for held in before.holds) or "no part of it"
        raise ProblemError(409, "Nothing to do", f"{part} of {name} is not paused; paused is {paused}")
    await holds.take_off(tx, name, same)
    text = [f"{part[0].upper()}{part[1:]} of {name} takes new work again."]
    freed = {offer.name for offer in _covered(same, contracts)}
    others = [held for held in before.holds if held is not same]
    staying = [held for held in others if freed & {offer.name for offer in _covered(held, contracts)}]
    text += [f"Still paused: {_told(held)}." for held in staying]
    if before.paused:
        text.append(f"All of {name} is paused by {before.by or 'somebody'}: {before.reason or 'no reason given'}.")
    return text


def _hold(order: Order, by: str, at: datetime) -> ControlHold:
    return ControlHold(
        capability_class=order.capability_class, node_selector=order.node_selector, by=by, reason=order.reason, at=at
    )


def _same(hold: ControlHold, before: State) -> ControlHold | None:
    return next((held for held in before.holds if _name(held) == _name(hold)), None)


def _covered(hold: ControlHold, contracts: Iterable[Contract]) -> list[OfferedClass]:
    """Return the classes that a hold covers, of all contract versions that may take work, the newest of each."""
    rule = Hold(hold.capability_class, hold.node_selector)
    found = {offer.name: offer for contract in contracts for offer in contract.classes.values() if rule.covers(offer)}
    return [found[name] for name in sorted(found)]


def _nothing_covered(name: str, hold: ControlHold, contracts: Sequence[Contract]) -> str:
    offers = [offer for contract in contracts for offer in contract.classes.values()]
    if hold.capability_class:
        known = sorted({offer.name for offer in offers})
        hint = did_you_mean(hold.capability_class, known) or f"there are {', '.join(known) or 'none'}"
        return f"{name} offers no class {hold.capability_class!r}; {hint}"
    labels = sorted({f"{key}={value}" for offer in offers for key, value in offer.node_selector.items()})
    named = f"names the nodes {', '.join(labels)}" if labels else "names no nodes"
    return (
        f"no class of {name} is on nodes {hold.node_selector}: its contract {named} (classes.<name>.via.nodeSelector)"
    )


def _offer(offer: OfferedClass) -> str:
    if offer.count is not None:
        return f"{offer.name} ({offer.count} devices)"
    amounts = [f"{format_quantity(name, getattr(offer, name))} {name}" for name in ("cpu", "memory")
               if getattr(offer, name)]  # fmt: skip
    return f"{offer.name} ({', '.join(amounts)})" if amounts else offer.name


def _nodes(selector: str) -> str:
    return f"nodes {selector}" if selector else ""


def _name(hold: ControlHold) -> str:
    return f"class {hold.capability_class}" if hold.capability_class else _nodes(hold.node_selector)


def _told(hold: ControlHold) -> str:
    return f"{_name(hold)} is paused by {hold.by}: {hold.reason}"
