"""Writes the reference pages: one a document kind, one a message package."""

from collections.abc import Iterator

from schemagen.jsonschema import document_roots
from schemagen.model import Enum, Field, Message, Package, Packages

HEADER = "<!-- Generated from proto/ by tools/generate_schema.py. Do not edit. -->"
TITLES = {
    "common": "Identity values",
    "event": "Events",
    "command": "Commands",
    "report": "Reports",
    "request": "Requests",
}
FILES = {"common": "identity", "event": "events", "command": "commands", "report": "reports", "request": "requests"}
KINDS = {
    "string": "text",
    "bytes": "base64",
    "bool": "true or false",
    "int": "integer",
    "double": "number",
    "moment": "time",
}


def pages(packages: Packages) -> dict[str, str]:
    """Every page's text by file name."""
    files = {}
    for package in packages.values():
        if package.name == "document":
            for root in document_roots(package):
                files[f"{root.rules['page']}.md"] = _document(root, packages)
        else:
            files[f"{FILES[package.name]}.md"] = _package(package)
    return files


def _document(root: Message, packages: Packages) -> str:
    lines = [HEADER, "", f"# {root.rules['kind']}", "", root.comment, ""]
    lines += [f"JSON Schema: `libs/landbridge/schema/json/{root.rules['page']}.json`. Unknown fields are errors.", ""]
    messages, enums = _reachable(root, packages)
    for message in messages:
        if message is not root:
            lines += [f"## {message.name}", "", message.comment, ""]
        lines += [*_table(message, None), ""]
    lines += _enums(enums)
    return "\n".join(lines).rstrip() + "\n"


def _package(package: Package) -> str:
    lines = [HEADER, "", f"# {TITLES[package.name]}", "", package.comment, ""]
    travelling = [m for m in package.messages.values() if m.rules.get("subject")]
    if travelling:
        lines += ["| message | subject |", "|---|---|"]
        lines += [
            f"| [{m.name}](#{m.name.lower()}) | `{m.rules['subject'].replace('|', chr(92) + '|')}` |"
            for m in travelling
        ]
        lines.append("")
    for message in package.messages.values():
        lines += [f"## {message.name}", "", message.comment, ""]
        if message.rules.get("subject"):
            lines += [f"Subject: `{message.rules['subject']}`", ""]
        lines += [*_table(message, package.name), ""]
    lines += _enums(list(package.enums.values()))
    return "\n".join(lines).rstrip() + "\n"


def _reachable(root: Message, packages: Packages) -> tuple[list[Message], list[Enum]]:
    """Messages in the order of first use, and the enums that they use."""
    messages: list[Message] = []
    enums: list[Enum] = []

    def visit(message: Message) -> None:
        messages.append(message)
        for each in message.fields:
            package, _, name = each.target.partition(".")
            if each.kind == "enum" and (enum := packages[package].enums[name]) not in enums:
                enums.append(enum)
        for each in message.fields:
            package, _, name = each.target.partition(".")
            if each.kind == "message" and packages[package].messages[name] not in messages:
                visit(packages[package].messages[name])

    visit(root)
    return messages, enums


def _table(message: Message, package: str | None) -> Iterator[str]:
    yield "| field | type | meaning |"
    yield "|---|---|---|"
    for each in message.fields:
        needed = " **Required.**" if each.required else ""
        yield f"| `{each.json}` | {_type(each, package)} | {each.comment}{needed}{_rules(each)} |".replace("\n", " ")


def _type(each: Field, package: str | None) -> str:
    if each.target:
        owner, _, name = each.target.partition(".")
        file = f"{FILES[owner]}.md" if package is not None and owner != package else ""
        inner = f"[{name}]({file}#{name.lower()})"
    else:
        inner = each.rules.get("format") or KINDS[each.kind]
    if each.mapped:
        return f"map of {inner}"
    return f"list of {inner}" if each.repeated else inner


def _rules(each: Field) -> str:
    rules = each.rules
    parts = []
    if "literal" in rules:
        parts.append(f"Always `{rules['literal']}`.")
    if "ge" in rules or "le" in rules:
        parts.append(f"From {rules.get('ge', 'any')} to {rules.get('le', 'any')}.".replace(" to any", " up"))
    if "maxLength" in rules:
        parts.append(f"At most {rules['maxLength']} characters.")
    if "maxItems" in rules:
        parts.append(f"At most {rules['maxItems']}.")
    if "minItems" in rules:
        parts.append(f"At least {rules['minItems']}.")
    if "pattern" in rules:
        parts.append(f"Matches `{rules['pattern'].replace('|', chr(92) + '|')}`.")
    if "defaultText" in rules:
        parts.append(f"Default: {rules['defaultText']}.")
    if rules.get("secret"):
        parts.append("Never logged.")
    return "".join(f" {part}" for part in parts)


def _enums(enums: list[Enum]) -> Iterator[str]:
    for enum in enums:
        yield from (f"## {enum.name}", "", enum.comment, "", "| value | meaning |", "|---|---|")
        for value in enum.values:
            if value.wire:
                yield f"| `{value.wire}` | {value.comment} |"
        yield ""
