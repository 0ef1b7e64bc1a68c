"""The two ways in which a handler tells the loop that messages could not be handled."""

from collections.abc import Iterable


class HandlerFailure(Exception):  # noqa: N818 - the names tell the two apart where they are raised
    """Base of both. `offenders` holds ids of the messages at fault, if the handler knows them: it spares bisecting."""

    def __init__(self, message: str, *, offenders: Iterable[str] = ()) -> None:
        super().__init__(message)
        self.offenders = frozenset(offenders)


class PermanentFailure(HandlerFailure):
    """The message can never be handled: it is dead-lettered, the others of its batch go on."""


class TransientFailure(HandlerFailure):
    """The message can be handled later: it is delivered again after `retry_after_s` seconds.

    With None the delay grows with the number of deliveries: 1, 5, 30, 120 seconds.
    """

    def __init__(
        self, retry_after_s: float | None = None, message: str = "try again later", *, offenders: Iterable[str] = ()
    ) -> None:
        super().__init__(message, offenders=offenders)
        self.retry_after_s = retry_after_s
