"""What does not fit a kind's model: unknown, missing and mistyped fields, values out of range, wrong forms.

The model finds the faults; this module tells them to people, with what was probably meant.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from landbridge.domain.documents import model_types as models
from landbridge.domain.documents.canonical import canonical_json
from landbridge.domain.documents.credentials import shown
from landbridge.domain.documents.forms import UNIT_FORMATS, Told, form_problem, unit_problem
from landbridge.domain.documents.nearest import did_you_mean, nearest
from landbridge.domain.documents.places import Path, path_text
from landbridge.domain.documents.source import Source
from landbridge.domain.errors import Problem
from landbridge.schema.base import FORMATS

_FORMAT_BY_PATTERN: Final = {pattern: name for name, pattern in FORMATS.items()}


def check_shape(source: Source, model: type[BaseModel]) -> tuple[BaseModel | None, list[Problem]]:
    """Return the model of a document, or None with everything that does not fit it."""
    document, faults = _validate(model, source.value)
    problems = [problem for fault in faults if (problem := _problem(source, model, fault)) is not None]
    for path, name, text in models.formatted(model, source.value):
        if name in UNIT_FORMATS and not source.is_spoiled(path):
            told = unit_problem(name, path, text)
            if told is not None:
                problems.append(source.problem(path, *told))
    return document, problems


def _validate(model: type[BaseModel], value: object) -> tuple[BaseModel | None, list[Any]]:
    """Return the model, or what does not fit it.

    JSON mode is strict about types (`yes` is no truth value, `"1"` no number) without asking for tuples; fields in
    Python's spelling are not accepted. Moments are the exception: their text is read by the model's own function, which
    strict mode then does not trust.
    """
    body = canonical_json(value)
    try:
        return model.model_validate_json(body, strict=True, by_alias=True, by_name=False), []
    except ValidationError as error:
        faults: list[Any] = error.errors(include_url=False, include_context=True)
    moments = {fault["loc"] for fault in faults if fault["type"] == "datetime_type" and isinstance(fault["input"], str)}
    if not moments:
        return None, faults
    faults = [fault for fault in faults if fault["loc"] not in moments]
    try:
        document = model.model_validate_json(body, by_alias=True, by_name=False)
    except ValidationError as error:
        return None, faults + [fault for fault in error.errors(include_url=False) if fault["loc"] in moments]
    return (None if faults else document), faults


def _problem(source: Source, model: type[BaseModel], fault: Any) -> Problem | None:
    path: Path = tuple(part for part in fault["loc"] if part != "[key]")
    at_key = fault["loc"][-1:] == ("[key]",)
    if source.is_spoiled(path):
        return None
    kind: str = fault["type"]
    if kind == "extra_forbidden":
        return source.problem(path, "unknown-field", "unknown field", _meant_field(model, path), at_key=True)
    if kind == "missing":
        return source.problem(path, "missing-field", "this field is required", _example(model, path))
    if kind == "string_pattern_mismatch":
        name = _FORMAT_BY_PATTERN.get(fault["ctx"]["pattern"], "")
        if name in UNIT_FORMATS:
            return None  # told once, with the unit's own words
        code, message, suggestion = form_problem(
            name, str(path[-1]) if at_key else fault["input"], fault["ctx"]["pattern"]
        )
        return source.problem(path, code, message, suggestion, at_key=at_key)
    told = _TELL.get(kind, _tell_other)
    return source.problem(path, *told(models.at_path(model, path), fault), at_key=at_key)


# -- fields ------------------------------------------------------------------------------------------------------------


def _meant_field(model: type[BaseModel], path: Path) -> str:
    parent, wrong = path[:-1], str(path[-1])
    known = models.field_names(models.at_path(model, parent))
    close = did_you_mean(wrong, known)
    if close:
        return close
    elsewhere = [home for home in models.homes(model).get(wrong, ()) if home != path_text(parent)]
    if elsewhere and len(elsewhere) <= 4:
        return f"it belongs under {' or '.join(elsewhere)}"
    return f"allowed are {', '.join(sorted(known))}" if 0 < len(known) <= 12 else ""


def _example(model: type[BaseModel], path: Path) -> str:
    values = models.allowed_values(models.at_path(model, path))
    if len(values) == 1:
        return f"add {path[-1]}: {values[0]}"
    return f"add {path[-1]}, one of {', '.join(values)}" if values else f"add {path[-1]}"


# -- values ------------------------------------------------------------------------------------------------------------


def _tell_choice(annotation: Any, fault: Any) -> Told:
    values, found = models.allowed_values(annotation), fault["input"]
    if isinstance(found, str) and fault["loc"] == ("apiVersion",):
        return "unknown-version", f"expected {values[0]}, found {shown(found)}", f"write {values[0]}"
    meant = nearest(found, values) if isinstance(found, str) else ""
    expected = values[0] if len(values) == 1 else f"one of {', '.join(values)}"
    return "not-allowed", f"expected {expected}, found {shown(found)}", f'did you mean "{meant}"?' if meant else ""


def _tell_text(_: Any, fault: Any) -> Told:
    found = fault["input"]
    suggestion = ""
    if found is None:
        suggestion = "give a value or remove the field"
    elif isinstance(found, (bool, int, float)):
        suggestion = f"write it in quotes: {shown(str(found).lower() if isinstance(found, bool) else str(found))}"
    return "wrong-type", f"expected text, found {_with_article(found)}", suggestion


def _tell_whole(_: Any, fault: Any) -> Told:
    return "wrong-type", f"expected a whole number, found {_with_article(fault['input'])}", _as_number(fault["input"])


def _tell_number(_: Any, fault: Any) -> Told:
    return "wrong-type", f"expected a number, found {_with_article(fault['input'])}", _as_number(fault["input"])


def _as_number(found: object) -> str:
    if isinstance(found, str) and len(found) < 20:
        try:
            float(found)
        except ValueError:
            return ""
        return f"write {found.strip()} without quotes"
    return "give a value or remove the field" if found is None else ""


def _tell_truth(_: Any, fault: Any) -> Told:
    found = fault["input"]
    meant = {"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}
    word = meant.get(str(found).lower(), "")
    return "wrong-type", f"expected true or false, found {_with_article(found)}", f"write {word}" if word else ""


def _tell_list(annotation: Any, fault: Any) -> Told:
    found = fault["input"]
    suggestion = ""
    if isinstance(found, str):
        words = found.split()
        suggestion = "write a list, such as [python, train.py]" if len(words) > 1 else f"write a list: [{shown(found)}]"
    elif isinstance(found, (int, float)):
        suggestion = f"write a list: [{found}]"
    elif isinstance(found, dict) and models.field_names(models.step(annotation, 0)):
        suggestion = "put a '-' before it"
    return "wrong-type", f"expected a list, found {_with_article(found)}", suggestion


def _tell_map(annotation: Any, fault: Any) -> Told:
    found = fault["input"]
    suggestion = ""
    if found is None:
        suggestion = "give it content or remove the field"
    elif isinstance(found, list) and not models.field_names(annotation):
        suggestion = "named things are maps here: use each one's name as the key"
    return "wrong-type", f"expected a map, found {_with_article(found)}", suggestion


def _tell_size(_: Any, fault: Any) -> Told:
    context, found = fault["ctx"], fault["input"]
    if "actual_length" in context:
        limit = context.get("max_length", context.get("min_length"))
        bound = "at most" if "max_length" in context else "at least"
        return "out-of-range", f"expected {bound} {limit} entries, found {context['actual_length']}", ""
    limit = context.get("max_length", context.get("min_length"))
    bound = "at most" if "max_length" in context else "at least"
    return "out-of-range", f"expected {bound} {limit} characters, found {len(found)}", ""


def _tell_bound(_: Any, fault: Any) -> Told:
    context = fault["ctx"]
    limit = context.get("le", context.get("ge"))
    bound = "at most" if "le" in context else "at least"
    number = f"{limit:g}" if isinstance(limit, float) else str(limit)
    return "out-of-range", f"expected {bound} {number}, found {shown(fault['input'])}", ""


def _tell_own(_: Any, fault: Any) -> Told:
    found = fault["input"]
    error = str(fault["ctx"]["error"])
    message = error if error.startswith("expected") else f"not a date that exists: {shown(found)}"
    return "wrong-form", f"{message}, found {shown(found)}" if message.startswith("expected RFC") else message, ""


def _tell_moment(_: Any, fault: Any) -> Told:
    message = f"expected a moment that exists, such as 2026-12-01T06:00:00Z, found {shown(fault['input'])}"
    return "wrong-form", message, ""


def _tell_other(_: Any, fault: Any) -> Told:
    """Tell what no rule above covers, without the model's own words for the value."""
    return "wrong-value", f"this value is not usable here: {fault['type'].replace('_', ' ')}", ""


def _with_article(found: object) -> str:
    if isinstance(found, bool) or found is None or isinstance(found, (dict, list)):
        return shown(found)
    if isinstance(found, (int, float)):
        return f"the number {shown(found)}"
    return shown(found)


_TELL: Final[dict[str, Callable[[Any, Any], Told]]] = {
    "enum": _tell_choice,
    "literal_error": _tell_choice,
    "string_type": _tell_text,
    "int_type": _tell_whole,
    "int_from_float": _tell_whole,
    "float_type": _tell_number,
    "bool_type": _tell_truth,
    "tuple_type": _tell_list,
    "mapping_type": _tell_map,
    "dict_type": _tell_map,
    "model_type": _tell_map,
    "model_attributes_type": _tell_map,
    "too_long": _tell_size,
    "too_short": _tell_size,
    "string_too_long": _tell_size,
    "string_too_short": _tell_size,
    "less_than_equal": _tell_bound,
    "greater_than_equal": _tell_bound,
    "value_error": _tell_own,
    "datetime_type": _tell_moment,
    "datetime_parsing": _tell_moment,
    "datetime_from_date_parsing": _tell_moment,
    "datetime_object_invalid": _tell_moment,
}


def unknown_kind(found: object, known: tuple[str, ...]) -> Iterator[Told]:
    """Tell that a document's kind is missing or unknown."""
    if found is None:
        yield "missing-field", "this field is required", f"add kind, one of {', '.join(known)}"
    else:
        suggestion = did_you_mean(found, known) if isinstance(found, str) else ""
        yield "unknown-kind", f"expected one of {', '.join(known)}, found {shown(found)}", suggestion
