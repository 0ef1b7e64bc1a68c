"""Why the cluster does not go on with something, in the words of its events: a quota, a volume, a missing ConfigMap.

Events are asked for only where nothing else says why, seldom, and never more than one request a second for all slots:
a cluster that is full of waiting work must not be asked about each.
"""

import time
from collections.abc import Collection
from typing import Final

from landbridge_dispatch.executors.kubernetes.api import Api, ApiError, Object

AGAIN_S: Final = 60.0
PAUSE_S: Final = 1.0
KNOWN_MAX: Final = 2_000


class Events:
    """Remembers for a while what was told of an object."""

    def __init__(self, api: Api, telling: Collection[str] = ()) -> None:
        """`telling`: reasons that say why something does not go on; of others there are many that do no harm."""
        self._api = api
        self._telling = telling
        self._known: dict[str, tuple[str, float]] = {}
        self._asked_at = 0.0

    def reason(self, uid: str) -> str | None:
        """Return the reason of the latest warning that is known of an object, empty for none; None: not asked yet."""
        known = self._known.get(uid)
        return None if known is None else known[0].partition(":")[0]

    async def warning(self, namespace: str, uid: str) -> str:
        """Return the latest telling warning about an object, else the latest; empty for none, or if not asked now."""
        now = time.monotonic()
        told, at = self._known.get(uid, ("", -AGAIN_S))
        if now - at < AGAIN_S or now - self._asked_at < PAUSE_S:
            return told
        self._asked_at = now
        try:
            query = {"fieldSelector": f"involvedObject.uid={uid},type=Warning"}
            found, _ = await self._api.list(f"/api/v1/namespaces/{namespace}/events", **query)
        except ApiError:
            # Who may not ask, or gets no answer, knows as much as where nothing was told.
            found = []
        telling = [event for event in found if event.get("reason") in self._telling]
        if latest := max(telling or found, key=_time, default=None):
            told = f"{latest.get('reason', '')}: {latest.get('message', '')}"
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[uid] = told, now
        return told


def _time(event: Object) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or "")
