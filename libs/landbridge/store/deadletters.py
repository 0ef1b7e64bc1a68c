"""Dead letters: messages that no handler could take, kept whole with the reason until an operator decides."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from landbridge.store.tx import Tx

_INSERT = """
insert into dead_letter (id, consumer, message_id, subject, type, about, headers, body, error, deliveries)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) on conflict (id) do nothing
"""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One refused message. `id` is the dead letter's own (UUIDv7), `message_id` that of the message."""

    id: str
    consumer: str
    message_id: str
    subject: str
    type: str
    about: str
    headers: Mapping[str, str]
    body: bytes
    error: str
    deliveries: int


async def keep(tx: Tx, letter: DeadLetter) -> None:
    """Write a dead letter."""
    await tx.execute(
        _INSERT,
        letter.id,
        letter.consumer,
        letter.message_id,
        letter.subject,
        letter.type,
        letter.about,
        json.dumps(dict(letter.headers)),
        letter.body,
        letter.error,
        letter.deliveries,
    )
