"""Which classes of an environment can serve a request for accelerators now, and what stands against each of the others.

Whoever asks for a class, or for attributes, is served by any class that fits. Each is judged for itself: that one of
them is paused, too small or not proven stands against none of the others.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import earliest, listed
from landbridge.domain.constraints.proof import proven_until, unproven
from landbridge.domain.contract import OfferedClass
from landbridge.domain.features import ASSIGNED_CLASS
from landbridge.domain.hardware import Mismatch, fits, image_variant_for
from landbridge.domain.requirements import AcceleratorNeed, Requirements
from landbridge.domain.violation import Kind, Violation, Violations

NAME: Final = "hardware"
# So many classes that come less near are told beside the nearest.
_MOST_TOLD: Final = 3


class Judged(NamedTuple):
    """One class in question, with what stands against it; whether it is paused is not looked at."""

    offer: OfferedClass
    violations: Violations


def judged(requirements: Requirements, candidate: Candidate, now: datetime) -> Iterator[Judged]:
    """Yield every class in question for the accelerators that are asked for, the one to prefer first."""
    need = requirements.accelerator
    if need is None:
        return
    for offer, mismatches in fits(need, candidate):
        violations = [_mismatch(mismatch, offer) for mismatch in mismatches]
        violations += _amounts(need, requirements.replicas, offer, candidate)
        missing = unproven(NAME, candidate, claims.capability_class(offer.name), now)
        if missing is not None:
            violations.append(missing)
        if offer.name != need.name and (unassigned := _unassigned(need, offer, candidate)) is not None:
            violations.append(unassigned)
        if not image_variant_for(offer.name, requirements, candidate):
            wanted = f"an image variant for class {offer.name}"
            violations.append(Violation(NAME, "no-image-variant", Kind.NEVER, wanted, "variants for others"))
        yield Judged(offer, tuple(violations))


def serving(requirements: Requirements, candidate: Candidate, now: datetime) -> tuple[str, ...]:
    """Name the classes that can serve the request now, the one to prefer first; none if no accelerators are wanted."""
    if requirements.accelerator is None:
        return ()
    return tuple(
        offer.name
        for offer, violations in judged(requirements, candidate, now)
        if not violations and offer.name not in candidate.held
    )


def serving_until(requirements: Requirements, candidate: Candidate, now: datetime) -> datetime | None:
    """Return when the first of the classes in question stops being proven by itself; None: none of them is."""
    need = requirements.accelerator
    if need is None:
        return None
    return earliest(
        proven_until(candidate, claims.capability_class(offer.name), now) for offer, _ in fits(need, candidate)
    )


def nearest_of(found: Sequence[Judged]) -> Judged:
    """Return the class that comes nearest: passing obstacles are nearer than lasting ones; then the fewest count."""
    return min(found, key=_distance)


def against_all(found: Sequence[Judged]) -> Violations:
    """Return what stands against the class that comes nearest, with what stands against others told in its words."""
    nearest = nearest_of(found)
    others = [each for each in found if each is not nearest][:_MOST_TOLD]
    if not others:
        return nearest.violations
    told = "".join(f"; nor class {offer.name} ({_against(violations)})" for offer, violations in others)
    more = len(found) - 1 - len(others)
    told += f"; nor {more} more" if more else ""
    first = nearest.violations[0]
    return (first._replace(found=first.found + told), *nearest.violations[1:])


def _distance(each: Judged) -> tuple[bool, int]:
    return any(v.kind is not Kind.NOT_NOW for v in each.violations), len(each.violations)


def _against(violations: Violations) -> str:
    return ", ".join(f"{violation.reason}: {violation.found}" for violation in violations)


def _mismatch(mismatch: Mismatch, offer: OfferedClass) -> Violation:
    reason, wanted, found = mismatch
    kind = Kind.MISCONFIGURED if reason == "below-guarantee" else Kind.NEVER
    return Violation(NAME, reason, kind, wanted, f"{found} in class {offer.name}")


def _amounts(need: AcceleratorNeed, replicas: int, offer: OfferedClass, candidate: Candidate) -> Iterator[Violation]:
    name = offer.name
    total, claimed, proven = need.count * replicas, candidate.claimed.get(name, 0), candidate.proven.get(name, 0)
    if offer.per_node is not None and need.count > offer.per_node:
        wanted = f"{need.count} of class {name} on one node"
        yield Violation(NAME, "count-exceeds-node", Kind.NEVER, wanted, f"{offer.per_node} on a node")
    wanted = f"{total} of class {name}"
    if total > claimed:
        yield Violation(NAME, "count-exceeds-capacity", Kind.NEVER, wanted, f"{claimed} claimed")
    elif total > proven:
        found = f"{proven} proven of {claimed} claimed"
        yield Violation(NAME, "capacity-not-proven", Kind.NOT_NOW, wanted, found)


def _unassigned(need: AcceleratorNeed, offer: OfferedClass, candidate: Candidate) -> Violation | None:
    """Tell of a dispatcher that knows only the class that an operation names. Of one that is not known, nothing."""
    features = candidate.link.features
    if not features or ASSIGNED_CLASS in features:
        return None
    wanted = f"a dispatcher that understands {ASSIGNED_CLASS}, to use class {offer.name} for {need.told}"
    found = f"one that understands {listed(features)}"
    return Violation(NAME, "class-not-assignable", Kind.MISCONFIGURED, wanted, found)
