"""Read models in Redis: pipelined, rebuildable, and never a reason to fail.

Every call that cannot reach Redis returns as if nothing were cached and is counted; the caller goes on. After a failure
Redis is left alone for a moment, so that a dead Redis costs no waiting either.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import redis.asyncio as redis

_TIMEOUT_SECONDS = 0.5
_PAUSE_SECONDS = 1.0


class RedisViews:
    """A few commands over one connection pool; keys are prefixed, values are bytes."""

    def __init__(self, url: str, *, prefix: str = "lb:") -> None:
        """Open nothing yet. An empty `url` means that no Redis is used: every read misses, every write is dropped."""
        self._client: redis.Redis | None = None
        self._errors: tuple[type[Exception], ...] = (OSError, TimeoutError)
        if url:
            # Imported here: the driver takes long to import and most services have no use for it.
            import redis.asyncio as driver
            from redis.exceptions import RedisError

            self._errors += (RedisError,)
            self._client = driver.Redis.from_url(
                url, socket_timeout=_TIMEOUT_SECONDS, socket_connect_timeout=_TIMEOUT_SECONDS, max_connections=8
            )
        self._prefix = prefix
        self._not_before = 0.0
        self.failures = 0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def enabled(self) -> bool:
        """Whether a Redis is configured at all."""
        return self._client is not None

    async def _run(self, work: Any, *, asked: bool = False) -> Any:
        if self._client is None or (not asked and time.monotonic() < self._not_before):
            return None
        try:
            return await work(self._client)
        except self._errors:
            self.failures += 1
            self._not_before = time.monotonic() + _PAUSE_SECONDS
            return None

    async def put(self, views: Mapping[str, bytes], *, ttl_s: int = 0) -> bool:
        """Write values in one pipeline, each to live `ttl_s` seconds (0: for ever). Returns whether it did."""

        async def work(client: "redis.Redis") -> bool:
            async with client.pipeline(transaction=False) as pipe:
                for key, value in views.items():
                    pipe.set(self._prefix + key, value, ex=ttl_s or None)
                await pipe.execute()
            return True

        return bool(views) and bool(await self._run(work))

    async def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """Return the values that are there."""
        if not keys:
            return {}
        values = await self._run(lambda client: client.mget([self._prefix + key for key in keys]))
        return {key: value for key, value in zip(keys, values or (), strict=False) if value is not None}

    async def drop(self, keys: Sequence[str]) -> None:
        """Remove values."""
        if keys:
            await self._run(lambda client: client.delete(*[self._prefix + key for key in keys]))

    async def allow(self, key: str, *, limit: int, window_s: int, uses: int = 1) -> bool:
        """Count `uses` of `key`; tell whether they are within `limit` uses per `window_s` seconds.

        Without Redis everything is allowed: a rate limit protects comfort, not correctness.
        """
        name = f"{self._prefix}rate:{key}:{int(time.time()) // window_s}"

        async def work(client: "redis.Redis") -> int:
            async with client.pipeline(transaction=False) as pipe:
                pipe.incrby(name, uses)
                pipe.expire(name, window_s * 2)
                count, _ = await pipe.execute()
            return int(count)

        used = await self._run(work)
        return used is None or used <= limit

    async def healthy(self) -> bool:
        """Tell within a second whether Redis answers (False when none is configured)."""

        async def work(client: "redis.Redis") -> bool:
            await client.ping()
            return True

        return bool(await self._run(work, asked=True))

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()
