"""`landbridge-intake`: run the service until SIGTERM."""

import sys

from landbridge.runtime.runner import run_service
from landbridge_intake.service import IntakeService
from landbridge_intake.settings import IntakeSettings


def main() -> int:
    return run_service(IntakeService, IntakeSettings, IntakeService.name, needs=("postgres_dsn",))


if __name__ == "__main__":
    sys.exit(main())
