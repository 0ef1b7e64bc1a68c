"""Quantities, durations, rates and shares: what they mean, and what is suggested for what was meant."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain import units
from landbridge.domain.units import UnitError

Parse = Callable[[str], Any]


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (units.parse_bytes, "64Gi", 64 * 2**30),
        (units.parse_bytes, "1.5Gi", 3 * 2**29),
        (units.parse_bytes, "500M", 500_000_000),
        (units.parse_bytes, "1024", 1024),
        (units.parse_bytes, "0", 0),
        (units.parse_cpu, "8", 8000),
        (units.parse_cpu, "0.5", 500),
        (units.parse_cpu, "500m", 500),
        (units.parse_duration, "1h30m", 5_400_000),
        (units.parse_duration, "365d", 365 * 86_400_000),
        (units.parse_duration, "1m500ms", 60_500),
        (units.parse_duration, "5m", 300_000),
        (units.parse_bandwidth, "10Gbit/s", 10**10),
        (units.parse_bandwidth, "2.5kbit/s", 2500),
        (units.parse_percentage, "99.5%", Decimal("99.5")),
        (units.parse_percentage, "0%", Decimal(0)),
    ],
)
def test_a_quantity_means_what_it_says(parse: Parse, text: str, expected: object) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("parse", "text", "meant"),
    [
        (units.parse_bytes, "64GB", "64G"),
        (units.parse_bytes, "64 gib", "64Gi"),
        (units.parse_bytes, "64g", "64G"),
        (units.parse_bytes, "64,5 Gi", "64.5Gi"),
        (units.parse_bytes, "64KB", "64k"),
        (units.parse_cpu, "8 cores", "8"),
        (units.parse_cpu, "500mcpu", "500m"),
        (units.parse_duration, "90", "1m30s"),
        (units.parse_duration, "1.5h", "1h30m"),
        (units.parse_duration, "5 hours", "5h"),
        (units.parse_duration, "PT5M", "5m"),
        (units.parse_duration, "01:30:00", "1h30m"),
        (units.parse_duration, "2 weeks", "14d"),
        (units.parse_bandwidth, "10Gbps", "10Gbit/s"),
        (units.parse_bandwidth, "1GB/s", "8Gbit/s"),
        (units.parse_percentage, "99.5", "99.5%"),
    ],
)
def test_a_wrong_unit_is_refused_with_the_right_form(parse: Parse, text: str, meant: str) -> None:
    with pytest.raises(UnitError) as refused:
        parse(text)
    assert refused.value.suggestion == f'write "{meant}"'
    parse(meant)


@pytest.mark.parametrize("text", ["", "x", "Gi", "-1", "1e99", "0.5", "9Ei", "1_000", "\uff11\uff16Gi", "64Gi\n"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        units.parse_bytes(text)


@pytest.mark.parametrize("text", ["", "30m1h", "1h1h", "36501d", "h", "-5m", "5m\n"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UnitError):
        units.parse_duration(text)


@given(st.integers(0, units.BYTES_MAX))
def test_bytes_round_trip(size: int) -> None:
    assert units.parse_bytes(units.format_bytes(size)) == size


@given(st.integers(0, units.MILLICORES_MAX))
def test_processors_round_trip(millicores: int) -> None:
    assert units.parse_cpu(units.format_cpu(millicores)) == millicores


@given(st.integers(0, units.DURATION_MS_MAX))
def test_durations_round_trip(milliseconds: int) -> None:
    assert units.parse_duration(units.format_duration(milliseconds)) == milliseconds


@given(st.integers(0, 10**12 - 1))
def test_bandwidths_round_trip(rate: int) -> None:
    assert units.parse_bandwidth(units.format_bandwidth(rate)) == rate


@given(st.decimals(0, 100, places=6))
def test_percentages_round_trip(share: Decimal) -> None:
    assert units.parse_percentage(units.format_percentage(share)) == share


@pytest.mark.parametrize(
    "parse",
    [units.parse_bytes, units.parse_cpu, units.parse_duration, units.parse_bandwidth, units.parse_percentage],
)
@given(text=st.text(max_size=40))
def test_any_text_is_a_number_or_a_unit_error_whose_suggestion_is_readable(parse: Parse, text: str) -> None:
    try:
        assert parse(text) >= 0
    except UnitError as refused:
        if refused.suggestion:
            parse(refused.suggestion.removeprefix('write "').removesuffix('"'))
