"""What the generated models stand on: base classes, named formats and the types that differ from plain JSON.

Written by hand; everything else in this package is generated from `proto/` by `tools/generate_schema.py`.
"""

import base64
import binascii
import re
from datetime import UTC, date, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

_NUMBER = r"[0-9]+(\.[0-9]+)?"

# Named formats of the `rules` option. Each is an anchored regular expression in the dialect that Python, Rust and
# ECMAScript share, so that models, JSON Schema and editors agree.
FORMATS: dict[str, str] = {
    "quantity": rf"^{_NUMBER}(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$",
    "duration": r"^([0-9]+(ms|s|m|h|d|w))+$",
    "bandwidth": rf"^{_NUMBER}(k|M|G|T)?bit/s$",
    "percent": rf"^{_NUMBER}%$",
    "date": r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
    "name": r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
    "name-or-all": r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?|\*)$",
    "reference": r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(@[0-9]+)?$",
    "digest": r"^sha256:[0-9a-f]{64}$",
    "commit": r"^[0-9a-f]{40}([0-9a-f]{24})?$",
    "currency": r"^[A-Z]{3}$",
    "sha256": r"^[0-9a-f]{64}$",
    "variable": r"^[A-Za-z_][A-Za-z0-9_]*$",
}


class Document(BaseModel):
    """A part of a document that people write: immutable, camelCase outside, unknown fields are errors."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Closed(BaseModel):
    """A message that must be understood: immutable, camelCase outside, unknown fields are errors."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class Message(BaseModel):
    """A message that newer writers may extend: immutable, camelCase outside, unknown fields are ignored."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore", frozen=True)


def _bytes_from_json(value: Any) -> Any:
    """Decode base64 text (what JSON carries); leave bytes alone. Raises ValueError on anything that is not base64."""
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"expected base64 text: {error}") from error


def _bytes_to_json(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _number_to_text(value: Any) -> Any:
    """Accept `cpu: 8` and `cpu: 0.5` where a quantity is text; booleans are not numbers here."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    return f"{value:d}" if isinstance(value, int) else f"{value:.9f}".rstrip("0").rstrip(".")


def _date_to_text(value: Any) -> Any:
    """Accept the date that a YAML reader may have made of 2027-06-30."""
    return value.isoformat() if isinstance(value, date) and not isinstance(value, datetime) else value


def _real_date(value: str) -> str:
    date.fromisoformat(value)
    return value


def _moment_from_text(value: Any) -> Any:
    """Refuse numbers: a moment is RFC 3339 text with an offset."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not re.match(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}", value):
        raise ValueError("expected RFC 3339 text such as 2026-12-01T06:00:00Z")
    return value


def _moment_to_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        raise ValueError("expected an offset or Z at the end, found none")
    return value.astimezone(UTC)


Bytes = Annotated[
    bytes,
    BeforeValidator(_bytes_from_json),
    PlainSerializer(_bytes_to_json, when_used="json"),
    WithJsonSchema({"type": "string", "contentEncoding": "base64"}),
]
Moment = Annotated[datetime, BeforeValidator(_moment_from_text), AfterValidator(_moment_to_utc)]
Quantity = Annotated[str, Field(pattern=FORMATS["quantity"]), BeforeValidator(_number_to_text)]
Duration = Annotated[str, Field(pattern=FORMATS["duration"])]
Bandwidth = Annotated[str, Field(pattern=FORMATS["bandwidth"])]
Percent = Annotated[str, Field(pattern=FORMATS["percent"])]
Date = Annotated[str, Field(pattern=FORMATS["date"]), AfterValidator(_real_date), BeforeValidator(_date_to_text)]
Name = Annotated[str, Field(pattern=FORMATS["name"])]
NameOrAll = Annotated[str, Field(pattern=FORMATS["name-or-all"])]
Reference = Annotated[str, Field(pattern=FORMATS["reference"])]
Digest = Annotated[str, Field(pattern=FORMATS["digest"])]
Commit = Annotated[str, Field(pattern=FORMATS["commit"])]
Currency = Annotated[str, Field(pattern=FORMATS["currency"])]
Sha256 = Annotated[str, Field(pattern=FORMATS["sha256"])]
Variable = Annotated[str, Field(pattern=FORMATS["variable"])]
