"""One text for one value: JSON with sorted keys and without spaces, the same on every machine."""

from hashlib import sha256

import msgspec

_ENCODER = msgspec.json.Encoder(order="sorted")


def canonical_json(value: object) -> bytes:
    """Return the canonical JSON of plain values. Raises ValueError for what JSON cannot say."""
    try:
        return _ENCODER.encode(value)
    except (TypeError, UnicodeEncodeError, msgspec.MsgspecError) as error:
        raise ValueError(f"not expressible as JSON: {error}") from error


def digest(value: object) -> str:
    """Return the SHA-256 of the canonical JSON, in hex."""
    return sha256(canonical_json(value)).hexdigest()
