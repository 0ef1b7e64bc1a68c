"""Whatever is sent, reading ends soon, in a document or in a refusal."""

import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from landbridge.domain.documents import Document, Refusal, read_document, read_documents
from unit.documents.documents import GOOD, as_json

LIMIT = 256 * 1024 - 16

HOSTILE: dict[str, bytes] = {
    "an alias bomb": b"a: &a [x,x,x,x,x,x,x,x,x]\n"
    + b"".join(b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n" % ((c, c) + (c - 1,) * 8) for c in range(98, 123)),
    "deep lists": b"[" * LIMIT,
    "deep maps": b'{"a":' * (LIMIT // 5),
    "deep blocks": b"- " * (LIMIT // 2),
    "a long list": b"a: [" + b"x," * (LIMIT // 2) + b"]",
    "a long JSON list": b'{"a":[' + b"0," * (LIMIT // 2 - 8) + b"0]}",
    "a million anchors": b"a: [" + b"&a b," * (LIMIT // 5) + b"]",
    "a million tags": b"a: [" + b"!!x b," * (LIMIT // 6) + b"]",
    "one key many times": b"a: 1\n" * (LIMIT // 5),
    "one JSON key many times": b"{" + b'"a":1,' * (LIMIT // 6 - 3) + b'"a":1}',
    "many unknown fields": b"".join(b"k%d: 1\n" % i for i in range(20_000)),
    "a long number": b"a: " + b"9" * LIMIT,
    "a long JSON number": b'{"a":' + b"9" * (LIMIT - 8) + b"}",
    "a long key": b"x" * LIMIT + b": 1",
    "a long text": b"a: " + b"x" * LIMIT,
    "many documents": b"---\na: 1\n" * (LIMIT // 9),
    "many markers": b"---\n" * (LIMIT // 4),
    "question marks": b"? " * (LIMIT // 2),
    "colons": b":" * LIMIT,
    "percent signs": b"%" * LIMIT,
    "comments": b"#" * LIMIT,
    "folded lines": b"a: >\n" + b" x\n\n" * (LIMIT // 4),
    "a hundred megabytes": b"a" * 100_000_000,
    "base64 runs": as_json({**GOOD["operation"], "spec": {"command": ["QVdT" * 12 + " "] * 4000}}),
    "percent runs": as_json({**GOOD["operation"], "spec": {"command": ["%41" * 80] * 900}}),
    "many urls": as_json({**GOOD["operation"], "spec": {"command": ["a://b:c" * 30] * 900}}),
    "assignments": as_json({**GOOD["operation"], "spec": {"command": ["password " * 30] * 900}}),
    "dotted names": as_json({**GOOD["operation"], "spec": {"command": ["a1." * 80] * 900}}),
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_input_is_refused_soon(name: str) -> None:
    times = []
    for _ in range(3):
        began = time.process_time()
        read = read_document(HOSTILE[name])
        times.append(time.process_time() - began)

    assert isinstance(read, (Document, Refusal))
    assert isinstance(read, Document) or len(read.problems) <= 101
    assert min(times) < 0.1, f"{min(times):.3f} s"


def _never_raises(body: bytes) -> None:
    for read in (read_document(body), *read_documents(body)):
        assert isinstance(read, (Document, Refusal))
        if isinstance(read, Refusal):
            assert read.problems
            assert read.text().encode()


@settings(max_examples=400, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    _never_raises(body)


@settings(max_examples=400, deadline=None)
@given(st.text(st.sampled_from("{}[]:,-&*!|>'\"%@`#? \n\tab01.~<=\\\u202e\x00e"), max_size=120))
def test_any_punctuation_is_read_or_refused(text: str) -> None:
    _never_raises(text.encode())


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
WORDS = [
    "name", "project", "type", "env", "command", "image", "inputs", "resources", "requests", "cpu", "lifecycle",
    "timeout", "disconnection", "policy", "acceptance", "metric", "presets", "accelerator", "count", "ports",
    "connection", "path", "checkpoints", "constraints", "deadline", "environments", "allow", "runtime", "classes",
    "patch", "operation", "parameters",
]  # fmt: skip
KEYS = st.text(max_size=8) | st.sampled_from(WORDS)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=25
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(GOOD)), st.dictionaries(KEYS, VALUES, max_size=5), st.booleans())
def test_any_spec_of_any_kind_is_read_or_refused(base: str, spec: dict[str, Any], in_yaml: bool) -> None:
    document = {**GOOD[base], "spec": spec}
    text = yaml.safe_dump(document, allow_unicode=True) if in_yaml else json.dumps(document)
    _never_raises(text.encode("utf-8", "surrogatepass"))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_document_with_one_byte_changed_is_read_or_refused(data: st.DataObject) -> None:
    body = bytearray(as_json(GOOD[data.draw(st.sampled_from(sorted(GOOD)))]))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    _never_raises(bytes(body))
