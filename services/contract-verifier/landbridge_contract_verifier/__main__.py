"""`landbridge-contract-verifier`: run the service until SIGTERM."""

import sys

from landbridge.runtime.runner import run_service
from landbridge_contract_verifier.service import ContractVerifierService
from landbridge_contract_verifier.settings import VerifierSettings


def main() -> int:
    return run_service(ContractVerifierService, VerifierSettings, ContractVerifierService.name, needs=("postgres_dsn",))


if __name__ == "__main__":
    sys.exit(main())
