"""The sheet that an importer fills in: the declaration on one side, the operation on the other, leaves ticked off."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from landbridge.domain.documents.credentials import HIDDEN, credential_in, shown
from landbridge.domain.documents.kinds import API_VERSION
from landbridge.domain.documents.places import Path, path_text
from landbridge.domain.documents.walk import at
from landbridge.domain.importing.leaves import leaves
from landbridge.domain.importing.report import Left, Mapped, Unmapped, Why

_EMPTY: Final = Left(Why.NOT_NEEDED, "says nothing")
_OFF: Final = Left(Why.NOT_NEEDED, "switched off, as if nothing were said")
_SAYS_BY_NO: Final = frozenset(("auth", "hostUsers"))  # fields whose `false` asks for something
_TAKEN: Final = "another field has already set this value, which wins"


class Sheet:
    """One declaration on its way to an operation.

    `names` has what people call the things that the declaration names physically: `{"H100": "gpu-80gb"}`.
    """

    def __init__(self, value: Mapping[str, Any], names: Mapping[str, str]) -> None:
        self.value = value
        self.draft: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "Operation", "metadata": {}, "spec": {}}
        self.mapped: list[Mapped] = []
        self.unmapped: list[Unmapped] = []
        self.used: set[str] = set()
        self.numbers: dict[str, int] = {}
        """By name: the number with which it was last free, for entries of the same name."""
        self._names = names
        self._open = dict.fromkeys(leaves(value))

    # -- reading -------------------------------------------------------------------------------------------------------

    def at(self, *path: str | int) -> Any:
        """Return the declaration's value at a path; None if there is none."""
        return at(self.value, *path)

    def has(self, *path: str | int) -> bool:
        """Tell whether the declaration says anything at a path that is not ticked off yet."""
        return any(leaf in self._open for leaf in leaves(at(self.value, *path), path))

    def map(self, *path: str | int) -> Mapping[str, Any]:
        """Return the map at a path; empty if there is none."""
        found = self.at(*path)
        return found if isinstance(found, Mapping) else {}

    def list(self, *path: str | int) -> list[Any]:
        """Return the list at a path; empty if there is none."""
        found = self.at(*path)
        return found if isinstance(found, list) else []

    def text(self, *path: str | int) -> str:
        """Return the scalar at a path as text; empty for none, for maps and for lists."""
        found = self.at(*path)
        if isinstance(found, bool):
            return "true" if found else "false"
        return str(found) if isinstance(found, str | int | float) else ""

    def named(self, *found: str) -> str:
        """Return the logical name that was given for one of these; empty if none was."""
        for each in found:
            if each in self._names:
                self.used.add(each)
                return self._names[each]
        return ""

    def drafted(self, *path: str | int) -> Any:
        """Return what the operation says so far at a path."""
        return at(self.draft, *path)

    # -- accounting ----------------------------------------------------------------------------------------------------

    def put(self, source: Path, target: Path, value: object, note: str = "") -> bool:
        """Map a field: set the operation's value and tick the field off. False if another value stands there."""
        if not self._set(target, value):
            self.leave(source, Left(Why.DECISION, f"{path_text(target)}: {_TAKEN}", "remove one of the two"))
            return False
        self.note(source, target, note)
        return True

    def note(self, source: Path, target: Path, note: str = "") -> None:
        """Tick a field off as mapped to a value that is set elsewhere."""
        self.mapped.append(Mapped(source, target, HIDDEN if credential_in(note) else note))
        self._tick(source)

    def leave(self, source: Path, left: Left, *, found: str | None = None, answer: str = "") -> None:
        """Tick a field, or a part of it, off as not mapped."""
        if found is None:
            found = "" if left.why is Why.SECRET else _shown(at(self.value, *source))
        if credential_in(found) or credential_in(answer):
            # Such as the address of a repository with a token in it. Neither may be repeated.
            found, answer = HIDDEN, ""
        if credential_in(left.reason) or credential_in(left.advice):
            left = Left(left.why, HIDDEN, "take the secret out of the file first")
        self.unmapped.append(Unmapped(source, left, found, answer))
        self._tick(source)

    def leave_rest(self, source: Path, left: Left) -> None:
        """Tick off whatever below a path is not accounted for yet."""
        for path in list(self._highest(source)):
            self.leave(path, _EMPTY if self.at(*path) in (None, {}, []) else left)

    def leave_known(self, base: Path, table: Mapping[str, Left]) -> None:
        """Tick off the fields under `base` that the table says are never mapped."""
        for name, left in table.items():
            if not self.has(*base, name):
                continue
            off = self.at(*base, name) is False and left.why is Why.DECISION and name not in _SAYS_BY_NO
            self.leave_rest((*base, name), _OFF if off else left)

    def close(self, system: str) -> None:
        """Account for what no rule knew."""
        left = Left(
            Why.UNKNOWN,
            f"not a field of {system} that this importer knows",
            "check its spelling; bring it over by hand",
        )
        self.leave_rest((), left)

    def _set(self, target: Path, value: object) -> bool:
        place: Any = self.draft
        for part in target[:-1]:
            place = place.setdefault(part, {})
        if target[-1] in place:
            return bool(place[target[-1]] == value)
        place[target[-1]] = value
        return True

    def _tick(self, source: Path) -> None:
        for leaf in leaves(at(self.value, *source), source):
            self._open.pop(leaf, None)

    def _highest(self, source: Path) -> Iterator[Path]:
        """Yield the highest paths below which nothing is accounted for, and which cover all open leaves."""
        told: set[Path] = set()
        below = list(leaves(at(self.value, *source), source))
        closed = {leaf[:size] for leaf in below if leaf not in self._open for size in range(len(source), len(leaf))}
        for leaf in below:
            if leaf not in self._open:
                continue
            path = leaf
            while len(path) > max(len(source), 1) and path[:-1] not in closed:
                path = path[:-1]
            if path not in told:
                told.add(path)
                yield path


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(str(key) for key in list(value)[:6])}{', …' if len(value) > 6 else ''}}}"
    if isinstance(value, list):
        plain = [shown(each) for each in value if not isinstance(each, dict | list)]
        return f"[{', '.join(plain[:4])}{', …' if len(plain) > 4 else ''}]" if plain else f"{len(value)} entries"
    return shown(value)
