"""The sample environments of a first start."""

from collections.abc import Awaitable, Callable

from landbridge_embedded.layout import DataDirectory


async def register(data: DataDirectory, *, empty: bool, api: str, join: Callable[[str], Awaitable[None]]) -> None:
    return None
