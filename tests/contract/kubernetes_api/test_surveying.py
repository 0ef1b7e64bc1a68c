"""Any cluster can be read, and what is read makes a valid draft of a contract."""

import json
from pathlib import Path
from typing import Any

import yaml

from landbridge.domain.discovering import draft_contract
from landbridge.domain.documents import Document, read_document
from landbridge_dispatch.executors.kubernetes.api import Api
from landbridge_dispatch.executors.kubernetes.surveying import survey
from support.kubernetes import fake_cluster
from support.kubernetes.access_point import Access

QUOTA = {"metadata": {"name": "quota"}, "spec": {"hard": {"requests.cpu": "7", "count/jobs.batch": "50"}}}
POLICY = {"metadata": {"name": "deny"}, "spec": {"podSelector": {}, "policyTypes": ["Egress"]}}


async def test_a_cluster_is_read_and_drafted(api: Access) -> None:
    await api.make("resourcequotas", QUOTA)
    await api.make("networkpolicies.networking.k8s.io", POLICY)
    cluster = Api(api.kubeconfig, host="" if api.kubeconfig else api.host)
    await cluster.open()
    try:
        found = await survey(cluster, api.namespace)
    finally:
        await cluster.close()

    draft = draft_contract(found, "cluster-a")

    assert found.unread == {}
    assert isinstance(read_document(json.dumps(draft.document).encode()), Document)
    assert draft.document["spec"]["quotas"] == {"cpu": "7", "running": "50"}
    assert draft.document["spec"]["boundaries"]["network"] == {"default": "deny"}
    version = (await api.read("/version"))["gitVersion"]
    assert version.startswith(f"v{draft.document['spec']['runtime']['kubernetes']}.")


async def test_what_may_not_be_read_is_told(api: Access, tmp_path: Path) -> None:
    answer = await api.make("serviceaccounts/default/token", {"spec": {}})
    clusters: list[Any] = [{"name": "c", "cluster": {"server": api.host}}]
    if api.kubeconfig:
        clusters = yaml.safe_load(Path(api.kubeconfig).read_text())["clusters"]
    stranger = {
        "clusters": clusters,
        "users": [{"name": "u", "user": {"token": answer["status"]["token"]}}],
        "contexts": [{"name": "x", "context": {"cluster": clusters[0]["name"], "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(stranger))
    cluster = Api(tmp_path / "kubeconfig")
    await cluster.open()
    try:
        found = await survey(cluster, api.namespace)
    finally:
        await cluster.close()

    assert found.unread["nodes"] == "Forbidden"
    assert any("nodes could not be read (Forbidden)" in told for told in draft_contract(found, "a").questions)


async def test_operators_are_found_by_the_kinds_that_they_define() -> None:
    """Other software defines kinds in the same groups."""
    async with fake_cluster() as fake:
        fake.install("kuberay")
        notebooks = {
            "group": "kubeflow.org",
            "scope": "Namespaced",
            "names": {"plural": "notebooks", "kind": "Notebook"},
        }
        versions = [{"name": "v1", "served": True, "storage": True}]
        definition = {"metadata": {"name": "notebooks.kubeflow.org"}, "spec": {**notebooks, "versions": versions}}
        fake.put("customresourcedefinitions", definition)
        cluster = Api(host=fake.url)
        await cluster.open()
        try:
            found = await survey(cluster)
        finally:
            await cluster.close()

    runtime = draft_contract(found, "a").document["spec"]["runtime"]

    assert runtime["operators"] == ["kuberay"]
    assert runtime["via"] == {"ray": {"operator": "kuberay"}}
