"""The SDK over HTTP: everything that Landbridge offers, through the one address of an instance."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote
from uuid import UUID

import httpx2

from landbridge.client.errors import AmbiguousError, NotFoundError, WaitTimeoutError
from landbridge.client.models import (
    Event,
    LogChunk,
    Operation,
    Output,
    Problem,
    Refused,
    Source,
    Submission,
    Submitted,
)
from landbridge.client.sources import YAML, content_type, document_bytes, new_key, stream
from landbridge.client.transport import Transport

BULK_MAX = 500
_POLL_S = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
_SEARCH_MAX = 5000
_PAGE = 500


class HttpClient:
    """Methods take and return plain values; ids may be shortened as long as they fit one operation."""

    def __init__(
        self,
        url: str,
        token: str = "",
        *,
        timeout_s: float = 30.0,
        retry_s: float = 15.0,
        http: "httpx2.AsyncBaseTransport | None" = None,
    ) -> None:
        self.transport = Transport(url, token, timeout_s=timeout_s, retry_s=retry_s, http=http)

    async def open(self) -> Self:
        """Nothing to do: connections are opened when they are needed."""
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.transport.close()

    # -- submitting -----------------------------------------------------------------------------------------------

    async def submit(self, document: Source, *, idempotency_key: str = "") -> Submitted:
        """Submit one operation. The same key and document give the same operation, however often they are sent.

        Raises InvalidError with every problem, ConflictError for a key that was used for another document.
        """
        body, key = document_bytes(document), idempotency_key or new_key()
        headers = {"Content-Type": content_type(body), "Idempotency-Key": key}
        answer = await self.transport.json("POST", "/v1/operations", repeatable=True, content=body, headers=headers)
        return _submitted(answer, key)

    async def submit_many(self, items: Sequence[Submission | Source]) -> list[Submitted | Refused]:
        """Submit many; one answer for each, in their order. A refused one does not keep the others back."""
        keyed = [item if isinstance(item, Submission) else Submission(item) for item in items]
        keyed = [Submission(item.document, item.idempotency_key or new_key()) for item in keyed]
        results: list[Submitted | Refused] = []
        for start in range(0, len(keyed), BULK_MAX):
            part = keyed[start : start + BULK_MAX]
            rows = [
                {"document": document_bytes(item.document).decode(), "idempotencyKey": item.idempotency_key}
                for item in part
            ]
            answer = await self.transport.json("POST", "/v1/operations:bulk", repeatable=True, json={"items": rows})
            for item, row in zip(part, answer["items"], strict=True):
                results.append(_bulk_result(row, item.idempotency_key))
        return results

    async def validate(self, document: Source) -> list[Problem]:
        """Return everything wrong with a document as the server sees it; nothing is stored."""
        return [Problem.of(item) for item in (await self.check(document)).get("problems", ())]

    async def check(self, document: Source) -> dict[str, Any]:
        """Return what would become of a document; nothing is stored.

        `problems` has everything wrong with it. For an operation without any, `effective` is what would be accepted,
        with presets, component, project and queue applied, and `provenance` the origin of each value by its path.
        """
        body = document_bytes(document)
        headers = {"Content-Type": content_type(body)}
        answer = await self.transport.json("POST", "/v1/validate", repeatable=True, content=body, headers=headers)
        return dict(answer or {})

    async def plan(self, document: Source) -> dict[str, Any]:
        """Return where an operation would run and when, by what is known now; nothing is stored.

        Every environment with verdict, violations and scores, the likely one, the place in the queue, a forecast, and
        where none can run it the nearest with the one change that would help. Raises InvalidError with every problem.
        """
        body = document_bytes(document)
        headers = {"Content-Type": content_type(body)}
        answer = await self.transport.json("POST", "/v1/plan", repeatable=True, content=body, headers=headers)
        return dict(answer)

    async def plan_together(self, documents: Sequence[Source]) -> list[dict[str, Any]]:
        """Return where operations would run and when if all were submitted now, one behind the other.

        As `plan` has it, one answer for each; one that would be refused has its `problems` instead, and the others
        are planned without it.
        """
        if len(documents) == 1:
            return [await self.plan(documents[0])]
        body = stream([document_bytes(document) for document in documents])
        headers = {"Content-Type": YAML}
        answer = await self.transport.json("POST", "/v1/plan", repeatable=True, content=body, headers=headers)
        return list(answer["items"])

    async def retry(self, operation: str) -> Submitted:
        """Submit an ended operation once more; the new one says which it repeats."""
        path = f"/v1/operations/{await self.resolve(operation)}/retry"
        key = new_key()
        answer = await self.transport.json("POST", path, repeatable=True, headers={"Idempotency-Key": key})
        return _submitted(answer, key)

    async def cancel(self, operation: str, reason: str = "") -> None:
        """Ask to stop an operation. It is cancelled once its environment has proven the stop."""
        path = f"/v1/operations/{await self.resolve(operation)}/cancel"
        await self.transport.json("POST", path, repeatable=True, json={"reason": reason})

    # -- reading --------------------------------------------------------------------------------------------------

    async def get(self, operation: str) -> Operation:
        """Return one operation. Raises NotFoundError."""
        return Operation.of(await self.transport.json("GET", f"/v1/operations/{await self.resolve(operation)}"))

    async def operations(self, *, limit: int = 100, **filters: str) -> list[Operation]:
        """Return the newest operations; filters: project, queue, environment, phase, since."""
        found: list[Operation] = []
        cursor = ""
        while len(found) < limit:
            wanted = {name: value for name, value in filters.items() if value}
            page = {**wanted, "limit": str(min(_PAGE, limit - len(found))), **({"cursor": cursor} if cursor else {})}
            answer = await self.transport.json("GET", "/v1/operations", params=page)
            found += [Operation.of(item) for item in answer["items"]]
            cursor = str(answer.get("cursor") or "")
            if not cursor or not answer["items"]:
                break
        return found[:limit]

    async def resolve(self, prefix: str) -> str:
        """Return the full id for the beginning of one. Raises NotFoundError, AmbiguousError."""
        try:
            return str(UUID(prefix))
        except ValueError:
            pass
        if prefix:
            every = await self.operations(limit=_SEARCH_MAX)
            fitting = [item.id for item in every if item.id.startswith(prefix.lower())]
            if len(fitting) == 1:
                return fitting[0]
            if fitting:
                raise AmbiguousError(prefix, fitting[:3])
        raise NotFoundError(
            f"operation {prefix!r}: not found; expected an id or its beginning, list them with `get operations`",
            status=404,
        )

    async def events(self, operation: str) -> list[Event]:
        """Return what happened so far, in order."""
        return await self._events(await self.resolve(operation))

    async def _events(self, operation: str) -> list[Event]:
        answer = await self.transport.json("GET", f"/v1/operations/{operation}/events")
        return [Event.of(item) for item in answer["items"]]

    async def follow(self, operation: str) -> AsyncIterator[Event]:
        """Yield what happened and then what happens, ending with the final event. Survives restarts of the server."""
        operation = await self.resolve(operation)
        known: set[str] = set()
        pause = 0
        while True:
            fresh = [event for event in await self._events(operation) if event.id not in known]
            for event in fresh:
                known.add(event.id)
                yield event
            if any(event.final for event in fresh):
                return
            pause = 0 if fresh else min(pause + 1, len(_POLL_S) - 1)
            await asyncio.sleep(_POLL_S[pause])

    async def wait(
        self, operation: str, *, timeout_s: float | None = None, stop_when_unplaceable: bool = False
    ) -> Operation:
        """Return the operation once it has ended, or is known to be unplaceable if asked so.

        Raises WaitTimeoutError after `timeout_s`; the operation goes on.
        """
        operation = await self.resolve(operation)
        started, pause = time.monotonic(), 0
        while True:
            try:
                found = await self.get(operation)
                if found.finished or (stop_when_unplaceable and found.unplaceable):
                    return found
            except NotFoundError:
                # Accepted a moment ago: the read side is behind by some milliseconds.
                found = Operation(operation, phase="accepted")
                if time.monotonic() - started > 10.0:
                    raise
            left_s = None if timeout_s is None else started + timeout_s - time.monotonic()
            if left_s is not None and left_s <= 0:
                raise WaitTimeoutError(f"operation {operation}: still {found.phase} after {timeout_s:g} s; it goes on")
            await asyncio.sleep(_POLL_S[pause] if left_s is None else min(_POLL_S[pause], left_s))
            pause = min(pause + 1, len(_POLL_S) - 1)

    async def explain(self, operation: str) -> dict[str, Any]:
        """Return the decision: every environment's verdict rule by rule, scores, the route."""
        path = f"/v1/operations/{await self.resolve(operation)}/explanation"
        answer: dict[str, Any] = await self.transport.json("GET", path)
        return answer

    async def replay(self, operation: str, *, round_: int = 0) -> dict[str, Any]:
        """Return a round's decision (0: the latest), made again from its recorded inputs and compared."""
        path = f"/v1/operations/{await self.resolve(operation)}/replay"
        params = {"round": str(round_)} if round_ else None
        return dict(await self.transport.json("GET", path, params=params))

    async def logs(self, operation: str, *, offset: int = 0, tail: int = 0) -> LogChunk:
        """Return a piece of the log, read live from the environment and never stored in the centre."""
        return await self._logs(await self.resolve(operation), offset, tail)

    async def _logs(self, operation: str, offset: int, tail: int) -> LogChunk:
        params = {"offset": str(offset)} | ({"tail": str(tail)} if tail else {})
        answer = await self.transport.json("GET", f"/v1/operations/{operation}/logs", params=params)
        return LogChunk(
            text=str(answer.get("text") or ""),
            next_offset=int(answer.get("nextOffset") or 0),
            end=bool(answer.get("end")),
            message=str(answer.get("message") or ""),
        )

    async def follow_logs(self, operation: str, *, offset: int = 0) -> AsyncIterator[str]:
        """Yield the log as it grows, until the attempt has ended and all was read."""
        operation = await self.resolve(operation)
        pause = 0
        while True:
            chunk = await self._logs(operation, offset, 0)
            if chunk.text:
                yield chunk.text
            progressed, offset = chunk.next_offset > offset, max(offset, chunk.next_offset)
            if chunk.end or (not progressed and (await self.get(operation)).finished):
                return
            pause = 0 if progressed else min(pause + 1, len(_POLL_S) - 1)
            await asyncio.sleep(0 if progressed else _POLL_S[pause])

    async def outputs(self, operation: str) -> list[Output]:
        """Return the declared outputs of the latest attempt."""
        answer = await self.transport.json("GET", f"/v1/operations/{await self.resolve(operation)}/outputs")
        return [Output.of(name, value) for name, value in sorted((answer.get("outputs") or {}).items())]

    async def output_files(self, operation: str) -> dict[str, list[str]]:
        """Return the files of each output by their paths in it; a file by itself has an empty path."""
        path = f"/v1/operations/{await self.resolve(operation)}/outputs"
        answer = await self.transport.json("GET", path, params={"files": "true"})
        return {name: [str(item["path"]) for item in files] for name, files in (answer.get("files") or {}).items()}

    async def output_bytes(self, operation: str, name: str) -> AsyncIterator[bytes]:
        """Yield the content of an output, or of one file in it (`output/path`)."""
        path = f"/v1/operations/{await self.resolve(operation)}/outputs/{quote(name)}"
        async with self.transport.stream(path) as response:
            async for piece in response.aiter_bytes():
                yield piece

    # -- documents and environments -------------------------------------------------------------------------------

    async def apply(self, document: Source, *, draft: bool = False) -> dict[str, Any]:
        """Store a document of any kind but Operation; what changed. Raises InvalidError with every problem.

        `draft` is for environment contracts: the version is kept, shown and probed, and not used.
        """
        body = document_bytes(document)
        headers = {"Content-Type": content_type(body)}
        path = "/v1/documents?draft=true" if draft else "/v1/documents"
        answer = await self.transport.json("POST", path, repeatable=True, content=body, headers=headers)
        return dict(answer or {})

    async def documents(self, kind: str) -> list[dict[str, Any]]:
        """Return all documents of a kind."""
        answer = await self.transport.json("GET", f"/v1/documents/{quote(kind, safe='')}")
        return list(answer["items"])

    async def document(self, kind: str, name: str) -> dict[str, Any]:
        """Return one document. Raises NotFoundError."""
        path = f"/v1/documents/{quote(kind, safe='')}/{quote(name, safe='')}"
        return dict(await self.transport.json("GET", path))

    async def delete(self, kind: str, name: str) -> None:
        """Remove a document. Raises ConflictError while others need it."""
        await self.transport.json("DELETE", f"/v1/documents/{quote(kind, safe='')}/{quote(name, safe='')}")

    async def environments(self) -> list[dict[str, Any]]:
        """Return all environments with link, control and evidence in short."""
        return list((await self.transport.json("GET", "/v1/environments"))["items"])

    async def environment(self, name: str) -> dict[str, Any]:
        """Return one environment. Raises NotFoundError."""
        return dict(await self.transport.json("GET", f"/v1/environments/{quote(name, safe='')}"))

    async def control(self, environment: str, action: str, reason: str = "") -> dict[str, Any]:
        """Do `pause`, `resume`, `drain` or `verify` with an environment."""
        path = f"/v1/environments/{quote(environment, safe='')}/{action}"
        return dict(await self.transport.json("POST", path, repeatable=True, json={"reason": reason}) or {})

    async def join(self, environment: str, *, replace: bool = False, leaf: bool = False) -> dict[str, Any]:
        """Make credentials for an environment's dispatcher; they are shown once. `replace` ends earlier ones.

        `leaf`: for a site with its own NATS; then they are that NATS's, and the dispatcher needs none of the centre.
        """
        path = f"/v1/environments/{quote(environment, safe='')}/join"
        body = {"replace": replace, **({"leaf": True} if leaf else {})}
        return dict(await self.transport.json("POST", path, json=body))

    async def create_access(
        self, name: str, project: str, role: str = "submitter", *, replace: bool = False
    ) -> dict[str, Any]:
        """Make a token and NATS credentials for an application; they are shown once. `replace` ends earlier ones."""
        body = {"name": name, "project": project, "role": role, "replace": replace}
        return dict(await self.transport.json("POST", "/v1/access", json=body))

    async def access(self) -> list[dict[str, Any]]:
        """Return who has access: name, role, projects."""
        return list((await self.transport.json("GET", "/v1/access"))["items"])

    async def revoke_access(self, name: str) -> None:
        """End a token and its NATS credentials. Raises NotFoundError."""
        await self.transport.json("DELETE", f"/v1/access/{quote(name, safe='')}")

    async def decide(self, path: str, body: Mapping[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """Make a decision that only people can make; a dry run tells what it would do and changes nothing."""
        params = {"dryRun": "true"} if dry_run else None
        return dict(await self.transport.json("POST", path, params=params, json=dict(body)))

    async def read(self, path: str, params: Mapping[str, str] | None = None) -> Any:
        """GET any other path below the address, such as `/v1/overview`, `/v1/queues` or `/v1/refusals`."""
        return await self.transport.json("GET", path, params=params)


def _submitted(answer: Mapping[str, Any], key: str) -> Submitted:
    return Submitted(
        id=str(answer["operation"]),
        phase=str(answer.get("phase") or "accepted"),
        existing=bool(answer.get("existing")),
        idempotency_key=key,
    )


def _bulk_result(row: Mapping[str, Any], key: str) -> Submitted | Refused:
    if row.get("operation") and int(row.get("status") or 200) < 300:
        return _submitted(row, key)
    problems = tuple(Problem.of(item) for item in row.get("problems") or ())
    message = ": ".join(str(row[name]) for name in ("title", "detail") if row.get(name)) or "refused"
    conflict = str(row.get("operation") or "")
    return Refused(message, problems, int(row.get("status") or 422), conflict)
