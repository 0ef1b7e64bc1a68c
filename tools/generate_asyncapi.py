"""Writes `docs/asyncapi/<service>.json` from each service's subscription table; `--check` only compares.

A table that lies is refused: every type must travel on a subject that a filter of its row takes, and every filter must
take a type. A row without types takes any message. Exit code 0: written or equal; 1: stale, or a table that lies.
"""

import argparse
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from landbridge import schema
from landbridge.bus import subjects
from landbridge.bus.asyncapi import Received, document
from landbridge.runtime.service import Service, Subscription
from schemagen.model import Packages, read
from schemagen.subjects import patterns_of, takes

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "docs/asyncapi"
VERSION = "1"
MODULES = ("event_v1", "command_v1", "report_v1", "request_v1", "documents_v1")


class TableError(Exception):
    """A subscription table says what cannot be true."""


def services(root: Path) -> Iterator[tuple[str, tuple[Subscription, ...]]]:
    """Yield the name and the table of every service that has one, sorted by name."""
    found: dict[str, tuple[Subscription, ...]] = {}
    for path in sorted(root.glob("services/*/landbridge_*/**/service.py")):
        parts = path.relative_to(root).with_suffix("").parts[2:]
        module = importlib.import_module(".".join(parts))
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Service) and kind.__module__ == module.__name__:
                found[kind.name] = tuple(kind.subscriptions)
    yield from ((name, found[name]) for name in sorted(found) if found[name])


def received(table: tuple[Subscription, ...], packages: Packages) -> list[Received]:
    """Return what a table receives, one entry a type and subject. Raises TableError."""
    found: list[Received] = []
    for row in table:
        if not row.types:
            found += [
                Received(f"Any.{row.stream}", row.stream, row.durable, each, None, row.batch) for each in row.filters
            ]
        served: set[str] = set() if row.types else set(row.filters)
        for name in row.types:
            model = model_of(name)
            fitting = [
                (pattern, wanted)
                for pattern in patterns_of(name, packages)
                for wanted in row.filters
                if takes(wanted, pattern)
            ]
            if not fitting:
                raise TableError(f"{row.durable} of {row.stream}: no filter of {row.filters} takes {name}")
            served.update(wanted for _, wanted in fitting)
            for pattern in dict.fromkeys(pattern for pattern, _ in fitting):
                title = ".".join((name, *event_of(pattern)))
                found.append(Received(title, row.stream, row.durable, pattern, model, row.batch))
        idle = sorted(set(row.filters) - served)
        if idle:
            raise TableError(f"{row.durable} of {row.stream}: no type travels on {idle}; the row has {row.types}")
    return found


def event_of(pattern: str) -> list[str]:
    """Return the words of a subject that name the event, without the family and what varies."""
    return [part for part in pattern.split(".")[3:] if part != subjects.ANY]


def model_of(name: str) -> type[Any]:
    """Return the model of a message or document. Raises TableError for a name that no contract has."""
    for module in MODULES:
        loaded = importlib.import_module(f"{schema.__name__}.{module}")
        if name in loaded.__all__:
            model: type[Any] = getattr(loaded, name)
            return model
    raise TableError(f"type {name}: no contract in proto/ has it")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's root")
    options = parser.parse_args()
    packages = read(options.root, Path(sys.executable).parent / "buf")
    try:
        files = {
            f"{FOLDER}/{name}.json": document(name, VERSION, received(table, packages))
            for name, table in services(options.root)
        }
    except TableError as error:
        print(error)
        return 1
    present = {str(path.relative_to(options.root)) for path in (options.root / FOLDER).glob("*.json")}
    if options.check:
        stale = [
            name
            for name in sorted(present | files.keys())
            if name not in files or name not in present or (options.root / name).read_text() != files[name]
        ]
        for name in stale:
            print(f"{name}: not what the subscription tables say; run: python tools/generate_asyncapi.py")
        return 1 if stale else 0
    for name in sorted(present - files.keys()):
        (options.root / name).unlink()
    for name, text in files.items():
        path = options.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
