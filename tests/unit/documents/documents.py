"""Good documents to start from, and small changes to them."""

import copy
import json
import re
from typing import Any

GOOD: dict[str, dict[str, Any]] = {
    "operation": {
        "apiVersion": "landbridge/v1",
        "kind": "Operation",
        "metadata": {"name": "churn-train", "project": "retail-eu"},
        "spec": {"command": ["python", "train.py"]},
    },
    "preset": {
        "apiVersion": "landbridge/v1",
        "kind": "Preset",
        "metadata": {"name": "overnight", "version": 2},
        "spec": {"patch": {"env": {"MODE": "night"}}},
    },
    "component": {
        "apiVersion": "landbridge/v1",
        "kind": "Component",
        "metadata": {"name": "trainer", "version": 1},
        "spec": {
            "parameters": {"lr": {"default": "0.1"}},
            "operation": {"command": ["python", "train.py", "--lr=$(parameters.lr)"]},
        },
    },
    "project": {
        "apiVersion": "landbridge/v1",
        "kind": "Project",
        "metadata": {"name": "retail-eu"},
        "spec": {"defaultQueue": "training"},
    },
    "queue": {
        "apiVersion": "landbridge/v1",
        "kind": "Queue",
        "metadata": {"name": "training"},
        "spec": {"priority": 1},
    },
    "contract": {
        "apiVersion": "landbridge/v1",
        "kind": "EnvironmentContract",
        "metadata": {"name": "onprem-a", "version": 1},
        "spec": {"runtime": {"executor": "process"}, "classes": {"cpu-general": {"cpu": "8"}}},
    },
}


def a_document(
    base: str = "operation", put: dict[str, Any] | None = None, drop: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return a good document with values put at dotted paths, and others dropped."""
    document = copy.deepcopy(GOOD[base])
    for path, value in (put or {}).items():
        *parents, last = re.split(r"\.(?![^\[]*\])", path)
        here = document
        for part in parents:
            here = here.setdefault(part, {})
        here[last] = value
    for path in drop:
        *parents, last = path.split(".")
        here = document
        for part in parents:
            here = here[part]
        del here[last]
    return document


def as_json(document: object) -> bytes:
    return json.dumps(document, indent=2, default=str).encode()
