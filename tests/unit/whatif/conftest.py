"""Small scenarios in a directory of their own."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

Write = Callable[..., Path]


def contract(name: str, **spec: Any) -> dict[str, Any]:
    """A contract of a simulated environment; keywords are fields of its spec."""
    return {
        "apiVersion": "landbridge/v1",
        "kind": "EnvironmentContract",
        "metadata": {"name": name, "version": 1},
        "spec": {
            "owner": {"team": "t", "contact": "t@example.org"},
            "location": {"regions": ["eu-de-1"], "jurisdictions": ["DE", "EU"], "operatedBy": "own"},
            "runtime": {"executor": "simulated"},
            "workloads": ["job"],
            "classes": {"cpu-general": {"cpu": "4", "memory": "16Gi"}},
            "cost": {"currency": "EUR", "perHour": {"cpu-general": 0.1}},
            "objectives": {"availability": "99.9%", "startWithin": "30s"},
            **spec,
        },
    }


def document(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "landbridge/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def operation(name: str, **spec: Any) -> dict[str, Any]:
    """An operation of one processor for project p."""
    found = document(
        "Operation",
        name,
        **{
            "type": "job",
            "command": ["run"],
            "queue": "q",
            "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
            "lifecycle": {"disconnection": {"policy": "continue"}, "recovery": {"mode": "never"}},
            **spec,
        },
    )
    found["metadata"]["project"] = "p"
    return found


COMMON = (document("Project", "p", defaultQueue="q"), document("Queue", "q", priority=10))


@pytest.fixture
def scenario(tmp_path: Path) -> Write:
    """`scenario(documents, rows, policies=…)` writes a scenario and what it names; returns its file."""

    def write(
        documents: Sequence[dict[str, Any]],
        rows: Sequence[str],
        *,
        header: str = "at,duration,operation",
        policies: Sequence[dict[str, Any]] = ({"name": "landbridge"},),
        trace: dict[str, Any] | None = None,
        **spec: Any,
    ) -> Path:
        (tmp_path / "documents.yaml").write_text("\n---\n".join(json.dumps(each) for each in documents))
        (tmp_path / "work.csv").write_text("\n".join([header, *rows]) + "\n")
        body = document(
            "Scenario",
            "small",
            documents=["documents.yaml"],
            trace={"file": "work.csv", **(trace or {})},
            policies=list(policies),
            **spec,
        )
        file = tmp_path / "scenario.yaml"
        file.write_text(json.dumps(body))
        return file

    return write
