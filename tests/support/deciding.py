"""Operations and environments for tests of deciding: complete by default, changed by naming what differs."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from landbridge.domain import claims
from landbridge.domain.candidate import ACTIVE, Candidate, Control, Link, LinkState, build_candidate
from landbridge.domain.catalogue import Catalogue, build_catalogue
from landbridge.domain.catalogue_document import (
    read_class,
    read_connection,
    read_policy,
    read_project,
    read_queue,
    read_rule,
)
from landbridge.domain.classify import classify
from landbridge.domain.constraints import CONSTRAINTS
from landbridge.domain.contract import Contract
from landbridge.domain.contract_document import parse_contract
from landbridge.domain.evidence import ClaimState, Evidence, claim_states
from landbridge.domain.features import PROCESS_FEATURES
from landbridge.domain.requirements import RequirementClass
from landbridge.domain.violation import Violation

NOW = datetime(2026, 11, 30, 3, 0, tzinfo=UTC)
FRESH = timedelta(hours=1)
CONNECTED = Link(LinkState.CONNECTED, NOW - timedelta(days=1), frozenset(PROCESS_FEATURES), "process")

_SPEC: dict[str, Any] = {
    "type": "job",
    "queue": "training",
    "command": ["python", "train.py"],
    "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
}
_CONTRACT: dict[str, Any] = {
    "location": {"regions": ["eu-de-1"], "jurisdictions": ["DE", "EU"], "operatedBy": "own"},
    "runtime": {"executor": "process", "architectures": ["amd64"]},
    "workloads": ["job"],
    "classes": {"cpu-general": {"cpu": "64", "memory": "256Gi"}},
    "connections": {"events": {"type": "s3", "access": "read-only", "region": "eu-de-1", "projects": ["retail-eu"]}},
    "boundaries": {"securityTier": "restricted", "identity": {"roles": {"trainer": "local/trainer"}}},
    "cost": {"currency": "EUR", "perHour": {"cpu-general": 0.05}},
    "objectives": {"availability": "99.5%", "startWithin": "1m"},
}
_READERS = {
    "queues": read_queue,
    "projects": read_project,
    "policies": read_policy,
    "classes": read_class,
    "connections": read_connection,
    "rules": read_rule,
}


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge maps by name; None drops an entry; everything else replaces."""
    result = dict(base)
    for name, value in changes.items():
        if value is None:
            result.pop(name, None)
        elif isinstance(value, Mapping):
            before = result.get(name)
            result[name] = merged(before if isinstance(before, Mapping) else {}, value)
        else:
            result[name] = value
    return result


def effective(project: str = "retail-eu", name: str = "churn", **spec: Any) -> bytes:
    """An effective operation as intake publishes it. Keywords are fields of its spec."""
    document = {
        "apiVersion": "landbridge/v1",
        "kind": "Operation",
        "metadata": {"name": name, "project": project},
        "spec": merged(_SPEC, spec),
    }
    return json.dumps(document, sort_keys=True).encode()


def an_operation(
    project: str = "retail-eu", *, excluded: tuple[str, ...] = (), failed_over: bool = False, **spec: Any
) -> RequirementClass:
    return classify(effective(project, **spec), excluded=excluded, failed_over=failed_over)


def contract_document(name: str = "onprem-a", version: int = 1, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "landbridge/v1",
        "kind": "EnvironmentContract",
        "metadata": {"name": name, "version": version},
        "spec": merged(_CONTRACT, spec),
    }


def a_contract(name: str = "onprem-a", version: int = 1, **spec: Any) -> Contract:
    return parse_contract(contract_document(name, version, **spec))


def claims_of(contract: Contract) -> list[str]:
    """Every claim that a constraint may ask evidence for."""
    named = [claims.capability_class(name) for name in contract.classes]
    named += [claims.connection(name) for name in contract.connections]
    named += [claims.storage(name) for name in contract.storage]
    boundaries = [claims.IDENTITY, claims.NETWORK, claims.ADMISSION, claims.TENANCY, claims.CONTROL_PLANE]
    return [*named, claims.RUNTIME, claims.SECURITY_TIER, *boundaries]


def proof(claim: str, result: str = "proven", *, at: datetime = NOW, lasts: timedelta = FRESH, **more: Any) -> Evidence:
    return Evidence(claim, result, at, at + lasts, **{"probe": "probe-x", "subject": "node 1", **more})


def all_proven(contract: Contract, at: datetime = NOW, lasts: timedelta = FRESH) -> dict[str, Evidence]:
    return {claim: proof(claim, at=at, lasts=lasts) for claim in claims_of(contract)}


def states(pieces: Mapping[str, Evidence | None] | Iterable[Evidence]) -> dict[str, ClaimState]:
    found = pieces.values() if isinstance(pieces, Mapping) else pieces
    return claim_states(piece for piece in found if piece is not None)


def a_catalogue(*contracts: Contract, **documents: Mapping[str, Mapping[str, Any]]) -> Catalogue:
    """A catalogue; keywords are kinds (queues, projects, policies, classes, connections, rules) of specs by name."""
    read: dict[str, Any] = {
        kind: {name: _READERS[kind](name, 1, {"spec": spec}) for name, spec in named.items()}
        for kind, named in documents.items()
    }
    read.setdefault("queues", {"training": read_queue("training", 1, {"spec": {"priority": 50}})})
    return build_catalogue(contracts, **read)


def an_environment(
    name: str = "onprem-a",
    *,
    version: int = 1,
    phase: str = ACTIVE,
    evidence: Mapping[str, Evidence | None] | None = None,
    link: Link = CONNECTED,
    control: Control | None = None,
    catalogue: Catalogue | None = None,
    beside: Iterable[Contract] = (),
    **spec: Any,
) -> Candidate:
    """An environment of which everything is proven. `evidence` replaces (None: drops) pieces by claim; keywords are
    fields of the contract's spec; `beside` are other environments' contracts.
    """
    contract = a_contract(name, version, **spec)
    return build_candidate(
        contract,
        phase,
        evidence=states({**all_proven(contract), **(evidence or {})}),
        evidence_version=version,
        link=link,
        control=control or Control(),
        catalogue=catalogue or a_catalogue(contract, *beside),
    )


def judged_by(
    constraint: str, operation: RequirementClass, environment: Candidate, now: datetime = NOW
) -> tuple[Violation, ...]:
    """What one constraint has against an environment."""
    rule = next(rule for rule in CONSTRAINTS if rule.name == constraint)
    return rule.check(operation.requirements, environment, now)


def codes(
    constraint: str, operation: RequirementClass, environment: Candidate, now: datetime = NOW
) -> list[tuple[str, str]]:
    return [(violation.reason, str(violation.kind)) for violation in judged_by(constraint, operation, environment, now)]
