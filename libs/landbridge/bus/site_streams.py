"""The streams of a site with its own NATS: commands sourced from the centre, reports that wait for it.

They live in the JetStream domain of the site, and its dispatcher declares them. It never deletes them: brokers have had
sourced streams that stood still after they were deleted and made anew.
"""

from typing import Any, Final

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus
from landbridge.bus.declare import ApiError, api, declare_durable
from landbridge.bus.direct import direct_get
from landbridge.bus.envelope import Inbound
from landbridge.bus.streams import DAY_S, SITE_COMMANDS, SITE_REPORTS, DurableSpec

DEFAULT_SITE_BYTES: Final = 2 * streams.GIB
DURABLE: Final = DurableSpec(SITE_COMMANDS, "dispatcher", (), description="what the dispatcher has not carried out")
PAGE: Final = 500
PAGE_BYTES: Final = 8 * 1024 * 1024
STREAM_NOT_FOUND: Final = 10059
_KEEP_S: Final = 14 * DAY_S
_NS: Final = 1_000_000_000
_REMEMBERED_S: Final = 120.0


async def declare_site(
    bus: Bus, environment: str, *, budget_bytes: int = DEFAULT_SITE_BYTES, replicas: int = 1
) -> None:
    """Create or update both streams and the dispatcher's durable. Raises BusError."""
    for config in (
        _commands(environment, budget_bytes // 2, replicas),
        _reports(environment, budget_bytes // 2, replicas),
    ):
        await _declare(bus, config)
    await declare_durable(bus, DURABLE, replicas=replicas)


async def _declare(bus: Bus, wanted: dict[str, Any]) -> None:
    name = wanted["name"]
    try:
        found: dict[str, Any] = (await api(bus, f"STREAM.INFO.{name}"))["config"]
    except ApiError as error:
        if error.code != STREAM_NOT_FOUND:
            raise
        await api(bus, f"STREAM.CREATE.{name}", wanted)
        return
    if any((found.get(key) or None) != (value or None) for key, value in wanted.items() if key != "sources"):
        await api(bus, f"STREAM.UPDATE.{name}", {**found, **wanted})


def _commands(environment: str, max_bytes: int, replicas: int) -> dict[str, Any]:
    durable = streams.leaf_durable(environment)
    source = {
        "name": durable.stream,
        "external": {"api": subjects.leaf_api(environment), "deliver": ""},
        "consumer": {"name": durable.name, "deliver_subject": durable.push_to},
    }
    return {**_common(SITE_COMMANDS, "orders of the centre", max_bytes, replicas), "sources": [source]}


def _reports(environment: str, max_bytes: int, replicas: int) -> dict[str, Any]:
    return {
        **_common(SITE_REPORTS, "what the centre has not stored yet", max_bytes, replicas),
        "subjects": [subjects.every("outgoing", environment)],
        "allow_direct": True,
        "allow_atomic": True,
    }


def _common(name: str, description: str, max_bytes: int, replicas: int) -> dict[str, Any]:
    return {
        "name": name,
        "description": description,
        "retention": "limits",
        "discard": "new",
        "storage": "file",
        "num_replicas": replicas,
        "max_age": int(_KEEP_S * _NS),
        "max_bytes": max_bytes,
        "max_msgs_per_subject": -1,
        "duplicate_window": int(_REMEMBERED_S * _NS),
        "deny_delete": True,
    }


class Journal:
    """A stream that is read in its order, once, and shortened by what was read. One reader."""

    def __init__(self, bus: Bus, stream: str) -> None:
        self._bus = bus
        self._stream = stream

    async def page(self, after: int) -> list[Inbound]:
        """Return the next messages behind sequence `after`, as many as are handled well together; [] at the end."""
        ask = {"seq": after + 1, "next_by_subj": ">", "batch": PAGE, "max_bytes": PAGE_BYTES}
        found, _ = await direct_get(self._bus, self._stream, ask)
        return found

    async def extent(self) -> tuple[int, int]:
        """Return the sequence before the first message, and that of the last."""
        state = (await api(self._bus, f"STREAM.INFO.{self._stream}"))["state"]
        return int(state["first_seq"]) - 1 if state["messages"] else int(state["last_seq"]), int(state["last_seq"])

    async def drop(self, upto: int) -> None:
        """Remove what lies up to sequence `upto`, which others have now."""
        await api(self._bus, f"STREAM.PURGE.{self._stream}", {"seq": upto + 1})


async def sourced(bus: Bus) -> float | None:
    """Return for how many seconds nothing, not even a sign of life, has come from the centre's commands.

    None: it has never come since the site's NATS started.
    """
    sources = (await api(bus, f"STREAM.INFO.{SITE_COMMANDS}")).get("sources") or [{}]
    active = int(sources[0].get("active", -1))
    return active / _NS if active >= 0 else None


async def trim(bus: Bus) -> int:
    """Remove carried-out commands once they fill half of their stream; return up to which sequence, 0 for nothing.

    The last of them stays: from it the site's NATS knows where to go on.
    """
    info = await api(bus, f"STREAM.INFO.{SITE_COMMANDS}")
    if int(info["state"]["bytes"]) * 2 < int(info["config"]["max_bytes"]):
        return 0
    durable = await api(bus, f"CONSUMER.INFO.{SITE_COMMANDS}.{DURABLE.name}")
    done = int(durable["ack_floor"]["stream_seq"])
    if done > 1:
        await api(bus, f"STREAM.PURGE.{SITE_COMMANDS}", {"seq": done})
    return max(0, done - 1)
