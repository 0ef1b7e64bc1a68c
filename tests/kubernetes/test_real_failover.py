"""Two real clusters as two environments of one instance: one is cut off, and its work goes on in the other one.

`LANDBRIDGE_TEST_KUBECONFIG_B` names the other cluster; without it, it is another namespace of the same one. Their
dispatchers are processes of this machine, each behind a wire of its own; the checkpoint lies in a store of both.
"""

import contextlib
import json
import os
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from faults import directed
from faults.world import PROJECT, QUEUE, World
from landbridge.client import HttpClient, NotFoundError, Operation
from landbridge.domain.claims import SELF_STOP
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes.api import Object
from support.kubernetes.access_point import image, real_is_wanted
from support.kubernetes_site import OTHER, RealSite, real_site
from support.object_store import ObjectStore, object_store
from support.proxy import Wire
from support.wait import wait_until

pytestmark = [
    pytest.mark.skipif(
        not real_is_wanted() or not image(), reason="no cluster whose pods run: see make test-kubernetes"
    ),
    pytest.mark.timeout(900),
]
TTL_S = 10.0
PROVEN_S = 240.0
STEPS_S = 180.0
SITES = ("cluster-a", "cluster-b")
LIFECYCLE = {
    "expectedDuration": "5m",
    "timeout": "20m",
    "stopGrace": "5s",
    "disconnection": {"policy": "checkpoint-then-stop", "checkpointWithin": "20s", "grace": "5s"},
}
# A step takes a second; every fourth is sealed, and the one at which it is asked. Who goes on has twenty more to do.
COUNTS = """
count=0 last=600
if [ -n "${LANDBRIDGE_RESUME_FROM:-}" ]; then
  read -r count <"$LANDBRIDGE_RESUME_FROM/count"
  last=$((count + 20))
fi
echo "from $count"
seal() {
  name=$(printf '%04d' "$count")
  made="$LANDBRIDGE_CHECKPOINT_DIR/.sealing-$name"
  mkdir "$made"
  echo "$count" >"$made/count"
  digest=$(sha256sum <"$made/count")
  printf '{"files": {"count": {"bytes": %s, "sha256": "%s"}}}' $((${#count} + 1)) "${digest%% *}" >"$made/manifest.json"
  mv "$made" "$LANDBRIDGE_CHECKPOINT_DIR/sealed-$name"
}
while [ "$count" -lt "$last" ]; do
  sleep 1
  count=$((count + 1))
  if [ -f "$LANDBRIDGE_CHECKPOINT_REQUEST" ]; then seal; sleep 300; fi
  [ $((count % 4)) != 0 ] || seal
done
"""


class Clusters(World):
    """An instance whose environments are clusters."""

    def __init__(self, root: Path, clusters: Mapping[str, RealSite]) -> None:
        super().__init__(root, ttl_s=TTL_S, sites=tuple(clusters))
        self.clusters = clusters

    def contract(self, site: str) -> dict[str, Any]:
        connections = {
            "tools": {"type": "registry", "access": "read-only", "projects": ["*"]},
            "store": {"type": "s3", "access": "read-write", "projects": ["*"]},
        }
        version = self.clusters[site].node["status"]["nodeInfo"]["kubeletVersion"].removeprefix("v")
        spec = {
            "runtime": {"executor": "kubernetes", "kubernetes": ".".join(version.split(".")[:2])},
            "classes": {"cpu-general": {"cpu": "1", "memory": "1Gi"}},
            "connections": connections,
            "quotas": {"running": 10},
        }
        document = super().contract(site)
        return {**document, "spec": {**document["spec"], **spec}}

    def bindings(self, site: str) -> dict[str, Any]:
        home = self.clusters[site].home
        found: dict[str, Any] = yaml.safe_load((home / "bindings.yaml").read_text())
        found["kubernetes"] |= {"site": site, "kubeconfig": str(home / "kubeconfig.yaml")}
        found["connections"] = {name: found["connections"][name] for name in ("tools", "store")}
        return {**found, "accepts": {"projects": [PROJECT]}}

    async def jobs_of(self, site: str) -> list[Object]:
        """Jobs of work in a cluster; those of probes are no slots."""
        cluster = self.clusters[site]
        found, _ = await cluster.admin.list(cluster.path("jobs", group="batch"), names.SLOT)
        return found

    async def containers_of(self, site: str) -> dict[str, Object]:
        """How the workload's container is in each pod of work in a cluster: `waiting`, `running` or `terminated`."""
        cluster = self.clusters[site]
        found, _ = await cluster.admin.list(cluster.path("pods"), names.SLOT)
        return {
            pod["metadata"]["uid"]: status["state"]
            for pod in found
            for status in pod["status"].get("containerStatuses") or ()
            if status["name"] == names.CONTAINER
        }

    async def until_runs(self, operation: str, attempt: int) -> str:
        """Wait until an attempt runs; return where."""
        found: Operation | None = None

        async def runs() -> bool:
            nonlocal found
            try:
                async with self.client() as client:
                    found = await client.get(operation)
            except NotFoundError:
                return False  # accepted a moment ago: the read side is behind
            return found.phase == "running" and found.attempt == attempt

        try:
            await wait_until(runs, f"attempt {attempt} runs", timeout_s=STEPS_S, every_s=0.3)
        except AssertionError as error:
            raise AssertionError(f"{error}: {found}") from None
        assert found is not None
        return found.environment

    async def until_told(self, operation: str, reason: str) -> None:
        """Wait until the centre shows that this was reported of an operation."""

        async def told() -> bool:
            async with self.client() as client:
                return any(event.reason == reason for event in await client.events(operation))

        await wait_until(told, f"{reason} is told", timeout_s=STEPS_S, every_s=0.3)


@pytest.fixture
async def store() -> AsyncIterator[ObjectStore]:
    """At the address by which nodes see this machine."""
    with object_store("0.0.0.0") as found:
        yield found


@pytest.fixture
async def world(tmp_path: Path, store: ObjectStore) -> AsyncIterator[Clusters]:
    async with contextlib.AsyncExitStack() as stack:
        clusters = {}
        for name, kubeconfig in zip(SITES, ("", os.environ.get(OTHER, "")), strict=True):
            made = real_site(tmp_path / name, kubeconfig, store_port=store.port)
            clusters[name] = await stack.enter_async_context(made)
            await clusters[name].hold_keys(store)
        if not await clusters[SITES[0]].has_python():
            pytest.skip("who stores checkpoints needs python3, which the image lacks")
        found = Clusters(tmp_path / "instance", clusters)
        stack.push_async_callback(found.close)
        await found.open()
        yield found


def sealed(store: ObjectStore, operation: str, epoch: str) -> list[int]:
    """Counts of the checkpoints of an attempt that are whole in the store."""
    place = f"team/runs/{operation}/{epoch}/"
    found = store.objects(place)
    return sorted(int(body) for name, body in found.items() if f"{name[:-5]}manifest.json" in found)


def document(image_of_work: dict[str, str]) -> bytes:
    spec: dict[str, Any] = {
        "type": "job",
        "queue": QUEUE,
        "image": image_of_work,
        "command": ["sh", "-c", COUNTS],
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
        "checkpoints": {"connection": "store", "path": "runs", "every": "10s"},
        "constraints": {"environments": {"allow": list(SITES)}},
        "lifecycle": LIFECYCLE,
    }
    metadata = {"name": "counting", "project": PROJECT}
    return json.dumps({"apiVersion": "landbridge/v1", "kind": "Operation", "metadata": metadata, "spec": spec}).encode()


async def test_work_of_a_cluster_that_is_cut_off_goes_on_in_the_other_from_its_checkpoint(
    world: Clusters, store: ObjectStore
) -> None:
    await directed.proven(world, SELF_STOP, SITES, timeout_s=PROVEN_S)
    async with world.client() as client:
        operation = (await client.submit(document(world.clusters[SITES[0]].image))).id
    here = await world.until_runs(operation, 1)
    there = SITES[1 - SITES.index(here)]
    await world.until_told(operation, "checkpointed")
    known = sealed(store, operation, "e1-1")[-1]

    world.wires[here].set(Wire.BLACK_HOLE)
    assert await world.until_runs(operation, 2) == there

    [(only, first)] = (await world.containers_of(here)).items()
    [second] = (await world.containers_of(there)).values()
    assert first["terminated"]["finishedAt"] <= second["running"]["startedAt"], "one at a time"
    latest = sealed(store, operation, "e1-1")[-1]
    assert latest > known, "sealed when the lease was over, and the centre could not be told"
    async with world.client() as client:
        assert (await client.logs(operation)).text == f"from {latest}\n"
        away = await client.read(f"/v1/environments/{here}/disconnection")
        cut = await client.read(f"/v1/environments/{here}/reconciliation")
        assert (away["link"], away["operations"]) == ("lost", [])

        world.wires[here].heal()
        await wait_until(lambda: reconciled(client, here, after=cut["term"]), f"{here} is reconciled", timeout_s=60)
        owner = await client.read(f"/v1/operations/{operation}/ownership")
        assert (owner["environment"], owner["epoch"], owner["phase"]) == (there, "1.2", "running")
        ended = await client.wait(operation, timeout_s=STEPS_S)

        assert (ended.phase, ended.environment, ended.attempt) == ("completed", there, 2)
        assert sealed(store, operation, "e1-2")[-1] > latest
        assert list(await world.containers_of(here)) == [only], "nothing of it has started again"
        assert not any(job["status"].get("active") for job in await world.jobs_of(here))
        events = await client.events(operation)
        assert [event.phase for event in events if event.final] == ["completed"]
        assert [(event.environment, event.reason) for event in events if event.phase == "retrying"] == [
            (here, "environment-lost")
        ]
    explained = await directed.landbridge(world, "explain", operation)
    assert f"{there} (round 2)" in explained
    assert "failover: the previous environment was lost or failed" in explained


async def reconciled(client: HttpClient, site: str, *, after: int) -> bool:
    """Whether the centre has compared what a cluster holds since a term; what it finds there it has then settled."""
    found = await client.read(f"/v1/environments/{site}/reconciliation")
    if found["term"] <= after:
        return False
    assert (found["slots"], found["adopted"], found["settledOrStopped"]) == (1, 0, 1), found
    return True
