import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.bus.envelope import (
    Outbound,
    decode,
    decode_raw,
    decode_value,
    encode_headers,
    encode_value,
    event_type,
    pending_of,
)
from landbridge.bus.errors import EnvelopeError

ACCEPTED = event_type("operation", "OperationAccepted")


def parsed(block: str) -> dict[str, str]:
    first, *lines = block.split("\r\n")
    assert first == "NATS/1.0"
    return dict(line.split(": ", 1) for line in lines if line)


def test_an_event_carries_the_cloudevents_headers() -> None:
    message = Outbound("lb.v1.operation.accepted.p", ACCEPTED, b"{}", "op-1", "id-1", "00-a-b-01", "2026-11-30T00:00Z")
    assert parsed(encode_headers(message, "/services/intake/1")) == {
        "ce-specversion": "1.0",
        "ce-id": "id-1",
        "ce-source": "/services/intake/1",
        "ce-type": "io.landbridge.operation.v1.OperationAccepted",
        "ce-subject": "op-1",
        "ce-time": "2026-11-30T00:00Z",
        "ce-datacontenttype": "application/json",
        "ce-dataschema": "urn:landbridge:schema:io.landbridge.operation.v1.OperationAccepted",
        "traceparent": "00-a-b-01",
    }


def test_an_event_without_id_gets_one_when_it_is_encoded() -> None:
    first, second = (parsed(encode_headers(Outbound("s", "t", b""), "/s"))["ce-id"] for _ in range(2))
    assert first < second


def test_header_values_are_encoded_as_cloudevents_asks() -> None:
    assert encode_value("Euro € 😀") == "Euro%20%E2%82%AC%20%F0%9F%98%80"
    assert encode_value('a"b%c') == "a%22b%25c"
    assert encode_value("/services/x?a=1&b=~!#") == "/services/x?a=1&b=~!#"
    assert encode_value("a\r\nce-id: evil") == "a%0D%0Ace-id:%20evil"


@given(st.text())
def test_any_text_survives_a_header(value: str) -> None:
    encoded = encode_value(value)
    assert encoded.isascii()
    assert not set(encoded) & set(' "\r\n')
    assert decode_value(encoded) == value


@pytest.mark.parametrize("bad", ["%C0%80", "%ED%A0%80", "%FF", "a�"])
def test_header_bytes_that_are_not_utf8_are_refused(bad: str) -> None:
    with pytest.raises(EnvelopeError):
        decode_value(bad)


@given(
    about=st.text(max_size=40),
    source=st.text(min_size=1, max_size=40),
    identifier=st.uuids().map(str),
    body=st.binary(),
)
def test_binary_mode_round_trips(about: str, source: str, identifier: str, body: bytes) -> None:
    message = Outbound("lb.v1.submit.p", ACCEPTED, body, about, identifier)
    found = decode(message.subject, parsed(encode_headers(message, source)), body)
    assert (found.id, found.source, found.type, found.about, found.body, found.problem) == (
        identifier,
        source,
        ACCEPTED,
        about,
        body,
        "",
    )


@given(
    about=st.text(max_size=20),
    source=st.text(min_size=1, max_size=20),
    kind=st.sampled_from([ACCEPTED, "foreign.type", "with space"]),
    trace=st.sampled_from(["", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"]),
    extra=st.sampled_from([(), (("lb-error", "no € here"),)]),
    time=st.sampled_from(["", "2026-11-30T00:00:00Z"]),
)
def test_raw_blocks_are_read_as_parsed_headers_are(
    about: str, source: str, kind: str, trace: str, extra: tuple[tuple[str, str], ...], time: str
) -> None:
    message = Outbound("s.t", kind, b"body", about, "id-1", trace, time, extra=extra)
    block = encode_headers(message, source) + "Nats-Batch-Id: x\r\nNats-Batch-Sequence: 1\r\n\r\n"
    reply = "$JS.ACK.OPERATIONS.lineage.3.42.7.1796035474265192121.9"
    raw = decode_raw(b"s.t", reply.encode(), b"body", block.encode())
    slow = decode("s.t", parsed(block.rstrip()), b"body", reply)
    assert dict(raw.headers) == dict(slow.headers)
    assert msgspec.structs.replace(raw, headers={}) == msgspec.structs.replace(slow, headers={})
    assert (raw.about, raw.source, raw.stream_sequence, raw.deliveries, raw.problem) == (about, source, 42, 3, "")


@given(st.binary(max_size=200))
def test_reading_raw_blocks_never_raises(block: bytes) -> None:
    assert decode_raw(b"s", b"", b"", b"NATS/1.0\r\n" + block).subject == "s"


def test_header_names_of_foreign_senders_may_be_in_any_case() -> None:
    found = decode("s", {"Ce-Id": "1", "CE-SOURCE": "/a", "Ce-Type": "t"}, b"x")
    assert (found.id, found.source, found.type, found.problem) == ("1", "/a", "t", "")


def test_empty_attributes_are_missing_attributes() -> None:
    assert "ce-id" in decode("s", {"ce-id": "", "ce-source": "/a", "ce-type": "t"}, b"").problem


def test_a_message_without_envelope_is_told_as_a_problem_not_raised() -> None:
    found = decode("s", {"ce-id": "1"}, b"x", "$JS.ACK.S.c.2.77.3.4.5")
    assert "ce-source" in found.problem
    assert "ce-type" in found.problem
    assert (found.stream_sequence, found.deliveries, found.body) == (77, 2, b"x")
    assert found.id == "unreadable-77"


def test_structured_mode_keeps_the_data_as_it_was_sent() -> None:
    body = b'{"specversion":"1.0","id":"1","source":"/a","type":"t","subject":"s1","data": {"b" : 1.0, "a":[ ]}}'
    found = decode("s", {"Content-Type": "Application/CloudEvents+json; charset=utf-8"}, body)
    assert (found.id, found.source, found.type, found.about) == ("1", "/a", "t", "s1")
    assert found.body == b'{"b" : 1.0, "a":[ ]}'


def test_structured_mode_takes_binary_data() -> None:
    event = {
        "specversion": "1.0",
        "id": "1",
        "source": "/a",
        "type": "t",
        "data_base64": base64.b64encode(b"\x00\xff").decode(),
    }
    assert decode("s", {"content-type": "application/cloudevents+json"}, msgspec.json.encode(event)).body == b"\x00\xff"


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("application/cloudevents+json", b"{"),
        ("application/cloudevents+json", b'{"id":"1"}'),
        ("application/cloudevents+json", b'{"specversion":"1.0","id":"","source":"/a","type":"t"}'),
        ("application/cloudevents-batch+json", b"[]"),
        ("application/cloudevents+avro", b""),
    ],
)
def test_unusable_structured_events_are_problems(content_type: str, body: bytes) -> None:
    assert decode("s", {"content-type": content_type}, body).problem


ACKS = st.lists(st.sampled_from(["$JS", "ACK", "1", "x", ""]), max_size=13).map(".".join)


@given(st.dictionaries(st.text(max_size=12), st.text(max_size=30), max_size=6), st.binary(max_size=60), ACKS)
def test_decoding_never_raises(headers: dict[str, str], body: bytes, reply: str) -> None:
    decode("s", headers, body, reply)


def test_delivery_is_read_from_both_forms_of_the_acknowledgement_subject() -> None:
    headers = {"ce-id": "1", "ce-source": "/a", "ce-type": "t"}
    plain = "$JS.ACK.OPERATIONS.lineage.3.42.7.1796035474265192121.9"
    domain = "$JS.ACK.hub.ACCHASH.OPERATIONS.lineage.3.42.7.1796035474265192121.9.rnd"
    for reply in (plain, domain):
        found = decode("s", headers, b"", reply)
        assert (found.stream_sequence, found.deliveries, pending_of(reply)) == (42, 3, 9)


def test_republished_events_keep_their_source_and_extra_headers_are_safe() -> None:
    message = Outbound("s", "t", b"", source="/other", extra=(("lb-error", "bad\r\nvalue"),))
    found = parsed(encode_headers(message, "/mine"))
    assert found["ce-source"] == "/other"
    assert found["lb-error"] == "bad%0D%0Avalue"
