"""What is answered from a template equals what reading and rendering say, whatever values come."""

import json
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from landbridge.domain.documents import Catalogue
from landbridge_intake.prepare import Preparer, Ready, Unfit, _long_way, _prepare
from landbridge_intake.templates import Templates

PROJECT = {"apiVersion": "landbridge/v1", "kind": "Project", "metadata": {"name": "p"}, "spec": {"defaultQueue": "q"}}
QUEUE = {"apiVersion": "landbridge/v1", "kind": "Queue", "metadata": {"name": "q"}, "spec": {"priority": 1}}
CATALOGUE = Catalogue({"p": PROJECT}, {"q": QUEUE})

NASTY = (
    "p4d.24xlarge", "n1-standard-8", "s3://bucket/x", "AKIAIOSFODNN7EXAMPLE", "hunter2", "$(LANDBRIDGE_INPUT_X)",
    "", " ", "é", '"', "\\", "a\\u0041", "\u202e", "x" * 200, "--password", "-p", "a=b", "token=abcdefgh1234",
    "cGFzc3dvcmQ9aHVudGVyMmh1bnRlcjI=", "https://u:pw@host/", "169.254.169.254", "2852039166", "%73%33%3a//b", "yes",
    "/data/in", "0.1", "42", "eu-de-1", "a b c", "arn:aws:iam::123456789012:role/x", "gpu_1x_a100", "{", "}",
    "[", ":", ",", "${Y}",
)  # fmt: skip
values = st.one_of(st.sampled_from(NASTY), st.text(max_size=40), st.from_regex(r"[a-z0-9._/-]{1,30}", fullmatch=True))
names = st.one_of(st.from_regex(r"[a-z][a-z0-9-]{0,20}", fullmatch=True), st.sampled_from(NASTY), st.text(max_size=10))
variables = st.sampled_from(("SHARD", "LEARNING_RATE", "DB_PASSWORD", "API_KEY", "TOKEN", "PATH_TO"))
flags = st.sampled_from(("--lr", "--password", "--api-key", "-v", "plain", "--token"))


def body(name: str, env: dict[str, str], args: list[str]) -> bytes:
    spec: dict[str, Any] = {
        "type": "job",
        "command": ["python", "train.py"],
        "args": args,
        "env": env,
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
        "lifecycle": {"expectedDuration": "1m", "timeout": "5m", "disconnection": {"policy": "continue"}},
    }
    metadata = {"name": name, "project": "p"}
    document = {"apiVersion": "landbridge/v1", "kind": "Operation", "metadata": metadata, "spec": spec}
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def long_way(text: bytes) -> Ready | Unfit:
    preparer = Preparer()
    from hashlib import sha256

    return _prepare(preparer.read(text), sha256(text).digest(), CATALOGUE)


@settings(max_examples=300, deadline=None)
@given(
    variables=st.lists(variables, unique=True, max_size=3),
    flag=flags,
    fillings=st.lists(st.tuples(names, st.lists(values, min_size=4, max_size=4)), min_size=4, max_size=6),
)
def test_templates_answer_as_reading_and_rendering_do(
    variables: list[str], flag: str, fillings: list[tuple[str, list[str]]]
) -> None:
    preparer = Preparer()

    def make(name: str, texts: list[str]) -> bytes:
        return body(name, dict(zip(variables, texts, strict=False)), [flag, texts[3], "end"])

    for name in ("first", "second", "third"):  # what is harmless is learnt from
        preparer.prepare(make(name, ["1", "2", "3", "4"]), CATALOGUE, 1)
    for name, texts in fillings:
        text = make(name, texts)
        assert preparer.prepare(text, CATALOGUE, 1) == long_way(text)
    text = make("last", ["7", "8", "9", "10"])
    event("from a template" if preparer._templates.match(text, 1) else "the long way")
    assert preparer.prepare(text, CATALOGUE, 1) == long_way(text)


def test_the_third_of_its_kind_is_answered_from_a_template() -> None:
    templates = Templates()
    bodies = [body(f"shard-{n}", {"SHARD": str(n)}, ["--lr", f"0.{n}"]) for n in range(4)]
    for text in bodies[:2]:
        assert templates.match(text, 1) is None
        templates.learn(text, 1, lambda other: _long_way(other, CATALOGUE))
    found = templates.match(bodies[2], 1)
    assert found == long_way(bodies[2])
    assert isinstance(found, Ready)
    assert found.name == "shard-2"
    assert json.loads(found.effective)["spec"]["env"] == {"SHARD": "2"}


def test_a_template_of_another_catalogue_does_not_count() -> None:
    preparer = Preparer()
    other = Catalogue({"p": {**PROJECT, "spec": {"defaultQueue": "r"}}}, {"r": {**QUEUE, "metadata": {"name": "r"}}})
    for n in range(3):
        preparer.prepare(body(f"a-{n}", {}, []), CATALOGUE, 1)
    found = preparer.prepare(body("a-3", {}, []), other, 2)
    assert isinstance(found, Ready)
    assert found.queue == "r"


def test_texts_in_the_place_of_other_texts_are_told_apart() -> None:
    """The same structure with another key or another fixed text is another operation."""
    templates = Templates()
    for n in range(2):
        templates.learn(body(f"a-{n}", {"X": "1"}, []), 1, lambda other: _long_way(other, CATALOGUE))
    assert templates.match(body("a-2", {"X": "7"}, []), 1) is not None
    assert templates.match(body("a-2", {"Y": "7"}, []), 1) is None
    assert templates.match(body("a-2", {"X": "7"}, []).replace(b"5m", b"6m"), 1) is None
    assert templates.match(body("a-2", {"X": "7"}, []).replace(b'"name"', b'"nome"'), 1) is None
    assert templates.match(body("a-2", {"X": "7"}, []).replace(b": ", b":"), 1) is None
