"""Writes JSON Schema 2020-12: one file a document kind and one for all of them, one file a message package."""

import json
from typing import Any

from landbridge.schema.base import FORMATS
from schemagen.model import Enum, Field, Message, Package, Packages

DIALECT = "https://json-schema.org/draft/2020-12/schema"
BASE = "https://landbridge.dev/schemas/v1"
COMMENT = "Generated from proto/ by tools/generate_schema.py. Do not edit."
SCALARS: dict[str, dict[str, Any]] = {
    "string": {"type": "string"},
    "bytes": {"type": "string", "contentEncoding": "base64"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "double": {"type": "number"},
    "moment": {"type": "string", "format": "date-time"},
}


def schemas(packages: Packages) -> dict[str, str]:
    """Every schema's text by file name."""
    files: dict[str, dict[str, Any]] = {}
    for package in packages.values():
        if package.name == "document":
            files |= _documents(package, packages)
        else:
            definitions = _definitions([f"{package.name}.{name}" for name in package.messages], packages)
            files[f"{package.name}.json"] = _head(package.name, package.comment) | {"$defs": definitions}
    return {name: json.dumps(content, indent=2, ensure_ascii=False) + "\n" for name, content in files.items()}


def document_roots(package: Package) -> list[Message]:
    return [message for message in package.messages.values() if message.rules.get("kind")]


def _head(name: str, comment: str) -> dict[str, Any]:
    return {"$schema": DIALECT, "$id": f"{BASE}/{name}.json", "$comment": COMMENT, "description": comment}


def _documents(package: Package, packages: Packages) -> dict[str, dict[str, Any]]:
    files = {}
    for root in document_roots(package):
        key = f"document.{root.name}"
        definitions = _definitions([key], packages)
        body = definitions.pop(key.partition(".")[2])
        head = _head(root.rules["page"], root.comment)
        files[f"{root.rules['page']}.json"] = head | body | {"$defs": definitions}
    branches = [
        {
            "if": {"properties": {"kind": {"const": root.rules["kind"]}}},
            "then": {"$ref": f"{root.rules['page']}.json"},
        }
        for root in document_roots(package)
    ]
    kinds = {"enum": [root.rules["kind"] for root in document_roots(package)]}
    files["document.json"] = _head("document", "Any document that people write, by its kind.") | {
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"kind": kinds},
        "allOf": branches,
    }
    return files


def _definitions(roots: list[str], packages: Packages) -> dict[str, Any]:
    found: dict[str, Any] = {}
    waiting = list(roots)
    while waiting:
        package, _, name = waiting.pop().partition(".")
        if name in found:
            continue
        if name in packages[package].enums:
            found[name] = _enum(packages[package].enums[name])
            continue
        message = packages[package].messages[name]
        found[name] = _message(message)
        waiting += [each.target for each in message.fields if each.target]
    return dict(sorted(found.items()))


def _enum(enum: Enum) -> dict[str, Any]:
    values = {"enum": [value.wire for value in enum.values if enum.tolerant or value.wire]}
    if enum.tolerant:
        return {"description": enum.comment, "anyOf": [values, {"type": "string"}]}
    return {"description": enum.comment, **values}


def _message(message: Message) -> dict[str, Any]:
    body: dict[str, Any] = {"type": "object", "description": message.comment}
    required = [each.json for each in message.fields if each.required]
    if required:
        body["required"] = required
    body["properties"] = {each.json: _field(each) for each in message.fields}
    if message.closed:
        body["additionalProperties"] = False
    return body


def _field(each: Field) -> dict[str, Any]:
    inner = _element(each)
    if each.mapped:
        body: dict[str, Any] = {"type": "object", "additionalProperties": inner}
        if "keyFormat" in each.rules:
            body["propertyNames"] = {"pattern": FORMATS[each.rules["keyFormat"]]}
        body |= _limits(each, "minProperties", "maxProperties")
    elif each.repeated:
        body = {"type": "array", "items": inner} | _limits(each, "minItems", "maxItems")
    else:
        body = inner
    if each.rules.get("secret"):
        body |= {"writeOnly": True}
    return {"description": each.comment, **body}


def _limits(each: Field, least: str, most: str) -> dict[str, Any]:
    return {name: each.rules[rule] for name, rule in ((least, "minItems"), (most, "maxItems")) if rule in each.rules}


def _element(each: Field) -> dict[str, Any]:
    rules = each.rules
    if each.target:
        return {"$ref": f"#/$defs/{each.target.partition('.')[2]}"}
    if "literal" in rules:
        return {"const": rules["literal"]}
    body = dict(SCALARS[each.kind])
    if rules.get("format") in FORMATS:
        body["pattern"] = FORMATS[rules["format"]]
        if rules["format"] == "quantity":
            body["type"] = ["string", "number"]
    elif each.kind == "string" and each.required and not each.repeated and not each.mapped:
        body["minLength"] = 1
    names = (("pattern", "pattern"), ("ge", "minimum"), ("le", "maximum"), ("maxLength", "maxLength"))
    return body | {name: _whole(rules[rule]) for rule, name in names if rule in rules}


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value
