"""What must be refused is refused, and a cluster that lets it in is found out, by the exact rights of a dispatcher."""

import pytest

from integration.kubernetes.probing import (
    SPACE,
    a_dispatcher,
    a_probe,
    a_space,
    found_by,
    probes_of,
    some_bindings,
)
from landbridge.domain.probe_kinds import ALLOWED, BOUNDARY, REFUSED
from landbridge.schema.wire.report_v1 import EvidenceResult
from support.kubernetes import FakeCluster

PROVEN, FAILED, UNKNOWN = EvidenceResult.PROVEN, EvidenceResult.FAILED, EvidenceResult.UNKNOWN
TIER = {"boundary": "securityTier", "expect": REFUSED}


@pytest.mark.parametrize(
    ("enforced", "tier", "result", "told"),
    [
        ("restricted", "restricted", PROVEN, "a privileged pod, a pod that mounts a path of its host"),
        ("restricted", "standard", PROVEN, "a privileged pod"),
        ("baseline", "standard", PROVEN, "a privileged pod"),
        ("baseline", "restricted", FAILED, "let in (dry run): a pod that runs as root, in namespace work"),
        ("privileged", "standard", FAILED, "let in (dry run): a privileged pod, in namespace work"),
        ("privileged", "restricted", FAILED, "let in (dry run): a privileged pod, in namespace work"),
    ],
)
async def test_a_tier_is_what_the_cluster_refuses(
    cluster: FakeCluster, enforced: str, tier: str, result: EvidenceResult, told: str
) -> None:
    a_space(cluster, enforced)
    async with probes_of(cluster, some_bindings(), token=a_dispatcher(cluster)) as probes:
        found = await found_by(probes, BOUNDARY, {"securityTier": tier}, **TIER)

    assert (found.result, found.detail.count(told)) == (result, 1)
    assert cluster.all_of("pods", namespace=SPACE) == []


async def test_admission_that_is_switched_off_is_found_out(cluster: FakeCluster) -> None:
    a_space(cluster)
    token = a_dispatcher(cluster)
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        before = await found_by(probes, BOUNDARY, {"podSecurity": "restricted"}, boundary="admission", expect=REFUSED)
        cluster.api.enforce_pod_security = False
        after = await found_by(probes, BOUNDARY, {"podSecurity": "restricted"}, boundary="admission", expect=REFUSED)

    assert (before.result, after.result) == (PROVEN, FAILED)
    assert "a privileged pod" in after.detail


async def test_images_from_elsewhere_are_refused_where_that_is_claimed(cluster: FakeCluster) -> None:
    a_space(cluster)
    claim = {"podSecurity": "restricted", "images": ["tools"]}
    async with probes_of(cluster, some_bindings(), token=a_dispatcher(cluster)) as probes:
        before = await found_by(probes, BOUNDARY, claim, boundary="admission", expect=REFUSED)
        cluster.api.forbidden_images = ("landbridge-probe.invalid/",)
        after = await found_by(probes, BOUNDARY, claim, boundary="admission", expect=REFUSED)

    assert (before.result, after.result) == (FAILED, PROVEN)
    assert "an image from elsewhere" in before.detail


async def test_a_dispatcher_that_may_not_try_proves_nothing(cluster: FakeCluster) -> None:
    a_space(cluster)
    token = a_dispatcher(cluster, drop="pods")
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        found = await found_by(probes, BOUNDARY, {"securityTier": "restricted"}, **TIER)

    assert found.result is UNKNOWN
    assert "the dispatcher may not try" in found.detail


async def test_a_cluster_that_refuses_everything_proves_nothing(cluster: FakeCluster) -> None:
    a_space(cluster)
    cluster.api.forbidden_images = ("registry.site/",)
    async with probes_of(cluster, some_bindings(), token=a_dispatcher(cluster)) as probes:
        refused = await found_by(probes, BOUNDARY, {"securityTier": "restricted"}, **TIER)
        allowed = await found_by(probes, BOUNDARY, {"podSecurity": "restricted"}, boundary="admission", expect=ALLOWED)

    assert (refused.result, allowed.result) == (UNKNOWN, FAILED)


async def test_a_dispatcher_with_the_shipped_rights_stays_in_its_namespaces(cluster: FakeCluster) -> None:
    a_space(cluster)
    bindings = some_bindings()
    async with probes_of(cluster, bindings, token=a_dispatcher(cluster)) as probes:
        allowed = await found_by(probes, BOUNDARY, {"namespace": SPACE}, boundary="tenancy", expect=ALLOWED)
        refused = await found_by(probes, BOUNDARY, {"namespace": SPACE}, boundary="tenancy", expect=REFUSED)
    async with probes_of(cluster, bindings) as probes:
        admin = await found_by(probes, BOUNDARY, {"namespace": SPACE}, boundary="tenancy", expect=REFUSED)

    assert (allowed.result, refused.result, admin.result) == (PROVEN, PROVEN, FAILED)
    assert admin.detail == "the dispatcher may list secrets in namespace kube-system"


async def test_a_right_too_many_is_found_out(cluster: FakeCluster) -> None:
    a_space(cluster)
    token = a_dispatcher(cluster, more=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}])
    async with probes_of(cluster, some_bindings(), token=token) as probes:
        found = await found_by(probes, BOUNDARY, {"namespace": SPACE}, boundary="tenancy", expect=REFUSED)

    assert (found.result, found.detail) == (FAILED, f"the dispatcher may get secrets in namespace {SPACE}")


async def test_tokens_are_issued_for_roles_and_may_do_nothing(cluster: FakeCluster) -> None:
    a_space(cluster)
    cluster.put("serviceaccounts", {"metadata": {"name": "trainer"}}, namespace=SPACE)
    bindings = some_bindings(identities={"trainer": {"serviceAccount": "trainer"}})
    claim = {"roles": {"trainer": "ServiceAccount/trainer"}, "tokenTTL": "15m"}
    token = a_dispatcher(cluster)
    async with probes_of(cluster, bindings, token=token) as probes:
        for expect in (ALLOWED, REFUSED):
            # Nothing speaks against it; the dispatcher's own check has the word.
            assert await probes.run(a_probe(BOUNDARY, claim, boundary="identity", expect=expect)) is None
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "much"}
        rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["*"]}]
        cluster.put("clusterroles", {"metadata": {"name": "much"}, "rules": rules})
        subject = {"kind": "ServiceAccount", "name": "trainer", "namespace": SPACE}
        cluster.put(
            "rolebindings", {"metadata": {"name": "m"}, "subjects": [subject], "roleRef": role}, namespace=SPACE
        )
        found = await found_by(probes, BOUNDARY, claim, boundary="identity", expect=REFUSED)
        cluster.delete("serviceaccounts", "trainer", namespace=SPACE)
        missing = await found_by(probes, BOUNDARY, claim, boundary="identity", expect=ALLOWED)

    assert (found.result, found.detail) == (FAILED, f"role trainer: its account may create pods in namespace {SPACE}")
    assert missing.result is FAILED
    assert "no token is issued" in missing.detail


async def test_a_cluster_that_does_not_answer_is_unknown(cluster: FakeCluster) -> None:
    a_space(cluster)
    async with probes_of(cluster, some_bindings(), patience_s=1.0) as probes:
        cluster.refuse(1000, 503)
        found = await found_by(probes, BOUNDARY, {"namespace": SPACE}, boundary="tenancy", expect=REFUSED)

    assert found.result is UNKNOWN
