"""CloudEvents 1.0 over NATS: binary mode for what we write, binary and structured mode for what we read.

Values of `ce-` headers are percent-encoded where they hold a space, a double quote, a percent sign or anything outside
U+0021..U+007E; decoders refuse bytes that are not UTF-8. Encoding is on the hot path: the constant part of a header
block is built once per (type, source) and the rest is one join.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote_from_bytes

import msgspec

from landbridge.bus.client import parse_headers
from landbridge.bus.errors import EnvelopeError
from landbridge.bus.ids import new_event_id

CRLF: Final = "\r\n"
VERSION_LINE: Final = "NATS/1.0\r\n"
STRUCTURED: Final = "application/cloudevents"
SCHEMA_PREFIX: Final = "urn:landbridge:schema:"
_PLAIN = re.compile(r"[!#$&-~]*")  # U+0021..7E without the double quote (22) and the percent sign (25)
_SAFE: Final = "".join(chr(c) for c in range(0x21, 0x7F) if chr(c) not in '"%')
_PERCENT = re.compile(rb"%([0-9A-Fa-f]{2})")
_TYPE_NAMESPACE: Final = "io.landbridge."


@dataclass(frozen=True, slots=True)
class Outbound:
    """One event to publish. `id` is minted by the message loop (or at publishing) if it is empty."""

    subject: str
    type: str
    body: bytes
    about: str = ""  # ce-subject: the operation id
    id: str = ""
    traceparent: str = ""
    time: str = ""  # RFC 3339
    source: str = ""  # set only to republish another's event; else the publisher's own
    extra: tuple[tuple[str, str], ...] = ()  # further headers, already safe for the wire, e.g. of a dead letter


class Inbound(msgspec.Struct, frozen=True):
    """One message as received. `problem` says why the envelope is unusable; the message is then poison."""

    subject: str
    id: str
    source: str
    type: str
    about: str
    traceparent: str
    body: bytes
    stream_sequence: int = 0
    deliveries: int = 1
    headers: Mapping[str, str] = {}
    reply: str = ""
    problem: str = ""


def event_type(package: str, name: str) -> str:
    """`io.landbridge.<package>.v1.<Name>`, the `ce-type` of a message of ours."""
    return f"{_TYPE_NAMESPACE}{package}.v1.{name}"


def encode_value(value: str) -> str:
    """Percent-encode a header value where CloudEvents asks for it; plain text is returned as it is."""
    if _PLAIN.fullmatch(value):
        return value
    return quote_from_bytes(value.encode(), safe=_SAFE)


def decode_value(value: str) -> str:
    """Undo `encode_value`. Raises EnvelopeError for bytes that are not UTF-8."""
    if "%" not in value:
        if "�" in value:
            raise EnvelopeError("a ce- header is not valid UTF-8")
        return value
    raw = _PERCENT.sub(lambda m: bytes((int(m[1], 16),)), value.encode())
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise EnvelopeError(f"a ce- header is not valid UTF-8: {value!r}") from error


@lru_cache(maxsize=4096)
def _constant_part(event: str, source: str) -> str:
    schema = f"ce-dataschema: {SCHEMA_PREFIX}{encode_value(event)}{CRLF}" if event.startswith(_TYPE_NAMESPACE) else ""
    return (
        f"{VERSION_LINE}ce-specversion: 1.0{CRLF}ce-type: {encode_value(event)}{CRLF}ce-source: {encode_value(source)}"
        f"{CRLF}ce-datacontenttype: application/json{CRLF}{schema}"
    )


def encode_headers(message: Outbound, source: str) -> str:
    """Return the header block without its final empty line, so that a publisher can add broker headers."""
    text = f"{_constant_part(message.type, message.source or source)}ce-id: {message.id or new_event_id()}{CRLF}"
    if message.about:
        text += f"ce-subject: {encode_value(message.about)}{CRLF}"
    if message.traceparent:
        text += f"traceparent: {encode_value(message.traceparent)}{CRLF}"
    if message.time:
        text += f"ce-time: {encode_value(message.time)}{CRLF}"
    for name, value in message.extra:
        text += f"{encode_value(name)}: {encode_value(value)}{CRLF}"
    return text


# Header blocks as we write them; anything else is read header by header.
_OURS = re.compile(
    rb"NATS/1\.0\r\nce-specversion: 1\.0\r\nce-type: ([!-$&-~]+)\r\nce-source: ([!-$&-~]+)\r\n"
    rb"ce-datacontenttype: application/json\r\n(?:ce-dataschema: [!-~]+\r\n)?ce-id: ([!-$&-~]+)\r\n"
    rb"(?:ce-subject: ([!-$&-~]*)\r\n)?(?:traceparent: ([!-~]*)\r\n)?"
    rb"(?!ce-subject:|traceparent:)"  # there, but not in plain text
)


def decode_raw(subject: bytes, reply: bytes, body: bytes, block: bytes) -> Inbound:
    """Read one message as it came from the connection; never raises, like `decode`."""
    ours = _OURS.match(block)
    if ours is None:
        return decode(subject.decode(), parse_headers(block), body, reply.decode())
    kind, source, identifier, about, traceparent = ours.groups(b"")
    acknowledge = reply.decode()
    sequence, deliveries = _delivery(acknowledge)
    return Inbound(
        subject.decode(),
        identifier.decode(),
        source.decode(),
        kind.decode(),
        about.decode(),
        traceparent.decode(),
        body,
        sequence,
        deliveries,
        LazyHeaders(block),
        acknowledge,
    )


class LazyHeaders(Mapping[str, str]):
    """All headers of a message, read at first use: most readers need none but those of the envelope."""

    __slots__ = ("_block", "_found")

    def __init__(self, block: bytes) -> None:
        self._block = block
        self._found: dict[str, str] | None = None

    def _all(self) -> dict[str, str]:
        if self._found is None:
            self._found = parse_headers(self._block) or {}
        return self._found

    def __getitem__(self, name: str) -> str:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return f"LazyHeaders({self._all()!r})"


def decode(subject: str, headers: Mapping[str, str] | None, body: bytes, reply: str = "") -> Inbound:
    """Read one message; never raises: an unusable envelope is told by `Inbound.problem`."""
    found = headers or {}
    try:
        content_type = _header(found, "content-type")
        if content_type and content_type.lower().startswith(STRUCTURED):
            return _structured(subject, found, body, reply, content_type.lower())
        return _binary(subject, found, body, reply)
    except EnvelopeError as error:
        sequence, deliveries = _delivery(reply)
        fallback = f"unreadable-{sequence}"
        return Inbound(subject, fallback, "", "", "", "", body, sequence, deliveries, found, reply, str(error))


def _binary(subject: str, headers: Mapping[str, str], body: bytes, reply: str) -> Inbound:
    get = headers.get
    identifier, source, kind = get("ce-id"), get("ce-source"), get("ce-type")
    if not identifier or not source or not kind:
        headers = {name.lower(): value for name, value in headers.items()}  # header names ignore case
        get = headers.get
        identifier, source, kind = get("ce-id"), get("ce-source"), get("ce-type")
        missing = [name for name in ("ce-id", "ce-source", "ce-type") if not get(name)]
        if missing:
            raise EnvelopeError(f"not a CloudEvent: expected headers ce-id, ce-source, ce-type; found no {missing}")
    sequence, deliveries = _delivery(reply)
    return Inbound(
        subject,
        decode_value(identifier or ""),
        decode_value(source or ""),
        decode_value(kind or ""),
        decode_value(get("ce-subject", "")),
        get("traceparent", ""),
        body,
        sequence,
        deliveries,
        headers,
        reply,
    )


def _structured(subject: str, headers: Mapping[str, str], body: bytes, reply: str, content_type: str) -> Inbound:
    if content_type.startswith(f"{STRUCTURED}-batch") or "json" not in content_type:
        raise EnvelopeError(f"content type {content_type!r} is not supported: expected {STRUCTURED}+json, one event")
    try:
        event = _STRUCTURED_DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise EnvelopeError(f"not a structured CloudEvent: {error}") from error
    if not (event.id and event.source and event.type):
        raise EnvelopeError("not a structured CloudEvent: id, source and type must not be empty")
    sequence, deliveries = _delivery(reply)
    data = event.data_base64 if event.data_base64 is not None else bytes(event.data)
    trace = event.traceparent or headers.get("traceparent", "")
    return Inbound(
        subject, event.id, event.source, event.type, event.subject, trace, data, sequence, deliveries, headers, reply
    )


class _StructuredEvent(msgspec.Struct):
    """`data` stays raw, so that the bytes that were signed or hashed by the sender are the bytes we keep."""

    id: str
    source: str
    type: str
    specversion: str
    subject: str = ""
    traceparent: str = ""
    data: msgspec.Raw = msgspec.Raw(b"")
    data_base64: bytes | None = None


_STRUCTURED_DECODER: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_StructuredEvent)


def _header(headers: Mapping[str, str], name: str) -> str:
    """Return a header by its lower-case name. Ours are lower-case; only a foreign sender's block is searched."""
    value = headers.get(name)
    if value is not None or "ce-id" in headers:
        return value or ""
    return next((value for key, value in headers.items() if key.lower() == name), "")


def _delivery(reply: str) -> tuple[int, int]:
    """(stream sequence, delivery count) from an acknowledgement subject; (0, 1) if it is none."""
    parts = reply.split(".")
    count = len(parts)
    try:
        if count == 9:  # $JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<time>.<pending>
            return int(parts[5]), int(parts[4])
        if count in {11, 12}:  # the same behind <domain>.<account hash>
            return int(parts[7]), int(parts[6])
    except ValueError:
        pass  # not an acknowledgement subject
    return 0, 1


def pending_of(reply: str) -> int:
    """How many messages the consumer had left when it sent this one, from the acknowledgement subject."""
    parts = reply.split(".")
    last = {9: 8, 11: 10, 12: 10}.get(len(parts))
    return int(parts[last]) if last is not None else 0
