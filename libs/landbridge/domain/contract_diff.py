"""What differs between two versions of an environment's contract, field by field, and what has to be proven again."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from landbridge.domain import claims

_MISSING: Final = object()
# Sections of which each named entry is a claim of its own, proven by itself.
_NAMED: Final = ("classes", "connections", "storage", "links")
_GENERAL: Final[Mapping[str, tuple[str, ...]]] = {
    "runtime": (claims.RUNTIME, claims.CLOCK, claims.SELF_STOP),
    "boundaries": (
        claims.SECURITY_TIER,
        claims.IDENTITY,
        claims.NETWORK,
        claims.ADMISSION,
        claims.TENANCY,
        claims.CONTROL_PLANE,
    ),
}


class Difference(NamedTuple):
    """One field of the spec by its path; "" where it is not stated. `proof` are claims that it leaves to be proven."""

    path: str
    was: str
    becomes: str
    proof: tuple[str, ...]


def differences(was: Mapping[str, Any], becomes: Mapping[str, Any]) -> list[Difference]:
    """Compare two specs. Lists are compared as they stand, named things by name; the order is that of the paths."""
    return [
        Difference(path, _text(old), _text(new), _claims(path, becomes))
        for path, old, new in sorted(_walk((), was, becomes), key=lambda item: item[0])
    ]


def to_prove(found: Sequence[Difference]) -> tuple[str, ...]:
    """Return the claims that have to be proven again: evidence carries over to a new version only for equal claims."""
    return tuple(sorted({claim for difference in found for claim in difference.proof}))


def _walk(path: tuple[str, ...], old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _walk((*path, key), old.get(key, _MISSING), new.get(key, _MISSING))
    elif old != new:
        yield ".".join(path), old, new


def _claims(path: str, becomes: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the claims behind a field that are made from now on: what is not claimed any more needs no proof."""
    section, _, rest = path.partition(".")
    claimed = becomes.get(section)
    if not claimed:
        return ()
    if section in _NAMED:
        names = [rest.partition(".")[0]] if rest else sorted(claimed)
        return tuple(f"{section}.{name}" for name in names if name in claimed)
    return _GENERAL.get(section, ())


def _text(value: Any) -> str:
    """Write a value in one line, as it would stand in YAML's flow style."""
    if value is _MISSING or value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    return str(value)
