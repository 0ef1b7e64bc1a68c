"""What is applied to a cluster: valid for every supported version, Restricted, and with no right too many."""

import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from landbridge_dispatch.executors.bindings import load_bindings
from landbridge_dispatch.executors.kubernetes import installing
from landbridge_dispatch.executors.kubernetes import permissions as work
from landbridge_dispatch.executors.kubernetes.probing import permissions as probing
from support.helm import render
from support.kubernetes import pod_security

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "tools"))

import generate_kubernetes_manifests as generator  # noqa: E402 - a tool, beside the packages

CHART = ROOT / "deploy/helm/landbridge-dispatcher"
VERSIONS = ["1.31", "1.32", "1.33", "1.34", "1.35", "1.36"]


def plain() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / "deploy/kubernetes/dispatcher.yaml").read_text()))


def of_kind(objects: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    [found] = [item for item in objects if item["kind"] == kind]
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_manifests_and_chart_are_valid_for_every_supported_version(version: str) -> None:
    objects = [*plain(), *render(CHART, "landbridge")]
    assert len(objects) > 20
    for item in objects:
        kubernetes_validate.validate(item, version, strict=True)


def test_a_field_that_does_not_exist_would_be_found() -> None:
    deployment = of_kind(plain(), "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["readOnlyRoot"] = True
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)


def test_the_committed_files_are_what_the_code_says() -> None:
    for name, text in generator.files().items():
        assert (ROOT / "deploy" / name).read_text() == text, f"deploy/{name}: run make schema"


def test_the_chart_makes_the_same_objects() -> None:
    spaces = ("work-a", "work-b")
    site = installing.Installation(
        "paris", generator.IMAGE, "tls://hub:4222", namespace="lb", work_namespaces=spaces, storage_class="fast"
    )
    values = {
        "environment": "paris",
        "natsUrl": "tls://hub:4222",
        "workNamespaces": list(spaces),
        "storageClass": "fast",
    }
    wanted = [
        item for item in installing.manifests(site) if (item["kind"], item["metadata"]["name"]) != ("Namespace", "lb")
    ]
    made = render(CHART, "lb", **values, bindings={"executor": "kubernetes"})

    def sorted_by_name(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
        config = of_kind(objects, "ConfigMap")
        config["data"] = {name: yaml.safe_load(text) for name, text in config["data"].items()}
        network = of_kind(objects, "NetworkPolicy")
        network["spec"]["egress"][1]["ports"].sort(key=lambda one: one["port"])
        return sorted(
            objects, key=lambda one: (one["kind"], one["metadata"]["name"], one["metadata"].get("namespace", ""))
        )

    of_kind(wanted, "ConfigMap")["data"] = {"bindings.yaml": "executor: kubernetes\n"}
    assert sorted_by_name(made) == sorted_by_name(wanted)


def test_without_a_storage_class_the_default_is_used_and_namespaces_can_be_left_out() -> None:
    made = render(CHART, "lb", createNamespaces=False)
    assert "storageClassName" not in of_kind(made, "PersistentVolumeClaim")["spec"]
    assert not [item for item in made if item["kind"] == "Namespace"]


def test_the_dispatcher_runs_as_the_strictest_standard_demands() -> None:
    objects = plain()
    spec = of_kind(objects, "Deployment")["spec"]["template"]["spec"]
    [container] = spec["containers"]
    assert pod_security.violations(spec, "restricted") == []
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert set(container["resources"]["limits"]) == {"cpu", "memory"}
    spaces = [item for item in objects if item["kind"] == "Namespace"]
    assert {item["metadata"]["labels"][pod_security.ENFORCE] for item in spaces} == {"restricted"}


def test_nobody_reaches_the_dispatcher_but_work_at_the_keepers_port() -> None:
    spec = of_kind(plain(), "NetworkPolicy")["spec"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    [rule] = spec["ingress"]
    assert [port["port"] for port in rule["ports"]] == [installing.KEEPER_PORT]
    [source] = rule["from"]
    assert source["namespaceSelector"]["matchExpressions"][0]["values"] == ["landbridge-work"]
    assert {port["port"] for allowed in spec["egress"] for port in allowed["ports"]} == {53, 443, 6443, 4222}


def test_rights_are_those_of_the_table_and_no_others() -> None:
    objects = plain()
    granted = {
        (kind, group, resource, verb)
        for kind in ("Role", "ClusterRole")
        for rule in of_kind(objects, kind)["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    listed = {
        (kind, item.api_group, item.resource, verb)
        for kind, items in (
            ("Role", (*work.NAMESPACED, *probing.NAMESPACED)),
            ("ClusterRole", (*work.CLUSTER, *probing.CLUSTER)),
        )
        for item in items
        for verb in item.verbs
    }
    assert granted == listed
    for kind, _, resource, verb in granted:
        assert "*" not in (resource, verb)
        assert resource not in ("secrets", "pods/exec", "pods/attach", "roles", "rolebindings")
        assert kind == "Role" or verb in ("get", "list", "watch") or resource == "tokenreviews"


@pytest.mark.parametrize("operator", work.OPERATORS)
def test_rights_on_an_operators_objects_are_given_where_it_is_offered_and_nowhere_else(operator: str) -> None:
    groups = {line.api_group for line in work.OPERATORS[operator]}
    value = generator._OPERATORS[operator]
    chart = render(CHART, "lb", operators={name: name == value for name in generator._OPERATORS.values()})
    site = installing.Installation("paris", generator.IMAGE, "tls://hub:4222", operators=(operator,))
    wanted = of_kind(installing.manifests(site), "Role")["rules"]
    assert of_kind(chart, "Role")["rules"] == wanted
    named = {group for rule in wanted for group in rule["apiGroups"]}
    assert groups <= named
    others = {line.api_group for name, lines in work.OPERATORS.items() if name != operator for line in lines}
    assert not named & (others - groups)
    kubernetes_validate.validate(of_kind(chart, "Role"), VERSIONS[-1], strict=True)


@pytest.mark.parametrize("kind", work.ROUTES)
def test_rights_on_routes_are_given_where_the_bindings_offer_them(kind: str) -> None:
    value = generator._ROUTES[kind]
    chart = render(CHART, "lb", routes={name: name == value for name in generator._ROUTES.values()})
    site = installing.Installation("paris", generator.IMAGE, "tls://hub:4222", routes=(kind,))
    wanted = of_kind(installing.manifests(site), "Role")["rules"]
    assert of_kind(chart, "Role")["rules"] == wanted
    named = {resource for rule in wanted for resource in rule["resources"]}
    assert named & {"ingresses", "httproutes"} == {work.ROUTES[kind][0].resource}


def test_the_documentation_lists_every_right() -> None:
    text = (ROOT / "docs/kubernetes.md").read_text()
    for items in (work.NAMESPACED, probing.NAMESPACED, work.CLUSTER, probing.CLUSTER, *work.OPERATORS.values(),
                  *work.ROUTES.values()):  # fmt: skip
        for row in installing.table(items):
            assert row in text


def test_the_bindings_that_are_shown_can_be_read(tmp_path: Path) -> None:
    (tmp_path / "bindings.yaml").write_text(of_kind(plain(), "ConfigMap")["data"]["bindings.yaml"])
    bindings = load_bindings(tmp_path / "bindings.yaml")
    assert bindings.kubernetes.namespace == "landbridge-work"
    assert bindings.kubernetes.keeper.port == installing.KEEPER_PORT


def test_the_pod_has_every_setting_that_a_dispatcher_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    from landbridge_dispatch.dispatcher.settings import DispatcherSettings

    [container] = of_kind(plain(), "Deployment")["spec"]["template"]["spec"]["containers"]
    for entry in container["env"]:
        monkeypatch.setenv(entry["name"], entry["value"])
    settings = DispatcherSettings()
    assert settings.environment == "cluster-a"
    assert settings.http_port == installing.HTTP_PORT
    assert str(settings.bindings) == "/bindings/bindings.yaml"
