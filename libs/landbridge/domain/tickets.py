"""Operations in the order of their arrival: any of them can leave at once, whatever stands before it."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple


class Ticket(NamedTuple):
    """One waiting operation. `position` orders tickets by arrival; `previous` is where its last attempt was placed."""

    operation: str
    round: int
    position: int
    since: datetime
    previous: str = ""


class Tickets:
    """Tickets by position. Adding behind the last and removing any of them cost the same however many there are."""

    __slots__ = ("_by_operation",)

    def __init__(self, tickets: Iterable[Ticket] = ()) -> None:
        self._by_operation: OrderedDict[str, Ticket] = OrderedDict()
        for ticket in tickets:
            self.add(ticket)

    def __len__(self) -> int:
        return len(self._by_operation)

    def __iter__(self) -> Iterator[Ticket]:
        return iter(self._by_operation.values())

    @property
    def first(self) -> Ticket:
        """The oldest; KeyError if there is none."""
        return self._by_operation[next(iter(self._by_operation))]

    def get(self, operation: str) -> Ticket | None:
        return self._by_operation.get(operation)

    def add(self, ticket: Ticket) -> None:
        """Put a ticket in its place: mostly that is behind all others."""
        last = next(reversed(self._by_operation), None)
        ordered = last is None or self._by_operation[last].position < ticket.position
        self._by_operation[ticket.operation] = ticket
        if not ordered:
            self._by_operation = OrderedDict((t.operation, t) for t in sorted(self, key=_position))

    def insert(self, ticket: Ticket) -> tuple[Ticket, bool]:
        """Put a ticket in its place; return it, and whether it overtakes the one that was first.

        One that comes late counts as having waited as long as the one that it goes before.
        """
        after = next((each for each in self if each.position > ticket.position), None) if self._late(ticket) else None
        if after is not None:
            ticket = ticket._replace(since=min(ticket.since, after.since))
        overtakes = after is not None and after == self.first
        self.add(ticket)
        return ticket, overtakes

    def _late(self, ticket: Ticket) -> bool:
        last = next(reversed(self._by_operation), None)
        return last is not None and self._by_operation[last].position > ticket.position

    def remove(self, operation: str) -> Ticket:
        return self._by_operation.pop(operation)

    def first_allowed(self, since: datetime) -> Ticket | None:
        """Return the oldest that arrived before a moment, or had been let in before it; None if there is none."""
        return next((ticket for ticket in self if ticket.since < since or ticket.round > 1), None)


def _position(ticket: Ticket) -> int:
    return ticket.position
