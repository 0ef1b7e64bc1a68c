"""The HTTP side of a service: health, metrics, problem answers, limits, and uvicorn inside our own event loop."""

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any

import orjson
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from prometheus_client import REGISTRY
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

from landbridge.runtime import logs, metrics
from landbridge.runtime.batcher import QueueFullError
from landbridge.runtime.health import Health, Report
from landbridge.runtime.problems import MEDIA_TYPE, ProblemError
from landbridge.runtime.telemetry import Telemetry, end_served, from_headers, traceparent_of
from landbridge.store import TransientStoreError

log = logs.get(__name__)

DEFAULT_MAX_BODY_BYTES = 16 * 1024 * 1024
_QUIET = frozenset({"/livez", "/readyz", "/startupz", "/metrics"})
_SHUTDOWN_SECONDS = 5
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


_STARTING = ProblemError(503, "Starting", "the service has just started; try again", headers={"Retry-After": "1"})


class JsonResponse(Response):
    """JSON by orjson."""

    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return orjson.dumps(content, default=str)


def problem_response(error: ProblemError) -> Response:
    """Return the answer for a problem."""
    return Response(orjson.dumps(error.body(), default=str), error.status, error.headers, MEDIA_TYPE)


class Guard:
    """ASGI middleware: refuses bodies above the limit, counts requests by route template, records their spans.

    Before the service has `started` it answers 503: what it has not loaded yet, it must not deny.
    """

    def __init__(
        self,
        app: Any,
        *,
        max_body_bytes: int,
        telemetry: Telemetry | None = None,
        started: Callable[[], bool] = lambda: True,
    ) -> None:
        self._app = app
        self._max = max_body_bytes
        self._started = started
        self._telemetry = telemetry if telemetry is not None and telemetry.enabled else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in _QUIET:
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500
        span = self._begin(scope)

        async def watch(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
            if not self._started():
                await problem_response(_STARTING)(scope, receive, watch)
            elif announced.isdigit() and int(announced) > self._max:
                await self._refuse(scope, receive, watch)
            else:
                await self._app(scope, self._limited(receive), watch)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            metrics.http_requests.labels(route, str(status)).inc()
            metrics.http_seconds.labels(route).observe(time.perf_counter() - started)
            if span is not None:
                end_served(span, scope["method"], route, status)

    def _begin(self, scope: Scope) -> Any:
        """Open a span, and hand its context to the handlers in place of the caller's `traceparent`."""
        if self._telemetry is None:
            return None
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        span = self._telemetry.serve(scope["method"], from_headers(headers))
        others = [(name, value) for name, value in scope["headers"] if name != b"traceparent"]
        scope["headers"] = [*others, (b"traceparent", traceparent_of(span).encode())]
        return span

    def _limited(self, receive: Receive) -> Receive:
        seen = 0

        async def limited() -> MutableMapping[str, Any]:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self._max:
                    raise self._too_large()
            return message

        return limited

    def _too_large(self) -> ProblemError:
        return ProblemError(413, "Too large", f"the body is above the limit of {self._max} bytes")

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        await problem_response(self._too_large())(scope, receive, send)


def create_app(
    title: str,
    health: Health,
    *,
    max_body_bytes: int = DEFAULT_MAX_BODY_BYTES,
    telemetry: Telemetry | None = None,
    started: Callable[[], bool] = lambda: True,
) -> FastAPI:
    """Return an app that has health and metrics and answers every error as a problem; a service adds its routes.

    Until `started` says so, only health and metrics are answered.
    """
    app = FastAPI(title=title, docs_url=None, redoc_url=None, default_response_class=JsonResponse)
    app.add_middleware(Guard, max_body_bytes=max_body_bytes, telemetry=telemetry, started=started)
    _add_health(app, health)
    _add_errors(app)
    return app


def _add_health(app: FastAPI, health: Health) -> None:
    def answer(report: Report, verbose: str | None) -> Response:
        status = 200 if report.healthy else 503
        return PlainTextResponse(report.text(verbose=verbose is not None), status, {"Cache-Control": "no-store"})

    @app.get("/livez", include_in_schema=False)
    async def livez(verbose: str | None = None) -> Response:
        return answer(await health.livez(), verbose)

    @app.get("/startupz", include_in_schema=False)
    async def startupz(verbose: str | None = None) -> Response:
        return answer(await health.startupz(), verbose)

    @app.get("/readyz", include_in_schema=False)
    async def readyz(verbose: str | None = None, exclude: str = "") -> Response:
        return answer(await health.readyz(frozenset(filter(None, exclude.split(",")))), verbose)

    @app.get("/readyz/{name}", include_in_schema=False)
    async def readyz_one(name: str, verbose: str | None = None) -> Response:
        if name not in health.names():
            raise ProblemError(404, "Not found", f"no check {name!r}; the checks are {', '.join(health.names())}")
        return answer(await health.readyz(only=name), verbose)

    @app.get("/metrics", include_in_schema=False)
    async def prometheus() -> Response:
        text = generate_latest(REGISTRY)  # type: ignore[no-untyped-call]
        return Response(text, media_type=CONTENT_TYPE_LATEST)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(ProblemError)
    async def on_problem(_: Request, error: ProblemError) -> Response:
        return problem_response(error)

    @app.exception_handler(HTTPException)
    async def on_http(_: Request, error: HTTPException) -> Response:
        problem = ProblemError(error.status_code, str(error.detail), headers=error.headers)
        return problem_response(problem)

    @app.exception_handler(RequestValidationError)
    async def on_invalid(_: Request, error: RequestValidationError) -> Response:
        reasons = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        return problem_response(ProblemError(422, "Invalid request", reasons))

    @app.exception_handler(TransientStoreError)
    async def on_store(_: Request, error: TransientStoreError) -> Response:
        log.warning("request failed for now", error=str(error))
        detail = "the database is not available; nothing was lost, send the request again"
        return problem_response(ProblemError(503, "Try again", detail, headers={"Retry-After": "1"}))

    @app.exception_handler(QueueFullError)
    async def on_full(_: Request, error: QueueFullError) -> Response:
        return problem_response(ProblemError(429, "Too many requests", str(error), headers={"Retry-After": "1"}))

    @app.exception_handler(Exception)
    async def on_bug(request: Request, error: Exception) -> Response:
        log.error("request failed", path=request.url.path, exc_info=error)
        return problem_response(ProblemError(500, "Internal error", "the reason is in the service's log"))


class _Server(uvicorn.Server):
    """Leaves signals to the service."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


class HttpServer:
    """Serves an app on a socket that is bound before anything else, so that its port is known."""

    def __init__(self, app: FastAPI, host: str, port: int, *, port_file: Path | None = None) -> None:
        """Bind at once. Port 0 takes any free one. Raises OSError if the address is taken."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((host, port))
        self.host = host
        self.port: int = self._socket.getsockname()[1]
        self._port_file = port_file
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
        self._server = _Server(config)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve until the block is left; requests in flight then get a few seconds."""
        task = asyncio.create_task(self._server.serve(sockets=[self._socket]), name="http")
        try:
            while not self._server.started and not task.done():  # noqa: ASYNC110 - uvicorn offers no event
                await asyncio.sleep(0.002)
            if self._port_file is not None:
                _write_whole(self._port_file, f"{self.port}\n")
            yield
        finally:
            self._server.should_exit = True
            with contextlib.suppress(asyncio.CancelledError):
                await task
            self._socket.close()


def _write_whole(path: Path, text: str) -> None:
    """Write a file so that readers see all of it or nothing."""
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text(text, encoding="ascii")
    scratch.replace(path)
