"""Parts of an environment that get no new work: shown before, kept with name and reason, told to everybody."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from support.verifier_service import CONTRACT, Verifier
from support.wait import wait_until

GPUS = """
    gpu-80gb: {count: 16, memory: 80Gi, via: {nodeSelector: {pool: gpu}}}
    gpu-slice: {count: 28, partition: 1g.10gb, via: {nodeSelector: {pool: gpu, rack: r7}}}
"""


@pytest.fixture
async def site(verifier: Verifier) -> Verifier:
    text = CONTRACT.replace("NAME", "onprem-a").replace("VERSION", "1").replace("CPU", "8")
    await verifier.submit(text.replace("  connections:", GPUS.strip("\n") + "\n  connections:").encode())
    await wait_until(lambda: 1 in verifier.told_contract(), "it is registered")
    return verifier


async def act(
    verifier: Verifier, action: str, status: int = 200, *, dry: bool = False, class_: str = "", **body: Any
) -> Any:
    body |= {"class": class_} if class_ else {}
    params = {"dryRun": "true"} if dry else {}
    path = f"/v1/environments/onprem-a/control/{action}"
    answer = await verifier.http.post(path, json={"reason": "new driver", **body}, params=params)
    assert answer.status_code == status, answer.text
    return answer.json()


def held(verifier: Verifier) -> set[tuple[str, str, str, str]]:
    told = verifier.told_control()
    return {(h.capability_class, h.node_selector, h.by, h.reason) for h in told.holds} if told is not None else set()


async def test_the_table_of_probes_tells_plan_cost_and_latest_results(site: Verifier) -> None:
    found = (await site.http.get("/v1/environments/onprem-a/probes")).json()
    runtime = next(item for item in found["probes"] if item["claim"] == "runtime")
    assert (runtime["required"], runtime["cost"], "result" in runtime) == (True, "a process", False)
    assert (await site.http.get("/v1/environments/nowhere/probes")).status_code == 404


async def test_a_class_is_paused_and_resumed_by_a_named_person_with_a_reason(site: Verifier) -> None:
    preview = await act(site, "pause", dry=True, class_="gpu-80gb")
    told = "Nothing new starts on class gpu-80gb of onprem-a until it is resumed: gpu-80gb (16 devices)."
    assert preview["text"] == [f"{told} What runs goes on."]
    assert preview["state"] == "open; paused: class gpu-80gb"
    await act(site, "pause", 422, reason="", class_="gpu-80gb")
    assert site.told_control() is None
    assert (await act(site, "pause", class_="gpu-80gb"))["dryRun"] is False
    await wait_until(lambda: held(site) == {("gpu-80gb", "", "admin", "new driver")}, "it is told")
    assert site.told_control().paused is False  # type: ignore[union-attr]
    again = await act(site, "pause", 409, class_="gpu-80gb")
    assert "class gpu-80gb is paused by admin: new driver already" in again["detail"]
    await act(site, "resume", class_="gpu-80gb", reason="driver is in")
    await wait_until(lambda: held(site) == set(), "it is told")
    kept = (await site.http.get("/v1/environments/onprem-a/control")).json()["items"]
    assert [(item["action"], item["part"], item["by"], item["reason"]) for item in kept] == [
        ("resume", "class gpu-80gb", "admin", "driver is in"),
        ("pause", "class gpu-80gb", "admin", "new driver"),
    ]


async def test_nodes_are_paused_by_a_label_of_the_contract(site: Verifier) -> None:
    done = await act(site, "pause", nodeSelector="pool=gpu")
    assert "nodes pool=gpu of onprem-a" in done["text"][0]
    assert "gpu-80gb (16 devices), gpu-slice (28 devices)" in done["text"][0]
    await act(site, "pause", class_="gpu-slice")
    resumed = await act(site, "resume", nodeSelector="pool=gpu")
    assert resumed["text"][1:] == ["Still paused: class gpu-slice is paused by admin: new driver."]
    await wait_until(lambda: held(site) == {("gpu-slice", "", "admin", "new driver")}, "what stays is told")


async def test_what_cannot_be_meant_is_refused_with_what_there_is(site: Verifier) -> None:
    unknown = await act(site, "pause", 404, class_="gpu-80")
    assert "no class 'gpu-80'; did you mean \"gpu-80gb\"?" in unknown["detail"]
    nowhere = await act(site, "pause", 404, nodeSelector="pool=cpu")
    assert "names the nodes pool=gpu, rack=r7" in nowhere["detail"]
    await act(site, "pause", 422, nodeSelector="pool")
    await act(site, "pause", 422, nodeSelector="pool=gpu", class_="gpu-80gb")
    await act(site, "drain", 422, class_="gpu-80gb")
    await act(site, "halt", 404)
    idle = await act(site, "resume", 409, class_="gpu-80gb")
    assert "class gpu-80gb of onprem-a is not paused; paused is no part of it" in idle["detail"]


async def test_the_whole_and_its_parts_are_paused_independently_and_survive_a_restart(
    start_verifier: Callable[..., Awaitable[Verifier]], site: Verifier
) -> None:
    await act(site, "pause", class_="gpu-80gb")
    await site.control("onprem-a", "pause", "power cut")

    def both(verifier: Verifier) -> bool:
        told = verifier.told_control()
        return told is not None and told.paused and told.reason == "power cut" and len(told.holds) == 1

    await wait_until(lambda: both(site), "both are told")
    other: Verifier = await start_verifier()
    done = await act(other, "resume", dry=True, class_="gpu-80gb")
    assert done["text"][-1] == "All of onprem-a is paused by ann: power cut."
    done = await act(other, "resume")
    assert done["text"] == [
        "onprem-a takes new work again.",
        "Still paused: class gpu-80gb is paused by admin: new driver.",
    ]
    await wait_until(lambda: not both(other) and len(held(other)) == 1, "only the class stays paused")
    await act(other, "resume", 409)


async def test_an_environment_of_the_same_name_begins_open(site: Verifier) -> None:
    await act(site, "pause", class_="gpu-80gb")
    await wait_until(lambda: len(held(site)) == 1, "it is told")
    await site.remove("onprem-a")
    await wait_until(lambda: held(site) == set(), "nothing of it is left")
