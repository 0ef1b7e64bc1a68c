"""Services that are reached from outside, where the bindings offer a way: made with the service, and gone with it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contract.executors.cluster import NAMESPACE, KubernetesHarness
from contract.executors.conftest import opened
from contract.executors.harness import Behaviour, Watcher, a_work, make_executor, run
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError, Work
from support.wait import wait_until

HOST = "{name}.{project}.apps.site"
BY_INGRESS = {"host": HOST, "ingressClass": "nginx", "tlsSecret": "apps"}
BY_GATEWAY = {"host": HOST, "gateway": {"name": "shared", "namespace": "infra"}}


class RouteHarness(KubernetesHarness):
    def __init__(self, home: Path, route: dict[str, Any]) -> None:
        super().__init__(home, route=route)
        self.plural = "httproutes" if "gateway" in route else "ingresses"

    def a_service(self) -> Work:
        route = {"name": "churn", "path": "/v1"}
        return a_work(self.command(Behaviour(seconds=60)), type="service", ports={"web": {"port": 8080}}, route=route)

    def route_of(self, work: Work) -> dict[str, Any] | None:
        return self.cluster.get(self.plural, names.name_of(work.key), namespace=NAMESPACE)


@pytest.fixture
async def routed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RouteHarness]:
    harness = RouteHarness(tmp_path / "site", request.param)
    async for _ in opened(harness):
        harness.cluster.install("gateway-api")
        # What the cluster serves is looked at when the executor opens.
        await harness.executor.close()
        harness.executor = make_executor(harness.home)
        await harness.executor.open()
        yield harness


@pytest.mark.parametrize("routed", [BY_INGRESS, BY_GATEWAY], indirect=True)
async def test_a_route_leads_to_the_service_is_told_and_goes_with_it(routed: RouteHarness) -> None:
    work = routed.a_service()
    await run(routed.executor, work)

    made = routed.route_of(work)
    view = await routed.executor.look(work.key)

    assert made is not None
    assert made["metadata"]["labels"][names.SLOT] == names.name_of(work.key)
    assert "churn.retail-eu.apps.site" in str(made["spec"])
    assert routed.cluster.get("services", names.name_of(work.key), namespace=NAMESPACE) is not None
    assert view is not None
    assert view.report is not None
    assert view.report.resolved is not None
    assert view.report.resolved.endpoint == "https://churn.retail-eu.apps.site/v1"
    await routed.executor.remove([work.key])
    await wait_until(lambda: routed.route_of(work) is None, "the route goes with the slot", timeout_s=30)


@pytest.mark.parametrize("routed", [BY_INGRESS], indirect=True)
async def test_a_route_of_somebody_else_is_left_alone(routed: RouteHarness) -> None:
    work = routed.a_service()
    theirs = {"metadata": {"name": names.name_of(work.key)}, "spec": {"ingressClassName": "theirs"}}
    routed.cluster.put("ingresses", theirs, namespace=NAMESPACE)
    watcher = Watcher(routed.executor)
    await run(routed.executor, work)

    view = await watcher.end(work.key, timeout_s=30)
    await watcher.close()

    assert (view.phase, view.reason) == (SlotPhase.TOMBSTONE, "failed-to-start")
    kept = routed.route_of(work)
    assert kept is not None
    assert kept["spec"] == theirs["spec"]
    assert routed.cluster.get("deployments", names.name_of(work.key), namespace=NAMESPACE) is None


async def test_a_gateway_that_the_cluster_does_not_know_is_a_refusal(tmp_path: Path) -> None:
    harness = RouteHarness(tmp_path / "site", BY_GATEWAY)
    async for _ in opened(harness):
        [refused] = await harness.executor.check([harness.a_service()])
        assert isinstance(refused, RefusedError)
        assert refused.code == RefusalCode.OPERATOR
