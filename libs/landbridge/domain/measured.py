"""What one preference says of several environments, brought to scores: the columns that rankings are made of."""

import hashlib
from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

import msgspec

from landbridge.domain.preferences import Measurement
from landbridge.domain.weighing import common_unit, normalise

_encode = msgspec.json.Encoder().encode


class Measured(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One preference measured for one environment, with what became of it."""

    preference: str
    value: float | None
    unit: str
    source: str
    normalised: float
    weight: float

    @property
    def unknown(self) -> bool:
        return self.value is None


class Column(NamedTuple):
    """One preference measured for environments in the order of their names. `digest` is a hash of what it holds."""

    measured: tuple[Measured, ...]
    scores: tuple[float, ...]
    weight: float
    digest: bytes


def column(preference: str, measurements: Sequence[Measurement], weight: float) -> Column:
    """Normalise the measurements of one preference. Those in another unit than most others count as unknown."""
    if not measurements:
        return Column((), (), weight, hashlib.sha256(_encode(())).digest())
    values, units, sources = zip(*measurements, strict=True)
    if len(set(units)) > 1:
        values, sources = _comparable(values, units, sources)
    scores = normalise(values)
    # Each field in a row, not each measurement by itself: these are most of what a ranking is made of.
    measured = tuple(map(Measured, repeat(preference), values, units, sources, scores, repeat(weight)))
    return Column(measured, tuple(scores), weight, hashlib.sha256(_encode(measured)).digest())


def _comparable(
    values: tuple[float | None, ...], units: tuple[str, ...], sources: tuple[str, ...]
) -> tuple[tuple[float | None, ...], tuple[str, ...]]:
    """Return values and sources with those in another unit than most as unknown: what was found is still told."""
    unit = common_unit(values, units)
    found = [
        (value, source)
        if own == unit or value is None
        else (None, f"{value:g} {own}, not comparable with {unit}: {source}")
        for value, own, source in zip(values, units, sources, strict=True)
    ]
    return tuple([value for value, _ in found]), tuple([source for _, source in found])
