"""What all objects of a slot have in common: name, namespace, labels. Pure."""

from typing import Any

from landbridge_dispatch.executors.bindings import Bindings
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes.resolution import Resolved
from landbridge_dispatch.executors.protocol import Work

Object = dict[str, Any]


def labels_of(bindings: Bindings, work: Work) -> dict[str, str]:
    """Return the labels of everything that is made for a slot."""
    own = names.own_labels(bindings.kubernetes.site)
    return own | {names.SLOT: names.name_of(work.key), names.PROJECT: work.project}


def part(api: str, kind: str, bindings: Bindings, work: Work, found: Resolved, spec: Object) -> Object:
    """Return an object beside a slot's Job, with the slot's name."""
    metadata = {
        "name": names.name_of(work.key),
        "namespace": found.namespace,
        "labels": labels_of(bindings, work),
    }
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def owned(item: Object, job: Object) -> Object:
    """Return a part as one that the cluster removes together with its slot."""
    reference = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "controller": True,
    }
    return {**item, "metadata": {**item["metadata"], "ownerReferences": [reference]}}
