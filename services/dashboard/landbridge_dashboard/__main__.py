"""`landbridge-dashboard`: the web pages and the one address of the HTTP API."""

import sys

from landbridge.runtime.runner import run_service
from landbridge_dashboard.service import Dashboard
from landbridge_dashboard.settings import DashboardSettings


def main() -> int:
    """Run until SIGTERM; return the exit code."""
    return run_service(Dashboard, DashboardSettings, "dashboard")


if __name__ == "__main__":
    sys.exit(main())
