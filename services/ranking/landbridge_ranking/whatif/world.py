"""The book that a scenario's decisions are made from: its documents, with everything proven and every link up."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from landbridge.domain import claims
from landbridge.domain.contract import Contract
from landbridge.domain.contract_document import parse_contract
from landbridge.domain.documents.kinds import KINDS
from landbridge.domain.features import (
    DISCONNECTION_POLICIES,
    IMAGE,
    PROCESS_FEATURES,
    SOURCE,
    WORKLOAD_TYPES,
    disconnection_feature,
    type_feature,
)
from landbridge.schema.wire import event_v1, report_v1
from landbridge_ranking.book import Book
from landbridge_ranking.whatif.files import Documents
from landbridge_ranking.whatif.machines import ANY_DOCUMENT, Machines
from landbridge_ranking.whatif.problems import ScenarioError

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_FOREVER: Final = datetime(9999, 1, 1, tzinfo=UTC)
_FEATURES: Final = frozenset(
    {
        *PROCESS_FEATURES,
        *(type_feature(each) for each in WORKLOAD_TYPES),
        *(disconnection_feature(each) for each in DISCONNECTION_POLICIES),
        IMAGE,
        SOURCE,
    }
)
_NOT_SHOWN: Final = frozenset({"Operation", "EnvironmentContract", "Preset", "Component"})
_encode = msgspec.json.Encoder().encode


def make_book(documents: Documents, machines: Machines | None, preferences: Mapping[str, float]) -> Book:
    """Build a book as a replica builds it from its streams. ScenarioError if no environment is described.

    `preferences`, where there are any, replace those of policies and projects.
    """
    contracts = _contracts(documents, machines)
    if not contracts:
        raise ScenarioError("spec.documents: expected at least one EnvironmentContract, found none")
    book = Book()
    for kind, value in _catalogue(documents, machines, preferences):
        entry = event_v1.CatalogueEntry(
            kind=KINDS[kind].slug,
            name=value["metadata"]["name"],
            version=int(value["metadata"].get("version", 1)),
            document=json.dumps(value).encode(),
            at=START,
        )
        book.view.apply_document(_encode(entry), 1)
    for name, value in contracts.items():
        for event, body in _environment(name, value):
            book.view.apply_environment(event, name, _encode(body), 1)
    book.settle()
    return book


def _contracts(documents: Documents, machines: Machines | None) -> dict[str, dict[str, Any]]:
    found = dict(documents.of("EnvironmentContract"))
    if machines is None:
        return found
    for name in machines.models:
        if name not in found:
            raise ScenarioError(f"spec.machines.environments: {name} has no EnvironmentContract among the documents")
        spec = dict(found[name]["spec"])
        spec["classes"] = {**spec.get("classes", {}), **machines.classes(name)}
        found[name] = {**found[name], "spec": spec}
    return found


def _catalogue(
    documents: Documents, machines: Machines | None, preferences: Mapping[str, float]
) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind, named in documents.by_kind.items():
        if kind in _NOT_SHOWN or (kind == "Policy" and preferences):
            continue
        for value in named.values():
            yield kind, _without_preferences(value) if preferences else value
    if machines is not None:
        yield "CapabilityClass", ANY_DOCUMENT
    if preferences:
        yield "Policy", {"metadata": {"name": "of-the-scenario"}, "spec": {"preferences": dict(preferences)}}


def _without_preferences(value: dict[str, Any]) -> dict[str, Any]:
    spec = {name: part for name, part in value.get("spec", {}).items() if name not in ("preferences", "policy")}
    return {**value, "spec": spec}


def _environment(name: str, value: dict[str, Any]) -> Iterator[tuple[str, msgspec.Struct]]:
    document = json.dumps(value).encode()
    contract = parse_contract(document)
    version = event_v1.ContractVersion(version=contract.version, phase="active", document=document, sha256="0")
    yield "contract", event_v1.EnvironmentContractChanged(environment=name, at=START, versions=(version,))
    items = tuple(
        report_v1.Evidence(
            claim=claim,
            result=report_v1.EvidenceResult.PROVEN,
            at=START,
            expires=_FOREVER,
            probe="assumed",
            subject=name,
        )
        for claim in _claims(contract)
    )
    yield (
        "evidence",
        event_v1.EnvironmentEvidence(environment=name, at=START, contract_version=contract.version, items=items),
    )
    features = tuple(sorted(_FEATURES))
    yield (
        "link",
        event_v1.EnvironmentLink(
            environment=name,
            state=event_v1.LinkState.CONNECTED,
            since=START,
            features=features,
            executor=contract.runtime.executor,
        ),
    )


def _claims(contract: Contract) -> list[str]:
    named = [claims.capability_class(name) for name in contract.classes]
    named += [claims.connection(name) for name in contract.connections]
    named += [claims.storage(name) for name in contract.storage]
    named += [claims.link(name) for name in contract.links]
    return [*named, claims.RUNTIME, claims.IDENTITY]
