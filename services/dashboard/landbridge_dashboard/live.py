"""Live pages: the fragment of a page is rendered again and sent when it has changed."""

import asyncio
import hashlib
from collections.abc import AsyncIterator

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from landbridge.runtime.auth import Authenticator
from landbridge.runtime.problems import ProblemError
from landbridge_dashboard.pages import fragment_of
from landbridge_dashboard.query import Query

_PING_SECONDS = 15.0
_LIFETIME_SECONDS = 1800.0  # the browser connects again; a session that ended is noticed then


def _event(name: str, text: str) -> bytes:
    data = "".join(f"data: {line}\n" for line in text.splitlines())
    return f"event: {name}\n{data}\n".encode()


async def _changes(
    path: str, cookie: str, query: Query, interval_s: float, stopping: asyncio.Event
) -> AsyncIterator[bytes]:
    """Yield the fragment now and whenever it differs from what was sent last."""
    loop = asyncio.get_running_loop()
    ends, sent, pinged = loop.time() + _LIFETIME_SECONDS, "", loop.time()
    yield b"retry: 1000\n\n"
    while loop.time() < ends and not stopping.is_set():
        text = await fragment_of(path, query, cookie)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest != sent:
            sent = digest
            yield _event("content", text)
        elif loop.time() - pinged > _PING_SECONDS:
            pinged = loop.time()
            yield b": ping\n\n"
        await asyncio.sleep(interval_s)


def add_routes(app: FastAPI, auth: Authenticator, query: Query, interval_s: float, *, stopping: asyncio.Event) -> None:
    """Add /live?path=<page>: server-sent events named `content`."""

    @app.get("/live", include_in_schema=False)
    async def live(request: Request, path: str = "/") -> Response:
        auth.authenticate(request)
        if not path.startswith("/") or path.startswith("//"):
            raise ProblemError(422, "Invalid request", "path: expected the path of a page, such as /operations")
        cookie = request.headers.get("cookie", "")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        stream = _changes(path, cookie, query, interval_s, stopping)
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
