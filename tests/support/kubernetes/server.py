"""HTTP over the API: routes, counting, refusals on demand, watches that can be cut."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml
from aiohttp import web

from support.kubernetes import listing, pods, watching
from support.kubernetes.access import User
from support.kubernetes.api import Api, Call
from support.kubernetes.errors import ApiError, Object, bad_request, no_such_path
from support.kubernetes.paths import Target, parse

_OPEN = ("/version", "/api", "/apis", "/livez", "/readyz", "/healthz")


@dataclass(frozen=True)
class Seen:
    """One request as it came in."""

    method: str
    path: str
    query: Mapping[str, str]
    watch: bool
    at: float


@dataclass
class Refusal:
    """Refuse the next `left` requests that match."""

    left: int
    status: int
    matches: Callable[[Seen], bool]
    retry_after_s: int | None = None


@dataclass
class Server:
    """The HTTP side of one API."""

    api: Api
    version: str
    seen: list[Seen] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    bookmarks: watching.Bookmarks = field(default_factory=watching.Bookmarks)
    watches: dict[int, web.Request] = field(default_factory=dict)
    logs: pods.Logs = field(default_factory=pods.Logs)
    delay_s: float = 0.0
    """How long every answer takes."""

    def counts(self) -> Counter[str]:
        """Requests by method; watches stand beside as WATCH."""
        return Counter("WATCH" if one.watch else one.method for one in self.seen)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        watches = request.method == "GET" and query.get("watch") in ("1", "true", "True")
        seen = Seen(request.method, request.path, query, watches, time.monotonic())
        self.seen.append(seen)
        try:
            self._refuse(seen)
            if self.delay_s:
                await asyncio.sleep(self.delay_s)
            user = self.api.access.user_of(request.headers.get("Authorization", ""))
            return await self._route(request, query, user, watches=watches)
        except ApiError as error:
            headers = {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
            return web.json_response(error.status(), status=error.code, headers=headers)

    def _refuse(self, seen: Seen) -> None:
        for refusal in self.refusals:
            if refusal.left > 0 and refusal.matches(seen):
                refusal.left -= 1
                if refusal.status == 429:
                    after = 1 if refusal.retry_after_s is None else refusal.retry_after_s
                    message = "the server has received too many requests and has asked us to try again later"
                    raise ApiError(429, "TooManyRequests", message, retry_after_s=after)
                reasons = {500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}
                raise ApiError(refusal.status, reasons.get(refusal.status, ""), "refused by the test")

    async def _route(
        self, request: web.Request, query: dict[str, str], user: User, *, watches: bool
    ) -> web.StreamResponse:
        if request.path.rstrip("/") in _OPEN or request.path.count("/") < 4:
            found = self._discovery(request.path.rstrip("/"))
            if found is not None:
                return found
        target = parse(self.api.served, request.path)
        if target is None:
            raise no_such_path()
        verb = _verb(request.method, target, watches=watches)
        call = _call(request, target, user)
        self.api.access.check(user, call.attributes(verb))
        if watches:
            return await self._watch(request, target, query)
        if verb in ("get", "list"):
            return self._read(call, target, query, verb)
        body = _body(request.content_type, await request.read())
        return self._write(call, target, verb, body, query)

    def _discovery(self, path: str) -> web.Response | None:
        if path == "/version":
            major, minor, *_ = self.version.split(".")
            about = {"major": major, "minor": minor, "gitVersion": f"v{self.version}", "platform": "linux/amd64"}
            return web.json_response(about)
        if path in ("/livez", "/readyz", "/healthz"):
            return web.Response(text="ok")
        if path == "/api":
            return web.json_response({"kind": "APIVersions", "versions": ["v1"]})
        if path == "/apis":
            return web.json_response(self.api.served.groups())
        parts = path.split("/")[1:]
        if parts == ["api", "v1"]:
            return web.json_response(self.api.served.of_group("", "v1"))
        if parts[0] == "apis" and len(parts) == 3:
            found = self.api.served.of_group(parts[1], parts[2])
            if found is None:
                raise no_such_path()
            return web.json_response(found)
        return None

    def _read(self, call: Call, target: Target, query: dict[str, str], verb: str) -> web.Response:
        if verb == "list":
            return web.json_response(listing.list_objects(self.api, target, query))
        if target.subresource == "log":
            text = self.logs.read(self.api.get(call), query)
            return web.Response(status=204) if text is None else web.Response(body=text, content_type="text/plain")
        if target.subresource == "scale":
            return web.json_response(pods.scale_of(self.api.get(call)))
        return web.json_response(self.api.get(call))

    def _write(self, call: Call, target: Target, verb: str, body: Any, query: dict[str, str]) -> web.Response:
        api = self.api
        match verb, target.subresource:
            case "create", "token":
                return web.json_response(api.access.issue(call.namespace, call.name, body), status=201)
            case "create", "binding":
                return web.json_response(pods.bind(api, call, body), status=201)
            case "create", "eviction":
                return web.json_response(pods.evict(api, call, body), status=201)
            case "create", "":
                return web.json_response(api.create(call, body), status=201)
            case "update", _:
                return web.json_response(api.update(call, body))
            case "patch", _:
                before = call.key in api.store.objects
                return web.json_response(api.patch(call, body), status=200 if before else 201)
            case "delete", "":
                return web.json_response(_deleted(call, *api.delete(call, _options(body, query))))
            case "deletecollection", "":
                return self._delete_collection(call, target, _options(body, query), query)
        raise ApiError(405, "MethodNotAllowed", f"{verb} is not supported on {target.subresource}")

    def _delete_collection(self, call: Call, target: Target, options: Object, query: dict[str, str]) -> web.Response:
        matches = listing.selected(target, query)
        found = self.api.store.at(target.resource.store_key, target.namespace, self.api.store.revision)
        items = []
        for (_, namespace, name), item in found:
            if matches(item):
                one = Call(call.resource, namespace, name, user=call.user, dry_run=call.dry_run)
                items.append(self.api.delete(one, options)[0])
        meta = {"resourceVersion": str(self.api.store.revision)}
        kind = {"kind": f"{call.resource.kind}List", "apiVersion": call.resource.api_version}
        return web.json_response({**kind, "metadata": meta, "items": items})

    async def _watch(self, request: web.Request, target: Target, query: dict[str, str]) -> web.StreamResponse:
        asked_for = query.get("resourceVersion", "")
        initial = query.get("sendInitialEvents") in ("1", "true", "True")
        asked = watching.Asked(
            target.resource,
            target.namespace,
            listing.selected(target, query),
            None if asked_for in ("", "0") or initial else listing.revision_of(asked_for),
            query.get("allowWatchBookmarks") in ("1", "true", "True"),
            initial,
            float(query.get("timeoutSeconds") or 1800),
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        self.watches[id(request)] = request
        try:
            async for event in watching.watch(self.api.store, asked, self.bookmarks):
                await response.write(json.dumps(event).encode() + b"\n")
            await response.write_eof()
        except (ConnectionError, asyncio.CancelledError):
            # The client is gone, or the test has cut it.
            pass
        finally:
            del self.watches[id(request)]
        return response


def _verb(method: str, target: Target, *, watches: bool) -> str:
    if watches:
        return "watch"
    match method:
        case "GET":
            return "get" if target.name else "list"
        case "POST":
            if target.name and target.subresource not in ("token", "binding", "eviction"):
                raise ApiError(
                    405, "MethodNotAllowed", "the server does not allow this method on the requested resource"
                )
            return "create"
        case "PUT":
            return "update"
        case "PATCH":
            return "patch"
        case "DELETE":
            return "delete" if target.name else "deletecollection"
    raise ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")


def _call(request: web.Request, target: Target, user: User) -> Call:
    agent = request.headers.get("User-Agent", "unknown").partition("/")[0]
    applies = request.content_type.startswith("application/apply-patch")
    return Call(
        target.resource,
        target.namespace,
        target.name,
        target.subresource,
        user,
        request.query.get("fieldManager") or ("" if applies else agent),
        dry_run=request.query.get("dryRun") == "All",
        force=request.query.get("force") in ("1", "true", "True"),
        content_type=request.content_type,
    )


def _body(content_type: str, text: bytes) -> Any:
    if not text:
        return {}
    try:
        return yaml.safe_load(text) if "yaml" in content_type else json.loads(text)
    except (ValueError, yaml.YAMLError) as error:
        raise bad_request(f"the object provided is unrecognized: {error}") from error


def _options(body: Any, query: dict[str, str]) -> Object:
    options: Object = dict(body) if isinstance(body, dict) else {}
    if query.get("propagationPolicy"):
        options["propagationPolicy"] = query["propagationPolicy"]
    if query.get("gracePeriodSeconds"):
        options["gracePeriodSeconds"] = int(query["gracePeriodSeconds"])
    return options


def _deleted(call: Call, item: Object, gone: bool) -> Object:
    """What is gone at once is confirmed by a Status; pods, and what still waits, by themselves."""
    if not gone or call.resource.store_key in pods.RETURNED_WHEN_DELETED:
        return item
    details = {"name": call.name, "kind": call.resource.plural, "uid": item["metadata"]["uid"]}
    if call.resource.group:
        details["group"] = call.resource.group
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
