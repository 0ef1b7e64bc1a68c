"""How long a simulated attempt takes and how it ends. Pure: equal inputs give equal attempts, on every machine.

By default the site's declared model decides. An operation can say it itself, for tests and demonstrations:

    command: [simulate, duration=2s, exit=3]      also: delay=500ms signal=9 out-of-memory=true ignore-term=true
                                                  log=text metric.auc=0.9 missing=<output> checkpoint-after=1s
"""

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from landbridge.domain import units
from landbridge.domain.ownership.epochs import Epoch
from landbridge_dispatch.executors.bindings import Simulation
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError
from landbridge_dispatch.specification import Spec, milliseconds

COMMAND = "simulate"
_KNOWN = frozenset(
    {"duration", "delay", "exit", "signal", "out-of-memory", "ignore-term", "log", "missing", "checkpoint-after"}
)
_SCALE = 2**32


class Plan(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One attempt as it will happen unless somebody stops it. Milliseconds; -1 for no checkpoint."""

    delay_ms: int
    duration_ms: int
    exit_code: int = 0
    signal: int = 0
    out_of_memory: bool = False
    ignore_term: bool = False
    timeout_ms: int = 0
    log: str = ""
    checkpoint_after_ms: int = -1


class Model:
    """A site's declared model with its times worked out."""

    def __init__(self, simulation: Simulation) -> None:
        self.slots = simulation.slots
        self._seed = str(simulation.seed).encode()
        self._delay_ms = units.parse_duration(simulation.start_delay)
        self._shortest_ms = units.parse_duration(simulation.duration)
        longest = units.parse_duration(simulation.duration_max) if simulation.duration_max else self._shortest_ms
        self._spread_ms = max(0, longest - self._shortest_ms)
        self._failure_rate = simulation.failure_rate
        self._certain = not self._spread_ms and not self._failure_rate

    def plan(self, operation: str, epoch: Epoch, spec: Spec) -> Plan:
        """Return the attempt. Raises RefusedError for a directive that is not known."""
        timeout_ms = milliseconds(spec.lifecycle.timeout)
        if spec.command and spec.command[0] == COMMAND:
            return _directed(parse_directives(spec), self._delay_ms, self._shortest_ms, timeout_ms)
        if self._certain:
            return Plan(self._delay_ms, self._shortest_ms, timeout_ms=timeout_ms)
        text = f"{operation} {epoch.generation}.{epoch.counter}".encode()
        drawn = int.from_bytes(blake2b(text, key=self._seed, digest_size=8).digest(), "big")
        failed = (drawn % _SCALE) / _SCALE < self._failure_rate
        duration = self._shortest_ms + round(self._spread_ms * (drawn // _SCALE) / _SCALE)
        return Plan(self._delay_ms, duration, exit_code=1 if failed else 0, timeout_ms=timeout_ms)


def parse_directives(spec: Spec) -> dict[str, str]:
    """Return what the command asks for, by name. Raises RefusedError for what is not known."""
    words = dict(word.partition("=")[::2] for word in (*spec.command[1:], *spec.args))
    unknown = sorted(name for name in words if name not in _KNOWN and not name.startswith("metric."))
    if unknown:
        raise RefusedError(
            RefusalCode.WORKLOAD, f"simulate: {unknown[0]} is not known; expected one of {', '.join(sorted(_KNOWN))}"
        )
    return words


def _directed(words: Mapping[str, str], delay_ms: int, duration_ms: int, timeout_ms: int) -> Plan:
    try:
        return Plan(
            milliseconds(words.get("delay", ""), delay_ms),
            milliseconds(words.get("duration", ""), duration_ms),
            exit_code=int(words.get("exit", 0)),
            signal=int(words.get("signal", 0)),
            out_of_memory=words.get("out-of-memory") == "true",
            ignore_term=words.get("ignore-term") == "true",
            timeout_ms=timeout_ms,
            log=words.get("log", ""),
            checkpoint_after_ms=milliseconds(words.get("checkpoint-after", ""), -1),
        )
    except ValueError as error:
        raise RefusedError(RefusalCode.WORKLOAD, f"simulate: {error}") from error
