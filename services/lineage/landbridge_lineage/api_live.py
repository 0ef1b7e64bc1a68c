"""Routes that ask an environment: logs and outputs of an attempt. They need a role that fits the data's class."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from fastapi import Depends, FastAPI, Query, Response
from fastapi.responses import StreamingResponse

from landbridge.runtime.auth import Principal, Role
from landbridge.runtime.ids import new_id
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.request_v1 import QueryReply
from landbridge_lineage import reads, views
from landbridge_lineage.api import visible
from landbridge_lineage.attempts import Placement, placements
from landbridge_lineage.live import CHUNK_BYTES, Ask, Live, Place
from landbridge_lineage.state import State

if TYPE_CHECKING:
    from landbridge_lineage.service import LineageService

# Whose logs and outputs a mere viewer may not read, although he may see that the operation exists.
_SENSITIVE: Final = frozenset({"confidential", "restricted"})
_OCTETS: Final = "application/octet-stream"

Offset = Annotated[int, Query(ge=0)]


def add_live_routes(app: FastAPI, service: "LineageService") -> None:
    """Add the routes."""
    Viewer = Annotated[Principal, Depends(service.auth.require(Role.VIEWER))]  # noqa: N806 - a type

    @app.get("/v1/operations/{operation}/logs")
    async def logs(
        principal: Viewer,
        operation: str,
        offset: Offset = 0,
        tail: Offset = 0,
        attempt: Offset = 0,
        stream: str = "",
    ) -> dict[str, Any]:
        """Return a piece of the log: {text, nextOffset, end}. `tail` counts bytes from the end instead of an offset."""
        state, place, _ = await _at(service, principal, operation, attempt)
        reply = await _ask(service, principal, state, place, Ask("logs", stream, offset, CHUNK_BYTES, tail))
        return {
            "operation": state.operation,
            "environment": place.environment,
            "attempt": place.attempt,
            "found": reply.found,
            "text": reply.data.decode(errors="replace"),
            "nextOffset": reply.next_offset,
            "end": reply.end,
            "message": reply.message,
        }

    @app.get("/v1/operations/{operation}/outputs")
    async def outputs(principal: Viewer, operation: str, attempt: Offset = 0, files: bool = False) -> dict[str, Any]:
        """Return an attempt's outputs by name: as recorded at its end, or as its environment sees them now.

        While it runs, and always with `files`, the environment is asked which files each has.
        """
        state, place, placed = await _at(service, principal, operation, attempt)
        ended = placed.finished_at is not None
        answer: dict[str, Any] = {
            "operation": state.operation,
            "environment": place.environment,
            "attempt": place.attempt,
            "live": not ended,
            "outputs": msgspec.to_builtins(placed.outputs),
        }
        if files or not ended:
            reply = await _ask(service, principal, state, place, Ask("outputs"))
            answer |= {"files": _listed(reply), "message": reply.message}
        if not ended:
            answer["outputs"] = {name: _seen(each) for name, each in answer["files"].items()}
        return answer

    @app.get("/v1/operations/{operation}/outputs/{name:path}")
    async def output(
        principal: Viewer,
        operation: str,
        name: str,
        offset: Annotated[int | None, Query(ge=0)] = None,
        attempt: Offset = 0,
    ) -> Response:
        """Return the bytes of an output: all, or one piece from `offset`, with where the next one starts."""
        state, place, _ = await _at(service, principal, operation, attempt)
        first = await _ask(service, principal, state, place, Ask("output-chunk", name, offset or 0))
        if not first.found:
            detail = first.message or f"environment {place.environment} has no output {name!r} of this attempt"
            raise ProblemError(404, "Not found", detail)
        if offset is not None:
            headers = {"Landbridge-Next-Offset": str(first.next_offset), "Landbridge-End": str(first.end).lower()}
            return Response(first.data, media_type=_OCTETS, headers=headers)
        return StreamingResponse(_rest(service, principal, state, place, name, first), media_type=_OCTETS)


async def _rest(
    service: "LineageService", principal: Principal, state: State, place: Place, name: str, first: QueryReply
) -> AsyncIterator[bytes]:
    """Yield an output piece by piece; one that stops short ends the connection, so that nobody takes it for whole."""
    reply = first
    while True:
        yield reply.data
        if reply.end:
            return
        following = await _ask(service, principal, state, place, Ask("output-chunk", name, reply.next_offset))
        if not following.found or (not following.end and following.next_offset <= reply.next_offset):
            raise ConnectionError(f"output {name} of {state.operation} ended before its end")
        reply = following


async def _at(
    service: "LineageService", principal: Principal, operation: str, attempt: int
) -> tuple[State, Place, Placement]:
    """Return an operation and where its attempt (0: the latest) is. Raises ProblemError 403, 404."""
    state = await visible(service, principal, operation)
    known = await reads.facts(service.database, state.operation)
    data_class = str(views.effective(known).get("spec", {}).get("dataClass", ""))
    if data_class in _SENSITIVE and not principal.may(Role.SUBMITTER, state.project):
        detail = f"what it wrote is {data_class}: reading it needs the role submitter in project {state.project}"
        raise ProblemError(403, "Not allowed", detail)
    started = [each for each in placements(known) if each.started_at is not None]
    fitting = [each for each in started if not attempt or each.attempt == attempt]
    if not fitting:
        what = f"no attempt {attempt}" if attempt else "nothing has started yet"
        raise ProblemError(404, "Not found", f"operation {state.operation}: {what}; it is {state.phase}")
    placed = fitting[-1]
    return state, Place(placed.environment, placed.epoch, placed.attempt), placed


async def _ask(service: "LineageService", principal: Principal, state: State, place: Place, ask: Ask) -> QueryReply:
    live = Live(service.bus, service.database)
    return await live.ask(principal, state, place, ask, audit_id=new_id(), now=service.clock.wall())


def _listed(reply: QueryReply) -> dict[str, list[dict[str, Any]]]:
    """Return an environment's list of files by output. Raises ProblemError 502 for another shape."""
    if not reply.json:
        return {}
    try:
        return msgspec.json.decode(reply.json, type=_Listing).outputs
    except msgspec.MsgspecError as error:
        raise ProblemError(502, "Unreadable answer", f"list of outputs: {error}") from error


class _Listing(msgspec.Struct):
    """What an environment answers about the outputs of an attempt."""

    outputs: dict[str, list[dict[str, Any]]] = {}


def _seen(files: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an output as it is now, in the words of a recorded one."""
    return {"bytes": sum(int(each.get("bytes") or 0) for each in files), "exists": bool(files)}
