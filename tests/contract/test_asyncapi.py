"""AsyncAPI documents say what the subscription tables say, and the tables cannot lie."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import generate_asyncapi
from generate_asyncapi import TableError, received
from landbridge.bus import streams, subjects
from landbridge.bus.asyncapi import document
from landbridge.runtime.service import Subscription
from landbridge_lineage.service import SUBSCRIPTIONS
from schemagen.model import Packages, read
from schemagen.subjects import expand, patterns_of, takes
from support.goldens import ROOT

ROW = SUBSCRIPTIONS[0]
DOCUMENTS = sorted((ROOT / "docs" / "asyncapi").glob("*.json"))


@pytest.fixture(scope="module")
def packages() -> Packages:
    return read(ROOT, Path(sys.executable).parent / "buf")


def test_the_documents_are_what_the_tables_say(packages: Packages) -> None:
    for name, table in generate_asyncapi.services(ROOT):
        found = document(name, generate_asyncapi.VERSION, received(table, packages))
        path = ROOT / "docs" / "asyncapi" / f"{name}.json"
        assert path.exists(), f"run tools/generate_asyncapi.py: {name} has no document"
        assert path.read_text() == found, f"run tools/generate_asyncapi.py: {name} is stale"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.stem))
def test_every_reference_in_a_document_leads_somewhere(path: Path) -> None:
    content = json.loads(path.read_text())
    assert content["asyncapi"] == "3.0.0"

    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            here = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return here + [each for part in value.values() for each in references(part)]
        return [each for part in value for each in references(part)] if isinstance(value, list) else []

    for reference in references(content):
        at: Any = content
        for step in reference.removeprefix("#/").split("/"):
            at = at[step.replace("~1", "/").replace("~0", "~")]


def test_every_durable_of_the_centre_with_a_table_reads_exactly_its_filters() -> None:
    declared = {(spec.stream, spec.name): set(spec.filters) for spec in streams.DURABLES}
    for _, table in generate_asyncapi.services(ROOT):
        for row in table:
            assert declared[row.stream, row.durable] == set(row.filters)


def test_a_type_that_no_filter_takes_is_refused(packages: Packages) -> None:
    lying: Subscription = replace(ROW, filters=(subjects.operation("accepted", "*"),))
    with pytest.raises(TableError, match="no filter of"):
        received((lying,), packages)


def test_a_filter_that_no_type_travels_on_is_refused(packages: Packages) -> None:
    lying: Subscription = replace(ROW, filters=(*ROW.filters, subjects.environment("link", "*")))
    with pytest.raises(TableError, match="no type travels on"):
        received((lying,), packages)


def test_a_type_without_a_contract_is_refused(packages: Packages) -> None:
    with pytest.raises(TableError, match="Teleported"):
        received((replace(ROW, types=("Teleported",)),), packages)


def test_subjects_of_the_contracts_expand_to_patterns(packages: Packages) -> None:
    assert expand("lb.v1.a.<x|y>.<project>") == ("lb.v1.a.x.*", "lb.v1.a.y.*")
    assert "lb.v1.operation.observed.*" in patterns_of("OperationChanged", packages)
    assert takes("lb.v1.report.quay.>", "lb.v1.report.quay.attempts")
    assert not takes("lb.v1.report.*", "lb.v1.report.quay.attempts")
