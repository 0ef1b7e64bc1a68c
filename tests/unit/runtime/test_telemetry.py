"""Trace context travels from message to event; without an endpoint nothing else happens."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from landbridge.bus.envelope import Inbound, Outbound
from landbridge.runtime.telemetry import Telemetry, from_headers, is_traceparent, mint, stamp

OPERATION = "7d2c1a50-0d2c-5a0e-9e7e-0f7f6f0d3b11"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def message(about: str = "", traceparent: str = "") -> Inbound:
    return Inbound("lb.v1.operation.accepted.p", "id", "/services/intake", "T", about, traceparent, b"{}")


def event(about: str = "", event_id: str = "", traceparent: str = "", time: str = "") -> Outbound:
    return Outbound("lb.v1.operation.decided.p", "T", b"{}", about, event_id, traceparent, time)


def test_the_trace_of_an_operation_without_context_is_found_by_its_id() -> None:
    minted = mint(OPERATION)
    assert is_traceparent(minted)
    assert minted.split("-")[1] == OPERATION.replace("-", "")
    assert is_traceparent(mint("not-an-id"))


def test_events_take_the_context_of_the_message_about_the_same_operation() -> None:
    stamped = stamp([event("b"), event("a")], [message("a", PARENT), message("b", mint())])
    assert stamped[1].traceparent == PARENT
    assert stamped[0].traceparent != PARENT


def test_an_event_about_nothing_takes_the_context_of_the_only_message() -> None:
    assert stamp([event()], [message("a", PARENT)])[0].traceparent == PARENT
    assert stamp([event()], [message("a", PARENT), message("b", PARENT)])[0].traceparent != PARENT


def test_ids_ascend_and_what_the_handler_set_is_kept() -> None:
    given = event("a", event_id="01900000-0000-7000-8000-000000000001", traceparent=PARENT, time="2026-01-01T00:00:00Z")
    stamped = stamp([event("a"), given, event("b")], [message("a")])
    assert stamped[1] == given
    assert stamped[0].id < stamped[2].id
    assert stamp([], [message()]) == []


@pytest.mark.parametrize(
    "text", ["", "x", PARENT.upper(), PARENT + "-00", PARENT.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32)]
)
def test_a_malformed_context_is_not_taken_over(text: str) -> None:
    assert not is_traceparent(text)
    assert from_headers({"traceparent": text}) == ""


def test_without_an_endpoint_no_span_is_made() -> None:
    telemetry = Telemetry("intake")
    assert not telemetry.enabled
    batch = [message()]
    assert telemetry.begin(batch, "intake") == (None, batch)
    assert telemetry.serve("GET", PARENT) is None
    telemetry.shutdown()


def test_spans_are_named_by_template_and_hang_together() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry("ranking")
    telemetry.use_provider(provider)
    batch = [message(OPERATION, PARENT)]
    spans, inside = telemetry.begin(batch, "operations/ranking")
    assert spans is not None
    [stamped] = stamp([event(OPERATION)], inside)
    spans.end()
    telemetry.shutdown()
    [span] = exporter.get_finished_spans()
    assert span.name == "process lb.v1.operation.accepted.{project}"
    assert span.context is not None
    assert span.parent is not None
    assert f"{span.context.trace_id:032x}" == PARENT.split("-")[1] == stamped.traceparent.split("-")[1]
    assert f"{span.parent.span_id:016x}" == PARENT.split("-")[2]
    assert f"{span.context.span_id:016x}" == stamped.traceparent.split("-")[2]
    assert span.attributes is not None
    assert span.attributes["landbridge.operation.id"] == OPERATION
    assert span.attributes["messaging.consumer.group.name"] == "operations/ranking"
