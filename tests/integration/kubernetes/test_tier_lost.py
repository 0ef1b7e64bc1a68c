"""A cluster whose admission lets a privileged pod in loses the security tier that it claims, and the probe is named."""

from datetime import timedelta
from typing import Any

from integration.kubernetes.probing import a_dispatcher, a_space, probes_of, some_bindings
from landbridge.domain import claims
from landbridge.domain.evidence import Evidence
from landbridge_contract_verifier.plan import Periods, plan
from support.deciding import NOW, an_environment, an_operation, contract_document, judged_by
from support.kubernetes import FakeCluster

CONTRACT: dict[str, Any] = {
    "runtime": {"executor": "kubernetes", "kubernetes": "1.36"},
    "boundaries": {"securityTier": "restricted", "admission": None, "network": None},
}


async def _judged(cluster: FakeCluster, **constraints: str) -> tuple[str, ...]:
    """What deciding has against the cluster, by the evidence of the probes that its contract asks for."""
    planned = plan(contract_document("cluster-a", 3, **CONTRACT)["spec"], 3, Periods())
    evidence = {}
    async with probes_of(cluster, some_bindings(), token=a_dispatcher(cluster)) as probes:
        for probe in planned:
            if probe.claim != claims.SECURITY_TIER:
                continue
            found = await probes.run(probe)
            assert found is not None
            lasts = timedelta(seconds=probe.expiry_seconds)
            evidence[probe.claim] = Evidence(
                probe.claim, str(found.result), NOW, NOW + lasts, probe.name, found.subject, detail=found.detail
            )
    assert set(evidence) == {claims.SECURITY_TIER}
    environment = an_environment("cluster-a", version=3, evidence=evidence, **CONTRACT)
    return tuple(map(str, judged_by("security-tier", an_operation(constraints=constraints), environment)))


async def test_the_tier_counts_while_it_is_enforced(cluster: FakeCluster) -> None:
    a_space(cluster, "restricted")

    assert await _judged(cluster, securityTier="restricted") == ()


async def test_it_is_lost_with_the_probe_named_and_only_for_work_that_demands_it(cluster: FakeCluster) -> None:
    a_space(cluster, "restricted")
    cluster.api.enforce_pod_security = False

    [told] = await _judged(cluster, securityTier="restricted")

    assert "by probe boundaries.securityTier@3" in told
    assert "let in (dry run): a privileged pod, in namespace work" in told
    assert await _judged(cluster) == ()
