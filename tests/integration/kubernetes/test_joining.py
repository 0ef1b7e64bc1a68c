"""`landbridge env join --kubernetes`: what it prints installs a dispatcher in a cluster."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from landbridge.cli.main import app
from support.fake_api import FakeApi, fake_api
from support.kubernetes import FakeCluster
from support.wait import wait_until

IMAGE = "registry.example/landbridge@sha256:" + "0" * 64


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with fake_api() as api:
        monkeypatch.setenv("LANDBRIDGE_URL", api.url)
        monkeypatch.setenv("LANDBRIDGE_TOKEN", "token")
        monkeypatch.setenv("HOME", str(tmp_path))
        yield api


async def _join(*words: str) -> Any:
    return await asyncio.to_thread(CliRunner().invoke, app, ["env", "join", "cluster-a", "--kubernetes", *words])


async def test_what_is_printed_runs_in_a_restricted_cluster(
    instance: FakeApi, cluster: FakeCluster, tmp_path: Path
) -> None:
    answer = {"creds": "-----BEGIN NATS USER JWT-----\nx\n", "natsUrl": "tls://hub.example:4223"}
    instance[("POST", "/v1/environments/cluster-a/join")] = (200, answer)
    bindings = tmp_path / "bindings.yaml"
    bindings.write_text('kubernetes: {keeper: {url: "http://landbridge-dispatcher.landbridge:8480"}}\n')

    result = await _join("--image", IMAGE, "--bindings", str(bindings))

    assert result.exit_code == 0, result.output
    objects = list(yaml.safe_load_all(result.stdout))
    for item in objects:
        plural = next(one.plural for one in cluster.api.served.found.values() if one.kind == item["kind"])
        cluster.put(plural, item, namespace=item["metadata"].get("namespace", ""))
    await wait_until(lambda: len(cluster.all_of("pods", namespace="landbridge")) == 1, "the dispatcher's pod is let in")
    [pod] = cluster.all_of("pods", namespace="landbridge")
    assert pod["spec"]["containers"][0]["image"] == IMAGE
    policy = cluster.get("networkpolicies", "landbridge-dispatcher", namespace="landbridge")
    assert policy is not None
    assert 4223 in [port["port"] for port in policy["spec"]["egress"][1]["ports"]]
    stored = cluster.get("configmaps", "landbridge-dispatcher", namespace="landbridge")
    assert stored is not None
    assert stored["data"]["bindings.yaml"] == bindings.read_text()
    assert "lease keeper" not in result.output


async def test_an_image_without_a_digest_makes_no_credentials(instance: FakeApi) -> None:
    result = await _join("--image", "registry.example/landbridge:latest")

    assert "by digest" in str(result.exception)
    assert instance.asked == []
