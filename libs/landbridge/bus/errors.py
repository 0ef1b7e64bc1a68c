# ruff: noqa: N818 - kinds of failure are named for what happened
"""Everything the bus can refuse or fail with, as types, so that callers branch on kind and never on text."""


class BusError(Exception):
    """Base of all bus errors. `retryable` says whether the same call can succeed later without a change."""

    retryable = False


class Unavailable(BusError):
    """The broker did not answer in time or the connection was cut. The message may or may not be stored."""

    retryable = True


class StreamMissing(BusError):
    """No stream takes this subject (or JetStream is still starting). Run the stream declaration of the centre."""

    retryable = True


class StreamFull(BusError):
    """The stream is at its limit and refuses new messages instead of dropping old ones. Make room or raise it."""

    retryable = True


class Conflict(BusError):
    """A guard (`Nats-Expected-*`) did not hold: another writer was first. Reload and decide again."""


class TooLarge(BusError):
    """A message is above the broker's or the stream's size limit. Nothing was published."""


class PublishRefused(BusError):
    """The stream refused the message for a reason of its own; `code` is the broker's error code."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class NotPermitted(BusError):
    """This user may not publish to, or subscribe to, that subject."""


class NoResponder(BusError):
    """Nobody listens on that request subject at present."""

    retryable = True


class ConsumerMissing(BusError):
    """The durable consumer does not exist. Nothing is delivered until the centre declares it again."""

    retryable = True


class IncompatibleStream(BusError):
    """A stream or consumer exists with settings that cannot be changed in place. A person has to decide."""


class EnvelopeError(BusError):
    """A message does not follow the CloudEvents envelope."""
