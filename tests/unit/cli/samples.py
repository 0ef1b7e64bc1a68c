"""Documents and answers that tests of several commands share."""

from typing import Any

from support.fake_api import FakeApi

ID = "6f1c2d3e-0000-5000-8000-00000000000a"
OPERATION = """\
apiVersion: landbridge/v1
kind: Operation
metadata: {name: sums, project: analytics}
spec:
  type: job
  queue: batch
  command: [python3, sums.py]
  env: {LR: "0.1"}
  resources: {requests: {cpu: "1", memory: 256Mi}}
  lifecycle: {expectedDuration: 1m, recovery: {mode: never}}
"""
PROJECT = """\
apiVersion: landbridge/v1
kind: Project
metadata: {name: analytics}
spec: {defaultQueue: batch}
"""
QUEUE = """\
apiVersion: landbridge/v1
kind: Queue
metadata: {name: batch}
spec: {priority: 10}
"""


def row(phase: str = "running", **more: Any) -> dict[str, Any]:
    return {
        "operation": ID,
        "project": "analytics",
        "name": "sums",
        "queue": "batch",
        "phase": phase,
        "environment": "onprem-a",
        "attempt": 1,
        "acceptedAt": "2026-11-30T10:00:00Z",
        "conditions": [],
        **more,
    }


def accepting(api: FakeApi, final: dict[str, Any] | None = None) -> None:
    """The instance accepts a submission, which then stands as `final` says."""
    api["POST", "/v1/operations"] = (201, {"operation": ID, "phase": "accepted", "existing": False})
    api["GET", f"/v1/operations/{ID}"] = (200, final or row())
    events = [{"id": "1", "event": (final or row())["phase"], "opSeq": 2, "at": "2026-11-30T10:00:00Z", "data": {}}]
    api["GET", f"/v1/operations/{ID}/events"] = (200, {"items": events})
