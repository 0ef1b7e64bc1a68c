"""The formats that can be brought in, and how each is told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from landbridge.domain.importing.dstack import import_dstack
from landbridge.domain.importing.kubernetes_job import import_kubernetes_job
from landbridge.domain.importing.polyaxon import import_polyaxon
from landbridge.domain.importing.sheet import Sheet
from landbridge.domain.importing.skypilot import import_skypilot


@dataclass(frozen=True, slots=True)
class Format:
    """One format. `is_clear` tells whether a document can be nothing else."""

    name: str
    title: str
    fill: Callable[[Sheet], None]
    is_clear: Callable[[Mapping[str, Any]], bool]


def _is_job(value: Mapping[str, Any]) -> bool:
    return value.get("kind") in ("Job", "CronJob") and str(value.get("apiVersion", "")).startswith("batch/")


def _is_polyaxon(value: Mapping[str, Any]) -> bool:
    return value.get("kind") in ("operation", "component") and "apiVersion" not in value


def _is_dstack(value: Mapping[str, Any]) -> bool:
    return value.get("type") in ("task", "service", "dev-environment") and "kind" not in value


_SKYPILOT_ONLY: Final = frozenset(("num_nodes", "file_mounts", "envs", "secrets", "setup", "run", "workdir"))


def _is_skypilot(value: Mapping[str, Any]) -> bool:
    return not {"kind", "type", "apiVersion"} & set(value) and bool(_SKYPILOT_ONLY & set(value))


FORMATS: Final[dict[str, Format]] = {
    each.name: each
    for each in (
        Format("polyaxon", "a Polyaxonfile", import_polyaxon, _is_polyaxon),
        Format("skypilot", "a SkyPilot task", import_skypilot, _is_skypilot),
        Format("dstack", "a dstack configuration", import_dstack, _is_dstack),
        Format("kubernetes-job", "a Kubernetes Job", import_kubernetes_job, _is_job),
    )
}


def detect(value: object) -> str:
    """Return the name of the format that a document is clearly of; empty if that is not clear."""
    if not isinstance(value, Mapping):
        return ""
    found = [each.name for each in FORMATS.values() if each.is_clear(value)]
    return found[0] if len(found) == 1 else ""
