"""What runs on this machine for its environments, and how it is stopped when Landbridge goes down."""

from collections.abc import Sequence

from landbridge_embedded.environments import LocalEnvironment
from landbridge_embedded.keeper import Note


async def stop_all(environments: Sequence[LocalEnvironment], note: Note) -> None:
    return None


async def end_launchers(environments: Sequence[LocalEnvironment], note: Note) -> None:
    return None
