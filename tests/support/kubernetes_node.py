"""A node that really runs pods of a cluster: each container as processes of this machine, paths translated.

It does what a kubelet does and tests rely on: mounts by path, projected tokens, TERM and KILL with the pod's grace, the
termination message, logs, exit codes. No isolation: only what tests themselves declare is run here.
"""

import asyncio
import base64
import contextlib
import os
import shutil
import signal
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from landbridge.domain import units
from landbridge_dispatch.executors.local import procfs
from support.kubernetes import FakeCluster, deletion
from support.kubernetes.kubelet import condition
from support.kubernetes.ownership import now
from support.kubernetes_driver import Drivers

STEP_S = 0.02
TERMINAL = ("Succeeded", "Failed")
MESSAGE_MAX = 4096


@dataclass
class Running:
    """One pod as this machine runs it."""

    namespace: str
    name: str
    home: Path
    process: asyncio.subprocess.Process
    pump: asyncio.Task[None]
    memory_bytes: int = 0
    beside: list[asyncio.subprocess.Process] = field(default_factory=list)
    """Containers that start before the workload's and are ended after it."""
    env: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)
    kill_at: float = 0.0
    out_of_memory: bool = False


class Backend(Protocol):
    """The cluster as the node sees it."""

    async def pods(self) -> list[dict[str, Any]]:
        """All pods that may be this node's."""

    async def configmap(self, namespace: str, name: str) -> dict[str, str]:
        """The data of a ConfigMap."""

    async def secret(self, namespace: str, name: str, key: str) -> str:
        """A value of a Secret."""

    async def token(self, pod: dict[str, Any], asked: dict[str, Any]) -> str:
        """A token of the pod's service account, bound to the pod."""

    def log(self, namespace: str, pod: str, container: str, text: str) -> None:
        """Keep what a container wrote."""

    async def bind(self, pod: dict[str, Any]) -> None:
        """The pod is on this node before anything of it runs."""

    async def tell_running(self, pod: dict[str, Any]) -> None:
        """Write into the pod's status that its container runs."""

    async def tell_end(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        """Write the last status."""

    async def gone(self, pod: dict[str, Any]) -> None:
        """The pod is to be deleted and nothing of it runs: let it leave."""

    async def submitted(self, pod: dict[str, Any], running: Running) -> None:
        """Run what somebody has a container run beside its own program."""

    async def ended(self, uid: str) -> None:
        """A pod's containers have ended."""


@dataclass
class Node:
    """`home`: where pods' files lie; `claims`: directories behind claims, by name; `shell`: stands for /bin/sh."""

    backend: Backend
    home: Path
    claims: dict[str, Path]
    shell: str = "/bin/sh"
    step_s: float = STEP_S
    accepts: bool = True
    """Whether new pods are started."""
    limit: int = 1_000_000
    """How many pods it starts in all."""
    keeps_conditions: bool = False
    """Whether conditions that others wrote stay at the end."""
    started: list[str] = field(default_factory=list)
    slots: dict[str, str] = field(default_factory=dict)
    """UIDs of pods by the slot that they were made for."""
    _running: dict[str, Running] = field(default_factory=dict)
    _taken: set[str] = field(default_factory=set)
    _told: dict[str, tuple[dict[str, str], dict[str, str]]] = field(default_factory=dict)
    """Variables and places of a pod's container that starts."""

    async def run(self) -> None:
        """Run pods until cancelled; nothing is left running then."""
        try:
            while True:
                await self.step()
                await asyncio.sleep(self.step_s)
        finally:
            for running in self._running.values():
                _signal(running, signal.SIGKILL)
                running.pump.cancel()
                await running.process.wait()
                for process in running.beside:
                    await _ended(process)
            for uid in self._taken:
                await self.backend.ended(uid)

    @property
    def busy(self) -> bool:
        """Whether anything runs."""
        return bool(self._running)

    async def step(self) -> None:
        """Look at every pod once."""
        for pod in await self.backend.pods():
            meta, status = pod["metadata"], pod["status"]
            running = self._running.get(meta["uid"])
            if running is not None:
                await self._follow(pod, running)
            elif meta.get("deletionTimestamp"):
                await self.backend.gone(pod)
            elif status.get("phase", "Pending") == "Pending" and self._takes(meta["uid"]):
                self._taken.add(meta["uid"])
                await self._start(pod)

    def _takes(self, uid: str) -> bool:
        return self.accepts and uid not in self._taken and len(self._taken) < self.limit

    # -- starting --------------------------------------------------------------------------------------------------

    async def _start(self, pod: dict[str, Any]) -> None:
        meta, container = pod["metadata"], pod["spec"]["containers"][0]
        home = self.home / meta["uid"]
        await self.backend.bind(pod)
        home.mkdir(parents=True)
        beside = [
            await self._launch(pod, other, home, log=False)
            for other in pod["spec"].get("initContainers") or ()
            if other.get("restartPolicy") == "Always"
        ]
        process = await self._launch(pod, container, home)
        pump = asyncio.create_task(self._pump(process, meta["namespace"], meta["name"], container["name"]))
        memory = (container["resources"].get("limits") or {}).get("memory")
        limit = units.parse_bytes(memory) if memory else 0
        self._running[meta["uid"]] = Running(meta["namespace"], meta["name"], home, process, pump, limit, beside)
        self._running[meta["uid"]].env, self._running[meta["uid"]].paths = self._told.pop(meta["uid"])
        self.started.append(meta["uid"])
        self.slots.setdefault((meta.get("labels") or {}).get("landbridge.io/slot", ""), meta["uid"])
        await self.backend.tell_running(pod)

    async def _launch(
        self, pod: dict[str, Any], container: dict[str, Any], home: Path, *, log: bool = True
    ) -> asyncio.subprocess.Process:
        """Start one container."""
        paths = await self._mount(pod, container, home)
        env = {"PATH": os.environ["PATH"]}
        for entry in container.get("env") or ():
            env[entry["name"]] = _unescaped(_translated(await self._value(pod, entry), paths))
        words = [_unescaped(_translated(word, paths)) for word in (*container["command"], *container.get("args", ()))]
        if words[0] == "/bin/sh":
            words[0] = self.shell
        if log:
            self._told[pod["metadata"]["uid"]] = env, paths
        output = asyncio.subprocess.PIPE if log else asyncio.subprocess.DEVNULL
        return await asyncio.create_subprocess_exec(
            *words, env=env, cwd=home, stdout=output, stderr=asyncio.subprocess.STDOUT,
            stdin=asyncio.subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    async def _mount(self, pod: dict[str, Any], container: dict[str, Any], home: Path) -> dict[str, str]:
        """Lay every volume; return places of this machine by paths of the container."""
        paths = {container.get("terminationMessagePath", "/dev/termination-log"): str(home / "termination-log")}
        volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        for mount in container["volumeMounts"]:
            volume, place = volumes[mount["name"]], home / mount["name"]
            if "persistentVolumeClaim" in volume:
                place = self.claims[volume["persistentVolumeClaim"]["claimName"]]
            elif "configMap" in volume:
                await self._lay_configmap(pod["metadata"]["namespace"], volume["configMap"], place)
            elif "projected" in volume:
                await self._lay_token(pod, volume["projected"]["sources"][0]["serviceAccountToken"], place)
            place.mkdir(parents=True, exist_ok=True)
            paths[mount["mountPath"]] = str(place / mount["subPath"] if mount.get("subPath") else place)
        return paths

    async def _lay_configmap(self, namespace: str, volume: dict[str, Any], place: Path) -> None:
        data = await self.backend.configmap(namespace, volume["name"])
        for item in volume.get("items") or [{"key": key, "path": key} for key in data]:
            (place / item["path"]).parent.mkdir(parents=True, exist_ok=True)
            (place / item["path"]).write_text(data[item["key"]])

    async def _lay_token(self, pod: dict[str, Any], asked: dict[str, Any], place: Path) -> None:
        place.mkdir()
        (place / asked["path"]).write_text(await self.backend.token(pod, asked))

    async def _value(self, pod: dict[str, Any], entry: dict[str, Any]) -> str:
        source = entry.get("valueFrom")
        if source is None:
            return str(entry.get("value", ""))
        if "fieldRef" in source:
            label = source["fieldRef"]["fieldPath"].partition("'")[2].rstrip("']")
            return str(pod["metadata"]["labels"][label])
        reference = source["secretKeyRef"]
        return await self.backend.secret(pod["metadata"]["namespace"], reference["name"], reference["key"])

    async def _pump(self, process: asyncio.subprocess.Process, namespace: str, pod: str, container: str) -> None:
        assert process.stdout is not None
        while data := await process.stdout.read(65536):
            self.backend.log(namespace, pod, container, data.decode(errors="replace"))

    # -- ending ----------------------------------------------------------------------------------------------------

    async def _follow(self, pod: dict[str, Any], running: Running) -> None:
        loop, meta = asyncio.get_running_loop(), pod["metadata"]
        if meta.get("deletionTimestamp") and running.process.returncode is None:
            deadline = loop.time() + meta.get("deletionGracePeriodSeconds", 30)
            if not running.kill_at:
                running.kill_at = deadline
                running.process.send_signal(signal.SIGTERM)
            running.kill_at = min(running.kill_at, deadline)
            if loop.time() >= running.kill_at:
                _signal(running, signal.SIGKILL)
        if running.process.returncode is None:
            await self.backend.submitted(pod, running)
            if running.memory_bytes and procfs.resident_bytes(_descendants(running.process.pid)) > running.memory_bytes:
                self.exceed_memory(meta["uid"])
            return
        _signal(running, signal.SIGKILL)
        for process in running.beside:
            await _ended(process)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(running.pump), 1.0)
        del self._running[meta["uid"]]
        await self.backend.ended(meta["uid"])
        status = self._end_of(pod, running)
        shutil.rmtree(running.home, ignore_errors=True)
        await self.backend.tell_end(pod, status)

    def _end_of(self, pod: dict[str, Any], running: Running) -> dict[str, Any]:
        code = running.process.returncode or 0
        code = 128 - code if code < 0 else code
        file = running.home / "termination-log"
        message = file.read_text(errors="replace")[:MESSAGE_MAX] if file.exists() else ""
        reason = "OOMKilled" if running.out_of_memory else "Completed" if code == 0 else "Error"
        status = (pod["status"].get("containerStatuses") or [{}])[0]
        began = (status.get("state") or {}).get("running", {}).get("startedAt") or now()
        ended = {"exitCode": code, "reason": reason, "startedAt": began, "finishedAt": now(), "message": message}
        return {
            "phase": "Succeeded" if code == 0 else "Failed",
            "conditions": [
                *(pod["status"].get("conditions") or () if self.keeps_conditions else ()),
                condition("PodScheduled"),
                condition("Ready", "False", reason="PodCompleted"),
            ],
            "containerStatuses": [{**status, "ready": False, "state": {"terminated": ended}}],
        }

    def exceed_memory(self, uid: str) -> None:
        """Do what the kernel does to a container that takes too much."""
        running = self._running[uid]
        running.out_of_memory = True
        _signal(running, signal.SIGKILL)


@dataclass
class FakeBackend:
    """The cluster in this process."""

    cluster: FakeCluster

    drivers: Drivers = field(init=False)

    def __post_init__(self) -> None:
        self.cluster.kubelet.ends_deleted = False
        self.drivers = Drivers(self.cluster)

    async def submitted(self, pod: dict[str, Any], running: Running) -> None:
        await self.drivers.follow(pod, running.home, running.env, running.paths)

    async def ended(self, uid: str) -> None:
        await self.drivers.end(uid)

    async def pods(self) -> list[dict[str, Any]]:
        return self.cluster.all_of("pods")

    async def configmap(self, namespace: str, name: str) -> dict[str, str]:
        found = self.cluster.get("configmaps", name, namespace=namespace)
        assert found is not None, f"there is no ConfigMap {name}"
        return dict(found["data"])

    async def secret(self, namespace: str, name: str, key: str) -> str:
        found = self.cluster.get("secrets", name, namespace=namespace)
        assert found is not None, f"there is no Secret {name}"
        return base64.b64decode(found["data"][key]).decode()

    async def token(self, pod: dict[str, Any], asked: dict[str, Any]) -> str:
        account = pod["spec"].get("serviceAccountName", "default")
        issued = self.cluster.api.access.issue(pod["metadata"]["namespace"], account, token_request(pod, asked))
        return str(issued["status"]["token"])

    def log(self, namespace: str, pod: str, container: str, text: str) -> None:
        self.cluster.server.logs.write(namespace, pod, container, text)

    async def bind(self, pod: dict[str, Any]) -> None:
        meta = pod["metadata"]
        self.cluster.set_pod_status(meta["name"], {}, namespace=meta["namespace"], node="node-1")

    async def tell_running(self, pod: dict[str, Any]) -> None:
        self.cluster.run_pod(pod["metadata"]["name"], namespace=pod["metadata"]["namespace"])

    async def tell_end(self, pod: dict[str, Any], status: dict[str, Any]) -> None:
        meta = pod["metadata"]
        if self.cluster.get("pods", meta["name"], namespace=meta["namespace"]) is None:
            return
        current = self.cluster.set_pod_status(meta["name"], status, namespace=meta["namespace"])
        if current["metadata"].get("deletionTimestamp"):
            await self.gone(current)

    async def gone(self, pod: dict[str, Any]) -> None:
        store = self.cluster.api.store
        key = (("", "pods"), pod["metadata"]["namespace"], pod["metadata"]["name"])
        current = store.get(key)
        if current is None:
            return
        if current["status"].get("phase") not in TERMINAL:
            self.cluster.kubelet.end(current, exit_code=143, reason="Error")
        current["metadata"]["deletionGracePeriodSeconds"] = 0
        if current != store.get(key):
            store.put(key, current)
        deletion.finish_if_free(store, key)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End a container that is no workload."""
    if process.returncode is None:
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), 5.0)
    except TimeoutError:
        process.kill()
        await process.wait()


def token_request(pod: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """As the kubelet asks for the token of a projected volume."""
    meta = pod["metadata"]
    return {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {
            "audiences": [asked["audience"]],
            "expirationSeconds": asked["expirationSeconds"],
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]},
        },
    }


def _signal(running: Running, number: int) -> None:
    """Signal the whole container: the wrapper, and the workload, which has a session of its own."""
    for pid in _descendants(running.process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _descendants(pid: int) -> list[int]:
    """A container's processes: those below it, and those that say so by their working directory's pod."""
    found = [pid]
    for parent in found:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def _translated(text: str, paths: dict[str, str]) -> str:
    for path in sorted(paths, key=len, reverse=True):
        text = text.replace(path, paths[path])
    return text


def _unescaped(text: str) -> str:
    """As the kubelet reads what has no variables in it."""
    return text.replace("$$", "$")
