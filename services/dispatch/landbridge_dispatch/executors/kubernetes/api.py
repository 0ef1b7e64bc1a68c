"""A thin layer over kubernetes-asyncio: plain dictionaries, typed errors, bounded waits, a count of all requests.

The client's typed models and its own watch are not used: models cost more than all decisions on them, and the watch
asks again from the version that the server has just called too old. Authentication and TLS are the library's.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
from kubernetes_asyncio import client, config
from kubernetes_asyncio.client.rest import ApiException

from landbridge_dispatch.executors.kubernetes import names

Object = dict[str, Any]
PAGE: Final = 500
REQUEST_S: Final = 20.0
CONNECT_S: Final = 5.0
PARALLEL: Final = 16
"""Requests at a time; the API server's own fairness does the rest."""
PATIENCE_S: Final = 30.0
"""How long a request is tried again while the API server is away, before the process gives up and begins anew."""
MERGE: Final = "application/merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
_PASSING: Final = frozenset({429, 500, 502, 503, 504})
_decoder: Final = msgspec.json.Decoder(dict[str, Any])


class ApiError(Exception):
    """The API server's answer was no. `reason` is its word for it."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status = status
        self.reason = reason
        self.message = message


class UnreachableError(ApiError):
    """No answer, or one that says to come again later."""

    def __init__(self, message: str) -> None:
        super().__init__(0, "Unreachable", message)


class Api:
    """The API of one cluster."""

    def __init__(self, kubeconfig: str | Path = "", *, host: str = "", patience_s: float = PATIENCE_S) -> None:
        """`kubeconfig`: a file; empty: the pod's own service account. `host`: an address without credentials.

        `patience_s`: for how long a request is tried again while nothing answers.
        """
        self._kubeconfig = str(kubeconfig)
        self._host = host
        self._patience_s = patience_s
        self._client: client.ApiClient | None = None
        self._room = asyncio.Semaphore(PARALLEL)
        self.requests = 0
        """How many there were, watches apart."""

    async def open(self) -> None:
        """Read the credentials. Raises UnreachableError."""
        configuration = client.Configuration()
        if self._host:
            configuration.host = self._host
        elif self._kubeconfig:
            await config.load_kube_config(config_file=self._kubeconfig, client_configuration=configuration)
        else:
            try:
                config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            except config.ConfigException as error:
                raise UnreachableError(f"this process is in no cluster and no kubeconfig is bound: {error}") from error
        configuration.connection_pool_maxsize = PARALLEL + 64
        self._client = client.ApiClient(configuration)
        self._client.user_agent = names.FIELD_MANAGER

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()
            self._client = None

    @contextlib.asynccontextmanager
    async def anew(self, token: str) -> AsyncIterator["Api"]:
        """Ask the same server as whoever a token stands for. Raises UnreachableError."""
        if self._client is None:
            raise UnreachableError("the executor is not open")
        own = self._client.configuration
        configuration = client.Configuration(host=own.host)
        configuration.ssl_ca_cert, configuration.verify_ssl = own.ssl_ca_cert, own.verify_ssl
        configuration.api_key = {"BearerToken": f"Bearer {token}"}
        other = Api(patience_s=self._patience_s)
        other._client = client.ApiClient(configuration)
        try:
            yield other
        finally:
            await other.close()

    # -- objects -------------------------------------------------------------------------------------------------------

    async def version(self) -> tuple[int, int]:
        """Return major and minor version."""
        found = await self._json("GET", "/version")
        return int(found["major"]), int("".join(letter for letter in found["minor"] if letter.isdecimal()))

    async def get(self, path: str) -> Object | None:
        """Return an object; None where there is none."""
        try:
            return await self._json("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def create(self, path: str, item: Object, **query: str) -> Object:
        """Create an object. Raises ApiError, 409 if its name is taken."""
        return await self._json("POST", path, item, {"fieldManager": names.FIELD_MANAGER, **query})

    async def merge(self, path: str, patch: Object) -> Object:
        """Change parts of an object; name its resourceVersion in the patch to be sure of what is changed."""
        query = {"fieldManager": names.FIELD_MANAGER}
        return await self._json("PATCH", path, patch, query, content_type=MERGE)

    async def apply(self, path: str, item: Object) -> Object:
        """Have the fields of `item` be as they are there. Raises ApiError 409 for fields of other managers."""
        query = {"fieldManager": names.FIELD_MANAGER, "force": "false"}
        return await self._json("PATCH", path, item, query, content_type=APPLY)

    async def delete(self, path: str, *, uid: str, grace_s: int | None = None, propagation: str = "Background") -> None:
        """Delete the object with that UID, and no other that has its name now. It may be gone already."""
        body: Object = {"preconditions": {"uid": uid}, "propagationPolicy": propagation}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        try:
            await self._json("DELETE", path, body)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    async def list(self, path: str, selector: str = "", **query: str) -> tuple[list[Object], str]:
        """Return all objects, in pages, and the resourceVersion that they are of. Never from a cache."""
        found: list[Object] = []
        token = ""
        while True:
            asked = {"limit": str(PAGE), **query}
            if selector:
                asked["labelSelector"] = selector
            if token:
                asked["continue"] = token
            try:
                page = await self._json("GET", path, None, asked)
            except ApiError as error:
                if error.status == 410 and token:
                    found, token = [], ""
                    continue
                raise
            found += page.get("items") or []
            token = page["metadata"].get("continue") or ""
            if not token:
                return found, page["metadata"]["resourceVersion"]

    async def read_text(self, path: str, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        """Yield a text in pieces, such as a log. Raises ApiError."""
        self.requests += 1
        response = await self._send("GET", path, None, query, "", aiohttp.ClientTimeout(total=120))
        async with response:
            if response.status >= 300:
                raise _error(response.status, await response.read())
            async for piece in response.content.iter_chunked(1 << 16):
                yield piece

    async def watch(
        self, path: str, selector: str, version: str, seconds: int
    ) -> AsyncGenerator[tuple[str, Object], None]:
        """Yield type and object of each change after `version`, bookmarks too, until the server ends the watch.

        Raises ApiError: 410 where `version` is too old, UnreachableError where the connection breaks.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "labelSelector": selector,
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
        }
        # The server ends a watch by itself; one that is silent for long after that is a connection that is dead.
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=seconds + REQUEST_S)
        try:
            response = await self._send("GET", path, None, query, "", timeout)
            async with response:
                if response.status >= 300:
                    raise _error(response.status, await response.read())
                while line := await response.content.readline():
                    event = _decoder.decode(line)
                    if event["type"] == "ERROR":
                        status = event["object"]
                        raise ApiError(status.get("code") or 0, status.get("reason", ""), status.get("message", ""))
                    yield event["type"], event["object"]
        except (aiohttp.ClientError, TimeoutError, OSError, msgspec.DecodeError) as error:
            raise UnreachableError(f"the watch broke: {type(error).__name__}") from error

    # -- requests ------------------------------------------------------------------------------------------------------

    async def _json(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        query: Mapping[str, str] | None = None,
        content_type: str = "",
    ) -> Object:
        """Send a request; what may pass is tried again. Raises ApiError."""
        wait_s, until = 0.2, time.monotonic() + self._patience_s
        while True:
            try:
                return await self._once(method, path, body, query or {}, content_type)
            except UnreachableError:
                if time.monotonic() + wait_s > until:
                    raise
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, 3.0)

    async def _once(
        self, method: str, path: str, body: Object | None, query: Mapping[str, str], content_type: str
    ) -> Object:
        timeout = aiohttp.ClientTimeout(total=REQUEST_S, sock_connect=CONNECT_S)
        async with self._room:
            self.requests += 1
            try:
                response = await self._send(method, path, body, query, content_type, timeout)
                async with response:
                    data = await response.read()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise UnreachableError(f"the API server does not answer: {type(error).__name__}") from error
        if response.status in _PASSING:
            raise UnreachableError(f"the API server answers {response.status}")
        if response.status >= 300:
            raise _error(response.status, data)
        return _decoder.decode(data) if data else {}

    async def _send(
        self,
        method: str,
        path: str,
        body: Object | None,
        query: Mapping[str, str],
        content_type: str,
        within: aiohttp.ClientTimeout,
    ) -> aiohttp.ClientResponse:
        if self._client is None:
            raise UnreachableError("the executor is not open")
        headers = {"Accept": "application/json"}
        if content_type:
            headers["Content-Type"] = content_type
        asked: Sequence[tuple[str, str]] = list(query.items())
        try:
            response: aiohttp.ClientResponse = await self._client.call_api(
                path,
                method,
                query_params=list(asked),
                header_params=headers,
                body=body,
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=within,
            )
        except ApiException as error:
            raise UnreachableError(f"the client could not ask: {error.reason}") from error
        return response


def _error(status: int, data: bytes) -> ApiError:
    try:
        told = _decoder.decode(data)
    except msgspec.DecodeError:
        told = {}
    return ApiError(
        status, str(told.get("reason") or ""), str(told.get("message") or data[:200].decode(errors="replace"))
    )
