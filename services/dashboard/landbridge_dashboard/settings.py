"""Settings of the dashboard: where the services are whose data it shows."""

from landbridge.runtime.settings import Settings


class DashboardSettings(Settings):
    """URLs without a trailing slash; the public address is only for links in messages."""

    intake_url: str = "http://127.0.0.1:8101"
    eligibility_url: str = "http://127.0.0.1:8102"
    ranking_url: str = "http://127.0.0.1:8103"
    lineage_url: str = "http://127.0.0.1:8106"
    contract_verifier_url: str = "http://127.0.0.1:8105"
    coordinator_url: str = "http://127.0.0.1:8104"
    alerting_url: str = "http://127.0.0.1:8107"
    live_interval_seconds: float = 0.7
