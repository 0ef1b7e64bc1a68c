"""What intake reads beside the settings of every service."""

from pydantic import Field

from landbridge.runtime.settings import Settings


class IntakeSettings(Settings):
    """Limits above which new submissions over HTTP are answered with 429 until the stream has caught up."""

    outbox_events_limit: int = Field(default=100_000, ge=1)
    outbox_age_limit_seconds: float = Field(default=60.0, gt=0)
    memo_entries: int = Field(default=4096, ge=1)
