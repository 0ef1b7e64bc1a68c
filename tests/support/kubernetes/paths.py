"""Paths of the API, taken apart."""

from dataclasses import dataclass

from support.kubernetes.resources import Resource, Served


@dataclass(frozen=True)
class Target:
    """What a path names. `name` empty: the collection."""

    resource: Resource
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse(served: Served, path: str) -> Target | None:
    """Return what `/api/v1/…` or `/apis/<group>/<version>/…` names; None for what is not served."""
    parts = [part for part in path.split("/") if part]
    if parts[:2] == ["api", "v1"]:
        group, version, rest = "", "v1", parts[2:]
    elif parts[:1] == ["apis"] and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3:
        return None
    resource = served.get(group, version, rest[0])
    if resource is None or (namespace and not resource.namespaced):
        return None
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if name and resource.namespaced and not namespace:
        return None
    if subresource and subresource not in resource.subresources:
        return None
    return Target(resource, namespace, name, subresource)
