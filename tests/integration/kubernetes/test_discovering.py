"""`landbridge env discover` against a cluster, as a person runs it."""

import asyncio
import time
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from landbridge.cli.main import app
from landbridge.domain.documents import Document, read_document
from support.kubernetes import fake_cluster

NODE = {
    "metadata": {"name": "node-1", "labels": {"topology.kubernetes.io/region": "eu-de-1"}},
    "status": {
        "allocatable": {"cpu": "8", "memory": "32Gi"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "nodeInfo": {"architecture": "arm64", "operatingSystem": "linux"},
    },
}


async def _discover(*words: str) -> tuple[int, str]:
    result = await asyncio.to_thread(CliRunner().invoke, app, ["env", "discover", *words])
    return result.exit_code, result.output


def _kubeconfig(path: Path, url: str) -> str:
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return str(path)


async def test_the_draft_is_a_contract_with_what_is_left_to_decide(tmp_path: Path) -> None:
    out = tmp_path / "cluster-a.yaml"
    async with fake_cluster("1.35.4") as cluster:
        cluster.put("nodes", NODE)
        cluster.namespace("work", labels={"pod-security.kubernetes.io/enforce": "restricted"})
        before = cluster.api.store.revision
        file = _kubeconfig(tmp_path / "kubeconfig", cluster.url)
        shown = await _discover("cluster-a", "--kubeconfig", file, "--namespace", "work")
        written = await _discover("cluster-a", "--kubeconfig", file, "--namespace", "work", "--out", str(out))
        assert cluster.api.store.revision == before
        assert set(cluster.requests()) == {"GET"}

    assert (shown[0], written[0]) == (0, 0)
    assert shown[1] == out.read_text()
    assert "#   owner: which team answers for it" in shown[1]
    document = read_document(out.read_bytes())
    assert isinstance(document, Document)
    spec = document.value["spec"]
    assert spec["runtime"]["kubernetes"] == "1.35"
    assert spec["classes"] == {"cpu-general": {"cpu": "8", "memory": "32Gi"}}
    assert spec["location"]["regions"] == ["eu-de-1"]
    assert spec["boundaries"]["admission"] == {"podSecurity": "restricted"}


async def test_a_cluster_that_does_not_answer_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    async with fake_cluster() as cluster:
        file = _kubeconfig(tmp_path / "kubeconfig", cluster.url)

    none = await asyncio.to_thread(CliRunner().invoke, app, ["env", "discover", "a"])
    began = time.monotonic()
    away = await asyncio.to_thread(CliRunner().invoke, app, ["env", "discover", "a", "--kubeconfig", file])

    assert time.monotonic() - began < 15  # somebody waits for it
    assert "expected --kubeconfig FILE or KUBECONFIG" in str(none.exception)
    assert "cannot be read" in str(away.exception)
