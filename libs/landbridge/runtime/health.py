"""Health for probes: /livez (is the process sane), /startupz (has it started), /readyz (can it work now).

Checks have names; a critical one that fails makes the service not ready, another only degraded. Answers hold no secrets
and need no authentication.
"""

import asyncio
import inspect
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from landbridge.runtime import logs, metrics

log = logs.get(__name__)

CHECK_SECONDS: Final = 1.0
_BEAT_SECONDS = 0.25
_STALL_SECONDS = 5.0
_WINDOW_SECONDS = 60.0

Outcome = bool | str
Check = Callable[[], Outcome | Awaitable[Outcome]]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check said. `state` is ok, degraded or failed."""

    name: str
    state: str
    message: str = ""

    def line(self) -> str:
        sign = {"ok": "+", "degraded": "!", "failed": "-"}[self.state]
        return f"[{sign}]{self.name} {self.state}" + (f": {self.message}" if self.message else "")


@dataclass(frozen=True, slots=True)
class Report:
    """All checks of one probe."""

    name: str
    results: tuple[CheckResult, ...]

    @property
    def healthy(self) -> bool:
        return all(result.state != "failed" for result in self.results)

    def text(self, *, verbose: bool) -> str:
        """Return the body of the answer: `ok` or the reasons, or every check when `verbose`."""
        if not verbose and self.healthy:
            return "ok"
        lines = [result.line() for result in self.results if verbose or result.state == "failed"]
        lines.append(f"{self.name} check {'passed' if self.healthy else 'failed'}")
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class _Entry:
    check: Check
    critical: bool


class Health:
    """The registry of one process."""

    def __init__(self) -> None:
        self.started = False
        self.draining = False
        self._ready: dict[str, _Entry] = {}
        self._startup: dict[str, _Entry] = {}
        self._live: dict[str, _Entry] = {}

    def add(self, name: str, check: Check, *, critical: bool = True) -> None:
        """Register a readiness check: True or "" is ok, False or a text (the reason) is not. Sync or async, < 1 s."""
        self._ready[name] = _Entry(check, critical)

    def add_startup(self, name: str, check: Check) -> None:
        """Register a condition that has to hold once before the service counts as started."""
        self._startup[name] = _Entry(check, critical=True)

    def add_live(self, name: str, check: Check) -> None:
        """Register a condition whose failure means that only a restart helps."""
        self._live[name] = _Entry(check, critical=True)

    def names(self) -> list[str]:
        return [*self._ready]

    async def livez(self) -> Report:
        return Report("livez", await _run(self._live, frozenset()))

    async def startupz(self) -> Report:
        results = [*await _run(self._startup, frozenset())]
        results.append(CheckResult("started", "ok" if self.started else "failed", "" if self.started else "starting"))
        return Report("startupz", tuple(results))

    async def readyz(self, exclude: frozenset[str] = frozenset(), only: str = "") -> Report:
        """Run the readiness checks, all but `exclude`, or `only` one."""
        entries = {name: entry for name, entry in self._ready.items() if not only or name == only}
        results = [*await _run(entries, exclude)]
        if not only:
            if not self.started and "started" not in exclude:
                results.append(CheckResult("started", "failed", "starting"))
            if self.draining and "draining" not in exclude:
                results.append(CheckResult("draining", "failed", "shutting down"))
        report = Report("readyz", tuple(results))
        if not only and not exclude:
            metrics.ready.set(1 if report.healthy else 0)
        return report


async def _run(entries: dict[str, _Entry], exclude: frozenset[str]) -> tuple[CheckResult, ...]:
    return tuple(
        await asyncio.gather(*(_run_one(name, entry) for name, entry in entries.items() if name not in exclude))
    )


async def _run_one(name: str, entry: _Entry) -> CheckResult:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            outcome = entry.check()
            if inspect.isawaitable(outcome):
                outcome = await outcome
    except TimeoutError:
        outcome = f"no answer within {CHECK_SECONDS:g} s"
    except Exception as error:  # noqa: BLE001 - a check that fails in any way has failed
        log.warning("health check raised", check=name, error=str(error))
        outcome = type(error).__name__
    if outcome is True or outcome == "":
        return CheckResult(name, "ok")
    message = logs.redact_text(outcome) if isinstance(outcome, str) else ""
    return CheckResult(name, "failed" if entry.critical else "degraded", message)


class StallDetector:
    """Notices when the event loop does not run: measures the pauses, and writes down where it hung.

    A stalled loop cannot answer /livez at all, which is what a probe's time limit is for; this tells afterwards why.
    """

    def __init__(self, *, threshold_s: float = _STALL_SECONDS) -> None:
        self._threshold_s = threshold_s
        self._beat_at = time.monotonic()
        self._worst: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._loop_thread = threading.get_ident()
        self.stalls = 0

    async def run(self) -> None:
        """Beat until cancelled; a daemon thread listens."""
        self._loop_thread = threading.get_ident()
        threading.Thread(target=self._listen, name="stall-detector", daemon=True).start()
        try:
            while True:
                before = time.monotonic()
                self._beat_at = before
                await asyncio.sleep(_BEAT_SECONDS)
                now = time.monotonic()
                self._note(now, now - before - _BEAT_SECONDS)
        finally:
            self._stop.set()

    def worst_s(self) -> float:
        """Return the longest pause of the last minute, in seconds."""
        return max((pause for _, pause in self._worst), default=0.0)

    def _note(self, now: float, pause: float) -> None:
        if pause > _BEAT_SECONDS:
            self._worst.append((now, pause))
        self._worst = [(at, long) for at, long in self._worst if now - at < _WINDOW_SECONDS]
        metrics.loop_stall.set(self.worst_s())

    def _listen(self) -> None:
        told = False
        while not self._stop.wait(self._threshold_s / 4):
            stalled = time.monotonic() - self._beat_at
            if stalled < self._threshold_s:
                told = False
            elif not told:
                told = True
                self.stalls += 1
                frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001 - the documented way to look
                stack = "".join(traceback.format_stack(frame)) if frame else ""
                log.error("the event loop is stalled", seconds=round(stalled, 1), stack=stack)
