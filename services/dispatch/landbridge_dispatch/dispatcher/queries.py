"""Answers to the centre's questions about what is here: logs, outputs, live detail. Nothing is pushed."""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from landbridge.bus import subjects
from landbridge.runtime import logs
from landbridge.schema.wire.request_v1 import QueryReply, QueryRequest
from landbridge_dispatch.dispatcher.wire import from_wire
from landbridge_dispatch.executors.protocol import Chunk, Executor, SlotKey, SlotView

log = logs.get(__name__)

CHUNK_DEFAULT: Final = 64 * 1024
CHUNK_MAX: Final = 512 * 1024
_request: Final = msgspec.json.Decoder(QueryRequest)
_encode: Final = msgspec.json.Encoder().encode


class Queries:
    """Answers `lb.v1.query.<environment>.<kind>`."""

    def __init__(self, executor: Executor, find: Callable[[str], Awaitable[SlotView | None]]) -> None:
        self._executor = executor
        self._find = find
        self._kinds: dict[str, Callable[[SlotKey, QueryRequest], Awaitable[QueryReply]]] = {
            "logs": self._logs,
            "outputs": self._outputs,
            "output-chunk": self._output_chunk,
            "detail": self._detail,
        }

    async def answer(self, subject: str, body: bytes) -> bytes:
        """Answer one question; whatever is wrong with it is said in the answer."""
        kind = subjects.token(subject, 4)
        handler = self._kinds.get(kind)
        try:
            request = _request.decode(body)
        except msgspec.MsgspecError as error:
            return _encode(QueryReply(end=True, message=f"the question cannot be read: {error}"))
        if handler is None:
            return _encode(QueryReply(end=True, message=f"this dispatcher knows no question {kind!r}"))
        key = await self._key(request)
        if key is None:
            return _encode(QueryReply(end=True, message="this environment holds nothing of that operation"))
        try:
            return _encode(await handler(key, request))
        except OSError as error:
            log.warning("query_failed", kind=kind, operation=request.operation, error=str(error))
            return _encode(QueryReply(end=True, message=f"it cannot be read just now: {error.strerror}"))

    async def _key(self, request: QueryRequest) -> SlotKey | None:
        if request.epoch is not None:
            return SlotKey(request.operation, from_wire(request.epoch))
        view = await self._find(request.operation)
        return None if view is None else view.key

    async def _logs(self, key: SlotKey, request: QueryRequest) -> QueryReply:
        limit = min(request.limit or CHUNK_DEFAULT, CHUNK_MAX)
        tail = min(request.tail, CHUNK_MAX)
        return _chunk(await self._executor.logs(key, offset=request.offset, limit=limit, tail=tail), "no log of it")

    async def _output_chunk(self, key: SlotKey, request: QueryRequest) -> QueryReply:
        limit = min(request.limit or CHUNK_DEFAULT, CHUNK_MAX)
        chunk = await self._executor.output_chunk(key, request.name, offset=request.offset, limit=limit)
        if chunk is None and "/" not in request.name:
            # An output of one file is known by the output's name alone.
            listed = (await self._executor.outputs(key) or {}).get(request.name, [])
            if len(listed) == 1:
                name = f"{request.name}/{listed[0].path}"
                chunk = await self._executor.output_chunk(key, name, offset=request.offset, limit=limit)
            elif listed:
                names = ", ".join(f"{request.name}/{file.path}" for file in listed[:20])
                return QueryReply(end=True, message=f"output {request.name} has several files; ask for one of {names}")
        return _chunk(chunk, f"no output {request.name!r}")

    async def _outputs(self, key: SlotKey, _request: QueryRequest) -> QueryReply:
        outputs = await self._executor.outputs(key)
        if outputs is None:
            return QueryReply(end=True, message="this environment holds nothing of that attempt")
        listed = {name: [{"path": file.path, "bytes": file.bytes} for file in each] for name, each in outputs.items()}
        return QueryReply(found=True, end=True, json=_encode({"outputs": listed}))

    async def _detail(self, key: SlotKey, _request: QueryRequest) -> QueryReply:
        view = await self._executor.look(key)
        if view is None:
            return QueryReply(end=True, message="this environment holds nothing of that attempt")
        return QueryReply(found=True, end=True, json=_encode(describe(view)))


def describe(view: SlotView) -> dict[str, object]:
    """Return a slot for people."""
    epoch = f"{view.epoch.generation}.{view.epoch.counter}"
    return {
        "operation": view.operation,
        "epoch": epoch,
        "project": view.project,
        "state": view.phase.value,
        "term": view.term,
        "reason": view.reason,
        "stopping": view.stopping,
        "policy": view.policy.policy.value,
        "settled": view.settled_term > 0,
        "report": view.report,
    }


def _chunk(chunk: Chunk | None, missing: str) -> QueryReply:
    if chunk is None:
        return QueryReply(end=True, message=f"this environment keeps {missing}")
    return QueryReply(found=True, data=chunk.data, next_offset=chunk.next_offset, end=chunk.end)
