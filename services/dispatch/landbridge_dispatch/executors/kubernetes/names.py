"""Names, labels and annotations of what the executor makes. Whatever lacks these labels is not its own."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, Final

from landbridge.domain import ids
from landbridge_dispatch.executors.protocol import SlotKey

PREFIX: Final = "landbridge.io/"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGER: Final = "landbridge"
FIELD_MANAGER: Final = "landbridge-dispatcher"
SITE: Final = f"{PREFIX}site"
SLOT: Final = f"{PREFIX}slot"
PROJECT: Final = f"{PREFIX}project"
RECORD: Final = f"{PREFIX}record"
"""What the slot is about; written once, with the object."""
PARTS: Final = f"{PREFIX}parts"
"""What has to be made before the start, so that whoever starts the slot needs nothing else."""
SPEC_HASH: Final = f"{PREFIX}spec-sha256"
TERM: Final = f"{PREFIX}term"
BEGUN: Final = f"{PREFIX}begun"
"""Starting was asked for: the keeper may let pods start."""
CLAIMS: Final = f"{PREFIX}claims"
"""Which pods took the slot, by rank."""
STOP: Final = f"{PREFIX}stop"
CHECKPOINT: Final = f"{PREFIX}checkpoint"
GRAVE: Final = f"{PREFIX}grave"
END: Final = f"{PREFIX}end"
ANSWER: Final = f"{PREFIX}answer"
SETTLED: Final = f"{PREFIX}settled"
QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"
RANK: Final = "batch.kubernetes.io/job-completion-index"

CONTAINER: Final = "work"
TRAINER_CONTAINER: Final = "node"
CONTAINERS: Final = frozenset({CONTAINER, "pytorch", TRAINER_CONTAINER})
"""Names of a workload's container; some operators want their own."""
REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
SHELL_CONTAINER: Final = "shell"
ROOT: Final = "/landbridge"
WRAPPER_FILE: Final = "wrapper.sh"
CARRIER: Final = "carrier"
CARRIER_MODULES: Final = ("__init__", "__main__", "checkpoints", "files", "signing", "store", "trial")


def name_of(key: SlotKey) -> str:
    """Return the fixed name of a slot and of all that belongs to it."""
    return ids.slot_name(key.operation, key.epoch.generation, key.epoch.counter)


def own_labels(site: str) -> dict[str, str]:
    """Return the labels of everything that a site's dispatcher makes."""
    return {MANAGED_BY: MANAGER, SITE: site}


def selector(site: str) -> str:
    """Return the label selector for everything that a site's dispatcher makes."""
    return ",".join(f"{key}={value}" for key, value in own_labels(site).items())


def is_own(item: Mapping[str, Any], site: str) -> bool:
    """Tell whether an object was made by this site's dispatcher."""
    labels = item["metadata"].get("labels") or {}
    return bool(own_labels(site).items() <= labels.items())


def rank_of(item: Mapping[str, Any]) -> int:
    """Return a pod's rank by the labels of whoever made it; 0 where it is alone."""
    labels = item["metadata"].get("labels") or {}
    if labels.get(REPLICA_TYPE) == "worker":
        return _integer(labels.get(REPLICA_INDEX)) + 1
    return _integer(labels.get(RANK))


def container_of(pod: Mapping[str, Any]) -> str:
    """Return the name of a pod's container in which the workload runs."""
    found = (str(item.get("name")) for item in (pod.get("spec") or {}).get("containers") or ())
    return next((name for name in found if name in CONTAINERS), CONTAINER)


def _integer(text: object) -> int:
    return int(text) if isinstance(text, str) and text.isdecimal() else 0


@lru_cache(maxsize=1)
def wrapper_text() -> str:
    """Return the wrapper script of this release."""
    return (resources.files(__package__) / WRAPPER_FILE).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def scripts() -> Mapping[str, str]:
    """Return all that pods run of this release: the wrapper, and the carrier's modules, by the file's name."""
    package = resources.files(f"{__package__}.{CARRIER}")
    modules = {f"{CARRIER}-{name}.py": (package / f"{name}.py").read_text(encoding="utf-8") for name in CARRIER_MODULES}
    return {WRAPPER_FILE: wrapper_text(), **modules}


@lru_cache(maxsize=1)
def wrapper_name() -> str:
    """Return the name of the ConfigMap that holds them: another text is another object."""
    text = "\0".join(f"{name}\0{text}" for name, text in sorted(scripts().items()))
    return f"landbridge-wrapper-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
