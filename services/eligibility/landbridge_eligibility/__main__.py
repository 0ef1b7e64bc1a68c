"""`landbridge-eligibility`: run the service until SIGTERM."""

import sys

from landbridge.runtime.runner import run_service
from landbridge.runtime.settings import Settings
from landbridge_eligibility.service import EligibilityService


def main() -> int:
    return run_service(EligibilityService, Settings, EligibilityService.name, needs=("postgres_dsn",))


if __name__ == "__main__":
    sys.exit(main())
