"""Capability classes that a cluster could offer: nodes and devices of a kind, counted together."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from landbridge.domain import units
from landbridge.domain.discovering.nodes import Node, Taint
from landbridge.domain.discovering.quantities import QuantityError, whole

_GIB: Final = 2**30
# Sizes under which devices are sold. Drivers report a little less: part of the memory is kept for error correction.
_SIZES: Final = (4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 94, 96, 128, 141, 144, 180, 192, 256, 288)
_KEPT_BACK: Final = 1.08
# Extended resources that compute. Others (network cards, FUSE, hugepages) are no capability class.
_ACCELERATORS: Final = re.compile(
    r"(nvidia\.com/(gpu|mig-(?P<mig>[0-9]g\.[0-9]+gb.*))(\.shared)?|amd\.com/gpu|gpu\.intel\.com/(i915|xe)|habana\.ai/gaudi"
    r"|google\.com/tpu|aws\.amazon\.com/neuron(core|device)?|huawei\.com/Ascend.*)"
)
_PRODUCT: Final = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "cloud.google.com/gke-accelerator")
_MEMORY_MI: Final = ("nvidia.com/gpu.memory", "amd.com/gpu.vram")


@dataclass(frozen=True, slots=True)
class Offer:
    """A class as it could be offered, in the form of a contract. `remarks` by field are for the person who reads."""

    name: str
    value: Mapping[str, Any]
    remarks: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Kind:
    """What makes devices equal."""

    resource: str
    device_class: str = ""
    product: str = ""
    memory: int = 0
    partition: str = ""
    interruptible: bool = False

    @property
    def name(self) -> str:
        vendor = (self.resource or self.device_class).partition("/")[0].rpartition(".")[0] or "device"
        family = "gpu" if "gpu" in self.resource + self.device_class or "mig" in self.resource else _slug(vendor)
        size = f"-{self.memory // _GIB}gb" if self.memory else ""
        if self.partition:
            size = f"-slice-{self.partition}"
        return _slug(f"{family}{size}{'-spot' if self.interruptible else ''}")


def find_offers(
    nodes: Sequence[Node], device_classes: Sequence[Mapping[str, Any]], slices: Sequence[Mapping[str, Any]]
) -> list[Offer]:
    """Return the classes that ready nodes make up, plain processors first."""
    ready = [node for node in nodes if node.ready]
    kinds: dict[_Kind, list[tuple[Node, int]]] = {}
    by_slices = _sliced(ready, device_classes, slices)
    for kind, node, count in (*by_slices, *_plugged(ready, {node.name for _, node, _ in by_slices})):
        kinds.setdefault(kind, []).append((node, count))
    taken = {node.name for held in kinds.values() for node, _ in held}
    found = list(_processors([node for node in ready if node.name not in taken]))
    names: dict[str, int] = {}
    shared = [kind.resource or kind.device_class for kind in kinds]
    for kind, held in sorted(kinds.items(), key=lambda entry: entry[0].name):
        names[kind.name] = names.get(kind.name, 0) + 1
        name = kind.name if names[kind.name] == 1 else f"{kind.name}-{names[kind.name]}"
        alone = shared.count(kind.resource or kind.device_class) == 1
        found.append(_accelerators(name, kind, held, alone=alone))
    return found


def _processors(nodes: Sequence[Node]) -> Iterator[Offer]:
    """One class for all plain nodes; tainted ones apart, since work has to ask for them."""
    groups: dict[tuple[Taint, ...], list[Node]] = {}
    for node in nodes:
        groups.setdefault(_firm(node.taints), []).append(node)
    number = 0
    for taints, held in sorted(groups.items()):
        if any("control-plane" in key for key, _, _ in taints):
            continue
        name = "cpu-general"
        if taints:
            number += 1
            name = f"cpu-tainted-{number}"
        value: dict[str, Any] = {
            "cpu": units.format_cpu(sum(node.cpu for node in held) // 1000 * 1000),
            "memory": units.format_bytes(sum(node.memory for node in held) // _GIB * _GIB),
        }
        remarks = {
            "cpu": f"allocatable on {_nodes(len(held))}; leave room for what else runs",
            "memory": f"at most {units.format_bytes(max(node.memory for node in held) >> 20 << 20)} in one pod",
        }
        if taints:
            value["via"] = _via("", "", {}, taints)
            remarks["via.tolerations"] = "tainted: is this meant for Landbridge's work?"
        yield Offer(name, value, remarks)


def _plugged(nodes: Iterable[Node], sliced: set[str]) -> Iterator[tuple[_Kind, Node, int]]:
    """Devices of device plug-ins; nodes whose devices are published for DRA as well count there."""
    for node in nodes:
        if node.name in sliced:
            continue
        for resource, count in node.devices.items():
            match = _ACCELERATORS.fullmatch(resource)
            if match is None:
                continue
            product = next((node.labels[label] for label in _PRODUCT if node.labels.get(label)), "")
            partition = match["mig"] or ""
            memory = next((node.labels[label] for label in _MEMORY_MI if node.labels.get(label)), "")
            size = 0 if partition else nominal(_bytes(f"{memory}Mi") if memory.isdecimal() else _bytes(memory))
            yield _Kind(resource, "", product, size, partition, node.interruptible), node, count


def _sliced(
    nodes: Sequence[Node], classes: Sequence[Mapping[str, Any]], slices: Sequence[Mapping[str, Any]]
) -> list[tuple[_Kind, Node, int]]:
    """Devices that drivers publish for DRA, where a device class of the driver exists."""
    by_name, counts = {node.name: node for node in nodes}, dict[tuple[_Kind, str], int]()
    for item in slices:
        spec = item.get("spec") or {}
        device_class, node = _class_of(classes, spec.get("driver", "")), by_name.get(spec.get("nodeName") or "")
        if not device_class or node is None:
            continue
        for device in spec.get("devices") or ():
            basic = device.get("basic") or device
            attributes = {key.rpartition("/")[2]: value for key, value in (basic.get("attributes") or {}).items()}
            capacity = {key.rpartition("/")[2]: value for key, value in (basic.get("capacity") or {}).items()}
            told = capacity.get("memory") or {}
            size = _bytes(str(told.get("value", "")) if isinstance(told, Mapping) else str(told))
            product = _text(attributes.get("productName")) or _text(attributes.get("model"))
            partition = _text(attributes.get("profile"))
            memory = 0 if partition else nominal(size)
            kind = _Kind("", device_class, product, memory, partition, node.interruptible)
            counts[kind, node.name] = counts.get((kind, node.name), 0) + 1
    return [(kind, by_name[name], count) for (kind, name), count in sorted(counts.items(), key=str)]


def _class_of(classes: Sequence[Mapping[str, Any]], driver: str) -> str:
    """Return the device class of a driver: one whose selectors name it, the one named like it first."""
    found = []
    for item in classes:
        name, selectors = item["metadata"]["name"], (item.get("spec") or {}).get("selectors") or ()
        told = " ".join(str((one.get("cel") or {}).get("expression", "")) for one in selectors)
        if driver and (name == driver or re.search(rf"""['"]{re.escape(driver)}['"]""", told)):
            found.append(name)
    return min(found, key=lambda name: (name != driver, len(name), name), default="")


def _accelerators(name: str, kind: _Kind, held: Sequence[tuple[Node, int]], *, alone: bool) -> Offer:
    counts = [count for _, count in held]
    value: dict[str, Any] = {"count": sum(counts), "perNode": min(counts)}
    remarks = {"count": f"on {_nodes(len(held))}"}
    if min(counts) != max(counts):
        remarks["perNode"] = f"the least of all nodes; others have up to {max(counts)}"
    if kind.memory:
        value["memory"] = units.format_bytes(kind.memory)
        remarks["memory"] = "of each device, as it is sold"
    if kind.partition:
        value["partition"] = kind.partition
    drivers = sorted({node.driver for node, _ in held if node.driver}, key=_numbers)
    if drivers:
        value["driver"] = f">={drivers[0]}"
        remarks["driver"] = "found: " + ", ".join(drivers)
    value["interruptible"] = kind.interruptible
    if kind.product:
        value["product"] = kind.product[:200]
    selector = {} if alone else _selector(kind, held)
    taints = tuple(sorted(set.intersection(*(set(_firm(node.taints)) for node, _ in held))))
    value["via"] = _via(kind.resource, kind.device_class, selector, taints)
    remarks["interruptible"] = "by the label of its provider" if kind.interruptible else "no label says that it is"
    return Offer(name, value, remarks)


def _selector(kind: _Kind, held: Sequence[tuple[Node, int]]) -> dict[str, str]:
    """Return a label that all of these nodes share, by which they are told from others with the same resource."""
    labels = [node.labels for node, _ in held]
    for label in _PRODUCT:
        if kind.product and all(found.get(label) == kind.product for found in labels):
            return {label: kind.product}
    return {}


def _nodes(count: int) -> str:
    return f"{count} ready node{'s' if count > 1 else ''}"


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"[0-9]+", version)]


def _firm(taints: Iterable[Taint]) -> tuple[Taint, ...]:
    return tuple(sorted(taint for taint in taints if taint[2] in ("NoSchedule", "NoExecute")))


def _via(resource: str, device_class: str, selector: Mapping[str, str], taints: Sequence[Taint]) -> dict[str, Any]:
    via: dict[str, Any] = {}
    if device_class:
        via["deviceClass"] = device_class
    if resource:
        via["resource"] = resource
    if selector:
        via["nodeSelector"] = dict(selector)
    if taints:
        via["tolerations"] = [
            {"key": key, "operator": "Equal", "value": value, "effect": effect}
            if value
            else {"key": key, "operator": "Exists", "effect": effect}
            for key, value, effect in taints
        ]
    return via


def nominal(size: int) -> int:
    """Bytes of a device as it is sold, for bytes as its driver reports them; a whole number of Gi; 0 for none."""
    gib = size / _GIB
    for known in _SIZES:
        if gib <= known <= gib * _KEPT_BACK:
            return known * _GIB
    return int(gib) * _GIB


def _text(value: Any) -> str:
    """Return an attribute of a device, whatever its type."""
    if isinstance(value, Mapping):
        return str(next(iter(value.values()), ""))
    return "" if value is None else str(value)


def _bytes(text: str) -> int:
    try:
        return max(0, whole(text))
    except QuantityError:
        return 0


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60] or "device"
