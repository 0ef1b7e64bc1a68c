"""Dead letters in the making: what a message that nobody could handle becomes."""

from landbridge.bus.envelope import Inbound, Outbound
from landbridge.bus.subjects import deadletter
from landbridge.runtime.ids import new_id
from landbridge.store.deadletters import DeadLetter

_REASON_LENGTH = 500


def reason_of(error: BaseException) -> str:
    """Return an error as one short line."""
    return f"{type(error).__name__}: {error}".replace("\n", " ").replace("\r", " ")[:_REASON_LENGTH]


def make_letter(consumer: str, message: Inbound, reason: str) -> DeadLetter:
    """Return the row that keeps a message whole."""
    return DeadLetter(
        new_id(),
        consumer,
        _clean(message.id),
        message.subject,
        _clean(message.type),
        _clean(message.about),
        {_clean(name): _clean(value) for name, value in message.headers.items()},
        message.body,
        _clean(reason),
        message.deliveries,
    )


def _clean(text: str) -> str:
    """Return `text` without what Postgres takes in no text column: NUL and lone surrogates."""
    return text.replace("\x00", "�").encode("utf-8", "replace").decode()


def letter_event(service: str, letter: DeadLetter) -> Outbound:
    """Return the dead letter as an event: the message's own headers and body, with what happened to it."""
    dropped = ("ce-", "nats-", "traceparent")
    kept = [(name, value) for name, value in letter.headers.items() if not name.lower().startswith(dropped)]
    told = [
        ("lb-error", letter.error),
        ("lb-subject", letter.subject),
        ("lb-consumer", letter.consumer),
        ("lb-id", letter.message_id),
        ("lb-source", letter.headers.get("ce-source", "")),
        ("lb-deliveries", str(letter.deliveries)),
    ]
    return Outbound(
        deadletter(service),
        letter.type or "io.landbridge.unreadable",
        letter.body,
        letter.about,
        id=letter.id,
        extra=tuple(kept + told),
    )
