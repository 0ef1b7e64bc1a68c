"""Brings slots forward: whatever changed of one, its Job and its pods are looked at as they stand.

What follows is written down. Nothing depends on the order or the number of changes.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from landbridge.domain import units
from landbridge.domain.ownership.environment_model import FINAL, SlotPhase
from landbridge.runtime import logs
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.api import ApiError, Object
from landbridge_dispatch.executors.kubernetes.events import AGAIN_S, Events
from landbridge_dispatch.executors.kubernetes.facts import pod_facts
from landbridge_dispatch.executors.kubernetes.operators.halting import halt
from landbridge_dispatch.executors.kubernetes.operators.kinds import PYTORCHJOB
from landbridge_dispatch.executors.kubernetes.operators.told import State
from landbridge_dispatch.executors.kubernetes.orders import closed
from landbridge_dispatch.executors.kubernetes.progress import Progress, progress
from landbridge_dispatch.executors.kubernetes.serving import scaled_to_nothing, service_progress
from landbridge_dispatch.executors.kubernetes.shelf import Shelf
from landbridge_dispatch.executors.kubernetes.states import TELLING
from landbridge_dispatch.executors.kubernetes.views import phase_of
from landbridge_dispatch.executors.kubernetes.vouching import NodeFacts, Witnesses, heard
from landbridge_dispatch.executors.kubernetes.watching import Kept

log = logs.get(__name__)

RETRY_S: Final = 2.0
STUCK_S: Final = 10.0
"""After what time without a pod, or with one that is not on, its events are asked."""
ANEW_S: Final = 600.0
"""How often all slots are looked at although nothing was heard of them."""


class Reconciler:
    """Looks at slots that were touched. `seen` is called with the name of each that was looked at."""

    def __init__(self, shelf: Shelf, bindings: Bindings, nodes: Kept, seen: Callable[[str, bool], None]) -> None:
        """`seen` gets a slot's name and whether it is surely gone, pods included. `nodes`: of the cluster."""
        self.provider: dict[str, str] = {}
        """How slots stand in the cluster's own words."""
        self._shelf = shelf
        self._nodes = nodes
        self._witnesses = Witnesses()
        self._seen = seen
        self._long_s = units.parse_duration(bindings.kubernetes.start_within) / 1000
        self._events = Events(shelf.api, TELLING)
        self._since: dict[tuple[str, str], float] = {}
        self._dirty: set[str] = set()
        self._wake = asyncio.Event()
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def touch(self, name: str) -> None:
        """Have a slot looked at."""
        if name:
            self._dirty.add(name)
            self._wake.set()

    async def run(self) -> None:
        """Look at what is touched, until cancelled."""
        anew = time.monotonic() + ANEW_S
        while True:
            try:
                async with asyncio.timeout(max(0.0, anew - time.monotonic())):
                    await self._wake.wait()
            except TimeoutError:
                anew = time.monotonic() + ANEW_S
                self._dirty |= {job["metadata"]["name"] for job in self._shelf.jobs()}
            self._wake.clear()
            dirty, self._dirty = self._dirty, set()
            await asyncio.gather(*map(self.look, dirty))

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    async def look(self, name: str) -> None:
        """Look at one slot. What the server refuses just now is tried again."""
        try:
            await self._look(name)
        except ApiError as error:
            log.warning("slot_not_looked_at", slot=name, error=str(error), retry_seconds=RETRY_S)
            self._later(name, RETRY_S)

    async def _look(self, name: str) -> None:
        job = self._shelf.job(name)
        if job is None:
            await self._clear(name)
            return
        warning = await self._warning(job)
        found = self._progress(job)
        if found.end is not None and (found.vouched or found.end.reason == "removed-externally"):
            # What was heard may be old: it is read anew before it counts.
            if found.vouched:
                await self._nodes.list()
            await self._shelf.read_pods(job["metadata"]["namespace"])
            found = self._progress(self._shelf.job(name) or job)
        self.provider[name] = "; ".join(part for part in (found.provider, warning) if part)
        if found.grave is not None or found.end is not None or found.claim is not None:
            job = await self._shelf.change(name, lambda current: _recorded(current, found)) or job
        if found.again_at:
            self._later(name, found.again_at - time.time())
        await self._enforce(job)
        if phase_of(job) in FINAL:
            self._shelf.forget_ghosts(name)
            self.provider.pop(name, None)
            self._forget(name)
        self._seen(name, False)

    def _progress(self, job: Object) -> Progress:
        record = records.record_of(job)
        pods, now = self._shelf.pods_of(job), time.time()
        since = self._seen_since(job["metadata"]["name"], now)
        if record is not None and record.type == "service":
            deployment = self._shelf.deployment(job)
            return service_progress(job, record, deployment, pods, now, since=since, node=self._node)
        return progress(
            job,
            pods,
            now,
            long_s=self._long_s,
            since=since,
            told=self._shelf.told(job),
            warned=self._events.reason,
            node=self._node,
        )

    def _seen_since(self, name: str, now: float) -> Callable[[str], float]:
        since = self._since
        return lambda code: since.setdefault((name, code), now)

    def _node(self, name: str) -> NodeFacts:
        if not self._nodes.listed.is_set():
            return NodeFacts()
        return self._witnesses.facts(name, self._nodes.items.get(name))

    async def _warning(self, job: Object) -> str:
        """Return the latest warning about a pod that lacks or does not get on, which its events are asked for."""
        if phase_of(job) is not SlotPhase.CREATED or names.BEGUN not in records.annotations(job):
            return ""
        pods = [pod_facts(pod) for pod in self._shelf.pods_of(job)]
        stuck = [pod for pod in pods if not pod.ended and not pod.running and not pod.scheduled]
        maker = self._shelf.gang(job) or job
        about = stuck[0].uid if stuck else "" if pods else maker["metadata"]["uid"]
        begun_at = records.read(job, names.BEGUN, float) or time.time()
        if not about or time.time() - begun_at < STUCK_S:
            if about:
                self._later(job["metadata"]["name"], STUCK_S)
            return ""
        told = await self._events.warning(job["metadata"]["namespace"], about)
        self._later(job["metadata"]["name"], AGAIN_S)
        return told

    async def _enforce(self, job: Object) -> None:
        """End pods that must not run: of graves, of ended slots, and of those that were ordered to stop."""
        phase, stop = phase_of(job), records.read(job, names.STOP, records.Stop)
        if phase in FINAL:
            await self._make_no_more(job)
        # Those that count as ended their nodes end by themselves, and tell it, unless they are deleted.
        alive = [pod for pod in self._shelf.pods_of(job) if not pod_facts(pod).ended]
        if not alive and phase is not SlotPhase.RUNNING:
            return
        if phase in FINAL:
            await self._shelf.end_pods([pod for pod in alive if not pod["metadata"].get("deletionTimestamp")], None)
            return
        if stop is None and self._shelf.told(job).state is State.FAILED:
            await self._end_members(job, alive)
        if stop is None or phase is not SlotPhase.RUNNING:
            return
        wait_s = stop.until - time.time() if stop.seals else 0.0
        if wait_s > 0:
            self._later(job["metadata"]["name"], wait_s)
            return
        await self._make_no_more(job)
        # Kubernetes counts whole seconds, and none at all would not wait for the node's word that it has ended.
        await self._shelf.end_pods(alive, max(1, -(-stop.grace_ms // 1000)))

    async def _make_no_more(self, job: Object) -> None:
        """Have no pods made any more, before any are ended: those that somebody deletes are made anew."""
        deployment, gang = self._shelf.deployment(job), self._shelf.gang(job)
        if deployment is not None:
            await scaled_to_nothing(self._shelf.api, deployment)
        if gang is not None:
            await halt(self._shelf.api, gang)

    async def _end_members(self, job: Object, alive: list[Object]) -> None:
        """End the members that still run of a gang that has failed: the training operator leaves them."""
        gang = self._shelf.gang(job)
        if gang is not None and gang["kind"] == PYTORCHJOB.kind:
            await self._shelf.end_pods([pod for pod in alive if not pod["metadata"].get("deletionTimestamp")], None)

    async def _clear(self, name: str) -> None:
        """End what is left of a slot whose Job is gone, before it is said that nothing runs."""
        self.provider.pop(name, None)
        pods, now = self._shelf.pods(name), time.time()
        may_run = [facts for facts in map(pod_facts, pods) if facts.may_run]
        told = heard(may_run, now, self._node, self._seen_since(name, now))
        if any(facts.may_run for facts in told.pods):
            log.warning("slot_removed_by_others", slot=name, pods=len(may_run), doubt=told.doubt)
            alive = [pod for pod in pods if not pod_facts(pod).ended]
            await self._shelf.end_pods([pod for pod in alive if not pod["metadata"].get("deletionTimestamp")], None)
            if told.again_at:
                self._later(name, told.again_at - now)
            return
        self._shelf.forget_ghosts(name)
        self._forget(name)
        self._seen(name, True)

    def _forget(self, name: str) -> None:
        self._since = {key: at for key, at in self._since.items() if key[0] != name} if self._since else {}

    def _later(self, name: str, seconds: float) -> None:
        loop, timer = asyncio.get_running_loop(), self._timers.get(name)
        due = loop.time() + max(0.05, seconds)
        if timer is not None and timer.when() <= due:
            return
        if timer is not None:
            timer.cancel()
        self._timers[name] = loop.call_at(due, self._due, name)

    def _due(self, name: str) -> None:
        self._timers.pop(name, None)
        self.touch(name)


def _recorded(job: Object, found: Progress) -> Object | None:
    """Return the patch that records what was found, unless something final stands there already."""
    if phase_of(job) in FINAL:
        return None
    if found.grave is not None:
        return closed(job, found.grave)
    if found.claim is not None:
        claims = records.encode({"0": found.claim})
        return (
            None if names.CLAIMS in records.annotations(job) else {"metadata": {"annotations": {names.CLAIMS: claims}}}
        )
    noted = {names.END: records.encode(found.end)}
    if found.checkpoint:
        noted[names.CHECKPOINT] = found.checkpoint
    return {"metadata": {"annotations": noted}}
