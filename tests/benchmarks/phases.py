"""The measurements, each on a running instance with its environments joined."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from landbridge.bus.connection import BusSettings, connect
from landbridge.bus.declare import api
from landbridge.bus.streams import DURABLES

from .http_load import HttpLoad
from .instance import Instance, operation
from .load import Load
from .measure import summary_ms

_QUIET_SECONDS = 60.0
_PROBES_PER_SECOND = 50
_TICK_SECONDS = 0.02
_ACCEPTED = 201


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much load each phase makes. Counts of operations, seconds."""

    warm_up: int = 2_000
    sustained: int = 25_000
    burst: int = 10_000
    latency_s: float = 20.0
    http_s: float = 6.0
    http_connections: int = 32
    processes: int = 600


QUICK = Sizes(warm_up=300, sustained=3_000, burst=2_000, latency_s=4.0, http_s=2.0, processes=100)


async def warm_up(load: Load, count: int) -> None:
    """Let caches, plans and connections settle: slowly first, then in batches."""
    observer = load.observer
    for number in range(20):
        await load.submit([operation(number)])
    await load.submit([operation(number) for number in range(count)])
    await observer.until(lambda: observer.ended >= count + 20, what="warm-up", timeout_s=_QUIET_SECONDS)


async def sustained(instance: Instance, load: Load, count: int) -> dict[str, Any]:
    """Submit `count` operations at once over NATS; rate until all have ended, processor time, memory and lag."""
    observer = load.observer
    before, ended_before = instance.usage(), observer.ended
    operations, started = await load.submit([operation(number) for number in range(count)])
    await observer.until(
        lambda: observer.ended - ended_before >= count, what="sustained load", timeout_s=_QUIET_SECONDS
    )
    ends = sorted(end for end in map(observer.end_of, operations) if end is not None)
    if len(ends) != count or observer.count("failed", "refused"):
        counts = {event: len(found) for event, found in observer.heard.items()}
        raise RuntimeError(f"expected {count} completed operations: {counts}")
    lag = await consumer_lag(instance)
    after = instance.usage()
    cpu = {name: (after[name].cpu_s - before[name].cpu_s) / count * 1e6 for name in after if name in before}
    middle = ends[count // 10 : -count // 10]
    return {
        "operations": count,
        "operations_per_second": round(count / (ends[-1] - started), 1),
        "operations_per_second_middle": round(len(middle) / max(middle[-1] - middle[0], 1e-9), 1),
        "consumer_lag": lag,
        "cpu_us_per_operation": {**_merged(cpu), "total": round(sum(cpu.values()), 1)},
        "rss_mb": _merged({name: found.rss_mb for name, found in after.items()}),
    }


def _merged(figures: dict[str, float]) -> dict[str, float]:
    """Put the dispatchers of the simulated environments together under one name."""
    merged: dict[str, float] = {}
    for name, figure in figures.items():
        shown = "dispatchers" if name.startswith("dispatcher-") else name
        merged[shown] = merged.get(shown, 0.0) + figure
    return {name: round(figure, 1) for name, figure in sorted(merged.items())}


async def consumer_lag(instance: Instance) -> dict[str, int]:
    """Return what each service's durable has not yet acknowledged, asked from the broker."""
    creds = instance.data.creds / "streams.creds"
    bus = await connect(BusSettings(url=instance.state["natsUrl"], creds=creds), name="streams")
    try:
        lag: dict[str, int] = {}
        for spec in DURABLES:
            info = await api(bus, f"CONSUMER.INFO.{spec.stream}.{spec.name}")
            lag[f"{spec.stream.lower()}/{spec.name}"] = int(info["num_pending"]) + int(info["num_ack_pending"])
        return lag
    finally:
        await bus.drain()


async def caught_up(instance: Instance) -> float:
    """Wait until no consumer lags; return the seconds that took."""
    started = time.perf_counter()
    while any((await consumer_lag(instance)).values()):
        if time.perf_counter() - started > _QUIET_SECONDS:
            raise RuntimeError(f"consumers do not catch up: {await consumer_lag(instance)}")
        await asyncio.sleep(0.2)
    return time.perf_counter() - started


async def burst(load: Load, count: int) -> float:
    """Submit `count` operations over NATS; return submissions per second until all are accepted (committed)."""
    observer = load.observer
    documents = [operation(number) for number in range(count)]
    accepted_before, ended_before = observer.count("accepted"), observer.ended
    operations, started = await load.submit(documents)
    await observer.until(
        lambda: observer.count("accepted") - accepted_before >= count, what="burst", timeout_s=_QUIET_SECONDS
    )
    last = max(observer.heard["accepted"][identifier] for identifier in operations)
    await observer.until(lambda: observer.ended - ended_before >= count, what="burst's end", timeout_s=_QUIET_SECONDS)
    return count / (last - started)


async def http_singles(instance: Instance, load: Load, seconds: float, connections: int) -> float:
    """Post single operations as fast as `connections` allow; return acknowledged submissions per second."""
    http = HttpLoad(instance.port("intake"), instance.token)
    deadline = time.perf_counter() + seconds
    acknowledged = 0

    async def post() -> None:
        nonlocal acknowledged
        while time.perf_counter() < deadline:
            [key] = load.keys(1)
            status, body = await http.post("/v1/operations", operation(acknowledged), key=key)
            if status != _ACCEPTED:
                raise RuntimeError(f"intake answered {status}: {body.decode()[:300]}")
            acknowledged += 1

    ended_before = load.observer.ended
    started = time.perf_counter()
    await asyncio.gather(*(post() for _ in range(connections)))
    elapsed = time.perf_counter() - started
    http.close()
    await load.observer.until(
        lambda: load.observer.ended - ended_before >= acknowledged, what="http load's end", timeout_s=_QUIET_SECONDS
    )
    return acknowledged / elapsed


async def latencies(instance: Instance, load: Load, rate: float, seconds: float) -> dict[str, Any]:
    """Measure at `rate` operations a second: 50 a second are posted singly and timed, the others come over NATS."""
    observer = load.observer
    http = HttpLoad(instance.port("intake"), instance.token)
    ended_before = observer.ended
    sent: dict[str, float] = {}
    acknowledged: list[float] = []

    async def probe(number: int) -> None:
        [key] = load.keys(1)
        started = time.perf_counter()
        sent[load.id_of(key, event=False)] = started
        status, body = await http.post("/v1/operations", operation(number), key=key)
        if status != _ACCEPTED:
            raise RuntimeError(f"intake answered {status}: {body.decode()[:300]}")
        acknowledged.append(time.perf_counter() - started)

    started = time.perf_counter()
    filling = asyncio.create_task(_fill(load, rate - _PROBES_PER_SECOND, started, seconds))
    probes: list[asyncio.Task[None]] = []
    while (elapsed := time.perf_counter() - started) < seconds:
        while len(probes) < elapsed * _PROBES_PER_SECOND:
            probes.append(asyncio.create_task(probe(len(probes))))
        await asyncio.sleep(_TICK_SECONDS)
    await asyncio.gather(*probes)
    count = len(probes) + await filling
    await observer.until(lambda: observer.ended - ended_before >= count, what="paced load", timeout_s=_QUIET_SECONDS)
    http.close()
    return {
        "rate": round(count / seconds, 1),
        "submit_ack_ms": summary_ms(acknowledged),
        "submit_to_running_ms": summary_ms(_since(sent, observer.heard["running"])),
        "submit_to_terminal_ms": summary_ms(_since(sent, observer.heard["completed"])),
    }


async def _fill(load: Load, rate: float, started: float, seconds: float) -> int:
    """Submit `rate` operations a second over NATS, one publication at a time; return how many there were."""
    sent = 0
    while (elapsed := time.perf_counter() - started) < seconds:
        missing = int(elapsed * rate) - sent
        if missing > 0:
            await load.submit([operation(sent + number) for number in range(missing)])
            sent += missing
        await asyncio.sleep(_TICK_SECONDS)
    return sent


def _since(sent: dict[str, float], heard: dict[str, float]) -> list[float]:
    missing = [operation for operation in sent if operation not in heard]
    if missing:
        raise RuntimeError(f"{len(missing)} of {len(sent)} timed operations were not heard of, such as {missing[0]}")
    return [heard[operation] - started for operation, started in sent.items()]


async def processes(load: Load, environment: str, count: int) -> float:
    """Run `count` real local processes; return ended processes per second."""
    observer = load.observer
    ended_before = observer.ended
    operations, started = await load.submit(
        [operation(number, environment=environment, command=["/bin/true"], tiny=True) for number in range(count)]
    )
    await observer.until(
        lambda: observer.ended - ended_before >= count, what="local processes", timeout_s=_QUIET_SECONDS
    )
    ends: Sequence[float] = [end for end in map(observer.end_of, operations) if end is not None]
    return count / (max(ends) - started)
