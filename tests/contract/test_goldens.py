"""Every example ever committed goes on validating, and models, wire structs and JSON Schema agree about it."""

import json
import subprocess
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, ValidationError

from landbridge.schema import command_v1, documents_v1, event_v1, report_v1, request_v1
from support.goldens import MESSAGE_PACKAGES, ROOT, TESTDATA, Golden, goldens

MESSAGES = list(goldens(*MESSAGE_PACKAGES))
DOCUMENTS = list(goldens("document"))
ALL = MESSAGES + DOCUMENTS


def plain(value: BaseModel) -> Any:
    """The model as JSON would carry it, without what was not given."""
    return json.loads(value.model_dump_json(by_alias=True, exclude_unset=True))


@pytest.mark.parametrize("golden", ALL, ids=str)
def test_json_schema_and_model_accept(golden: Golden) -> None:
    content = golden.load()
    assert [error.message for error in golden.schema_errors(content)] == []
    model = golden.model.model_validate(content)
    assert golden.model.model_validate_json(model.model_dump_json(by_alias=True, exclude_unset=True)) == model


@pytest.mark.parametrize("golden", MESSAGES, ids=str)
def test_wire_struct_and_model_read_the_same(golden: Golden) -> None:
    text = golden.path.read_bytes()
    struct = msgspec.json.decode(text, type=golden.struct)
    model = golden.model.model_validate_json(text)
    written = msgspec.json.encode(struct)
    assert golden.model.model_validate_json(written) == model
    assert msgspec.json.decode(model.model_dump_json(by_alias=True, exclude_none=True), type=golden.struct) == struct
    assert golden.schema_errors(json.loads(written)) == []


@pytest.mark.parametrize("golden", DOCUMENTS, ids=str)
def test_a_document_loses_nothing_in_its_model(golden: Golden) -> None:
    content = golden.load()
    again = plain(golden.model.model_validate(content))
    assert numbers_as_text(again) == numbers_as_text(content)


def numbers_as_text(value: Any) -> Any:
    """Quantities may be written as numbers; the model keeps them as text."""
    if isinstance(value, dict):
        return {key: numbers_as_text(each) for key, each in value.items()}
    if isinstance(value, list):
        return [numbers_as_text(each) for each in value]
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


@pytest.mark.parametrize("golden", MESSAGES, ids=str)
def test_every_message_is_immutable(golden: Golden) -> None:
    struct = msgspec.json.decode(golden.path.read_bytes(), type=golden.struct)
    model = golden.model.model_validate_json(golden.path.read_bytes())
    # One that asks without saying anything takes nothing either.
    name = next(iter(golden.model.model_fields), "anything")
    with pytest.raises(AttributeError):
        setattr(struct, next(iter(golden.struct.__struct_fields__), "anything"), None)
    with pytest.raises(ValidationError):
        setattr(model, name, None)


@pytest.mark.parametrize("golden", DOCUMENTS, ids=str)
def test_every_document_is_immutable(golden: Golden) -> None:
    model = golden.model.model_validate(golden.load())
    with pytest.raises(ValidationError):
        model.kind = "Other"  # type: ignore[attr-defined]


def test_every_message_that_travels_has_an_example() -> None:
    shown = {(golden.package, golden.kind) for golden in ALL}
    for module in (event_v1, command_v1, report_v1, request_v1, documents_v1):
        package = module.__name__.rpartition(".")[2].removesuffix("_v1").replace("documents", "document")
        reachable = {kind for owner, kind in shown if owner == package}
        waiting = [getattr(module, kind) for kind in reachable]
        while waiting:
            for field in waiting.pop().model_fields.values():
                for name in nested(field.annotation):
                    if name.__name__ not in reachable:
                        reachable.add(name.__name__)
                        waiting.append(name)
        models = [name for name in module.__all__ if issubclass(getattr(module, name), BaseModel)]
        assert sorted(set(models) - reachable) == []


def nested(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [each for argument in getattr(annotation, "__args__", ()) for each in nested(argument)]


def test_examples_are_only_ever_added() -> None:
    only = ["--no-renames", "--diff-filter=MD", "--name-only"]
    command = ["git", "log", *only, "--format=", "HEAD", "--", str(TESTDATA)]
    changed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if changed.returncode:
        pytest.skip("no history here to compare with")
    assert changed.stdout.split() == []
    command = ["git", "diff", *only, "HEAD", "--", str(TESTDATA)]
    uncommitted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert uncommitted.stdout.split() == []
