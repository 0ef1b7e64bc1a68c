"""Probes and object stores on a cluster whose pods really run."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from landbridge.domain import probe_kinds
from landbridge.domain.ownership.epochs import Epoch
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import AttemptOutcome, EvidenceResult
from landbridge_dispatch.executors.protocol import Finding
from support.kubernetes.access_point import image, real_is_wanted
from support.kubernetes_pods import Pods, real_pods
from support.object_store import ObjectStore, object_store

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        not real_is_wanted() or not image(), reason="no cluster whose pods run: see make test-kubernetes"
    ),
    pytest.mark.timeout(300),
]


@pytest.fixture(scope="module")
def served() -> Iterator[ObjectStore]:
    with object_store("0.0.0.0") as found:
        yield found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pods(site: Path, served: ObjectStore) -> AsyncIterator[Pods]:
    async with real_pods(site, store_port=served.port) as found:
        data = dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), served.keys, strict=True))
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "store-keys"}, "stringData": data}
        await found.admin.create(found.path("secrets"), secret)
        yield found


async def _found(pods: Pods, kind: str, claimed: str = "{}", *, timeout_s: int = 120, **parameters: str) -> Finding:
    told = {"claimed": claimed, **parameters}
    probe = Probe(name=f"{kind}@1", claim=kind, kind=kind, timeout_seconds=timeout_s, parameters=told)
    found = await pods.executor.probe(probe)
    assert found is not None
    return found


def _need_python(pods: Pods) -> None:
    if not pods.has_python:
        pytest.skip(f"image {pods.reference} has no python3, which the carrier needs")


async def test_a_canary_without_a_lease_stops_by_itself(pods: Pods) -> None:
    found = await _found(pods, probe_kinds.SELF_STOP)
    assert (found.result, found.detail) == (EvidenceResult.PROVEN, "stopped within 6 s of the end of its lease")


async def test_a_cluster_without_rules_of_the_network_does_not_keep_pods_apart(pods: Pods) -> None:
    found = await _found(pods, probe_kinds.BOUNDARY, '{"default": "deny"}', boundary="network", expect="refused")
    assert (found.result, found.detail) == (
        EvidenceResult.FAILED,
        f"let through: from pod to pod, in namespace {pods.namespace}",
    )


async def test_the_keeper_is_reached_by_pods(pods: Pods) -> None:
    found = await _found(pods, probe_kinds.BOUNDARY, '{"default": "deny"}', boundary="network", expect="allowed")
    assert (found.result, found.detail) == (EvidenceResult.PROVEN, "reached: the lease keeper")


async def test_a_store_is_proven_with_its_keys_and_not_without(pods: Pods) -> None:
    _need_python(pods)
    reached = await _found(pods, probe_kinds.CONNECTION, connection="store", access="read-write")
    measured = await _found(pods, probe_kinds.BANDWIDTH, connection="store", access="read-write")
    # What it lacks might still come: only the end of its time shows that it fails.
    keyless = await _found(pods, probe_kinds.CONNECTION, timeout_s=40, connection="keyless", access="read-write")
    assert (reached.result, reached.detail) == (EvidenceResult.PROVEN, "written and read")
    assert (measured.result, (measured.proven or 0) > 1e6) == (EvidenceResult.PROVEN, True)
    assert keyless.result is EvidenceResult.FAILED
    assert "CreateContainerConfigError" in keyless.detail


async def test_a_checkpoint_in_a_store_is_gone_on_from(pods: Pods, served: ObjectStore) -> None:
    _need_python(pods)
    script = (
        'echo "from ${LANDBRIDGE_RESUME_FROM##*/}"; echo weights >"$LANDBRIDGE_OUTPUT_MODEL/w"; '
        'cd "$LANDBRIDGE_CHECKPOINT_DIR"; mkdir .sealing-1; echo 7 >.sealing-1/step; '
        """echo '{"files": {"step": {"bytes": 2}}}' >.sealing-1/manifest.json; mv .sealing-1 sealed-1"""
    )
    spec: dict[str, Any] = {
        "checkpoints": {"connection": "store", "path": "runs"},
        "outputs": {"model": {"connection": "store", "path": "models"}},
    }
    work = await pods.run(script, **spec)
    found = await pods.report(work)
    assert (found.outcome, found.message) == (AttemptOutcome.COMPLETED, "")
    assert served.objects(f"team/models/{work.operation}/e1-1/model/") == {
        f"team/models/{work.operation}/e1-1/model/w": b"weights\n"
    }
    assert found.checkpoint is not None

    again = replace(work, epoch=Epoch(1, 2), attempt=2, resume_from=found.checkpoint.manifest)
    assert await pods.executor.occupy([again]) == [None]
    await pods.executor.start([again.key])
    await pods.report(again)
    log = await pods.executor.logs(again.key)
    assert log is not None
    assert log.data == b"from sealed-1\n"


async def test_work_without_the_keys_of_its_store_never_starts(pods: Pods) -> None:
    _need_python(pods)
    view = await pods.end(await pods.run("echo ran", outputs={"model": {"connection": "keyless"}}))
    assert view.reason == "secret-unavailable"
