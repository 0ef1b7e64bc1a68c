"""`landbridge-coordinator`: run the service until SIGTERM."""

import sys

from landbridge.runtime.runner import run_service
from landbridge_dispatch.coordinator.service import CoordinatorService
from landbridge_dispatch.coordinator.settings import CoordinatorSettings


def main() -> int:
    return run_service(CoordinatorService, CoordinatorSettings, CoordinatorService.name, needs=("postgres_dsn",))


if __name__ == "__main__":
    sys.exit(main())
