"""Quantities as Kubernetes writes them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain.discovering.quantities import QuantityError, millicores, parse_quantity, whole

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("0", "0"), ("2", "2"), ("100m", "0.1"), ("1.5Gi", "1610612736"), ("129e6", "129000000"), ("129M", "129000000"),
        ("123Mi", "128974848"), ("12E", "12000000000000000000"), ("12e0", "12"), ("1E3", "1000"), (".5", "0.5"),
        ("5.", "5"), ("250n", "0.00000025"), ("-1", "-1"), ("1e-3", "0.001"), ("15360Ki", "15728640"),
        ("7u", "0.000007"),
    ],
)  # fmt: skip
def test_each_form_is_read(text: str, amount: str) -> None:
    assert parse_quantity(text) == Decimal(amount)


@pytest.mark.parametrize(
    "text", ["", "Gi", "1 Gi", "1gi", "1K", "1mi", "1e", "1e3Ki", "0x10", "1,5", "1..2", "NaN", "\u0661"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match="expected a quantity"):
        parse_quantity(text)


@given(st.integers(0, 10**12), st.sampled_from(sorted(_BINARY)))
def test_binary_units_are_powers_of_two(number: int, unit: str) -> None:
    assert parse_quantity(f"{number}{unit}") == number * 2 ** _BINARY[unit]


@given(st.decimals(0, 10**9, places=3), st.sampled_from(sorted(_DECIMAL)))
def test_decimal_units_and_exponents_say_the_same(number: Decimal, unit: str) -> None:
    assert parse_quantity(f"{number:f}{unit}") == parse_quantity(f"{number:f}e{_DECIMAL[unit]}")


@given(st.integers(0, 10**12))
def test_whole_amounts_come_back(number: int) -> None:
    assert whole(str(number)) == whole(str(number), up=True) == number
    assert millicores(f"{number}m") == number


@given(st.decimals(0, 10**6, places=6))
def test_what_there_is_is_never_counted_as_more(amount: Decimal) -> None:
    assert whole(f"{amount:f}") <= amount <= whole(f"{amount:f}", up=True)
    assert millicores(f"{amount:f}") <= amount * 1000


@given(st.text(max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_quantity(text)
    except QuantityError:
        return
