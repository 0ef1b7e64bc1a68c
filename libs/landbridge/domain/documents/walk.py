"""Every text of a document, with its path."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from landbridge.domain.documents.places import Path


@dataclass(frozen=True, slots=True)
class Text:
    """A key or a text value. For a key, `path` ends with the key itself."""

    path: Path
    text: str
    is_key: bool = False


def texts(value: object, path: Path = ()) -> Iterator[Text]:
    """Yield every key and every text value below `value`, in document order."""
    stack: list[tuple[Path, object]] = [(path, value)]
    while stack:
        here, item = stack.pop()
        if isinstance(item, str):
            yield Text(here, item)
        elif isinstance(item, dict):
            stack.extend(((*here, key), item[key]) for key in reversed(item))
            for key in item:
                yield Text((*here, key), key, is_key=True)
        elif isinstance(item, list):
            stack.extend(((*here, index), item[index]) for index in range(len(item) - 1, -1, -1))


def all_text(value: object) -> str:
    """Return every key and text value, one a line: what holds for none of it holds for no part of it."""
    parts: list[str] = []
    stack: list[object] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
        elif isinstance(item, dict):
            parts.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return "\n".join(parts)


def at(value: object, *path: str | int) -> object:
    """Return what stands at a path, or None."""
    for part in path:
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int) and 0 <= part < len(value):
            value = value[part]
        else:
            return None
    return value


def text_at(value: object, *path: str | int) -> str:
    """Return the text at a path, or an empty string where there is none."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def map_at(value: object, *path: str | int) -> Mapping[str, object]:
    """Return the map at a path, or an empty one."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def list_at(value: object, *path: str | int) -> list[object]:
    """Return the list at a path, or an empty one."""
    found = at(value, *path)
    return found if isinstance(found, list) else []
