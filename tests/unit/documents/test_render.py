"""The effective operation: who wins, where values come from, and what stands against it in this catalogue."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from landbridge.domain.documents import Catalogue, Document, Rendered, read_document, render
from unit.documents.documents import a_document, as_json


def _value(base: str, put: dict[str, Any] | None = None) -> dict[str, Any]:
    read = read_document(as_json(a_document(base, put)))
    assert isinstance(read, Document), read.text()
    return read.value


def a_catalogue(**more: Any) -> Catalogue:
    base: dict[str, Any] = {
        "projects": {"retail-eu": _value("project")},
        "queues": {"training": _value("queue")},
        "presets": {},
        "components": {},
    }
    return Catalogue(**{**base, **more})


def _render(catalogue: Catalogue, put: dict[str, Any] | None = None, drop: tuple[str, ...] = ()) -> Any:
    read = read_document(as_json(a_document("operation", put, drop)))
    assert isinstance(read, Document), read.text()
    return render(read, catalogue)


def _preset(patch: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return _value("preset", {"spec": {"patch": patch, **spec}})


def test_the_operation_wins_then_later_presets_then_earlier_ones_then_the_project() -> None:
    catalogue = a_catalogue(
        projects={
            "retail-eu": _value(
                "project",
                {"spec.defaults": {"presets": ["base"], "identity": "trainer", "lifecycle": {"timeout": "9h"}}},
            )
        },
        presets={
            "base": {1: _preset({"env": {"A": "base", "B": "base", "C": "base", "D": "base"}})},
            "one": {1: _preset({"env": {"A": "one", "B": "one", "C": "one"}, "lifecycle": {"timeout": "1h"}})},
            "two": {1: _preset({"env": {"A": "two", "B": "two"}})},
        },
    )
    rendered = _render(catalogue, {"spec.env": {"A": "mine"}, "spec.presets": ["one", "two@1"]})

    assert isinstance(rendered, Rendered)
    spec = rendered.value["spec"]
    assert spec["env"] == {"A": "mine", "B": "two", "C": "one", "D": "base"}
    assert spec["lifecycle"]["timeout"] == "1h"
    assert spec["identity"] == "trainer"
    assert spec["presets"] == ["base@1", "one@1", "two@1"]
    assert {
        path: rendered.provenance[f"spec.{path}"] for path in ("env.A", "env.B", "env.C", "env.D", "identity", "queue")
    } == {
        "env.A": "operation",
        "env.B": "preset two@1",
        "env.C": "preset one@1",
        "env.D": "preset base@1",
        "identity": "project retail-eu",
        "queue": "project retail-eu",
    }


def test_lists_are_taken_whole() -> None:
    catalogue = a_catalogue(presets={"p": {1: _preset({"args": ["--a", "--b"], "constraints": {"regions": ["x"]}})}})
    rendered = _render(catalogue, {"spec.args": ["--c"], "spec.presets": ["p"]})

    assert rendered.value["spec"]["args"] == ["--c"]
    assert rendered.value["spec"]["constraints"] == {"regions": ["x"]}


def test_another_disconnection_policy_does_not_inherit_the_parameters_of_the_presets() -> None:
    patch = {"lifecycle": {"disconnection": {"policy": "stop-after-grace", "grace": "30s"}}}
    catalogue = a_catalogue(presets={"p": {1: _preset(patch)}})
    rendered = _render(catalogue, {"spec.presets": ["p"], "spec.lifecycle": {"disconnection": {"policy": "continue"}}})

    assert rendered.value["spec"]["lifecycle"]["disconnection"] == {"policy": "continue"}


def test_settings_for_one_environment_travel_beside_the_spec_and_the_operation_wins() -> None:
    local = {"onprem-a": {"env": {"A": "local", "B": "local"}}, "cloud-b": {"env": {"B": "cloud"}}}
    presets = {
        "p": {1: _preset({"env": {"B": "everywhere"}}, environments=local)},
        "q": {1: _preset({}, environments={"cloud-b": {"env": {"B": "later", "C": "q"}}})},
    }
    rendered = _render(a_catalogue(presets=presets), {"spec.env": {"A": "mine"}, "spec.presets": ["p", "q"]})

    assert rendered.value["environmentSettings"] == {
        "onprem-a": {"env": {"B": "local"}},
        "cloud-b": {"env": {"B": "later", "C": "q"}},
    }
    assert {path: origin for path, origin in rendered.provenance.items() if path.startswith("env")} == {
        "environmentSettings.onprem-a.env.B": "preset p@1",
        "environmentSettings.cloud-b.env.B": "preset q@1",
        "environmentSettings.cloud-b.env.C": "preset q@1",
    }
    assert "environmentSettings" not in _render(a_catalogue()).value


def test_a_reference_without_a_version_means_the_newest() -> None:
    catalogue = a_catalogue(presets={"p": {1: _preset({"env": {"A": "1"}}), 12: _preset({"env": {"A": "12"}})}})

    assert _render(catalogue, {"spec.presets": ["p"]}).value["spec"]["env"] == {"A": "12"}
    assert _render(catalogue, {"spec.presets": ["p@1"]}).value["spec"]["env"] == {"A": "1"}


def test_a_component_brings_the_work_and_takes_parameters() -> None:
    parameters = {"lr": {"pattern": "[0-9.]+"}, "epochs": {"default": "3"}}
    operation = {"command": ["python", "t.py", "--lr=$(parameters.lr)"], "args": ["$(parameters.epochs)"]}
    component = _value("component", {"spec": {"parameters": parameters, "operation": operation}})
    catalogue = a_catalogue(components={"trainer": {1: component}})
    put = {"spec": {"component": "trainer", "parameters": {"lr": "0.5"}}}
    rendered = _render(catalogue, put)

    assert rendered.value["spec"]["command"] == ["python", "t.py", "--lr=0.5"]
    assert rendered.value["spec"]["args"] == ["3"]
    assert rendered.value["spec"]["component"] == "trainer@1"
    assert rendered.provenance["spec.command"] == "component trainer@1"

    put["spec"]["parameters"] = {"lr": "0.5; rm -rf /", "epoch": "1"}
    told = {(p.path, p.code) for p in _render(catalogue, put)}
    assert told == {("spec.parameters.lr", "bad-parameter"), ("spec.parameters.epoch", "unknown-parameter")}

    put["spec"]["parameters"] = {}
    assert [(p.path, p.code) for p in _render(catalogue, put)] == [("spec.parameters.lr", "missing-parameter")]


def test_parameters_cannot_make_an_operation_explode() -> None:
    parameters = {"x": {"default": "y" * 30_000}}
    component = _value(
        "component", {"spec": {"parameters": parameters, "operation": {"command": ["$(parameters.x)"] * 500}}}
    )

    told = _render(a_catalogue(components={"c": {1: component}}), {"spec": {"component": "c"}})
    assert [p.code for p in told] == ["too-large"]


def test_a_parameter_cannot_smuggle_in_what_an_operation_may_not_say() -> None:
    component = _value(
        "component", {"spec": {"parameters": {"p": {}}, "operation": {"command": ["get", "s3:$(parameters.p)"]}}}
    )
    told = _render(
        a_catalogue(components={"c": {1: component}}), {"spec": {"component": "c", "parameters": {"p": "//a/b"}}}
    )

    assert [p.code for p in told] == ["bucket-url"]
    assert "component c@1" in told[0].message


def test_what_presets_leave_out_is_missed_in_the_whole() -> None:
    catalogue = a_catalogue(presets={"p": {1: _preset({"lifecycle": {"expectedDuration": "5h"}})}})
    told = _render(catalogue, {"spec.presets": ["p"]}, drop=("spec.command",))

    assert {p.code for p in told} == {"nothing-to-run", "long-without-checkpoints"}
    assert any("set by preset p@1" in p.message for p in told)


def test_unknown_references_name_what_is_near() -> None:
    catalogue = a_catalogue(
        presets={"overnight": {2: _preset({})}},
        components={"trainer": {1: _value("component")}},
        queues={"training": _value("queue", {"spec.priorityClasses": {"high": 1}})},
    )
    put = {
        "spec.queue": "trainng",
        "spec.presets": ["overnigt", "overnight@3"],
        "spec.component": "trainr",
    }
    told = {p.path: p.text for p in _render(catalogue, put)}

    assert told == {
        "spec.queue": 'spec.queue: there is no queue trainng; did you mean "training"?',
        "spec.presets[0]": 'spec.presets[0]: there is no preset overnigt; did you mean "overnight"?',
        "spec.presets[1]": "spec.presets[1]: the preset overnight has no version 3; versions are 2",
        "spec.component": 'spec.component: there is no component trainr; did you mean "trainer"?',
    }
    assert [p.code for p in _render(catalogue, {"spec.priority": "hihg"})] == ["unknown-priority"]
    assert [p.text for p in _render(catalogue, {"metadata.project": "retail"})] == [
        'metadata.project: there is no project retail; did you mean "retail-eu"?'
    ]


def test_without_any_project_the_next_step_is_named() -> None:
    told = _render(Catalogue())

    assert [p.text for p in told] == ["metadata.project: there is no project retail-eu; apply a Project first"]


def test_queues_presets_and_roles_of_others_are_closed() -> None:
    catalogue = a_catalogue(
        projects={"retail-eu": _value("project", {"spec.identities": ["trainer"]})},
        queues={"training": _value("queue"), "vip": _value("queue", {"spec.projects": ["search"]})},
        presets={"p": {1: _preset({}, projects=["search"])}},
    )
    told = {p.code for p in _render(catalogue, {"spec.queue": "vip", "spec.presets": ["p"], "spec.identity": "root"})}

    assert told == {"unknown-queue", "unknown-preset", "unknown-identity"}


MAPS: st.SearchStrategy[dict[str, str]] = st.dictionaries(st.sampled_from("ABCDEF"), st.sampled_from("123"), max_size=6)


@settings(max_examples=60, deadline=None)
@given(MAPS, st.lists(MAPS, max_size=3))
def test_merging_maps_is_reading_the_layers_from_the_strongest(
    own: dict[str, str], patches: list[dict[str, str]]
) -> None:
    presets = {f"p{i}": {1: _preset({"env": patch})} for i, patch in enumerate(patches)}
    rendered = _render(a_catalogue(presets=presets), {"spec.env": own, "spec.presets": list(presets)})
    expected: dict[str, str] = {}
    for layer in [*patches, own]:
        expected |= layer

    assert dict(rendered.value["spec"].get("env", {})) == expected


@settings(max_examples=30, deadline=None)
@given(MAPS)
def test_rendering_twice_gives_the_same_bytes(own: dict[str, str]) -> None:
    catalogue = a_catalogue()

    assert _render(catalogue, {"spec.env": own}).canonical == _render(catalogue, {"spec.env": own}).canonical
