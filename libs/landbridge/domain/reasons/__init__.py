"""One table of all reason codes: their texts as people see them, and what to do next."""

from landbridge.domain.reasons.base import Reason, Told
from landbridge.domain.reasons.refusals import REFUSALS
from landbridge.domain.reasons.violations import PROVING, VIOLATIONS, next_step, reason_of

__all__ = ["PROVING", "REFUSALS", "VIOLATIONS", "Reason", "Told", "next_step", "reason_of"]
