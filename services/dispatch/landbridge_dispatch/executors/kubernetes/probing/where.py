"""Where work may go: to nodes that are proven. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

NAMED_MAX: Final = 100
"""Up to so many nodes are named one by one; of more, those that are not proven are kept out instead."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The nodes of one class as they were found last. `plain`: a class without devices."""

    proven: frozenset[str]
    unproven: frozenset[str]
    plain: bool


def affinity(proofs: Iterable[Proof]) -> dict[str, Any]:
    """Return a pod's affinity to nodes that any of the proofs is about; empty where nothing was probed yet.

    Where nothing is proven there is no capacity either, and no work comes: nothing needs to be kept out.
    """
    known = list(proofs)
    proven = frozenset[str]().union(*(proof.proven for proof in known))
    unproven = frozenset[str]().union(*(proof.unproven for proof in known)) - proven
    if not proven:
        return {}
    if len(proven) <= NAMED_MAX:
        terms = [{"matchFields": [_named("In", name)]} for name in sorted(proven)]
    elif unproven:
        terms = [{"matchFields": [_named("NotIn", name) for name in sorted(unproven)]}]
    else:
        return {}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _named(operator: str, name: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": operator, "values": [name]}
