"""Names of what an operation may need a dispatcher to understand (DESIGN 3: commands are must-understand).

A dispatcher's hello lists the features it understands; an operation that needs another one is *misconfigured* there.
Constraints and the coordinator's offers derive the needed ones with `needed_features`, so both always agree.
"""

from collections.abc import Mapping
from typing import Any

CHECKPOINTS = "checkpoints"
ACCEPTANCE = "acceptance"
IMAGE = "image"
SOURCE = "source"
INPUTS = "inputs"
OUTPUTS = "outputs"
_DISCONNECTION = "disconnection."
_TYPE = "type."

DISCONNECTION_POLICIES = ("continue", "must-finish", "checkpoint-then-stop", "stop-after-grace")
WORKLOAD_TYPES = ("job", "distributed-job", "service")


def type_feature(workload_type: str) -> str:
    """Return the feature that stands for running a workload type, such as `type.job`."""
    return _TYPE + workload_type


def disconnection_feature(policy: str) -> str:
    """Return the feature that stands for obeying a disconnection policy, such as `disconnection.continue`."""
    return _DISCONNECTION + policy


# What this release's dispatcher understands for local processes; executors that need less list less.
PROCESS_FEATURES = (
    type_feature("job"),
    *(disconnection_feature(policy) for policy in DISCONNECTION_POLICIES),
    ACCEPTANCE,
    CHECKPOINTS,
    INPUTS,
    OUTPUTS,
)


def needed_features(spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Return, sorted, the features that an effective operation's `spec` (as parsed JSON) needs of a dispatcher."""
    lifecycle = spec.get("lifecycle") or {}
    disconnection = lifecycle.get("disconnection") or {}
    needed = [
        type_feature(spec.get("type") or "job"),
        disconnection_feature(disconnection.get("policy") or "continue"),
    ]
    for field, feature in (
        ("inputs", INPUTS),
        ("outputs", OUTPUTS),
        ("checkpoints", CHECKPOINTS),
        ("acceptance", ACCEPTANCE),
        ("source", SOURCE),
    ):
        if spec.get(field):
            needed.append(feature)
    # With a command beside it an image is one of two ways to start the work, not a need of its own.
    if spec.get("image") and not spec.get("command"):
        needed.append(IMAGE)
    return tuple(sorted(needed))
