"""Names of what an operation may need a dispatcher to understand (DESIGN 3: commands are must-understand).

A dispatcher's hello lists the features it understands; an operation that needs another one is *misconfigured* there.
Constraints and the coordinator's offers derive the needed ones here, so that both always agree.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

CHECKPOINTS = "checkpoints"
ACCEPTANCE = "acceptance"
IMAGE = "image"
SOURCE = "source"
INPUTS = "inputs"
OUTPUTS = "outputs"
ENVIRONMENT_SETTINGS = "environment-settings"
ASSIGNED_CLASS = "assigned-class"  # accelerators are of the class that an offer names, not the operation
GANG_MEMBERS = "gang-members"  # it claims again what is withheld until all members of a gang are claimed
_DISCONNECTION = "disconnection."
_TYPE = "type."
_FRAMEWORK = "framework."
_OPERATOR = "operator."

RANKS = "ranks"
RAY = "ray"

DISCONNECTION_POLICIES = ("continue", "must-finish", "checkpoint-then-stop", "stop-after-grace")
WORKLOAD_TYPES = ("job", "distributed-job", "service")


def type_feature(workload_type: str) -> str:
    """Return the feature that stands for running a workload type, such as `type.job`."""
    return _TYPE + (workload_type or WORKLOAD_TYPES[0])


def disconnection_feature(policy: str) -> str:
    """Return the feature that stands for obeying a disconnection policy, such as `disconnection.continue`."""
    return _DISCONNECTION + (policy or DISCONNECTION_POLICIES[0])


def framework_feature(framework: str) -> str:
    """Return the feature that stands for a framework of gangs other than plain ranks, such as `framework.ray`."""
    return _FRAMEWORK + framework


def operator_feature(operator: str) -> str:
    """Return what a dispatcher says that may use an operator which it found, such as `operator.jobset`."""
    return _OPERATOR + operator


# What this release's dispatcher understands for local processes; executors that need less list less.
PROCESS_FEATURES = (
    type_feature("job"),
    *(disconnection_feature(policy) for policy in DISCONNECTION_POLICIES),
    ACCEPTANCE,
    ASSIGNED_CLASS,
    CHECKPOINTS,
    ENVIRONMENT_SETTINGS,
    GANG_MEMBERS,
    INPUTS,
    OUTPUTS,
)


@lru_cache(maxsize=1024)
def features_of(
    workload_type: str,
    disconnection: str,
    *,
    image_only: bool = False,
    source: bool = False,
    inputs: bool = False,
    outputs: bool = False,
    checkpoints: bool = False,
    acceptance: bool = False,
    environment_settings: bool = False,
    framework: str = "",
    gang: bool = False,
) -> tuple[str, ...]:
    """Return, sorted, the features that an operation of this shape needs of a dispatcher.

    With a command beside it an image is one of two ways to start the work, not a need of its own; hence `image_only`.
    """
    asked = (
        (image_only, IMAGE),
        (source, SOURCE),
        (inputs, INPUTS),
        (outputs, OUTPUTS),
        (checkpoints, CHECKPOINTS),
        (acceptance, ACCEPTANCE),
        (environment_settings, ENVIRONMENT_SETTINGS),
        (framework not in ("", RANKS), framework_feature(framework)),
        (gang, GANG_MEMBERS),
    )
    needed = [type_feature(workload_type), disconnection_feature(disconnection)]
    return tuple(sorted(needed + [feature for wanted, feature in asked if wanted]))


def needed_features(operation: Mapping[str, Any]) -> tuple[str, ...]:
    """Return, sorted, the features that an effective operation (as parsed JSON) needs of a dispatcher."""
    spec = operation.get("spec") or {}
    disconnection = (spec.get("lifecycle") or {}).get("disconnection") or {}
    return features_of(
        spec.get("type") or "",
        disconnection.get("policy") or "",
        image_only=bool(spec.get("image")) and not spec.get("command"),
        source=bool(spec.get("source")),
        inputs=bool(spec.get("inputs")),
        outputs=bool(spec.get("outputs")),
        checkpoints=bool(spec.get("checkpoints")),
        acceptance=bool(spec.get("acceptance")),
        environment_settings=bool(operation.get("environmentSettings")),
        framework=(spec.get("gang") or {}).get("framework") or "",
        gang=bool((spec.get("gang") or {}).get("name")),
    )
