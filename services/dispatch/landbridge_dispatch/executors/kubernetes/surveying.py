"""Read what a cluster offers. Reading only, and what may not be read is told rather than missed."""

import asyncio
from typing import Final

from landbridge.domain.discovering import Survey
from landbridge.domain.discovering.draft import OPERATOR_GROUPS
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, Object

_NODES: Final = "/api/v1/nodes"
_DEVICES: Final = "/apis/resource.k8s.io/{version}/{plural}"
_STORAGE: Final = "/apis/storage.k8s.io/v1/storageclasses"
_RUNTIMES: Final = "/apis/node.k8s.io/v1/runtimeclasses"


async def survey(api: Api, namespace: str = "") -> Survey:
    """Read everything that a contract can be drafted from. `namespace`: where work is to run, if that is known.

    Raises ApiError if not even the version can be read.
    """
    version = await api.get("/version") or {}
    groups = await api.get("/apis") or {}
    unread: dict[str, str] = {}

    async def read(path: str) -> tuple[Object, ...]:
        plural = path.rpartition("/")[2]
        try:
            items, _ = await api.list(path)
        except ApiError as error:
            if error.status != 404:
                unread[plural] = error.reason or "no answer"
            return ()
        return tuple(items)

    devices = _devices_version(groups)
    paths = [_NODES, _STORAGE, _RUNTIMES]
    paths += [_DEVICES.format(version=devices, plural=plural) for plural in ("deviceclasses", "resourceslices")]
    if namespace:
        paths += [f"/api/v1/namespaces/{namespace}/{plural}" for plural in ("resourcequotas", "limitranges")]
        paths.append(f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies")
    found = dict(zip((path.rpartition("/")[2] for path in paths), await asyncio.gather(*map(read, paths)), strict=True))
    return Survey(
        version=version,
        groups=tuple(group["name"] for group in groups.get("groups") or ()),
        kinds=await _kinds(api, groups, unread),
        nodes=found["nodes"],
        device_classes=found["deviceclasses"],
        resource_slices=found["resourceslices"],
        storage_classes=found["storageclasses"],
        runtime_classes=found["runtimeclasses"],
        namespace=namespace,
        namespace_object=await _namespace(api, namespace, unread) if namespace else {},
        quotas=found.get("resourcequotas", ()),
        limit_ranges=found.get("limitranges", ()),
        network_policies=found.get("networkpolicies", ()),
        unread=unread,
    )


async def _kinds(api: Api, groups: Object, unread: dict[str, str]) -> frozenset[str]:
    """Return what is served in the groups of operators that are known, as `plural.group`."""
    found: set[str] = set()
    for group in groups.get("groups") or ():
        if group["name"] not in OPERATOR_GROUPS:
            continue
        for version in group["versions"]:
            try:
                listed = await api.get(f"/apis/{version['groupVersion']}") or {}
            except ApiError as error:
                unread[f"kinds of {group['name']}"] = error.reason or "no answer"
                continue
            found |= {f"{item['name']}.{group['name']}" for item in listed.get("resources") or ()}
    return frozenset(found)


def _devices_version(groups: Object) -> str:
    """Return the best version of the API for devices (DRA) that is served; the lists of one that is not are empty."""
    for group in groups.get("groups") or ():
        if group["name"] == "resource.k8s.io":
            served = [one["version"] for one in group["versions"]]
            return next((known for known in ("v1", "v1beta2", "v1beta1") if known in served), "v1")
    return "v1"


async def _namespace(api: Api, namespace: str, unread: dict[str, str]) -> Object:
    try:
        found = await api.get(f"/api/v1/namespaces/{namespace}")
    except ApiError as error:
        unread["namespaces"] = error.reason or "no answer"
        return {}
    if found is None:
        unread["namespaces"] = f"there is no namespace {namespace}"
    return found or {}
