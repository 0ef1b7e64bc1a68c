"""The golden examples in proto/testdata, and the three validators that must agree on them."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import yaml
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import ValidationError as SchemaError  # type: ignore[import-untyped]
from pydantic import BaseModel
from referencing import Registry, Resource

ROOT = Path(__file__).resolve().parents[2]
TESTDATA = ROOT / "proto" / "testdata"
JSON_SCHEMAS = ROOT / "libs" / "landbridge" / "schema" / "json"
MESSAGE_PACKAGES = ("event", "command", "report", "request")


class _PlainLoader(yaml.SafeLoader):
    """YAML as JSON knows it: dates stay text."""


_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class Golden:
    """One example: its package, its type and where it is."""

    package: str
    kind: str
    path: Path

    def __str__(self) -> str:
        return f"{self.package}.{self.kind}/{self.path.name}"

    def load(self) -> Any:
        text = self.path.read_text()
        return json.loads(text) if self.path.suffix == ".json" else yaml.load(text, _PlainLoader)

    @property
    def model(self) -> type[BaseModel]:
        module = "documents_v1" if self.package == "document" else f"{self.package}_v1"
        found: type[BaseModel] = getattr(import_module(f"landbridge.schema.{module}"), self.kind)
        return found

    @property
    def struct(self) -> type[msgspec.Struct]:
        found: type[msgspec.Struct] = getattr(import_module(f"landbridge.schema.wire.{self.package}_v1"), self.kind)
        return found

    def schema_errors(self, content: Any) -> list[SchemaError]:
        return list(validator(self.package, self.kind).iter_errors(content))


def goldens(*packages: str) -> Iterator[Golden]:
    for path in sorted(TESTDATA.glob("*/*")):
        package, _, kind = path.parent.name.partition(".")
        if package in packages:
            yield Golden(package, kind, path)


@cache
def registry() -> Registry[Any]:
    contents = (json.loads(path.read_text()) for path in sorted(JSON_SCHEMAS.glob("*.json")))
    return Registry().with_resources([(each["$id"], Resource.from_contents(each)) for each in contents])


@cache
def validator(package: str, kind: str) -> Draft202012Validator:
    base = "https://landbridge.dev/schemas/v1"
    name = "document.json" if package == "document" else f"{package}.json#/$defs/{kind}"
    reference = f"{base}/{name}"
    return Draft202012Validator(
        {"$ref": reference}, registry=registry(), format_checker=Draft202012Validator.FORMAT_CHECKER
    )
