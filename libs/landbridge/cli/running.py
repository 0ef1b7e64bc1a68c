"""Runs the asynchronous part of a command and turns what goes wrong into a text and an exit code."""

import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from landbridge.cli.exits import CliError, Exit

if TYPE_CHECKING:
    from landbridge.client.http_client import HttpClient

T = TypeVar("T")
RETRY_S = 5.0  # how long a command tries to reach the instance
_INTERRUPTED = 130  # what shells use for SIGINT


def call(data: Path | None, context: str, work: "Callable[[HttpClient], Coroutine[Any, Any, T]]") -> T:
    """Run `work` with a client of the chosen instance."""
    import asyncio

    from landbridge.cli.instance import find

    instance = find(data, context)

    async def main() -> T:
        from landbridge.client.http_client import HttpClient

        async with HttpClient(instance.url, instance.token, retry_s=RETRY_S) as client:
            return await work(client)

    try:
        return asyncio.run(main())
    except KeyboardInterrupt:
        # Told by the exit code alone; the framework would print that it aborted.
        raise SystemExit(_INTERRUPTED) from None


async def asked(client: "HttpClient", path: str) -> dict[str, Any]:
    """Return what the coordinator knows; nothing where it does not answer or has not heard of it."""
    from landbridge.client.errors import LandbridgeError

    try:
        return dict(await client.read(path))
    except LandbridgeError:
        return {}


def guard(run: Callable[[], None]) -> int:
    """Run the command line; print errors as text on standard error; the exit code."""
    try:
        run()
    except CliError as error:
        return _tell(str(error), error.code)
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone (`| head`); nothing more is to be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
    except Exception as error:
        code = _code_of(error)
        if code is None:
            raise
        return _tell(str(error), code)
    return 0


def _code_of(error: Exception) -> Exit | None:
    """Return the exit code of an error of ours; None for a fault, whose trace is wanted."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "UnreachableError" in names:
        return Exit.UNREACHABLE
    if "WaitTimeoutError" in names:
        return Exit.TIMED_OUT
    if names & {"InvalidError", "AmbiguousError"}:
        return Exit.INVALID
    if names & {"LandbridgeError", "EmbeddedError", "SiteError"}:
        return Exit.FAILED
    return None


def _tell(text: str, code: Exit) -> int:
    mark = "error:"
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        mark = "\x1b[31merror:\x1b[0m"
    print(f"{mark} {text}", file=sys.stderr)
    return int(code)
