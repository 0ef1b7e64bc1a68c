"""Settings of the contract-verifier, prefix LANDBRIDGE_."""

from pathlib import Path

from pydantic import Field

from landbridge.runtime.settings import Settings
from landbridge_contract_verifier.plan import Periods


class VerifierSettings(Settings):
    """`keys_dir` empty: the broker has no accounts, which is for tests only. Times in seconds."""

    keys_dir: Path | None = None
    nats_public_url: str = ""
    nats_leaf_url: str = ""
    """Where sites with their own NATS connect; empty: the broker takes none."""
    probe_connection_seconds: int = Field(default=15, ge=1)
    probe_class_seconds: int = Field(default=60, ge=1)
    probe_runtime_seconds: int = Field(default=60, ge=1)
    probe_boundary_seconds: int = Field(default=60, ge=1)
    probe_link_seconds: int = Field(default=300, ge=1)
    probe_self_stop_seconds: int = Field(default=600, ge=1)
    probe_carbon_seconds: int = Field(default=300, ge=1)
    probe_bandwidth_seconds: int = Field(default=600, ge=1)
    probe_missed_until_expiry: int = Field(default=3, ge=1)
    canary_seconds: int = Field(default=900, ge=1)
    retiring_seconds: int = Field(default=300, ge=0)

    @property
    def periods(self) -> Periods:
        return Periods(
            connection_s=self.probe_connection_seconds,
            capacity_s=self.probe_class_seconds,
            runtime_s=self.probe_runtime_seconds,
            boundary_s=self.probe_boundary_seconds,
            link_s=self.probe_link_seconds,
            self_stop_s=self.probe_self_stop_seconds,
            carbon_s=self.probe_carbon_seconds,
            bandwidth_s=self.probe_bandwidth_seconds,
            missed_until_expiry=self.probe_missed_until_expiry,
        )

    @property
    def advertised_nats_url(self) -> str:
        """Where environments and applications find the broker."""
        return self.nats_public_url or self.nats_url
