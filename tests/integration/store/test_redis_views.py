"""Read models: there when Redis is, missed but never fatal when it is not."""

import time
from uuid import uuid4

from landbridge.store.redis_views import RedisViews
from landbridge_embedded.redis import RedisServer


async def test_views_are_written_read_and_dropped(redis_url: str) -> None:
    async with RedisViews(redis_url, prefix=f"t:{uuid4()}:") as views:
        assert await views.healthy()
        assert await views.put({"a": b"1", "b": b"2"}, ttl_s=60)
        assert await views.get(["a", "b", "c"]) == {"a": b"1", "b": b"2"}
        await views.drop(["a"])
        assert await views.get(["a", "b"]) == {"b": b"2"}


async def test_uses_beyond_the_limit_of_a_window_are_refused(redis_url: str) -> None:
    async with RedisViews(redis_url, prefix=f"t:{uuid4()}:") as views:
        assert [await views.allow("p", limit=3, window_s=3600) for _ in range(5)] == [True] * 3 + [False] * 2
        assert [await views.allow("q", limit=3, window_s=3600, uses=2) for _ in range(2)] == [True, False]


async def test_without_a_url_everything_misses_and_is_allowed() -> None:
    async with RedisViews("") as views:
        assert not views.enabled
        assert not await views.put({"a": b"1"})
        assert await views.get(["a"]) == {}
        assert await views.allow("p", limit=0, window_s=1)
        assert not await views.healthy()


async def test_redis_may_stop_and_return(own_redis: RedisServer) -> None:
    await own_redis.start()
    async with RedisViews(own_redis.url) as views:
        assert await views.put({"a": b"1"})
        await own_redis.stop()
        started = time.perf_counter()
        for _ in range(50):
            assert await views.get(["a"]) == {}
            assert not await views.put({"a": b"2"})
            assert await views.allow("p", limit=0, window_s=60)
        assert time.perf_counter() - started < 3
        assert not await views.healthy()
        assert views.failures > 0
        await own_redis.start()
        assert await views.healthy()
