"""Watches: what changes, from a revision on, as the selectors see it."""

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from support.kubernetes.errors import ApiError, Object
from support.kubernetes.resources import Resource
from support.kubernetes.selectors import Matches
from support.kubernetes.store import Change, Store

INITIAL_EVENTS_END = "k8s.io/initial-events-end"


@dataclass(frozen=True)
class Asked:
    """One watch. `since` None: from now, with what there is told as added first."""

    resource: Resource
    namespace: str
    matches: Matches
    since: int | None
    bookmarks: bool
    marks_beginning: bool
    """A bookmark says where what there was ends (sendInitialEvents)."""
    timeout_s: float


@dataclass
class Bookmarks:
    """How often bookmarks are sent, and a number that grows when they are wanted now."""

    period_s: float = 60.0
    wanted: int = 0


async def watch(store: Store, asked: Asked, bookmarks: Bookmarks) -> AsyncIterator[Object]:
    """Yield events until the time is over; a compacted revision ends it with an ERROR event."""
    loop = asyncio.get_running_loop()
    ends, marks_at, seen_wanted = loop.time() + asked.timeout_s, loop.time() + bookmarks.period_s, bookmarks.wanted
    at = store.revision if asked.since is None else asked.since
    if asked.since is None:
        for event in _beginning(store, asked, at):
            yield event
    while True:
        changed = store.changed()
        try:
            for change in list(store.since(at)):
                at = change.revision
                for event in _seen(asked, change):
                    yield event
        except ApiError as error:
            yield {"type": "ERROR", "object": error.status()}
            return
        now = loop.time()
        if asked.bookmarks and (now >= min(marks_at, ends) or bookmarks.wanted > seen_wanted):
            marks_at, seen_wanted = now + bookmarks.period_s, bookmarks.wanted
            yield bookmark(asked.resource, at)
        if now >= ends:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(min(ends, marks_at) if asked.bookmarks else ends):
                await changed.wait()


def _beginning(store: Store, asked: Asked, revision: int) -> Iterator[Object]:
    """What there is, as if it had just been added."""
    for _, item in store.at(asked.resource.store_key, asked.namespace, revision):
        if asked.matches(item):
            yield {"type": "ADDED", "object": copy.deepcopy(item)}
    if asked.marks_beginning:
        yield bookmark(asked.resource, revision, {INITIAL_EVENTS_END: "true"})


def bookmark(resource: Resource, revision: int, annotations: dict[str, str] | None = None) -> Object:
    meta: Object = {"resourceVersion": str(revision), "creationTimestamp": None}
    if annotations:
        meta["annotations"] = annotations
    return {"type": "BOOKMARK", "object": {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}}


def _seen(asked: Asked, change: Change) -> Iterator[Object]:
    resource, namespace, _ = change.key
    if resource != asked.resource.store_key or (asked.namespace and namespace != asked.namespace):
        return
    before = change.old is not None and asked.matches(change.old)
    after = change.new is not None and asked.matches(change.new)
    if after:
        yield {"type": "MODIFIED" if before else "ADDED", "object": copy.deepcopy(change.new)}
    elif before:
        last = copy.deepcopy(change.old)
        assert last is not None
        last["metadata"]["resourceVersion"] = str(change.revision)
        yield {"type": "DELETED", "object": last}
