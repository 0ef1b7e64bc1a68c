"""What a trial is: the same operation, changed in one place, to be judged again."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import msgspec

from landbridge.domain.candidate import Candidate
from landbridge.domain.requirements import Requirements


class Trial(NamedTuple):
    """An operation that was changed in the field `path` to `value` (empty: the field is left out), in words `text`."""

    text: str
    path: str
    value: str
    requirements: Requirements


Remedy: TypeAlias = Callable[[Requirements, Candidate, datetime], Iterator[Trial]]


def changed(requirements: Requirements, **fields: Any) -> Requirements:
    """Return requirements with other values in some fields."""
    return msgspec.structs.replace(requirements, **fields)


def largest(fits: Callable[[int], bool], below: int) -> int:
    """Return the largest number from 1 to `below` - 1 that fits, 0 if none does. What fits, fits with less as well."""
    low, high = 0, below - 1
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low if low and fits(low) else 0
