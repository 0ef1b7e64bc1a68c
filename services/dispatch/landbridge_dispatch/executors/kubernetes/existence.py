"""Whether what a pod will need is there, asked before anything starts.

Secrets are not looked at: reading them is no right that a dispatcher needs. That one is missing is seen when the
container waits for it, which is before the start as well.
"""

import time
from typing import Final

from landbridge_dispatch.executors.kubernetes.api import Api, ApiError
from landbridge_dispatch.executors.kubernetes.resolution import Resolved
from landbridge_dispatch.executors.protocol import RefusalCode, RefusedError

THERE_S: Final = 60.0
MISSING_S: Final = 5.0
KNOWN_MAX: Final = 10_000


class Existence:
    """Remembers for a short time what is there."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._known: dict[str, tuple[bool, float]] = {}

    async def check(self, found: Resolved) -> None:
        """Raise RefusedError for what is not there. Where the API server does not answer nothing is refused."""
        core = f"/api/v1/namespaces/{found.namespace}"
        if not await self._is_there(f"{core}/serviceaccounts/{found.service_account}"):
            raise RefusedError(RefusalCode.IDENTITY, "the identity's service account is not there")
        for name, options in found.mounts.items():
            if options.claim and not await self._is_there(f"{core}/persistentvolumeclaims/{options.claim}"):
                raise RefusedError(
                    RefusalCode.CONNECTION_UNAVAILABLE, f"connection {name}: its volume claim is not there"
                )

    async def _is_there(self, path: str) -> bool:
        now = time.monotonic()
        known = self._known.get(path)
        if known is not None and now < known[1]:
            return known[0]
        try:
            there = await self._api.get(path) is not None
        except ApiError:
            return True
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[path] = there, now + (THERE_S if there else MISSING_S)
        return there
