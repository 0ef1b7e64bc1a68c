"""Whatever is thrown at an importer: it answers, soon, and accounts for every leaf."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.domain.documents import Refusal
from landbridge.domain.documents.limits import MAX_DOCUMENT_BYTES, MAX_NODES
from landbridge.domain.documents.places import path_text
from landbridge.domain.importing import FORMATS, Imported, import_declarations
from landbridge.domain.importing.leaves import below, leaves
from support.importing import declarations

ALL = list(declarations())
# Words that the importers look for, so that shapes are met and not only strangers.
WORDS = sorted(
    {str(part) for each in ALL for mapped in each.imported().mapped for part in mapped.source if isinstance(part, str)}
    | {str(part) for each in ALL for left in each.imported().unmapped for part in left.source if isinstance(part, str)}
)
SCALARS = (
    st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "a", "H100:8", "4+", "16GB..80GB", "s3://b/c", "{{ lr }}", "${{ secrets.x }}", "a:b", "'"])
    | st.text(max_size=12)
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=20,
)


def unaccounted(value: object, found: Imported) -> list[str]:
    told = [each.source for each in found.mapped] + [each.source for each in found.unmapped]
    return [path_text(leaf) for leaf in leaves(value) if not any(below(leaf, path) for path in told)]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FORMATS)), st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=8))
def test_every_leaf_of_any_document_is_accounted_for(name: str, value: dict[str, Any]) -> None:
    (found,) = import_declarations(json.dumps(value).encode(), name)

    if isinstance(found, Imported):
        assert unaccounted(value, found) == []
    else:
        assert found.problems


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(ALL), st.data())
def test_every_leaf_of_a_damaged_declaration_is_accounted_for(declaration: Any, data: st.DataObject) -> None:
    import yaml

    value = yaml.safe_load(declaration.path.read_text())
    for _ in range(data.draw(st.integers(1, 4))):
        paths = [path for path in leaves(value) if path]
        path = data.draw(st.sampled_from(paths))
        place: Any = value
        path = path[: data.draw(st.integers(1, len(path)))]
        for part in path[:-1]:
            place = place[part]
        place[path[-1]] = data.draw(VALUES)
    (found,) = import_declarations(json.dumps(value, default=str).encode(), declaration.format)

    if isinstance(found, Imported):
        assert unaccounted(json.loads(json.dumps(value, default=str)), found) == []


DEEP = b"run: x\na: " + b"[" * 60 + b"]" * 60
BAD = {
    "an alias": (b"a: &x {b: c}\nenvs: *x\nrun: x\n", "anchor"),
    "a merge key": (b"envs: {<<: {A: b}}\nrun: x\n", "alias"),
    "too deep": (DEEP, "too-deep"),
    "too large": (b"run: x\n# " + b"x" * (MAX_DOCUMENT_BYTES + 10), "too-large"),
    "too many values": (b"run: x\na: [" + b"1," * (MAX_NODES + 10) + b"1]", "too-many-nodes"),
    "no text": (b"\xff\xfe\x00", ""),
    "a list": (b"- run: x\n", "not-a-document"),
    "nothing": (b"", ""),
    "two keys": (b"run: x\nrun: y\n", "duplicate-key"),
    "a tag": (b"run: !!python/object/apply:os.system [ls]\n", "tag"),
}


@pytest.mark.parametrize("name", BAD)
def test_the_bounds_are_those_of_our_own_documents(name: str) -> None:
    body, code = BAD[name]
    for found in import_declarations(body, "skypilot"):
        assert isinstance(found, Refusal)
        assert found.problems
        if code:
            assert code in {problem.code for problem in found.problems}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("skypilot", {"run": "x", "envs": {f"V{i}": "s3://b" for i in range(4_900)}}),
        ("skypilot", {"run": "x", "file_mounts": {f"/a{i}/data": "s3://b/c" for i in range(4_900)}}),
        ("dstack", {"type": "task", "commands": ["$$" * 10] * 4_000}),
        ("dstack", {"type": "task", "volumes": ["x:/data"] * 4_000}),
        ("kubernetes-job", {"kind": "Job", "metadata": {"labels": {f"k{i}": "v" for i in range(4_900)}}}),
        ("polyaxon", {"kind": "component", "run": {"kind": "job", "container": {"args": ["{{ a }}" * 20] * 1_500}}}),
        ("polyaxon", {"kind": "operation", "params": {f"p{i}": 1 for i in range(4_900)}}),
        ("polyaxon", {"kind": "operation", "tags": [f"t{i}" for i in range(4_900)]}),
        ("polyaxon", {"kind": "component", "inputs": [{"name": f"i{i}", "type": "int", "x": 1} for i in range(1_200)]}),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_the_largest_document_is_answered_soon(name: str, value: dict[str, Any]) -> None:
    body = json.dumps(value).encode()
    names = {"s3://b": "b", "x": "x"}
    started = time.process_time()
    (found,) = import_declarations(body, name, names)

    assert time.process_time() - started < 3
    assert isinstance(found, Imported)
