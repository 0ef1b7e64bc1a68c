"""Documents as users give them: a path, text, bytes or a mapping, to the bytes that are sent."""

import codecs
import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from landbridge.client.models import Source

JSON = "application/json"
YAML = "application/yaml"


def document_bytes(source: Source) -> bytes:
    """Return the bytes to send, as they are in a file or text; a mapping becomes JSON. Raises OSError for a path."""
    if isinstance(source, Path):
        return source.read_bytes()
    if isinstance(source, Mapping):
        return json.dumps(source, ensure_ascii=False).encode()
    return source.encode() if isinstance(source, str) else source


def content_type(body: bytes) -> str:
    return JSON if body.lstrip()[:1] in (b"{", b"[") else YAML


def stream(bodies: Sequence[bytes]) -> bytes:
    """Return documents as one text, separated by `---`; JSON is YAML."""
    return b"\n---\n".join(body.removeprefix(codecs.BOM_UTF8) for body in bodies)


def new_key() -> str:
    """Return a fresh idempotency key."""
    return uuid.uuid4().hex
