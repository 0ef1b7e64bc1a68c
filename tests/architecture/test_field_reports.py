"""The table of field reports names tests that exist, where it says that they are."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TABLE = (DOCS / "field-reports.md").read_text()
LINK = re.compile(r"\[(\w+)\]\(([^)]+)\)")
LINKS = sorted({(name, target) for name, target in LINK.findall(TABLE) if target.endswith(".py")})
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in TABLE.splitlines()
    if line.startswith("| ") and not line.startswith("| report |")
]


@cache
def _tests_in(path: Path) -> frozenset[str]:
    body = ast.parse(path.read_text()).body
    # A Hypothesis state machine is a test by assignment.
    assigned = {
        target.id
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    return frozenset(
        {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
        | assigned
    )


@pytest.mark.parametrize(("name", "target"), LINKS, ids=[name for name, _ in LINKS])
def test_a_named_test_exists(name: str, target: str) -> None:
    path = (DOCS / target).resolve()
    assert path.is_file(), f"docs/field-reports.md names {target}, which does not exist"
    assert name in _tests_in(path), f"docs/field-reports.md names {name}, which is not in {target}"


def test_every_row_has_a_test_or_says_what_it_waits_for() -> None:
    assert len(ROWS) > 40
    for row in ROWS:
        assert len(row) == 3, f"expected report, what must hold, tests or what is needed: {row}"
        assert all(row), f"a cell is empty: {row}"


def test_every_report_stands_once_in_its_section() -> None:
    section, found = "", Counter[str]()
    for line in TABLE.splitlines():
        if line.startswith("## "):
            section = line
        elif line.startswith("| ") and not line.startswith("| report |"):
            found[f"{section}: {line.split('|')[1].strip()}"] += 1
    assert [report for report, count in found.items() if count > 1] == []


def test_no_row_names_a_test_twice() -> None:
    for row in ROWS:
        named = LINK.findall(row[2])
        assert [link for link, count in Counter(named).items() if count > 1] == [], row[0]
