"""Identifiers that are derived, never drawn: equal inputs give equal ids on every machine, for ever."""

from hashlib import sha256
from typing import Final
from uuid import UUID, uuid5

# Drawn once; changing it would give every operation another id.
NAMESPACE_LANDBRIDGE: Final = UUID("5f0c6b0e-6f0a-5d0e-9d0b-7a4c1b9c2e61")
SLOT_HASH_DIGITS: Final = 20
IDEMPOTENCY_KEY_MAX: Final = 512


def operation_id(project: str, idempotency_key: str) -> str:
    """Return the id of the operation that `idempotency_key` names in `project`.

    NUL separates the parts: neither may contain it, so no two pairs share a text.
    """
    if "\x00" in project or "\x00" in idempotency_key:
        raise ValueError("project and idempotency key must not contain NUL")
    return str(uuid5(NAMESPACE_LANDBRIDGE, f"{project}\x00{idempotency_key}"))


def slot_name(operation: str, generation: int, counter: int) -> str:
    """Return the fixed name of the slot of (operation, epoch): a DNS label of at most 63 characters."""
    digest = sha256(operation.encode()).hexdigest()[:SLOT_HASH_DIGITS]
    return f"op-{digest}-e{generation}-{counter}"


def sha256_hex(body: bytes) -> str:
    """Return the lower-case hexadecimal SHA-256 of `body`."""
    return sha256(body).hexdigest()


def content_id(kind: str, body: bytes) -> str:
    """Return a content-addressed id: `kind` keeps apart what may have equal bytes."""
    return sha256(kind.encode() + b"\x00" + body).hexdigest()[:32]


def cloud_event_key(source: str, event_id: str) -> str:
    """Return the idempotency key of a CloudEvent: source and id are unique together (CloudEvents 1.0, section 3.1)."""
    return f"{source}#{event_id}"
