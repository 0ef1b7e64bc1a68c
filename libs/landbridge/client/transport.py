"""HTTP with bounded retries: what may be repeated is repeated, what was refused becomes a typed error."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from landbridge.client.errors import (
    BusyError,
    ConflictError,
    InvalidError,
    NotAllowedError,
    NotFoundError,
    NotSignedInError,
    RequestError,
    ServerError,
    UnreachableError,
)
from landbridge.client.models import Problem

_BY_STATUS: dict[int, type[RequestError]] = {
    400: InvalidError,
    401: NotSignedInError,
    403: NotAllowedError,
    404: NotFoundError,
    409: ConflictError,
    413: InvalidError,
    422: InvalidError,
    429: BusyError,
}
_AGAIN = frozenset({429, 502, 503, 504})
_PAUSE_S = (0.1, 0.3, 1.0, 2.0, 4.0)
_CONNECT_S = 5.0


class Transport:
    """One address, one token, one connection pool. `retry_s` bounds all attempts of one request together."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        timeout_s: float = 30.0,
        retry_s: float = 15.0,
        http: "httpx2.AsyncBaseTransport | None" = None,
    ) -> None:
        self.url = url.rstrip("/")
        self._retry_s = retry_s
        headers = {"User-Agent": "landbridge-client", "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._client = httpx2.AsyncClient(
            base_url=self.url,
            headers=headers,
            timeout=httpx2.Timeout(timeout_s, connect=_CONNECT_S),
            transport=http,
            follow_redirects=False,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def json(self, method: str, path: str, *, repeatable: bool | None = None, **options: Any) -> Any:
        """Send a request; the decoded JSON of its answer (None where it has none). Raises RequestError by status."""
        response = await self.send(method, path, repeatable=repeatable, **options)
        return response.json() if response.content else None

    async def send(
        self, method: str, path: str, *, repeatable: bool | None = None, **options: Any
    ) -> "httpx2.Response":
        """Send a request, again while the server is away or busy if that is safe.

        GET, PUT and DELETE are repeatable by themselves, POST where the caller says so (it has an idempotency key).
        """
        again = method in {"GET", "PUT", "DELETE"} if repeatable is None else repeatable
        deadline = time.monotonic() + self._retry_s
        for attempt in range(1000):
            failure: Exception
            pause_s = _PAUSE_S[min(attempt, len(_PAUSE_S) - 1)] * random.uniform(0.7, 1.3)  # noqa: S311 - jitter
            try:
                response = await self._client.request(method, path, **options)
            except httpx2.TransportError as error:
                failure = self.unreachable(error)
                # Nothing was sent when there was no connection: repeating is always safe.
                retry = again or isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            else:
                if response.is_success:
                    return response
                failure = error_of(response)
                retry = response.status_code in _AGAIN and (again or response.status_code == 429)
                pause_s = max(pause_s, retry_after_s(response.headers))
            if not retry or time.monotonic() + pause_s > deadline:
                raise failure
            await asyncio.sleep(pause_s)
        raise AssertionError("the deadline ends the loop")

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, Any] | None = None) -> "AsyncIterator[httpx2.Response]":
        """GET whose body is read piece by piece. Raises RequestError by status."""
        try:
            async with self._client.stream("GET", path, params=params) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_of(response)
                yield response
        except httpx2.TransportError as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: Exception) -> UnreachableError:
        reason = str(error) or type(error).__name__
        return UnreachableError(f"{self.url}: no answer ({reason}); is Landbridge running there, is the address right?")


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds that the server asked to wait, at most a minute; 0 where it asked for none."""
    try:
        return min(60.0, max(0.0, float(headers.get("Retry-After", "0"))))
    except ValueError:
        return 0.0


def error_of(response: "httpx2.Response") -> RequestError:
    """Turn a refusal into its error; `application/problem+json` is read, other bodies are quoted shortly."""
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        title, detail = str(body.get("title") or ""), str(body.get("detail") or "")
        found, operation = body.get("problems") or (), str(body.get("operation") or "")
    else:
        title, detail, found, operation = f"HTTP {response.status_code}", response.text.strip()[:200], (), ""
    problems = [Problem.of(item) for item in found if isinstance(item, dict)]
    message = ": ".join(part for part in (title, detail) if part) or f"HTTP {response.status_code}"
    if problems:
        message = "\n".join([message, *(f"  {problem}" for problem in problems)])
    status = response.status_code
    kind = _BY_STATUS.get(status, ServerError if status >= 500 else RequestError)
    return kind(message, status=status, problems=problems, operation=operation)
