"""What requests hold: lists of documents, CloudEvents, and the memory of shapes that were read before."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.bus.envelope import Inbound
from landbridge.domain.documents import Catalogue, Document, read_document
from landbridge.runtime.problems import ProblemError
from landbridge_intake.bulk import read_items
from landbridge_intake.cloud_events import read_events
from landbridge_intake.prepare import Preparer, Ready, Unfit
from landbridge_intake.stream import submission_of
from unit.documents.documents import GOOD, a_document, as_json


def _value(base: str) -> dict[str, object]:
    read = read_document(as_json(GOOD[base]))
    assert isinstance(read, Document)
    return read.value


def _status(read: Callable[[], object]) -> int:
    """Return the status of the refusal, 0 if there is none."""
    try:
        read()
    except ProblemError as refused:
        return refused.status
    return 0


CATALOGUE = Catalogue({"retail-eu": _value("project")}, {"training": _value("queue")})


def test_documents_in_a_list_keep_their_bytes() -> None:
    body = b'{"items": [{"document":  {"b": 1,  "a": 2} , "idempotencyKey": "k"}, {"document": "kind: x\\n"}]}'
    items = read_items(body, "application/json", "")

    assert [(item.body, item.key) for item in items] == [(b'{"b": 1,  "a": 2}', "k"), (b"kind: x\n", "")]


def test_items_without_a_key_get_one_from_the_request() -> None:
    items = read_items(b'{"items": [{"document": {}}, {"document": {}, "idempotencyKey": "own"}]}', "", "k")

    assert [item.key for item in items] == ["k/0", "own"]


@pytest.mark.parametrize(
    "body",
    [b"", b"  ", b"{}", b'{"items": []}', b'{"items": 1}', b'{"items": [{}]}', b'{"items": [{"document"', b"# x"],
)
def test_what_is_no_list_is_refused(body: bytes) -> None:
    with pytest.raises(ProblemError) as refused:
        read_items(body, "application/json", "")
    assert refused.value.status == 422


def test_too_many_and_too_large_are_told_apart_from_wrong() -> None:
    many = b'{"items": [' + b",".join([b'{"document": {}}'] * 1001) + b"]}"
    for body in (many, b"x" * (9 * 1024 * 1024)):
        with pytest.raises(ProblemError) as refused:
            read_items(body, "", "")
        assert refused.value.status == 413


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["", "application/json", "application/x-ndjson", "application/yaml"]))
def test_any_body_is_a_list_or_a_refusal(body: bytes, content_type: str) -> None:
    assert _status(lambda: read_items(body, content_type, "k")) in {0, 413, 422}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["id", "source", "type", "specversion", "time", "data", "data_base64", "subject", "traceparent"]),
    JSON,
)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=100) | ATTRIBUTES.map(lambda value: json.dumps(value).encode()), st.booleans())
def test_any_structured_body_is_events_or_a_refusal(body: bytes, batch: bool) -> None:
    kind = "application/cloudevents-batch+json" if batch else "application/cloudevents+json"
    assert _status(lambda: read_events({"content-type": kind}, body)) in {0, 413, 415, 422}


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["ce-id", "ce-source", "ce-type", "ce-specversion", "ce-time"]), st.text(max_size=9)
    )
)
def test_any_headers_are_an_event_or_a_refusal(headers: dict[str, str]) -> None:
    assert _status(lambda: read_events(headers, b"{}")) in {0, 422}


def test_the_data_of_a_structured_event_keeps_its_bytes() -> None:
    body = b'{"specversion":"1.0","id":"1","source":"/a","type":"t","data": {"b" : 1, "a": 2}}'

    assert read_events({"content-type": "application/cloudevents+json"}, body)[0].body == b'{"b" : 1, "a": 2}'


def test_a_shape_is_read_once_and_rendered_once_a_catalogue() -> None:
    preparer = Preparer()
    body = as_json(GOOD["operation"])
    first = preparer.prepare(body, CATALOGUE, 1)

    assert isinstance(first, Ready)
    assert preparer.prepare(body, CATALOGUE, 1) is first
    assert (preparer.hits, preparer.misses) == (1, 1)
    assert isinstance(preparer.prepare(body, Catalogue(), 2), Unfit)
    assert preparer.prepare(body, CATALOGUE, 3) == first


def test_what_is_remembered_gives_the_same_as_reading_anew() -> None:
    warm = Preparer()
    bodies = [as_json(a_document(put={"spec.env": {"N": str(n % 3)}})) for n in range(9)] + [b"nonsense"] * 2
    assert [warm.prepare(body, CATALOGUE, 1) for body in bodies] == [
        Preparer().prepare(body, CATALOGUE, 1) for body in bodies
    ]


def test_the_memory_is_bounded() -> None:
    preparer = Preparer(entries=10)
    for number in range(50):
        preparer.prepare(b"kind: x%d" % number, CATALOGUE, 1)

    assert len(preparer._memory) == 10
    preparer.prepare(b"#" + b"x" * 70_000_000, CATALOGUE, 1)
    assert preparer._size < 64 * 1024 * 1024


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_source_and_id_of_a_message_can_be_stored_and_told(source: str, name: str) -> None:
    message = Inbound("lb.v1.submit.p", name, source, "t", "", "", b"{}", 1, 1, {}, "", "")
    found = submission_of(message)

    assert "\x00" not in found.source + found.key + found.submission
    (found.source + found.key).encode()
