"""What can go wrong, one class each. The text says what was expected, what was found and what to do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from landbridge.client.models import Problem


class LandbridgeError(Exception):
    """Base of everything that the SDK raises."""


class UnreachableError(LandbridgeError):
    """Nobody answers at the address, also after retries."""


class WaitTimeoutError(LandbridgeError):
    """What was waited for did not happen in time; the operation goes on."""


class UnsupportedError(LandbridgeError):
    """This kind of connection cannot do that."""


class RequestError(LandbridgeError):
    """The server refused a request.

    `status` is the HTTP status, `operation` the one that a conflict is with.
    """

    def __init__(
        self, message: str, *, status: int = 0, problems: "Sequence[Problem]" = (), operation: str = ""
    ) -> None:
        super().__init__(message)
        self.status = status
        self.operation = operation
        self.problems = tuple(problems)


class NotSignedInError(RequestError):
    """The token is missing or not known there."""


class NotAllowedError(RequestError):
    """The caller's role or projects do not suffice."""


class NotFoundError(RequestError):
    """There is no such thing, or the caller may not know of it."""


class ConflictError(RequestError):
    """The idempotency key was used for another document, or the state does not allow it."""


class InvalidError(RequestError):
    """The document was refused; `problems` has everything that is wrong with it."""


class BusyError(RequestError):
    """The server asked to come back later, also after retries."""


class ServerError(RequestError):
    """The server failed."""


class AmbiguousError(LandbridgeError):
    """A shortened id fits several operations; `candidates` are some of them."""

    def __init__(self, prefix: str, candidates: Sequence[str]) -> None:
        super().__init__(f"operation {prefix}: fits several ({', '.join(candidates)}); give more of the id")
        self.candidates = tuple(candidates)
