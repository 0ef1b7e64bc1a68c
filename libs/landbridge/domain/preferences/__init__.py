"""What makes one eligible environment better than another, one measure a file."""

from typing import Final

from landbridge.domain.preferences.base import NOTHING_OBSERVED, Measurement, Observed, Preference
from landbridge.domain.preferences.carbon import Carbon
from landbridge.domain.preferences.cost import Cost
from landbridge.domain.preferences.performance import Performance
from landbridge.domain.preferences.queue_delay import QueueDelay
from landbridge.domain.preferences.reliability import Reliability
from landbridge.domain.preferences.transfer_time import TransferTime

PREFERENCES: Final[tuple[Preference, ...]] = (
    QueueDelay(),
    TransferTime(),
    Performance(),
    Reliability(),
    Carbon(),
    Cost(),
)

__all__ = ["NOTHING_OBSERVED", "PREFERENCES", "Measurement", "Observed", "Preference"]
