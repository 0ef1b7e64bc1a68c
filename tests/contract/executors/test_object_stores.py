"""Outputs and checkpoints of clusters in an S3-compatible store, which another cluster goes on from."""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from contract.executors.cluster import NAMESPACE, KubernetesHarness
from contract.executors.harness import TERM, Watcher, a_lease, a_work, make_executor, run, stop
from landbridge.domain import probe_kinds
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import AttemptReport, EvidenceResult
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.protocol import Executor, Work
from support.object_store import ObjectStore, object_store
from support.wait import wait_until

IMAGE = "registry.site/tools/python@sha256:" + "cd" * 32
CHECKPOINTS = {"connection": "shared-checkpoints", "path": "runs"}
SEALS = """
import json, os, pathlib, time, hashlib
place = pathlib.Path(os.environ['LANDBRIDGE_CHECKPOINT_DIR'])
before = os.environ.get('LANDBRIDGE_RESUME_FROM')
count = int((pathlib.Path(before) / 'weights').read_text()) if before else 0
print('resumed', count, flush=True)
def seal():
    body = str(count + 1).encode()
    made = place / '.sealing-1'
    made.mkdir()
    (made / 'weights').write_bytes(body)
    described = {'bytes': len(body), 'sha256': hashlib.sha256(body).hexdigest()}
    (made / 'manifest.json').write_text(json.dumps({'files': {'weights': described}}))
    made.rename(place / 'sealed-1')
seal()
"""


@pytest.fixture(scope="module")
def served() -> Iterator[ObjectStore]:
    with object_store() as found:
        yield found


@contextlib.asynccontextmanager
async def a_cluster(home: Path, store: ObjectStore, keys: tuple[str, str] | None = None) -> AsyncIterator["Site"]:
    """A cluster of its own whose bindings reach the store, in its own way."""
    harness = KubernetesHarness(home, carrier={"image": IMAGE, "python": os.path.realpath(sys.executable)})
    s3 = {"endpoint": store.endpoint, "bucket": store.bucket, "secret": "shared", "idKey": "id", "secretKey": "key"}
    harness.connections = {
        "shared-checkpoints": {"access": "read-write", "options": {"s3": {**s3, "prefix": "team/checkpoints"}}},
        "results": {"access": "read-write", "options": {"s3": {**s3, "prefix": "results"}}},
        "features": {"options": {"s3": {**s3, "prefix": "features"}}},
    }
    async with harness.around():
        data = dict(zip(("id", "key"), keys or store.keys, strict=True))
        harness.cluster.put("secrets", {"metadata": {"name": "shared"}, "stringData": data}, namespace=NAMESPACE)
        executor = make_executor(home)
        await executor.open()
        executor.hold_lease(a_lease(seconds=3600))
        watcher = Watcher(executor)
        try:
            yield Site(harness, executor, watcher)
        finally:
            await watcher.close()
            await executor.close()


class Site:
    def __init__(self, harness: KubernetesHarness, executor: Executor, watcher: Watcher) -> None:
        self.harness, self.executor, self.watcher = harness, executor, watcher

    async def ended(self, work: Work) -> AttemptReport:
        view = await self.watcher.end(work.key, timeout_s=40)
        assert view.report is not None
        return view.report

    async def sealed(self, work: Work) -> str:
        """The manifest of the first checkpoint that the cluster tells of."""
        await self.watcher.until(work.key, SlotPhase.RUNNING, timeout_s=30)

        async def told() -> str:
            view = await self.executor.look(work.key)
            found = view.report.checkpoint if view is not None and view.report is not None else None
            return found.manifest if found is not None else ""

        path: str = await wait_until(told, "a checkpoint is told of", timeout_s=30)
        return path

    async def log(self, work: Work) -> str:
        chunk = await self.executor.logs(work.key)
        return chunk.data.decode() if chunk is not None else ""


def python(script: str) -> list[str]:
    return [sys.executable, "-S", "-c", script]


def again(work: Work, *, resume_from: str = "") -> Work:
    """The same operation placed once more, somewhere else."""
    return replace(work, epoch=Epoch(1, 2), attempt=2, term=TERM, resume_from=resume_from)


async def test_a_checkpoint_sealed_in_one_cluster_is_gone_on_from_in_another(
    tmp_path: Path, served: ObjectStore
) -> None:
    work = a_work(python(SEALS + "time.sleep(60)"), checkpoints=CHECKPOINTS)
    async with a_cluster(tmp_path / "a", served) as one, a_cluster(tmp_path / "b", served) as other:
        await run(one.executor, work)
        sealed = await one.sealed(work)
        begun = await one.log(work)
        await stop(one.executor, work, reason="moved", grace_ms=500)
        await one.ended(work)

        moved = again(work, resume_from=sealed)
        await run(other.executor, moved)
        assert await other.sealed(moved) == f"runs/{work.operation}/e1-2/sealed-1/manifest.json"
        went_on = await other.log(moved)
        await stop(other.executor, moved, grace_ms=500)
        await other.ended(moved)

        assert sealed == f"runs/{work.operation}/e1-1/sealed-1/manifest.json"
        assert (begun, went_on) == ("resumed 0\n", "resumed 1\n")
    below = f"team/checkpoints/runs/{work.operation}"
    stored = served.objects(below)
    assert stored[f"{below}/e1-1/sealed-1/weights"] == b"1"
    assert stored[f"{below}/e1-2/sealed-1/weights"] == b"2"


async def test_a_later_checkpoint_is_found_that_the_centre_never_heard_of(tmp_path: Path, served: ObjectStore) -> None:
    work = a_work(
        python("import os; print(os.environ.get('LANDBRIDGE_RESUME_FROM', '-')[-14:])"), checkpoints=CHECKPOINTS
    )
    body = b"9"
    manifest = {"files": {"weights": {"bytes": 1, "sha256": hashlib.sha256(body).hexdigest()}}}
    below = f"team/checkpoints/runs/{work.operation}/e1-1"
    for name in ("sealed-1", "sealed-2"):
        served.put(f"{below}/{name}/weights", body)
        served.put(f"{below}/{name}/manifest.json", json.dumps(manifest).encode())
    # Of what is younger still a file is missing: it was never sealed whole.
    served.put(f"{below}/sealed-3/manifest.json", json.dumps(manifest).encode())
    moved = again(work, resume_from=f"runs/{work.operation}/e1-1/sealed-1/manifest.json")
    async with a_cluster(tmp_path, served) as site:
        await run(site.executor, moved)
        report = await site.ended(moved)
        assert (str(report.outcome), await site.log(moved)) == ("completed", "/e1-1/sealed-2\n")


async def test_outputs_are_stored_and_reported_as_measured(tmp_path: Path, served: ObjectStore) -> None:
    script = (
        "import os, pathlib\nplace = pathlib.Path(os.environ['LANDBRIDGE_OUTPUT_MODEL'])\n"
        "(place / 'deep').mkdir()\n(place / 'deep' / 'a b').write_text('one')\n(place / 'two').write_text('two')\n"
        "(place / 'link').symlink_to('/proc/self/environ')\n"
    )
    work = a_work(python(script), outputs={"model": {"connection": "results", "path": "models"}})
    async with a_cluster(tmp_path, served) as site:
        await run(site.executor, work)
        report = await site.ended(work)
        job = site.harness.cluster.get("jobs", names.name_of(work.key), namespace=NAMESPACE)

    below = f"results/models/{work.operation}/e1-1/model"
    assert served.objects(below) == {f"{below}/deep/a b": b"one", f"{below}/two": b"two"}
    output = report.outputs["model"]
    assert (str(report.outcome), output.exists, output.bytes) == ("completed", True, 6)
    assert report.resolved is not None
    assert report.resolved.connections == {"results": f"s3://{served.bucket}/results"}
    assert served.keys[1] not in json.dumps(job), "keys are in the Secret and nowhere else"


async def test_the_workload_never_sees_keys_of_a_store_that_it_only_writes_to(
    tmp_path: Path, served: ObjectStore
) -> None:
    script = "import os; print(sorted(key for key in os.environ if 'STORE' in key or 'AWS' in key or 'S3' in key))"
    work = a_work(python(script), outputs={"model": {"connection": "results"}})
    reads = a_work(
        python("import os; print(os.environ['AWS_SECRET_ACCESS_KEY'], os.environ['LANDBRIDGE_INPUT_TABLE'])"),
        inputs={"table": {"connection": "features", "path": "daily"}},
    )
    async with a_cluster(tmp_path, served) as site:
        await run(site.executor, work, reads)
        await site.ended(work)
        await site.ended(reads)
        assert await site.log(work) == "[]\n"
        assert await site.log(reads) == f"{served.keys[1]} s3://{served.bucket}/features/daily\n"


async def test_a_store_that_does_not_let_it_write_is_told_before_anything_starts(
    tmp_path: Path, served: ObjectStore
) -> None:
    work = a_work(python("print('ran')"), outputs={"model": {"connection": "results"}})
    async with a_cluster(tmp_path, served, keys=served.reader) as site:
        await run(site.executor, work)
        report = await site.ended(work)
        assert report.reason == "connection-not-accepted"
        assert "AccessDenied" in report.message
        assert await site.log(work) == ""


async def test_a_checkpoint_that_is_not_what_was_sealed_is_not_gone_on_from(
    tmp_path: Path, served: ObjectStore
) -> None:
    work = a_work(python("print('ran')"), checkpoints=CHECKPOINTS)
    below = f"team/checkpoints/runs/{work.operation}/e1-1/sealed-1"
    served.put(f"{below}/weights", b"torn")
    manifest = {"files": {"weights": {"bytes": 4, "sha256": hashlib.sha256(b"whole").hexdigest()}}}
    served.put(f"{below}/manifest.json", json.dumps(manifest).encode())
    moved = again(work, resume_from=f"runs/{work.operation}/e1-1/sealed-1/manifest.json")
    async with a_cluster(tmp_path, served) as site:
        await run(site.executor, moved)
        report = await site.ended(moved)
        assert report.reason == "checkpoint-unreadable"
        assert await site.log(moved) == ""


async def test_work_whose_outputs_cannot_be_stored_has_not_completed(tmp_path: Path, served: ObjectStore) -> None:
    script = "import os, pathlib; (pathlib.Path(os.environ['LANDBRIDGE_OUTPUT_MODEL']) / '\\udcff').write_text('y')"
    work = a_work(python(script), outputs={"model": {"connection": "results"}})
    async with a_cluster(tmp_path, served) as site:
        await run(site.executor, work)
        report = await site.ended(work)
    assert (str(report.outcome), report.reason) == ("failed", "outputs-not-stored")


def _probe(kind: str, connection: str, access: str) -> Probe:
    told = {"connection": connection, "access": access, "claimed": '{"bandwidth": "10Gbit/s"}'}
    return Probe(name=f"{kind}@1", claim=kind, kind=kind, timeout_seconds=40, parameters=told)


async def test_a_store_is_proven_with_the_keys_of_its_binding_and_its_bandwidth_by_the_same_pod(
    tmp_path: Path, served: ObjectStore
) -> None:
    probe = _probe(probe_kinds.CONNECTION, "results", "read-write")
    async with a_cluster(tmp_path, served) as site:
        reached = await site.executor.probe(probe)
        measured = await site.executor.probe(_probe(probe_kinds.BANDWIDTH, "results", "read-write"))
        jobs = site.harness.cluster.all_of("jobs", namespace=NAMESPACE)

    assert reached is not None
    assert measured is not None
    assert (reached.result, reached.detail) == (EvidenceResult.PROVEN, "written and read")
    assert (measured.result, measured.detail, measured.claimed) == (EvidenceResult.PROVEN, "read by one pod", 1e10)
    assert measured.proven is not None
    assert measured.proven > 1e6
    assert measured.subject == reached.subject
    assert len(jobs) == 1
    for secret in (*served.keys, served.endpoint, served.bucket):
        assert secret not in f"{reached} {measured}"
    assert not [key for key in served.objects("results/") if "probe" in key], "nothing of it is left"


async def test_a_store_that_may_only_be_read_does_not_prove_that_it_is_written(
    tmp_path: Path, served: ObjectStore
) -> None:
    served.put("features/table", b"x" * (2 << 20))
    async with a_cluster(tmp_path, served, keys=served.reader) as site:
        written = await site.executor.probe(_probe(probe_kinds.CONNECTION, "results", "read-write"))
        claimed = await site.executor.probe(_probe(probe_kinds.CONNECTION, "features", "read-write"))
        measured = await site.executor.probe(_probe(probe_kinds.BANDWIDTH, "features", "read-only"))

    assert written is not None
    assert claimed is not None
    assert measured is not None
    assert written.result is EvidenceResult.FAILED
    assert "AccessDenied" in written.detail
    assert (claimed.result, claimed.detail) == (
        EvidenceResult.FAILED,
        "connection features is read-only here: see its binding",
    )
    assert measured.result is EvidenceResult.PROVEN
