"""Events tolerate what newer writers say; commands and documents must be understood."""

import json
from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from landbridge.schema import event_v1 as models
from landbridge.schema.wire import event_v1 as wire
from support.goldens import Golden, goldens

TOLERANT = list(goldens("event", "report", "request"))
COMMANDS = list(goldens("command"))
DOCUMENTS = list(goldens("document"))


def extended(content: Any) -> Any:
    return content | {"laterField": {"deep": [1, 2]}}


@pytest.mark.parametrize("golden", TOLERANT, ids=str)
def test_an_unknown_field_is_tolerated(golden: Golden) -> None:
    content = extended(golden.load())
    struct = msgspec.json.decode(json.dumps(content), type=golden.struct)
    assert struct == msgspec.json.decode(golden.path.read_bytes(), type=golden.struct)
    assert golden.model.model_validate(content) == golden.model.model_validate(golden.load())
    assert golden.schema_errors(content) == []


@pytest.mark.parametrize("golden", COMMANDS, ids=str)
def test_an_unknown_field_in_a_command_is_refused(golden: Golden) -> None:
    content = extended(golden.load())
    with pytest.raises(msgspec.ValidationError, match="laterField"):
        msgspec.json.decode(json.dumps(content), type=golden.struct)
    with pytest.raises(ValidationError, match="laterField"):
        golden.model.model_validate(content)
    assert golden.schema_errors(content) != []


def test_an_unknown_field_deep_in_a_command_is_refused() -> None:
    golden = next(each for each in COMMANDS if each.kind == "Withdrawals")
    content = golden.load()
    content["items"][0]["epoch"]["later"] = 1
    with pytest.raises(msgspec.ValidationError, match="later"):
        msgspec.json.decode(json.dumps(content), type=golden.struct)
    with pytest.raises(ValidationError, match="later"):
        golden.model.model_validate(content)
    assert golden.schema_errors(content) != []


@pytest.mark.parametrize("golden", DOCUMENTS, ids=str)
def test_an_unknown_field_in_a_document_is_refused(golden: Golden) -> None:
    content = extended(golden.load())
    with pytest.raises(ValidationError, match="laterField"):
        golden.model.model_validate(content)
    assert golden.schema_errors(content) != []


def test_an_unknown_enum_value_in_an_event_reads_as_unspecified() -> None:
    text = json.dumps(
        {"operation": "o", "project": "p", "opSeq": 2, "at": "2026-11-30T09:15:00Z", "phase": "teleporting"}
    )
    assert msgspec.json.decode(text, type=wire.OperationChanged).phase is wire.Phase.UNSPECIFIED
    assert models.OperationChanged.model_validate_json(text).phase is models.Phase.UNSPECIFIED


def test_an_unknown_enum_value_in_a_document_is_refused() -> None:
    golden = next(each for each in DOCUMENTS if each.path.name == "process.yaml")
    content = golden.load()
    content["spec"]["type"] = "daemon"
    with pytest.raises(ValidationError, match="distributed-job"):
        golden.model.model_validate(content)
    assert golden.schema_errors(content) != []


def test_a_moment_without_an_offset_is_refused() -> None:
    text = json.dumps({"environment": "e", "at": "2026-11-30T09:15:00"})
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=wire.EnvironmentControl)
    with pytest.raises(ValidationError):
        models.EnvironmentControl.model_validate_json(text)


def test_epochs_are_ordered() -> None:
    first = wire.Epoch(generation=1, counter=9)
    assert first < wire.Epoch(generation=1, counter=10) < wire.Epoch(generation=2, counter=0)


@pytest.mark.parametrize("left_out", ["operation", "project", "opSeq", "at"])
def test_what_identifies_an_event_is_required_everywhere(left_out: str) -> None:
    golden = next(each for each in TOLERANT if each.kind == "OperationChanged")
    content = golden.load()
    del content[left_out]
    with pytest.raises(msgspec.ValidationError, match=left_out):
        msgspec.json.decode(json.dumps(content), type=golden.struct)
    with pytest.raises(ValidationError, match=left_out):
        golden.model.model_validate(content)
    assert golden.schema_errors(content) != []
