"""The rules, one a file. Adding one: a module with NAME and `check`, and a line here."""

from typing import Final

from landbridge_alerting.rules import (
    aged_queue,
    broker_advisory,
    broker_sync,
    dead_letters,
    drift,
    expired_evidence,
    failed_dispatch,
    lost_environment,
    no_eligible_environment,
    quarantined_work,
    quota_exhausted,
    unavailable_connection,
    unowned_charges,
)
from landbridge_alerting.rules.base import Finding, Rule

RULES: Final[dict[str, Rule]] = {
    module.NAME: module.check
    for module in (
        aged_queue,
        broker_advisory,
        broker_sync,
        dead_letters,
        drift,
        expired_evidence,
        failed_dispatch,
        lost_environment,
        no_eligible_environment,
        quarantined_work,
        quota_exhausted,
        unavailable_connection,
        unowned_charges,
    )
}

__all__ = ["RULES", "Finding", "Rule"]
