"""Write deploy/kubernetes and the Helm chart from the code that says what a dispatcher in a cluster needs.

`--check` writes nothing and fails when a file differs.
"""

import re
import sys
from pathlib import Path
from typing import Any

import yaml

from landbridge_dispatch.executors.kubernetes import installing, permissions

ROOT = Path(__file__).parents[1] / "deploy"
WRITTEN = "# Written by tools/generate_kubernetes_manifests.py from the dispatcher's own table of permissions.\n"
IMAGE = "registry.example/landbridge@sha256:" + "0" * 64
BINDINGS = """\
executor: kubernetes
kubernetes:
  site: cluster-a
  namespace: landbridge-work
  keeper: {url: "http://landbridge-dispatcher.landbridge:8480"}
"""
# Values that stand for themselves in the objects, and what stands for them in the chart.
_PLACES = {
    "@environment@": "{{ .Values.environment | quote }}",
    "@image@": "{{ .Values.image | quote }}",
    "@nats@": "{{ .Values.natsUrl | quote }}",
    "@namespace@": "{{ .Release.Namespace | quote }}",
    "@storage@": "{{ .Values.storageClass | quote }}",
    "landbridge-dispatcher-@namespace@": '"landbridge-dispatcher-{{ .Release.Namespace }}"',
    "@bindings@": "{{ toYaml .Values.bindings | quote }}",
}


def site() -> installing.Installation:
    """Return the installation that the plain manifests show."""
    return installing.Installation("cluster-a", IMAGE, "tls://nats.example:4222", bindings=BINDINGS)


def files() -> dict[str, str]:
    """Return every file by its path below deploy/."""
    return {"kubernetes/dispatcher.yaml": WRITTEN + documents(installing.manifests(site())), **chart()}


def documents(objects: list[dict[str, Any]]) -> str:
    return "---\n".join(_yaml(item) for item in objects)


def chart() -> dict[str, str]:
    """Return the templates: the same objects, with values of the chart in their places."""
    marked = installing.Installation(
        "@environment@",
        "@image@",
        "@nats@",
        namespace="@namespace@",
        work_namespaces=("@work@",),
        bindings="@bindings@",
        storage_class="@storage@",
        makes_namespaces=False,
        nats_ports=(),
        api_ports=(4,),
    )
    by_file: dict[str, list[str]] = {}
    for item in installing.manifests(marked):
        by_file.setdefault(_FILES[item["kind"]], []).append(_template(item))
    spaces = _each(_yaml(installing.namespace("@work@")))
    by_file["namespaces"] = ["{{- if .Values.createNamespaces }}\n" + spaces + "{{- end }}\n"]
    return {f"helm/landbridge-dispatcher/templates/{name}.yaml": "---\n".join(found) for name, found in by_file.items()}


# Parts that are there or not, or as often as there are values.
_BLOCKS = {
    r"\n( *)storageClassName: .*\n": "\n{{- if .Values.storageClass }}\n\\1storageClassName: @storage@\n{{- end }}\n",
    r"\n( *)- protocol: TCP\n *port: 4\n": (
        "\n{{- range .Values.egressPorts }}\n\\1- protocol: TCP\n\\1  port: {{ . }}\n{{- end }}\n"
    ),
    r"values:\n *- '@work@'": "values: {{ toJson .Values.workNamespaces }}",
}
# Values by the operator whose rights they give.
_OPERATORS = {
    "jobset": "jobset",
    "kubeflow-trainer": "kubeflowTrainer",
    "kubeflow-training": "kubeflowTraining",
    "kuberay": "kuberay",
}
_ROUTES = {"Ingress": "ingress", "HTTPRoute": "httpRoute"}
_FILES = {
    "ServiceAccount": "rbac",
    "Role": "rbac",
    "RoleBinding": "rbac",
    "ClusterRole": "rbac",
    "ClusterRoleBinding": "rbac",
    "ConfigMap": "configmap",
    "PersistentVolumeClaim": "claim",
    "Service": "service",
    "Deployment": "deployment",
    "PodDisruptionBudget": "disruptionbudget",
    "NetworkPolicy": "networkpolicy",
}


def _template(item: dict[str, Any]) -> str:
    text = _yaml(item)
    if item["metadata"].get("namespace") == "@work@":
        return _each(text + _offered() if item["kind"] == "Role" else text)
    for pattern, place in _BLOCKS.items():
        text = re.sub(pattern, place, text)
    return _placed(text)


def _offered() -> str:
    """Return rights on routes and operators' objects, each given only where the values say that it is offered.

    Two operators may have rights on the same kind, each with verbs of its own.
    """
    offered: dict[str, tuple[permissions.Permission, ...]] = {
        f"routes.{value}": permissions.ROUTES[kind] for kind, value in _ROUTES.items()
    }
    offered |= {f"operators.{value}": permissions.OPERATORS[name] for name, value in _OPERATORS.items()}
    return "".join(
        f"{{{{- if .Values.{value} }}}}\n{''.join(map(_rule, lines))}{{{{- end }}}}\n"
        for value, lines in offered.items()
    )


def _rule(line: permissions.Permission) -> str:
    """Return a rule as it is written in a Role."""
    fields = (("apiGroups", (line.api_group,)), ("resources", (line.resource,)), ("verbs", line.verbs))
    listed = [f"{name}:\n" + "".join(f"      - {value}\n" for value in values) for name, values in fields]
    return "  - " + "    ".join(listed)


def _each(text: str) -> str:
    """Once for each namespace of the work; `$` is the chart as a whole there."""
    inner = _placed(text).replace(".Release", "$.Release").replace(".Values", "$.Values")
    inner = inner.replace("'@work@'", "{{ . | quote }}")
    return "{{- range .Values.workNamespaces }}\n---\n" + inner + "{{- end }}\n"


def _placed(text: str) -> str:
    for place, value in sorted(_PLACES.items(), key=lambda entry: -len(entry[0])):
        text = re.sub(f"(['\"]?){re.escape(place)}\\1", lambda _, value=value: value, text)  # type: ignore[misc]
    return text


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, lists below their keys."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the base class asks of each value
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def _yaml(item: dict[str, Any]) -> str:
    return yaml.dump(item, Dumper=_Dumper, sort_keys=False, width=110, default_flow_style=False)


def main() -> int:
    check = "--check" in sys.argv[1:]
    stale = []
    for name, text in files().items():
        path = ROOT / name
        if not path.exists() or path.read_text() != text:
            stale.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
    if stale and check:
        print(f"deploy/{', deploy/'.join(stale)}: not what the code says; run make schema")
    return 1 if stale and check else 0


if __name__ == "__main__":
    sys.exit(main())
