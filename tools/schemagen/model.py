"""What the generator knows of the contracts: packages, messages, fields and enums, read from `buf build`."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RULES = "[landbridge.options.v1.rules]"
MESSAGE = "[landbridge.options.v1.message]"
CLOSED_PACKAGES = frozenset({"document", "command"})  # unknown fields and enum values are refused
KEYWORDS = frozenset({"class", "from", "in", "is", "not", "or", "and", "import", "global", "lambda", "with", "as"})
SCALARS = {
    "TYPE_STRING": "string",
    "TYPE_BYTES": "bytes",
    "TYPE_BOOL": "bool",
    "TYPE_INT32": "int",
    "TYPE_INT64": "int",
    "TYPE_DOUBLE": "double",
}


@dataclass(frozen=True)
class EnumValue:
    """One value: its Python name, its text on the wire, its meaning."""

    name: str
    wire: str
    comment: str


@dataclass(frozen=True)
class Enum:
    """A closed set of texts; `tolerant` ones read unknown text as UNSPECIFIED."""

    package: str
    name: str
    values: tuple[EnumValue, ...]
    comment: str
    tolerant: bool


@dataclass(frozen=True)
class Field:
    """One field. `kind` is a scalar, `moment`, `message` or `enum`; `target` names the last two as package.Name."""

    name: str
    json: str
    kind: str
    target: str
    repeated: bool
    mapped: bool
    optional: bool
    rules: Mapping[str, Any]
    comment: str

    @property
    def python(self) -> str:
        return f"{self.name}_" if self.name in KEYWORDS else self.name

    @property
    def required(self) -> bool:
        return bool(self.rules.get("required") or self.rules.get("literal"))


@dataclass(frozen=True)
class Message:
    """One message with its fields in order of declaration."""

    package: str
    name: str
    fields: tuple[Field, ...]
    rules: Mapping[str, Any]
    comment: str

    @property
    def closed(self) -> bool:
        return self.package in CLOSED_PACKAGES or bool(self.rules.get("closed"))


@dataclass
class Package:
    """One protobuf package, landbridge.<name>.v1."""

    name: str
    comment: str = ""
    enums: dict[str, Enum] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)

    def ordered(self) -> Iterator[Message]:
        """Messages so that each comes after those it uses."""
        done: set[str] = set()

        def visit(name: str) -> Iterator[Message]:
            if name in done:
                return
            done.add(name)
            for each in self.messages[name].fields:
                package, _, target = each.target.partition(".")
                if each.kind == "message" and package == self.name:
                    yield from visit(target)
            yield self.messages[name]

        for name in self.messages:
            yield from visit(name)

    def foreign(self) -> dict[str, list[str]]:
        """Names used from other packages, by package, sorted; transitively those that travel with them."""
        found: dict[str, set[str]] = {}
        for message in self.messages.values():
            for each in message.fields:
                package, _, target = each.target.partition(".")
                if package and package != self.name:
                    found.setdefault(package, set()).add(target)
        return {package: sorted(names) for package, names in sorted(found.items())}


Packages = dict[str, Package]


def read(root: Path, buf: Path) -> Packages:
    """Compile `proto/` below `root`. Raises CalledProcessError if the files do not compile."""
    command = [str(buf), "build", str(root), "-o", "-#format=json"]
    image = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages: Packages = {}
    for file in sorted(image["file"], key=lambda f: str(f["name"])):
        match = re.fullmatch(r"landbridge\.(\w+)\.v1", file.get("package", ""))
        if match and match[1] != "options":
            _read_file(file, packages.setdefault(match[1], Package(match[1])))
    return dict(sorted(packages.items()))


def _comments(file: Mapping[str, Any]) -> dict[tuple[int, ...], str]:
    found: dict[tuple[int, ...], str] = {}
    for location in file.get("sourceCodeInfo", {}).get("location", ()):
        text = location.get("leadingComments", "")
        if text:
            found[tuple(location.get("path", ()))] = " ".join(line.strip() for line in text.strip().splitlines())
    return found


def _read_file(file: Mapping[str, Any], package: Package) -> None:
    comments = _comments(file)
    head = comments.get((12,), "")
    package.comment = f"{package.comment} {head}".strip()
    for index, enum in enumerate(file.get("enumType", ())):
        package.enums[enum["name"]] = _enum(enum, package.name, comments, (5, index))
    for index, message in enumerate(file.get("messageType", ())):
        package.messages[message["name"]] = _message(message, package.name, comments, (4, index))


def _enum(raw: Mapping[str, Any], package: str, comments: Mapping[tuple[int, ...], str], at: tuple[int, ...]) -> Enum:
    prefix = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", raw["name"]).upper() + "_"
    values = []
    for index, value in enumerate(raw["value"]):
        name = str(value["name"]).removeprefix(prefix)
        wire = "" if name == "UNSPECIFIED" else name.lower().replace("_", "-")
        values.append(EnumValue(name, wire, comments.get((*at, 2, index), "")))
    return Enum(package, raw["name"], tuple(values), comments.get(at, ""), package not in CLOSED_PACKAGES)


def _message(
    raw: Mapping[str, Any], package: str, comments: Mapping[tuple[int, ...], str], at: tuple[int, ...]
) -> Message:
    entries = {n["name"]: n for n in raw.get("nestedType", ()) if n.get("options", {}).get("mapEntry")}
    fields = tuple(
        _field(each, entries, comments.get((*at, 2, index), "")) for index, each in enumerate(raw.get("field", ()))
    )
    return Message(package, raw["name"], fields, raw.get("options", {}).get(MESSAGE, {}), comments.get(at, ""))


def _field(raw: Mapping[str, Any], entries: Mapping[str, Any], comment: str) -> Field:
    entry = entries.get(str(raw.get("typeName", "")).rpartition(".")[2])
    value = entry["field"][1] if entry else raw
    kind, target = _kind(value)
    return Field(
        name=raw["name"],
        json=raw["jsonName"],
        kind=kind,
        target=target,
        repeated=raw["label"] == "LABEL_REPEATED" and entry is None,
        mapped=entry is not None,
        optional=bool(raw.get("proto3Optional")),
        rules=raw.get("options", {}).get(RULES, {}),
        comment=comment,
    )


def _kind(raw: Mapping[str, Any]) -> tuple[str, str]:
    if raw["type"] in SCALARS:
        return SCALARS[raw["type"]], ""
    target = str(raw.get("typeName", ""))
    if target == ".google.protobuf.Timestamp":
        return "moment", ""
    match = re.fullmatch(r"\.landbridge\.(\w+)\.v1\.(\w+)", target)
    if match is None:
        raise ValueError(f"field {raw['name']}: expected a scalar or a landbridge type, found {raw['type']} {target}")
    return ("enum" if raw["type"] == "TYPE_ENUM" else "message"), f"{match[1]}.{match[2]}"
