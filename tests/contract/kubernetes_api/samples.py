"""Objects that any cluster takes."""

from typing import Any

IMAGE = "registry.invalid/none@sha256:" + "0" * 64


def a_job(name: str = "job", **spec: Any) -> dict[str, Any]:
    """Suspended, so that nothing runs."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": IMAGE}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": {"sample": "yes"}},
        "spec": {"suspend": True, "backoffLimit": 0, "template": template, **spec},
    }


def a_pod(name: str = "pod", **spec: Any) -> dict[str, Any]:
    """No scheduler takes it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "main", "image": IMAGE}], **spec},
    }


def a_map(name: str = "map", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
