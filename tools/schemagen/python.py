"""Writes the two Python forms of a package: frozen pydantic models, and msgspec structs for the wire."""

from collections.abc import Iterator
from textwrap import wrap

from schemagen.model import Enum, Field, Message, Package

HEADER = "# Generated from proto/ by tools/generate_schema.py. Do not edit: change the proto file and run it again."
RESERVED = frozenset({"json", "copy", "schema", "dict", "construct", "validate"})  # attributes of pydantic's BaseModel
FORMAT_TYPES = {
    "quantity": "Quantity",
    "duration": "Duration",
    "bandwidth": "Bandwidth",
    "percent": "Percent",
    "date": "Date",
    "name": "Name",
    "name-or-all": "NameOrAll",
    "reference": "Reference",
    "digest": "Digest",
    "commit": "Commit",
    "currency": "Currency",
    "sha256": "Sha256",
    "variable": "Variable",
}
SCALAR_TYPES = {"string": "str", "bytes": "Bytes", "bool": "bool", "int": "int", "double": "float", "moment": "Moment"}
WIRE_TYPES = SCALAR_TYPES | {"bytes": "bytes", "moment": "Moment"}
ZEROES = {"string": '""', "bytes": 'b""', "bool": "False", "int": "0", "double": "0.0"}


def module_name(package: str) -> str:
    return "documents_v1" if package == "document" else f"{package}_v1"


def camel(name: str) -> str:
    """What pydantic's and msgspec's generators make of a snake_case name."""
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def pydantic_module(package: Package) -> str:
    bodies = [_enum(enum) for enum in package.enums.values()]
    bodies += [_model(message) for message in package.ordered()]
    text = "\n\n".join(bodies)
    names = ["Message", "Closed", "Document", "Bytes", "Moment", *FORMAT_TYPES.values()]
    used = [name for name in names if _uses(text, name)]
    lines = [HEADER, f'"""{_doc(package.comment)}"""', ""]
    lines += _imports(text, package, ".", "landbridge.schema")
    if used:
        lines.append(f"from landbridge.schema.base import {', '.join(sorted(used))}")
    return "\n".join([*lines, "", *_exports(package), "", text]) + "\n"


def wire_module(package: Package) -> str:
    bodies = [_enum(enum) for enum in package.enums.values()]
    bodies += [_struct(message) for message in package.ordered()]
    text = "\n\n".join(bodies)
    lines = [HEADER, f'"""{_doc(package.comment)}"""', ""]
    if _uses(text, "Moment"):
        lines.append("from datetime import datetime")
    lines += _imports(text.replace("Annotated", "Annotatd"), package, "wire", "landbridge.schema.wire")
    if _uses(text, "Moment"):
        lines += ["", "Moment = Annotated[datetime, msgspec.Meta(tz=True)]"]
    return "\n".join([*lines, "", *_exports(package), "", text]) + "\n"


def _uses(text: str, name: str) -> bool:
    marks = ("[", "]", " ", ",", ")", "\n")
    return any(f"{before}{name}{after}" in text for before in ("[", " ", "(") for after in marks)


def _imports(text: str, package: Package, form: str, root: str) -> list[str]:
    typing = [name for name in ("Annotated", "Literal", "Self") if _uses(text, name)]
    if form == "wire" and _uses(text, "Moment"):
        typing = sorted({*typing, "Annotated"})
    lines = []
    if "Mapping[" in text:
        lines.append("from collections.abc import Mapping")
    if "(StrEnum)" in text:
        lines.append("from enum import StrEnum")
    if typing:
        lines.append(f"from typing import {', '.join(typing)}")
    lines.append("")
    if form == "wire":
        lines.append("import msgspec")
    elif "Field(" in text:
        lines.append("from pydantic import Field")
    lines += [
        f"from {root}.{module_name(other)} import {', '.join(names)}" for other, names in package.foreign().items()
    ]
    return lines


def _exports(package: Package) -> list[str]:
    names = [*package.enums, *package.messages, *(n for names in package.foreign().values() for n in names)]
    return ["__all__ = [", *(f'    "{name}",' for name in sorted(names)), "]", ""]


def _doc(text: str, indent: str = "") -> str:
    return f"\n{indent}".join(wrap(text, 116 - len(indent))).replace('"""', "'''") or "No comment."


def _docstring(text: str, extra: str = "") -> Iterator[str]:
    body = _doc(f"{text} {extra}".strip(), "    ")
    yield f'    """{body}{" " if body.endswith(chr(34)) else ""}"""'
    yield ""


def _enum(enum: Enum) -> str:
    lines = [f"class {enum.name}(StrEnum):", *_docstring(enum.comment)]
    for value in enum.values:
        lines += [f"    # {line}" for line in wrap(value.comment, 110)]
        lines.append(f'    {value.name} = "{value.wire}"')
    if enum.tolerant:
        lines += [
            "",
            "    @classmethod",
            f'    def _missing_(cls, value: object) -> "{enum.name}":',
            "        return cls.UNSPECIFIED",
        ]
    return "\n".join(lines) + "\n"


def _model(message: Message) -> str:
    base = "Document" if message.package == "document" else "Closed" if message.closed else "Message"
    lines = [f"class {message.name}({base}):", *_docstring(message.comment)]
    for each in message.fields:
        lines += [f"    # {line}" for line in wrap(each.comment, 110)]
        lines.append(f"    {_model_field(each)}")
    return "\n".join(lines) + "\n"


def _model_field(each: Field) -> str:
    name = f"{each.python}_" if each.python in RESERVED else each.python
    alias = "" if name == each.name and camel(name) == each.json else f'alias="{each.json}"'
    default = _default(each, "Field(default_factory=dict)")
    kind = _container(each, _constrained(each))
    if not alias:
        return f"{name}: {kind}" + (f" = {default}" if default else "")
    if each.mapped and not each.required:
        return f"{name}: {kind} = Field(default_factory=dict, {alias})"
    return f"{name}: {kind} = Field({f'default={default}, ' if default else ''}{alias})"


def _constrained(each: Field) -> str:
    """The type of one element with its rules."""
    rules = each.rules
    if each.kind in {"message", "enum"}:
        return each.target.partition(".")[2]
    if "literal" in rules:
        return f'Literal["{rules["literal"]}"]'
    base = FORMAT_TYPES.get(rules.get("format", ""), SCALAR_TYPES[each.kind])
    limits = []
    if "pattern" in rules:
        limits.append(f"pattern={rules['pattern']!r}")
    if each.kind == "string" and each.required and base == "str" and not each.repeated and not each.mapped:
        limits.append("min_length=1")
    limits += [f"{key}={_number(rules[key])}" for key in ("ge", "le") if key in rules]
    if "maxLength" in rules:
        limits.append(f"max_length={rules['maxLength']}")
    return f"Annotated[{base}, Field({', '.join(limits)})]" if limits else base


def _number(value: float) -> str:
    return repr(int(value)) if float(value).is_integer() else repr(value)


def _container(each: Field, inner: str) -> str:
    limits = [
        f"{a}={each.rules[b]}" for a, b in (("min_length", "minItems"), ("max_length", "maxItems")) if b in each.rules
    ]
    if each.mapped:
        key = FORMAT_TYPES.get(each.rules.get("keyFormat", ""), "str")
        kind = f"Mapping[{key}, {inner}]"
    elif each.repeated:
        kind = f"tuple[{inner}, ...]"
    else:
        return inner if each.required or not _nullable(each) else f"{inner} | None"
    return f"Annotated[{kind}, Field({', '.join(limits)})]" if limits else kind


def _nullable(each: Field) -> bool:
    return each.optional or each.kind in {"message", "moment"}


def _default(each: Field, empty_map: str) -> str:
    if each.required:
        return ""
    if each.mapped:
        return empty_map
    if each.repeated:
        return "()"
    if _nullable(each):
        return "None"
    if each.kind == "enum":
        return f"{each.target.partition('.')[2]}.UNSPECIFIED"
    return ZEROES[each.kind]


def _struct(message: Message) -> str:
    options = ["frozen=True", "kw_only=True", 'rename="camel"', "omit_defaults=True"]
    if message.closed:
        options.append("forbid_unknown_fields=True")
    if message.rules.get("ordered"):
        options.append("order=True")
    lines = [f"class {message.name}(msgspec.Struct, {', '.join(options)}):", *_docstring(message.comment)]
    for each in message.fields:
        inner = each.target.partition(".")[2] if each.target else WIRE_TYPES[each.kind]
        default = _default(each, "msgspec.field(default_factory=dict)")
        if camel(each.python) != each.json:
            raise ValueError(f"{message.name}.{each.name}: wire names follow the field's name, found {each.json}")
        kind = _plain_container(each, inner)
        lines.append(f"    {each.python}: {kind}" + (f" = {default}" if default else ""))
    return "\n".join(lines) + "\n"


def _plain_container(each: Field, inner: str) -> str:
    if each.mapped:
        return f"Mapping[str, {inner}]"
    if each.repeated:
        return f"tuple[{inner}, ...]"
    return inner if each.required or not _nullable(each) else f"{inner} | None"
