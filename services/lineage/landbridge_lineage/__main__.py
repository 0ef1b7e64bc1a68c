"""`landbridge-lineage`: run the service until SIGTERM."""

import sys

from landbridge.runtime.runner import run_service
from landbridge.runtime.settings import Settings
from landbridge_lineage.service import LineageService


def main() -> int:
    return run_service(LineageService, Settings, LineageService.name, needs=("postgres_dsn",))


if __name__ == "__main__":
    sys.exit(main())
