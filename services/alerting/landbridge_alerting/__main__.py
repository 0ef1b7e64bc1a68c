"""`landbridge-alerting`: run the service until SIGTERM."""

import sys

from landbridge.runtime.runner import run_service
from landbridge_alerting.service import AlertingService
from landbridge_alerting.settings import AlertingSettings


def main() -> int:
    return run_service(AlertingService, AlertingSettings, AlertingService.name, needs=("postgres_dsn",))


if __name__ == "__main__":
    sys.exit(main())
