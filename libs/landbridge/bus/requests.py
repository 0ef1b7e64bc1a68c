"""Requests and answers over plain NATS: leases, claims and questions to an environment.

Handlers are idempotent and answer after their commit; a lost answer means that the asker asks again.
"""

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from nats.aio.msg import Msg

from landbridge.bus import subjects
from landbridge.bus.connection import Bus, BusSubscription, frame
from landbridge.bus.errors import BusError, NoResponder, Unavailable
from landbridge.bus.replies import is_no_responders

log = logging.getLogger("landbridge.bus")

Handler = Callable[[str, bytes], Awaitable[bytes]]
CONCURRENT_MAX: Final = 4096
QUERY_TIMEOUT_S: Final = 10.0


async def respond(bus: Bus, subject: str, handler: Handler, *, queue: str | None = None) -> BusSubscription:
    """Answer requests on `subject`: `handler(subject, body)` returns the answer's bytes.

    With `queue`, one member of the group gets each request. Requests are handled concurrently, so that a handler can
    batch them into one transaction. A handler that raises leaves the asker to its timeout; the error is logged.
    """
    running: set[asyncio.Task[None]] = set()

    async def answer(msg: Msg) -> None:
        try:
            reply = await handler(msg.subject, bytes(msg.data))
            if msg.reply:
                with suppress(Unavailable):  # the asker asks again
                    await bus.write(frame(msg.reply, "", "", reply))
        except Exception:  # one bad request must not end the responder
            log.exception("a request on %s failed", subjects.template(msg.subject))

    async def on_message(msg: Msg) -> None:
        while len(running) >= CONCURRENT_MAX:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        task = asyncio.create_task(answer(msg), name="respond")
        running.add(task)
        task.add_done_callback(running.discard)

    subscription = await bus.subscribe(subject, on_message, queue or "")
    await bus.settle()
    return subscription


async def query(bus: Bus, environment: str, kind: str, body: bytes, *, timeout_s: float = QUERY_TIMEOUT_S) -> bytes:
    """Ask an environment, through its own answer subjects. Raises NoResponder if its dispatcher is not connected.

    The answer comes on `lb.v1.answer.<environment>.<random>`: only that environment's account can publish there.
    """
    reply = subjects.answer(environment, secrets.token_hex(16))
    future: asyncio.Future[Msg] = asyncio.get_running_loop().create_future()

    async def on_answer(msg: Msg) -> None:
        if not future.done():
            future.set_result(msg)

    subscription = await bus.subscribe(reply, on_answer)
    try:
        await bus.write(frame(subjects.query(environment, kind), reply, "", body))
        message = await asyncio.wait_for(future, timeout_s)
    except TimeoutError:
        raise Unavailable(f"environment {environment} did not answer {kind} within {timeout_s:g} s") from None
    finally:
        await subscription.close()
    if is_no_responders(message):
        raise NoResponder(f"environment {environment} is not connected: nobody answers {kind}")
    return bytes(message.data)


__all__ = ["BusError", "query", "respond"]
