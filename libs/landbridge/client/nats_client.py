"""The SDK over NATS: submit, follow, wait and cancel with an application's own credentials, inside its project.

Events are heard as they are published, from the moment of connecting. What was before, and what explains a decision,
is asked for over HTTP.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from landbridge.bus import streams, subjects
from landbridge.bus.connection import Bus, BusSettings, connect
from landbridge.bus.credentials import claims_of
from landbridge.bus.envelope import Outbound, decode, event_type
from landbridge.bus.errors import BusError
from landbridge.bus.publish import publish_batch
from landbridge.client.errors import InvalidError, LandbridgeError, UnreachableError, WaitTimeoutError
from landbridge.client.models import Event, Operation, Problem, Source, Submission, Submitted
from landbridge.client.sources import document_bytes, new_key
from landbridge.domain.ids import cloud_event_key, operation_id

_REMEMBERED_MAX = 10_000


class NatsClient:
    """One connection for one project. Survives restarts of the broker; messages of that time may be missed."""

    def __init__(self, url: str, creds: Path, *, timeout_s: float = 30.0, source: str = "") -> None:
        claims = claims_of(creds)
        self.project = _project_of(claims, creds)
        self.source = source or f"/applications/{self.project}/{claims.get('name') or 'unnamed'}"
        self._settings = BusSettings(url=url, creds=creds, source=self.source, connect_within_s=timeout_s)
        self._timeout_s = timeout_s
        self._bus: Bus | None = None
        self._heard: dict[str, list[Event]] = {}
        self._refused: dict[str, InvalidError] = {}
        self._news = asyncio.Condition()

    async def open(self) -> Self:
        """Connect and begin to listen. Raises UnreachableError."""
        try:
            self._bus = await connect(self._settings, name="application")
            await self._bus.subscribe(subjects.operation("*", self.project), self._on_message)
        except BusError as error:
            raise UnreachableError(str(error)) from error
        return self

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._bus is not None:
            await self._bus.drain()

    async def submit(self, document: Source, *, idempotency_key: str = "") -> Submitted:
        """Submit one operation; returns when the broker has stored it.

        The id is known at once, acceptance is told by an event: `wait` raises InvalidError for what was refused.
        """
        return (await self.submit_many([Submission(document, idempotency_key)]))[0]

    async def submit_many(self, items: Sequence[Submission | Source]) -> list[Submitted]:
        """Submit many in atomic batches, one disk synchronisation each."""
        results, messages = [], []
        for item in items:
            submission = item if isinstance(item, Submission) else Submission(item)
            key = submission.idempotency_key or new_key()
            operation = operation_id(self.project, cloud_event_key(self.source, key))
            self._heard.setdefault(operation, [])
            body = document_bytes(submission.document)
            kind = event_type("submission", "Operation")
            messages.append(Outbound(subjects.submit(self.project), kind, body, id=key))
            results.append(Submitted(operation, "submitted", idempotency_key=key))
        await self._publish(streams.SUBMISSIONS, messages)
        return results

    async def cancel(self, operation: str, reason: str = "") -> None:
        """Ask to stop an operation. It is cancelled once its environment has proven the stop."""
        body = json.dumps({"operation": operation, "by": self.source, "reason": reason}).encode()
        kind = event_type("intent", "Cancel")
        message = Outbound(subjects.intent("cancel", self.project), kind, body, about=operation)
        await self._publish(streams.INTENTS, [message])

    async def follow(self, operation: str) -> AsyncIterator[Event]:
        """Yield lifecycle events heard since connecting, in order, ending with the final one.

        Raises InvalidError when the submission was refused.
        """
        seen = 0
        heard = self._heard.setdefault(operation, [])

        def anything_new() -> bool:
            return len(heard) > seen or operation in self._refused

        while True:
            async with self._news:
                await self._news.wait_for(anything_new)
                fresh, seen = heard[seen:], len(heard)
            if operation in self._refused:
                raise self._refused[operation]
            for event in fresh:
                yield event
                if event.final:
                    return

    async def wait(self, operation: str, *, timeout_s: float | None = None) -> Operation:
        """Return the operation once it has ended. Raises WaitTimeoutError, InvalidError when it was refused."""
        last: Event | None = None
        started = time.monotonic()
        try:
            async with asyncio.timeout(timeout_s):
                async for event in self.follow(operation):
                    last = event
        except TimeoutError:
            told = last.phase if last else "not heard of"
            took = time.monotonic() - started
            raise WaitTimeoutError(f"operation {operation}: still {told} after {took:.0f} s; it goes on") from None
        assert last is not None, "following ends with an event"
        return Operation.of({**last.raw, "operation": operation, "phase": last.phase, "endedAt": last.at})

    async def _publish(self, stream: str, messages: Sequence[Outbound]) -> None:
        if self._bus is None:
            raise LandbridgeError("not connected: use `await connect(…)` or `async with connect(…)`")
        try:
            await publish_batch(self._bus, stream, messages, deadline_s=self._timeout_s)
        except BusError as error:
            raise UnreachableError(f"not submitted: {error}") from error

    async def _on_message(self, message: Any) -> None:
        found = decode(message.subject, message.headers, bytes(message.data))
        kind = subjects.token(found.subject, 3)
        try:
            value = json.loads(found.body)
        except ValueError:
            return
        async with self._news:
            if kind == "refused":
                self._take_refusal(value)
            elif "opSeq" in value:
                self._hear(Event.of(value, kind), str(value.get("operation")))
            self._news.notify_all()

    def _hear(self, event: Event, operation: str) -> None:
        """Remember an event once; operations that nobody here asked for are remembered up to a bound."""
        if operation not in self._heard and len(self._heard) >= _REMEMBERED_MAX:
            return
        heard = self._heard.setdefault(operation, [])
        if all(known.sequence != event.sequence for known in heard):
            heard.append(event)

    def _take_refusal(self, value: dict[str, Any]) -> None:
        if value.get("source") != self.source:
            return
        problems = [Problem.of(item) for item in value.get("problems") or ()]
        text = "\n".join(["the submission was refused", *(f"  {problem}" for problem in problems)])
        operation = operation_id(self.project, cloud_event_key(self.source, str(value.get("submission") or "")))
        self._refused[operation] = InvalidError(text, status=422, problems=problems)


def _project_of(claims: dict[str, Any], creds: Path) -> str:
    """Return the project that the credentials may submit to."""
    allowed = claims.get("nats", {}).get("pub", {}).get("allow", [])
    found = [subjects.project_of(subject) for subject in allowed if subjects.family(subject) == "submit"]
    if len(found) != 1:
        raise LandbridgeError(
            f"{creds}: expected credentials of an application for one project, found {len(found) or 'none'}; make them "
            "with `landbridge access create NAME --project PROJECT`"
        )
    return found[0]
