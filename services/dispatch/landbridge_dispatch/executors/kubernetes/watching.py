"""A kind of objects as it stands, kept by listing once and watching from there; whoever asks reads it from memory.

Every change is only a hint to look at the whole again: nothing depends on having seen each. After a gap that the server
cannot fill (410) everything is listed anew, and what is not there any more is told as gone.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from landbridge.runtime import logs
from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, Object

log = logs.get(__name__)

WATCH_S: Final = 290
"""How long the server is asked to watch; shorter than what proxies in between tend to cut."""
RETRY_S: Final = 0.5
RETRY_MAX_S: Final = 15.0


class Kept:
    """Objects of one kind in one namespace, by name."""

    def __init__(
        self,
        api: Api,
        path: str,
        selector: str,
        changed: Callable[[Object, bool], None],
        *,
        may_lack: bool = False,
    ) -> None:
        """Call `changed` with each object that is another now, and whether it is gone.

        `may_lack`: the kind may cease to be served, as those of operators; there is nothing of it then.
        """
        self.items: dict[str, Object] = {}
        self.listed = asyncio.Event()
        self.lists = 0
        self._api = api
        self.path = path
        self._selector = selector
        self._changed = changed
        self._may_lack = may_lack
        self._version = ""
        self._listing = 0
        self._heard: dict[str, tuple[Object, bool]] = {}
        """What was heard of while a list is on its way, and whether it is gone: the list may be older than that."""

    async def run(self) -> None:
        """List and watch until cancelled."""
        wait_s = RETRY_S
        while True:
            try:
                if not self._version:
                    await self.list()
                await self._watch()
                wait_s = RETRY_S
            except ApiError as error:
                if error.status == 410:
                    self._version = ""
                    continue
                log.warning("watch_broke", path=self.path, error=str(error), retry_seconds=wait_s)
                # Jitter keeps the watches of many kinds from coming back in one moment.
                await asyncio.sleep(wait_s * (0.5 + random.random()))  # noqa: S311
                wait_s = min(wait_s * 2, RETRY_MAX_S)
                if error.status:
                    # An answer, not a cut: such as a version that a server restored from a backup has not reached.
                    self._version = ""

    async def list(self) -> None:
        """Read all, uncached."""
        if not self._listing:
            self._heard = {}
        self._listing += 1
        try:
            found, version = await self._listed()
        finally:
            self._listing -= 1
        self.lists += 1
        before, self.items = self.items, _newest(found, self._heard)
        if not self._version or int(version) > int(self._version):
            self._version = version
        self.listed.set()
        for name, item in before.items():
            if name not in self.items:
                self._changed(item, True)
        for name, item in self.items.items():
            if before.get(name, {}) != item:
                self._changed(item, False)

    def forget(self, name: str) -> None:
        """Let go of an object that was removed by us."""
        if (item := self.items.pop(name, None)) is not None:
            self._hear(item, gone=True)

    def _hear(self, item: Object, *, gone: bool = False) -> None:
        if self._listing:
            self._heard[item["metadata"]["name"]] = item, gone

    async def _listed(self) -> tuple[Sequence[Object], str]:
        try:
            return await self._api.list(self.path, self._selector)
        except ApiError as error:
            if error.status == 404 and self._may_lack:
                return [], "0"
            raise

    def note(self, item: Object) -> None:
        """Take in the answer to a write of our own, unless something newer is known."""
        name = item["metadata"]["name"]
        known = self.items.get(name)
        if known is None or _older(known, item):
            self.items[name] = item
            self._hear(item)

    async def _watch(self) -> None:
        async with contextlib.aclosing(self._api.watch(self.path, self._selector, self._version, WATCH_S)) as events:
            async for kind, item in events:
                self._version = item["metadata"]["resourceVersion"]
                if kind == "BOOKMARK":
                    continue
                name = item["metadata"]["name"]
                known = self.items.get(name)
                if kind == "DELETED":
                    # Another object of that name may be known already, by the answer to its creation.
                    if known is None or known["metadata"]["uid"] == item["metadata"]["uid"]:
                        self.items.pop(name, None)
                        self._hear(item, gone=True)
                    self._changed(item, True)
                elif known is None or not _older(item, known):
                    self.items[name] = item
                    self._hear(item)
                    self._changed(item, False)


def _newest(found: Sequence[Object], heard: Mapping[str, tuple[Object, bool]]) -> dict[str, Object]:
    """Return what a list says, and what was heard of since it was asked for where that is newer."""
    items = {item["metadata"]["name"]: item for item in found}
    for name, (item, gone) in heard.items():
        listed = items.get(name)
        if gone:
            if listed is not None and listed["metadata"]["uid"] == item["metadata"]["uid"]:
                del items[name]
        elif listed is None or _older(listed, item):
            items[name] = item
    return items


def _older(first: Object, second: Object) -> bool:
    """Tell whether `first` is an older state of the same object. Versions are numbers since Kubernetes 1.35 says so."""
    if first["metadata"]["uid"] != second["metadata"]["uid"]:
        return False
    return int(first["metadata"]["resourceVersion"]) < int(second["metadata"]["resourceVersion"])
