"""The door for offers: checked against the site's own policy, let in as far as there is room, refused with a reason."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final

import msgspec

from landbridge.domain.ownership import environment_model as own
from landbridge.domain.ownership.policy import Disconnection
from landbridge.runtime import logs
from landbridge.runtime.telemetry import mint
from landbridge.schema.wire.command_v1 import Offer
from landbridge_dispatch.dispatcher.clocks import boot_ms
from landbridge_dispatch.dispatcher.desk import Desk, Item
from landbridge_dispatch.dispatcher.wire import from_wire
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError, SlotKey, Work
from landbridge_dispatch.specification import Operation, disconnection_of, read_operation

log = logs.get(__name__)

Terms = tuple[int, float | None, str]
"""Contract version, cost per hour, currency."""
STANDS_MS: Final = 60_000
"""How long an offer without a deadline is kept waiting for room."""


class OfferDoor:
    """Turns offers into what the desk decides on. What finds no room waits until it lapses and is ranked again."""

    def __init__(
        self,
        desk: Desk,
        *,
        environment: str,
        centre_now: Callable[[], datetime],
        terms_of: Callable[[Operation], Terms],
        has_room: Callable[[], bool] = lambda: True,
    ) -> None:
        self._desk = desk
        self._environment = environment
        self._centre_now = centre_now
        self._terms_of = terms_of
        self._has_room = has_room
        self._waiting: dict[SlotKey, own.Offer] = {}
        self._let_in = 0
        """Let in and not yet decided on: their room is not counted by the desk yet."""

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def forget(self, key: SlotKey) -> None:
        """Drop an offer that waits for room: it was withdrawn."""
        self._waiting.pop(key, None)

    async def admit(self, offers: Sequence[Offer], traceparent: str = "") -> list[Item]:
        """Return what the desk is to decide on now."""
        items: list[Item] = []
        works: list[tuple[Work, own.Offer]] = []
        for offer in offers:
            epoch = from_wire(offer.epoch)
            held = self._desk.find(offer.operation)
            if held is not None and (epoch < held.highest or held.slot(epoch) is not None):
                # Stale or a duplicate: the desk repeats its answer, whatever the specification says.
                items.append((offer.operation, own.Offer(epoch)))
                continue
            try:
                # A list has the context of one of its causes at most; an operation's own trace is found by its id.
                context = traceparent if traceparent and len(offers) == 1 else mint(offer.operation)
                work = self._read(offer, context)
            except RefusedError as refusal:
                items.append(self._refused(SlotKey(offer.operation, epoch), refusal))
                continue
            works.append((work, own.Offer(epoch, self._lapses(offer), work.policy)))
        refusals = await self._desk.executor.check([work for work, _ in works]) if works else []
        for (work, message), found in zip(works, refusals, strict=True):
            if found is not None:
                items.append(self._refused(work.key, found, work.policy))
            else:
                self._desk.expect(work)
                self._waiting[work.key] = message
        return items + self._take()

    def on_idle(self) -> None:
        """Let in what waited: everything that was let in before has been decided on."""
        self._let_in = 0
        items = self._take()
        if items:
            self._desk.feed(items)

    def _take(self) -> list[Item]:
        """Return as many waiting offers as there is room for."""
        if not self._waiting:
            return []
        # Without room for its records work is not claimed: its offer runs out, and another environment gets it.
        room = self._desk.executor.capacity().free - self._desk.reserved - self._let_in if self._has_room() else 0
        now = boot_ms()
        items: list[Item] = []
        for key in list(self._waiting):
            if now > self._waiting[key].claim_by:
                del self._waiting[key]
                self._desk.unexpect(key)
            elif len(items) < room:
                items.append((key.operation, self._waiting.pop(key)))
        self._let_in += len(items)
        return items

    def _read(self, offer: Offer, traceparent: str) -> Work:
        missing = sorted(set(offer.features) - set(self._desk.executor.features))
        if missing:
            words = f"this dispatcher does not offer {', '.join(missing)}: update it, or place the work elsewhere"
            raise RefusedError(RefusalCode.DISPATCHER_TOO_OLD, words)
        if hashlib.sha256(offer.spec).hexdigest() != offer.spec_sha256:
            raise RefusedError(RefusalCode.UNREADABLE, "the specification does not have the SHA-256 that it came with")
        try:
            view, policy = _read(offer.spec, self._environment, offer.accelerator_class)
            version, cost, currency = self._terms_of(view)
        except (msgspec.MsgspecError, ValueError) as error:
            raise RefusedError(RefusalCode.UNREADABLE, f"the specification cannot be read: {error}") from error
        return Work(
            operation=offer.operation,
            epoch=from_wire(offer.epoch),
            project=offer.project,
            attempt=offer.attempt,
            term=0,
            spec=offer.spec,
            spec_sha256=offer.spec_sha256,
            view=view,
            policy=policy,
            resume_from=offer.resume_from,
            traceparent=traceparent,
            contract_version=version,
            cost_per_hour=cost,
            currency=currency,
        )

    def _lapses(self, offer: Offer) -> int:
        """Return until when the offer stands, on our boot clock."""
        now = boot_ms()
        if offer.claim_by is None:
            return now + STANDS_MS
        return now + round((offer.claim_by - self._centre_now()).total_seconds() * 1000)

    def _refused(self, key: SlotKey, refusal: RefusedError, policy: Disconnection | None = None) -> Item:
        self._desk.explain(key, str(refusal))
        return key.operation, own.Offer(key.epoch, 0, policy or Disconnection(), refuse=refusal.code)


@lru_cache(maxsize=1024)
def _read(spec: bytes, environment: str, accelerator_class: str) -> tuple[Operation, Disconnection]:
    """Read a specification as it is in this environment; applications submit the same one many times."""
    view = read_operation(spec).placed_in(environment).served_by(accelerator_class)
    return view, disconnection_of(view.spec.lifecycle)
