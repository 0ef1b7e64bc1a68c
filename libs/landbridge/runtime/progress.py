"""What a loop reports of itself: metrics for each batch, one log line a second, never one per message."""

import time
from collections.abc import Callable

from landbridge.runtime import logs, metrics

log = logs.get(__name__)

_SUMMARY_SECONDS = 1.0


class Progress:
    """The figures of one loop."""

    def __init__(self, name: str, lag: Callable[[], int]) -> None:
        self.handled = 0
        self._name = name
        self._lag = lag
        self._batch = metrics.loop_batch.labels(name)
        self._seconds = metrics.loop_seconds.labels(name)
        self._events = metrics.loop_events.labels(name)
        metrics.consumer_lag.labels(name).set_function(lag)
        self._outcomes = {
            outcome: metrics.loop_messages.labels(name, outcome)
            for outcome in ("handled", "duplicate", "retried", "dead")
        }
        self._since = time.monotonic()
        self._batches = self._messages = 0
        self._longest = 0.0

    def count(self, outcome: str, messages: int) -> None:
        """Count messages by what became of them: handled, duplicate, retried or dead."""
        if messages:
            self._outcomes[outcome].inc(messages)

    def dead(self) -> None:
        self.count("dead", 1)
        metrics.dead_letters.labels(self._name).inc()

    def published(self, events: int) -> None:
        if events:
            self._events.inc(events)

    def batch(self, messages: int, seconds: float) -> None:
        """Take in a finished batch."""
        self.handled += messages
        self._batch.observe(messages)
        self._seconds.observe(seconds)
        self._batches += 1
        self._messages += messages
        self._longest = max(self._longest, seconds)
        if time.monotonic() - self._since >= _SUMMARY_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the line for what was handled since the last one, if anything was."""
        if self._batches:
            log.info(
                "handled",
                consumer=self._name,
                messages=self._messages,
                batches=self._batches,
                longest_ms=round(self._longest * 1000, 1),
                lag=self._lag(),
            )
        self._batches = self._messages = 0
        self._longest = 0.0
        self._since = time.monotonic()
