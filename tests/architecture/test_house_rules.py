"""Rules about the source itself that no linter knows."""

import ast
import gc
import hashlib
import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in ("libs", "services", "deploy", "tools")
    for path in (ROOT / folder).rglob("*.py")
    if "libs/landbridge/schema" not in path.as_posix()
)
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70


def _parsed(text: str) -> ast.Module:
    """Parse with the collector off: CPython 3.11 miscounts its depth when a collection runs callbacks meanwhile."""
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        gc.enable()


def _ids(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_there_is_something_to_check() -> None:
    assert len(SOURCES) > 100


@pytest.mark.parametrize("path", SOURCES, ids=_ids)
def test_modules_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    lines = text.count("\n")
    assert lines <= MODULE_LINES_MAX, f"{lines} lines; split it where a reader would look for the parts"
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name} has {length} lines"


def test_subject_literals_stand_only_in_the_subjects_module() -> None:
    literal = re.compile(r"""["']lb\.v1\.""")
    allowed = {f"libs/landbridge/bus/{name}.py" for name in ("subjects", "permissions", "accounts")}
    found = [
        _ids(path) for path in SOURCES if _ids(path) not in allowed and literal.search(_code_without_docstrings(path))
    ]
    assert found == []


def _code_without_docstrings(path: Path) -> str:
    tree = _parsed(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = (node.body[1:] if ast.get_docstring(node) else node.body) or [ast.Pass()]
    return ast.unparse(tree)


def test_the_domain_reads_no_clock_and_draws_no_lots() -> None:
    banned = re.compile(
        r"datetime\.now|time\.time|monotonic\(|uuid4|uuid7|random\.|os\.environ|(?<!def )(?<![\w.])open\("
    )
    found = [
        _ids(path)
        for path in SOURCES
        if "libs/landbridge/domain" in path.as_posix() and banned.search(_code_without_docstrings(path))
    ]
    assert found == []


def test_vendored_assets_are_the_released_ones() -> None:
    folder = ROOT / "services/dashboard/landbridge_dashboard/static/vendor"
    listed = json.loads((folder / "manifest.json").read_text())
    assert {entry["file"] for entry in listed} == {file.name for file in folder.iterdir() if file.suffix == ".js"}
    for entry in listed:
        assert hashlib.sha256((folder / entry["file"]).read_bytes()).hexdigest() == entry["sha256"]


def test_no_path_of_a_machine_is_in_the_tree() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    own = Path(__file__).relative_to(ROOT).as_posix()
    home = re.compile(rb"/(?:root|work|home/[a-z]+)/[a-z.]")
    found = [
        name
        for name in listed.split("\0")
        if name and name != own and (ROOT / name).is_file() and home.search((ROOT / name).read_bytes())
    ]
    assert found == []
