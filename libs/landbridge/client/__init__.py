"""The Python SDK: submit operations, follow them, ask why.

    from landbridge.client import connect

    async with connect("http://127.0.0.1:8080", token=token) as landbridge:
        submitted = await landbridge.submit(Path("operation.yaml"))
        operation = await landbridge.wait(submitted.id)

`landbridge.client.sync` has the same without async, `landbridge.client.workload` is for the code that runs. Importing
this package loads nothing: what is used is loaded when it is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from landbridge.client.connecting import connect
    from landbridge.client.errors import (
        AmbiguousError,
        BusyError,
        ConflictError,
        InvalidError,
        LandbridgeError,
        NotAllowedError,
        NotFoundError,
        NotSignedInError,
        ServerError,
        UnreachableError,
        UnsupportedError,
        WaitTimeoutError,
    )
    from landbridge.client.http_client import HttpClient
    from landbridge.client.models import Event, Operation, Output, Problem, Refused, Submission, Submitted
    from landbridge.client.nats_client import NatsClient

_PLACES = {
    "connect": "connecting",
    "HttpClient": "http_client",
    "NatsClient": "nats_client",
    **dict.fromkeys(("Event", "Operation", "Output", "Problem", "Refused", "Submission", "Submitted"), "models"),
    **dict.fromkeys(
        (
            *("AmbiguousError", "BusyError", "ConflictError", "InvalidError", "LandbridgeError", "NotAllowedError"),
            *("NotFoundError", "NotSignedInError", "ServerError", "UnreachableError", "UnsupportedError"),
            "WaitTimeoutError",
        ),
        "errors",
    ),
}

__all__ = [
    "AmbiguousError",
    "BusyError",
    "ConflictError",
    "Event",
    "HttpClient",
    "InvalidError",
    "LandbridgeError",
    "NatsClient",
    "NotAllowedError",
    "NotFoundError",
    "NotSignedInError",
    "Operation",
    "Output",
    "Problem",
    "Refused",
    "ServerError",
    "Submission",
    "Submitted",
    "UnreachableError",
    "UnsupportedError",
    "WaitTimeoutError",
    "connect",
]


def __getattr__(name: str) -> Any:
    if name in _PLACES:
        return getattr(import_module(f"landbridge.client.{_PLACES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
