"""Rules of the network, tried by pods: what has to be reached is, and one pod does not reach another.

That a pod was not reached shows something only if it could have been: the kubelet finds it ready before and after.
"""

import asyncio
import secrets
import time
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlsplit

from landbridge.domain.probe_kinds import REFUSED
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.claimed import claimed_part
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, Object
from landbridge_dispatch.executors.kubernetes.facts import pod_facts
from landbridge_dispatch.executors.kubernetes.probing import smoke
from landbridge_dispatch.executors.kubernetes.probing.judging import NO_IMAGE, one, outcome_of, trial_of, within
from landbridge_dispatch.executors.kubernetes.probing.running import Trials
from landbridge_dispatch.executors.kubernetes.settings import connection_options
from landbridge_dispatch.executors.kubernetes.shelf import jobs_path, namespaces_of, pods_path
from landbridge_dispatch.executors.protocol import Finding

PORT: Final = 8485
POLL_S: Final = 1.0
_SUBJECT: Final = "the cluster's network"
_UNABLE: Final = "the image has neither python3, bash nor nc to connect with"
_CONNECT: Final = (
    "connect() { if command -v python3 >/dev/null 2>&1; then "
    'python3 -S -c \'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)\' "$1" "$2"; '
    "elif command -v bash >/dev/null 2>&1 && command -v timeout >/dev/null 2>&1; then "
    'timeout 3 bash -c \'exec 3<>"/dev/tcp/$0/$1"\' "$1" "$2"; '
    'elif command -v nc >/dev/null 2>&1; then nc -z -w 3 "$1" "$2"; '
    f'else no "{_UNABLE}"; fi; }} 2>/dev/null; '
)
# Three arguments for each place: its name, host and port.
_REACH: Final = (
    _CONNECT + 'word=$1; shift; while [ $# -gt 2 ]; do connect "$2" "$3" || no "not reached: $1"; shift 3; done; '
    'set -- "$word"; '
)
_KEPT_OUT: Final = _CONNECT + 'if connect "$2" "$3"; then no "reached"; fi; '
_SERVE: Final = (
    'if command -v python3 >/dev/null 2>&1; then exec python3 -S -c "import socket\n'
    f"s = socket.create_server(('', {PORT}))\nwhile True: s.accept()[0].close()\"; fi; "
    f"while :; do nc -l -p {PORT} </dev/null >/dev/null || exit 1; done"
)


@dataclass(frozen=True, slots=True)
class _Last:
    finding: Finding
    at: float


class Network:
    """Probes of the boundary `network`."""

    def __init__(self, api: Api, bindings: Bindings, trials: Trials) -> None:
        """Take over where work runs. Raises BindingsError."""
        self._api = api
        self._bindings = bindings
        self._site = bindings.kubernetes
        self._trials = trials
        self._namespaces = namespaces_of(bindings)
        self._last: _Last | None = None

    async def run(self, probe: Probe) -> Finding:
        """Try one side of the boundary. Raises ApiError."""
        if probe.parameters.get("expect") != REFUSED:
            return await self._reaches(probe, claimed_part(probe).get("egress") or [])
        if claimed_part(probe).get("default") != "deny":
            return Finding(EvidenceResult.UNKNOWN, _SUBJECT, "the claim denies nothing that could be tried")
        if self._last is not None and time.monotonic() - self._last.at < self._site.probes.every_seconds:
            return self._last.finding
        finding = await self._keeps_out(probe)
        self._last = _Last(finding, time.monotonic()) if finding.result is EvidenceResult.PROVEN else None
        return finding

    # -- what has to be reached ------------------------------------------------------------------------------------

    async def _reaches(self, probe: Probe, egress: list[Any]) -> Finding:
        """Names resolve, and connections open, to the lease keeper and to every connection that has an address."""
        places = [("the lease keeper", *_address(self._site.keeper.url))]
        for name in sorted(map(str, egress)):
            binding = self._bindings.connections.get(name)
            if binding is not None and (store := connection_options(binding.options).s3) is not None:
                places.append((f"connection {name}", *_address(store.endpoint)))
        words = tuple(word for place in places for word in place)
        trial = trial_of(self._site, "egress", _SUBJECT, script=_REACH, arguments=words)
        found = await one(self._trials, probe, trial, f"reached: {', '.join(name for name, *_ in places)}")
        return replace(found, result=EvidenceResult.UNKNOWN) if found.detail.endswith(_UNABLE) else found

    # -- what has to be kept apart ---------------------------------------------------------------------------------

    async def _keeps_out(self, probe: Probe) -> Finding:
        """One pod asks another, of the last of the work's namespaces, which is none of its own where there are two."""
        image = self._site.probes.image or self._site.wrapper.image
        if not image:
            return Finding(EvidenceResult.UNKNOWN, _SUBJECT, NO_IMAGE)
        deadline = asyncio.get_running_loop().time() + within(probe)
        name, space = f"landbridge-probe-{secrets.token_hex(10)}", self._namespaces[-1]
        await self._api.create(jobs_path(space), self._server(name, space, image))
        try:
            server = await self._until_ready(name, space, deadline)
            if server is None:
                return Finding(EvidenceResult.UNKNOWN, _SUBJECT, "the pod that was to be asked did not become ready")
            words = (str(server["status"]["podIP"]), str(PORT))
            trial = trial_of(self._site, "network pair", f"{_SUBJECT}, {name}", script=_KEPT_OUT, arguments=words)
            outcome = await outcome_of(self._trials, probe, trial)
            still = await self._ready(name, space)
        finally:
            await asyncio.shield(self._remove(name, space))
        where = " and ".join(dict.fromkeys((self._namespaces[0], space)))
        if outcome.proven is False and outcome.told.endswith(": reached"):
            return Finding(EvidenceResult.FAILED, _SUBJECT, f"let through: from pod to pod, in namespace {where}")
        if not outcome.proven:
            return Finding(EvidenceResult.UNKNOWN, _SUBJECT, outcome.told)
        if still is None:
            return Finding(EvidenceResult.UNKNOWN, _SUBJECT, "the pod that was asked ended meanwhile")
        return Finding(EvidenceResult.PROVEN, _SUBJECT, f"refused: from pod to pod, in namespace {where}")

    async def _until_ready(self, name: str, space: str, deadline: float) -> Object | None:
        while True:
            found = await self._ready(name, space)
            if found is not None or asyncio.get_running_loop().time() + POLL_S > deadline:
                return found
            await asyncio.sleep(POLL_S)

    async def _ready(self, name: str, space: str) -> Object | None:
        """Return the server's pod if the kubelet finds it ready, which reaches it whatever the rules are."""
        pods, _ = await self._api.list(pods_path(space), smoke.selector(self._site.site))
        for pod in pods:
            owners = pod["metadata"].get("ownerReferences") or ()
            if (
                any(owner.get("name") == name for owner in owners)
                and pod_facts(pod).ready
                and pod["status"].get("podIP")
            ):
                return pod
        return None

    async def _remove(self, name: str, space: str) -> None:
        job = await self._api.get(jobs_path(space, name))
        if job is not None:
            try:
                await self._api.delete(jobs_path(space, name), uid=job["metadata"]["uid"])
            except ApiError as error:
                if error.status != 404:
                    raise

    def _server(self, name: str, space: str, image: str) -> Object:
        """Return a Job whose pod listens for two minutes at most."""
        trial = trial_of(self._site, "network server", _SUBJECT, image=image)
        made = smoke.job(self._site, space, trial, "")
        made["metadata"]["name"] = name
        [container] = made["spec"]["template"]["spec"]["containers"]
        shell = container["command"][: container["command"].index("-c")]
        container |= {
            "command": [*shell, "-c", _SERVE],
            "ports": [{"containerPort": PORT}],
            "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        }
        return made


def _address(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.hostname or "", str(parts.port or (443 if parts.scheme == "https" else 80))
