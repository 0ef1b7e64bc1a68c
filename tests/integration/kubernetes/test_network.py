"""Rules of the network: what has to be reached is, and one pod does not reach another that is ready all the while."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.kubernetes.probing import (
    SPACE,
    a_dispatcher,
    a_space,
    found_by,
    jobs_of_probes,
    probes_of,
    some_bindings,
)
from landbridge.domain.probe_kinds import ALLOWED, BOUNDARY, REFUSED
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.kubernetes.probing import network
from support.kubernetes import Course, FakeCluster

FAILED, PROVEN, UNKNOWN = EvidenceResult.FAILED, EvidenceResult.PROVEN, EvidenceResult.UNKNOWN
CLAIM = {"default": "deny", "egress": ["models", "tools"]}
S3 = {"endpoint": "http://s3.site:8333", "bucket": "shared", "secret": "keys"}
CONNECTIONS = {"models": {"options": {"s3": S3}}, "tools": {"options": {"registry": "registry.site/tools"}}}
CLIENTS = [name for name in ("python3", "bash", "nc") if shutil.which(name)]
LISTENS = Course(run_s=None, node="node-1")


def _listens(pod: dict[str, Any]) -> bool:
    return "readinessProbe" in pod["spec"]["containers"][0]


def _fine(pod: dict[str, Any]) -> Course:
    command = pod["spec"]["containers"][0]["command"]
    word = command[command.index("probe") + 1]
    return Course(run_s=0.01, message=f"{word} {time.time():.0f}", node="node-1")


def _fails(message: str) -> Course:
    return Course(run_s=0.01, exit_code=1, message=message, node="node-1")


async def _tried(cluster: FakeCluster, expect: str) -> Any:
    a_space(cluster)
    bindings = some_bindings(connections=CONNECTIONS)
    async with probes_of(cluster, bindings, token=a_dispatcher(cluster)) as probes:
        return await found_by(probes, BOUNDARY, CLAIM, boundary="network", expect=expect)


async def test_one_pod_that_does_not_reach_another_proves_that_rules_have_effect(cluster: FakeCluster) -> None:
    cluster.kubelet.course = lambda pod: LISTENS if _listens(pod) else _fine(pod)
    found = await _tried(cluster, REFUSED)
    assert (found.result, found.detail) == (PROVEN, "refused: from pod to pod, in namespace work")
    assert len(jobs_of_probes(cluster)) == 1, "the pod that was asked is removed"


async def test_a_pod_that_reaches_another_fails_the_boundary(cluster: FakeCluster) -> None:
    cluster.kubelet.course = lambda pod: LISTENS if _listens(pod) else _fails("reached")
    found = await _tried(cluster, REFUSED)
    assert (found.result, found.detail) == (FAILED, "let through: from pod to pod, in namespace work")


async def test_a_pod_that_cannot_even_try_shows_nothing(cluster: FakeCluster) -> None:
    cluster.kubelet.course = lambda pod: LISTENS if _listens(pod) else _fails(network._UNABLE)
    assert (await _tried(cluster, REFUSED)).result is UNKNOWN
    assert (await _tried(cluster, ALLOWED)).result is UNKNOWN


async def test_a_pod_that_was_never_ready_shows_nothing(cluster: FakeCluster) -> None:
    cluster.kubelet.course = lambda pod: None if _listens(pod) else _fine(pod)
    found = await _tried(cluster, REFUSED)
    assert (found.result, found.detail) == (UNKNOWN, "the pod that was to be asked did not become ready")


async def test_the_keeper_and_stores_have_to_be_reached_by_name(cluster: FakeCluster) -> None:
    cluster.kubelet.course = _fine
    found = await _tried(cluster, ALLOWED)
    assert (found.result, found.detail) == (PROVEN, "reached: the lease keeper, connection models")
    [pod] = cluster.all_of("pods", namespace=SPACE)
    assert pod["spec"]["containers"][0]["command"][-3:] == ["connection models", "s3.site", "8333"]


async def test_what_is_not_reached_is_named_without_its_address(cluster: FakeCluster) -> None:
    cluster.kubelet.course = lambda pod: _fails("not reached: connection models")
    found = await _tried(cluster, ALLOWED)
    assert (found.result, found.detail) == (FAILED, "exit code 1: not reached: connection models")


# -- the scripts, in a shell -------------------------------------------------------------------------------------------


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def _says(tools: Path, script: str, *words: str) -> tuple[int, str]:
    say = f'no() {{ echo "$*"; exit 1; }}; {script} echo fine'
    done = subprocess.run(
        ["/bin/sh", "-c", say, "probe", "word", *words],
        env={"PATH": str(tools)},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize("client", CLIENTS)
async def test_whatever_the_image_has_tells_open_from_closed(tmp_path: Path, client: str, port: int) -> None:
    for name in (client, "timeout"):
        # Not what stands in front of the interpreter on a developer's machine.
        found = os.path.realpath(sys.executable) if name == "python3" else shutil.which(name)
        (tmp_path / name).symlink_to(found or "")
    here, shut = ("127.0.0.1", str(port)), ("127.0.0.1", "9")
    tries = (
        (network._REACH, ("it", *here)),
        (network._REACH, ("it", *here, "other", *shut)),
        (network._KEPT_OUT, here),
        (network._KEPT_OUT, shut),
    )
    told = [await asyncio.to_thread(_says, tmp_path, script, *words) for script, words in tries]
    assert told == [(0, "fine"), (1, "not reached: other"), (1, "reached"), (0, "fine")]


async def test_an_image_without_a_client_says_so(tmp_path: Path) -> None:
    assert await asyncio.to_thread(_says, tmp_path, network._KEPT_OUT, "127.0.0.1", "9") == (1, network._UNABLE)
