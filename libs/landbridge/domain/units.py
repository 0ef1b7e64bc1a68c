"""Quantities, durations, rates and shares as people write them, and the whole numbers the code counts with.

Memory and sizes are bytes, processors are millicores, durations milliseconds, bandwidths bits per second. Every
parser raises `UnitError`, which says what was expected and, where it can tell, the right form of what was meant.
Every `format_*` writes the shortest text that parses back to the same number.
"""

import math
import re
from decimal import Decimal, InvalidOperation
from typing import Final

BYTES_MAX: Final = 2**63 - 1
MILLICORES_MAX: Final = 10**12
DURATION_MS_MAX: Final = 36_500 * 86_400_000  # a hundred years

_BINARY: Final = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL: Final = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
_DURATION: Final = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_RATE: Final = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}

_NUMBER: Final = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,9})?)([A-Za-z]{0,2})")
_DURATION_TEXT: Final = re.compile(
    r"(?=[0-9])(?:([0-9]{1,9})w)?(?:([0-9]{1,9})d)?(?:([0-9]{1,9})h)?(?:([0-9]{1,9})m(?!s))?(?:([0-9]{1,12})s)?(?:([0-9]{1,15})ms)?"
)
_RATE_TEXT: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([kMGT]?)bit/s")
_PERCENT_TEXT: Final = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)%")
_LOOSE: Final = re.compile(r"\s*([0-9]{1,15}(?:[.,][0-9]{1,9})?)\s*([A-Za-z/ ]{0,16}?)\s*")

# What people write for a unit of time, and the one form used here.
_TIME_WORDS: Final = {
    "": "s", "s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s", "m": "m", "min": "m", "mins": "m",
    "minute": "m", "minutes": "m", "h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "d": "d", "day": "d",
    "days": "d", "ms": "ms", "millis": "ms", "millisecond": "ms", "milliseconds": "ms",
}  # fmt: skip


class UnitError(ValueError):
    """A quantity that cannot be read. `suggestion` is the right form, or empty."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion


def _suggest(form: str) -> str:
    return f'write "{form}"' if form else ""


# -- sizes -------------------------------------------------------------------------------------------------------------


def parse_bytes(text: str) -> int:
    """Read `64Gi`, `1.5Gi`, `500M`, `1024` as bytes. The result is whole: `0.5` and `100m` are refused."""
    match = _NUMBER.fullmatch(text)
    scale = None if match is None else {"": 1, **_BINARY, **_DECIMAL}.get(match[2])
    if match is None or scale is None:
        raise UnitError("expected a size such as 64Gi, 500M or 1024", _suggest(_bytes_meant(text)))
    size = Decimal(match[1]) * scale
    if size != size.to_integral_value():
        raise UnitError(f"expected a whole number of bytes, found {size.normalize():f}")
    if size > BYTES_MAX:
        raise UnitError("expected a size below 8Ei")
    return int(size)


def format_bytes(size: int) -> str:
    """Return the shortest exact form: `64Gi` for 68719476736, `500M` for 500000000."""
    if size == 0:
        return "0"
    forms = [str(size)]
    for table in (_BINARY, _DECIMAL):
        forms += [f"{size // scale}{unit}" for unit, scale in table.items() if size % scale == 0]
    return min(forms, key=lambda form: (len(form), form[-1] != "i"))


def _bytes_meant(text: str) -> str:
    """Guess what was meant by `64GB`, `64 gib`, `64g`, `64,5 Gi`: empty where it cannot be told."""
    loose = _LOOSE.fullmatch(text)
    if loose is None:
        return ""
    number, unit = loose[1].replace(",", "."), loose[2].strip()
    prefix = unit[:1]
    rest = unit[1:].lower()
    if unit.lower() in ("b", "byte", "bytes"):
        return _whole(number)
    if rest in ("i", "ib", "ibyte", "ibytes", "ibibyte", "ibibytes") and prefix.upper() in "KMGTPE":
        return f"{number}{prefix.upper()}i"
    if rest in ("", "b", "byte", "bytes", "igabyte", "igabytes", "egabyte", "egabytes", "erabyte", "erabytes"):
        upper = prefix.upper()
        if upper and upper in "KMGTPE":
            return f"{number}{'k' if upper == 'K' else upper}"
    return ""


def _whole(number: str) -> str:
    return number if "." not in number else ""


# -- processors --------------------------------------------------------------------------------------------------------


def parse_cpu(text: str) -> int:
    """Read `8`, `0.5`, `500m` as millicores."""
    match = _NUMBER.fullmatch(text)
    scale = None if match is None else {"": 1000, "m": 1, "k": 10**6}.get(match[2])
    if match is None or scale is None:
        raise UnitError('expected processors such as "8" or 500m', _suggest(_cpu_meant(text)))
    cores = Decimal(match[1]) * scale
    if cores != cores.to_integral_value():
        raise UnitError("expected processors in steps of a thousandth (1m)")
    if cores > MILLICORES_MAX:
        raise UnitError("expected fewer processors than a thousand million")
    return int(cores)


def format_cpu(millicores: int) -> str:
    """Write `8` for 8000, `500m` for 500."""
    return str(millicores // 1000) if millicores % 1000 == 0 else f"{millicores}m"


def _cpu_meant(text: str) -> str:
    loose = _LOOSE.fullmatch(text)
    if loose is None:
        return ""
    number, unit = loose[1].replace(",", "."), loose[2].strip().lower()
    if unit in ("c", "core", "cores", "cpu", "cpus", "vcpu", "vcpus"):
        return number
    if unit in ("millicore", "millicores", "mcpu", "millicpu", "mcore", "mcores"):
        return f"{number}m"
    return ""


# -- durations ---------------------------------------------------------------------------------------------------------


def parse_duration(text: str) -> int:
    """Read `1h30m`, `15m`, `365d`, `500ms` as milliseconds: units in falling order, each at most once."""
    match = _DURATION_TEXT.fullmatch(text)
    if match is None:
        raise UnitError("expected a duration such as 1h30m, 15m or 500ms", _suggest(_duration_meant(text)))
    total = sum(int(count) * scale for count, scale in zip(match.groups(default="0"), _DURATION.values(), strict=True))
    if total > DURATION_MS_MAX:
        raise UnitError("expected a duration of at most 36500d")
    return total


def format_duration(milliseconds: int) -> str:
    """Write `1h30m` for 5400000; `0s` for 0."""
    if milliseconds == 0:
        return "0s"
    parts: list[str] = []
    rest = milliseconds
    for unit, scale in list(_DURATION.items())[1:]:  # weeks are read, never written
        count, rest = divmod(rest, scale)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts)


_ISO_DURATION: Final = re.compile(r"P(?:([0-9]{1,6})D)?(?:T(?:([0-9]{1,6})H)?(?:([0-9]{1,6})M)?(?:([0-9]{1,9})S)?)?")
_CLOCK: Final = re.compile(r"([0-9]{1,4}):([0-9]{2})(?::([0-9]{2}))?")


def _duration_meant(text: str) -> str:
    """Guess what was meant by `90`, `1.5h`, `5 hours`, `PT5M`, `01:30:00`: empty where it cannot be told."""
    stripped = text.strip()
    iso = _ISO_DURATION.fullmatch(stripped.upper())
    if iso is not None and any(iso.groups()):
        days, hours, minutes, seconds = (int(part or 0) for part in iso.groups())
        return format_duration(((days * 24 + hours) * 60 + minutes) * 60_000 + seconds * 1000)
    clock = _CLOCK.fullmatch(stripped)
    if clock is not None:
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return format_duration((hours * 60 + minutes) * 60_000 + seconds * 1000)
    loose = _LOOSE.fullmatch(text)
    unit = None if loose is None else _TIME_WORDS.get(loose[2].strip().lower())
    if loose is not None and loose[2].strip().lower() in ("w", "week", "weeks"):
        return _scaled(loose[1], 7 * _DURATION["d"])
    return "" if loose is None or unit is None else _scaled(loose[1], _DURATION[unit])


def _scaled(number: str, scale: int) -> str:
    try:
        value = Decimal(number.replace(",", ".")) * scale
    except InvalidOperation:
        return ""
    if value != value.to_integral_value() or value > DURATION_MS_MAX:
        return ""
    return format_duration(int(value))


# -- rates and shares --------------------------------------------------------------------------------------------------


def parse_bandwidth(text: str) -> int:
    """Read `10Gbit/s`, `2.5Gbit/s`, `800bit/s` as bits per second."""
    match = _RATE_TEXT.fullmatch(text)
    if match is None:
        raise UnitError("expected a bandwidth such as 10Gbit/s", _suggest(_bandwidth_meant(text)))
    rate = Decimal(match[1]) * _RATE[match[2]]
    if rate != rate.to_integral_value():
        raise UnitError("expected a whole number of bits per second")
    return int(rate)


def format_bandwidth(bits_per_second: int) -> str:
    """Write `10Gbit/s` for 10**10."""
    for prefix in ("T", "G", "M", "k"):
        if bits_per_second and bits_per_second % _RATE[prefix] == 0:
            return f"{bits_per_second // _RATE[prefix]}{prefix}bit/s"
    return f"{bits_per_second}bit/s"


_RATE_WORDS: Final = re.compile(
    r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([kKmMgGtT]?)i?(bps|b/s|bit|bits|bit/s|bits/s|)\s*"
)
_BYTE_RATE: Final = re.compile(r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([kKMGT]?)i?B(?:/s|ps)\s*")


def _bandwidth_meant(text: str) -> str:
    """Guess: `10Gbps` means 10Gbit/s, `1GB/s` eight times as much as it says in bits."""
    for pattern, factor in ((_BYTE_RATE, 8), (_RATE_WORDS, 1)):
        match = pattern.fullmatch(text)
        if match is None:
            continue
        prefix = match[2].upper().replace("K", "k")
        rate = Decimal(match[1]) * factor * _RATE[prefix]
        return format_bandwidth(int(rate)) if rate == rate.to_integral_value() else ""
    return ""


def parse_percentage(text: str) -> Decimal:
    """Read `99.5%` as an exact decimal between 0 and 100."""
    match = _PERCENT_TEXT.fullmatch(text)
    if match is None:
        plain = re.fullmatch(r"\s*([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*(?:%|percent|pct)?\s*", text)
        raise UnitError("expected a percentage such as 99.5%", _suggest(f"{plain[1]}%" if plain else ""))
    share = Decimal(match[1])
    if share > 100:
        raise UnitError(f"expected a percentage from 0% to 100%, found {share}%")
    return share


def format_percentage(share: Decimal) -> str:
    """Write `99.5%` for Decimal("99.5")."""
    text = f"{share:f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def two_digits(value: float) -> float:
    """Round to two significant digits, so that noise makes no difference; nothing, and less, to 0."""
    return 0.0 if value <= 0 else round(value, 1 - math.floor(math.log10(value)))
