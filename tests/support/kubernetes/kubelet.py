"""A kubelet without containers: it ends pods that are deleted and, where told how, runs them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from support.kubernetes import deletion
from support.kubernetes.api import Api
from support.kubernetes.errors import Object
from support.kubernetes.ownership import now
from support.kubernetes.pods import Logs
from support.kubernetes.store import Key

EVENTS = ("", "events")


@dataclass(frozen=True)
class Course:
    """How a pod goes: it starts on `node` after `start_s` and ends after `run_s` more (None: when it is stopped)."""

    run_s: float | None = 0.05
    start_s: float = 0.0
    exit_code: int = 0
    reason: str = ""
    log: str = ""
    message: str = ""
    """What it leaves in its termination log."""
    node: str = "node-1"


@dataclass
class Kubelet:
    """All nodes at once."""

    api: Api
    logs: Logs
    course: Callable[[Object], Course | None] = lambda pod: None
    """How a new pod goes; None: nothing happens to it but what the test does."""
    stop_s: float = 0.05
    """How long a pod takes to end that is deleted."""
    ends_deleted: bool = True
    _began: dict[str, float] = field(default_factory=dict)

    def sync(self, key: Key) -> float | None:
        """Bring one pod forward. Return after how many seconds it has to be looked at again."""
        pod = self.api.store.get(key)
        assert pod is not None
        if pod["metadata"].get("deletionTimestamp"):
            return self._stop(key, pod) if self.ends_deleted else None
        course = self.course(pod)
        phase = pod["status"].get("phase")
        if course is None or phase in ("Succeeded", "Failed"):
            return None
        return self._run(key, pod, course)

    def _stop(self, key: Key, pod: Object) -> float | None:
        meta, phase = pod["metadata"], pod["status"].get("phase")
        loop = asyncio.get_running_loop()
        began = self._began.setdefault(f"{meta['uid']}/stop", loop.time())
        wait_s = began + self.stop_s - loop.time()
        if pod["spec"].get("nodeName") and wait_s > 0 and phase not in ("Succeeded", "Failed"):
            return wait_s
        if phase not in ("Succeeded", "Failed"):
            self.end(pod, exit_code=143, reason="Error")
        pod["metadata"]["deletionGracePeriodSeconds"] = 0
        self.api.store.put(key, pod)
        deletion.finish_if_free(self.api.store, key)
        return None

    def _run(self, key: Key, pod: Object, course: Course) -> float | None:
        loop = asyncio.get_running_loop()
        began = self._began.setdefault(pod["metadata"]["uid"], loop.time())
        ran_s = loop.time() - began
        if ran_s < course.start_s:
            return course.start_s - ran_s
        if pod["status"]["phase"] == "Pending":
            pod["spec"].setdefault("nodeName", course.node)
            self.start(pod)
            self.api.store.put(key, pod)
            if course.log:
                self.logs.write(key[1], key[2], pod["spec"]["containers"][0]["name"], course.log)
        if course.run_s is None:
            return None
        if ran_s < course.start_s + course.run_s:
            return course.start_s + course.run_s - ran_s
        self.end(pod, exit_code=course.exit_code, reason=course.reason, message=course.message)
        self.api.store.put(key, pod)
        return None

    @staticmethod
    def start(pod: Object) -> None:
        """Write into a pod that its containers run."""
        pod["status"].update(
            phase="Running",
            startTime=now(),
            hostIP="192.0.2.1",
            podIP="198.51.100.7",
            conditions=[condition("PodScheduled"), condition("Ready"), condition("ContainersReady")],
            containerStatuses=[
                _container(pod, item, {"running": {"startedAt": now()}}, ready=True) for item in _containers(pod)
            ],
        )

    @staticmethod
    def end(pod: Object, *, exit_code: int, reason: str = "", message: str = "") -> None:
        """Write into a pod that its containers have ended."""
        state = {
            "terminated": {
                "exitCode": exit_code,
                "reason": reason or ("Completed" if exit_code == 0 else "Error"),
                "startedAt": pod["status"].get("startTime") or now(),
                "finishedAt": now(),
                **({"message": message} if message else {}),
            }
        }
        pod["status"].update(
            phase="Succeeded" if exit_code == 0 else "Failed",
            conditions=[condition("PodScheduled"), condition("Ready", "False", reason="PodCompleted")],
            containerStatuses=[_container(pod, item, state, ready=False) for item in _containers(pod)],
        )


def _containers(pod: Object) -> list[Object]:
    return list(pod["spec"]["containers"])


def _container(pod: Object, item: Object, state: Object, *, ready: bool) -> Object:
    uid = pod["metadata"]["uid"]
    return {
        "name": item["name"],
        "image": item["image"],
        "imageID": item["image"] if "@" in item["image"] else f"docker.io/library/sha@sha256:{'0' * 64}",
        "containerID": f"containerd://{uid}",
        "ready": ready,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }


def condition(kind: str, status: str = "True", *, reason: str = "", message: str = "") -> Object:
    return {
        "type": kind,
        "status": status,
        "lastProbeTime": None,
        "lastTransitionTime": now(),
        **({"reason": reason} if reason else {}),
        **({"message": message} if message else {}),
    }


def record_event(api: Api, about: Object, kind: str, reason: str, message: str, source: str = "job-controller") -> None:
    """An Event; one that was told before counts up."""
    meta = about["metadata"]
    namespace = meta.get("namespace", "default")
    found = next(
        (
            (key, item)
            for key, item in api.store.objects.items()
            if key[0] == EVENTS
            and key[1] == namespace
            and (item["involvedObject"]["uid"], item["reason"], item["message"]) == (meta["uid"], reason, message)
        ),
        None,
    )
    if found is not None:
        key, item = found
        api.store.put(key, {**item, "count": item["count"] + 1, "lastTimestamp": now()})
        return
    name = f"{meta['name']}.{api.store.revision:x}"
    item = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"event-{api.store.revision}",
            "creationTimestamp": now(),
        },
        "involvedObject": {
            "apiVersion": about.get("apiVersion", "v1"),
            "kind": about["kind"],
            "name": meta["name"],
            "namespace": namespace,
            "uid": meta["uid"],
            "resourceVersion": meta["resourceVersion"],
        },
        "type": kind,
        "reason": reason,
        "message": message,
        "source": {"component": source},
        "reportingComponent": source,
        "firstTimestamp": now(),
        "lastTimestamp": now(),
        "count": 1,
    }
    api.store.put((EVENTS, namespace, name), item)
