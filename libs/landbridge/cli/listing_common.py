"""What all lists share."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

_EMPTY = {
    "operation": "no operations{filtered}; submit one with `landbridge submit FILE`",
    "environment": "no environments yet; register one with `landbridge env register FILE`",
    "refusal": "no refused submissions{filtered}",
    "alert": "no alerts: nothing is known to be wrong",
}


def empty(kind: str, filtered: bool = False) -> str:
    text = _EMPTY.get(kind, f"no {kind} documents yet; make one with `landbridge apply FILE`")
    return text.replace("{filtered}", " that fit" if filtered else " yet" if kind == "operation" else "")


async def asked(client: "HttpClient", path: str) -> dict[str, Any]:
    """Return what the coordinator knows; nothing where it does not answer or has not heard of it."""
    from landbridge.client.errors import LandbridgeError

    try:
        return dict(await client.read(path))
    except LandbridgeError:
        return {}
