"""Bringing the broker to what the table says: idempotent, and refusing a change that cannot be made in place."""

import logging
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from landbridge.bus.connection import Bus
from landbridge.bus.errors import BusError, IncompatibleStream, NoResponder, Unavailable
from landbridge.bus.streams import (
    DEFAULT_BUDGET_BYTES,
    DUPLICATE_WINDOW_S,
    DURABLES,
    STREAMS,
    DurableSpec,
    StreamSpec,
)

log = logging.getLogger("landbridge.bus")

_NS: Final = 1_000_000_000
_NOT_FOUND: Final = frozenset({10059, 10014})
_TIMEOUT_S: Final = 10.0
# Where a durable begins can only be said when it is made: one that was made again at another message is kept.
_BEGINNING: Final = ("deliver_policy", "opt_start_seq", "opt_start_time")


class ApiError(BusError):
    """The JetStream API refused; `code` is its error code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


async def api(bus: Bus, path: str, body: dict[str, Any] | None = None, timeout_s: float = _TIMEOUT_S) -> dict[str, Any]:
    """One JetStream API call. Raises ApiError, NotPermitted or Unavailable."""
    payload = msgspec.json.encode(body) if body is not None else b""
    try:
        answer = await bus.request(f"{bus.settings.api_prefix}.{path}", payload, timeout_s)
    except NoResponder as error:
        raise Unavailable(f"JetStream does not answer on {path}: is it enabled for this account?") from error
    found: dict[str, Any] = msgspec.json.decode(answer)
    if "error" in found:
        problem = found["error"]
        raise ApiError(f"{path}: {problem.get('description', 'refused')}", int(problem.get("err_code", 0)))
    return found


async def declare(bus: Bus, *, replicas: int = 1, budget_bytes: int = DEFAULT_BUDGET_BYTES) -> list[str]:
    """Create or update every stream and service durable of the table; returns what was changed, as sentences.

    Raises IncompatibleStream, after doing all that is possible, if something would have to be deleted to match.
    """
    changes: list[str] = []
    problems: list[str] = []
    for stream in STREAMS:
        await _attempt(declare_stream(bus, stream, replicas=replicas, budget_bytes=budget_bytes), changes, problems)
    for durable in DURABLES:
        await _attempt(declare_durable(bus, durable, replicas=replicas), changes, problems)
    if problems:
        raise IncompatibleStream("; ".join(problems))
    return changes


async def _attempt(step: Any, changes: list[str], problems: list[str]) -> None:
    try:
        change = await step
    except IncompatibleStream as error:
        log.error("cannot be declared: %s", error)
        problems.append(str(error))
    else:
        if change:
            log.info("declared: %s", change)
            changes.append(change)


async def declare_stream(
    bus: Bus, spec: StreamSpec, *, replicas: int = 1, budget_bytes: int = DEFAULT_BUDGET_BYTES
) -> str:
    """Make one stream match; returns a sentence, empty if it already did."""
    wanted = stream_config(spec, replicas=replicas, budget_bytes=budget_bytes)
    found = await _found(bus, f"STREAM.INFO.{spec.name}")
    if found is None:
        await api(bus, f"STREAM.CREATE.{spec.name}", wanted)
        return f"created stream {spec.name}"
    different = _differences(wanted, found)
    if not different:
        return ""
    try:
        await api(bus, f"STREAM.UPDATE.{spec.name}", {**found, **wanted})
    except ApiError as error:
        raise IncompatibleStream(
            f"stream {spec.name} differs in {', '.join(different)} and cannot be changed in place: {error}; "
            "export what it holds and recreate it, or keep its settings"
        ) from error
    return f"updated stream {spec.name}: {', '.join(different)}"


async def declare_durable(bus: Bus, spec: DurableSpec, *, replicas: int = 0) -> str:
    """Make one durable match, but for where it began; returns a sentence, empty if it already did."""
    wanted = durable_config(spec, replicas=replicas)
    found = await _found(bus, f"CONSUMER.INFO.{spec.stream}.{spec.name}")
    if found is not None:
        kept = {name: found[name] for name in _BEGINNING if name in found}
        wanted = {name: value for name, value in wanted.items() if name not in _BEGINNING} | kept
    different = _differences(wanted, found) if found is not None else ["new"]
    if not different:
        return ""
    path = f"CONSUMER.DURABLE.CREATE.{spec.stream}.{spec.name}"
    if len(spec.filters) == 1:
        path = f"CONSUMER.CREATE.{spec.stream}.{spec.name}.{spec.filters[0]}"
    try:
        await api(bus, path, {"stream_name": spec.stream, "config": wanted, "action": ""})
    except ApiError as error:
        if found is None:
            raise
        raise IncompatibleStream(
            f"durable {spec.name} of {spec.stream} differs in {', '.join(different)} and cannot be changed in place: "
            f"{error}; let it drain, delete it, and declare again"
        ) from error
    return f"{'created' if found is None else 'updated'} durable {spec.name} of {spec.stream}"


async def delete_durable(bus: Bus, spec: DurableSpec) -> bool:
    """Delete a durable; tell whether there was one."""
    try:
        await api(bus, f"CONSUMER.DELETE.{spec.stream}.{spec.name}")
    except ApiError as error:
        if error.code in _NOT_FOUND:
            return False
        raise
    return True


async def _found(bus: Bus, path: str) -> dict[str, Any] | None:
    try:
        config: dict[str, Any] = (await api(bus, path))["config"]
    except ApiError as error:
        if error.code in _NOT_FOUND:
            return None
        raise
    return config


def _differences(wanted: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Names of settings that differ; what the broker leaves out counts as zero, empty or false."""
    return sorted(name for name, value in wanted.items() if (found.get(name) or None) != (value or None))


def stream_config(spec: StreamSpec, *, replicas: int, budget_bytes: int) -> dict[str, Any]:
    return {
        "name": spec.name,
        "description": spec.description,
        "subjects": list(spec.subjects),
        "retention": "limits",
        "discard": "new",
        "storage": "file",
        "num_replicas": replicas,
        "max_age": int(spec.max_age_s * _NS),
        "max_bytes": int(spec.share * budget_bytes),
        "max_msgs_per_subject": spec.per_subject or -1,
        "max_msg_size": spec.max_message_bytes,
        "duplicate_window": int(DUPLICATE_WINDOW_S * _NS),
        "allow_direct": spec.direct,
        "allow_atomic": True,
        "allow_rollup_hdrs": False,
        "allow_msg_ttl": False,
        "deny_delete": True,
    }


def durable_config(spec: DurableSpec, *, replicas: int = 0) -> dict[str, Any]:
    one = len(spec.filters) == 1
    started = {"opt_start_time": spec.start_time} if spec.start_time else {}
    common = {
        **started,
        "name": spec.name,
        "durable_name": spec.name,
        "description": spec.description,
        "deliver_policy": "by_start_time" if spec.start_time else "all",
        "max_deliver": -1,
        "replay_policy": "instant",
        "filter_subject": spec.filters[0] if one else "",
        "filter_subjects": [] if one else list(spec.filters),
        "num_replicas": replicas if replicas > 1 else 0,
    }
    if spec.push_to:
        # A leaf node's stream acknowledges by flow control what it has stored.
        pushed = {"deliver_subject": spec.push_to, "flow_control": True, "idle_heartbeat": _NS}
        return {**common, **pushed, "ack_policy": "flow_control"}
    return {
        **common,
        "ack_policy": "explicit",
        "ack_wait": int(spec.ack_wait_s * _NS),
        "max_ack_pending": spec.max_ack_pending,
        "max_waiting": spec.max_waiting,
    }


async def missing(bus: Bus, durables: Iterable[DurableSpec] = DURABLES) -> Sequence[str]:
    """Return the durables of the table that the broker does not have, for readiness and alarms."""
    return [f"{spec.stream}/{spec.name}" for spec in durables if not await _exists(bus, spec)]


async def _exists(bus: Bus, spec: DurableSpec) -> bool:
    return await _found(bus, f"CONSUMER.INFO.{spec.stream}.{spec.name}") is not None


__all__ = ["ApiError", "api", "declare", "declare_durable", "declare_stream", "delete_durable", "missing"]
