"""How long the last completed runs of each component took in each environment."""

from collections import OrderedDict, deque
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Final, NamedTuple

from landbridge.domain.runs import Ran
from landbridge.domain.units import two_digits

RUNS: Final = 20
MOST_KEYS: Final = 200
# What is older says little about an environment that has been changed since.
OLDEST: Final = timedelta(days=30)


class Run(NamedTuple):
    """One completed run: seconds from start to end, and the end as seconds since 1970."""

    seconds: float
    ended: int


class RunTimes:
    """The last runs of one environment, by what makes them comparable; those longest without a run are forgotten."""

    def __init__(self, kept: Mapping[str, list[Run]] | None = None) -> None:
        self._runs: OrderedDict[str, deque[Run]] = OrderedDict()
        for key, runs in (kept or {}).items():
            self._runs[key] = deque(runs, maxlen=RUNS)

    def add(self, key: str, seconds: float, ended: datetime) -> None:
        """Note a completed run. A clock that was set back is no negative duration: such a run is not counted."""
        if seconds <= 0:
            return
        self._runs.setdefault(key, deque(maxlen=RUNS)).append(Run(round(seconds, 3), int(ended.timestamp())))
        self._runs.move_to_end(key)
        if len(self._runs) > MOST_KEYS:
            self._runs.popitem(last=False)

    def kept(self) -> dict[str, list[Run]]:
        """Return everything, to be kept."""
        return {key: list(runs) for key, runs in self._runs.items()}

    def snapshot(self, now: datetime) -> dict[str, Ran]:
        """Return medians by key, without what is too old."""
        since = (now - OLDEST).timestamp()
        fresh = {key: [run for run in runs if run.ended >= since] for key, runs in self._runs.items()}
        return {key: _told(runs) for key, runs in sorted(fresh.items()) if runs}


def _told(runs: list[Run]) -> Ran:
    newest = datetime.fromtimestamp(max(run.ended for run in runs), UTC)
    return Ran(two_digits(median(run.seconds for run in runs)), len(runs), f"{newest:%Y-%m-%d %HZ}")
