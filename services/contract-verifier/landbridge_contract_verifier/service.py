"""The contract-verifier: owns contracts, probe plans, evidence, and who may connect to the broker."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Final

import msgspec
from fastapi import FastAPI

from landbridge.bus import accounts, streams, subjects
from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.bus.errors import BusError
from landbridge.runtime import logs, republish
from landbridge.runtime.service import Service, Subscription
from landbridge.schema.wire.event_v1 import CatalogueEntry, EnvironmentLink
from landbridge.store import StoreError, Tx
from landbridge_contract_verifier import broker, environments, messages, repository
from landbridge_contract_verifier.api import add_routes
from landbridge_contract_verifier.broker import BrokerWatch
from landbridge_contract_verifier.environments import Rules
from landbridge_contract_verifier.handlers import EvidenceHandler, IntentHandler
from landbridge_contract_verifier.provisioning import Provisioner
from landbridge_contract_verifier.settings import VerifierSettings

log = logs.get(__name__)

_LINK: Final = msgspec.json.Decoder(EnvironmentLink)
_ENTRY: Final = msgspec.json.Decoder(CatalogueEntry)
_LONGEST_PAUSE_S: Final = 1.0
_RETRY_S: Final = 1.0

SUBSCRIPTIONS: Final = (
    Subscription(
        stream=streams.INTENTS,
        durable="contract-verifier",
        filters=tuple(subjects.intent(kind, "*") for kind in ("contract", "control", "remove")),
        types=("ContractSubmitted", "ControlIntent", "Removal"),
        handler=lambda service: service.intents,
        batch=50,
    ),
    Subscription(
        stream=streams.REPORTS,
        durable="contract-verifier",
        filters=(subjects.report("*", "evidence"),),
        types=("EvidenceReports",),
        handler=lambda service: service.evidence,
        batch=200,
    ),
)


class ContractVerifierService(Service):
    """One process; replicas share the durables and the tables."""

    name = "contract-verifier"
    subscriptions = SUBSCRIPTIONS

    provisioner: Provisioner

    def __init__(self, settings: VerifierSettings) -> None:
        super().__init__(settings)
        self.verifier_settings = settings
        self.rules = Rules(
            settings.periods, timedelta(seconds=settings.canary_seconds), timedelta(seconds=settings.retiring_seconds)
        )
        self.projects: list[str] = []
        self._due = asyncio.Event()
        self._links: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.intents = IntentHandler(self.rules, self.clock, self._wake)
        self.evidence = EvidenceHandler(self.rules, self.clock, self._due.set)

    def routes(self, app: FastAPI) -> None:
        add_routes(app, self)
        republish.add_route(app, self)

    def _wake(self) -> None:
        self._due.set()
        self.provisioner.wake()

    async def prepare(self) -> None:
        keys = accounts.load_keys(self.verifier_settings.keys_dir) if self.verifier_settings.keys_dir else None
        issuer = None
        if keys is not None:
            system = await self._issuer_bus(keys)
            issuer = accounts.Issuer(system)
            self._watch_broker(system)
        self.provisioner = Provisioner(self.database, self.bus, keys, issuer)
        self.bus.on_reconnect(self.provisioner.look_at_everything)
        self.spawn("provisioner", self.provisioner.run())
        self.follow_access()
        self.follow("projects", streams.CATALOGUE, subjects.catalogue("project", "*"), self._on_project)
        self.follow("links", streams.ENVIRONMENTS, subjects.environment("link", "*"), self._on_link)
        self.spawn("plans", self._send_plans())
        self.spawn("due", self._do_what_is_due())
        await self._replan()

    async def closing(self) -> None:
        if self._issuer is not None:
            await self._issuer.drain()

    def _watch_broker(self, system: Bus) -> None:
        watch = BrokerWatch(system)
        system.on_reconnect(watch.look_again)
        self.health.add(broker.CHECK, lambda: watch.problem, critical=False)
        self.spawn("broker", self._tell_of_broker(watch))

    async def _tell_of_broker(self, watch: BrokerWatch) -> None:
        async with watch.answering(self.bus):
            await watch.run()

    _issuer: Bus | None = None

    async def _issuer_bus(self, keys: accounts.Keys) -> Bus:
        """Connect to the system account; its credentials are made here and never leave the process."""
        settings = BusSettings(url=self.settings.nats_url, creds_text=accounts.issuer_user(keys).credentials)
        while True:
            try:
                self._issuer = await connect(settings, name=accounts.ISSUER)
            except BusError as error:
                log.warning("waiting for the system account", error=str(error))
                await asyncio.sleep(_RETRY_S)
            else:
                return self._issuer

    # -- what others say ------------------------------------------------------------------------------------------

    def _on_project(self, message: Inbound) -> None:
        entry = _ENTRY.decode(message.body)
        known = {*self.projects, entry.name} - ({entry.name} if entry.deleted else set())
        self.projects = sorted(known)

    def _on_link(self, message: Inbound) -> None:
        link = _LINK.decode(message.body)
        if link.incarnation:
            self._links.put_nowait((subjects.environment_of(message.subject), link.incarnation))

    # -- background -----------------------------------------------------------------------------------------------

    async def _replan(self) -> None:
        """Bring all plans to the rules and periods of this release."""
        names = await self.database.fetch("select name from environment where not removed order by name")
        for row in names:
            await self.outbox.commit(lambda tx, name=row["name"]: self._replan_one(tx, name))  # type: ignore[misc]

    async def _replan_one(self, tx: Tx, name: str) -> list[Outbound]:
        await repository.environment(tx, name)  # locks it
        return await environments.replan(tx, name, self.rules.periods)

    async def _send_plans(self) -> None:
        """Send the plan to every new incarnation of a dispatcher: it may have lost the one that it had."""
        while True:
            name, incarnation = await self._links.get()
            try:
                await self.outbox.commit(lambda tx, n=name, i=incarnation: self._plan_for(tx, n, i))  # type: ignore[misc]
            except StoreError as error:
                log.warning("a plan could not be sent yet", environment=name, error=str(error))
                await asyncio.sleep(_RETRY_S)
                self._links.put_nowait((name, incarnation))

    async def _plan_for(self, tx: Tx, name: str, incarnation: str) -> list[Outbound]:
        if not await repository.claim_plan(tx, name, incarnation):
            return []
        command = messages.probe_plan(name, await repository.versions(tx, name))
        return [command] if command is not None else []

    async def _do_what_is_due(self) -> None:
        """Publish evidence (at most once a second an environment) and change phases when their time has come."""
        while True:
            self._due.clear()
            try:
                while await self._do_one():
                    pass
                pause_s = await self._pause_s()
            except StoreError as error:
                log.warning("what is due has to wait", error=str(error))
                pause_s = _RETRY_S
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), pause_s)

    async def _do_one(self) -> bool:
        found: list[str] = []

        async def work(tx: Tx) -> list[Outbound]:
            now = self.clock.wall()
            name = await repository.next_due(tx, now)
            found[:] = [name] if name else []
            return await environments.due(tx, name, now, self.rules) if name else []

        await self.outbox.commit(work)
        return bool(found)

    async def _pause_s(self) -> float:
        async with self.database.transaction(readonly=True) as tx:
            due = await repository.earliest_due(tx)
        if due is None:
            return _LONGEST_PAUSE_S
        return min(max((due - self.clock.wall()).total_seconds(), 0.005), _LONGEST_PAUSE_S)
