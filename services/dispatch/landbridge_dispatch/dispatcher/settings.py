"""Settings of a dispatcher, prefix LANDBRIDGE_."""

from pathlib import Path

from pydantic import Field

from landbridge.runtime.settings import Settings


class DispatcherSettings(Settings):
    """What a dispatcher reads besides what every service reads. It has no Postgres and no Redis."""

    environment: str = Field(default="", pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$")
    data_dir: Path = Path()
    """The environment's own directory: slots, sockets, lease."""
    bindings: Path | None = None
    """Default: bindings.yaml in the data directory."""
