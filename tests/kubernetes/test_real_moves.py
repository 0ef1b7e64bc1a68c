"""Work that moves from one real cluster to another goes on from its checkpoint, which lies in a store of both.

`LANDBRIDGE_TEST_KUBECONFIG_B` names the other cluster; without it, it is another namespace of the same one.
"""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from contract.executors.harness import TERM, a_lease
from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.domain.ownership.epochs import Epoch
from landbridge.schema.wire.report_v1 import AttemptOutcome
from landbridge_dispatch.executors.protocol import Work
from support.kubernetes.access_point import image, real_is_wanted
from support.kubernetes_pods import Pods, real_pods
from support.kubernetes_site import OTHER, STARTS_S
from support.object_store import ObjectStore, object_store

pytestmark = [
    pytest.mark.skipif(
        not real_is_wanted() or not image(), reason="no cluster whose pods run: see make test-kubernetes"
    ),
    pytest.mark.timeout(600),
]
POLICY = {
    "disconnection": {"policy": "checkpoint-then-stop", "checkpointWithin": "60s", "grace": "5s"},
    "stopGrace": "5s",
}
COUNTS = """
before=0
[ -z "${LANDBRIDGE_RESUME_FROM:-}" ] || before=$(cat "$LANDBRIDGE_RESUME_FROM/count")
echo "from $before"
[ "$before" = 0 ] || exit 0
while ! [ -f .landbridge/checkpoint-requested ]; do sleep 1; done
place=$LANDBRIDGE_CHECKPOINT_DIR
mkdir "$place/.sealing-1"
printf 41 >"$place/.sealing-1/count"
digest=$(sha256sum <"$place/.sealing-1/count")
printf '{"files": {"count": {"bytes": 2, "sha256": "%s"}}}' "${digest%% *}" >"$place/.sealing-1/manifest.json"
mv "$place/.sealing-1" "$place/sealed-1"
sleep 300
"""


@pytest.fixture
async def clusters(tmp_path: Path) -> AsyncIterator[tuple[Pods, Pods, ObjectStore]]:
    """Each reaches the store at the address by which its nodes see this machine."""
    other = os.environ.get(OTHER, "")
    with object_store("0.0.0.0") as store:
        first, second = (
            real_pods(tmp_path / "a", store_port=store.port),
            real_pods(tmp_path / "b", other, store_port=store.port),
        )
        async with first as one, second as another:
            for pods in (one, another):
                await pods.site.hold_keys(store)
            yield one, another, store


async def test_work_that_lost_its_lease_goes_on_in_the_other_cluster(
    clusters: tuple[Pods, Pods, ObjectStore],
) -> None:
    one, other, store = clusters
    work = one.work(COUNTS, checkpoints={"connection": "store", "path": "runs"}, lifecycle=POLICY)
    assert await one.executor.occupy([work]) == [None]
    one.executor.hold_lease(a_lease(seconds=20))
    await one.executor.start([work.key])

    left = await one.report(work)

    assert (left.outcome, left.reason) == (AttemptOutcome.CANCELLED, "self-stopped"), left
    assert left.checkpoint is not None
    manifest = f"runs/{work.operation}/e1-1/sealed-1/manifest.json"
    assert left.checkpoint.manifest == manifest
    stored = f"team/{manifest}"
    assert json.loads(store.objects(stored)[stored])["files"]["count"]["bytes"] == 2

    moved: Work = replace(work, epoch=Epoch(1, 2), attempt=2, term=TERM, resume_from=manifest)
    assert await other.executor.occupy([moved]) == [None]
    await other.executor.start([moved.key])
    view = await other.watcher.end(moved.key, timeout_s=STARTS_S)

    assert view.phase is SlotPhase.FINISHED, view
    assert view.report is not None
    assert (view.report.outcome, view.report.exit_code) == (AttemptOutcome.COMPLETED, 0)
    log = await other.executor.logs(moved.key)
    assert log is not None
    assert log.data == b"from 41\n"
