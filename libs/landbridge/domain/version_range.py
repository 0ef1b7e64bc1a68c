"""Versions and ranges of versions, as contracts and classes state them: `1.35`, `>=580,<590`.

A version is a row of numbers; what follows the numbers (`-eks-3`, `+k3s1`) does not take part. A range is a list of
bounds that must all hold; a bare version stands for itself and everything below it in depth (`1.35` holds `1.35.2`).
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

Version = tuple[int, ...]

_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+)*)")
_BOUND: Final = re.compile(r"\s*(>=|<=|==|=|>|<|)\s*v?(\d+(?:\.\d+)*)[^,]*")
_ENDLESS: Final = (2**31,)


class Interval(NamedTuple):
    """From `low`, which belongs to it, up to `high`, which does not."""

    low: Version
    high: Version


@lru_cache(maxsize=4096)
def read_version(text: str) -> Version | None:
    """Return the numbers of a version without trailing zeros; None if it is none."""
    match = _VERSION.match(text.strip())
    return _trimmed(tuple(int(part) for part in match[1].split("."))) if match else None


@lru_cache(maxsize=4096)
def read_range(text: str) -> Interval | None:
    """Return the versions that a range holds; None if it cannot be read."""
    low: Version = ()
    high: Version = _ENDLESS
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        match = _BOUND.fullmatch(part)
        if match is None:
            return None
        at = tuple(int(number) for number in match[2].split("."))
        if match[1] in ("", "=", "=="):
            low, high = max(low, _trimmed(at)), min(high, _after(at))
        elif match[1] == ">=":
            low = max(low, _trimmed(at))
        elif match[1] == ">":
            low = max(low, _after(at))
        elif match[1] == "<":
            high = min(high, _trimmed(at))
        else:
            high = min(high, _after(at))
    return Interval(low, high)


def in_range(version: str, wanted: str) -> bool:
    """Tell whether a version lies in a range; what cannot be read lies in none."""
    at, interval = read_version(version), read_range(wanted)
    return at is not None and interval is not None and interval.low <= at < interval.high


def within(found: str, wanted: str) -> bool:
    """Tell whether everything that the range `found` may stand for lies in the range `wanted`."""
    inner, outer = read_range(found), read_range(wanted)
    if inner is None or outer is None:
        return False
    return outer.low <= inner.low and inner.high <= outer.high


def _after(version: Version) -> Version:
    """Return the first version that is not below `version` in depth: 1.36 after 1.35 and all 1.35.x."""
    return (*version[:-1], version[-1] + 1)


def _trimmed(version: Version) -> Version:
    end = len(version)
    while end > 1 and version[end - 1] == 0:
        end -= 1
    return version[:end]
