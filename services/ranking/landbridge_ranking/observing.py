"""What was seen lately of each environment's work: how soon it starts, how often it lets an attempt down."""

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from landbridge.domain.backlog import Backlog
from landbridge.domain.carbon import Reading
from landbridge.domain.preferences import Observed
from landbridge.domain.units import two_digits
from landbridge_ranking.run_times import Run, RunTimes

STARTS: Final = 20
ATTEMPTS: Final = 50
ENDS: Final = 50
# Rankings follow what is observed, and every decision names what it followed: not more often than this.
SNAPSHOT_EVERY: Final = timedelta(seconds=10)
NO_BACKLOGS: Final[Mapping[str, Backlog]] = {}
NO_READINGS: Final[Mapping[str, Reading]] = {}
NOTHING_MEASURED: Final[Mapping[str, Mapping[str, float]]] = {}
# Reasons of the coordinator that are the environment's doing, not the workload's.
FAULTS: Final = frozenset(
    {
        "declared-dead",
        "environment-lost",
        "failed-to-start",
        "missing",
        "not-here",
        "offer-unclaimed",
        "refused",
        "relinquished",
        "removed-externally",
        "self-stopped",
    }
)


class _Seen(msgspec.Struct):
    """The last starts in seconds of delay, and the last attempts: True where the environment let one down.

    `lasted` is how many seconds the last operations of each queue held their place; `runs` are the last completed runs
    by what makes them comparable.
    """

    delays: list[float] = []
    failures: list[bool] = []
    lasted: dict[str, list[float]] = {}
    runs: dict[str, list[Run]] = {}


class Observations:
    """Sliding windows by environment."""

    def __init__(self) -> None:
        self._delays: dict[str, deque[float]] = {}
        self._failures: dict[str, deque[bool]] = {}
        self._lasted: dict[tuple[str, str], deque[float]] = {}
        self._runs: dict[str, RunTimes] = {}
        self._changed: set[str] = set()
        self._unkept: set[str] = set()
        self._taken_at: datetime | None = None

    def started(self, environment: str, delay_s: float) -> None:
        """Note that an attempt started so many seconds after its decision. Clocks differ: never less than nothing."""
        self._delays.setdefault(environment, deque(maxlen=STARTS)).append(max(delay_s, 0.0))
        self._changed.add(environment)

    def ended(self, environment: str, reason: str) -> None:
        """Note that an attempt ended."""
        self._failures.setdefault(environment, deque(maxlen=ATTEMPTS)).append(reason in FAULTS)
        self._changed.add(environment)

    def held(self, environment: str, queue: str, seconds: float) -> None:
        """Note how long an operation held its place there, from admission to its end."""
        self._lasted.setdefault((environment, queue), deque(maxlen=ENDS)).append(round(max(seconds, 0.0), 3))
        self._changed.add(environment)

    def ran(self, environment: str, key: str, seconds: float, ended: datetime) -> None:
        """Note how long a completed run took there; `key` names what it is comparable with."""
        self._runs.setdefault(environment, RunTimes()).add(key, seconds, ended)
        self._changed.add(environment)

    @property
    def lasted(self) -> dict[tuple[str, str], tuple[float, ...]]:
        """How long the last operations held their places, in seconds, by environment and queue."""
        return {place: tuple(values) for place, values in self._lasted.items()}

    def due(self, now: datetime) -> bool:
        """Tell whether it is time for a new snapshot: time alone changes what is expected, and what has expired."""
        return self._taken_at is None or now - self._taken_at >= SNAPSHOT_EVERY

    def snapshot(
        self,
        now: datetime,
        backlogs: Mapping[str, Backlog] = NO_BACKLOGS,
        carbon: Mapping[str, Reading] = NO_READINGS,
        bandwidths: Mapping[str, Mapping[str, float]] = NOTHING_MEASURED,
    ) -> dict[str, Observed]:
        """Return what is observed now, with what runs and waits, rounded so that noise makes no difference."""
        self._taken_at = now
        self._unkept |= self._changed
        self._changed.clear()
        names = sorted({*self._delays, *self._failures, *self._runs, *backlogs, *carbon, *bandwidths})
        seen = {name: self._observed(name, now, backlogs.get(name), carbon.get(name)) for name in names}
        return {name: observed._replace(bandwidths=bandwidths.get(name, {})) for name, observed in seen.items()}

    def _observed(self, name: str, now: datetime, backlog: Backlog | None, carbon: Reading | None) -> Observed:
        delays, failures = self._delays.get(name, ()), self._failures.get(name, ())
        mean = sum(delays) / len(delays) if delays else 0.0
        runs = self._runs[name].snapshot(now) if name in self._runs else {}
        return Observed(len(delays), two_digits(mean), len(failures), sum(failures), runs, backlog, carbon)

    def dump(self) -> dict[str, bytes]:
        """Return the windows of environments that changed since the last time, to be kept."""
        names, self._unkept = sorted(self._unkept | self._changed), set()
        return {name: msgspec.json.encode(self._seen(name)) for name in names}

    def _seen(self, name: str) -> _Seen:
        lasted = {queue: list(values) for (environment, queue), values in self._lasted.items() if environment == name}
        runs = self._runs[name].kept() if name in self._runs else {}
        return _Seen(list(self._delays.get(name, ())), list(self._failures.get(name, ())), lasted, runs)

    def load(self, kept: Mapping[str, bytes]) -> None:
        """Take on windows that were kept."""
        self._unkept |= {*self._delays, *self._failures, *self._runs} - set(kept)
        for name, body in kept.items():
            seen = msgspec.json.decode(body, type=_Seen)
            self._delays[name] = deque(seen.delays, maxlen=STARTS)
            self._failures[name] = deque(seen.failures, maxlen=ATTEMPTS)
            self._runs[name] = RunTimes(seen.runs)
            for queue, values in seen.lasted.items():
                self._lasted[name, queue] = deque(values, maxlen=ENDS)
