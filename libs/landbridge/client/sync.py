"""The SDK without async: the same methods, which wait. One thread in the background runs the connection.

from landbridge.client import sync

with sync.connect("http://127.0.0.1:8080", token=token) as landbridge:
print(landbridge.wait(landbridge.submit(text).id).phase)
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from landbridge.client.http_client import HttpClient
from landbridge.client.models import Event, LogChunk, Operation, Output, Problem, Refused, Source, Submission, Submitted

T = TypeVar("T")


class Client:
    """See `HttpClient`, whose methods these are."""

    def __init__(self, url: str, token: str = "", *, timeout_s: float = 30.0, retry_s: float = 15.0) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="landbridge-client", daemon=True)
        self._thread.start()
        self._closed = False
        self._client = self._wait(_make(url, token, timeout_s, retry_s))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        done = object()

        async def step() -> Any:
            return await anext(items, done)

        while (item := self._wait(step())) is not done:
            yield item

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection and end the thread; safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self._wait(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def submit(self, document: Source, *, idempotency_key: str = "") -> Submitted:
        return self._wait(self._client.submit(document, idempotency_key=idempotency_key))

    def submit_many(self, items: Sequence[Submission | Source]) -> list[Submitted | Refused]:
        return self._wait(self._client.submit_many(items))

    def plan(self, document: Source) -> dict[str, Any]:
        return self._wait(self._client.plan(document))

    def plan_together(self, documents: Sequence[Source]) -> list[dict[str, Any]]:
        return self._wait(self._client.plan_together(documents))

    def replay(self, operation: str, *, round_: int = 0) -> dict[str, Any]:
        return self._wait(self._client.replay(operation, round_=round_))

    def validate(self, document: Source) -> list[Problem]:
        return self._wait(self._client.validate(document))

    def check(self, document: Source) -> dict[str, Any]:
        return self._wait(self._client.check(document))

    def retry(self, operation: str) -> Submitted:
        return self._wait(self._client.retry(operation))

    def cancel(self, operation: str, reason: str = "") -> None:
        self._wait(self._client.cancel(operation, reason))

    def get(self, operation: str) -> Operation:
        return self._wait(self._client.get(operation))

    def operations(self, *, limit: int = 100, **filters: str) -> list[Operation]:
        return self._wait(self._client.operations(limit=limit, **filters))

    def events(self, operation: str) -> list[Event]:
        return self._wait(self._client.events(operation))

    def follow(self, operation: str) -> Iterator[Event]:
        return self._iterate(self._client.follow(operation))

    def wait(self, operation: str, *, timeout_s: float | None = None, stop_when_unplaceable: bool = False) -> Operation:
        return self._wait(
            self._client.wait(operation, timeout_s=timeout_s, stop_when_unplaceable=stop_when_unplaceable)
        )

    def explain(self, operation: str) -> dict[str, Any]:
        return self._wait(self._client.explain(operation))

    def logs(self, operation: str, *, offset: int = 0, tail: int = 0) -> LogChunk:
        return self._wait(self._client.logs(operation, offset=offset, tail=tail))

    def follow_logs(self, operation: str, *, offset: int = 0) -> Iterator[str]:
        return self._iterate(self._client.follow_logs(operation, offset=offset))

    def outputs(self, operation: str) -> list[Output]:
        return self._wait(self._client.outputs(operation))

    def apply(self, document: Source, *, draft: bool = False) -> dict[str, Any]:
        return self._wait(self._client.apply(document, draft=draft))

    def documents(self, kind: str) -> list[dict[str, Any]]:
        return self._wait(self._client.documents(kind))

    def document(self, kind: str, name: str) -> dict[str, Any]:
        return self._wait(self._client.document(kind, name))

    def delete(self, kind: str, name: str) -> None:
        self._wait(self._client.delete(kind, name))

    def environments(self) -> list[dict[str, Any]]:
        return self._wait(self._client.environments())

    def environment(self, name: str) -> dict[str, Any]:
        return self._wait(self._client.environment(name))

    def control(self, environment: str, action: str, reason: str = "") -> dict[str, Any]:
        return self._wait(self._client.control(environment, action, reason))

    def create_access(self, name: str, project: str, role: str = "submitter") -> dict[str, Any]:
        return self._wait(self._client.create_access(name, project, role))


async def _make(url: str, token: str, timeout_s: float, retry_s: float) -> HttpClient:
    return HttpClient(url, token, timeout_s=timeout_s, retry_s=retry_s)


def connect(url: str, *, token: str = "", timeout_s: float = 30.0) -> Client:
    """Connect over HTTP; close it, or use it in `with`."""
    return Client(url, token, timeout_s=timeout_s)
