"""Looking at what real workloads did: only for executors whose processes run on this machine."""

from pathlib import Path
from typing import Any

from contract.executors.harness import Harness
from landbridge_dispatch.executors.local import slots
from landbridge_dispatch.executors.local.store import name_of


def slot_directory(harness: Harness, key: Any) -> Path:
    return harness.home / slots.SLOTS / name_of(key)


def work_directory(harness: Harness, key: Any) -> Path:
    return slot_directory(harness, key) / slots.WORK
