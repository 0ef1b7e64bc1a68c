"""AsyncAPI 3 documents of what a service receives, made by FastStream from our own table of subscriptions.

Consumers go through `landbridge.bus.consume`; this describes their table and runs nothing.
"""

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from faststream.nats import JStream, NatsBroker, PullSub
from faststream.specification import AsyncAPI

SCHEMA_VERSION = "3.0.0"


@dataclass(frozen=True, slots=True)
class Received:
    """One kind of message that a service receives: on which subject of which stream, through which durable.

    Without a `model` it may be any message, such as a dead letter.
    """

    title: str
    stream: str
    durable: str
    subject: str
    model: type[Any] | None
    batch: int


def document(service: str, version: str, receives: Sequence[Received]) -> str:
    """Return a service's AsyncAPI document as indented JSON. Nothing is connected."""
    broker = NatsBroker("nats://localhost:4222")
    for each in receives:
        subscriber = broker.subscriber(
            each.subject,
            durable=each.durable,
            stream=JStream(each.stream, declare=False),
            pull_sub=PullSub(batch_size=each.batch),
            title=each.title,
            description=f"{_about(each.model)} Stream {each.stream}, durable {each.durable}.",
        )
        subscriber(_handler(each.model or Any))
    title = f"Landbridge {service}"
    description = "CloudEvents 1.0 in binary mode: ce- headers, the body is the payload as JSON."
    specification: Any = AsyncAPI(
        broker, title=title, version=version, description=description, schema_version=SCHEMA_VERSION
    )
    content = json.loads(specification.to_specification().to_json())
    return json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _about(model: type[Any] | None) -> str:
    # Cleaned, not as it stands: whether docstrings keep their indentation depends on the version of Python.
    return (inspect.getdoc(model) or "") if model is not None else "Any message, as it was."


def _handler(model: Any) -> Callable[..., Any]:
    """Return a handler whose only purpose is its annotation, which FastStream turns into the payload's schema."""

    async def receive(message: Any) -> None:
        raise NotImplementedError

    receive.__annotations__ = {"message": model, "return": None}
    return receive
