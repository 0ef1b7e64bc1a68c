"""Price lists: everything wrong at once, with line and suggestion; unknown stays unknown, prepaid is said."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain.preferences import NOTHING_OBSERVED
from landbridge.domain.preferences.cost import Cost
from landbridge.domain.prices import PriceList, cost_section, read_prices
from landbridge.domain.prices.section import as_number
from landbridge.domain.tables import MOST_BYTES
from support.deciding import an_environment, an_operation

FILES = Path(__file__).parents[2] / "fixtures" / "prices"
AUTUMN = datetime(2026, 10, 1, tzinfo=UTC)
MIXED = (
    "f:3: currency: expected EUR as in the lines before, found USD; "
    "a contract has one currency; convert the others and say so in source"
)
HEAD = "class,unit,currency,rate,valid_from,valid_until,source\n"


def read(name: str) -> PriceList:
    return read_prices((FILES / name).read_bytes())


def rows(*lines: str) -> PriceList:
    return read_prices((HEAD + "\n".join(lines)).encode())


def test_a_clouds_list_becomes_prices_of_the_contracts_units() -> None:
    found = read("gpu-cloud.csv")
    assert not found.problems
    section = cost_section(found.rows, "cloud-b", AUTUMN)
    assert section.currency == "USD"
    prices = {name: as_number(row.price or 0) for name, row in section.prices.items()}
    assert prices == {"gpu-80gb": 2.99, "gpu-40gb": 1.22, "gpu-24gb": 0, "cpu-general": 0.0425}
    assert section.egress is not None
    assert as_number(section.egress.price or 0) == pytest.approx(81.92 / 1099.511627776, rel=1e-4)
    assert section.unknown == {"gpu-80gb-spot": "line 5 says so"}


def test_prices_follow_the_calendar_and_what_has_ended_is_unknown() -> None:
    found = read("gpu-cloud.csv").rows
    last = cost_section(found, "cloud-b", datetime(2026, 12, 31, 23, 59, tzinfo=UTC))
    assert as_number(last.prices["gpu-80gb"].price or 0) == 2.99, "the last day counts"
    after = cost_section(found, "cloud-b", datetime(2027, 1, 1, tzinfo=UTC))
    assert as_number(after.prices["gpu-80gb"].price or 0) == 2.49
    assert after.unknown["gpu-24gb"] == "its price ended with 2026-12-31"
    before = cost_section(found, "cloud-b", datetime(2026, 3, 1, tzinfo=UTC))
    assert before.unknown["gpu-80gb"] == "its price holds from 2026-07-01"


def test_a_list_of_another_country_with_semicolons_commas_and_a_byte_order_mark_is_read() -> None:
    found = read("innenauftrag.csv")
    assert not found.problems
    section = cost_section(found.rows, "onprem-a", AUTUMN)
    prices = {name: as_number(row.price or 0) for name, row in section.prices.items()}
    assert prices == {"gpu-80gb": 1.85, "gpu-80gb-half": 0.95, "cpu-general": 0.02, "cpu-batch": 0}
    assert section.sources[0] == "Verrechnungssatz 2026; Rechenzentrum"


def test_everything_that_is_wrong_is_told_at_once_with_its_line_and_what_to_do() -> None:
    told = [problem.text("broken.csv") for problem in read("broken.csv").problems]
    assert told == (FILES / "broken.txt").read_text().splitlines()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "x: expected rows, found an empty file"),
        (b"class,unit,curency,rate,source\n", 'x:1: unknown column "curency"; did you mean "currency"?'),
        (b"class,unit\n", 'x:1: column "currency" is missing; the first line names the columns'),
        (b"class,class,unit,currency,rate,source\n", "x:1: class: found 2 columns of this name; keep one"),
        (HEAD.encode() + b"a,hour,EUR,1,,,\xff\xfe", "x:2: expected UTF-8, found byte 0xff; save it as CSV in UTF-8"),
        (b"\0\1\2", "x: expected text, found zero bytes; save it as CSV in UTF-8"),
        (b"a" * (MOST_BYTES + 1), "x: expected at most 1024 KiB, found 1025; split the file"),
        (HEAD.encode() + b'a,hour,EUR,1,,,"open', "x:2: expected rows of CSV, found: unexpected end of data"),
    ],
)
def test_files_that_are_no_price_list_say_what_they_are(data: bytes, told: str) -> None:
    found = read_prices(data)
    assert not found.rows
    assert any(problem.text("x").startswith(told) for problem in found.problems), found.problems


def test_of_very_many_problems_the_first_hundred_are_told() -> None:
    found = rows(*["gpu,hour,EUR,-1,,,list"] * 500)
    assert len(found.problems) == 101
    assert found.problems[-1].message == "and 400 more problems"


def test_currencies_cannot_be_mixed_and_classes_must_be_offered() -> None:
    found = rows("gpu-80gb,hour,EUR,2,,,a", "gpu-40gb,hour,USD,1,,,b")
    section = cost_section(found.rows, "x", AUTUMN, ["gpu-80gb", "gpu-40g", "cpu-general"])
    assert [problem.text("f") for problem in section.problems] == [
        'f:3: class: the contract offers no class gpu-40gb; did you mean "gpu-40g"?',
        MIXED,
    ]
    assert section.unknown == {"gpu-40g": "it is not in the list", "cpu-general": "it is not in the list"}


_RATES = st.decimals("0.0001", "5000", places=4) | st.sampled_from(["prepaid", "unknown"])


@given(
    listed=st.dictionaries(st.sampled_from(["gpu-80gb", "gpu-40gb", "cpu-general", "egress"]), _RATES),
    from_day=st.none() | st.integers(-50, 50),
    days=st.none() | st.integers(1, 50),
    semicolons=st.booleans(),
)
def test_a_class_has_exactly_the_price_that_is_listed_for_the_day_and_no_other(
    listed: dict[str, Decimal | str], from_day: int | None, days: int | None, semicolons: bool
) -> None:
    since = None if from_day is None else AUTUMN.date() + timedelta(days=from_day)
    until = None if days is None else (since or AUTUMN.date() - timedelta(days=25)) + timedelta(days=days - 1)
    lines = [
        [name, "GB" if name == "egress" else "hour", "EUR", str(rate), str(since or ""), str(until or ""), "list"]
        for name, rate in listed.items()
    ]
    text = HEAD + "".join(",".join(line) + "\n" for line in lines)
    if semicolons:
        text = text.replace(",", ";").replace(".", ",")
    found = read_prices(text.encode())
    assert not found.problems
    section = cost_section(found.rows, "x", AUTUMN)
    today = (since is None or since <= AUTUMN.date()) and (until is None or AUTUMN.date() <= until)
    expected = {
        name: Decimal(0) if rate == "prepaid" else rate for name, rate in listed.items() if today and rate != "unknown"
    }
    egress = {"egress": section.egress.price} if section.egress is not None else {}
    assert {name: row.price for name, row in section.prices.items()} | egress == expected
    assert set(section.unknown) == set(listed) - set(expected)


@given(st.binary(max_size=300) | st.text(alphabet='ab,;\t"\n\r#0.5€', max_size=200).map(lambda t: (HEAD + t).encode()))
def test_whatever_is_in_a_file_it_is_read_or_refused(data: bytes) -> None:
    found = read_prices(data)
    assert all(problem.message for problem in found.problems)
    assert all(row.line > 1 for row in found.rows)


def test_where_a_price_comes_from_is_told_with_the_cost() -> None:
    environment = an_environment(cost={"source": "list of 2026-07-01"})
    found = Cost().measure(an_operation().requirements, environment, NOTHING_OBSERVED)
    assert found.source == "2 of cpu-general, 0.05 EUR an hour (list of 2026-07-01), contract version 1"
