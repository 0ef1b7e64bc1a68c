"""Our reading of headers against the stock client's."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client

from landbridge.bus.client import FastClient, parse_headers, parse_status

NAMES = st.text("abcdefghijklmnopqrstuvwxyz-ABC0123456789", min_size=1, max_size=12)
VALUES = st.text(
    st.characters(exclude_characters="\r\n", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), max_size=20
)


def block(headers: dict[str, str]) -> bytes:
    return b"NATS/1.0\r\n" + b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items()) + b"\r\n"


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=6))
def test_headers_are_read_as_the_stock_client_reads_them(headers: dict[str, str]) -> None:
    stock: Any = Client._parse_header_lines
    raw = block(headers)
    assert parse_headers(raw) == stock(raw[len(b"NATS/1.0\r\n") :]) == headers


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"NATS/1.0\r\n\r\n", None),
        (b"NATS/1.0\r\na:b\r\n\r\n", {"a": "b"}),
        (b"NATS/1.0\r\na:\t b \r\n\r\n", {"a": "b"}),
        (b"NATS/1.0\r\na: 1\r\na: 2\r\n\r\n", {"a": "2"}),
        (b"NATS/1.0\r\nnonsense\r\na: b:c\r\n\r\n", {"a": "b:c"}),
        (b"NATS/1.0\r\na: \xff\r\n\r\n", {"a": "\ufffd"}),
    ],
)
def test_unusual_blocks(raw: bytes, expected: dict[str, str] | None) -> None:
    assert parse_headers(raw) == expected


def test_a_status_line_is_told_apart_from_the_headers_behind_it() -> None:
    assert parse_status(b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 7\r\n\r\n") == (
        "408",
        "Request Timeout",
        {"Nats-Pending-Messages": "7"},
    )
    assert parse_status(b"NATS/1.0 503\r\n\r\n") == ("503", "", {})
    assert parse_status(b"NATS/1.0\r\na: b\r\n\r\n") == ("", "", {"a": "b"})
    assert parse_status(b"") == ("", "", {})


async def test_status_lines_are_read_by_the_stock_client() -> None:
    client = FastClient()
    raw = b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 7\r\n\r\n"
    found = await client._process_headers(raw)
    assert (found["Status"], found["Description"]) == ("408", "Request Timeout")
    assert found["Nats-Pending-Messages"] == "7"
    assert await client._process_headers(b"") is None
