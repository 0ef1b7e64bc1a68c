"""Asking the other services, as the person who looks: the session cookie travels on."""

from typing import Any

import httpx2

from landbridge_dashboard.settings import DashboardSettings


class AskError(Exception):
    """A page cannot be shown: `status` as HTTP has it, `text` for a person."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


class Query:
    """Reads from lineage, the coordinator and alerting. Raises AskError."""

    def __init__(self, http: httpx2.AsyncClient, settings: DashboardSettings) -> None:
        self._http = http
        self._settings = settings

    async def lineage(self, path: str, cookie: str, **params: object) -> Any:
        """Return the JSON answer of lineage to GET /v1/<path>."""
        return await self._get("lineage", f"{self._settings.lineage_url}/v1/{path}", cookie, params)

    async def alerting(self, path: str, cookie: str, **params: object) -> Any:
        """Return the JSON answer of alerting to GET /v1/<path>."""
        return await self._get("alerting", f"{self._settings.alerting_url}/v1/{path}", cookie, params)

    async def coordinator(self, path: str, cookie: str, **params: object) -> Any:
        """Return the JSON answer of the coordinator to GET /v1/<path>."""
        return await self._get("coordinator", f"{self._settings.coordinator_url}/v1/{path}", cookie, params)

    async def _get(self, service: str, url: str, cookie: str, params: dict[str, object]) -> Any:
        wanted = {name: str(value) for name, value in params.items() if value not in ("", None)}
        try:
            answer = await self._http.get(url, params=wanted, headers={"cookie": cookie, "accept": "application/json"})
        except httpx2.TransportError as error:
            text = f"{service} does not answer. Nothing is lost; this page fills again when it is back."
            raise AskError(503, text) from error
        if answer.status_code == 200:
            return answer.json()
        raise AskError(answer.status_code, _detail(service, answer))


def _detail(service: str, answer: httpx2.Response) -> str:
    try:
        body = answer.json()
    except ValueError:
        body = {}
    detail = body.get("detail") or body.get("title") if isinstance(body, dict) else ""
    return str(detail or f"{service} answered {answer.status_code}")
