"""`connect`: one call for both ways to reach Landbridge, to be awaited or used as `async with`."""

from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar, overload

from landbridge.client.errors import LandbridgeError

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient
    from landbridge.client.nats_client import NatsClient

_NATS = ("nats://", "tls://", "ws://", "wss://")


class _Client(Protocol):
    async def open(self) -> Self: ...

    async def close(self) -> None: ...


C = TypeVar("C", bound=_Client)


class Connecting(Generic[C]):
    """What `connect` returns: await it, or enter it."""

    def __init__(self, client: C) -> None:
        self._client = client

    def __await__(self) -> Generator[Any, None, C]:
        return self._client.open().__await__()

    async def __aenter__(self) -> C:
        return await self._client.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.close()


@overload
def connect(url: str, *, token: str = "", timeout_s: float = 30.0) -> "Connecting[HttpClient]": ...


@overload
def connect(url: str, *, creds: str | Path, timeout_s: float = 30.0) -> "Connecting[NatsClient]": ...


def connect(
    url: str, *, token: str = "", creds: str | Path = "", timeout_s: float = 30.0
) -> "Connecting[HttpClient] | Connecting[NatsClient]":
    """Connect to an instance: `http(s)://…` with a token, or `nats://…` with a credentials file.

    HTTP can do everything. NATS submits, follows, waits and cancels, inside the project that the credentials are for.
    """
    if url.startswith(("http://", "https://")):
        from landbridge.client.http_client import HttpClient

        return Connecting(HttpClient(url, token, timeout_s=timeout_s))
    if url.startswith(_NATS):
        if not creds:
            raise LandbridgeError(
                f"{url}: expected `creds`, the path of a NATS credentials file; make one with "
                "`landbridge access create NAME --project PROJECT`"
            )
        from landbridge.client.nats_client import NatsClient

        return Connecting(NatsClient(url, Path(creds), timeout_s=timeout_s))
    raise LandbridgeError(f"address {url!r}: expected http://, https://, nats:// or tls://")
