"""Submissions as CloudEvents over HTTP: binary, structured, and batches of structured ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from cloudevents.core.bindings.http import HTTPMessage, from_binary_event, from_structured_event
from cloudevents.core.exceptions import BaseCloudEventException

from landbridge.domain.documents.limits import MAX_DOCUMENTS
from landbridge.domain.errors import Problem
from landbridge.runtime.problems import ProblemError
from landbridge_intake.answers import refusal
from landbridge_intake.bulk import document_bytes

BATCH: Final = "application/cloudevents-batch+json"
STRUCTURED: Final = "application/cloudevents+json"
_UNUSABLE: Final = (BaseCloudEventException, ValueError, TypeError, KeyError, AttributeError, RecursionError)


class _Data(msgspec.Struct):
    """The data of a structured event, untouched."""

    data: msgspec.Raw = msgspec.Raw(b"")
    data_base64: bytes | None = None


_DATA: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_Data)
_LIST: msgspec.json.Decoder[Any] = msgspec.json.Decoder(list[msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Submitted:
    """What an event holds for us."""

    id: str
    source: str
    body: bytes
    traceparent: str = ""


def read_events(headers: Mapping[str, str], body: bytes) -> list[Submitted]:
    """Return the events of a request. Raises ProblemError 422 for what is no CloudEvent, 415 for another type."""
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == BATCH:
        return _batch(body)
    if content_type == STRUCTURED:
        return [_structured(body)]
    if content_type.startswith("application/cloudevents"):
        raise ProblemError(415, "Unsupported", f"expected {STRUCTURED} or {BATCH}, found {content_type}")
    return [_binary(headers, body)]


def is_batch(headers: Mapping[str, str]) -> bool:
    """Tell whether a request holds a list of events."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == BATCH


def _binary(headers: Mapping[str, str], body: bytes) -> Submitted:
    attributes = {name: value for name, value in headers.items() if name.lower().startswith("ce-")}
    try:
        event = from_binary_event(HTTPMessage(attributes, b""))  # the body is ours to read, whatever its type
    except _UNUSABLE as error:
        raise _no_event(error) from error
    return _submitted(event, body)


def _structured(body: bytes, where: str = "") -> Submitted:
    try:
        event = from_structured_event(HTTPMessage({"content-type": STRUCTURED}, body))
        data = _DATA.decode(body)
        raw = data.data_base64 if data.data_base64 is not None else document_bytes(data.data)
    except (*_UNUSABLE, msgspec.MsgspecError) as error:
        raise _no_event(error, where) from error
    return _submitted(event, raw)


def _batch(body: bytes) -> list[Submitted]:
    try:
        parts = _LIST.decode(body)
    except msgspec.MsgspecError as error:
        raise _no_event(error) from error
    if len(parts) > MAX_DOCUMENTS:
        raise ProblemError(413, "Too large", f"expected at most {MAX_DOCUMENTS} events, found {len(parts)}")
    return [_structured(bytes(part), f"[{number}]") for number, part in enumerate(parts)]


def _submitted(event: Any, body: bytes) -> Submitted:
    return Submitted(event.get_id(), event.get_source(), body, str(event.get_extension("traceparent") or ""))


def _no_event(error: BaseException, where: str = "") -> ProblemError:
    reasons = getattr(error, "errors", None)
    told = ", ".join(sorted(reasons)) if isinstance(reasons, dict) else str(error)[:200]
    message = f"not a CloudEvent: {told or type(error).__name__}"
    hint = "send id, source, type and specversion 1.0, in ce- headers or in the body"
    return refusal([Problem(where, "not-a-cloud-event", message, hint)])
