"""Settings of a dispatcher, prefix LANDBRIDGE_."""

from pathlib import Path

from pydantic import Field

from landbridge.bus.site_streams import DEFAULT_SITE_BYTES
from landbridge.runtime.settings import Settings


class DispatcherSettings(Settings):
    """What a dispatcher reads besides what every service reads. It has no Postgres and no Redis."""

    environment: str = Field(default="", pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)?$")
    data_dir: Path = Path()
    """The environment's own directory: slots, sockets, lease."""
    nats_domain: str = Field(default="", pattern=r"^[A-Za-z0-9-]{0,80}$")
    """JetStream domain of the site's own NATS; empty: the NATS is the centre's."""
    nats_nkey: Path | None = None
    """Seed by which the site's own NATS knows the dispatcher."""
    site_bytes: int = Field(default=DEFAULT_SITE_BYTES, ge=16 * 1024 * 1024)
    """What commands and reports together may take in the site's own NATS."""
    site_replicas: int = Field(default=1, ge=1, le=5)
    bindings: Path | None = None
    """Default: bindings.yaml in the data directory."""
    survey_seconds: float = Field(default=60, gt=0)
    """How often the centre is told what is here, so that it can compare its record."""
