"""What a cluster serves beside Kubernetes' own kinds: looked at again and again, since operators come and go.

An operator counts from when its objects are followed, and until its kinds are not served any more. What is left of its
objects then is nothing: the server removes them with their kind.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from landbridge.runtime import logs
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError
from landbridge_dispatch.executors.kubernetes.operators.discovering import found_operators, is_served
from landbridge_dispatch.executors.kubernetes.operators.kinds import HTTPROUTE
from landbridge_dispatch.executors.kubernetes.settings import KubernetesSettings
from landbridge_dispatch.executors.kubernetes.shelf import Shelf

log = logs.get(__name__)

EVERY_S: Final = 60.0
"""How long an operator may be there, or gone, before that is known."""


class Operators:
    """Operators that may be used and are there, and whether the way to services is."""

    def __init__(self, api: Api, settings: KubernetesSettings, shelf: Shelf) -> None:
        self.usable: frozenset[str] = frozenset()
        self.serves_routes = True
        self._api = api
        self._wanted = settings.operators
        self._needs_routes = settings.route is not None and settings.route.gateway is not None
        self._shelf = shelf
        self._watches: dict[str, asyncio.Task[None]] = {}

    async def look(self) -> None:
        """See what is there now, and know its objects before anything is made. Raises ApiError."""
        found = await found_operators(self._api, self._wanted)
        self.serves_routes = not self._needs_routes or await is_served(self._api, HTTPROUTE)
        if found == self.usable:
            return
        log.info("operators_changed", came=sorted(found - self.usable), went=sorted(self.usable - found))
        self.usable &= found
        await self._shelf.follow(found)
        self.usable = found

    async def run(self) -> None:
        """Follow their objects, and look again, until cancelled."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._follow(group.create_task)
                await asyncio.sleep(EVERY_S)
                try:
                    await self.look()
                except ApiError as error:
                    log.warning("operators_not_looked_at", error=str(error), retry_seconds=EVERY_S)

    def _follow(self, begin: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        """Watch what the shelf follows, and nothing else: a kind that is not served cannot be watched."""
        wanted = {kept.path: kept for kept in self._shelf.gangs()}
        for path in self._watches.keys() - wanted.keys():
            self._watches.pop(path).cancel()
        for path in wanted.keys() - self._watches.keys():
            self._watches[path] = begin(wanted[path].run())
