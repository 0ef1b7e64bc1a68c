"""Structured logs: JSON lines for machines or coloured text for people; secrets never leave.

Log one summary line per batch, never one per message. Bind context with `structlog.contextvars`.
"""

import contextlib
import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, TextIO

import orjson
import structlog

REDACTED = "[redacted]"
_SECRET_KEY = re.compile(
    r"(?i)(passw|secret|token(?!_sha256|s$)|authorization|cookie|credential|creds$|dsn|seed|private_?key|api_?key|prompt)"
)
_SECRET_VALUE = re.compile(
    r"""(?ix)
    (?P<url>\b[a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(?=@)        # the password of a URL
    | (?P<bearer>\b(?:bearer|basic)\s+)[a-z0-9._~+/=-]{8,}        # an authorization header
    | \beyJ[a-z0-9_-]{8,}\.[a-z0-9_-]{8,}\.[a-z0-9_-]*            # a JSON web token
    | \bS[UAONCX][A-Z2-7]{54,}\b                                  # a NATS seed
    """
)
_MAX_TEXT = 4000
_SERVER_LOGGERS = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "nats", "sqlalchemy", "alembic")


def redact_text(text: str) -> str:
    """Return `text` without the passwords, tokens and seeds that can be told by their shape."""

    def shorten(match: re.Match[str]) -> str:
        return (match["url"] or match["bearer"] or "") + REDACTED

    return _SECRET_VALUE.sub(shorten, text)


def redact(value: Any) -> Any:
    """Return `value` with secrets replaced, by key and by shape, at any depth."""
    if isinstance(value, str):
        return redact_text(value if len(value) <= _MAX_TEXT else _shortened(value))
    if isinstance(value, bytes):
        return f"[{len(value)} bytes]"
    if isinstance(value, Mapping):
        return {key: REDACTED if _is_secret(key, item) else redact(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item) for item in value]
    return value


def _shortened(text: str) -> str:
    """Return the beginning and the last lines: the end of a traceback says what it was."""
    half = _MAX_TEXT // 2
    # Whole lines only: half of a secret could not be told by its shape.
    _, newline, end = text[-half:].partition("\n")
    return f"{text[:half]}…{newline}{end}"


def _is_secret(key: object, item: object) -> bool:
    return isinstance(key, str) and not isinstance(item, bool | int | float) and bool(_SECRET_KEY.search(key))


def _redact_event(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    for key, item in event.items():
        if isinstance(item, str):
            event[key] = REDACTED if key != "event" and _SECRET_KEY.search(key) else redact(item)
        elif not isinstance(item, int | float | None):
            event[key] = REDACTED if _is_secret(key, item) else redact(item)
    return event


def _json(event: Any, **_: Any) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


class Tolerant:
    """A text stream for logs: what a full disk or a reader that has gone does not take is left out, and nobody dies."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._stream.flush()

    def isatty(self) -> bool:
        return self._stream.isatty()


def configure(service: str, *, level: str = "info", form: str = "json", instance: str = "") -> None:
    """Set up logging for this process: ours and that of libraries, to standard error."""
    stream: Any = Tolerant(sys.stderr)
    common: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info if form == "json" else _leave,
        _redact_event,
    ]
    render: Any
    if form == "json":
        render = structlog.processors.JSONRenderer(serializer=_json)
    else:
        render = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(
        processors=[*common, render],
        wrapper_class=structlog.make_filtering_bound_logger(getattr(logging, level.upper())),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *common],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper() if level != "debug" else "INFO")
    for name in _SERVER_LOGGERS:
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    logging.getLogger("uvicorn.access").setLevel(logging.WARNING)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # a line for each request to another service
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(service=service, **({"instance": instance} if instance else {}))


def _leave(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return event


def get(name: str) -> Any:
    """Return a logger that tells its module as `module`. It takes on the configuration when it is first used."""
    return structlog.get_logger(module=name)
