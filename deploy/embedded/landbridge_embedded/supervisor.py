"""Runs Landbridge on one machine: servers, schemas and streams, then every service as a process of its own."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from landbridge_embedded import environments, sample, workloads
from landbridge_embedded.control import ControlServer
from landbridge_embedded.environments import LocalEnvironment
from landbridge_embedded.errors import EmbeddedError
from landbridge_embedded.keeper import Keeper, KeptState, Note, RestartPolicy
from landbridge_embedded.layout import VARIABLE, DataDirectory
from landbridge_embedded.logkeeping import keep_logs_small
from landbridge_embedded.logtail import log_tail
from landbridge_embedded.ports import pick_ports
from landbridge_embedded.process import http_ok
from landbridge_embedded.readiness import await_environments, await_services
from landbridge_embedded.servers import External, Servers
from landbridge_embedded.services import (
    DISPATCHER_MODULE,
    KEYS_MODULE,
    PRELOAD,
    PREPARE_MODULE,
    SERVICES,
    Addresses,
    ServiceSpec,
    admin_token,
    dispatcher_environ,
    inherited,
    service_environ,
)
from landbridge_embedded.spawn import Job, Running, choose_spawner

_SERVERS = ("nats", "nats-monitor", "nats-leaf", "postgres", "redis")
_LABELS = {"postgres": "PostgreSQL", "nats": "NATS", "redis": "Valkey"}
_WARM_SHARE = 0.4  # of the patience with environments that were just registered
_DECLARE_AGAIN_S = 2.0
_DRAIN_S = 20.0  # a little more than the services give themselves


@dataclass(frozen=True)
class UpOptions:
    """What `landbridge up` was asked for."""

    data: DataDirectory
    empty: bool = False
    fixed_ports: Mapping[str, int] = field(default_factory=dict)
    external: External = field(default_factory=External)
    ready_s: float = 120.0
    connect_s: float = 10.0
    calm_s: float = 60.0
    services: tuple[ServiceSpec, ...] = SERVICES
    dispatcher_module: str = DISPATCHER_MODULE
    keys_module: str = KEYS_MODULE
    prepare_module: str = PREPARE_MODULE
    preload: tuple[str, ...] = PRELOAD


class Supervisor:
    """`run` returns after a stop was asked for and nothing is left running."""

    def __init__(self, options: UpOptions, note: Note) -> None:
        self._options, self._data, self._note = options, options.data, note
        self._spawner = choose_spawner(list(options.preload), self._data.log_of("zygote"), self._title("zygote"))
        self._ports: dict[str, int] = {}
        self._servers: Servers | None = None
        self._keepers: dict[str, Keeper] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._control = ControlServer(self._data.control_socket, self._answer)
        self._stop = asyncio.Event()
        self._keep_workloads = False
        self._ready = False
        self._started_at = datetime.now(UTC).isoformat(timespec="seconds")
        self._joining = asyncio.Lock()

    def request_stop(self, *, keep_workloads: bool = False) -> None:
        """Ask `run` to end; a second call kills what has not ended."""
        if self._stop.is_set():
            for keeper in self._keepers.values():
                keeper.kill()
        self._keep_workloads = self._keep_workloads or keep_workloads
        self._stop.set()

    async def run(self, ready: Callable[[dict[str, Any]], None]) -> None:
        """Start everything, call `ready` with the state, run until stopped. EmbeddedError when it cannot start."""
        self._data.create()
        with self._data.held():
            starting = asyncio.create_task(self._start(), name="start")
            stopping = asyncio.create_task(self._stop.wait(), name="stop")
            try:
                await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
                if starting.done():
                    starting.result()
                    self._ready = True
                    for keeper in self._keepers.values():
                        keeper.tells_loops = True
                    self._write_state()
                    ready(self.state())
                    await stopping
            finally:
                for task in (starting, stopping):
                    task.cancel()
                await asyncio.gather(starting, stopping, return_exceptions=True)
                await self._shut_down()

    # -- starting -------------------------------------------------------------------------------------------------

    async def _start(self) -> None:
        data = self._data
        local = environments.joined(data)
        names = [*_SERVERS, *(spec.name for spec in self._options.services), *(item.service for item in local)]
        self._ports = pick_ports(names, fixed=self._options.fixed_ports, memory=data.ports)
        self._own(keep_logs_small(data.logs), "logs")
        await self._spawner.start()
        await self._control.start()
        self._write_state()
        await self._start_servers()
        await self._prepare()
        for spec in self._options.services:
            self._keep(spec.name, self._service_job(spec))
        for item in local:
            self._keep(item.service, self._dispatcher_job(item))
        # Not the dispatchers: a site that has no link, or was removed, must not keep the centre from starting.
        await self._await_ready(spec.name for spec in self._options.services)
        self._note(f"{len(self._options.services)} services are ready")
        registered = await sample.register(
            data,
            empty=self._options.empty,
            api=self._url("dashboard"),
            start=self._run_environment,
            note=self._note,
        )
        names, token = [item.name for item in environments.joined(data)], admin_token(data)
        patience_s = self._options.connect_s * (1.0 if registered else _WARM_SHARE)
        for name in await await_environments(names, self._ports.get("lineage", 0), token, patience_s):
            self._note(f"{name} has not connected yet; see `landbridge get environments`")

    async def _start_servers(self) -> None:
        started = time.monotonic()
        self._servers = Servers(
            self._data,
            self._ports,
            self._options.external,
            self._note,
            calm_s=min(self._options.calm_s, 30.0),
            broker_returned=lambda: self._own(self._declare_again(), "declare-again"),
        )
        try:
            await self._servers.start(self._broker_accounts)
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        for name, keeper in self._servers.keepers.items():
            self._run_keeper(name, keeper)
        names = [label for name, label in _LABELS.items() if name in self._servers.keepers] or ["your servers"]
        self._note(f"{', '.join(names)} run ({time.monotonic() - started:.1f} s)")

    async def _broker_accounts(self) -> str:
        """Make keys and credentials; return the broker's configuration of them."""
        environ = {**inherited(), VARIABLE: str(self._data.root)}
        await self._run_once("keys", self._options.keys_module, environ)
        return self._data.broker_accounts.read_text()

    async def _prepare(self) -> None:
        """Bring schemas and streams to what this release needs."""
        module, creds = self._options.prepare_module, self._data.creds / "streams.creds"
        if self._options.external.nats_url and not creds.exists():
            raise EmbeddedError(
                f"LANDBRIDGE_NATS_URL is set: expected the services' credentials for it in {creds.parent} "
                "(streams.creds, intake.creds, …), found none; put them there, or unset it to have a NATS started here"
            )
        environ = {
            **service_environ(ServiceSpec("prepare", module), self._addresses(), self._data),
            "LANDBRIDGE_NATS_CREDS": str(creds),
            "LANDBRIDGE_STORE_DIR": str(self._data.root / "nats"),
        }
        await self._run_once("prepare", module, environ)

    async def _declare_again(self) -> None:
        """Give a broker that has come back its streams, which it may have lost: nobody else may make them."""
        while not self._stop.is_set():
            try:
                await self._prepare()
            except EmbeddedError as error:
                self._note(f"streams are not declared yet: {str(error).splitlines()[-1]}")
            else:
                return
            await asyncio.sleep(_DECLARE_AGAIN_S)

    async def _run_once(self, name: str, module: str, environ: Mapping[str, str]) -> None:
        """Run one step in a process of its own. EmbeddedError with the end of its log when it fails."""
        log = self._data.log_of(name)
        running = await self._spawner.spawn(Job(name, module, environ, log, self._title(name)))
        if await running.wait() != 0:
            raise EmbeddedError(f"the step {name!r} failed; {log} says:\n{log_tail(log)}")

    def _service_job(self, spec: ServiceSpec) -> Job:
        assert self._servers is not None, "services start after the servers"
        environ = service_environ(spec, self._addresses(), self._data, leaf_url=self._servers.leaf_url)
        return Job(spec.name, spec.module, environ, self._data.log_of(spec.name), self._title(spec.name))

    def _dispatcher_job(self, item: LocalEnvironment) -> Job:
        environ = dispatcher_environ(item.name, self._addresses(), item.directory, self._ports[item.service])
        if item.nats_url:
            environ["LANDBRIDGE_NATS_URL"] = item.nats_url
        log = self._data.log_of(item.service)
        return Job(item.service, self._options.dispatcher_module, environ, log, self._title(item.service))

    def _title(self, name: str) -> str:
        return f"landbridge-{name} [{self._data.root}]"

    def _keep(self, name: str, job: Job) -> None:
        async def start() -> Running:
            return await self._spawner.spawn(job)

        self._run_keeper(name, Keeper(name, start, job.log, self._note, self._policy()))

    def _policy(self) -> RestartPolicy:
        return RestartPolicy(calm_s=self._options.calm_s)

    def _run_keeper(self, name: str, keeper: Keeper) -> None:
        keeper.on_change = self._write_state
        keeper.tells_loops = self._ready or name.startswith("dispatcher-")
        self._keepers[name] = keeper
        self._own(keeper.run(), f"keep-{name}")

    def _own(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _await_ready(self, names: Iterable[str]) -> None:
        await await_services({name: self._keepers[name] for name in names}, self._ports, self._options.ready_s)

    async def _run_environment(self, name: str) -> None:
        """Start the dispatcher of a joined environment, or start it again with what changed."""
        async with self._joining:
            item = environments.read(self._data, name)
            if item.service in self._keepers:
                await self._keepers.pop(item.service).stop(_DRAIN_S)
            self._ports |= pick_ports([item.service], fixed=self._ports, memory=self._data.ports)
            self._keep(item.service, self._dispatcher_job(item))
        await self._await_ready([item.service])

    async def _remove_environment(self, name: str) -> Path:
        """Stop a removed environment's dispatcher and what it runs; where its directory is kept."""
        async with self._joining:
            item = environments.read(self._data, name)
            if item.service in self._keepers:
                await self._keepers.pop(item.service).stop(_DRAIN_S)
            await workloads.leave([item], self._note, keep=False)
            return environments.set_aside(self._data, name)

    # -- stopping -------------------------------------------------------------------------------------------------

    async def _shut_down(self) -> None:
        """Nothing of ours runs afterwards, except workloads that were to be kept."""
        services = [keeper for name, keeper in self._keepers.items() if name not in _SERVERS]
        await asyncio.gather(*(keeper.stop(_DRAIN_S) for keeper in services))
        await self._spawner.stop()
        if self._servers is not None:
            await self._servers.stop()
        for task in (item for item in self._tasks if item.get_name() == "logs"):
            task.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=_DRAIN_S)
        await workloads.leave(environments.joined(self._data), self._note, keep=self._keep_workloads)
        await self._control.stop()
        self._data.state.unlink(missing_ok=True)

    # -- what others see ------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return what state.json holds."""
        return {
            "pid": os.getpid(),
            "ready": self._ready,
            "startedAt": self._started_at,
            "data": str(self._data.root),
            "control": str(self._data.control_socket),
            "natsUrl": self._servers.nats_url if self._servers else "",
            "natsLeafUrl": self._servers.leaf_url if self._servers else "",
            "urls": {spec.name: self._url(spec.name) for spec in self._options.services},
            "services": {
                name: {"pid": keeper.pid, "port": self._ports.get(name, 0), "state": str(keeper.state)}
                for name, keeper in self._keepers.items()
            },
        }

    def sign_in_url(self) -> str:
        """Return the link that opens the dashboard as administrator."""
        return f"{self._url('dashboard')}/sign-in?token={admin_token(self._data)}"

    def _url(self, service: str) -> str:
        return f"http://127.0.0.1:{self._ports.get(service, 0)}"

    def _addresses(self) -> Addresses:
        assert self._servers is not None, "services start after the servers"
        return Addresses(self._servers.nats_url, self._servers.postgres_dsn, self._servers.redis_url, self._ports)

    def _write_state(self) -> None:
        if not self._stop.is_set():
            self._data.write_state(self.state())

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        match request.get("command"):
            case "status":
                return await self._status()
            case "start-environment":
                await self._run_environment(str(request.get("name", "")))
                return {"started": request.get("name")}
            case "remove-environment":
                return {"kept": str(await self._remove_environment(str(request.get("name", ""))))}
            case "hold" | "release" as what:
                return self._hold(str(request.get("name", "")), held=what == "hold")
            case "down":
                self.request_stop(keep_workloads=bool(request.get("keepWorkloads")))
                return {"stopping": True, "pid": os.getpid()}
            case other:
                return {
                    "error": f"unknown command {other!r}; expected status, start-environment, hold, release or down"
                }

    def _hold(self, name: str, *, held: bool) -> dict[str, Any]:
        """Rehearse an outage: end a process and keep it down, or let it come back."""
        keeper = self._keepers.get(name)
        if keeper is None:
            return {"error": f"{name!r} is not kept here; expected one of {', '.join(sorted(self._keepers))}"}
        if held:
            keeper.hold(signal.SIGINT if name == "postgres" else signal.SIGTERM)
        else:
            keeper.release()
        return {"name": name, "held": held}

    async def _status(self) -> dict[str, Any]:
        state = self.state()
        names = [name for name in state["services"] if name not in _SERVERS]
        answers = await asyncio.gather(*(http_ok(self._ports[name], "/readyz") for name in names))
        ready = dict(zip(names, answers, strict=True))
        for name, row in state["services"].items():
            keeper = self._keepers[name]
            row["ready"] = ready.get(name, keeper.state is KeptState.RUNNING)
            row["restarts"], row["lastExit"] = keeper.restarts, keeper.last_exit
        return state
