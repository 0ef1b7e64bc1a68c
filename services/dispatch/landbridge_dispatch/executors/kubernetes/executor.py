"""The executor `kubernetes`: a suspended Job is a slot, a patch starts it, its annotations are all that is known."""

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from landbridge.domain import features
from landbridge.domain.contract import Contract, Via
from landbridge.domain.ownership.environment_model import FINAL, FinalReport, SlotPhase
from landbridge.domain.ownership.leases import NO_LEASE, HeldLease
from landbridge.runtime import logs
from landbridge.schema.wire.command_v1 import Probe
from landbridge_dispatch.executors.bindings import Bindings, BindingsError
from landbridge_dispatch.executors.kubernetes import manifests, names, orders, records
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, Object, UnreachableError
from landbridge_dispatch.executors.kubernetes.door import Door
from landbridge_dispatch.executors.kubernetes.existence import Existence
from landbridge_dispatch.executors.kubernetes.following import Operators
from landbridge_dispatch.executors.kubernetes.keeping import LeaseKeeper
from landbridge_dispatch.executors.kubernetes.operators.choosing import operator_for
from landbridge_dispatch.executors.kubernetes.operators.kinds import RAYJOB
from landbridge_dispatch.executors.kubernetes.parts import make_parts
from landbridge_dispatch.executors.kubernetes.probing.cluster import ClusterProbes
from landbridge_dispatch.executors.kubernetes.reading import list_outputs, read_log, read_output
from landbridge_dispatch.executors.kubernetes.reconciling import Reconciler
from landbridge_dispatch.executors.kubernetes.resolution import problems_of, resolve
from landbridge_dispatch.executors.kubernetes.routes import check_route
from landbridge_dispatch.executors.kubernetes.shelf import Shelf
from landbridge_dispatch.executors.kubernetes.views import phase_of, view_of
from landbridge_dispatch.executors.protocol import (
    Burial,
    Capacity,
    Chunk,
    Finding,
    OutputFile,
    RefusalCode,
    RefusedError,
    SlotKey,
    SlotView,
    StopOrder,
    Work,
)

log = logs.get(__name__)

_REFUSED: Final = frozenset({403, 422})


class KubernetesExecutor:
    """One cluster, as its dispatcher reaches it. Whoever comes next reads all of it from the cluster again."""

    name = "kubernetes"

    @property
    def features(self) -> tuple[str, ...]:
        """What operations may need of it; operators count while they are found."""
        types = (features.type_feature(kind) for kind in features.WORKLOAD_TYPES[1:])
        usable = self._operators.usable
        operators = (features.operator_feature(name) for name in usable)
        ray = (features.framework_feature(features.RAY),) if RAYJOB.operator in usable else ()
        return (*features.PROCESS_FEATURES, *types, *operators, *ray)

    def __init__(self, bindings: Bindings, api: Api | None = None) -> None:
        """Take over the bindings. Raises BindingsError."""
        if problems := problems_of(bindings.connections):
            raise BindingsError("\n".join(problems))
        settings = bindings.kubernetes
        kubeconfig = bindings.home / settings.kubeconfig if settings.kubeconfig else ""
        self.api = api or Api(kubeconfig)
        self._bindings = bindings
        self._lease = NO_LEASE
        self._cluster = (0, 0)
        self._via: Mapping[str, Via] = {}
        self._shelf = Shelf(self.api, bindings)
        self._operators = Operators(self.api, settings, self._shelf)
        self._probes = ClusterProbes(self.api, bindings)
        self._reconciler = Reconciler(self._shelf, bindings, self._probes.nodes, self._seen)
        self._shelf.touched = self._reconciler.touch
        self.keeper = LeaseKeeper(self._shelf, lambda: self._lease, _boot_ms, self._probes.self_stop)
        self.door = Door(self.api, settings.keeper, self.keeper)
        self._existence = Existence(self.api)
        self._tasks: list[asyncio.Task[None]] = []
        self._shown: dict[str, tuple[object, ...]] = {}
        self._known: dict[str, SlotKey] = {}
        """Slots that were seen, and that nobody here has removed."""
        self._changed: dict[str, bool] = {}
        self._wake = asyncio.Event()

    # -- life ----------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Read all slots, bring them forward, begin to follow the cluster. Raises ApiError, OSError."""
        await self.api.open()
        self._cluster = await self.api.version()
        await self._operators.look()
        for namespace in self._shelf.namespaces():
            await self._lay_wrapper(namespace)
        await self._shelf.read()
        for job in self._shelf.jobs():
            self._remember(job)
        await asyncio.gather(*(self._reconciler.look(job["metadata"]["name"]) for job in self._shelf.jobs()))
        await self.door.open()
        work: list[tuple[str, Coroutine[Any, Any, None]]] = [("reconciler", self._reconciler.run())]
        work += [(name, run()) for name, run in self._shelf.watches()]
        work += [("nodes", self._probes.run_nodes()), ("operators", self._operators.run())]
        self._tasks = [asyncio.create_task(each, name=name) for name, each in work]
        for task in self._tasks:
            task.add_done_callback(lambda _: self._wake.set())

    async def close(self) -> None:
        """End what follows the cluster; workloads go on."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self._reconciler.close()
        await self.door.close()
        await self.api.close()

    async def _lay_wrapper(self, namespace: str) -> None:
        wrapper = manifests.wrapper(self._bindings.kubernetes.site, namespace)
        try:
            await self.api.create(f"/api/v1/namespaces/{namespace}/configmaps", wrapper)
        except ApiError as error:
            # It cannot be changed, and another text has another name.
            if error.status != 409:
                raise

    def hold_lease(self, lease: HeldLease) -> None:
        """Take the lease that wrappers are told of. `valid_until` is on this machine's boot clock."""
        self._lease = lease

    def know(self, contract: Contract) -> None:
        roles = contract.boundaries.identity.roles if contract.boundaries.identity is not None else {}
        self._bindings = replace(self._bindings, roles=frozenset(roles))
        self._via = contract.runtime.via

    # -- slots ---------------------------------------------------------------------------------------------------------

    async def check(self, works: Sequence[Work]) -> list[RefusedError | None]:
        return list(await asyncio.gather(*(self._check(work) for work in works)))

    async def _check(self, work: Work) -> RefusedError | None:
        try:
            await self._job_for(work)
        except RefusedError as refusal:
            return refusal
        return None

    async def _job_for(self, work: Work) -> Object:
        try:
            found = resolve(self._bindings, work)
            asked = work.view.spec.resources.accelerator
            found.affinity = self._probes.affinity(asked.class_ if asked is not None else "")
            check_route(self._bindings, work, served=self._operators.serves_routes)
            operator = operator_for(work.view.spec, self._via, self._operators.usable)
            job = manifests.job(self._bindings, work, found, manifests.devices_version(self._cluster), operator)
        except ValueError as error:
            raise RefusedError(RefusalCode.UNREADABLE, f"the specification cannot be used: {error}") from error
        if found.namespace not in self._shelf.namespaces():
            raise RefusedError(RefusalCode.PROJECT, f"project {work.project} has no namespace that this site serves")
        await self._existence.check(found)
        return job

    async def occupy(self, works: Sequence[Work]) -> list[SlotView | RefusedError | None]:
        # One after the other where a batch names a slot twice: the second finds the first.
        results: dict[int, SlotView | RefusedError | None] = {}
        seen: dict[SlotKey, int] = {}
        again = [index for index, work in enumerate(works) if seen.setdefault(work.key, index) != index]
        first = [index for index in range(len(works)) if index not in set(again)]
        results.update(zip(first, await asyncio.gather(*(self._occupy(works[at]) for at in first)), strict=True))
        for index in again:
            results[index] = await self._occupy(works[index])
        return [results[index] for index in range(len(works))]

    async def _occupy(self, work: Work) -> SlotView | RefusedError | None:
        known = self._shelf.job(names.name_of(work.key))
        if known is not None:
            return self._view(known)
        try:
            found = await self._shelf.create(await self._job_for(work))
        except RefusedError as refusal:
            return refusal
        except ApiError as error:
            if error.status not in _REFUSED:
                raise
            log.warning("slot_refused_by_cluster", operation=work.operation, error=str(error))
            return RefusedError(RefusalCode.WORKLOAD, f"the cluster's own admission refuses it ({error.reason})")
        if found is None:
            self._known[names.name_of(work.key)] = work.key
            return None
        if names.is_own(found, self._shelf.site) and records.record_of(found) is not None:
            return self._view(found)
        # Somebody else's object has the name: it is not touched, and nothing is started.
        return SlotView(operation=work.operation, epoch=work.epoch, phase=SlotPhase.CREATED, term=work.term)

    async def regrant(self, key: SlotKey, term: int) -> None:
        await self._shelf.change(names.name_of(key), lambda job: orders.regranted(job, term))

    async def start(self, keys: Sequence[SlotKey]) -> None:
        await asyncio.gather(*(self._start(names.name_of(key)) for key in keys))

    async def _start(self, name: str) -> None:
        settings, now = self._bindings.kubernetes, time.time()
        job = self._shelf.job(name)
        if job is None or orders.begun(job, settings, now) is None:
            return
        try:
            for made in await make_parts(self.api, job):
                self._shelf.note_gang(made)
        except UnreachableError:
            raise
        except ApiError as error:
            log.warning("parts_refused", slot=name, error=str(error))
            grave = records.Grave("failed-to-start", now, f"the cluster refuses a part of it ({error.reason})")
            await self._shelf.change(name, lambda found: orders.closed(found, grave))
            return
        await self._shelf.change(name, lambda found: orders.begun(found, settings, now))

    # -- what changed --------------------------------------------------------------------------------------------------

    def _seen(self, name: str, gone: bool) -> None:
        self._changed[name] = gone
        self._wake.set()

    async def observe(self) -> AsyncIterator[list[SlotView]]:
        while True:
            await self._wake.wait()
            self._wake.clear()
            for task in self._tasks:
                if task.done() and not task.cancelled():
                    task.result()
            changed, self._changed = self._changed, {}
            views = [view for name, gone in changed.items() if (view := self._news(name, gone)) is not None]
            if views:
                yield views

    def _news(self, name: str, gone: bool) -> SlotView | None:
        """Return the view if it says something new about a slot of ours."""
        job = self._shelf.job(name)
        if job is None:
            if not gone:
                return None
            self._shown.pop(name, None)
            key = self._known.pop(name, None)
            if key is None:
                return None
            return SlotView(operation=key.operation, epoch=key.epoch, phase=SlotPhase.EMPTY, term=0)
        self._remember(job)
        view = self._view(job)
        shows = (view.phase, view.ended, view.report.checkpoint if view.report is not None else None)
        if view.phase is SlotPhase.CREATED or self._shown.get(name) == shows:
            return None
        self._shown[name] = shows
        return view

    def _remember(self, job: Object) -> None:
        view = self._view(job)
        self._known[job["metadata"]["name"]] = view.key

    def _view(self, job: Object) -> SlotView:
        record = records.record_of(job)
        assert record is not None, "a Job without a record is no slot"
        return view_of(job, record, provider=self._reconciler.provider.get(job["metadata"]["name"], ""))

    async def inventory(self) -> list[SlotView]:
        await self._shelf.read()
        await asyncio.gather(*(self._reconciler.look(job["metadata"]["name"]) for job in self._shelf.jobs()))
        return [self._view(job) for job in self._shelf.jobs()]

    async def look(self, key: SlotKey) -> SlotView | None:
        job = self._shelf.job(names.name_of(key))
        return None if job is None else self._view(job)

    # -- ends ----------------------------------------------------------------------------------------------------------

    async def stop(self, orders: Sequence[StopOrder]) -> None:
        await asyncio.gather(*(self._stop(order) for order in orders))

    async def _stop(self, order: StopOrder) -> None:
        name = names.name_of(order.key)
        # What has ended by itself must not be taken for stopped: look before acting.
        await self._reconciler.look(name)
        await self._shelf.change(name, lambda job: orders.stopped(job, order, time.time()))
        await self._reconciler.look(name)

    async def bury(self, burials: Sequence[Burial]) -> None:
        await asyncio.gather(*(self._bury(burial) for burial in burials))

    async def _bury(self, burial: Burial) -> None:
        name = names.name_of(burial.key)
        grave = records.Grave(burial.report.reason, time.time(), denied=True, buried=True)
        if self._shelf.job(name) is None:
            namespace = self._bindings.kubernetes.namespace_of(burial.project) if burial.project else ""
            if namespace not in self._shelf.namespaces():
                namespace = self._shelf.first_namespace
            tombstone = manifests.tombstone(self._bindings, burial, namespace, grave)
            tombstone["metadata"]["annotations"][names.ANSWER] = orders.answer(burial.report)
            if await self._shelf.create(tombstone) is None:
                return
        await self._shelf.change(name, lambda job: orders.buried(job, grave, burial.report))
        await self._reconciler.look(name)

    async def record(self, answers: Sequence[tuple[SlotKey, FinalReport]]) -> None:
        async def keep(key: SlotKey, report: FinalReport) -> None:
            await self._shelf.change(names.name_of(key), lambda job: orders.answered(job, report))

        await asyncio.gather(*(keep(key, report) for key, report in answers))

    async def settle(self, settled: Sequence[tuple[SlotKey, int]]) -> None:
        async def note(key: SlotKey, term: int) -> None:
            await self._shelf.change(names.name_of(key), lambda job: orders.settled(job, term))

        await asyncio.gather(*(note(key, term) for key, term in settled))

    async def remove(self, keys: Sequence[SlotKey]) -> None:
        async def clear(name: str) -> None:
            self._known.pop(name, None)
            self._shown.pop(name, None)
            if (job := self._shelf.job(name)) is not None:
                await self._shelf.remove(job)

        await asyncio.gather(*(clear(names.name_of(key)) for key in keys))

    # -- what people ask -----------------------------------------------------------------------------------------------

    async def logs(self, key: SlotKey, *, offset: int = 0, limit: int = 65_536, tail: int = 0) -> Chunk | None:
        job = self._shelf.job(names.name_of(key))
        return None if job is None else await read_log(self._shelf, job, offset, limit, tail)

    async def outputs(self, key: SlotKey) -> dict[str, list[OutputFile]] | None:
        job = self._shelf.job(names.name_of(key))
        return None if job is None else await list_outputs(self._bindings, job)

    async def output_chunk(self, key: SlotKey, name: str, *, offset: int = 0, limit: int = 65_536) -> Chunk | None:
        job = self._shelf.job(names.name_of(key))
        return None if job is None else await read_output(self._bindings, job, name, offset, limit)

    def capacity(self) -> Capacity:
        """Return how many slots can be held; room on nodes is the scheduler's affair."""
        used = sum(phase_of(job) not in FINAL for job in self._shelf.jobs())
        return Capacity(self._bindings.executor.slots, used, 0, 0)

    async def probe(self, probe: Probe) -> Finding | None:
        return await self._probes.run(probe)

    def voided(self) -> AsyncIterator[list[str]]:
        return self._probes.voided()


def _boot_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
