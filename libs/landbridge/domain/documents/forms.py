"""Texts with a form of their own, names, digests, quantities, told with the right form where it can be guessed."""

from collections.abc import Callable
from typing import Any, Final

from landbridge.domain import units
from landbridge.domain.documents.credentials import shown
from landbridge.domain.documents.names import explain_name
from landbridge.domain.documents.nearest import did_you_mean
from landbridge.domain.documents.places import Path

Told = tuple[str, str, str]  # code, message, suggestion


def form_problem(name: str, found: Any, pattern: str) -> Told:
    """Tell what is wrong with a text that misses the pattern of the format `name` (empty for a field's own pattern)."""
    if not isinstance(found, str):
        return "wrong-form", f"expected another form, found {shown(found)}", ""
    if name in ("name", "name-or-all"):
        message, suggestion = explain_name(found)
        return "bad-name", message, suggestion
    if name == "reference":
        base, mark, version = found.partition("@")
        if mark and version and not version.isdigit():
            return (
                "bad-reference",
                f"expected name@version with a whole number, found {shown(found)}",
                f'write "{base}@1"',
            )
        return "bad-reference", f"expected a name or name@version, found {shown(found)}", explain_name(base)[1]
    if name in _FORM_WORDS:
        code, expected = _FORM_WORDS[name]
        return code, f"expected {expected}, found {shown(found)}", ""
    choices = pattern.removeprefix("^(").removesuffix(")$").split("|")
    if all(choice.replace("-", "").isalnum() for choice in choices):
        return (
            "not-allowed",
            f"expected one of {', '.join(choices)}, found {shown(found)}",
            did_you_mean(found, choices),
        )
    return "wrong-form", f"expected a text that matches {pattern}, found {shown(found)}", ""


_FORM_WORDS: Final = {
    "digest": ("bad-digest", "a digest: sha256: and 64 hexadecimal digits in lower case"),
    "commit": ("bad-commit", "a full commit id of 40 hexadecimal digits in lower case"),
    "sha256": ("bad-digest", "64 hexadecimal digits in lower case"),
    "currency": ("wrong-form", "an ISO 4217 code such as EUR"),
    "date": ("wrong-form", "a date such as 2027-06-30"),
    "variable": ("bad-variable", "a variable's name: letters, digits and '_', not beginning with a digit"),
}
UNIT_FORMATS: Final = frozenset(("quantity", "duration", "bandwidth", "percent"))
_MEMORY_MIN: Final = 2**20


def unit_problem(name: str, path: Path, text: str) -> Told | None:
    """Parse a value with a unit; return what is wrong with it."""
    try:
        size = _parser(name, path)(text)
    except units.UnitError as error:
        found = "" if ", found " in error.message else f", found {shown(text)}"
        return "wrong-unit", error.message + found, error.suggestion
    if path[-2:] == ("requests", "memory") and size < _MEMORY_MIN:
        meant = f' and "{text}Gi" if gigabytes are meant' if text.isdigit() else ""
        return (
            "wrong-unit",
            f"expected at least 1Mi, found {text} bytes",
            f'write "{text}Mi" if megabytes{meant}' if meant else "",
        )
    return None


def _parser(name: str, path: Path) -> Callable[[str], Any]:
    if name != "quantity":
        return {
            "duration": units.parse_duration,
            "bandwidth": units.parse_bandwidth,
            "percent": units.parse_percentage,
        }[name]
    last = path[-1]
    if last == "cpu":
        return units.parse_cpu
    if path[-2:-1] and path[-2] in ("quota", "quotas", "borrow") and last not in ("memory", "ephemeral-storage"):
        return _parse_count
    return units.parse_bytes


def _parse_count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise units.UnitError("expected a whole number")
    return int(text)
