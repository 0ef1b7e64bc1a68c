"""What environments report about a placement, one by one and in inventories. Part of `centre_model`."""

import msgspec

from landbridge.domain.ownership.environment_model import SlotPhase
from landbridge.domain.ownership.epochs import Epoch


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """What every report carries. `environment` comes from the subject, never from the payload.

    `environment_term`: the term in force in the environment's row; `report`: opaque, passed on in the event.
    """

    environment: str
    epoch: Epoch
    term: int
    environment_term: int
    reason: str = ""
    message: str = ""
    checkpoint: str = ""
    report: object = None


class ReportStarted(Reported, frozen=True):
    """The workload runs."""


class ReportFinished(Reported, frozen=True, kw_only=True):
    """The workload has ended. `outcome`: completed, failed or cancelled."""

    outcome: str
    exit_code: int | None = None


class ReportRelinquished(Reported, frozen=True):
    """The environment has occupied the slot for ever and gives the placement back."""


class ReportFailedToStart(Reported, frozen=True):
    """Starting was tried in vain; the slot is occupied for ever."""


class ReportCheckpointed(Reported, frozen=True):
    """A checkpoint was sealed; the workload runs on."""


class ReportRefused(Reported, frozen=True):
    """The environment does not accept a command for this placement."""


class InventoryItem(Reported, frozen=True, kw_only=True):
    """A slot in the full inventory that the environment took in `term`, the term in force."""

    slot: SlotPhase
    final: str = ""
    """State of the recorded final report: finished, relinquished or failed-to-start."""
    outcome: str = ""
    exit_code: int | None = None


class InventoryMissing(msgspec.Struct, frozen=True):
    """The full inventory has no slot for the current epoch. `restored`: the environment lost its records."""

    environment: str
    term: int
    restored: bool = False
