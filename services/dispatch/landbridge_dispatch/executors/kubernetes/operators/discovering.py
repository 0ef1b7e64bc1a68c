"""Which operators are there: the kinds that they define are served by the API. Anybody may read that."""

from collections.abc import Iterable

from landbridge_dispatch.executors.kubernetes.api import Api, ApiError
from landbridge_dispatch.executors.kubernetes.operators.kinds import Kind, needed_by


async def found_operators(api: Api, wanted: Iterable[str]) -> frozenset[str]:
    """Return those of the wanted operators all of whose kinds are served. Raises ApiError."""
    return frozenset([name for name in wanted if all([await is_served(api, kind) for kind in needed_by(name)])])


async def is_served(api: Api, kind: Kind) -> bool:
    """Tell whether a kind is served in the version that is used here. Raises ApiError."""
    try:
        listed = await api.get(f"/apis/{kind.api_version}")
    except ApiError as error:
        # A group whose server is away is answered with 503, which is tried again before it comes here.
        if error.status in (403, 404):
            return False
        raise
    return any(item.get("name") == kind.plural for item in (listed or {}).get("resources") or ())
