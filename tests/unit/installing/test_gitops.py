"""What Argo CD and Flux are told fits the chart that lies here."""

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from support.helm import render

ROOT = Path(__file__).parents[3]


def _argo() -> tuple[str, dict[str, Any], str]:
    spec = yaml.safe_load((ROOT / "deploy/gitops/argocd.yaml").read_text())["spec"]
    return spec["source"]["path"], spec["source"]["helm"]["valuesObject"], spec["destination"]["namespace"]


def _flux() -> tuple[str, dict[str, Any], str]:
    _, release = yaml.safe_load_all((ROOT / "deploy/gitops/flux.yaml").read_text())
    return release["spec"]["chart"]["spec"]["chart"], release["spec"]["values"], release["metadata"]["namespace"]


@pytest.mark.parametrize("read", [_argo, _flux])
def test_path_and_values_are_those_of_the_chart(read: Any) -> None:
    path, values, namespace = read()

    assert set(values) <= set(yaml.safe_load((ROOT / path / "values.yaml").read_text()))
    made = render(ROOT / path, namespace, **values)
    for item in made:
        kubernetes_validate.validate(item, "1.36", strict=True)
    url = values["bindings"]["kubernetes"]["keeper"]["url"]
    [service] = [item for item in made if item["kind"] == "Service"]
    address = (
        f"http://{service['metadata']['name']}.{service['metadata']['namespace']}:{service['spec']['ports'][0]['port']}"
    )
    assert url == address
