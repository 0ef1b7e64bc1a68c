"""Who may ask the lease keeper, and what it tells whom."""

import asyncio
from typing import Any

import aiohttp
import pytest

from contract.executors.cluster import NAMESPACE, KubernetesHarness
from contract.executors.harness import TERM, Behaviour, Watcher, a_lease, a_work, make_executor, run
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge_dispatch.executors.kubernetes import door as door_module
from landbridge_dispatch.executors.kubernetes.executor import KubernetesExecutor
from support.wait import wait_until


async def ask(harness: KubernetesHarness, token: str, **query: str) -> tuple[int, str]:
    executor = harness.executor
    assert isinstance(executor, KubernetesExecutor)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"http://127.0.0.1:{executor.door.port}/v1/start"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, params=query) as answer:
        return answer.status, (await answer.text()).strip()


def token_of(harness: KubernetesHarness, pod: str, audience: str = "landbridge-keeper") -> str:
    found = harness.cluster.get("pods", pod, namespace=NAMESPACE)
    assert found is not None
    bound = {"kind": "Pod", "name": pod, "uid": found["metadata"]["uid"]}
    asked = {"spec": {"audiences": [audience], "expirationSeconds": 600, "boundObjectRef": bound}}
    return str(harness.cluster.api.access.issue(NAMESPACE, "default", asked)["status"]["token"])


async def test_without_a_pods_own_token_nothing_is_told(kubernetes: KubernetesHarness) -> None:
    assert (await ask(kubernetes, ""))[0] == 401
    assert (await ask(kubernetes, "made.up.token"))[0] == 401
    account = {"spec": {"audiences": ["landbridge-keeper"], "expirationSeconds": 600}}
    of_no_pod = kubernetes.cluster.api.access.issue(NAMESPACE, "default", account)["status"]["token"]
    assert (await ask(kubernetes, str(of_no_pod)))[0] == 401


async def test_a_token_for_somebody_else_is_no_token(kubernetes: KubernetesHarness, cluster_watcher: Watcher) -> None:
    work = a_work(kubernetes.command(Behaviour(seconds=60)))
    await run(kubernetes.executor, work)
    await cluster_watcher.until(work.key, SlotPhase.RUNNING, timeout_s=30)
    [pod] = kubernetes.cluster.all_of("pods", namespace=NAMESPACE)
    name = pod["metadata"]["name"]
    assert (await ask(kubernetes, token_of(kubernetes, name, "sts.site")))[0] == 401
    status, line = await ask(kubernetes, token_of(kubernetes, name), state="running")
    assert (status, line.split()[0]) == (200, "lease")


async def test_a_pod_that_is_no_slots_is_told_never(kubernetes: KubernetesHarness, cluster_watcher: Watcher) -> None:
    """Also one that carries the labels of a slot: labels anybody can write."""
    work = a_work(kubernetes.command(Behaviour(seconds=60)))
    await run(kubernetes.executor, work)
    await cluster_watcher.until(work.key, SlotPhase.RUNNING, timeout_s=30)
    [own] = kubernetes.cluster.all_of("pods", namespace=NAMESPACE)
    kubernetes.node.accepts = False
    spec = {"containers": [{"name": "c", "image": "theirs"}]}
    for name, labels in (("stranger", {}), ("impostor", own["metadata"]["labels"])):
        kubernetes.cluster.put(
            "pods", {"metadata": {"name": name, "labels": labels}, "spec": spec}, namespace=NAMESPACE
        )
        status, line = await ask(kubernetes, token_of(kubernetes, name), state="waiting")
        assert (status, line.split()[:2]) == (200, ["never", "not-here"]), name
        _, line = await ask(kubernetes, token_of(kubernetes, name), state="running")
        assert line.split()[0] == "never", name


@pytest.mark.parametrize(
    ("lifecycle", "told"),
    [({}, "start"), ({"disconnection": {"policy": "stop-after-grace", "grace": "5s"}}, "wait")],
)
async def test_whoever_took_the_slot_and_lost_the_answer_starts_once_the_centre_knows(
    kubernetes: KubernetesHarness, lifecycle: dict[str, Any], told: str
) -> None:
    kubernetes.node.accepts = False
    work = a_work(kubernetes.command(Behaviour()), lifecycle=lifecycle)
    await run(kubernetes.executor, work)
    await wait_until(lambda: kubernetes.cluster.all_of("pods", namespace=NAMESPACE), "its pod is there")
    [pod] = kubernetes.cluster.all_of("pods", namespace=NAMESPACE)
    token = token_of(kubernetes, pod["metadata"]["name"])

    async def answer() -> str:
        return (await ask(kubernetes, token, state="waiting"))[1].split()[0]

    assert await answer() == "start"
    await kubernetes.executor.close()
    kubernetes.executor = make_executor(kubernetes.home)
    await kubernetes.executor.open()
    assert await answer() == "wait", "a dispatcher that has begun has no lease yet"
    kubernetes.executor.hold_lease(a_lease(term=TERM + 1, may_start=False))
    assert await answer() == "wait", "the centre has not seen yet what is here"
    kubernetes.executor.hold_lease(a_lease(term=TERM + 1))
    assert await answer() == told


async def test_made_up_tokens_do_not_become_requests_without_end(
    kubernetes: KubernetesHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_module, "REVIEWS_MAX", 2)
    kubernetes.cluster.server.delay_s = 0.2
    answers = await asyncio.gather(*(ask(kubernetes, f"made.up.{number}") for number in range(20)))
    kubernetes.cluster.server.delay_s = 0.0
    assert {status for status, _ in answers} == {401, 503}
    reviews = [one for one in kubernetes.cluster.server.seen if "tokenreviews" in one.path]
    assert len(reviews) <= 6
