"""What the coordinator reads beside the settings of every service."""

from pydantic import Field

from landbridge.domain.ownership.policy import Timing
from landbridge.runtime.settings import Settings


class CoordinatorSettings(Settings):
    """Times of leases and offers, and the generation to begin after a restore of the database."""

    lease_ttl_seconds: float = Field(default=30.0, gt=0)
    lease_renewal_seconds: float = Field(default=10.0, gt=0)
    offer_seconds: float = Field(default=30.0, gt=0)
    term_period_seconds: float = Field(default=3600.0, gt=0)
    begin_generation: int = Field(default=0, ge=0)
    """Set it, above every generation ever used, once the database was restored from a backup; see the operations
    guide. A generation that has begun is not begun again, so it may stay set."""

    def timing(self) -> Timing:
        """Return the times as the rules count them."""
        return Timing(
            ttl_ms=round(self.lease_ttl_seconds * 1000),
            renewal_ms=round(self.lease_renewal_seconds * 1000),
            offer_ms=round(self.offer_seconds * 1000),
            term_period_ms=round(self.term_period_seconds * 1000),
        )
