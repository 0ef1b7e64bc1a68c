"""A stand-in for Alertmanager's receivers: takes webhooks over real HTTP and answers as it is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from landbridge.runtime.http import HttpServer


class Receiver:
    """What arrived, and how the next requests are answered (status codes; 200 when none is left)."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.hosts: list[str] = []
        self.answers: list[int] = []
        self.delay_s = 0.0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook/SECRET"

    def alerts(self, rule: str = "") -> list[tuple[str, dict[str, str]]]:
        """(status, labels) of the latest notification, of a rule if one is named."""
        found = [body for body in self.bodies if not rule or body["groupLabels"]["alertname"] == rule]
        return [(alert["status"], alert["labels"]) for alert in found[-1]["alerts"]] if found else []

    async def take(self, request: Request) -> Response:
        await asyncio.sleep(self.delay_s)
        status = self.answers.pop(0) if self.answers else 200
        self.hosts.append(request.headers["host"])
        if status == 200:
            self.bodies.append(await request.json())
        return Response(status_code=status, headers={"Location": "http://127.0.0.1:1/"} if status // 100 == 3 else {})


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver that listens on a free port while the block runs."""
    receiver = Receiver()
    app = FastAPI()
    app.add_api_route("/hook/{secret}", receiver.take, methods=["POST"], response_model=None)
    server = HttpServer(app, "127.0.0.1", 0)
    receiver.port = server.port
    async with server.running():
        yield receiver
