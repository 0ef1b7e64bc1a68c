"""The lease keeper's door: plain HTTP within the cluster, one question, asked by pods with their own projected tokens.

A token is shown to the API server once (TokenReview), which says which pod it belongs to; by its audience it is good
for nothing but this door. What the door tells is the time that the lease has left, and only to pods of this site.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web

from landbridge.runtime import logs
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, UnreachableError
from landbridge_dispatch.executors.kubernetes.keeping import Asking, LeaseKeeper
from landbridge_dispatch.executors.kubernetes.settings import Keeper

log = logs.get(__name__)

REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
KEPT_S: Final = 300.0
"""How long the answer to a review counts: a pod that is deleted meanwhile is not known to the shelf any more."""
KEPT_MAX: Final = 20_000
REFUSED_KEPT_S: Final = 5.0
TOKEN_MAX: Final = 16_384
REVIEWS_MAX: Final = 8
"""Reviews at a time: who sends made-up tokens must not keep the API server, or this dispatcher, from their work."""
_POD: Final = "authentication.kubernetes.io/pod-name"
_UID: Final = "authentication.kubernetes.io/pod-uid"
_ACCOUNT: Final = "system:serviceaccount:"


@dataclass(frozen=True, slots=True)
class _Known:
    asking: Asking | None
    until: float


class Door:
    """Serves wrappers."""

    def __init__(self, api: Api, settings: Keeper, keeper: LeaseKeeper, *, clock: Callable[[], float] = time.monotonic):
        self.port = settings.port
        self._api = api
        self._settings = settings
        self._keeper = keeper
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._reviews = 0
        self._runner: web.AppRunner | None = None

    async def open(self) -> None:
        """Begin to listen. Raises OSError."""
        app = web.Application(client_max_size=1024)
        app.router.add_get("/v1/start", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._settings.host, self._settings.port, backlog=1024)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _serve(self, request: web.Request) -> web.Response:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not token or len(token) > TOKEN_MAX:
            return web.Response(status=401, text="a pod's own token is needed\n")
        try:
            asking = await self._who(token)
            if asking is None:
                return web.Response(status=401, text="this token is no pod's, or not for here\n")
            running = request.query.get("state") == "running"
            line = await self._keeper.answer(asking, running=running, checkpoint=request.query.get("checkpoint", ""))
        except ApiError as error:
            log.warning("keeper_cannot_answer", error=str(error))
            return web.Response(status=503, text="the API server does not answer\n")
        return web.Response(text=line + "\n")

    async def _who(self, token: str) -> Asking | None:
        """Return the pod that a token was made for. Raises ApiError."""
        now = self._clock()
        known = self._known.get(token)
        if known is not None and now < known.until:
            return known.asking
        if self._reviews >= REVIEWS_MAX:
            raise UnreachableError("too many tokens to review at a time")
        self._reviews += 1
        try:
            asking = await self._review(token)
        finally:
            self._reviews -= 1
        if len(self._known) >= KEPT_MAX:
            self._known = {key: value for key, value in self._known.items() if now < value.until}
        if len(self._known) < KEPT_MAX:
            self._known[token] = _Known(asking, now + (REFUSED_KEPT_S if asking is None else KEPT_S))
        return asking

    async def _review(self, token: str) -> Asking | None:
        audience = self._settings.audience
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token, "audiences": [audience]},
        }
        status = (await self._api.create(REVIEWS, body)).get("status") or {}
        user = status.get("user") or {}
        name, extra = str(user.get("username") or ""), user.get("extra") or {}
        pod, uid = (extra.get(_POD) or [""])[0], (extra.get(_UID) or [""])[0]
        # A server that knows no audiences answers without them: then the token was not made for this door.
        if not status.get("authenticated") or audience not in (status.get("audiences") or ()):
            return None
        if not name.startswith(_ACCOUNT) or not pod or not uid:
            return None
        return Asking(name.removeprefix(_ACCOUNT).partition(":")[0], pod, uid)
