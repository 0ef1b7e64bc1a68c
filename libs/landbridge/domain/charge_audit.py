"""Charges compared with what their operations' owner says: what no placement holds is found, and what is over named.

One look may come between an end and the message that tells it: what two in a row have shown counts. Pure.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from landbridge.domain.ledger import Charge
from landbridge.domain.ownership.standing import Standing

Key = tuple[str, int]
# A decision is heard, offered and claimed meanwhile, or its offer is over.
UNDECIDED_AFTER: Final = timedelta(seconds=60)
# Rounds never go back and nothing follows an end: what is told of these later is late.
OVER: Final = frozenset({Standing.OVER, Standing.ENDED})


class Unowned(NamedTuple):
    """A charge that no placement holds. `over`: none ever will, so that it can be given back."""

    charge: Charge
    standing: Standing

    @property
    def key(self) -> Key:
        return self.charge.operation, self.charge.round

    @property
    def over(self) -> bool:
        return self.standing in OVER


class ChargeAudit:
    """What the last look has shown, and by it what this one confirms."""

    def __init__(self) -> None:
        self._seen: dict[Key, Standing] = {}

    def look(self, charges: Iterable[Charge], told: Mapping[Key, Standing], now: datetime) -> list[Unowned]:
        """Return what this look and the one before have shown alike; a charge that nothing is told of is left alone."""
        found = [
            Unowned(charge, standing)
            for charge in charges
            if (standing := told.get((charge.operation, charge.round))) is not None and _unowned(charge, standing, now)
        ]
        confirmed = [each for each in found if self._seen.get(each.key) is each.standing]
        self._seen = {each.key: each.standing for each in found}
        return confirmed


def _unowned(charge: Charge, standing: Standing, now: datetime) -> bool:
    if standing is Standing.PLACED:
        return False
    waits = standing in (Standing.IDLE, Standing.UNKNOWN, Standing.AHEAD)
    return not waits or charge.at is None or now - charge.at >= UNDECIDED_AFTER
