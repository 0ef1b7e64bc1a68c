"""A canary whose lease is never renewed: a pod as work gets it, which has to stop by itself in time.

It asks the lease keeper as all work does, with its own token, and is told to start once; whatever it asks afterwards,
its lease is lost. It takes no slot, and needs neither the centre nor the environment's own lease.
"""

import asyncio
import json
import secrets
from typing import Any, Final

from landbridge.domain.ownership.epochs import Epoch
from landbridge.domain.ownership.policy import KILL_MARGIN_MS
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, Object
from landbridge_dispatch.executors.kubernetes.facts import PodFacts, pod_facts
from landbridge_dispatch.executors.kubernetes.pods import pod_spec
from landbridge_dispatch.executors.kubernetes.probing import smoke
from landbridge_dispatch.executors.kubernetes.remains import Remains, read_remains
from landbridge_dispatch.executors.kubernetes.resolution import Resolved
from landbridge_dispatch.executors.kubernetes.shelf import jobs_path, namespaces_of, pods_path
from landbridge_dispatch.executors.protocol import Finding, Work
from landbridge_dispatch.specification import disconnection_of, read_operation

WHAT: Final = "self-stop"
CUT_AFTER_MS: Final = 4_000
WITHIN_MS: Final = 500
GRACE_MS: Final = 500
BOUND_S: Final = (WITHIN_MS + GRACE_MS + KILL_MARGIN_MS) / 1000
POLL_S: Final = 1.0
ROUNDED_S: Final = 1
"""Moments that nodes and wrappers tell have whole seconds: so much later may it have been."""
# Ignores the polite signal: only the wrapper's own kill ends it.
_STUBBORN: Final = "trap '' TERM; while :; do sleep 1; done"
_START: Final = f"start {CUT_AFTER_MS}"
_LOST: Final = "lost"


class SelfStop:
    """Runs canaries, one at a time, and answers those that ask the lease keeper."""

    def __init__(self, api: Api, bindings: Bindings) -> None:
        """Take over where work runs. Raises BindingsError."""
        self._api = api
        self._bindings = bindings
        self._namespace = namespaces_of(bindings)[0]
        self._job = ""
        self._pods: dict[str, str] = {}
        """What each pod that asked was told first, by its UID."""

    async def answer(self, namespace: str, pod: str, uid: str, *, running: bool) -> str | None:
        """Return the line for a canary's wrapper; None: the pod is none. Raises ApiError."""
        if not self._job or namespace != self._namespace:
            return None
        if uid in self._pods:
            return _LOST if running else self._pods[uid]
        found = await self._api.get(pods_path(namespace, pod))
        if found is None or found["metadata"]["uid"] != uid or not self._made(found):
            return None
        # A canary has one pod; whatever else the Job's controller makes must not start.
        self._pods[uid] = _START if not self._pods else "never slot-taken another pod is the canary"
        return self._pods[uid]

    def _made(self, pod: Object) -> bool:
        owners = pod["metadata"].get("ownerReferences") or ()
        return any(owner.get("name") == self._job and owner.get("controller") for owner in owners)

    async def run(self, within_s: float) -> Finding:
        """Run one canary to its end, and measure how long after its lease that was. Raises ApiError."""
        site = self._bindings.kubernetes
        image = site.probes.image or site.wrapper.image
        subject = f"wrapper {names.wrapper_name()[-16:]}, image {image.rpartition('@')[2][:19]}"
        if not image:
            told = "no image to try with: set kubernetes.probes.image in the site's bindings"
            return Finding(EvidenceResult.UNKNOWN, subject, told)
        await self._clear()
        # Known before it is made: its pod may ask at once.
        self._job, self._pods = f"landbridge-probe-{secrets.token_hex(10)}", {}
        try:
            await self._api.create(jobs_path(self._namespace), self._canary(image, subject))
            pod = await self._until_over(within_s)
        finally:
            self._job = ""
            await asyncio.shield(self._clear())
        return judged(pod, subject)

    async def _until_over(self, within_s: float) -> PodFacts | None:
        """Return the canary's pod once it has ended, or as it is when the time is over."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + within_s
        while True:
            pods, _ = await self._api.list(pods_path(self._namespace), smoke.selector(self._bindings.kubernetes.site))
            own = [pod_facts(pod) for pod in pods if self._made(pod)]
            canary = next((pod for pod in own if self._pods.get(pod.uid, _START) == _START), None)
            if (canary is not None and canary.ended) or loop.time() + POLL_S > deadline:
                return canary
            await asyncio.sleep(POLL_S)

    async def _clear(self) -> None:
        """Remove canaries, those of an earlier dispatcher too."""
        jobs, _ = await self._api.list(jobs_path(self._namespace), smoke.selector(self._bindings.kubernetes.site))
        for job in jobs:
            meta = job["metadata"]
            if (meta.get("annotations") or {}).get(smoke.WHAT) == WHAT and not meta.get("deletionTimestamp"):
                try:
                    await self._api.delete(jobs_path(self._namespace, meta["name"]), uid=meta["uid"])
                except ApiError as error:
                    if error.status != 404:
                        raise

    def _canary(self, image: str, subject: str) -> Object:
        site, work = self._bindings.kubernetes, a_canary()
        labels = {names.MANAGED_BY: smoke.MANAGER, names.SITE: site.site}
        pod = pod_spec(self._bindings, work, Resolved(self._namespace, image=image))
        # Should everything fail, the cluster ends it; its own deadline tells then that it did not stop by itself.
        pod["activeDeadlineSeconds"] = smoke.DEADLINE_S
        metadata: dict[str, Any] = {
            "name": self._job,
            "namespace": self._namespace,
            "labels": labels,
            "annotations": {smoke.WHAT: WHAT, smoke.SUBJECT: subject},
        }
        spec = {
            "backoffLimit": 0,
            "podReplacementPolicy": "Failed",
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def a_canary() -> Work:
    """Return work that nobody has submitted, with the shortest policy by which it stops itself."""
    lifecycle = {
        "stopGrace": f"{GRACE_MS}ms",
        "disconnection": {"policy": "stop-after-grace", "stopAfter": f"{WITHIN_MS}ms", "grace": f"{GRACE_MS}ms"},
    }
    requests = {"cpu": "10m", "memory": "32Mi"}
    spec = {"command": ["sh", "-c", _STUBBORN], "lifecycle": lifecycle, "resources": {"requests": requests}}
    body = json.dumps({"metadata": {"name": "canary", "project": "landbridge"}, "spec": spec}).encode()
    view = read_operation(body)
    return Work(
        operation="00000000-0000-0000-0000-000000000000",
        epoch=Epoch(0, 1),
        project="landbridge",
        attempt=1,
        term=0,
        spec=body,
        spec_sha256="",
        view=view,
        policy=disconnection_of(view.spec.lifecycle),
    )


def judged(pod: PodFacts | None, subject: str) -> Finding:
    """Say whether the canary stopped by itself in time, by its wrapper's word and the node's clock."""
    if pod is None:
        return Finding(EvidenceResult.UNKNOWN, subject, "the canary has no pod yet")
    remains = read_remains(pod.message)
    if not pod.ended:
        waits = pod.scheduled or (f"{pod.waiting}: {pod.waiting_message}" if pod.waiting else "")
        if waits or not pod.running:
            return Finding(EvidenceResult.UNKNOWN, subject, f"the canary did not start: {waits or pod.phase}"[:300])
        return Finding(EvidenceResult.FAILED, subject, "the canary went on without a lease")
    if remains.not_started is not None:
        return Finding(EvidenceResult.UNKNOWN, subject, f"the canary did not start: {remains.not_started[1]}"[:300])
    if remains.cause != "self-stopped" or not remains.started_at:
        return Finding(EvidenceResult.FAILED, subject, f"the canary did not stop itself: {_ended(pod, remains)}")
    late_s = pod.finished_at - (remains.started_at + CUT_AFTER_MS / 1000) + ROUNDED_S
    if late_s > BOUND_S:
        told = f"stopped up to {late_s:.0f} s after its lease, promised within {BOUND_S:g} s"
        return Finding(EvidenceResult.FAILED, subject, told)
    return Finding(EvidenceResult.PROVEN, subject, f"stopped within {BOUND_S:g} s of the end of its lease")


def _ended(pod: PodFacts, remains: Remains) -> str:
    return remains.cause or f"exit code {pod.exit_code}" + (f", {pod.reason}" if pod.reason else "")
