"""The fencing token of a placement and the fixed name that it gives to its slot."""

import msgspec

from landbridge.domain import ids


class Epoch(msgspec.Struct, frozen=True, order=True):
    """(generation, counter): issued once, strictly increasing for an operation, across restores of the centre too.

    The generation rises when the centre is restored from a backup, so that every later epoch and term is above
    whatever was issued in the window that the backup has lost.
    """

    generation: int
    counter: int

    def __str__(self) -> str:
        return f"{self.generation}.{self.counter}"

    def following(self, generation: int) -> "Epoch":
        """Return the next epoch to issue while the centre is in `generation`."""
        return Epoch(generation, self.counter + 1)


NEVER_PLACED = Epoch(0, 0)

TERMS_PER_GENERATION = 1_000_000


def parse_epoch(text: str) -> Epoch:
    """Read the text form `1.3`; ValueError names what was found otherwise."""
    generation, dot, counter = text.partition(".")
    if not dot or not generation.isdecimal() or not counter.isdecimal():
        raise ValueError(f"epoch: expected GENERATION.COUNTER such as 1.3, found {text!r}")
    return Epoch(int(generation), int(counter))


def slot_name(operation: str, epoch: Epoch) -> str:
    """Return the fixed name of the slot of (operation, epoch): whoever creates it a second time collides."""
    return ids.slot_name(operation, epoch.generation, epoch.counter)


def first_term(generation: int) -> int:
    """Return the lowest lease term of a generation: above every term that an earlier generation can have issued."""
    return (generation - 1) * TERMS_PER_GENERATION + 1
