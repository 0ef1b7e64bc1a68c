"""`landbridge-ranking`: run the service until SIGTERM."""

import sys

from landbridge.runtime.runner import run_service
from landbridge.runtime.settings import Settings
from landbridge_ranking.service import RankingService


def main() -> int:
    return run_service(RankingService, Settings, RankingService.name, needs=("postgres_dsn",))


if __name__ == "__main__":
    sys.exit(main())
