"""Logs: JSON lines, context, and no secret in any of them."""

import errno
import io
import json
import logging
import os
from collections.abc import Iterator

import pytest
import structlog

from landbridge.runtime import logs
from landbridge.runtime.logs import REDACTED, redact, redact_text

SECRETS = [
    "postgresql://landbridge:hunter2@127.0.0.1:5432/landbridge",
    "Bearer lb_hunter2hunter2hunter2",
    "eyJhbGciOiJlZDI1NTE5In0.eyJodW50ZXIyIjoxfQ.hunter2",
    "SUACHUNTER2HUNTER2HUNTER2HUNTER2HUNTER2HUNTER2HUNTER2HUNTER2HUNTE",
]


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    out = io.StringIO()
    monkeypatch.setattr("sys.stderr", out)
    handlers = logging.getLogger().handlers[:]
    logs.configure("intake", level="info", form="json")
    yield out
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
    logging.getLogger().handlers[:] = handlers


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_told_by_their_shape(secret: str) -> None:
    text = redact_text(f"could not connect: {secret} refused")
    assert "hunter2" not in text.lower()
    assert REDACTED in text
    assert text.endswith("refused")


def test_the_host_of_a_url_stays_readable() -> None:
    assert redact_text(SECRETS[0]) == f"postgresql://landbridge:{REDACTED}@127.0.0.1:5432/landbridge"


def test_secrets_are_told_by_their_key_at_any_depth() -> None:
    cleaned = redact({"a": [{"password": "x", "apiKey": "y", "tokens": 3}], "admin_token": "z", "name": "n"})
    assert cleaned == {
        "a": [{"password": REDACTED, "apiKey": REDACTED, "tokens": 3}],
        "admin_token": REDACTED,
        "name": "n",
    }


def test_a_long_text_keeps_its_beginning_and_its_last_lines_and_no_half_of_a_secret() -> None:
    trace = "Traceback\n" + "  File x\n" * 1000 + SECRETS[1] + "x" * 1980 + "\nValueError: what it was"
    shown = redact(trace)
    assert len(shown) <= 4001
    assert shown.startswith("Traceback\n  File x\n")
    assert shown.endswith("…\nValueError: what it was")
    assert "hunter2" not in shown
    assert redact("x" * 5000) == "x" * 2000 + "…"


def test_a_line_is_json_with_service_and_context_and_without_secrets(lines: io.StringIO) -> None:
    structlog.contextvars.bind_contextvars(operation="op-1")
    logs.get("m").warning("lost", dsn=SECRETS[0], error=f"with {SECRETS[1]}", count=3)
    found = json.loads(lines.getvalue())
    assert found["service"] == "intake"
    assert (found["operation"], found["module"], found["count"], found["level"]) == ("op-1", "m", 3, "warning")
    assert "hunter2" not in lines.getvalue()


def test_library_logs_are_json_too_with_their_exceptions_redacted(lines: io.StringIO) -> None:
    try:
        raise ValueError(SECRETS[0])
    except ValueError:
        logging.getLogger("uvicorn.error").exception("failed for %s", SECRETS[1])
    found = json.loads(lines.getvalue())
    assert found["logger"] == "uvicorn.error"
    assert "ValueError" in found["exception"]
    assert "hunter2" not in lines.getvalue()


def test_debug_lines_are_dropped_at_level_info(lines: io.StringIO) -> None:
    logs.get("m").debug("noise")
    assert lines.getvalue() == ""


def test_a_full_disk_costs_log_lines_and_nobody_dies() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    stream = logs.Tolerant(Full())
    assert stream.write("a line\n") == 7
    stream.flush()
    room = io.StringIO()
    logs.Tolerant(room).write("a line\n")
    assert room.getvalue() == "a line\n"
