"""A replica's view: every message is the whole value of its subject; what did not change stays the same object."""

import json
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from landbridge.domain.candidate import LinkState
from landbridge.domain.placement import ScoreCard, rank
from landbridge.domain.preferences import NOTHING_OBSERVED
from landbridge.domain.preferences.cost import Cost
from landbridge.domain.view import View
from landbridge.schema.wire import event_v1, report_v1
from support.deciding import NOW, an_operation, contract_document

_encode = msgspec.json.Encoder().encode


def contract(name: str = "onprem-a", *versions: tuple[int, str], **spec: Any) -> bytes:
    items = [
        event_v1.ContractVersion(
            version=version,
            phase=phase,
            document=msgspec.json.encode(contract_document(name, version, **spec)),
            sha256=f"{version}-{sorted(spec)}",
        )
        for version, phase in (versions or ((1, "active"),))
    ]
    return _encode(event_v1.EnvironmentContractChanged(environment=name, at=NOW, versions=tuple(items)))


def evidence(result: str = "proven", version: int = 1) -> bytes:
    item = report_v1.Evidence(
        claim="classes.cpu-general",
        result=report_v1.EvidenceResult(result),
        at=NOW,
        expires=NOW + timedelta(hours=1),
    )
    return _encode(
        event_v1.EnvironmentEvidence(environment="onprem-a", at=NOW, contract_version=version, items=(item,))
    )


def link(state: str = "connected") -> bytes:
    return _encode(event_v1.EnvironmentLink(environment="onprem-a", state=event_v1.LinkState(state), since=NOW))


def document(kind: str, name: str, spec: dict[str, Any], *, deleted: bool = False) -> bytes:
    body = json.dumps({"spec": spec}).encode()
    entry = event_v1.CatalogueEntry(kind=kind, name=name, version=3, document=body, deleted=deleted, at=NOW)
    return _encode(entry)


def a_view() -> View:
    view = View()
    view.apply_environment("contract", "onprem-a", contract(), 1)
    view.apply_environment("link", "onprem-a", link(), 2)
    view.settle()
    return view


def test_an_environment_appears_with_its_contract_and_goes_with_its_last_version() -> None:
    view = a_view()
    assert list(view.candidates) == ["onprem-a"]
    nothing = _encode(event_v1.EnvironmentContractChanged(environment="onprem-a", at=NOW, versions=()))
    view.apply_environment("contract", "onprem-a", nothing, 3)
    assert view.settle().environments == {"onprem-a"}
    assert not view.candidates


def test_what_did_not_change_stays_the_same_object() -> None:
    view = a_view()
    [before] = view.candidates["onprem-a"]
    view.apply_environment("evidence", "onprem-a", evidence(), 3)
    changes = view.settle()
    [after] = view.candidates["onprem-a"]
    assert changes.environments == {"onprem-a"}
    assert not changes.catalogue
    assert after.contract is before.contract
    assert after.catalogue is before.catalogue
    assert after.evidence != before.evidence


def test_a_message_that_says_what_is_known_changes_nothing() -> None:
    view = a_view()
    revision = view.revision
    assert not view.apply_environment("link", "onprem-a", link(), 9)
    assert not view.settle()
    assert view.revision == revision
    assert view.inputs() == {"environments": "9", "catalogue": "0"}


def test_a_document_changes_the_catalogue_of_every_candidate() -> None:
    view = a_view()
    view.apply_document(document("queue", "training", {"concurrency": 4}), 1)
    changes = view.settle()
    assert changes.catalogue
    [candidate] = view.candidates["onprem-a"]
    assert candidate.catalogue.queues["training"].concurrency == 4
    view.apply_document(document("queue", "training", {}, deleted=True), 2)
    view.settle()
    [candidate] = view.candidates["onprem-a"]
    assert "training" not in candidate.catalogue.queues


def test_documents_that_deciding_does_not_read_are_passed_over() -> None:
    view = a_view()
    assert not view.apply_document(document("access", "ann", {}), 1)
    assert not view.settle()


def test_of_two_active_versions_each_has_its_own_evidence_and_what_only_one_offers_is_limited_too() -> None:
    """An old class that the new version leaves out goes on having a limit, and the newest says how much there is."""
    old = contract_document("onprem-a", 1, classes={"gpu-old": {"count": 4, "memory": "24Gi"}})
    new = contract_document("onprem-a", 2, classes={"cpu-general": {"cpu": "128", "memory": "256Gi"}})
    versions = tuple(
        event_v1.ContractVersion(version=number, phase="active", document=msgspec.json.encode(body), sha256=str(number))
        for number, body in ((1, old), (2, new))
    )
    claims = ("classes.cpu-general", "classes.gpu-old")
    items = tuple(
        report_v1.Evidence(
            claim=claim, result=report_v1.EvidenceResult.PROVEN, at=NOW, expires=NOW + timedelta(hours=1)
        )
        for claim in claims
    )
    told = event_v1.EnvironmentEvidence(
        environment="onprem-a",
        at=NOW,
        contract_version=2,
        items=items[:1],
        previous=event_v1.PreviousEvidence(contract_version=1, items=items),
    )
    view = View()
    changed = event_v1.EnvironmentContractChanged(environment="onprem-a", at=NOW, versions=versions)
    view.apply_environment("contract", "onprem-a", _encode(changed), 1)
    view.apply_environment("evidence", "onprem-a", _encode(told), 2)
    view.settle()
    newest, before = view.candidates["onprem-a"]
    assert (set(newest.evidence), set(before.evidence)) == ({claims[0]}, set(claims))
    capacity = view.capacity()["onprem-a"]
    assert (capacity["cpu"], capacity["gpu-old"]) == (128_000, 4)


def test_a_draft_changes_nothing_for_anybody() -> None:
    """What it says of regions, prices and names would otherwise count for other environments, too."""
    view = a_view()
    known, before = view.catalogue, view.candidates["onprem-a"]
    elsewhere = {"regions": ["eu-de-1", "us-east-1"], "jurisdictions": ["US"], "operatedBy": "own"}
    active = msgspec.json.decode(contract(), type=event_v1.EnvironmentContractChanged).versions
    draft = msgspec.json.decode(
        contract("onprem-a", (2, "draft"), location=elsewhere, cost={"currency": "EUR", "egressPerGB": 9}),
        type=event_v1.EnvironmentContractChanged,
    ).versions
    both = event_v1.EnvironmentContractChanged(environment="onprem-a", at=NOW, versions=(*active, *draft))
    view.apply_environment("contract", "onprem-a", _encode(both), 3)
    assert not view.settle().catalogue
    assert view.catalogue == known
    assert [candidate.contract for candidate in view.candidates["onprem-a"]] == [each.contract for each in before]
    alone = event_v1.EnvironmentContractChanged(environment="onprem-a", at=NOW, versions=draft)
    view.apply_environment("contract", "onprem-a", _encode(alone), 4)
    view.settle()
    [candidate] = view.candidates["onprem-a"]
    assert candidate.phase == "draft"  # it is explained, and judged not to take work
    assert "us-east-1" not in view.catalogue.region_jurisdictions


def test_a_version_registered_anew_with_other_content_is_read_anew() -> None:
    view = a_view()
    view.apply_environment("contract", "onprem-a", contract("onprem-a", (1, "active"), workloads=["service"]), 3)
    view.settle()
    assert view.candidates["onprem-a"][0].contract.workloads == ("service",)


def test_only_active_versions_are_candidates_and_the_newest_stands_in_where_none_is() -> None:
    view = View()
    view.apply_environment(
        "contract", "onprem-a", contract("onprem-a", (7, "retiring"), (8, "active"), (9, "canary")), 1
    )
    view.settle()
    assert [(c.contract_version, c.phase) for c in view.candidates["onprem-a"]] == [(8, "active")]
    assert view.capacity()["onprem-a"]["cpu"] == 64_000
    view.apply_environment("contract", "onprem-a", contract("onprem-a", (9, "draft")), 2)
    view.settle()
    assert [(c.contract_version, c.phase) for c in view.candidates["onprem-a"]] == [(9, "draft")]
    assert view.capacity() == {}


def test_an_unreadable_message_leaves_what_was_known() -> None:
    view = a_view()
    with pytest.raises(msgspec.MsgspecError):
        view.apply_environment("link", "onprem-a", b"{", 3)
    view.settle()
    assert view.candidates["onprem-a"][0].link.state is LinkState.CONNECTED


def test_a_link_state_of_a_later_release_gets_no_work() -> None:
    view = a_view()
    body = link().replace(b"connected", b"half-connected")
    view.apply_environment("link", "onprem-a", body, 3)
    view.settle()
    assert view.candidates["onprem-a"][0].link.state is LinkState.LOST


def test_a_price_that_has_ended_is_withdrawn_on_time_and_never_wins() -> None:
    end = NOW + timedelta(hours=1)
    prices = {"currency": "EUR", "perHour": {"cpu-general": 0.0}, "egressPerGB": 0.1, "ends": {"cpu-general": end}}
    view = View()
    view.apply_environment("contract", "onprem-a", contract(cost=prices), 1)
    dear = contract("dear", cost={"currency": "EUR", "perHour": {"cpu-general": 9.0}})
    view.apply_environment("contract", "dear", dear, 2)

    def first(now: datetime) -> ScoreCard:
        view.withdraw(now)
        view.settle()
        candidates = [versions[0] for versions in view.candidates.values()]
        return rank(an_operation().requirements, candidates, {"cost": 1.0}).cards[0]

    assert first(end - timedelta(microseconds=1)).environment == "onprem-a"
    before, shape = view.candidates["onprem-a"], view.shape_revision
    assert view.shape_revision == shape
    assert first(end).environment == "dear", "what is unknown never wins against what is known"
    [after] = view.candidates["onprem-a"]
    assert (after.prices, after.contract.cost.egress_per_gb) == ({}, 0.1)
    assert view.shape_revision > shape, "plans are made anew"
    [cost] = [each for each in first(end).measurements if each.preference == "cost"]
    assert cost.value is not None
    view.apply_environment("contract", "onprem-a", contract(cost=prices), 3)
    assert first(end).environment == "dear", "also when the contract is told again"
    assert before[0].prices, "what was decided by keeps its price"


def test_what_ended_is_told_with_its_moment() -> None:
    end = NOW - timedelta(hours=1)
    prices = {"currency": "EUR", "perHour": {"cpu-general": 0.5}, "ends": {"cpu-general": end, "egress": end}}
    view = View()
    view.apply_environment("contract", "onprem-a", contract(cost={**prices, "egressPerGB": 0.1}), 1)
    view.withdraw(NOW)
    view.settle()
    [candidate] = view.candidates["onprem-a"]
    found = Cost().measure(an_operation().requirements, candidate, NOTHING_OBSERVED)
    assert found.value is None
    assert "ended: cpu-general at 2026-11-30T02:00:00Z, egress at 2026-11-30T02:00:00Z" in found.source
    assert candidate.contract.cost.egress_per_gb is None
