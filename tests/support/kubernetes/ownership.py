"""Who set which field: server-side apply with its conflicts, and the traces of other writes."""

import copy
from datetime import UTC, datetime
from typing import Any

from support.kubernetes import fields, shape
from support.kubernetes.errors import ApiError, Object
from support.kubernetes.fields import Path
from support.kubernetes.resources import Resource


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Managers:
    """The managedFields of one object, as sets."""

    def __init__(self, item: Object | None) -> None:
        entries = ((item or {}).get("metadata") or {}).get("managedFields") or []
        self._entries = {
            (entry["manager"], entry["operation"], entry.get("subresource", "")): (
                fields.decode(entry["fieldsV1"]),
                entry["apiVersion"],
                entry["time"],
            )
            for entry in entries
        }

    def owned(self, key: tuple[str, str, str]) -> set[Path]:
        return set(self._entries[key][0]) if key in self._entries else set()

    def others(self, key: tuple[str, str, str]) -> dict[tuple[str, str, str], tuple[set[Path], str]]:
        return {other: (owned, version) for other, (owned, version, _) in self._entries.items() if other != key}

    def own(self, key: tuple[str, str, str], owned: set[Path], api_version: str) -> None:
        before = self._entries.get(key)
        if not owned:
            self._entries.pop(key, None)
        elif before is None or before[0] != owned:
            self._entries[key] = (owned, api_version, now())

    def lose(self, key: tuple[str, str, str], paths: set[Path]) -> None:
        """All but `key` own these no more."""
        for other, (owned, version, _) in list(self._entries.items()):
            if other != key and owned & paths:
                self.own(other, owned - paths, version)

    def entries(self) -> list[Object]:
        return [
            {
                "manager": manager,
                "operation": operation,
                "apiVersion": version,
                "time": time,
                "fieldsType": "FieldsV1",
                "fieldsV1": fields.encode(owned),
                **({"subresource": subresource} if subresource else {}),
            }
            for (manager, operation, subresource), (owned, version, time) in self._entries.items()
        ]


def note_update(resource: Resource, old: Object | None, new: Object, manager: str, subresource: str) -> None:
    """Write into `new` that `manager` set what differs from `old`."""
    key = (manager, "Update", subresource)
    managers = Managers(old if old is not None else new)
    before = fields.owned_paths(old, custom=resource.custom) if old is not None else set()
    after = fields.owned_paths(new, custom=resource.custom)
    changed = {path for path in after if path not in before or fields.get(old, path) != fields.get(new, path)}
    managers.lose(key, changed | (before - after))
    managers.own(key, (managers.owned(key) & after) | changed, resource.api_version)
    new["metadata"]["managedFields"] = managers.entries()


def apply(
    resource: Resource, live: Object | None, applied: Object, manager: str, *, force: bool, subresource: str
) -> Object:
    """Return the live object with what was applied. Raises a 409 that names every conflict."""
    key = (manager, "Apply", subresource)
    managers = Managers(live)
    wanted = fields.owned_paths(applied, custom=resource.custom)
    if live is not None:
        conflicts = _conflicts(resource, live, applied, wanted, managers.others(key))
        if conflicts and not force:
            raise _refused(conflicts)
        managers.lose(key, {path for _, path in conflicts})
    merged: Object = merge(live or {}, applied, (), custom=resource.custom)
    held = set().union(*(owned for owned, _ in managers.others(key).values()))
    for path in sorted(managers.owned(key) - wanted, key=len, reverse=True):
        if path not in held and not any(other[: len(path)] == path for other in held | wanted):
            fields.remove(merged, path)
    managers.own(key, wanted, resource.api_version)
    merged["metadata"]["managedFields"] = managers.entries()
    return merged


def _conflicts(
    resource: Resource,
    live: Object,
    applied: Object,
    wanted: set[Path],
    others: dict[tuple[str, str, str], tuple[set[Path], str]],
) -> list[tuple[str, Path]]:
    found = []
    for path in sorted(wanted):
        if path[-1][0] != "f" or fields.get(live, path) == fields.get(applied, path):
            continue
        for (other, operation, _), (owned, version) in others.items():
            if path in owned:
                told = f'"{other}"' if operation == "Apply" else f'"{other}" using {version}'
                found.append((told, path))
    return found


def _refused(conflicts: list[tuple[str, Path]]) -> ApiError:
    count = f"{len(conflicts)} conflict{'s' if len(conflicts) > 1 else ''}"
    told = "; ".join(f"conflict with {who}: {fields.shown(path)}" for who, path in conflicts)
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": fields.shown(path)}
        for who, path in conflicts
    ]
    return ApiError(409, "Conflict", f"Apply failed with {count}: {told}", details={"causes": causes})


def merge(live: Any, applied: Any, names: shape.Names, *, custom: bool) -> Any:
    """Write the applied values over the live ones, lists by their keys."""
    if isinstance(live, dict) and isinstance(applied, dict) and not shape.is_atomic_map(names, custom=custom):
        merged = copy.deepcopy(live)
        for name, value in applied.items():
            merged[name] = merge(live[name], value, (*names, name), custom=custom) if name in live else value
        return copy.deepcopy(merged)
    if isinstance(live, list) and isinstance(applied, list) and (keys := shape.list_keys(names, custom=custom)):
        if keys == shape.SET:
            return [*live, *(value for value in applied if value not in live)]
        merged_list = copy.deepcopy(live)
        for value in applied:
            key = fields.compact(shape.key_of(value, keys))
            at = next((at for at, item in enumerate(merged_list) if fields.matches(item, key)), None)
            if at is None:
                merged_list.append(copy.deepcopy(value))
            else:
                merged_list[at] = merge(merged_list[at], value, names, custom=custom)
        return merged_list
    return copy.deepcopy(applied)
