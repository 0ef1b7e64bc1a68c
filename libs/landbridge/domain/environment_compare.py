"""Two environments side by side: control by control what is in force and proven in each, then what else they claim.

Two clusters are not equal because both run Kubernetes. Equal here means: the same is stated, and as well proven.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Final, NamedTuple

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate
from landbridge.domain.constraints.base import listed, moment
from landbridge.domain.constraints.controls import CONTROLS
from landbridge.domain.contract import OfferedClass, OfferedConnection, format_quantity
from landbridge.domain.evidence import FAILED, PROVEN
from landbridge.domain.units import format_bytes

NOT_STATED: Final = "not stated"
_PROVEN, _STALE, _FAILED, _UNKNOWN, _NOT_PROBED = "proven", "stale", "failed", "unknown", "not probed"
_WORST: Final = (_FAILED, _UNKNOWN, _STALE, _NOT_PROBED, _PROVEN)


class Side(NamedTuple):
    """What one environment says: `value` as claimed, `proof` the state of its evidence (empty: nothing to prove)."""

    value: str
    proof: str = ""
    detail: str = ""

    def __str__(self) -> str:
        told = ", ".join(filter(None, (self.value, self.proof)))
        return f"{told} ({self.detail})" if self.detail else told


class Row(NamedTuple):
    """One thing that is compared, with whether it is the same and as well proven on both sides."""

    section: str
    name: str
    left: Side
    right: Side

    @property
    def same(self) -> bool:
        return (self.left.value, self.left.proof) == (self.right.value, self.right.proof)


def compare(left: Candidate, right: Candidate, now: datetime) -> list[Row]:
    """Return every control, fact, class and connection of either environment."""
    rows = [Row("control", name, _control(left, name, now), _control(right, name, now)) for name in CONTROLS]
    rows += [Row("fact", name, Side(read(left)), Side(read(right))) for name, read in _FACTS.items()]
    rows.append(Row("fact", "runs work", _proof(left, claims.RUNTIME, now), _proof(right, claims.RUNTIME, now)))
    rows += _named("class", left.contract.classes, right.contract.classes, _class_of(left, now), _class_of(right, now))
    rows += _named(
        "connection",
        left.contract.connections,
        right.contract.connections,
        _connection_of(left, now),
        _connection_of(right, now),
    )
    return rows


def warnings(left: Candidate, right: Candidate) -> list[str]:
    """Return what is unwise about the pair: Kubernetes more than one minor version apart."""
    minors = [_minor(candidate.contract.runtime.kubernetes) for candidate in (left, right)]
    if None in minors or minors[0] == minors[1]:
        return []
    (major, minor), (other_major, other_minor) = minors[0] or (0, 0), minors[1] or (0, 0)
    if major == other_major and abs(minor - other_minor) <= 1:
        return []
    versions = f"{left.contract.runtime.kubernetes} and {right.contract.runtime.kubernetes}"
    return [f"Kubernetes {versions} are more than one minor version apart: what runs on one may not run on the other"]


def _minor(version: str) -> tuple[int, int] | None:
    parts = version.lstrip("v").split(".")
    return (int(parts[0]), int(parts[1])) if len(parts) > 1 and parts[0].isdigit() and parts[1].isdigit() else None


def _control(candidate: Candidate, name: str, now: datetime) -> Side:
    control = CONTROLS[name]
    stated = control.stated(candidate.contract)
    if stated is None:
        return Side(NOT_STATED)
    if not stated:
        return Side("not in force")
    proofs = [_proof(candidate, claim, now) for claim in control.claims(candidate.contract)]
    if not proofs:
        return Side("in force", "stated only")
    worst = min(proofs, key=lambda side: _WORST.index(side.proof))
    return worst._replace(value="in force")


def _proof(candidate: Candidate, claim: str, now: datetime) -> Side:
    state = candidate.evidence.get(claim)
    if state is None:
        return Side("", _NOT_PROBED)
    piece = state.decisive
    if state.result == PROVEN:
        fresh = now < state.expires
        return Side("", _PROVEN if fresh else _STALE, f"{'until' if fresh else 'since'} {moment(state.expires)}")
    told = ": ".join(filter(None, (piece.probe, piece.detail)))
    return Side("", _FAILED if state.result == FAILED else _UNKNOWN, told)


def _gangs(candidate: Candidate) -> str:
    """Say by which operator gangs of each framework run."""
    told = (
        f"{name} by {via.operator}" + (f", else {via.fallback}" if via.fallback else "")
        for name, via in candidate.contract.runtime.via.items()
    )
    return listed(told, "by Indexed Jobs" if candidate.contract.runtime.executor == "kubernetes" else NOT_STATED)


_FACTS: Final[Mapping[str, Callable[[Candidate], str]]] = {
    "security tier": lambda c: c.contract.boundaries.security_tier or NOT_STATED,
    "jurisdictions": lambda c: listed(c.jurisdictions, NOT_STATED),
    "regions": lambda c: listed(c.regions, NOT_STATED),
    "operated by": lambda c: c.contract.location.operated_by or NOT_STATED,
    "executor": lambda c: c.contract.runtime.executor or NOT_STATED,
    "kubernetes": lambda c: c.contract.runtime.kubernetes or "none",
    "operators": lambda c: listed(c.contract.runtime.operators),
    "gangs": _gangs,
    "architectures": lambda c: listed(c.contract.runtime.architectures, NOT_STATED),
    "workload types": lambda c: listed(c.contract.workloads),
    "roles": lambda c: listed(c.contract.boundaries.identity.roles) if c.contract.boundaries.identity else NOT_STATED,
    "accepts projects": lambda c: listed(c.contract.accepts.projects, "all"),
    "accepts images of": lambda c: listed(c.contract.accepts.images, "all"),
    "maintenance windows": lambda c: str(len(c.contract.maintenance)),
    "availability": lambda c: NOT_STATED if c.contract.availability is None else f"{c.contract.availability:.3%}",
}
_Read = Callable[[str], Side]


def _named(section: str, left: Iterable[str], right: Iterable[str], of_left: _Read, of_right: _Read) -> list[Row]:
    return [Row(section, name, of_left(name), of_right(name)) for name in sorted({*left, *right})]


def _class_of(candidate: Candidate, now: datetime) -> _Read:
    def side(name: str) -> Side:
        offer = candidate.contract.classes.get(name)
        if offer is None:
            return Side("not offered")
        return _proof(candidate, claims.capability_class(name), now)._replace(value=_class(offer))

    return side


def _class(offer: OfferedClass) -> str:
    parts = [str(offer.count) if offer.count is not None else "", _amount("cpu", offer.cpu)]
    parts.append(f"{format_bytes(offer.memory)}{' each' if offer.is_accelerator else ''}" if offer.memory else "")
    parts += [offer.product, offer.interconnect, "/".join(offer.precision), offer.driver]
    return " ".join(filter(None, parts)) or "offered"


def _amount(resource: str, amount: int | None) -> str:
    return f"{format_quantity(resource, amount)} {resource}" if amount is not None else ""


def _connection_of(candidate: Candidate, now: datetime) -> _Read:
    def side(name: str) -> Side:
        offer = candidate.contract.connections.get(name)
        if offer is None:
            return Side("not offered")
        return _proof(candidate, claims.connection(name), now)._replace(value=_connection(offer))

    return side


def _connection(offer: OfferedConnection) -> str:
    return " ".join(filter(None, (offer.type, offer.access, offer.region, offer.data_class)))
