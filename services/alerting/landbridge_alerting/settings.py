"""Settings of alerting, prefix LANDBRIDGE_."""

from datetime import timedelta

from pydantic import Field, SecretStr, field_validator

from landbridge.runtime.settings import Settings
from landbridge_alerting.addresses import AddressRefusedError, AllowList, check_url
from landbridge_alerting.world import Limits


class AlertingSettings(Settings):
    """Times in seconds.

    `webhooks`: `name=https://host/path`, several separated by spaces; a URL often holds a secret and is never logged.
    `webhook_allow`: private targets that are meant, as networks or host names, separated by commas.
    """

    webhooks: SecretStr = SecretStr("")
    webhook_allow: str = ""
    webhook_timeout_seconds: float = Field(default=10.0, gt=0)
    external_url: str = ""
    evaluate_seconds: float = Field(default=5.0, gt=0)
    repeat_seconds: float = Field(default=4 * 3600.0, gt=0)
    resolve_seconds: float = Field(default=10.0, ge=0)
    window_seconds: float = Field(default=900.0, gt=0)
    keep_resolved_seconds: float = Field(default=7 * 86_400.0, gt=0)
    alert_queue_age_seconds: float = Field(default=600.0, ge=0)
    alert_unplaced_age_seconds: float = Field(default=600.0, ge=0)
    alert_lost_seconds: float = Field(default=30.0, ge=0)
    alert_failed_starts: int = Field(default=3, ge=1)
    alert_failed_share: float = Field(default=0.2, ge=0, le=1)
    alert_evidence_grace_seconds: float = Field(default=60.0, ge=0)
    broker_seconds: float = Field(default=60.0, gt=0)

    @field_validator("webhook_allow")
    @classmethod
    def _allow_list(cls, value: str) -> str:
        AllowList.parse(value)
        return value

    @field_validator("webhooks")
    @classmethod
    def _receivers(cls, value: SecretStr) -> SecretStr:
        parse_receivers(value.get_secret_value())
        return value

    @property
    def receivers(self) -> dict[str, str]:
        """URL by name."""
        return parse_receivers(self.webhooks.get_secret_value())

    @property
    def limits(self) -> Limits:
        return Limits(
            queue_age=timedelta(seconds=self.alert_queue_age_seconds),
            unplaced_age=timedelta(seconds=self.alert_unplaced_age_seconds),
            quota_age=timedelta(seconds=self.alert_queue_age_seconds),
            lost_for=timedelta(seconds=self.alert_lost_seconds),
            failed_starts=self.alert_failed_starts,
            failed_share=self.alert_failed_share,
            evidence_grace=timedelta(seconds=self.alert_evidence_grace_seconds),
        )


def parse_receivers(text: str) -> dict[str, str]:
    """Read receivers. Raises ValueError that names the receiver, never its URL."""
    found: dict[str, str] = {}
    for entry in text.split():
        name, separator, url = entry.partition("=")
        if not separator or not name.replace("-", "").isalnum():
            raise ValueError("expected NAME=URL, several separated by spaces")
        try:
            check_url(url)
        except AddressRefusedError as error:
            raise ValueError(f"receiver {name}: {error}") from None
        found[name] = url
    return found
