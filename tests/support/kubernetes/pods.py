"""What only pods have: logs, binding, eviction; and the scale of what makes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from support.kubernetes.api import Api, Call
from support.kubernetes.errors import Object, bad_request, conflict
from support.kubernetes.ownership import now

RETURNED_WHEN_DELETED = frozenset(
    ("", plural)
    for plural in [
        "pods",
        "services",
        "serviceaccounts",
        "persistentvolumeclaims",
        "persistentvolumes",
        "resourcequotas",
    ]
)


@dataclass
class Logs:
    """What containers wrote, by namespace, pod and container."""

    texts: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def write(self, namespace: str, pod: str, container: str, text: str) -> None:
        self.texts[namespace, pod, container] = self.texts.get((namespace, pod, container), "") + text

    def read(self, pod: Object, query: Mapping[str, str]) -> bytes | None:
        """None: no node has the pod yet. Raises a 400 for a container that has not started."""
        meta = pod["metadata"]
        names = [container["name"] for container in pod["spec"]["containers"]]
        container = query.get("container", "")
        if not container and len(names) > 1:
            raise bad_request(
                f"a container name must be specified for pod {meta['name']}, choose one of: [{' '.join(names)}]"
            )
        container = container or names[0]
        known = {*names, *(item["name"] for item in pod["spec"].get("initContainers") or ())}
        if container not in known:
            raise bad_request(f"container {container} is not valid for pod {meta['name']}")
        if not pod["spec"].get("nodeName"):
            return None
        status = pod.get("status") or {}
        told = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
        state: Object = next((item.get("state") or {} for item in told if item["name"] == container), {"waiting": {}})
        if "waiting" in state:
            why = state["waiting"].get("reason", "ContainerCreating")
            raise bad_request(f'container "{container}" in pod "{meta["name"]}" is waiting to start: {why}')
        body = self.texts.get((meta["namespace"], meta["name"], container), "").encode()
        if query.get("tailLines"):
            lines = body.splitlines(keepends=True)
            body = b"".join(lines[max(0, len(lines) - int(query["tailLines"])) :])
        if query.get("limitBytes"):
            body = body[: int(query["limitBytes"])]
        return body


def bind(api: Api, call: Call, body: Object) -> Object:
    """What a scheduler does."""
    pod = api.get(call)
    if (body.get("metadata") or {}).get("name") != call.name:
        raise bad_request("the name of the object does not match the name on the URL")
    if pod["spec"].get("nodeName"):
        why = f'pod {call.name} is already assigned to node "{pod["spec"]["nodeName"]}"'
        raise conflict("pods/binding", call.name, why)
    if not call.dry_run:
        pod["spec"]["nodeName"] = body["target"]["name"]
        conditions = [item for item in pod["status"].get("conditions") or () if item["type"] != "PodScheduled"]
        conditions.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": now()})
        pod["status"]["conditions"] = conditions
        api.store.put(call.key, pod)
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def evict(api: Api, call: Call, body: Object) -> Object:
    """Delete a pod as a drain does; its status says so first."""
    pod = api.get(call)
    if not call.dry_run:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
            "lastTransitionTime": now(),
        }
        pod["status"]["conditions"] = [*(pod["status"].get("conditions") or ()), condition]
        api.store.put(call.key, pod)
        api.delete(call, body.get("deleteOptions") or {})
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def scale_of(item: Object) -> Object:
    meta = {
        name: item["metadata"][name] for name in ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    }
    labels = item["spec"]["selector"]["matchLabels"]
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": meta,
        "spec": {"replicas": item["spec"]["replicas"]},
        "status": {
            "replicas": (item.get("status") or {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in labels.items()),
        },
    }
