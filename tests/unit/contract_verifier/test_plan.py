"""Probe plans: what is probed, under which names, and how often."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain import claims, probe_kinds
from landbridge_contract_verifier.plan import Periods, plan, required, united

PERIODS = Periods()
SPEC: dict[str, Any] = {
    "runtime": {"executor": "kubernetes", "kubernetes": "1.35"},
    "classes": {"gpu-80gb": {"count": 16}, "cpu-general": {"cpu": "8"}},
    "storage": {"fast": {"storageClass": "nvme", "encrypted": True}},
    "connections": {"models": {"type": "s3", "access": "read-write"}, "images": {"type": "registry"}},
    "boundaries": {
        "securityTier": "restricted",
        "identity": {"roles": {"trainer": "sa"}},
        "network": {"default": "deny"},
        "controlPlane": {"nodeTrust": "secure-boot"},
    },
    "links": {"cloud-eu": {"bandwidth": "10Gbit/s"}},
}


def with_executor(name: str) -> dict[str, Any]:
    return {**SPEC, "runtime": {"executor": name}}


def test_every_claim_has_a_probe() -> None:
    planned = {probe.claim for probe in plan(with_executor("simulated"), 1, PERIODS)}
    assert planned == {
        claims.RUNTIME,
        claims.CLOCK,
        claims.SELF_STOP,
        claims.IDENTITY,
        claims.NETWORK,
        claims.CONTROL_PLANE,
        "classes.gpu-80gb",
        "classes.cpu-general",
        "storage.fast",
        "connections.models",
        "connections.images",
        "links.cloud-eu",
    }


def test_a_measured_carbon_intensity_is_read_and_does_not_decide_whether_work_is_taken() -> None:
    planned = plan({**SPEC, "carbon": {"measured": True}}, 2, PERIODS)
    [probe] = [probe for probe in planned if probe.claim == claims.CARBON]
    assert (probe.name, probe.kind, probe.period_seconds) == ("carbon.intensity@2", probe_kinds.CARBON, 300)
    assert probe not in required(planned)
    assert claims.general_claims([claims.CARBON]) == (claims.RUNTIME,)
    stated = plan({**SPEC, "carbon": {"gramsPerKWh": 300}}, 2, PERIODS)
    assert claims.CARBON not in {probe.claim for probe in stated}


def test_a_boundary_is_probed_from_both_sides() -> None:
    spec = with_executor("simulated")
    names = [probe.name for probe in plan(spec, 3, PERIODS) if probe.claim == claims.NETWORK]
    assert names == ["boundaries.network.allowed@3", "boundaries.network.refused@3"]


def test_boundaries_that_an_executor_cannot_show_are_left_without_evidence() -> None:
    planned = {probe.claim for probe in plan(with_executor("process"), 1, PERIODS)}
    assert claims.IDENTITY in planned
    assert not planned & {claims.NETWORK, claims.CONTROL_PLANE}


def test_what_a_security_tier_forbids_is_tried_in_clusters_only() -> None:
    [tried] = [probe for probe in plan(SPEC, 1, PERIODS) if probe.claim == claims.SECURITY_TIER]
    assert tried.parameters["claimed"] == '{"securityTier":"restricted"}'
    assert (tried.kind, tried.parameters["expect"]) == (probe_kinds.BOUNDARY, probe_kinds.REFUSED)
    for spec in (with_executor("process"), {**SPEC, "boundaries": {"securityTier": "open"}}):
        assert claims.SECURITY_TIER not in {probe.claim for probe in plan(spec, 1, PERIODS)}


def test_a_cluster_has_the_time_that_pods_take() -> None:
    by_kind = {probe.kind: probe for probe in plan(SPEC, 1, PERIODS)}
    assert by_kind[probe_kinds.CAPACITY].timeout_seconds == 90
    assert by_kind[probe_kinds.STORAGE].timeout_seconds == 120
    assert by_kind[probe_kinds.BOUNDARY].period_seconds == 2 * PERIODS.boundary_s
    network = [probe for probe in plan(SPEC, 1, PERIODS) if probe.claim == claims.NETWORK]
    assert [(probe.parameters["expect"], probe.timeout_seconds) for probe in network] == [
        (probe_kinds.ALLOWED, 90),
        (probe_kinds.REFUSED, 90),
    ]
    assert claims.CONTROL_PLANE not in {probe.claim for probe in plan(SPEC, 1, PERIODS)}


def test_self_stop_is_measured_in_clusters_so_that_time_may_free_work_there() -> None:
    [canary] = [probe for probe in plan(SPEC, 1, PERIODS) if probe.claim == claims.SELF_STOP]
    assert (canary.kind, canary.period_seconds, canary.timeout_seconds) == (probe_kinds.SELF_STOP, 600, 120)
    assert canary in required(plan(SPEC, 1, PERIODS))


def test_how_fast_connections_with_data_are_is_measured_in_clusters_and_keeps_nobody_away() -> None:
    planned = plan(SPEC, 1, PERIODS)
    [probe] = [probe for probe in planned if probe.kind == probe_kinds.BANDWIDTH]
    assert (probe.claim, probe.period_seconds, probe.parameters["access"]) == ("bandwidth.models", 600, "read-write")
    assert probe not in required(planned)
    assert claims.general_claims([probe.claim]) == (claims.RUNTIME,)
    assert not [each for each in plan(with_executor("process"), 1, PERIODS) if each.kind == probe_kinds.BANDWIDTH]


def test_a_managed_endpoint_does_not_stop_by_itself() -> None:
    assert claims.SELF_STOP not in {probe.claim for probe in plan(with_executor("managed-endpoint"), 1, PERIODS)}


def test_connections_are_probed_often_and_their_proof_outlives_three_misses() -> None:
    spec = with_executor("process")
    [models] = [probe for probe in plan(spec, 1, PERIODS) if probe.claim == "connections.models"]
    assert (models.kind, models.period_seconds, models.timeout_seconds) == (probe_kinds.CONNECTION, 15, 5)
    assert models.expiry_seconds == 4 * 15 + 5
    assert models.parameters["access"] == "read-write"


def test_many_connections_are_spread_over_time() -> None:
    spec = {**with_executor("process"), "connections": {f"c{i}": {"type": "s3"} for i in range(500)}}
    periods = {probe.period_seconds for probe in plan(spec, 1, PERIODS) if probe.kind == probe_kinds.CONNECTION}
    assert periods == {150}


def test_unchanged_claims_keep_their_names_in_the_next_version() -> None:
    first = plan(SPEC, 1, PERIODS)
    changed = {**SPEC, "classes": {**SPEC["classes"], "gpu-80gb": {"count": 8}}}
    second = plan(changed, 2, PERIODS, first)
    assert {probe.name for probe in second} - {probe.name for probe in first} == {"classes.gpu-80gb@2"}
    assert plan(changed, 3, PERIODS, second) == second
    both = united([first, second])
    assert {probe.name for probe in both} == {probe.name for probe in first} | {"classes.gpu-80gb@2"}


def test_another_period_keeps_the_name() -> None:
    first = plan(SPEC, 1, PERIODS)
    again = plan(SPEC, 1, Periods(connection_s=5), first)
    assert [probe.name for probe in again] == [probe.name for probe in first]
    assert again != first


def test_a_new_version_need_not_measure_links() -> None:
    assert "links.cloud-eu@1" not in {probe.name for probe in required(plan(SPEC, 1, PERIODS))}


@pytest.mark.parametrize("spec", [{}, {"runtime": {"executor": "process"}}, {"classes": None, "boundaries": None}])
def test_a_bare_contract_has_a_plan(spec: dict[str, Any]) -> None:
    assert {probe.claim for probe in plan(spec, 1, PERIODS)} >= {claims.RUNTIME, claims.CLOCK}


NAMES = st.text("abcdefgh-", min_size=1, max_size=8)


@given(st.dictionaries(NAMES, st.fixed_dictionaries({"count": st.integers(1, 9)}), max_size=5), st.integers(1, 99))
def test_plans_are_the_same_everywhere_and_names_are_unique(classes: dict[str, Any], version: int) -> None:
    spec = {**SPEC, "classes": classes}
    planned = plan(spec, version, PERIODS)
    assert planned == plan({**spec, "classes": dict(reversed(classes.items()))}, version, PERIODS)
    assert len({probe.name for probe in planned}) == len(planned)
