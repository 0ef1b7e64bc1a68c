"""Leases and claims: requests of environments, batched into transactions, answered after the commit."""

from collections.abc import Sequence

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Outbound
from landbridge.domain.ownership import centre_model as model
from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.leases_centre import EnvironmentLease, Hello, LeaseMessage, Renew, claim_refusal
from landbridge.runtime.batcher import RequestBatcher
from landbridge.schema.wire import common_v1 as common
from landbridge.schema.wire import request_v1 as wire
from landbridge.store import Tx
from landbridge_dispatch.coordinator import environments
from landbridge_dispatch.coordinator.core import Core
from landbridge_dispatch.coordinator.measures import claims
from landbridge_dispatch.coordinator.session import Session

_encode = msgspec.json.Encoder().encode
_lease = msgspec.json.Decoder(wire.LeaseRequest)
_claim = msgspec.json.Decoder(wire.ClaimRequest)

# Requests are batched: what Postgres would refuse must not fail the requests of others.
_HIGHEST = 2**53

LeaseAsk = tuple[str, wire.LeaseRequest]
ClaimAsk = tuple[str, wire.ClaimRequest]


class Requests:
    """Answers lease and claim requests. The environment's name comes from the subject."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._leases: RequestBatcher[LeaseAsk, bytes] = RequestBatcher(self._answer_leases)
        self._claims: RequestBatcher[ClaimAsk, bytes] = RequestBatcher(self._answer_claims)

    async def lease(self, subject: str, body: bytes) -> bytes:
        """Answer one lease request."""
        ask = _lease.decode(body)
        texts = (ask.incarnation, ask.executor, *ask.features)
        if not (0 <= ask.term < _HIGHEST and 0 <= ask.n < _HIGHEST) or any("\x00" in text for text in texts):
            raise ValueError(f"lease request of {subject}: term, n or texts out of range")
        return await self._leases.submit((subjects.environment_of(subject), ask))

    async def claim(self, subject: str, body: bytes) -> bytes:
        """Answer one claim request, together with those of other environments that wait."""
        return await self._claims.submit((subjects.environment_of(subject), _claim.decode(body)))

    async def close(self) -> None:
        await self._leases.close()
        await self._claims.close()

    # -- leases -------------------------------------------------------------------------------------------------------

    async def _answer_leases(self, asks: Sequence[LeaseAsk]) -> list[bytes]:
        return await self._core.run(lambda tx: self._lease_work(tx, asks), "lease")

    async def _lease_work(self, tx: Tx, asks: Sequence[LeaseAsk]) -> tuple[list[bytes], list[Outbound]]:
        core = self._core
        events: list[Outbound] = []
        names = {name for name, _ in asks}
        leases = await environments.lock(tx, names)
        if len(leases) < len(names):
            await environments.create(tx, sorted(names.difference(leases)), core.generation)
            leases = await environments.lock(tx, names)
        replies = []
        for name, ask in asks:
            leases[name], reply = await core.tell_lease(tx, leases[name], _lease_message(ask), events)
            assert reply is not None  # every request gets one
            grant = wire.LeaseGrant(
                term=reply.term,
                n=reply.n,
                ttl_ms=0 if reply.refused else core.timing.ttl_ms,
                may_start=reply.may_start,
                want_inventory=reply.want_inventory,
                refused=reply.refused,
                at=core.clock.wall(),
            )
            replies.append(_encode(grant))
        return replies, events

    # -- claims -------------------------------------------------------------------------------------------------------

    async def _answer_claims(self, asks: Sequence[ClaimAsk]) -> list[bytes]:
        replies = await self._core.run(lambda tx: self._claim_work(tx, asks), "claim")
        for reply in replies:
            if reply.granted:
                claims.labels("granted").inc(len(reply.granted))
            for refused in reply.refused:
                claims.labels(refused.reason).inc()
        return [_encode(reply) for reply in replies]

    async def _claim_work(self, tx: Tx, asks: Sequence[ClaimAsk]) -> tuple[list[wire.ClaimReply], list[Outbound]]:
        leases = await environments.share(tx, {name for name, _ in asks})
        refusals = [_refusal(leases.get(name), ask) for name, ask in asks]
        session = self._core.session(tx)
        await session.load(
            item.operation
            for (_, ask), refusal in zip(asks, refusals, strict=True)
            if not refusal
            for item in ask.items
        )
        replies = [
            _refuse_all(ask, refusal) if refusal else self._judge(session, name, ask)
            for (name, ask), refusal in zip(asks, refusals, strict=True)
        ]
        return replies, await session.finish()

    def _judge(self, session: Session, environment: str, ask: wire.ClaimRequest) -> wire.ClaimReply:
        granted: list[common.PlacementRef] = []
        refused: list[wire.ClaimRefusal] = []
        for item in ask.items:
            state = session.state(item.operation)
            if state is None:
                refused.append(wire.ClaimRefusal(operation=item.operation, epoch=item.epoch, reason="unknown"))
                continue
            epoch = Epoch(item.epoch.generation, item.epoch.counter)
            claim = model.Claim(environment, epoch, ask.term, self._stale(environment, state))
            session.decide(item.operation, claim)
            answer = session.answers[item.operation, epoch]
            if isinstance(answer, model.Grant):
                granted.append(item)
            else:
                refused.append(wire.ClaimRefusal(operation=item.operation, epoch=item.epoch, reason=answer.reason))
        return wire.ClaimReply(term=ask.term, granted=tuple(granted), refused=tuple(refused))

    def _stale(self, environment: str, state: model.OperationState) -> str:
        """Say why the verdict behind an offer no longer holds; empty if it does."""
        verdicts = self._core.verdicts
        since = verdicts.holds_since(environment)
        if since is not None and state.placement is model.PlacementState.OFFERED:
            offered_at = state.due_at - self._core.timing.offer_ms
            if offered_at <= since.timestamp() * 1000:
                return "class-paused"  # perhaps another class than the one it needs: it is judged again
        return verdicts.stale(environment, state.contract_version)


def _lease_message(ask: wire.LeaseRequest) -> LeaseMessage:
    if ask.kind is wire.LeaseKind.RENEW:
        return Renew(ask.incarnation, ask.term, ask.n, ask.features)
    return Hello(incarnation=ask.incarnation, term=ask.term, n=ask.n, features=ask.features, executor=ask.executor)


def _refusal(lease: EnvironmentLease | None, ask: wire.ClaimRequest) -> str:
    return "reconciling" if lease is None else claim_refusal(lease, ask.incarnation, ask.term)


def _refuse_all(ask: wire.ClaimRequest, reason: str) -> wire.ClaimReply:
    refused = tuple(wire.ClaimRefusal(operation=item.operation, epoch=item.epoch, reason=reason) for item in ask.items)
    return wire.ClaimReply(term=ask.term, refused=refused)
