"""The other kinds of patch: merge, strategic merge and JSON."""

import copy
from typing import Any

from support.kubernetes import fields, shape
from support.kubernetes.errors import ApiError, Object, bad_request


def merge_patch(live: Any, patch: Any) -> Any:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(live) if isinstance(live, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def strategic_merge_patch(live: Any, patch: Any, names: shape.Names = ()) -> Any:
    """Kubernetes' own: lists with keys are merged by them, `$patch: delete|replace` is obeyed."""
    if isinstance(patch, dict) and (live is None or isinstance(live, dict)):
        return _strategic_map(live or {}, patch, names)
    if isinstance(patch, list) and isinstance(live, list):
        keys = shape.list_keys(names)
        if keys == shape.SET:
            return [*live, *(value for value in patch if value not in live)]
        if keys:
            return _strategic_list(live, patch, names, keys[:1])
    return copy.deepcopy(patch)


def _strategic_map(live: Object, patch: Object, names: shape.Names) -> Object:
    if patch.get("$patch") == "replace":
        return {name: value for name, value in patch.items() if name != "$patch"}
    merged = dict(live)
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            merged[field] = [inner for inner in merged.get(field) or () if inner not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            merged.pop(name, None)
        else:
            merged[name] = strategic_merge_patch(merged.get(name), value, (*names, name))
    return merged


def _strategic_list(live: list[Any], patch: list[Any], names: shape.Names, keys: shape.Names) -> list[Any]:
    merged = list(live)
    for value in patch:
        key = fields.compact({name: value.get(name) for name in keys})
        at = next((at for at, item in enumerate(merged) if fields.matches(item, key)), None)
        if value.get("$patch") == "delete":
            merged = [item for item in merged if not fields.matches(item, key)]
        elif at is None:
            merged.append(copy.deepcopy(value))
        else:
            merged[at] = strategic_merge_patch(merged[at], value, names)
    return merged


def json_patch(live: Object, operations: list[Object]) -> Object:
    """RFC 6902; a test that fails is a 422, as there."""
    item = copy.deepcopy(live)
    for operation in operations:
        tokens = [token.replace("~1", "/").replace("~0", "~") for token in operation["path"].split("/")[1:]]
        match operation["op"]:
            case "test":
                if _find(item, tokens) != operation.get("value"):
                    raise ApiError(422, "Invalid", "the server rejected our request due to an error in our request")
            case "add":
                _set(item, tokens, operation["value"], insert=True)
            case "replace":
                _find(item, tokens)
                _set(item, tokens, operation["value"], insert=False)
            case "remove":
                holder = _find(item, tokens[:-1])
                _find(item, tokens)
                del holder[int(tokens[-1]) if isinstance(holder, list) else tokens[-1]]
            case other:
                raise bad_request(f"the fake knows no JSON patch operation {other}")
    return item


def _find(item: Any, tokens: list[str]) -> Any:
    for token in tokens:
        try:
            item = item[int(token)] if isinstance(item, list) else item[token]
        except (KeyError, IndexError, TypeError) as error:
            message = "the server rejected our request due to an error in our request"
            raise ApiError(422, "Invalid", message) from error
    return item


def _set(item: Any, tokens: list[str], value: Any, *, insert: bool) -> None:
    holder = _find(item, tokens[:-1])
    if not isinstance(holder, list):
        holder[tokens[-1]] = copy.deepcopy(value)
    elif tokens[-1] == "-":
        holder.append(copy.deepcopy(value))
    elif insert:
        holder.insert(int(tokens[-1]), copy.deepcopy(value))
    else:
        holder[int(tokens[-1])] = copy.deepcopy(value)
