"""A canary of a cluster: the same pod as work gets, whose lease nobody renews."""

from pathlib import Path
from typing import Any

import pytest

from contract.executors.cluster import NAMESPACE, KubernetesHarness
from contract.executors.harness import make_executor
from landbridge.domain import claims, probe_kinds
from landbridge.schema.wire.command_v1 import Probe
from landbridge.schema.wire.report_v1 import EvidenceResult
from landbridge_dispatch.executors.kubernetes.facts import PodFacts
from landbridge_dispatch.executors.kubernetes.probing import self_stop
from landbridge_dispatch.executors.protocol import Finding

IMAGE = "registry.site/tools/box@sha256:" + "7" * 64
FAILED, PROVEN, UNKNOWN = EvidenceResult.FAILED, EvidenceResult.PROVEN, EvidenceResult.UNKNOWN


async def _found(home: Path, *, timeout_s: int, **section: Any) -> Finding:
    """What the probe finds, in a cluster whose dispatcher has no lease: the centre is away."""
    harness = KubernetesHarness(home, **section)
    probe = Probe(name="self-stop@1", claim=claims.SELF_STOP, kind=probe_kinds.SELF_STOP, timeout_seconds=timeout_s)
    async with harness.around():
        executor = make_executor(home)
        await executor.open()
        try:
            finding = await executor.probe(probe)
        finally:
            await executor.close()
        assert harness.cluster.all_of("jobs", namespace=NAMESPACE) == [], "nothing of it is left"
    assert finding is not None
    return finding


async def test_a_canary_stops_itself_in_time_also_while_the_centre_is_away(tmp_path: Path) -> None:
    found = await _found(tmp_path, timeout_s=40, probes={"image": IMAGE})
    assert (found.result, found.detail) == (PROVEN, "stopped within 6 s of the end of its lease")
    assert found.subject.startswith("wrapper ")


async def test_one_that_goes_on_without_a_lease_proves_that_work_does_not_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(self_stop, "_LOST", "lease 60000")
    found = await _found(tmp_path, timeout_s=16, probes={"image": IMAGE})
    assert (found.result, found.detail) == (FAILED, "the canary went on without a lease")


def _pod(message: str, *, phase: str = "Failed", finished_at: float = 1_000.0, **facts: Any) -> PodFacts:
    over = phase == "Failed"
    return PodFacts(
        "u", phase=phase, terminated=over, running=not over, message=message, finished_at=finished_at, **facts
    )


@pytest.mark.parametrize(
    ("pod", "result", "told"),
    [
        (_pod("started 992\nended 999\nstatus 137\ncause self-stopped\n"), PROVEN, "within 6 s"),
        (_pod("started 990\nended 1000\nstatus 137\ncause self-stopped\n"), FAILED, "up to 7 s after its lease"),
        (_pod("started 992\nended 999\nstatus 0\n"), FAILED, "did not stop itself: exit code 0"),
        (_pod("", exit_code=137, reason="DeadlineExceeded"), FAILED, "exit code 137, DeadlineExceeded"),
        (_pod("not-started no-lease the keeper cannot be reached\n"), UNKNOWN, "did not start: the keeper cannot"),
        (_pod("", phase="Running"), FAILED, "went on without a lease"),
        (PodFacts("u", scheduled="Unschedulable: no room"), UNKNOWN, "did not start: Unschedulable: no room"),
        (None, UNKNOWN, "no pod yet"),
    ],
)
def test_what_a_canary_shows(pod: PodFacts | None, result: EvidenceResult, told: str) -> None:
    found = self_stop.judged(pod, "wrapper x")
    assert found.result is result
    assert told in found.detail
