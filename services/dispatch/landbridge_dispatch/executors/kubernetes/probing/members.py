"""Which nodes make up a capability class, and how much each of them brings. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from landbridge.domain.discovering.nodes import Node
from landbridge_dispatch.executors.kubernetes.settings import KubernetesSettings, ReachedClass, Toleration


@dataclass(frozen=True, slots=True)
class Member:
    """A node of a class. `amount` is in the class's own unit: devices, or processors."""

    node: Node
    amount: float


@dataclass(frozen=True, slots=True)
class Reach:
    """How a class is reached: by the site's bindings where they say, else as its contract says."""

    resource: str = ""
    device_class: str = ""
    claim_template: str = ""
    node_selector: Mapping[str, str] | None = None
    tolerations: tuple[Toleration, ...] = ()
    runtime_class: str = ""


def reach_of(site: KubernetesSettings, name: str, offer: Mapping[str, Any]) -> Reach:
    """Bring both together; selectors and tolerations that hold for all work of the site count too."""
    bound, via = site.classes.get(name), offer.get("via") or {}
    if bound is None:
        tolerated = tuple(Toleration(**each) for each in via.get("tolerations") or ())
        bound = ReachedClass(
            resource=via.get("resource", ""),
            device_class="" if via.get("resource") else via.get("deviceClass", ""),
            node_selector=via.get("nodeSelector") or {},
            tolerations=tolerated,
        )
    return Reach(
        bound.resource,
        bound.device_class,
        bound.claim_template,
        {**site.node_selector, **bound.node_selector},
        (*site.tolerations, *bound.tolerations),
        bound.runtime_class,
    )


def members_of(
    nodes: Iterable[Node], reach: Reach, *, counted: bool, published: Mapping[str, int], plain: bool = True
) -> list[Member]:
    """Return the nodes on which work of a class could run, by name.

    `counted`: the class is one of devices. `published`: devices for claims (DRA) by node. `plain`: a class without
    devices leaves nodes with devices to their classes where these are tainted, since its work does not tolerate them.
    """
    found = []
    for node in sorted(nodes, key=lambda item: item.name):
        if not node.ready or not _selected(node, reach.node_selector or {}) or not _tolerated(node, reach.tolerations):
            continue
        amount: float = node.cpu / 1000 if plain and not counted else 0
        if counted:
            amount = node.devices.get(reach.resource, 0) if reach.resource else published.get(node.name, 0)
        if amount > 0:
            found.append(Member(node, amount))
    return found


def published_devices(slices: Iterable[Mapping[str, Any]], drivers: frozenset[str]) -> dict[str, int]:
    """Count the devices that drivers publish for claims, by node."""
    counts: dict[str, int] = {}
    for item in slices:
        spec = item.get("spec") or {}
        if spec.get("driver") in drivers and spec.get("nodeName"):
            counts[spec["nodeName"]] = counts.get(spec["nodeName"], 0) + len(spec.get("devices") or ())
    return counts


def _selected(node: Node, selector: Mapping[str, str]) -> bool:
    return all(node.labels.get(key) == value for key, value in selector.items())


def _tolerated(node: Node, tolerations: Iterable[Toleration]) -> bool:
    held = tuple(tolerations)
    return all(
        effect not in ("NoSchedule", "NoExecute") or any(_tolerates(one, key, value, effect) for one in held)
        for key, value, effect in node.taints
    )


def _tolerates(one: Toleration, key: str, value: str, effect: str) -> bool:
    if one.effect and one.effect != effect:
        return False
    if one.operator == "Exists":
        return one.key in ("", key)
    return one.key == key and one.value == value
