"""The dashboard: server-rendered pages for operators, live by SSE, and the one address of the HTTP API."""

import importlib.resources
from typing import ClassVar

import httpx2
import msgspec
from fastapi import FastAPI
from fastapi.staticfiles import StaticFiles

from landbridge.bus import streams, subjects
from landbridge.bus.envelope import Inbound
from landbridge.runtime.service import Service, Subscription
from landbridge.schema.wire.event_v1 import CatalogueEntry
from landbridge_dashboard import live, pages, proxy, sessions
from landbridge_dashboard.query import Query
from landbridge_dashboard.settings import DashboardSettings

_TIMEOUT = httpx2.Timeout(10.0, connect=2.0)
_LIMITS = httpx2.Limits(max_connections=200, max_keepalive_connections=50)
_entry = msgspec.json.Decoder(CatalogueEntry)


class Dashboard(Service):
    """Holds no state of its own: everything shown is asked from the service that owns it."""

    name = "dashboard"
    subscriptions: ClassVar[tuple[Subscription, ...]] = ()
    uses_postgres = False
    settings: DashboardSettings

    def routes(self, app: FastAPI) -> None:
        """Add pages, sign-in, the live stream, static files and the API proxy."""
        self.http = httpx2.AsyncClient(timeout=_TIMEOUT, limits=_LIMITS, trust_env=False, follow_redirects=False)
        query = Query(self.http, self.settings)
        static = importlib.resources.files("landbridge_dashboard") / "static"
        app.mount("/static", StaticFiles(directory=str(static)), name="static")
        pages.Headers.install(app)
        sessions.add_routes(app, self.auth)
        pages.add_routes(app, self.auth, query)
        live.add_routes(app, self.auth, query, self.settings.live_interval_seconds, stopping=self._stop)
        proxy.add_routes(app, self.http, self.settings)

    async def prepare(self) -> None:
        """Follow who may sign in."""
        self.follow("access", streams.CATALOGUE, subjects.catalogue("access", "*"), self._apply_access)

    def _apply_access(self, message: Inbound) -> None:
        entry = _entry.decode(message.body)
        self.auth.apply(entry.name, entry.document or b"", deleted=entry.deleted)

    async def closing(self) -> None:
        """Close the connections to other services."""
        await self.http.aclose()
