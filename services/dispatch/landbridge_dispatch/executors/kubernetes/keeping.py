"""What a pod at its true start is told: one decision for each question, and the claim of the slot by the pod's UID.

The claim is written into the slot's Job, once for each rank, on condition that nothing else there has changed. So of
two pods of one slot, whoever made the second, only one ever starts.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from landbridge.domain.ownership.environment_model import FINAL, SlotPhase
from landbridge.domain.ownership.leases import HeldLease, StartVerdict, start_verdict
from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.api import ApiError, Object
from landbridge_dispatch.executors.kubernetes.facts import PodFacts, pod_facts
from landbridge_dispatch.executors.kubernetes.progress import manifest_of
from landbridge_dispatch.executors.kubernetes.remains import is_checkpoint
from landbridge_dispatch.executors.kubernetes.shelf import Shelf
from landbridge_dispatch.executors.kubernetes.views import phase_of

GANG_FRESH_S: Final = 10.0
"""A member of a gang that has asked within this time is there: wrappers ask once a second."""
CONTINUING_MS: Final = 60_000
SELF_STOPPING: Final = frozenset({"checkpoint-then-stop", "stop-after-grace"})
WAIT: Final = "wait"
HOLD: Final = "hold"
GONE: Final = "never not-here its slot is not there"


@dataclass(frozen=True, slots=True)
class Asking:
    """Who asks, as the cluster's own token says."""

    namespace: str
    pod: str
    uid: str


class Canaries(Protocol):
    """Pods of probes, which take no slot."""

    async def answer(self, namespace: str, pod: str, uid: str, *, running: bool) -> str | None:
        """Return the line for a canary; None: the pod is none."""


class LeaseKeeper:
    """Answers wrappers. `boot_ms` is the clock of the lease."""

    def __init__(
        self, shelf: Shelf, lease: Callable[[], HeldLease], boot_ms: Callable[[], int], canaries: Canaries | None = None
    ) -> None:
        self._shelf = shelf
        self._lease = lease
        self._boot_ms = boot_ms
        self._canaries = canaries
        self._there: dict[str, dict[int, tuple[str, float]]] = {}
        """Of gangs: when which pod asked last, by slot and rank."""

    async def answer(self, asking: Asking, *, running: bool, checkpoint: str = "") -> str:
        """Return the line for the wrapper; see wrapper.sh for the words."""
        pod = await self._shelf.pod(asking.namespace, asking.pod, asking.uid)
        if pod is None and self._canaries is not None:
            told = await self._canaries.answer(asking.namespace, asking.pod, asking.uid, running=running)
            if told is not None:
                return told
        if pod is None:
            return "never not-here this pod belongs to no slot of this site"
        name = (pod["metadata"].get("labels") or {}).get(names.SLOT, "")
        job = self._shelf.job(name)
        record = None if job is None else records.record_of(job)
        if job is None or record is None or job["metadata"]["namespace"] != asking.namespace:
            return GONE
        if record.type != "service" and not await self._shelf.made(pod, job):
            return "never not-here this pod was not made by its slot's Job"
        facts = pod_facts(pod)
        if running:
            held = records.claims_of(job).get(str(facts.rank))
            if record.type != "service" and (held is None or held.pod != asking.uid):
                return "stop superseded 0 0"
            return await self._while_running(job, record, checkpoint)
        return await self._at_start(name, record, facts)

    # -- the true start ------------------------------------------------------------------------------------------------

    async def _at_start(self, name: str, record: records.Record, pod: PodFacts) -> str:
        job, rank, uid = self._shelf.job(name), pod.rank, pod.uid
        if job is None:
            return GONE
        told = self._refusal(job, record, rank, uid)
        if not told and record.ranks > 1 and not records.claims_of(job):
            told = "" if self._gang_is_there(name, record, rank, uid) else HOLD
        told = told or self._lease_refusal(job, record)
        if told or record.type == "service":
            return told or self._go(record)
        try:
            job = await self._shelf.change(name, lambda found: self._claim(found, record, pod))
        except ApiError:
            return WAIT
        if job is None:
            return GONE
        # Looked at again: what stands there may be another pod's claim, and the lease may have ended meanwhile.
        return self._refusal(job, record, rank, uid) or self._lease_refusal(job, record) or self._go(record)

    def _go(self, record: records.Record) -> str:
        remaining_ms = self._lease().valid_until - self._boot_ms()
        return f"start {remaining_ms if remaining_ms > 0 or record.type != 'service' else CONTINUING_MS}"

    def _lease_refusal(self, job: Object, record: records.Record) -> str:
        """Return what the lease has against a start; empty for nothing."""
        lease, now = self._lease(), self._boot_ms()
        term, stops_itself = records.integer(job, names.TERM), record.policy in SELF_STOPPING
        if phase_of(job) is SlotPhase.RUNNING:
            reconciled = lease.term >= term and lease.allows_start(now)
            if record.type == "service":
                # A pod of a service that runs already is replaced: that continues it, as its policy allows.
                return "" if reconciled or not stops_itself else WAIT
            # The slot was taken, and the answer may have been lost with the dispatcher that gave it. The centre has
            # been told since that this work runs, and has seen to it that it runs nowhere else; work that would have
            # stopped itself meanwhile may run elsewhere.
            if reconciled and not stops_itself:
                return ""
        match start_verdict(term, lease, now):
            case StartVerdict.NEVER:
                return "never no-lease the environment's lease is older than the grant"
            case StartVerdict.WAIT:
                return WAIT
        return ""

    def _refusal(self, job: Object, record: records.Record, rank: int, uid: str) -> str:
        """Return why this pod must not start, or not yet; empty if only the lease is left to ask."""
        noted, phase = records.annotations(job), phase_of(job)
        if phase in FINAL or (names.STOP in noted and record.type != "service"):
            stop = records.read(job, names.STOP, records.Stop)
            return f"never {stop.reason if stop is not None else 'slot-closed'} nothing starts in this slot any more"
        if names.BEGUN not in noted:
            return WAIT
        held = records.claims_of(job).get(str(rank))
        if record.type != "service" and held is not None and held.pod != uid:
            return "never slot-taken another pod has taken this slot"
        return ""

    def _claim(self, job: Object, record: records.Record, pod: PodFacts) -> Object | None:
        claims = records.claims_of(job)
        if str(pod.rank) in claims or self._refusal(job, record, pod.rank, pod.uid):
            return None
        claims[str(pod.rank)] = records.Claim(pod.uid, time.time(), pod.node)
        return {"metadata": {"annotations": {names.CLAIMS: records.encode(claims)}}}

    def _gang_is_there(self, name: str, record: records.Record, rank: int, uid: str) -> bool:
        """Tell whether all members wait at their start; they start together or not at all."""
        now = time.monotonic()
        there = self._there.setdefault(name, {})
        there[rank] = uid, now
        return sum(now - at < GANG_FRESH_S for _, at in there.values()) >= record.ranks

    # -- while it runs -------------------------------------------------------------------------------------------------

    async def _while_running(self, job: Object, record: records.Record, checkpoint: str) -> str:
        name = job["metadata"]["name"]
        self._there.pop(name, None)
        manifest = manifest_of(record, checkpoint) if is_checkpoint(checkpoint) else ""
        if manifest and records.annotations(job).get(names.CHECKPOINT) != manifest:
            job = await self._shelf.change(name, lambda found: _sealed(found, manifest)) or job
        stop = records.read(job, names.STOP, records.Stop)
        if stop is not None and stop.seals:
            within_ms = max(record.within_ms, stop.grace_ms)
            return f"stop {stop.reason} {stop.grace_ms} {within_ms}"
        remaining_ms = self._lease().valid_until - self._boot_ms()
        return f"lease {remaining_ms}" if remaining_ms > 0 else "lost"


def _sealed(job: Object, manifest: str) -> Object | None:
    if phase_of(job) is not SlotPhase.RUNNING:
        return None
    return {"metadata": {"annotations": {names.CHECKPOINT: manifest}}}
