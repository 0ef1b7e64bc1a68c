"""What a workload in a pod sees as its environment, and what the wrapper before it is told. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from landbridge.domain import units
from landbridge_dispatch.executors.kubernetes import names
from landbridge_dispatch.executors.kubernetes.resolution import Resolved, connection_path
from landbridge_dispatch.executors.local.build import expand, variable
from landbridge_dispatch.executors.protocol import Work
from landbridge_dispatch.specification import STOP_GRACE_MS, milliseconds

WORK: Final = f"{names.ROOT}/work"
TOKEN: Final = f"{names.ROOT}/keeper/token"
IDENTITY_TOKEN: Final = f"{names.ROOT}/identity/token"
TOOLS: Final = f"{names.ROOT}/bin"
CARRIER: Final = f"{names.ROOT}/carrier"
"""Where wrapper and carrier leave word for each other."""
MESSAGE: Final = "/dev/termination-log"
MASTER_PORT: Final = 29500
WRAPPER: Final = "LANDBRIDGE_WRAPPER_"


@dataclass(frozen=True, slots=True)
class Gang:
    """How a pod is one of several. `master`: the first one's address; empty: by the slot's own headless Service.

    `tells_ranks`: whether ranks are told here, by the label of an Indexed Job; else the operator tells them.
    """

    ranks: int = 1
    container: str = names.CONTAINER
    master: str = ""
    tells_ranks: bool = True


ALONE: Final = Gang()


def workload_variables(work: Work, found: Resolved, ranks: int) -> dict[str, str]:
    """Return the variables of the workload, those of Secrets apart."""
    own = {
        "HOME": WORK,
        "TMPDIR": f"{WORK}/.landbridge/tmp",
        "LANG": "C.UTF-8",
        "LANDBRIDGE_OPERATION": work.operation,
        "LANDBRIDGE_ATTEMPT": str(work.attempt),
        "LANDBRIDGE_METRICS": f"{WORK}/.landbridge/metrics.jsonl",
        **{f"LANDBRIDGE_INPUT_{variable(name)}": place for name, place in found.inputs.items()},
        **{
            f"LANDBRIDGE_OUTPUT_{variable(name)}": connection_path(place.connection, place.path)
            for name, place in found.outputs.items()
        },
    }
    if work.traceparent:
        own["TRACEPARENT"] = work.traceparent
    if found.checkpoint is not None:
        own["LANDBRIDGE_CHECKPOINT_DIR"] = connection_path(found.checkpoint.connection, found.checkpoint.path)
        own["LANDBRIDGE_CHECKPOINT_REQUEST"] = f"{WORK}/.landbridge/checkpoint-requested"
    if found.resume_from:
        own["LANDBRIDGE_RESUME_FROM"] = found.resume_from
    if found.audience:
        own["LANDBRIDGE_IDENTITY_TOKEN"] = IDENTITY_TOKEN
    if ranks > 1:
        own |= {"LANDBRIDGE_WORLD_SIZE": str(ranks), "LANDBRIDGE_LOCAL_RANK": "0"}
    # Bindings may name anything but what is ours: a wrapper that is told otherwise would guard nothing.
    site = {key: value for key, value in found.env.items() if not key.startswith("LANDBRIDGE_")}
    declared = {key: value for key, value in work.view.spec.env.items() if not key.startswith("LANDBRIDGE_")}
    known = {**own, **site, **declared}
    return {**own, **site, **{key: expand(value, known) for key, value in declared.items()}}


def rank_variables(work: Work, gang: Gang) -> list[dict[str, Any]]:
    """Return what members of a gang need to find each other, as entries of a container's env."""
    if gang.ranks == 1 or not gang.tells_ranks:
        return []
    rank = {"fieldRef": {"fieldPath": f"metadata.labels['{names.RANK}']"}}
    name = names.name_of(work.key)
    found: list[dict[str, Any]] = [{"name": "LANDBRIDGE_RANK", "valueFrom": rank}]
    declared = work.view.spec.env
    known: dict[str, dict[str, Any]] = {
        "RANK": {"valueFrom": rank},
        "WORLD_SIZE": {"value": str(gang.ranks)},
        "LOCAL_RANK": {"value": "0"},
        # By the headless Service, which also tells of pods that are not ready yet.
        "MASTER_ADDR": {"value": gang.master or f"{name}-0.{name}"},
        "MASTER_PORT": {"value": str(MASTER_PORT)},
    }
    return found + [{"name": key, **value} for key, value in known.items() if key not in declared]


def wrapper_variables(
    work: Work, found: Resolved, *, keeper: str, start_wait_ms: int, tools: bool, carrier_wait_ms: int = 0
) -> dict[str, str]:
    """Return what the wrapper is told; it takes these variables away before the workload starts."""
    lifecycle, policy = work.view.spec.lifecycle, work.policy
    metrics = [criterion.metric for criterion in work.view.spec.acceptance if _is_word(criterion.metric)]
    outputs = [f"{name} {connection_path(place.connection, place.path)}" for name, place in found.outputs.items()]
    told = {
        "KEEPER": keeper.rstrip("/"),
        "TOKEN": TOKEN,
        "MESSAGE": MESSAGE,
        "START_WAIT": str(start_wait_ms // 10),
        "TIMEOUT": str(_hundredths(milliseconds(lifecycle.timeout))),
        "GRACE": str(milliseconds(lifecycle.stop_grace, STOP_GRACE_MS) // 10),
        "POLICY": policy.policy.value,
        "WITHIN": str(policy.within_ms // 10),
        "LOSS_GRACE": str(policy.grace_ms // 10),
        "OUTPUTS": "\n".join(outputs),
        "METRICS": " ".join(metrics),
        **({"TOOLS": TOOLS} if tools else {}),
        **({"CARRIER": CARRIER, "CARRIER_WAIT": str(carrier_wait_ms // 10)} if carrier_wait_ms else {}),
    }
    return {f"{WRAPPER}{key}": value for key, value in told.items()}


def entries(env: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return variables as entries of a container's env, taken literally by the kubelet."""
    return [{"name": key, "value": literal(value)} for key, value in env.items()]


def literal(text: str) -> str:
    """Return text that the kubelet's own expansion leads back to `text`."""
    return text.replace("$", "$$")


def memory_bytes(work: Work) -> int:
    """Return how much memory a replica may use; 0 for no limit."""
    memory = work.view.spec.resources.requests.memory
    return units.parse_bytes(memory) if memory else 0


def _hundredths(milliseconds_: int) -> int:
    """Return hundredths of a second; a stated time never becomes none."""
    return max(1, milliseconds_ // 10) if milliseconds_ else 0


def _is_word(name: str) -> bool:
    """Whether a shell can take it as one word and a pattern of itself."""
    return bool(name) and all(letter.isalnum() or letter in "._-/" for letter in name)
