"""Bindings, work and pods for tests of what is decided about a cluster."""

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from landbridge.domain.ownership.epochs import Epoch
from landbridge_dispatch.executors.bindings import Accepts, Binding, Bindings, ExecutorOptions, Principal
from landbridge_dispatch.executors.kubernetes import manifests, names, records
from landbridge_dispatch.executors.kubernetes.resolution import resolve
from landbridge_dispatch.executors.kubernetes.settings import KubernetesSettings
from landbridge_dispatch.executors.protocol import Work
from landbridge_dispatch.specification import disconnection_of, read_operation

DIGEST = "sha256:" + "ab" * 32
IMAGE = {"registry": "tools", "name": "trainer/churn", "digest": DIGEST}
OPERATION = "0b54cbd1-58ab-5f3f-9d3b-0d9d0d6f3c11"
CONNECTIONS: dict[str, Any] = {
    "tools": {"options": {"registry": "registry.site/team", "pullSecret": "pull-tools"}},
    "events": {"options": {"claim": "events-data"}},
    "models": {"access": "read-write", "options": {"claim": "models-data", "subPath": "team"}},
    "checkpoints": {"access": "read-write", "options": {"claim": "checkpoints-data"}},
    "words": {"options": {"configMap": "words"}},
    "store": {
        "access": "read-write",
        "options": {
            "s3": {"endpoint": "http://s3.site:8333", "bucket": "shared", "prefix": "t", "secret": "store-keys"}
        },
    },
    "tables": {
        "options": {
            "s3": {
                "endpoint": "http://s3.site:8333",
                "bucket": "tables",
                "prefix": "daily",
                "secret": "tables-keys",
                "idKey": "id",
                "secretKey": "key",
                "tokenKey": "token",
            }
        },
    },
    "features": {
        "location": "s3://features/daily",
        "env": {"S3_ENDPOINT": "http://s3.site:8333"},
        "options": {"secretEnv": {"S3_KEY": {"secret": "features", "key": "access"}}},
    },
}


def some_bindings(**kubernetes: Any) -> Bindings:
    """The bindings of a cluster; keyword arguments are fields of its section."""
    section = {"namespace": "lb-{project}", "site": "cluster-a", **kubernetes}
    return Bindings(
        home=Path("nowhere"),
        executor=ExecutorOptions(name="kubernetes"),
        connections=msgspec.convert(CONNECTIONS, dict[str, Binding]),
        identities={"trainer": Principal(service_account="trainer", audience="sts.site")},
        accepts=Accepts(projects=("retail-eu",), images=("tools",)),
        kubernetes=msgspec.convert(section, KubernetesSettings),
    )


def some_work(*, counter: int = 1, resume_from: str = "", project: str = "retail-eu", **spec: Any) -> Work:
    """Granted work; keyword arguments are fields of the operation's spec."""
    body = {"type": "job", "image": IMAGE, "command": ["train", "--fast"], **spec}
    document = {"metadata": {"name": "tried", "project": project}, "spec": body}
    data = json.dumps(document).encode()
    view = read_operation(data)
    return Work(
        operation=OPERATION,
        epoch=Epoch(1, counter),
        project=project,
        attempt=counter,
        term=3,
        spec=data,
        spec_sha256=hashlib.sha256(data).hexdigest(),
        view=view,
        policy=disconnection_of(view.spec.lifecycle),
        resume_from=resume_from,
        contract_version=4,
    )


def a_job(*, bindings: Bindings | None = None, claims: Any = None, **spec: Any) -> dict[str, Any]:
    """A slot's Job as the cluster holds it; `claims`: pods by rank."""
    bindings, work = bindings or some_bindings(), some_work(**spec)
    job = manifests.job(bindings, work, resolve(bindings, work))
    job["metadata"] |= {"uid": "job-uid", "creationTimestamp": "2026-12-01T10:00:00Z"}
    if claims is not None:
        held = {rank: records.Claim(pod, 1000.0, "node-1") for rank, pod in claims.items()}
        job["metadata"]["annotations"][names.CLAIMS] = records.encode(held)
    return job


def a_pod(
    *,
    uid: str = "pod-1",
    rank: int | None = None,
    phase: str = "Running",
    waiting: tuple[str, str] | None = None,
    exited: dict[str, Any] | None = None,
    conditions: tuple[dict[str, str], ...] = (),
    deleting: bool = False,
    **status: Any,
) -> dict[str, Any]:
    """A pod as the cluster shows it."""
    state: dict[str, Any] = {}
    if waiting is not None:
        state = {"waiting": {"reason": waiting[0], "message": waiting[1]}}
    elif exited is not None:
        state = {"terminated": {"finishedAt": "2026-12-01T10:05:00Z", **exited}}
    elif phase == "Running":
        state = {"running": {"startedAt": "2026-12-01T10:00:05Z"}}
    metadata: dict[str, Any] = {"name": f"{uid}-name", "uid": uid, "labels": {}}
    if rank is not None:
        metadata["labels"][names.RANK] = str(rank)
    if deleting:
        metadata["deletionTimestamp"] = "2026-12-01T10:04:00Z"
    statuses = [{"name": names.CONTAINER, "state": state}] if state else []
    return {
        "metadata": metadata,
        "spec": {"nodeName": "node-1"},
        "status": {"phase": phase, "containerStatuses": statuses, "conditions": list(conditions), **status},
    }
