"""The Terraform module says what the chart says: the same values, the same defaults, the same namespaces.

Its syntax is read with a parser of HCL; Terraform itself is not run.
"""

from pathlib import Path
from typing import Any

import hcl2
import pytest
import yaml

from landbridge_dispatch.executors.bindings import load_bindings
from landbridge_dispatch.executors.kubernetes import installing

DEPLOY = Path(__file__).parents[3] / "deploy"
MODULE, EXAMPLE = DEPLOY / "terraform/landbridge-dispatcher", DEPLOY / "terraform/example"
CHART = DEPLOY / "helm/landbridge-dispatcher"
NAMES = {
    "environment": "environment",
    "image": "image",
    "natsUrl": "nats_url",
    "workNamespaces": "work_namespaces",
    "createNamespaces": "create_namespaces",
    "storageClass": "storage_class",
    "egressPorts": "egress_ports",
    "operators": "operators",
    "routes": "routes",
    "bindings": "bindings",
}
"""The module's variables by the chart's values."""


def read(path: Path) -> dict[str, Any]:
    with path.open() as file:
        found: dict[str, Any] = plain(hcl2.load(file))
    return found


def plain(value: Any) -> Any:
    """Without the quotes and marks that the parser leaves."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items() if key not in ("__is_block__", "__comments__")}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return value[1:-1] if isinstance(value, str) and value[:1] == value[-1:] == '"' and len(value) > 1 else value


def named(blocks: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: body for block in blocks for name, body in block.items()}


def values_of_chart() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
    return found


def passed() -> dict[str, Any]:
    """What the module hands to the chart, by value."""
    [local] = read(MODULE / "main.tf")["locals"]
    found: dict[str, Any] = local["values"]
    return found


@pytest.mark.parametrize("path", sorted(DEPLOY.glob("terraform/*/*.tf")), ids=lambda path: "/".join(path.parts[-2:]))
def test_every_file_is_syntactically_right(path: Path) -> None:
    assert read(path)


def test_the_module_hands_over_every_value_of_the_chart_and_no_other() -> None:
    assert passed().keys() == values_of_chart().keys()
    for value, expression in passed().items():
        assert f"var.{NAMES[value]}" in str(expression)


def test_defaults_are_those_of_the_chart() -> None:
    variables, chart = named(read(MODULE / "variables.tf")["variable"]), values_of_chart()
    for value in ("workNamespaces", "createNamespaces", "storageClass", "egressPorts"):
        default = variables[NAMES[value]]["default"]
        assert default == chart[value], value
    for value in ("operators", "routes"):
        declared = str(variables[value]["type"])
        assert variables[value]["default"] == {}
        for key, default in chart[value].items():
            assert f"{key}" in declared
            assert default is False
        assert declared.count("optional(bool, false)") == len(chart[value])


def test_variables_are_used_and_what_is_used_is_declared() -> None:
    text = "".join((MODULE / name).read_text() for name in ("main.tf", "outputs.tf"))
    for name in named(read(MODULE / "variables.tf")["variable"]):
        assert f"var.{name}" in text


def test_the_dispatchers_namespace_is_labelled_as_the_plain_manifests_do() -> None:
    resources = {kind: body for block in read(MODULE / "main.tf")["resource"] for kind, body in block.items()}
    [metadata] = resources["kubernetes_namespace"]["dispatcher"]["metadata"]
    assert metadata["labels"] == installing.namespace("landbridge")["metadata"]["labels"]
    [release] = resources["helm_release"].values()
    assert "yamlencode(local.values)" in str(release["values"])
    secret = resources["kubernetes_secret"]["credentials"]
    assert list(secret["data"]) == ["dispatcher.creds"]


def test_credentials_are_marked_as_such() -> None:
    for path in (MODULE / "variables.tf", EXAMPLE / "main.tf"):
        assert named(read(path)["variable"])["credentials"]["sensitive"] is True


def test_the_example_passes_only_what_the_module_declares() -> None:
    module = named(read(EXAMPLE / "main.tf")["module"])["cluster_a"]
    declared = named(read(MODULE / "variables.tf")["variable"])
    assert module.keys() - {"source"} <= declared.keys()
    required = {name for name, body in declared.items() if "default" not in body}
    assert required <= module.keys()
    assert (EXAMPLE / module["source"]).resolve() == MODULE


def test_the_examples_bindings_can_be_read_and_name_the_same_operators() -> None:
    bindings = load_bindings(EXAMPLE / "bindings.yaml")
    assert bindings.kubernetes.operators == ("jobset",)
    assert bindings.kubernetes.keeper.url == "http://landbridge-dispatcher.landbridge:8480"
