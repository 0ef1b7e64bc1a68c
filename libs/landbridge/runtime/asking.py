"""Asking another service of the centre over NATS: one question, one answer, bounded in time."""

from typing import Final

import msgspec

from landbridge.bus import subjects
from landbridge.bus.connection import Bus
from landbridge.bus.errors import NoResponder, Unavailable
from landbridge.runtime.problems import ProblemError
from landbridge.schema.wire.request_v1 import AskReply

ASK_SECONDS: Final = 10.0
_encode: Final = msgspec.json.Encoder().encode
_reply: Final = msgspec.json.Decoder(AskReply)


async def ask(bus: Bus, service: str, kind: str, question: msgspec.Struct, timeout_s: float = ASK_SECONDS) -> AskReply:
    """Return the answer. Raises ProblemError 503 if the service is not reached, 502 if its answer cannot be read."""
    try:
        return _reply.decode(await bus.request(subjects.ask(service, kind), _encode(question), timeout_s))
    except NoResponder as error:
        detail = f"no replica of {service} is in charge right now; `landbridge status` tells how it is"
        raise ProblemError(503, "Try again", detail, headers={"Retry-After": "2"}) from error
    except Unavailable as error:
        detail = f"{service} did not answer in time: {error}"
        raise ProblemError(503, "Try again", detail, headers={"Retry-After": "2"}) from error
    except msgspec.MsgspecError as error:
        raise ProblemError(502, "Unreadable answer", f"{service} answered {kind}: {error}") from error
