"""Traces across messages: W3C trace context from each message to the events that it causes.

Without an OTLP endpoint nothing is recorded and the OpenTelemetry SDK is not even imported, but the context is still
carried on, so that one instrumented service sees the whole path. An operation without a context gets one derived from
its id: the trace of an operation can be found by its id alone.
"""

import os
import random
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from landbridge.bus import subjects
from landbridge.bus.envelope import Inbound, Outbound
from landbridge.runtime import names
from landbridge.runtime.ids import new_ids

_FLAGS_SAMPLED = "01"
_TRACE_ID = re.compile(r"[0-9a-f]{32}").fullmatch
_EXPORT_TIMEOUT_SECONDS = 5
# Span ids have to differ, not to be secret; a call of the system for each would cost a microsecond.
_SPAN_IDS = random.Random(secrets.randbits(128))  # noqa: S311


os.register_at_fork(after_in_child=lambda: _SPAN_IDS.seed(secrets.randbits(128)))


def mint(about: str = "") -> str:
    """Return a new traceparent; its trace id is the operation's id where `about` is one."""
    trace = about.replace("-", "")
    if _TRACE_ID(trace) is None:
        trace = secrets.token_hex(16)
    return f"00-{trace}-{_SPAN_IDS.getrandbits(64) or 1:016x}-{_FLAGS_SAMPLED}"


def is_traceparent(text: str) -> bool:
    """Tell whether `text` is a version 00 traceparent with non-zero ids."""
    parts = text.split("-")
    if len(parts) != 4 or [len(part) for part in parts] != [2, 32, 16, 2] or parts[0] == "ff":
        return False
    hexadecimal = all(c in "0123456789abcdef" for c in "".join(parts))
    return hexadecimal and parts[1] != "0" * 32 and parts[2] != "0" * 16


def from_headers(headers: Mapping[str, str]) -> str:
    """Return the caller's traceparent from HTTP headers, or an empty text."""
    found = headers.get("traceparent", "")
    return found if is_traceparent(found) else ""


class Spans:
    """The spans of one batch while it is handled."""

    __slots__ = ("_open",)

    def __init__(self, opened: "Sequence[Any]") -> None:
        self._open = opened

    def end(self, error: BaseException | None = None) -> None:
        """Close all spans, with the error if there was one."""
        for span in self._open:
            if error is not None:
                span.record_exception(error)
                span.set_attribute(names.ATTRIBUTE_ERROR, type(error).__name__)
            span.end()


def traceparent_of(span: Any) -> str:
    context = span.get_span_context()
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{int(context.trace_flags):02x}"


class Telemetry:
    """One per process. `enabled` is False without an endpoint; every method is then a cheap no-op."""

    def __init__(self, service: str, *, endpoint: str = "", instance: str = "", ratio: float = 1.0) -> None:
        self.enabled = bool(endpoint)
        self.service = service
        self._provider: Any = None
        self._tracer: Any = None
        if endpoint:
            self._start(endpoint, instance, ratio)

    def _start(self, endpoint: str, instance: str, ratio: float) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

        resource = Resource.create(
            {
                "service.name": f"landbridge-{self.service}",
                "service.namespace": "landbridge",
                "service.instance.id": instance or secrets.token_hex(6),
            }
        )
        self._provider = TracerProvider(resource=resource, sampler=ParentBased(TraceIdRatioBased(ratio)))
        url = endpoint if endpoint.endswith("/v1/traces") else endpoint.rstrip("/") + "/v1/traces"
        exporter = OTLPSpanExporter(endpoint=url, timeout=_EXPORT_TIMEOUT_SECONDS)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("landbridge")

    def use_provider(self, provider: Any) -> None:
        """Record into `provider` (tests)."""
        self._provider, self._tracer, self.enabled = provider, provider.get_tracer("landbridge"), True

    def begin(self, batch: Sequence[Inbound], consumer: str) -> tuple[Spans | None, Sequence[Inbound]]:
        """Open one span for each message of a batch; return them and the batch with the spans' context as its own.

        Returns None and the batch as it is when nothing is recorded.
        """
        if self._tracer is None:
            return None, batch
        from opentelemetry.trace import SpanKind

        now = time.time_ns()
        opened, inside = [], []
        for message in batch:
            template = subjects.template(message.subject)
            span = self._tracer.start_span(
                names.SPAN_PROCESS.format(template=template),
                context=_parent(message.traceparent),
                kind=SpanKind.CONSUMER,
                attributes=_attributes_of(message, template, consumer, len(batch)),
                start_time=now,
            )
            opened.append(span)
            inside.append(msgspec.structs.replace(message, traceparent=traceparent_of(span)))
        return Spans(opened), inside

    def serve(self, method: str, traceparent: str) -> Any:
        """Open the span of an HTTP request below its caller's context; None when nothing is recorded."""
        if self._tracer is None:
            return None
        from opentelemetry.trace import SpanKind

        attributes = {names.ATTRIBUTE_HTTP_METHOD: method}
        return self._tracer.start_span(
            method, context=_parent(traceparent), kind=SpanKind.SERVER, attributes=attributes
        )

    def shutdown(self) -> None:
        """Send what is left and stop."""
        if self._provider is not None:
            self._provider.shutdown()


def end_served(span: Any, method: str, route: str, status: int) -> None:
    """Close the span of a request, named after its route's template."""
    span.update_name(f"{method} {route}")
    span.set_attribute(names.ATTRIBUTE_HTTP_ROUTE, route)
    span.set_attribute(names.ATTRIBUTE_HTTP_STATUS, status)
    span.end()


def _attributes_of(message: Inbound, template: str, consumer: str, batch: int) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        names.ATTRIBUTE_SYSTEM: names.SYSTEM_NATS,
        names.ATTRIBUTE_OPERATION_TYPE: "process",
        names.ATTRIBUTE_OPERATION_NAME: "process",
        names.ATTRIBUTE_TEMPLATE: template,
        names.ATTRIBUTE_GROUP: consumer,
        names.ATTRIBUTE_MESSAGE_ID: message.id,
        names.ATTRIBUTE_EVENT_TYPE: message.type,
        names.ATTRIBUTE_EVENT_SOURCE: message.source,
        names.ATTRIBUTE_BATCH: batch,
    }
    named = {
        names.ATTRIBUTE_OPERATION: message.about,
        names.ATTRIBUTE_PROJECT: subjects.project_of(message.subject),
        names.ATTRIBUTE_ENVIRONMENT: subjects.environment_of(message.subject),
    }
    return attributes | {name: value for name, value in named.items() if value and value != subjects.NO_PROJECT}


def _parent(traceparent: str) -> Any:
    from opentelemetry import trace

    if not is_traceparent(traceparent):
        return None
    _, trace_id, span_id, flags = traceparent.split("-")
    parent = trace.SpanContext(int(trace_id, 16), int(span_id, 16), True, trace.TraceFlags(int(flags, 16)))
    return trace.set_span_in_context(trace.NonRecordingSpan(parent))


def stamp(events: Sequence[Outbound], batch: Sequence[Inbound]) -> list[Outbound]:
    """Give ids and trace context to what a handler returned.

    The context is that of the message about the same operation, else of the batch's only message, else a new one.
    """
    if not events:
        return []
    inherited = {m.about: m.traceparent for m in batch if m.about and m.traceparent}
    lone = batch[0].traceparent if len(batch) == 1 else ""
    stamped: list[Outbound] = []
    for event, fresh in zip(events, new_ids(len(events)), strict=True):
        trace = event.traceparent
        if not trace:
            about = event.about
            trace = inherited.get(about, "") or lone or mint(about)
        stamped.append(
            Outbound(
                event.subject,
                event.type,
                event.body,
                event.about,
                event.id or fresh,
                trace,
                event.time,
                event.source,
                event.extra,
            )
        )
    return stamped
