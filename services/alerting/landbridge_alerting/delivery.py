"""Telling receivers: webhooks, sent until they are taken, to checked addresses only.

A notification says what is true when it is sent, so that a receiver that was down hears of the present and not of the
past. What is being sent is leased, not locked: a replica that dies in the middle leaves it to the others.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

import httpx2
import orjson

from landbridge.runtime import logs
from landbridge.runtime.clock import Clock
from landbridge.store import Database, StoreError
from landbridge_alerting import alerts_table
from landbridge_alerting.addresses import AddressRefusedError, AllowList, Target, resolve
from landbridge_alerting.alerts_table import Notification
from landbridge_alerting.evaluation import unsilenced
from landbridge_alerting.machine import Alert
from landbridge_alerting.webhook import payload

log = logs.get(__name__)

_PAUSES_S: Final = (1.0, 5.0, 15.0, 60.0, 300.0)
_REFUSED_PAUSE_S: Final = 900.0  # the receiver says that our request is wrong: somebody has to change something
_LEASE_S: Final = 60.0
_IDLE_S: Final = 1.0
_AGAIN: Final = frozenset({408, 425, 429})


class DeliveryError(Exception):
    """A receiver was not told. `refused`: trying again soon is of no use."""

    def __init__(self, message: str, *, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


class Sender:
    """Posts JSON to a URL whose address was checked; never follows redirects."""

    def __init__(self, allowed: AllowList, timeout_s: float) -> None:
        self._allowed = allowed
        self._client = httpx2.AsyncClient(timeout=timeout_s, follow_redirects=False, trust_env=False)
        self._timeout_s = timeout_s

    async def post(self, url: str, body: bytes) -> None:
        """Send once. Raises DeliveryError, whose text has no part of the URL but the host."""
        host = urlsplit(url).hostname or "?"
        try:
            async with asyncio.timeout(self._timeout_s * 2):
                target = await resolve(url, self._allowed)
                answer = await self._client.send(self._request(url, target, body))
        except AddressRefusedError as error:
            raise DeliveryError(str(error), refused=True) from error
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            raise DeliveryError(f"{host}: {type(error).__name__}") from error
        status = answer.status_code
        if 200 <= status < 300:
            return
        if 300 <= status < 400:
            raise DeliveryError(f"{host} answered with a redirect ({status}), which is not followed", refused=True)
        raise DeliveryError(f"{host} answered {status}", refused=400 <= status < 500 and status not in _AGAIN)

    def _request(self, url: str, target: Target, body: bytes) -> httpx2.Request:
        parsed = httpx2.URL(url)
        headers = {"Content-Type": "application/json", "Host": parsed.netloc.decode().rpartition("@")[2]}
        # To the address that was checked; the certificate must still be the host's.
        pinned = parsed.copy_with(host=target.address)
        extensions = {"sni_hostname": target.host} if target.scheme == "https" else {}
        return self._client.build_request("POST", pinned, content=body, headers=headers, extensions=extensions)

    async def close(self) -> None:
        await self._client.aclose()


class Delivery:
    """Works off the notifications."""

    def __init__(
        self, database: Database, clock: Clock, receivers: Mapping[str, str], sender: Sender, external_url: str
    ) -> None:
        self._database = database
        self._clock = clock
        self._receivers = dict(receivers)
        self._sender = sender
        self._external_url = external_url
        self._wake = asyncio.Event()
        self.failing: dict[str, str] = {}

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            self._wake.clear()
            try:
                while await self._send_one():
                    pass
                async with self._database.transaction(readonly=True) as tx:
                    self.failing = await alerts_table.failing(tx)
            except StoreError as error:
                log.warning("notifications have to wait", error=str(error))
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), _IDLE_S)

    async def _send_one(self) -> bool:
        now = self._clock.wall()
        async with self._database.transaction() as tx:
            notification = await alerts_table.claim(tx, self._receivers, now, now + timedelta(seconds=_LEASE_S))
            if notification is None:
                return False
            alerts = unsilenced(await alerts_table.group(tx, notification), await alerts_table.silences(tx, now), now)
        error = await self._try(notification, alerts) if alerts else None
        async with self._database.transaction() as tx:
            if error is None:
                await alerts_table.sent(tx, notification, alerts, self._clock.wall())
            else:
                await alerts_table.put_off(tx, notification, str(error), self._next(notification, error))
        return True

    async def _try(self, notification: Notification, alerts: list[Alert]) -> DeliveryError | None:
        body = orjson.dumps(payload(notification.receiver, notification.rule, alerts, self._external_url))
        try:
            await self._sender.post(self._receivers[notification.receiver], body)
        except DeliveryError as error:
            log.warning(
                "a receiver was not told",
                receiver=notification.receiver,
                rule=notification.rule,
                attempt=notification.attempts,
                error=str(error),
            )
            return error
        log.info("a receiver was told", receiver=notification.receiver, rule=notification.rule, alerts=len(alerts))
        return None

    def _next(self, notification: Notification, error: DeliveryError) -> datetime:
        index = min(notification.attempts, len(_PAUSES_S)) - 1
        pause_s = _REFUSED_PAUSE_S if error.refused else _PAUSES_S[max(index, 0)]
        return self._clock.wall() + timedelta(seconds=pause_s)
