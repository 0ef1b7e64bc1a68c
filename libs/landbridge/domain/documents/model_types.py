"""What the generated models say about a path: fields of a map, named formats, allowed values."""

import types
import typing
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from landbridge.domain.documents.places import Path
from landbridge.schema.base import FORMATS

_FORMAT_BY_PATTERN: Final[dict[str | None, str]] = {pattern: name for name, pattern in FORMATS.items()}


@lru_cache(maxsize=1024)
def fields_of(model: type[BaseModel]) -> Mapping[str, Any]:
    """Return the types of a model's fields by the name that people write."""
    return {info.alias or name: _with_metadata(info) for name, info in model.model_fields.items()}


def _with_metadata(info: FieldInfo) -> Any:
    annotation: Any = info.annotation
    for extra in info.metadata:
        annotation = typing.Annotated[annotation, extra]
    return annotation


def strip(annotation: Any) -> Any:
    """Remove Annotated and `| None` around a type."""
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif origin in (typing.Union, types.UnionType):
            inner = [part for part in typing.get_args(annotation) if part is not type(None)]
            if len(inner) != 1:
                return annotation
            annotation = inner[0]
        else:
            return annotation


@lru_cache(maxsize=2048)
def format_of(annotation: Any) -> str:
    """Return the named format of a text type such as Duration, or an empty string."""
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return next((found for part in typing.get_args(annotation) if (found := format_of(part))), "")
    if typing.get_origin(annotation) is not typing.Annotated:
        return ""
    base, *metadata = typing.get_args(annotation)
    for item in metadata:
        for part in (item, *getattr(item, "metadata", ())):
            pattern: str | None = getattr(part, "pattern", None)
            if pattern in _FORMAT_BY_PATTERN:
                return _FORMAT_BY_PATTERN[pattern]
    return format_of(base)


@lru_cache(maxsize=8192)
def _step(annotation: Any, part: str) -> Any:
    plain = strip(annotation)
    if isinstance(plain, type) and issubclass(plain, BaseModel):
        return fields_of(plain).get(part)
    origin, args = typing.get_origin(plain), typing.get_args(plain)
    return args[1] if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping) else None


@lru_cache(maxsize=2048)
def _element(annotation: Any) -> Any:
    plain = strip(annotation)
    return typing.get_args(plain)[0] if typing.get_origin(plain) is tuple else None


def step(annotation: Any, part: str | int) -> Any:
    """Return the type one step below, or None where the model knows no such place."""
    return _step(annotation, part) if isinstance(part, str) else _element(annotation)


def at_path(model: type[BaseModel], path: Path) -> Any:
    """Return the type at a path below a model, or None."""
    annotation: Any = model
    for part in path:
        annotation = step(annotation, part)
        if annotation is None:
            return None
    return annotation


def field_names(annotation: Any) -> tuple[str, ...]:
    """Return the fields that a map of this type may have; empty if it is no such map."""
    plain = strip(annotation)
    return tuple(fields_of(plain)) if isinstance(plain, type) and issubclass(plain, BaseModel) else ()


def allowed_values(annotation: Any) -> tuple[str, ...]:
    """Return the values of an enumeration or literal, without the empty one."""
    plain = strip(annotation)
    if isinstance(plain, type) and issubclass(plain, Enum):
        return tuple(str(member.value) for member in plain if member.value)
    if typing.get_origin(plain) is typing.Literal:
        return tuple(str(value) for value in typing.get_args(plain))
    return ()


def is_list(annotation: Any) -> bool:
    """Tell whether the type is a list."""
    return typing.get_origin(strip(annotation)) is tuple


@lru_cache(maxsize=64)
def homes(model: type[BaseModel]) -> Mapping[str, tuple[str, ...]]:
    """Return for every field name the paths of the maps it may stand in, nearest to the root first."""
    found: dict[str, list[str]] = {}
    level: list[tuple[str, Any, int]] = [("", model, 0)]
    for path, annotation, depth in level:  # grows while it is walked: breadth first
        for name, inner in _children(annotation):
            if name:
                found.setdefault(name, []).append(path)
            if depth < 8:
                level.append((f"{path}.{name}".strip(".") if name else path, inner, depth + 1))
    return {name: tuple(paths) for name, paths in found.items()}


def _children(annotation: Any) -> Iterator[tuple[str, Any]]:
    plain = strip(annotation)
    if isinstance(plain, type) and issubclass(plain, BaseModel):
        yield from fields_of(plain).items()
        return
    args = typing.get_args(plain)
    if typing.get_origin(plain) is tuple:
        yield "", args[0]
    elif args and isinstance(typing.get_origin(plain), type) and issubclass(typing.get_origin(plain), Mapping):
        yield "<name>", args[1]


@lru_cache(maxsize=2048)
def _has_formats(annotation: Any) -> bool:
    return bool(format_of(annotation)) or any(_has_formats(inner) for _, inner in _children(annotation))


def formatted(model: type[BaseModel], value: object) -> Iterator[tuple[Path, str, str]]:
    """Yield path, named format and text of every value that has one, in document order."""
    stack: list[tuple[Path, Any, object]] = [((), model, value)]
    while stack:
        path, annotation, item = stack.pop()
        if isinstance(item, str):
            name = format_of(annotation)
            if name:
                yield path, name, item
            continue
        if isinstance(item, dict):
            for key in reversed(item):
                inner = _step(annotation, key)
                if inner is not None and _has_formats(inner):
                    stack.append(((*path, key), inner, item[key]))
        elif isinstance(item, list) and _has_formats(element := _element(annotation)):
            stack.extend(((*path, index), element, item[index]) for index in range(len(item) - 1, -1, -1))
