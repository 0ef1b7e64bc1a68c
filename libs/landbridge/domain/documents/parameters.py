"""Values for the parameters of a component, put into the texts of its operation."""

from collections.abc import Mapping
from typing import Any

from landbridge.domain.documents.limits import MAX_DOCUMENT_BYTES
from landbridge.domain.documents.nearest import did_you_mean
from landbridge.domain.documents.parameter_values import value_refusal
from landbridge.domain.documents.rules_documents import PARAMETER
from landbridge.domain.documents.walk import at, map_at, text_at

Told = tuple[tuple[str, ...], str, str, str]  # path below spec.parameters, code, message, suggestion


class _TooLarge(Exception):  # noqa: N818 - never leaves this module
    """The values make the operation larger than a document may be."""


def fill_parameters(component: Mapping[str, Any], given: Mapping[str, object]) -> tuple[object, list[Told]]:
    """Return the component's operation with its parameters filled in, and what is wrong with the values."""
    declared = map_at(component, "spec", "parameters")
    told: list[Told] = []
    values: dict[str, str] = {}
    for name in given:
        if name not in declared:
            known = f"parameters are {', '.join(declared)}" if declared else "the component has none"
            told.append(((name,), "unknown-parameter", "no such parameter", did_you_mean(name, declared) or known))
    for name in declared:
        value = given.get(name, at(declared, name, "default"))
        if not isinstance(value, str):
            message = f"the component asks for this parameter{_meaning(declared, name)}"
            told.append(((name,), "missing-parameter", message, f"add {name} to spec.parameters"))
            continue
        refusal = value_refusal(map_at(declared, name), value)
        if refusal[0]:
            told.append(((name,), "bad-parameter", *refusal))
        values[name] = value
    try:
        return _Filler(values).fill(at(component, "spec", "operation")), told
    except _TooLarge:
        message = f"the values make the operation larger than {MAX_DOCUMENT_BYTES // 1024} KiB"
        return {}, [*told, ((), "too-large", message, "keep data in a connection and name it under inputs")]


def _meaning(declared: Mapping[str, Any], name: str) -> str:
    """Return what a parameter is, in brackets: `(integer: Model depth)`."""
    kind, description = text_at(declared, name, "type"), text_at(declared, name, "description")
    meaning = ": ".join(part for part in (kind, description) if part)
    return f" ({meaning})" if meaning else ""


class _Filler:
    """Replaces references in texts, and keeps count of how much text there is by now."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.size = 0

    def fill(self, item: object) -> object:
        if isinstance(item, str):
            text = PARAMETER.sub(self._value, item)
            self.size += len(text)
            return text
        if isinstance(item, Mapping):
            return {key: self.fill(value) for key, value in item.items()}
        if isinstance(item, list):
            return [self.fill(value) for value in item]
        return item

    def _value(self, match: Any) -> str:
        value = self.values.get(match[1], "")
        self.size += len(value)
        if self.size > MAX_DOCUMENT_BYTES:
            raise _TooLarge
        return value
