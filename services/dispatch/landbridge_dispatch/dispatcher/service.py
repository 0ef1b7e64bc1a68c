"""The dispatcher's parts and their life: what needs no centre comes first, and ends last.

Start: settings and bindings → one dispatcher per directory → HTTP → executor and what it holds → site socket and
probes → NATS, as soon as it is there → lease, commands, reports. Drain, on SIGTERM: not ready → no new commands →
what is in hand is carried out → reports are stored, if the centre is there → close. Workloads go on.
"""

import asyncio
import contextlib
import os
import secrets
import signal
from typing import Any

import msgspec

from landbridge.bus import site_streams, streams, subjects
from landbridge.bus.connection import Bus, BusSettings
from landbridge.bus.consume import Consumer
from landbridge.domain.ownership import environment_model as own
from landbridge.domain.ownership.leases import HeldLease
from landbridge.runtime import logs
from landbridge.runtime.health import Health, StallDetector
from landbridge.runtime.http import HttpServer, create_app
from landbridge.runtime.runner import settle_memory
from landbridge.runtime.starting import reach_broker
from landbridge.runtime.telemetry import Telemetry
from landbridge.schema.wire.command_v1 import ProbePlan
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.dispatcher import health as gauges
from landbridge_dispatch.dispatcher.alone import only_one
from landbridge_dispatch.dispatcher.claims import Claimer
from landbridge_dispatch.dispatcher.clocks import boot_ms
from landbridge_dispatch.dispatcher.commands import Commands
from landbridge_dispatch.dispatcher.contracts import ContractInForce
from landbridge_dispatch.dispatcher.desk import Desk
from landbridge_dispatch.dispatcher.lease import LeaseKeeper
from landbridge_dispatch.dispatcher.offers import OfferDoor
from landbridge_dispatch.dispatcher.own_broker import OwnBroker
from landbridge_dispatch.dispatcher.prober import Prober
from landbridge_dispatch.dispatcher.queries import Queries
from landbridge_dispatch.dispatcher.reporting import Reporter
from landbridge_dispatch.dispatcher.settings import DispatcherSettings
from landbridge_dispatch.dispatcher.shown import Watcher, restore, send_inventory, survey
from landbridge_dispatch.dispatcher.site import SiteDoor
from landbridge_dispatch.dispatcher.storage import Storage
from landbridge_dispatch.executors.bindings import load_bindings
from landbridge_dispatch.executors.local import procfs
from landbridge_dispatch.executors.making import make_executor
from landbridge_dispatch.probes.context import ProbeContext

log = logs.get(__name__)

CONNECT_WITHIN_S = 5.0
GAUGES_EVERY_S = 2.0
CARRIED_OUT_WITHIN_S = 10.0


class Dispatcher:
    """One environment's dispatcher."""

    name = "dispatcher"

    def __init__(self, settings: DispatcherSettings) -> None:
        self.settings = settings
        self.home = settings.data_dir.resolve()
        self.environment = settings.environment
        self.incarnation = secrets.token_hex(16)
        self.boot_id = procfs.boot_id()
        self.port = 0
        self.health = Health()
        self.telemetry = Telemetry(
            self.name, endpoint=settings.otlp_endpoint, instance=settings.instance or settings.environment
        )
        self.bindings = load_bindings(settings.bindings or self.home / "bindings.yaml", self.home)
        self.executor = make_executor(self.bindings)
        self.own = self._own_broker()
        subject = subjects.report if self.own is None else subjects.outgoing
        self.reporter = Reporter(self.environment, self.incarnation, subject=subject)
        self.lease = LeaseKeeper(
            self.environment,
            self.incarnation,
            self.home,
            self.boot_id,
            features=lambda: tuple(sorted(self.executor.features)),
            executor=self.executor.name,
        )
        self.claimer = Claimer(self.environment, self.incarnation, self.lease.current)
        self.desk = Desk(self.executor, self.lease.current, self.claimer, self.reporter)
        self.contract = ContractInForce(self.executor, self.lease.clock.now)
        self.storage = Storage(self.home)
        self.door = OfferDoor(
            self.desk,
            environment=self.environment,
            centre_now=self.lease.clock.now,
            terms_of=self.contract.terms,
            has_room=self.storage.has_room,
        )
        context = ProbeContext(self.executor, self.bindings, self.lease.clock, self.boot_id)
        self.prober = Prober(context, self.reporter, self.home)
        self.site = SiteDoor(self.home, self.executor, self.desk, status=self.status, doctor=self.doctor)
        self.bus: Bus | None = None
        self.consumer: Consumer | None = None
        self._stop = asyncio.Event()
        self._stage = "starting"
        self._join_parts()

    def _own_broker(self) -> OwnBroker | None:
        settings = self.settings
        if not settings.nats_domain:
            return None
        return OwnBroker(self.environment, budget_bytes=settings.site_bytes, replicas=settings.site_replicas)

    def _join_parts(self) -> None:
        if self.own is not None:
            self.reporter.on_stored = self.own.stored.set
        self.lease.publish = self._hold_lease
        self.lease.free_slots = lambda: self.executor.capacity().free
        self.lease.on_usable = lambda: self.desk.broadcast(own.LeaseGranted())
        self.lease.send_inventory = lambda term: send_inventory(self.executor, self.reporter, term)
        self.claimer.feed = self.desk.feed
        self.desk.on_idle = self.door.on_idle
        self.health.add_startup("stage", lambda: self._stage)
        self.health.add("nats", lambda: (self.bus is not None and self.bus.healthy()) or "not connected")
        self.health.add("lease", lambda: self.lease.usable() or self.lease.problem or "starting is not allowed yet")
        self.health.add("commands", self._commands_healthy)
        self.health.add("storage", lambda: self.storage.has_room() or self.storage.problem)

    # -- life ----------------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Run until SIGTERM or SIGINT; return the exit code. Raises what a part raised."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings = self.settings
        app = create_app(f"Landbridge dispatcher {self.environment}", self.health)
        async with contextlib.AsyncExitStack() as stack:
            stack.callback(self.telemetry.shutdown)
            stack.callback(os.close, only_one(self.home))
            server = HttpServer(app, settings.http_host, settings.http_port, port_file=settings.port_file)
            self.port = server.port
            await stack.enter_async_context(server.running())
            await self._open(stack)
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work, name=name) for name, work in self._local_work()]
                tasks.append(group.create_task(self._online(group, tasks, stack), name="online"))
                settle_memory()
                await self._stop.wait()
                await self._drain()
                for task in tasks:
                    task.cancel()
        log.info("stopped")
        return 0

    def stop(self) -> None:
        """Begin the drain."""
        self._stop.set()

    async def _open(self, stack: contextlib.AsyncExitStack) -> None:
        """Everything that the site has by itself."""
        await self.executor.open()
        stack.push_async_callback(self.executor.close)
        slots = await restore(self.executor, self.desk)
        self.prober.load()
        self.contract.take(self.prober.plan)
        await self.site.open()
        stack.push_async_callback(self.site.close)
        self._stage, self.health.started = "", True
        log.info("started", environment=self.environment, executor=self.executor.name, slots=slots, port=self.port)

    def _local_work(self) -> list[tuple[str, Any]]:
        return [
            ("desk", self.desk.run()),
            ("watcher", Watcher(self.executor, self.desk).run()),
            ("prober", self.prober.run()),
            ("gauges", self._measure()),
            ("stall-detector", StallDetector().run()),
        ]

    async def _online(
        self, group: asyncio.TaskGroup, tasks: list[asyncio.Task[Any]], stack: contextlib.AsyncExitStack
    ) -> None:
        """Reach NATS, however long it takes, and begin to speak with the centre."""
        settings = BusSettings(
            url=self.settings.nats_url,
            creds=self.settings.nats_creds,
            nkey=self.settings.nats_nkey,
            domain=self.settings.nats_domain,
            source=f"/environments/{self.environment}/dispatcher",
            connect_within_s=CONNECT_WITHIN_S,
        )
        bus = await reach_broker(settings, self.name, lambda stage: log.info("waiting", stage=stage) if stage else None)
        self.bus = bus
        stack.push_async_callback(bus.drain)
        durable = streams.environment_durable(self.environment)
        if self.own is not None:
            await self.own.open(bus)
            durable = site_streams.DURABLE
        self.consumer = Consumer(bus, durable.stream, durable.name, durable.filters)
        queries = Queries(self.executor, self.site.find)
        await bus.respond(subjects.every("query", self.environment), queries.answer)
        commands = Commands(
            self.consumer,
            self.desk,
            self.door,
            reconciled=self.lease.reconciled,
            plan=self._take_plan,
            verify=self.prober.verify,
            telemetry=self.telemetry,
        )
        work = {
            "reporter": self.reporter.run(bus),
            "claimer": self.claimer.run(bus),
            "lease": self.lease.run(bus),
            "commands": commands.run(),
            "survey": survey(
                self.executor, self.reporter, self.lease.clock.now, self._may_speak, self.settings.survey_seconds
            ),
        }
        if self.own is not None:
            work["own-broker"] = self.own.run()
        tasks += [group.create_task(each, name=name) for name, each in work.items()]

    def _may_speak(self) -> bool:
        """Whether the centre hears what is told now: no survey piles up while it does not."""
        return self.bus is not None and self.bus.healthy() and self.lease.usable()

    async def _drain(self) -> None:
        log.info("draining")
        self.health.draining = True
        if self.consumer is not None:
            await self.consumer.stop()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CARRIED_OUT_WITHIN_S):
                await self.desk.done([])
        if self.bus is not None and self.bus.healthy():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.settings.drain_seconds):
                    await self.reporter.flush()

    # -- parts that speak to each other --------------------------------------------------------------------------------

    def _hold_lease(self, lease: HeldLease) -> None:
        self.reporter.term = lease.term
        self.executor.hold_lease(lease)

    async def _take_plan(self, plan: ProbePlan) -> None:
        self.contract.take(plan)
        await self.prober.take(plan)

    def _commands_healthy(self) -> bool | str:
        if self.consumer is None:
            return "not connected"
        return str(self.consumer.problem or (self.own.problem() if self.own else ""))

    def _connected(self) -> bool:
        """Tell whether the centre can be reached; behind the site's own NATS only answers show that."""
        return self.bus is not None and self.bus.healthy() and (self.own is None or self.lease.answered)

    def _waiting_reports(self) -> int:
        return self.reporter.waiting + (self.own.waiting if self.own else 0)

    async def _measure(self) -> None:
        while True:
            capacity, lease = self.executor.capacity(), self.lease.held
            gauges.held.set(self.desk.count())
            gauges.running.set(capacity.used)
            gauges.free.set(capacity.free)
            gauges.waiting_offers.set(self.door.waiting)
            if self.door.waiting:
                self.desk.feed(())  # perhaps the disk has room again
            gauges.waiting_reports.set(self._waiting_reports())
            gauges.lease_usable.set(1 if self.lease.usable() else 0)
            gauges.lease_seconds.set(max(0, lease.valid_until - boot_ms()) / 1000)
            gauges.failed_probes.set(
                sum(item.result is EvidenceResult.FAILED for item in self.prober.evidence.values())
            )
            await asyncio.sleep(GAUGES_EVERY_S)

    # -- for people ----------------------------------------------------------------------------------------------------

    def status(self) -> dict[str, Any]:
        """Return what `landbridge site status` shows."""
        capacity, lease = self.executor.capacity(), self.lease.held
        return {
            "environment": self.environment,
            "executor": self.executor.name,
            "pid": os.getpid(),
            "incarnation": self.incarnation,
            "connected": self._connected(),
            "lease": {
                "term": lease.term,
                "n": lease.n,
                "mayStart": self.lease.usable(),
                "remainingSeconds": max(0, lease.valid_until - boot_ms()) / 1000,
                "problem": self.lease.problem,
            },
            "slots": {"used": capacity.used, "free": capacity.free},
            "reportsWaiting": self._waiting_reports(),
            "offersWaiting": self.door.waiting,
            "contractVersion": self.contract.version,
        }

    async def doctor(self) -> dict[str, Any]:
        """Return every check with what it found and, where it fails, what to do."""
        report = await self.health.readyz()
        checks = [{"name": found.name, "state": found.state, "message": found.message} for found in report.results]
        for name, item in sorted(self.prober.evidence.items()):
            state = "ok" if item.result is EvidenceResult.PROVEN else "failed"
            checks.append({"name": f"probe {name}", "state": state, "message": item.detail})
        probes = msgspec.to_builtins(self.prober.evidence)
        return {"checks": checks, "healthy": all(check["state"] == "ok" for check in checks), "probes": probes}
