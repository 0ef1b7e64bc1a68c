"""Which probes prove a contract: pure, from the contract's claims alone.

A probe is named after its claim and the contract version that introduced it (`connections.models@3`), so that the next
version's plan keeps the names, and the evidence, of all claims that did not change.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from landbridge.domain import claims, probe_kinds
from landbridge.domain.documents.canonical import canonical_json
from landbridge.schema.wire.command_v1 import Probe

# What an executor can prove. A claim that cannot be probed there stays without evidence: work that needs it waits.
_EVERY_BOUNDARY: Final = ("identity", "network", "admission", "tenancy", "controlPlane")
_BOUNDARIES: Final[Mapping[str, tuple[str, ...]]] = {
    "process": ("identity",),
    "simulated": _EVERY_BOUNDARY,
    # What a control plane is like no probe of ours tells yet.
    "kubernetes": ("identity", "network", "admission", "tenancy"),
    "slurm": ("identity",),
    "managed-endpoint": ("identity",),
}
_BOUNDARY_CLAIM: Final = {
    "identity": claims.IDENTITY,
    "network": claims.NETWORK,
    "admission": claims.ADMISSION,
    "tenancy": claims.TENANCY,
    "controlPlane": claims.CONTROL_PLANE,
}
# A managed endpoint cannot stop by itself; its work counts as `continue`.
_NO_SELF_STOP: Final = frozenset({"managed-endpoint"})
# What these find decides where work should run, not whether it may.
_MEASURED: Final = frozenset({probe_kinds.LINK, probe_kinds.CARBON, probe_kinds.BANDWIDTH})
# Of connections that hold data, where an executor can tell how fast they are.
_MEASURES_BANDWIDTH: Final = frozenset({"kubernetes"})
_HOLDS_DATA: Final = frozenset({"s3", "volume", "directory"})
# An environment may claim hundreds of connections; their probes are spread over more time rather than run at once.
_CONNECTIONS_PER_PERIOD: Final = 50


@dataclass(frozen=True, slots=True)
class Periods:
    """How often each kind is probed, in seconds; evidence lives for `missed_until_expiry` + 1 periods."""

    connection_s: int = 15
    capacity_s: int = 60
    runtime_s: int = 60
    boundary_s: int = 60
    link_s: int = 300
    self_stop_s: int = 600
    carbon_s: int = 300
    bandwidth_s: int = 600
    missed_until_expiry: int = 3


@dataclass(frozen=True, slots=True)
class _Pace:
    """How long probes may take, in seconds, and by what factor connections and boundaries are probed more rarely.

    A pod has to be placed, its image pulled and its volume made; each request is one to somebody else's API server.
    """

    workload_s: int = 30
    storage_s: int = 30
    connection_s: int = 5
    slower: int = 1


_PACE: Final[Mapping[str, _Pace]] = {"kubernetes": _Pace(workload_s=90, storage_s=120, connection_s=60, slower=2)}


@dataclass(frozen=True, slots=True)
class _Draft:
    """A probe before it has its name and its times."""

    claim: str
    kind: str
    claimed: object
    period_s: int
    timeout_s: int
    parameters: Mapping[str, str]
    suffix: str = ""


def plan(spec: Mapping[str, Any], version: int, periods: Periods, earlier: Iterable[Probe] = ()) -> tuple[Probe, ...]:
    """Return the probes for a contract's `spec`, sorted by name; unchanged ones keep their names from `earlier`."""
    names = {_content(probe): probe.name for probe in earlier}
    probes = (_probe(draft, version, periods.missed_until_expiry, names) for draft in _drafts(spec, periods))
    return tuple(sorted(probes, key=lambda probe: probe.name))


def united(plans: Iterable[Sequence[Probe]]) -> tuple[Probe, ...]:
    """Return what an environment has to run for several contract versions at once, each probe once."""
    found = {probe.name: probe for probes in plans for probe in probes}
    return tuple(found[name] for name in sorted(found))


def required(probes: Sequence[Probe]) -> tuple[Probe, ...]:
    """Return the probes that a new version must pass before it takes work: all but what is only measured."""
    return tuple(probe for probe in probes if probe.kind not in _MEASURED)


def _content(probe: Probe) -> bytes:
    return canonical_json([probe.claim, probe.kind, dict(probe.parameters)])


def _probe(draft: _Draft, version: int, missed: int, names: Mapping[bytes, str]) -> Probe:
    probe = Probe(
        name=f"{draft.claim}{draft.suffix}@{version}",
        claim=draft.claim,
        kind=draft.kind,
        period_seconds=draft.period_s,
        timeout_seconds=draft.timeout_s,
        expiry_seconds=draft.period_s * (missed + 1) + draft.timeout_s,
        parameters={"claimed": canonical_json(draft.claimed).decode(), **draft.parameters},
    )
    return msgspec.structs.replace(probe, name=names.get(_content(probe), probe.name))


def _drafts(spec: Mapping[str, Any], periods: Periods) -> Iterator[_Draft]:
    runtime = spec.get("runtime") or {}
    executor = str(runtime.get("executor", ""))
    pace = _PACE.get(executor, _Pace())
    yield _Draft(claims.RUNTIME, probe_kinds.WORKLOAD, runtime, periods.runtime_s, pace.workload_s, {})
    yield _Draft(claims.CLOCK, probe_kinds.CLOCK, None, periods.runtime_s, 10, {})
    if executor not in _NO_SELF_STOP:
        yield _Draft(claims.SELF_STOP, probe_kinds.SELF_STOP, runtime, periods.self_stop_s, 120, {})
    for name, offer in _items(spec, "classes"):
        claim = claims.capability_class(name)
        yield _Draft(claim, probe_kinds.CAPACITY, offer, periods.capacity_s, pace.workload_s, {"class": name})
    yield from _connections(spec, periods, pace)
    if executor in _MEASURES_BANDWIDTH:
        yield from _bandwidths(spec, periods, pace)
    for name, offer in _items(spec, "storage"):
        claim = claims.storage(name)
        yield _Draft(claim, probe_kinds.STORAGE, offer, periods.capacity_s, pace.storage_s, {"storage": name})
    for name, offer in _items(spec, "links"):
        yield _Draft(claims.link(name), probe_kinds.LINK, offer, periods.link_s, 60, {"environment": name})
    if (spec.get("carbon") or {}).get("measured"):
        yield _Draft(claims.CARBON, probe_kinds.CARBON, spec["carbon"], periods.carbon_s, 30, {})
    yield from _boundaries(spec, executor, periods.boundary_s * pace.slower, pace)


def _connections(spec: Mapping[str, Any], periods: Periods, pace: _Pace) -> Iterator[_Draft]:
    offers = _items(spec, "connections")
    period_s = pace.slower * periods.connection_s * (1 + (len(offers) - 1) // _CONNECTIONS_PER_PERIOD) if offers else 0
    for name, offer in offers:
        parameters = {
            "connection": name,
            "type": str(offer.get("type", "")),
            "access": str(offer.get("access") or "read-only"),
        }
        yield _Draft(claims.connection(name), probe_kinds.CONNECTION, offer, period_s, pace.connection_s, parameters)


def _bandwidths(spec: Mapping[str, Any], periods: Periods, pace: _Pace) -> Iterator[_Draft]:
    for name, offer in _items(spec, "connections"):
        if offer.get("type") in _HOLDS_DATA:
            parameters = {
                "connection": name,
                "type": str(offer["type"]),
                "access": str(offer.get("access") or "read-only"),
            }
            claim, kind = claims.bandwidth(name), probe_kinds.BANDWIDTH
            yield _Draft(claim, kind, offer, periods.bandwidth_s, pace.connection_s, parameters)


def _boundaries(spec: Mapping[str, Any], executor: str, period_s: int, pace: _Pace) -> Iterator[_Draft]:
    """Two probes for each boundary: what must be let through is, and what must be refused is."""
    stated = spec.get("boundaries") or {}
    tier = str(stated.get("securityTier", ""))
    if claims.tier_is_tried(executor, tier):
        parameters = {"boundary": "securityTier", "expect": probe_kinds.REFUSED}
        yield _Draft(claims.SECURITY_TIER, probe_kinds.BOUNDARY, {"securityTier": tier}, period_s, 30, parameters)
    for section in _BOUNDARIES.get(executor, ()):
        if not stated.get(section):
            continue
        for expect in (probe_kinds.ALLOWED, probe_kinds.REFUSED):
            parameters = {"boundary": section, "expect": expect}
            claim = _BOUNDARY_CLAIM[section]
            timeout_s = pace.workload_s if section == "network" else 30
            yield _Draft(claim, probe_kinds.BOUNDARY, stated[section], period_s, timeout_s, parameters, f".{expect}")


def _items(spec: Mapping[str, Any], section: str) -> list[tuple[str, Mapping[str, Any]]]:
    return sorted((spec.get(section) or {}).items())
