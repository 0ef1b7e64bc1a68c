"""Fields as managers own them: sets of paths, and their form in managedFields."""

import json
from typing import Any

from support.kubernetes import shape
from support.kubernetes.errors import Object

Path = tuple[tuple[str, str], ...]
"""("f", name), ("k", keys as JSON) or ("v", value as JSON), from the root."""

# Not owned by anybody.
_UNOWNED = frozenset(
    [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ]
)
MISSING = object()


def names_of(path: Path) -> shape.Names:
    return tuple(text for kind, text in path if kind == "f")


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def owned_paths(item: Object, *, custom: bool) -> set[Path]:
    """All paths of an object that can be owned."""
    found: set[Path] = set()
    for name, value in item.items():
        if name in ("apiVersion", "kind"):
            continue
        ownable = value
        if name == "metadata":
            ownable = {key: inner for key, inner in value.items() if key not in _UNOWNED}
            if not ownable:
                continue
        found |= _leaves(ownable, (("f", name),), custom)
    return found


def _leaves(value: Any, path: Path, custom: bool) -> set[Path]:
    names = names_of(path)
    if isinstance(value, dict) and value and not shape.is_atomic_map(names, custom=custom):
        return set().union(*(_leaves(inner, (*path, ("f", name)), custom) for name, inner in value.items()))
    if isinstance(value, list) and value:
        keys = shape.list_keys(names, custom=custom)
        if keys == shape.SET:
            return {(*path, ("v", compact(inner))) for inner in value}
        if keys:
            found: set[Path] = set()
            for inner in value:
                at: Path = (*path, ("k", compact(shape.key_of(inner, keys))))
                found |= {at} | _leaves(inner, at, custom)
            return found
    return {path}


def get(value: Any, path: Path) -> Any:
    """The value at a path, or MISSING."""
    for kind, text in path:
        if kind == "f":
            value = value.get(text, MISSING) if isinstance(value, dict) else MISSING
        elif kind == "k":
            value = next((inner for inner in value or () if matches(inner, text)), MISSING)
        else:
            value = json.loads(text) if isinstance(value, list) and json.loads(text) in value else MISSING
        if value is MISSING:
            return MISSING
    return value


def matches(item: Object, key: str) -> bool:
    wanted = json.loads(key)
    return bool(shape.key_of(item, tuple(wanted)) == wanted)


def remove(item: Object, path: Path) -> None:
    """Take the value at a path away, and what then holds nothing."""
    chain: list[Any] = [item]
    for depth in range(1, len(path)):
        value = get(item, path[:depth])
        if value is MISSING:
            return
        chain.append(value)
    for depth in range(len(path) - 1, -1, -1):
        holder, (kind, text) = chain[depth], path[depth]
        if kind == "f":
            holder.pop(text, None)
        elif kind == "k":
            holder[:] = [inner for inner in holder if not matches(inner, text)]
        else:
            holder[:] = [inner for inner in holder if inner != json.loads(text)]
        if holder or depth == 0 or path[depth - 1][0] == "k":
            return


def encode(paths: set[Path]) -> Object:
    """FieldsV1."""
    root: Object = {}
    for path in sorted(paths):
        at = root
        for kind, text in path:
            at = at.setdefault(f"{kind}:{text}", {})
        if path[-1][0] == "k":
            at["."] = {}
    return root


def decode(encoded: Object) -> set[Path]:
    found: set[Path] = set()

    def walk(at: Object, path: Path) -> None:
        if path and (not at or "." in at):
            found.add(path)
        for name, inner in at.items():
            if name != ".":
                kind, _, text = name.partition(":")
                walk(inner, (*path, (kind, text)))

    walk(encoded, ())
    return found


def shown(path: Path) -> str:
    """As conflicts name it: `.spec.template.spec.containers[name="x"].image`."""
    told = ""
    for kind, text in path:
        if kind == "f":
            told += f".{text}"
        elif kind == "k":
            told += "[" + ",".join(f"{name}={compact(value)}" for name, value in json.loads(text).items()) + "]"
        else:
            told += f"[={text}]"
    return told
