"""Parameters of components: what they take, and what is told, where, when a value does not suit."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from landbridge.domain.documents import Document, Rendered, read_document, render
from landbridge.domain.documents.parameter_values import value_refusal
from landbridge.domain.errors import render_problem
from unit.documents.documents import a_document, as_json
from unit.documents.test_render import a_catalogue

OPERATION = """\
apiVersion: landbridge/v1
kind: Operation
metadata: {name: churn-train, project: retail-eu}
spec:
  component: trainer@1
  parameters:
    lr: fast
    warm: "yes"
    optimiser: adm
"""
PARAMETERS: dict[str, Any] = {
    "lr": {"type": "number"},
    "warm": {"type": "boolean"},
    "optimiser": {"choices": ["adam", "sgd"]},
    "depth": {"type": "integer", "description": "Model depth"},
    "patience": {"type": "duration", "default": "10m"},
}


def _rendered(operation: str) -> Any:
    command = ["python", "t.py", *(f"--{name}=$(parameters.{name})" for name in PARAMETERS)]
    spec = {"parameters": PARAMETERS, "operation": {"command": command}}
    component = read_document(as_json(a_document("component", {"spec": spec})))
    read = read_document(operation.encode())
    assert isinstance(component, Document), component.text()
    assert isinstance(read, Document), read.text()
    return render(read, a_catalogue(components={"trainer": {1: component.value}}))


def test_every_parameter_that_does_not_suit_is_told_with_line_and_suggestion() -> None:
    assert [(each.code, render_problem(each, "op.yaml")) for each in _rendered(OPERATION)] == [
        (
            "missing-parameter",
            (
                "op.yaml:7:5 spec.parameters.depth: the component asks for this parameter (integer: Model depth); "
                "add depth to spec.parameters"
            ),
        ),
        ("bad-parameter", 'op.yaml:7:9 spec.parameters.lr: expected a number, found "fast"; write it as 0.001'),
        ("bad-parameter", 'op.yaml:8:11 spec.parameters.warm: expected true or false, found "yes"; write "true"'),
        (
            "bad-parameter",
            'op.yaml:9:16 spec.parameters.optimiser: expected one of adam, sgd, found "adm"; did you mean "adam"?',
        ),
    ]


def test_values_that_suit_and_defaults_stand_in_the_command() -> None:
    good = OPERATION.replace("fast", '"1e-3"').replace('"yes"', '"true"').replace("adm", "sgd") + '    depth: "8"\n'
    rendered = _rendered(good)

    assert isinstance(rendered, Rendered)
    assert rendered.value["spec"]["command"][2:] == [
        "--lr=1e-3",
        "--warm=true",
        "--optimiser=sgd",
        "--depth=8",
        "--patience=10m",
    ]


def test_an_unknown_preset_and_component_are_told_at_their_line() -> None:
    text = OPERATION.replace("trainer@1", "trainr").replace("spec:\n", "spec:\n  presets: [overnigt]\n")
    found = [(each.code, each.line, each.path) for each in _rendered(text)]

    assert ("unknown-preset", 5, "spec.presets[0]") in found
    assert ("unknown-component", 6, "spec.component") in found


@pytest.mark.parametrize(
    ("declared", "good", "bad"),
    [
        ({"type": "integer"}, ["0", "-3", "+8"], ["", "1.5", "eight", "1e3", "٣"]),
        ({"type": "number"}, ["0.1", "1e-3", "-2", "3."], ["", ".", "1,5", "nan", "inf"]),
        ({"type": "boolean"}, ["true", "false"], ["", "True", "1", "on"]),
        ({"type": "quantity"}, ["64Gi", "500m", "8"], ["", "64GB", "much"]),
        ({"type": "duration"}, ["15m", "1h30m"], ["", "15", "15 minutes"]),
        ({"pattern": "[a-z]+"}, ["abc"], ["abc1", "", "abc\nabc"]),
        ({"type": "text"}, ["", "anything"], []),
    ],
)
def test_types(declared: dict[str, Any], good: list[str], bad: list[str]) -> None:
    assert [value for value in good if value_refusal(declared, value)[0]] == []
    assert [value for value in bad if not value_refusal(declared, value)[0]] == []


@given(st.sampled_from(("text", "integer", "number", "boolean", "quantity", "duration")), st.text(max_size=200))
def test_no_value_breaks_the_judge(kind: str, value: str) -> None:
    message, _ = value_refusal({"type": kind}, value)
    assert isinstance(message, str)
