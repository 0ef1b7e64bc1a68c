"""What could be changed in an operation where a rule stands against it: trials, to be judged like any operation."""

from collections.abc import Mapping
from typing import Final

from landbridge.domain.remedies import amounts, choices
from landbridge.domain.remedies.base import Remedy, Trial

REMEDIES: Final[Mapping[str, Remedy]] = {
    "environment": choices.environment,
    "queue": choices.queue,
    "operated-by": choices.operated_by,
    "runtime-form": choices.runtime_form,
    "architecture": choices.architecture,
    "kubernetes": choices.kubernetes,
    "controls": choices.controls,
    "recovery": choices.recovery,
    "residency": choices.residency,
    "security-tier": choices.security_tier,
    "connections": choices.connections,
    "hardware": amounts.hardware,
    "compute": amounts.compute,
    "deadline": choices.deadline,
    "maintenance": choices.maintenance,
}

__all__ = ["REMEDIES", "Remedy", "Trial"]
