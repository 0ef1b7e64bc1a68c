"""The carrier of a pod: its container, its code and the volumes that it shares with the workload. Pure.

It starts before the workload and is ended after it, by the kubelet. A container of its own, so that images of workloads
need to have nothing of what it needs, and no workload sees the keys of a store that it only writes to.
"""

import json
from typing import Any, Final

from landbridge.domain import units
from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes import variables as told
from landbridge_dispatch.executors.kubernetes.records import Place
from landbridge_dispatch.executors.kubernetes.resolution import CONNECTIONS, Resolved
from landbridge_dispatch.executors.kubernetes.settings import S3, KubernetesSettings
from landbridge_dispatch.executors.protocol import Work

_CODE: Final = f"{names.ROOT}/code"
_TASK: Final = "LANDBRIDGE_CARRIER"


def code_volume(config_map: str) -> dict[str, Any]:
    """Return the volume with the carrier's modules as a package."""
    items = [
        {"key": f"{names.CARRIER}-{name}.py", "path": f"{names.CARRIER}/{name}.py"} for name in names.CARRIER_MODULES
    ]
    return {"name": "code", "configMap": {"name": config_map, "defaultMode": 0o444, "items": items}}


def reading_keys(variable_prefix: str, store: S3) -> list[dict[str, Any]]:
    """Return entries of a container's env for the keys of a store."""
    return [
        {"name": f"{variable_prefix}_{kind}", "valueFrom": {"secretKeyRef": {"name": store.secret, "key": key}}}
        for kind, key in store.keys().items()
    ]


def place_of(store: S3) -> dict[str, str]:
    """Return where a store is, as the carrier reads it."""
    return {"endpoint": store.endpoint, "bucket": store.bucket, "prefix": store.prefix, "region": store.region}


def runs(site: KubernetesSettings, module: str) -> dict[str, Any]:
    """Return what every container has that runs the carrier's code."""
    return {
        "image": site.carrier.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [site.carrier.python, "-m", module],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }


def code_variables() -> list[dict[str, Any]]:
    """Return what an interpreter needs to find the code, which it cannot compile into its volume."""
    return [{"name": "PYTHONPATH", "value": _CODE}, {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"}]


def json_value(task: dict[str, Any]) -> str:
    """Return a variable's value as the kubelet has to be given it."""
    return json.dumps(task, sort_keys=True).replace("$", "$$")


def code_mount() -> dict[str, Any]:
    """Return where the code lies."""
    return {"name": "code", "mountPath": _CODE, "readOnly": True}


def container(bindings: Bindings, work: Work, found: Resolved) -> dict[str, Any]:
    """Return the carrier's container, one of those that go with the workload's."""
    site = bindings.kubernetes
    stores = {name: found.stores[name] for name in sorted(found.carried)}
    task: dict[str, Any] = {
        "words": told.CARRIER,
        "stores": {
            name: {"place": place_of(store), "keys": f"STORE_{index}", "directory": f"{CONNECTIONS}/{name}"}
            for index, (name, store) in enumerate(stores.items())
        },
        "outputs": {name: _place(place) for name, place in found.outputs.items() if place.connection in stores},
    }
    if found.checkpoint is not None and found.checkpoint.connection in stores:
        task["checkpoint"] = _place(found.checkpoint)
        task["resume"] = _resume(work, found)
    return {
        "name": names.CARRIER,
        **runs(site, names.CARRIER),
        "restartPolicy": "Always",
        "env": [
            *code_variables(),
            {"name": _TASK, "value": json_value(task)},
            *(entry for index, store in enumerate(stores.values()) for entry in reading_keys(f"STORE_{index}", store)),
        ],
        "volumeMounts": [code_mount(), *mounts(found)],
    }


def volumes(site: KubernetesSettings, found: Resolved) -> list[dict[str, Any]]:
    """Return the volumes of both containers."""
    size = str(units.parse_bytes(site.work_size))
    return [
        code_volume(names.wrapper_name()),
        {"name": "carrier", "emptyDir": {"sizeLimit": "16Mi"}},
        *({"name": f"store-{index}", "emptyDir": {"sizeLimit": size}} for index in range(len(found.carried))),
    ]


def mounts(found: Resolved) -> list[dict[str, Any]]:
    """Return what workload and carrier both see."""
    shared = [{"name": "carrier", "mountPath": told.CARRIER}]
    return shared + [
        {"name": f"store-{index}", "mountPath": f"{CONNECTIONS}/{name}"}
        for index, name in enumerate(sorted(found.carried))
    ]


def _place(place: Place) -> dict[str, str]:
    return {"connection": place.connection, "path": place.path}


def _resume(work: Work, found: Resolved) -> dict[str, Any]:
    """Say where checkpoints of earlier attempts are: the carrier looks for later ones than the centre knows of."""
    assert found.checkpoint is not None
    own = found.checkpoint.path.rsplit("/", 1)[0]
    return {
        "connection": found.checkpoint.connection,
        "named": found.resume_path,
        "own": own,
        "epoch": [work.epoch.generation, work.epoch.counter],
    }
