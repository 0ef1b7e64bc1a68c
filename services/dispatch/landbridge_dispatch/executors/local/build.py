"""From a granted placement and its resolved names to the order that a guardian carries out."""

import os
import platform
import re
import socket
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from landbridge.domain import units
from landbridge_dispatch.executors.bindings import Bindings, ExecutorOptions
from landbridge_dispatch.executors.local import slots, watches
from landbridge_dispatch.executors.local.order import CheckpointPlace, Disconnection, Order, OutputPlace
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError, Work
from landbridge_dispatch.executors.resolution import Place, Resolution, resolve
from landbridge_dispatch.specification import STOP_GRACE_MS, Criterion, milliseconds

_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")
RANKS_MAX = 256


def order_for(bindings: Bindings, name: str, work: Work) -> Order:
    """Resolve an operation's names and return the order for slot `name`. Raises RefusedError, nothing else."""
    try:
        return build_order(bindings.home, name, work, resolve(bindings, work), bindings.executor)
    except OSError as error:
        # A path too long, a mount that is away, a directory that may not be read: the operation's or the site's affair.
        told = error.strerror or type(error).__name__
        raise RefusedError(RefusalCode.CONNECTION_UNAVAILABLE, f"a connection cannot be looked at: {told}") from error
    except ValueError as error:
        raise RefusedError(RefusalCode.UNREADABLE, f"the specification cannot be used: {error}") from error


def build_order(home: Path, name: str, work: Work, found: Resolution, options: ExecutorOptions) -> Order:
    """Return the order for slot `name`. Raises RefusedError for what plain processes cannot do."""
    spec, lifecycle = work.view.spec, work.view.spec.lifecycle
    ranks = spec.replicas if spec.type == "distributed-job" else 1
    if not spec.command or spec.source is not None or not 1 <= ranks <= RANKS_MAX:
        raise RefusedError(
            RefusalCode.WORKLOAD,
            "plain processes need a command, no source, and at most "
            f"{RANKS_MAX} replicas; run it where containers are offered, or state a command",
        )
    env = workload_variables(home / slots.SLOTS / name, work, found, options)
    argv = [expand(word, env) for word in (*spec.command, *spec.args)]
    if any("\x00" in text for text in (*argv, *env.values())):
        raise RefusedError(RefusalCode.UNREADABLE, "command, arguments and variables must not contain NUL")
    memory = spec.resources.requests.memory
    return Order(
        operation=work.operation,
        generation=work.epoch.generation,
        counter=work.epoch.counter,
        attempt=work.attempt,
        grant_term=work.term,
        spec_sha256=work.spec_sha256,
        project=work.project,
        name=work.view.metadata.name,
        argv=argv,
        env=env,
        secret_files=found.secret_files,
        secret_variables=found.secret_variables,
        user=found.user,
        ranks=ranks,
        timeout_ms=milliseconds(lifecycle.timeout),
        grace_ms=milliseconds(lifecycle.stop_grace, STOP_GRACE_MS),
        start_wait_ms=milliseconds(options.start_wait),
        memory_bytes=units.parse_bytes(memory) * ranks if memory else 0,
        log_bytes=units.parse_bytes(options.log_limit),
        disconnection=Disconnection(work.policy.policy, work.policy.within_ms, work.policy.grace_ms),
        outputs={key: OutputPlace(*_texts(place)) for key, place in found.outputs.items()},
        checkpoint=None if found.checkpoint is None else CheckpointPlace(*_texts(found.checkpoint)),
        acceptance=[criterion_of(criterion) for criterion in spec.acceptance],
        resolved=resolved(work, found),
    )


def workload_variables(slot: Path, work: Work, found: Resolution, options: ExecutorOptions) -> dict[str, str]:
    """Return the workload's whole environment but secrets: nothing of the dispatcher's own leaks into it."""
    workspace = slot / slots.WORK
    path = [*options.path, str(Path(sys.executable).parent), *_SYSTEM_PATH]
    own = {
        "PATH": os.pathsep.join(path),
        "HOME": str(workspace),
        "TMPDIR": str(workspace / watches.PRIVATE),
        "LANG": "C.UTF-8",
        "LANDBRIDGE_OPERATION": work.operation,
        "LANDBRIDGE_ATTEMPT": str(work.attempt),
        "LANDBRIDGE_METRICS": str(workspace / slots.METRICS),
        **{f"LANDBRIDGE_INPUT_{variable(name)}": str(place) for name, place in found.inputs.items()},
        **{f"LANDBRIDGE_OUTPUT_{variable(name)}": str(place.directory) for name, place in found.outputs.items()},
    }
    if work.traceparent:
        own["TRACEPARENT"] = work.traceparent
    if found.checkpoint is not None:
        own["LANDBRIDGE_CHECKPOINT_DIR"] = str(found.checkpoint.directory)
        own["LANDBRIDGE_CHECKPOINT_REQUEST"] = str(workspace / watches.PRIVATE / watches.CHECKPOINT_REQUEST_FILE)
    if found.resume_from is not None:
        own["LANDBRIDGE_RESUME_FROM"] = str(found.resume_from)
    declared = {key: value for key, value in work.view.spec.env.items() if not key.startswith("LANDBRIDGE_")}
    known = {**own, **found.env, **declared}
    return {**own, **found.env, **{key: expand(value, known) for key, value in declared.items()}}


def variable(name: str) -> str:
    """Return the variable's part for a name: `base-model` becomes `BASE_MODEL`."""
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def expand(text: str, env: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by its value as Kubernetes does: unknown names stay as written, `$$` is one dollar."""
    if "$" not in text:
        return text
    return _REFERENCE.sub(lambda match: "$" if match[1] is None else env.get(match[1], match[0]), text)


def _texts(place: Place) -> tuple[str, str, str]:
    return place.connection, place.path, str(place.directory)


def criterion_of(criterion: Criterion) -> dict[str, Any]:
    """Return a criterion as it is judged: sizes in bytes."""
    written: dict[str, Any] = msgspec.to_builtins(criterion)
    if size := written.pop("minSize", ""):
        written["minBytes"] = units.parse_bytes(size)
    return written


def resolved(work: Work, found: Resolution) -> dict[str, Any]:
    """Return what is known of the resolved context before the start, in the report's own shape."""
    return {
        "host": socket.gethostname(),
        "hardware": processor_model(),
        "architecture": platform.machine(),
        "principal": found.principal,
        "connections": found.locations,
        "resources": work.view.spec.resources.told,
        "executor": "process",
        "contractVersion": work.contract_version,
        "costPerHour": work.cost_per_hour,
        "currency": work.currency,
    }


@lru_cache(maxsize=1)
def processor_model() -> str:
    """Return the processor as the kernel names it; empty where it does not."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
