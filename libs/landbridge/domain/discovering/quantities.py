"""Quantities as Kubernetes writes them, as whole numbers: `129e6`, `1.5Gi`, `100m`, `15360Ki`, `250n`."""

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Final

_SCALE: Final = {
    "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1),
    "k": Decimal(10**3), "M": Decimal(10**6), "G": Decimal(10**9), "T": Decimal(10**12), "P": Decimal(10**15),
    "E": Decimal(10**18), "Ki": Decimal(2**10), "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40),
    "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
# Sixty digits before the unit, and a factor of twenty: more than the default would keep.
_EXACT: Final = Context(prec=100)
_QUANTITY: Final = re.compile(
    r"(?P<number>[+-]?(?:[0-9]{1,30}\.?[0-9]{0,30}|\.[0-9]{1,30}))"
    r"(?:(?P<unit>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)


class QuantityError(ValueError):
    """A text that is no quantity."""


def parse_quantity(text: str | float) -> Decimal:
    """Return the exact amount in its base unit. Raises QuantityError."""
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise QuantityError(f"expected a quantity such as 500m, 2 or 1.5Gi, found {str(text)[:40]!r}")
    scale = Decimal(10) ** int(match["exponent"]) if match["exponent"] else _SCALE[match["unit"] or ""]
    return _EXACT.multiply(Decimal(match["number"]), scale)


def millicores(text: str | float) -> int:
    """Return processors in thousandths, cut off: what there is, not what would be needed. Raises QuantityError."""
    return int(_EXACT.multiply(parse_quantity(text), Decimal(1000)).to_integral_value(ROUND_FLOOR))


def whole(text: str | float, *, up: bool = False) -> int:
    """Return a whole amount (bytes, devices), cut off, or rounded `up` as Kubernetes does. Raises QuantityError."""
    return int(parse_quantity(text).to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))
