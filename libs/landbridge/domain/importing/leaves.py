"""The leaves of a document: what must be accounted for."""

from collections.abc import Iterator

from landbridge.domain.documents.places import Path


def leaves(value: object, path: Path = ()) -> Iterator[Path]:
    """Yield the path of every value that holds no other: scalars, and maps and lists without content."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, (*path, index))
    else:
        yield path


def below(path: Path, ancestor: Path) -> bool:
    """Tell whether a path is `ancestor` or lies under it."""
    return path[: len(ancestor)] == ancestor
