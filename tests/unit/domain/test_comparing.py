"""Contracts and environments beside each other: what differs, and what of it is proven."""

from datetime import timedelta
from typing import Any

import pytest

from landbridge.domain import claims
from landbridge.domain.candidate import Candidate, EvidenceSet, evidence_for
from landbridge.domain.constraints.controls import CONTROLS
from landbridge.domain.contract_diff import differences, to_prove
from landbridge.domain.environment_compare import Row, compare, warnings
from support.deciding import NOW, a_contract, all_proven, an_environment, contract_document, proof, states

WAS = contract_document()["spec"]


def changed(**spec: Any) -> dict[str, Any]:
    return dict(contract_document(**spec)["spec"])


def test_equal_specs_do_not_differ() -> None:
    assert differences(WAS, changed()) == []


def test_each_field_is_told_by_its_path_with_both_values() -> None:
    new = changed(
        classes={"cpu-general": {"cpu": "32"}, "gpu-80gb": {"count": 4}},
        location={"operatedBy": None},
        workloads=["job", "service"],
    )
    found = {each.path: (each.was, each.becomes) for each in differences(WAS, new)}
    assert found == {
        "classes.cpu-general.cpu": ("64", "32"),
        "classes.gpu-80gb": ("", "{count: 4}"),
        "location.operatedBy": ("own", ""),
        "workloads": ("[job]", "[job, service]"),
    }


@pytest.mark.parametrize(
    "spec",
    [
        {"classes": {"cpu-general": {"cpu": "32"}}},
        {"connections": {"events": {"access": "read-write"}}},
        {"runtime": {"architectures": ["arm64"]}},
        {"boundaries": {"securityTier": "standard"}},
        {"cost": {"currency": "USD"}},
        {"location": {"regions": ["eu-de-2"]}},
    ],
)
def test_what_has_to_be_proven_again_is_what_deciding_does_not_carry_over(spec: dict[str, Any]) -> None:
    old, new = a_contract(version=1), a_contract(version=2, **spec)
    carried = evidence_for(new, EvidenceSet(1, states(all_proven(old))), old)
    lost = set(all_proven(old)) - set(carried)
    told = set(to_prove(differences(WAS, changed(**spec))))
    assert lost <= told
    assert not told & set(carried)


# -- environments -----------------------------------------------------------------------------------------------------

STRICT: dict[str, Any] = {
    "boundaries": {"network": {"default": "deny"}, "controlPlane": {"managed": False, "operatorAccess": "audited"}}
}


def rows(left: Candidate, right: Candidate) -> dict[tuple[str, str], Row]:
    return {(row.section, row.name): row for row in compare(left, right, NOW)}


def test_what_is_no_longer_claimed_has_not_to_be_proven_and_a_whole_new_section_has() -> None:
    gone = differences(WAS, changed(connections={"events": None}))
    assert [(each.path, each.becomes) for each in gone] == [("connections.events", "")]
    assert to_prove(gone) == ()
    added = differences(WAS, changed(storage={"scratch": {"type": "volume"}, "fast": {"type": "volume"}}))
    assert [each.path for each in added] == ["storage"]
    assert to_prove(added) == ("storage.fast", "storage.scratch")
    assert to_prove(differences(WAS, {**WAS, "boundaries": {}})) == ()


def test_every_control_is_compared_whatever_is_stated() -> None:
    found = rows(an_environment(), an_environment("cloud-b"))
    assert {name for section, name in found if section == "control"} == set(CONTROLS)


def test_the_same_claim_is_the_same_only_if_it_is_as_well_proven() -> None:
    proven, control = an_environment(**STRICT), ("control", "default-deny-egress")
    other = an_environment("cloud-b", **STRICT)
    assert rows(proven, other)[control].same
    failed = proof(claims.NETWORK, "failed", detail="reached 1.1.1.1")
    late = proof(claims.NETWORK, at=NOW - timedelta(hours=2), lasts=timedelta(hours=1))
    for evidence, told in (
        (failed, "in force, failed (probe-x: reached 1.1.1.1)"),
        (late, "in force, stale"),
        (None, "in force, not probed"),
    ):
        row = rows(proven, an_environment("cloud-b", evidence={claims.NETWORK: evidence}, **STRICT))[control]
        assert not row.same
        assert str(row.left).startswith("in force, proven (until 2026-11-30T04:00:00Z")
        assert str(row.right).startswith(told)


def test_what_no_probe_can_prove_is_stated_only_and_what_is_not_stated_is_not_in_force() -> None:
    found = rows(an_environment(**STRICT), an_environment("cloud-b", boundaries={"network": {"default": "allow"}}))
    assert str(found["control", "own-control-plane"].left) == "in force, stated only"
    assert str(found["control", "own-control-plane"].right) == "not stated"
    assert str(found["control", "default-deny-egress"].right) == "not in force"


def test_facts_classes_and_connections_of_either_side_are_told() -> None:
    found = rows(
        an_environment(),
        an_environment(
            "cloud-b",
            location={"jurisdictions": ["US"]},
            classes={"gpu-80gb": {"count": 4, "memory": "80Gi", "interconnect": "nvlink"}},
            connections={"events": {"access": "read-write"}},
        ),
    )
    assert (str(found["fact", "jurisdictions"].left), str(found["fact", "jurisdictions"].right)) == ("DE, EU", "US")
    assert str(found["class", "gpu-80gb"].left) == "not offered"
    assert str(found["class", "gpu-80gb"].right).startswith("4 80Gi each nvlink, proven")
    assert found["class", "cpu-general"].same
    assert not found["connection", "events"].same
    assert found["fact", "runs work"].same


@pytest.mark.parametrize(
    ("left", "right", "warned"),
    [("1.33", "1.34", False), ("1.33.2", "1.35.0", True), ("1.33", "", False), ("v1.32", "v1.32", False)],
)
def test_versions_more_than_one_minor_apart_are_a_warning(left: str, right: str, warned: bool) -> None:
    pair = [an_environment(name, runtime={"kubernetes": version}) for name, version in (("a", left), ("b", right))]
    assert bool(warnings(pair[0], pair[1])) is warned
