"""What a cluster's API told: objects as they came, and what could not be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Survey:
    """Objects by kind, from one reading. `unread` says why a kind is missing, by its plural name.

    `groups` are API groups, `kinds` what those of operators serve, as `plural.group`. `namespace` is where work is to
    run, if that was said; quotas, limits and network rules are those of it.
    """

    version: Object
    groups: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    nodes: tuple[Object, ...] = ()
    device_classes: tuple[Object, ...] = ()
    resource_slices: tuple[Object, ...] = ()
    storage_classes: tuple[Object, ...] = ()
    runtime_classes: tuple[Object, ...] = ()
    namespace: str = ""
    namespace_object: Object = field(default_factory=dict)
    quotas: tuple[Object, ...] = ()
    limit_ranges: tuple[Object, ...] = ()
    network_policies: tuple[Object, ...] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
