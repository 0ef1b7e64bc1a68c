"""Room that is being made: who was asked to leave, and for whom. Nobody else may use what they leave behind.

What is held falls only when the coordinator says that an operation has ended or left, so for a while an operation that
was promised room and those that must leave for it stand side by side. Whoever else is admitted must fit in beside what
is held now, and beside what will be held then.
"""

from landbridge.domain.ledger import Charge, Ledger, Shifted, Usage


class Promises:
    """Those that were asked to leave, by operation, and the charges that were promised, by bucket."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.leaving: dict[str, Charge] = {}
        self.promised: dict[str, Charge] = {}
        self._for_others: Usage = ledger
        self._planned: Usage = ledger

    def promise(self, key: str, charge: Charge, leaving: list[Charge]) -> None:
        """Promise a bucket's oldest operation what it needs, once others have left."""
        self.promised[key] = charge
        self.leaving.update((victim.operation, victim) for victim in leaving)
        self._renew()

    def ask_to_leave(self, operation: str) -> None:
        """Note that an operation was asked to leave, by whom ever."""
        charge = self._ledger.held_by(operation)
        if charge is not None:
            self.leaving[operation] = charge
            self._renew()

    def take_back(self, key: str) -> Charge | None:
        """Forget what a bucket was promised: it was kept, or is not wanted any more."""
        charge = self.promised.pop(key, None)
        if charge is not None:
            self._renew()
        return charge

    def left(self, operation: str) -> bool:
        """Note that an operation holds nothing any more; tell whether it had been asked to leave."""
        if self.leaving.pop(operation, None) is None:
            return False
        self._renew()
        return True

    def follow(self) -> None:
        """Sum up again: the tree of queues has changed."""
        self._renew()

    def planned_for(self, key: str) -> Usage:
        """Return what will be held when everybody has left who was asked to, and all promises to others are kept."""
        return self._planned if key not in self.promised else self.planned_without(key)

    def usage_for(self, key: str) -> Usage:
        """Return what a bucket must fit in beside: all that is held and all that is promised to others."""
        return self._for_others if key not in self.promised else self._shifted(key, only_more=True)

    def planned_without(self, key: str) -> Shifted:
        """Return what will be held, without what a bucket itself was promised."""
        return self._shifted(key, only_more=False)

    def _renew(self) -> None:
        if not self.leaving and not self.promised:
            self._for_others = self._planned = self._ledger
            return
        self._for_others = self._shifted("", only_more=True)
        self._planned = self._shifted("", only_more=False)

    def _shifted(self, key: str, *, only_more: bool) -> Shifted:
        shifted = Shifted(self._ledger, self._ledger.chain, only_more=only_more)
        for charge in self.leaving.values():
            shifted.add(charge, -1)
        for holder, charge in self.promised.items():
            if holder != key:
                shifted.add(charge)
        return shifted
