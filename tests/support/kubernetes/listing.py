"""Lists: selectors, revisions, pages."""

import base64
import binascii
import copy
import json
from collections.abc import Mapping
from typing import Any

from support.kubernetes.api import Api
from support.kubernetes.errors import ApiError, Object, bad_request, gone
from support.kubernetes.paths import Target
from support.kubernetes.selectors import Matches, by_fields, by_labels


def selected(target: Target, query: Mapping[str, str]) -> Matches:
    """What the selectors, and a name in the path, let through. Raises a 400."""
    labels = by_labels(query.get("labelSelector", ""))
    fields = by_fields(query.get("fieldSelector", ""), target.resource.kind, target.resource.selectable)
    return lambda item: labels(item) and fields(item) and (not target.name or item["metadata"]["name"] == target.name)


def revision_of(text: str) -> int:
    if not text.isdecimal():
        raise bad_request(f'invalid resourceVersion: "{text}"')
    return int(text)


def list_objects(api: Api, target: Target, query: Mapping[str, str]) -> Object:
    """The collection, or a page of it. Raises a 410 for a page of a past that was compacted."""
    store, resource = api.store, target.resource
    revision, after = store.revision, None
    limit = int(query.get("limit") or 0)
    if query.get("continue"):
        revision, after = _read_token(query["continue"])
        if revision < store.compacted:
            raise gone(
                "The provided continue parameter is too old to display a consistent list result. "
                "You can start a new list without the continue parameter."
            )
    elif (asked := query.get("resourceVersion", "")) not in ("", "0"):
        revision = _at_least(store.revision, revision_of(asked), query.get("resourceVersionMatch", ""))
    matches = selected(target, query)
    found = [(key, item) for key, item in store.at(resource.store_key, target.namespace, revision) if matches(item)]
    if after is not None:
        found = [(key, item) for key, item in found if [key[1], key[2]] > after]
    meta: Object = {"resourceVersion": str(revision)}
    if limit and len(found) > limit:
        last = found[limit - 1][0]
        meta["continue"] = _token(revision, [last[1], last[2]])
        if not query.get("labelSelector") and not query.get("fieldSelector"):
            meta["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    items = [copy.deepcopy(item) for _, item in found]
    if not resource.custom:
        # Only custom resources repeat what they are in lists.
        for item in items:
            del item["apiVersion"], item["kind"]
    return {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": meta, "items": items}


def _at_least(current: int, asked: int, match: str) -> int:
    if asked > current:
        raise ApiError(
            504,
            "Timeout",
            f"Too large resource version: {asked}, current: {current}",
            details={"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]},
            retry_after_s=1,
        )
    return asked if match == "Exact" else current


def _token(revision: int, last: list[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps([revision, last]).encode()).decode()


def _read_token(text: str) -> tuple[int, Any]:
    try:
        revision, last = json.loads(base64.urlsafe_b64decode(text))
    except (binascii.Error, ValueError) as error:
        raise bad_request("continue key is not valid") from error
    return int(revision), last
