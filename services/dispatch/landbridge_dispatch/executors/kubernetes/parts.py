"""Makes what a slot needs beside its Job, from the Job alone, by server-side apply: done twice is done once."""

from typing import Any, Final

from landbridge_dispatch.executors.kubernetes import names, records
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, Object
from landbridge_dispatch.executors.kubernetes.objects import owned
from landbridge_dispatch.executors.kubernetes.operators.kinds import HTTPROUTE, KINDS, MADE, TRAININGRUNTIME

_PLURALS: Final = {
    "Service": "services",
    "Deployment": "deployments",
    "Ingress": "ingresses",
    **{kind.kind: kind.plural for kind in (HTTPROUTE, TRAININGRUNTIME)},
    "ResourceClaimTemplate": "resourceclaimtemplates",
    **{name: kind.plural for name, kind in KINDS.items()},
}
CREATED_ONCE: Final = frozenset({"ResourceClaimTemplate", TRAININGRUNTIME.kind, *(kind.kind for kind in MADE.values())})
"""Kinds whose spec is never changed: created, and left alone where they are there."""


async def make_parts(api: Api, job: Object) -> list[Object]:
    """Make them; return those that are created once.

    Raises ApiError, also where somebody else's object has the name.
    """
    made: list[Object] = []
    for part in records.read(job, names.PARTS, list[dict[str, Any]]) or ():
        item = owned(part, job)
        path = _path(item)
        if item["kind"] in CREATED_ONCE:
            made.append(await _create(api, path, item))
            continue
        found = await api.get(f"{path}/{item['metadata']['name']}")
        if found is not None and not _is_of(found, job):
            raise ApiError(409, "AlreadyExists", f"a {item['kind']} of that name belongs to somebody else")
        await api.apply(f"{path}/{item['metadata']['name']}", item)
    return made


async def _create(api: Api, path: str, item: Object) -> Object:
    try:
        return await api.create(path, item)
    except ApiError as error:
        if error.status != 409:
            raise
        found = await api.get(f"{path}/{item['metadata']['name']}")
        if found is None or item["metadata"]["ownerReferences"] != found["metadata"].get("ownerReferences"):
            raise
        return found


def _is_of(item: Object, job: Object) -> bool:
    owners = item["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == job["metadata"]["uid"] for owner in owners)


def _path(item: Object) -> str:
    version, namespace = item["apiVersion"], item["metadata"]["namespace"]
    root = "/api/v1" if version == "v1" else f"/apis/{version}"
    return f"{root}/namespaces/{namespace}/{_PLURALS[item['kind']]}"
