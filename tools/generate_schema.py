"""Generates models, wire structs, JSON Schema and reference pages from `proto/`; `--check` only compares.

Exit code 0: written or equal; 1: `--check` found something stale.
"""

import argparse
import difflib
import sys
from pathlib import Path

from schemagen.jsonschema import schemas
from schemagen.model import Packages, read
from schemagen.python import module_name, pydantic_module, wire_module
from schemagen.reference import pages

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = "libs/landbridge/schema"
# Directories whose every file is generated: what is no longer generated is removed.
OWNED = (f"{SCHEMA}/json", f"{SCHEMA}/wire")


def outputs(packages: Packages) -> dict[str, str]:
    """Every generated file by its path below the project's root."""
    files = {f"{SCHEMA}/wire/__init__.py": '"""Structs for what services say to each other; generated."""\n'}
    for name, package in packages.items():
        files[f"{SCHEMA}/{module_name(name)}.py"] = pydantic_module(package)
        if name != "document":
            files[f"{SCHEMA}/wire/{module_name(name)}.py"] = wire_module(package)
    files |= {f"{SCHEMA}/json/{name}": text for name, text in schemas(packages).items()}
    files |= {f"docs/reference/{name}": text for name, text in pages(packages).items()}
    return dict(sorted(files.items()))


def leftovers(files: dict[str, str], root: Path) -> list[str]:
    """Files in directories that are all ours which nothing generates any more."""
    present = (path for folder in OWNED for path in (root / folder).glob("*.*"))
    return sorted(name for path in present if (name := str(path.relative_to(root))) not in files)


def stale(files: dict[str, str], root: Path) -> list[str]:
    """One line for each difference between what is there and what would be generated."""
    found = [f"{name}: no longer generated" for name in leftovers(files, root)]
    for name, wanted in files.items():
        path = root / name
        if not path.exists():
            found.append(f"{name}: missing")
        elif (text := path.read_text()) != wanted:
            lines = difflib.unified_diff(text.splitlines(), wanted.splitlines(), lineterm="", n=0)
            changes = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
            found.append(f"{name}: {len(changes)} lines differ, first: {changes[0] if changes else 'end of file'}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's root")
    parser.add_argument("--buf", type=Path, default=Path(sys.executable).parent / "buf", help="the buf program")
    options = parser.parse_args()
    files = outputs(read(options.root, options.buf))
    if options.check:
        found = stale(files, options.root)
        for line in found:
            print(line)
        if found:
            print("expected generated files to match proto/; run: python tools/generate_schema.py")
        return 1 if found else 0
    for name in leftovers(files, options.root):
        (options.root / name).unlink()
    for name, text in files.items():
        path = options.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
