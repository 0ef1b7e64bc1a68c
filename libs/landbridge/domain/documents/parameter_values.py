"""Whether a value suits a parameter of a component: its type, its choices, its pattern."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from landbridge.domain import units
from landbridge.domain.documents.credentials import shown
from landbridge.domain.documents.nearest import nearest
from landbridge.domain.documents.walk import list_at, text_at

_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
_TRUTH: Final = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}

Refusal = tuple[str, str]
"""Message and suggestion; both empty for a value that suits."""
FINE: Final[Refusal] = ("", "")


def value_refusal(declared: Mapping[str, Any], value: str) -> Refusal:
    """Say why a value does not suit a parameter as declared, and what would; empty texts if it does."""
    judge = _TYPES.get(text_at(declared, "type") or "text")
    refusal = judge(value) if judge else FINE
    if refusal != FINE:
        return refusal
    choices = [str(choice) for choice in list_at(declared, "choices")]
    if choices and value not in choices:
        meant = nearest(value, choices)
        return (
            f"expected one of {', '.join(choices)}, found {shown(value)}",
            f'did you mean "{meant}"?' if meant else "",
        )
    pattern = text_at(declared, "pattern")
    if not matches(pattern, value):
        return "the value does not match the parameter's pattern", f"write what {pattern} matches as a whole"
    return FINE


def matches(pattern: str, value: str) -> bool:
    """Tell whether a value matches a pattern as a whole; an empty or unusable pattern lets everything pass.

    Patterns run in an engine whose time is linear in the text: a document must not be able to hang its reader.
    """
    validator = _validator(pattern)
    if validator is None:
        return True
    try:
        validator.validate_python(value)
    except ValidationError:
        return False
    return True


def is_pattern(pattern: str) -> bool:
    """Tell whether a text is a regular expression of the engine that patterns run in."""
    return not pattern or _validator(pattern) is not None


def _validator(pattern: str) -> SchemaValidator | None:
    if not pattern:
        return None
    try:
        return SchemaValidator(core_schema.str_schema(pattern=f"^(?:{pattern})$", regex_engine="rust-regex"))
    except SchemaError:
        return None


def _whole(value: str) -> Refusal:
    return FINE if _WHOLE.fullmatch(value) else (f"expected a whole number, found {shown(value)}", "write it as 8")


def _number(value: str) -> Refusal:
    return FINE if _NUMBER.fullmatch(value) else (f"expected a number, found {shown(value)}", "write it as 0.001")


def _truth(value: str) -> Refusal:
    if value in ("true", "false"):
        return FINE
    meant = _TRUTH.get(value.lower(), value.lower() if value.lower() in ("true", "false") else "")
    return f"expected true or false, found {shown(value)}", f'write "{meant}"' if meant else ""


def _quantity(value: str) -> Refusal:
    refusals: list[Refusal] = []
    for parse in (units.parse_bytes, units.parse_cpu):
        try:
            parse(value)
        except units.UnitError as error:
            refusals.append((f"expected a quantity such as 64Gi or 500m, found {shown(value)}", error.suggestion))
        else:
            return FINE
    return refusals[0]


def _duration(value: str) -> Refusal:
    try:
        units.parse_duration(value)
    except units.UnitError as error:
        return f"expected a duration such as 15m, found {shown(value)}", error.suggestion
    return FINE


_TYPES: Final[dict[str, Callable[[str], Refusal]]] = {
    "integer": _whole,
    "number": _number,
    "boolean": _truth,
    "quantity": _quantity,
    "duration": _duration,
}
