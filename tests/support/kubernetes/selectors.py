"""Label and field selectors."""

import re
from collections.abc import Callable
from typing import Any

from support.kubernetes.errors import Object, bad_request

Matches = Callable[[Object], bool]

_SET = re.compile(r"\s*(?P<key>[^\s,!=]+)\s+(?P<op>in|notin)\s+\((?P<values>[^)]*)\)\s*")
_EQUAL = re.compile(r"\s*(?P<key>[^\s,!=]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s,]*)\s*")
_EXISTS = re.compile(r"\s*(?P<not>!?)\s*(?P<key>[^\s,!=()]+)\s*")


def by_labels(selector: str) -> Matches:
    """`a=b,c!=d,e in (f,g),h notin (i),j,!k`. Raises a 400."""
    requirements = [_requirement(part) for part in _split(selector)]
    return lambda item: all(holds(item["metadata"].get("labels") or {}) for holds in requirements)


def _split(selector: str) -> list[str]:
    """At commas outside parentheses."""
    return [part for part in re.split(r",(?![^(]*\))", selector) if part.strip()]


def _requirement(part: str) -> Callable[[Object], bool]:
    if found := _SET.fullmatch(part):
        key, values = found["key"], {value.strip() for value in found["values"].split(",")}
        if found["op"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _EQUAL.fullmatch(part):
        key, value = found["key"], found["value"]
        if found["op"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _EXISTS.fullmatch(part):
        key, wanted = found["key"], not found["not"]
        return lambda labels: (key in labels) is wanted
    raise bad_request(f"unable to parse requirement: {part.strip()!r}")


def by_fields(selector: str, kind: str, selectable: tuple[str, ...]) -> Matches:
    """`metadata.name=x,status.phase!=Running`. A field that the resource does not index is a 400, as there."""
    tests: list[tuple[str, bool, str]] = []
    for part in _split(selector):
        found = _EQUAL.fullmatch(part)
        if found is None:
            raise bad_request(f"invalid selector: {selector!r}; can't understand {part!r}")
        if found["key"] not in ("metadata.name", "metadata.namespace", *selectable):
            raise bad_request(
                f'"{found["key"]}" is not a known field selector: only "metadata.name", "metadata.namespace" ({kind})'
            )
        tests.append((found["key"], found["op"] != "!=", found["value"]))
    return lambda item: all((_field(item, key) == value) is equal for key, equal, value in tests)  # fmt: skip


def _field(item: Object, path: str) -> str:
    value: Any = item
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if path == "source":
        value = ((item.get("source") or {}).get("component")) or item.get("reportingComponent")
    if path == "status.successful":
        value = (item.get("status") or {}).get("succeeded", 0)
    if isinstance(value, bool):
        return str(value).lower()
    if value is None and path in ("spec.unschedulable", "spec.hostNetwork"):
        return "false"
    return "" if value is None else str(value)
