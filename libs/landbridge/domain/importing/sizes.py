"""Sizes and times as other systems write them."""

import re
from typing import Final

from landbridge.domain.units import format_bytes, format_duration

_SIZE: Final = re.compile(r"\s*([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(k|m|g|t|p)?i?b?\s*", re.IGNORECASE)
_SCALES: Final = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40, "p": 2**50}
_TIME: Final = re.compile(r"\s*([0-9]{1,9})\s*(s|m|h|d|w)?\s*", re.IGNORECASE)
_TIMES_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def gigabytes(text: str) -> str:
    """Return `32`, `32+`, `64GB` as a quantity; empty if it is none. Without a unit it is gigabytes of 2^30 bytes."""
    match = _SIZE.fullmatch(text.removesuffix("+"))
    if match is None:
        return ""
    size = round(float(match[1]) * _SCALES[(match[2] or "g").lower()])
    return format_bytes(size) if size else ""


def seconds(value: object) -> str:
    """Return a number of seconds as a duration; empty if it is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 10**9:
        return ""
    return format_duration(value * 1000)


def duration(value: object, unit: str = "s") -> str:
    """Return `2h`, `90m` or a number of `unit` as a duration; empty if it is none."""
    match = _TIME.fullmatch(str(value)) if isinstance(value, int | str) and not isinstance(value, bool) else None
    if match is None or not int(match[1]):
        return ""
    return seconds(int(match[1]) * _TIMES_S[(match[2] or unit).lower()])


def bounds(text: str) -> tuple[str, str]:
    """Return both ends of a range such as `16GB..80GB`, `4..`, `8`; an open end is empty."""
    low, dots, high = text.replace(" ", "").partition("..")
    return (low, high) if dots else (low, low)
