"""A small HTTP server that stands for an instance: a table of answers, and what it was asked."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

Body = Any
Answer = tuple[int, Body] | Callable[["Asked"], tuple[int, Body]]


class Asked:
    """One request."""

    def __init__(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        parts = urlsplit(target)
        self.method, self.path, self.query = method, parts.path, parts.query
        self.headers, self.body = headers, body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class FakeApi:
    """`api[("GET", "/v1/overview")] = (200, {...})`; unknown paths answer 404."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], Answer] = {}
        self.asked: list[Asked] = []
        self.url = ""

    def __setitem__(self, key: tuple[str, str], answer: Answer) -> None:
        self.answers[key] = answer

    def answer(self, asked: Asked) -> tuple[int, Body]:
        self.asked.append(asked)
        found = self.answers.get((asked.method, asked.path))
        if found is None:
            return 404, {"title": "Not found", "detail": f"nothing at {asked.path}"}
        return found(asked) if callable(found) else found


@contextmanager
def fake_api() -> Iterator[FakeApi]:
    api = FakeApi()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, body = api.answer(Asked(self.command, self.path, headers, self.rfile.read(length)))
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_DELETE = _serve  # noqa: N815 - names of the base class

        def log_message(self, *_args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    api.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
