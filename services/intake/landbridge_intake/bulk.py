"""Several submissions in one request: a list of items, JSON lines, or documents separated by `---`."""

from dataclasses import dataclass
from typing import Any

import msgspec

from landbridge.domain.documents.limits import MAX_DOCUMENTS, MAX_STREAM_BYTES
from landbridge.domain.documents.text import split
from landbridge.domain.errors import Problem
from landbridge.runtime.problems import ProblemError
from landbridge_intake.answers import refusal


@dataclass(frozen=True, slots=True)
class Item:
    """One document as sent, and its key where one was given."""

    body: bytes
    key: str = ""


class _Row(msgspec.Struct, rename="camel"):
    """`document` stays raw: the bytes that were sent are the bytes that are kept."""

    document: msgspec.Raw
    idempotency_key: str = ""


class _Rows(msgspec.Struct):
    items: list[_Row]


_ROWS: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_Rows)
_TEXT: msgspec.json.Decoder[Any] = msgspec.json.Decoder(str)


def read_items(body: bytes, content_type: str, key: str) -> list[Item]:
    """Return the items of a bulk request; `key` is the request's own, numbered for items that name none.

    Raises ProblemError for a body that is no list of documents.
    """
    if len(body) > MAX_STREAM_BYTES:
        raise ProblemError(
            413, "Too large", f"expected at most {MAX_STREAM_BYTES // 2**20} MiB, found {len(body)} bytes"
        )
    start = body.lstrip()[:1]
    if "ndjson" in content_type or "jsonl" in content_type or "json-seq" in content_type:
        items = _lines(body)
    elif start == b"{" and "yaml" not in content_type:
        items = _items(body)
    else:
        items = _documents(body)
    if not items:
        raise ProblemError(
            422, "Refused", 'expected {"items": [{"document": ...}]}, JSON lines or YAML documents, found none'
        )
    if len(items) > MAX_DOCUMENTS:
        raise ProblemError(413, "Too large", f"expected at most {MAX_DOCUMENTS} documents, found {len(items)}")
    if not key:
        return items
    return [Item(item.body, item.key or f"{key}/{number}") for number, item in enumerate(items)]


def document_bytes(raw: msgspec.Raw) -> bytes:
    """Return the bytes of a document inside JSON: a text is taken as the document, anything else as it stands.

    Raises ValueError for a text that is none.
    """
    body = bytes(raw)
    return bytes(_TEXT.decode(body).encode()) if body[:1] == b'"' else body


def _items(body: bytes) -> list[Item]:
    try:
        rows = _ROWS.decode(body).items
        return [Item(document_bytes(row.document), row.idempotency_key) for row in rows]
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        lines = _lines(body)
        # A stream of JSON documents may come without its own content type.
        if len(lines) > 1 and all(line.body.startswith(b"{") for line in lines):
            return lines
        problem = Problem(
            "", "not-a-list", f"not a list of submissions: {error}", 'send {"items": [{"document": ...}]}'
        )
        raise refusal([problem]) from error


def _lines(body: bytes) -> list[Item]:
    return [Item(line.strip(b"\x1e \t\r")) for line in body.split(b"\n") if line.strip(b"\x1e \t\r")]


def _documents(body: bytes) -> list[Item]:
    parts = split(body)
    if isinstance(parts, Problem):
        raise refusal([parts])
    return [Item(part.text.encode()) for part in parts]
